"""Page-locked memory and PyTorch's workers, with a stand-in for PyTorch: there is no GPU here, and often no PyTorch."""

from __future__ import annotations

import copy
import importlib
import warnings

import forebay
import numpy
import pytest
import torch_stub
from conftest import keys_of


def test_batches_are_page_locked_where_there_is_a_gpu(tiny, monkeypatch):
    torch_stub.install(monkeypatch, gpu=True)
    plain = forebay.Loader(tiny, batch_size=4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader = forebay.Loader(tiny, batch_size=4000, framework="torch", pin_memory=True)
        for batch, expected in zip(loader, plain, strict=True):
            assert batch["image"].is_pinned() and batch["label"].is_pinned() and batch["key"] == expected["key"]
            assert numpy.array_equal(batch["image"].numpy(), expected["image"])
    unpinned = next(iter(forebay.Loader(tiny, framework="torch")))
    assert not unpinned["image"].is_pinned()


def test_without_a_gpu_it_is_what_pytorch_says(tiny, monkeypatch):
    torch_stub.install(monkeypatch, gpu=False)
    loader = forebay.Loader(tiny, framework="torch", pin_memory=True)
    with pytest.warns(UserWarning, match="'pin_memory' argument is set as true but no accelerator is found") as warned:
        batch = next(iter(loader))
    assert not batch["image"].is_pinned() and warned[0].filename == __file__


@pytest.mark.parametrize("framework", ["numpy", "jax"])
def test_only_pytorch_has_page_locked_tensors(tiny, framework):
    with pytest.raises(forebay.UsageError, match='`pin_memory` has no effect without `framework="torch"`'):
        forebay.Loader(tiny, framework=framework, pin_memory=True)
    with pytest.raises(forebay.UsageError, match="`pin_memory` is"):
        forebay.Loader(tiny, pin_memory="yes")


def test_workers_begin_where_the_loader_would(tiny, monkeypatch):
    torch = torch_stub.install(monkeypatch, gpu=False)
    adapter = importlib.import_module("forebay.torch")

    def of_workers(dataset, count):
        keys = []
        for number in range(count):
            torch.utils.data.worker = torch_stub.Worker(number, count)
            # As a fork leaves it: the same object, and what is changed there is not changed here.
            keys += [key for batch in copy.copy(dataset) for key in batch["key"]]
        torch.utils.data.worker = None
        return keys

    def of_epoch(epoch):
        loader = forebay.Loader(tiny, batch_size=500, shuffle=True)
        loader.set_epoch(epoch)
        return sorted(keys_of(loader)[0])

    loader = forebay.Loader(tiny, batch_size=250, shuffle=True, framework="torch")
    dataset = adapter.IterableDataset(loader)

    def first_samples():
        keys = of_workers(dataset, 2)
        assert len(keys) == len(set(keys)) == 10_000
        # One step is a batch of every rank, and its samples do not depend on their number.
        return sorted(keys[:250] + keys[5000:5250])

    assert first_samples() == of_epoch(0)
    held = iter(loader)
    next(held)
    assert first_samples() == of_epoch(0)
    del held
    list(loader)
    # The loader has moved on, though nobody called `set_epoch`.
    assert loader.epoch == 1 and first_samples() == of_epoch(1)
    dataset.set_epoch(4)
    assert first_samples() == of_epoch(4)
    # A worker that lives on hears of it, by the memory that it shares.
    living = copy.copy(dataset)
    living.loader = copy.copy(loader)
    dataset.set_epoch(6)
    assert living.loader.epoch == 4
    torch.utils.data.worker = torch_stub.Worker(0, 1)
    assert set(next(iter(living))["key"]) < set(of_epoch(6))
    torch.utils.data.worker = None
    loader.load_state_dict({**loader.state_dict(), "samples_seen": 500})
    with pytest.raises(forebay.UsageError, match="in the middle of an epoch"):
        of_workers(dataset, 2)
