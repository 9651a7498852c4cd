"""Arguments of other loaders are answered with ours, and slips with what was meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import forebay
import pytest

#: What `torch.utils.data.DataLoader` takes, apart from what we call the same.
DATALOADER = {
    "dataset": "it comes first",
    "sampler": "`subset`",
    "batch_sampler": "`subset`",
    "num_workers": "`threads`",
    "collate_fn": "`collate`",
    "timeout": "not needed",
    "worker_init_fn": "not needed",
    "multiprocessing_context": "not needed",
    "generator": "`seed`",
    "prefetch_factor": "`prefetch`",
    "persistent_workers": "not needed",
    "pin_memory_device": "`pin_memory`",
    "in_order": "not needed",
}
#: Of DALI, WebDataset, tf.data, FFCV, MosaicML Streaming and Hugging Face.
OTHERS = {
    "num_threads": "`threads`",
    "random_shuffle": "`shuffle`",
    "initial_fill": "`shuffle_window`",
    "last_batch_policy": "`drop_last` or `even`",
    "prefetch_queue_depth": "`prefetch`",
    "shard_id": "`rank`",
    "num_shards": "`world_size`",
    "file_root": "`data`",
    "shardshuffle": "`shuffle`",
    "handler": "`on_error`",
    "drop_remainder": "`drop_last`",
    "num_parallel_calls": "`threads`",
    "batches_ahead": "`prefetch`",
    "indices": "`subset`",
    "shuffle_seed": "`seed`",
    "transform": "steps belong to the pipeline",
    "batchsize": "did you mean `batch_size`?",
}


@pytest.mark.parametrize(("name", "hint"), [*DATALOADER.items(), *OTHERS.items()])
def test_a_loader_answers_with_its_own_name(name, hint):
    with pytest.raises(TypeError) as refused:
        forebay.Loader("dataset/", **{name: 8})
    first, _, second = str(refused.value).partition("\n")
    assert first == f"Loader() got an unexpected keyword argument `{name}`"
    assert second.startswith("hint: ") and hint in second


def test_what_nobody_calls_so_is_pythons_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'summon'"):
        forebay.Loader("dataset/", summon=8)


def test_ours_are_none_of_theirs():
    arguments = inspect.signature(forebay.Loader).parameters
    assert {"threads", "batch_size", "pin_memory", "drop_last"} < set(arguments)
    assert not (set(DATALOADER) | set(OTHERS)) & set(arguments)


def takes_threads() -> list[Callable[..., Any]]:
    found = [getattr(forebay, name) for name in forebay.__all__]
    methods = [member for kind in found if inspect.isclass(kind) for name, member in vars(kind).items() if inspect.isfunction(member)]
    functions = [one for one in [*found, *methods] if inspect.isfunction(one) and "threads" in inspect.signature(one).parameters]
    # The figures of a loader are made by nobody but itself.
    return [one for one in functions if one.__qualname__ != "Stats.__init__"]


def test_all_that_takes_threads_knows_workers():
    assert {"Loader.__init__", "build", "profile", "Dataset.export_tar"} <= {one.__qualname__ for one in takes_threads()}
    for one in takes_threads():
        with pytest.raises(TypeError, match="hint: use `threads`: workers are threads"):
            one(num_workers=2)
