"""PyTorch, where it can be imported: it is too heavy to be needed."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import forebay
import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def test_tensors_are_the_loaders_memory(tiny):
    plain = forebay.Loader(tiny, batch_size=256)
    loader = forebay.Loader(tiny, batch_size=256, framework="torch")
    for expected, batch in zip(plain, loader, strict=True):
        image = batch["image"]
        assert image.dtype == torch.uint8 and batch["label"].dtype == torch.int64
        assert numpy.array_equal(image.numpy(), expected["image"])
        assert numpy.array_equal(batch["label"].numpy(), expected["label"])
        again = torch.from_dlpack(image)
        assert again.data_ptr() == image.data_ptr() and image.data_ptr() % 64 == 0


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_data_loader_sees_each_sample_once(tiny, workers):
    from forebay.torch import IterableDataset

    for world_size in (1, 2):
        keys = []
        for rank in range(world_size):
            loader = forebay.Loader(
                tiny, framework="torch", shuffle=True, threads=1, rank=rank, world_size=world_size
            )
            batches = torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None, num_workers=workers)
            keys += [key for batch in batches for key in batch["key"]]
        assert len(keys) == len(set(keys)) == 10_000


def test_resuming_gives_the_same_tensors(tiny):
    loader = forebay.Loader(tiny, framework="torch", shuffle=True)
    iterator = iter(loader)
    for _ in range(20):
        next(iterator)
    resumed = forebay.Loader(tiny, framework="torch", shuffle=True, threads=1)
    resumed.load_state_dict(loader.state_dict())
    for one, other in zip(iterator, resumed, strict=True):
        assert torch.equal(one["image"], other["image"]) and torch.equal(one["label"], other["label"])


def test_epochs_are_set(tiny):
    from forebay.torch import IterableDataset

    dataset = IterableDataset(forebay.Loader(tiny, framework="torch", shuffle=True, threads=1))
    orders = []
    for epoch in (0, 1, 0):
        dataset.set_epoch(epoch)
        batches = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
        orders.append([key for batch in batches for key in batch["key"]])
    assert orders[0] == orders[2] != orders[1]


def test_the_examples_with_pytorch_run(tiny, tmp_path, monkeypatch):
    """The README's, on a data set in the current folder, and that of `forebay.torch`."""
    import forebay.torch

    (tmp_path / "dataset").symlink_to(tiny)
    monkeypatch.chdir(tmp_path)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"(?m)^    import forebay\n(?:    .*\n)+", readme)
    names = {"loader": forebay.Loader(tiny, framework="torch", batch_size=1000), "torch": torch, "forebay": forebay}
    (documented,) = re.findall(r"::\n\n((?: {4}.*\n)+)", forebay.torch.__doc__)
    for example in (shown, documented):
        exec(textwrap.dedent(example), names)
    assert torch.is_tensor(names["images"]) and names["batch"]["image"].shape == (1000, 6, 6, 3)


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_begin_at_the_beginning_or_say_why_not(tiny):
    from forebay.torch import IterableDataset

    loader = forebay.Loader(tiny, batch_size=100, framework="torch", threads=1)
    peeked = iter(loader)
    next(peeked)
    batches = torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None, num_workers=2)
    assert sum(len(batch["key"]) for batch in batches) == 10_000

    loader.load_state_dict({**forebay.Loader(tiny, batch_size=100, framework="torch").state_dict(), "samples_seen": 500})
    with pytest.raises(Exception, match="in the middle of an epoch"):
        list(torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None, num_workers=2))
    resumed = torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None, num_workers=0)
    assert sum(len(batch["key"]) for batch in resumed) == 9_500


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_workers_that_live_on_hear_of_the_next_epoch(tiny):
    from forebay.torch import IterableDataset

    dataset = IterableDataset(forebay.Loader(tiny, batch_size=500, shuffle=True, framework="torch", threads=1))
    batches = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2, persistent_workers=True)
    orders = []
    for epoch in (0, 1, 0):
        dataset.set_epoch(epoch)
        orders.append([key for batch in batches for key in batch["key"]])
    assert orders[0] == orders[2] != orders[1] and sorted(orders[0]) == sorted(orders[1])


def test_the_random_numbers_of_pytorch_can_be_used_in_functions(tiny_files):
    """What torchvision's transforms draw is of the whole process: calls at the same time would share it."""

    def jitter(image, *, seed):
        torch.manual_seed(seed)
        picture = torch.from_numpy(image).float()
        noise = torch.rand(picture.shape)
        brightness, contrast = torch.rand(2)
        return ((picture - 128) * contrast * noise + 128 * brightness).to(torch.uint8)

    pipeline = forebay.Pipeline.files("class1/*.png", label=None).decode().resize((8, 8))
    pipeline = pipeline.map(jitter, random=True)
    runs = []
    for threads in (4, 4, 1):
        loader = forebay.Loader(pipeline, data=tiny_files, shuffle=True, threads=threads)
        runs.append(numpy.concatenate([batch["image"] for batch in loader]))
    assert len(runs[0]) == 1000
    assert numpy.array_equal(runs[0], runs[1]) and numpy.array_equal(runs[0], runs[2])


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_function_raises_comes_through_a_data_loader(tiny_files, workers):
    from forebay.torch import IterableDataset

    def raises(image):
        raise ZeroDivisionError("by nought")

    pipeline = forebay.Pipeline.files("class1/*.png", label=None).decode().resize((8, 8)).map(raises)
    loader = forebay.Loader(pipeline, data=tiny_files, framework="torch", threads=2)
    with pytest.raises(ZeroDivisionError, match="by nought"):
        list(torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None, num_workers=workers))
