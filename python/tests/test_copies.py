"""A copy of a loader begins where the next iteration over the original would begin, however it was made."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import forebay
import pytest
from conftest import keys_of

BATCH = 1000


def made(tiny: str, **how: object) -> forebay.Loader:
    return forebay.Loader(tiny, batch_size=BATCH, shuffle=True, seed=3, threads=2, **how)  # type: ignore[arg-type]


# What was done to the loader, and what the next iteration over it gives: batches of these epochs.


def untouched(loader: forebay.Loader) -> object:
    return None


def in_the_middle(loader: forebay.Loader) -> object:
    iteration = iter(loader)
    for _ in range(4):
        next(iteration)
    return iteration


def left_early(loader: forebay.Loader) -> object:
    for number, _ in enumerate(loader):
        if number == 3:
            break
    return None


def resumed(loader: forebay.Loader) -> object:
    loader.load_state_dict({**loader.state_dict(), "epoch": 5, "samples_seen": 3 * BATCH})
    return None


def resumed_and_in_the_middle(loader: forebay.Loader) -> object:
    resumed(loader)
    return in_the_middle(loader)


def finished(loader: forebay.Loader) -> object:
    list(loader)
    return None


STATES: dict[Callable[[forebay.Loader], object], tuple[int, int]] = {
    untouched: (0, 0),
    in_the_middle: (0, 0),
    left_early: (0, 0),
    resumed: (5, 3),
    resumed_and_in_the_middle: (5, 0),
    finished: (1, 0),
}


def expected(tiny: str, epoch: int, batches: int) -> list[list[str]]:
    loader = made(tiny)
    loader.set_epoch(epoch)
    return keys_of(loader)[batches:]


def tell(loader: forebay.Loader, pipe: multiprocessing.connection.Connection) -> None:  # type: ignore[name-defined]
    pipe.send((loader.state_dict(), keys_of(loader)))
    pipe.close()


def in_process(method: str) -> Callable[[forebay.Loader], tuple[object, list[list[str]]]]:
    def there(loader: forebay.Loader) -> tuple[object, list[list[str]]]:
        context = multiprocessing.get_context(method)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=tell, args=(loader, sender))
        process.start()
        sender.close()
        found = receiver.recv()
        process.join(60)
        assert process.exitcode == 0
        return found  # type: ignore[no-any-return]

    return there


def here(copied: Callable[[forebay.Loader], forebay.Loader]) -> Callable[[forebay.Loader], tuple[object, list[list[str]]]]:
    def found(loader: forebay.Loader) -> tuple[object, list[list[str]]]:
        other = copied(loader)
        return other.state_dict(), keys_of(other)

    return found


WAYS = {
    "pickle": here(lambda loader: pickle.loads(pickle.dumps(loader))),
    "copy": here(copy.copy),
    "deepcopy": here(copy.deepcopy),
    "fork": in_process("fork"),
    "spawn": in_process("spawn"),
    "again": here(lambda loader: loader),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_copies_begin_where_the_original_would(tiny: str, state: Callable[[forebay.Loader], object], way: str) -> None:
    if way == "fork" and not hasattr(os, "fork"):
        pytest.skip("the system cannot fork")
    loader = made(tiny)
    held = state(loader)
    before = loader.state_dict()
    told, keys = WAYS[way](loader)
    assert keys == expected(tiny, *STATES[state])
    # What was taken so far is not forgotten: a state of a copy is the original's.
    assert told == before
    if way != "again":
        # And the original goes on as if nothing had happened.
        assert loader.state_dict() == before
        if held is not None:
            assert len(keys_of(held)) == 10 - before["samples_seen"] // BATCH
    del held


def test_several_epochs_are_counted_anew_by_copies(tiny: str) -> None:
    loader = made(tiny, epochs=2)
    iteration = iter(loader)
    for _ in range(13):
        next(iteration)
    copied = pickle.loads(pickle.dumps(loader))
    keys = keys_of(copied)
    assert keys == keys_of(loader) and len(keys) == len(loader) == 20
    assert copied.epoch == loader.epoch == 3


def test_what_a_loader_was_made_with_cannot_be_changed(tiny: str) -> None:
    loader = made(tiny)
    copied = pickle.loads(pickle.dumps(loader))
    for one in (loader, copied):
        for name in ("batch_size", "shuffle", "seed", "rank", "world_size", "epochs", "framework", "pin_memory", "threads"):
            with pytest.raises(AttributeError, match=f"`{name}` of a loader cannot be changed"):
                setattr(one, name, 1)
        for name in ("epoch", "samples", "classes", "skipped"):
            with pytest.raises(AttributeError):
                setattr(one, name, 1)
        one.note = "of my own"
        assert one.batch_size == BATCH and one.note == "of my own"


def test_an_iteration_is_not_copied(tiny: str) -> None:
    loader = forebay.Loader(tiny, batch_size=BATCH)
    iteration = iter(loader)
    seen = len(next(iteration)["key"])
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(forebay.UsageError, match="an iteration cannot be copied"):
            way(iteration)
    assert seen + sum(len(batch["key"]) for batch in iteration) == loader.samples


def test_copies_do_not_share_what_was_skipped(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    shutil.copytree(photos, folder)
    (folder / "broken.png").write_bytes(b"no picture")
    loader = forebay.Loader(forebay.Pipeline.files(label=None).decode(), data=folder, on_error="skip")
    assert sum(len(batch["key"]) for batch in copy.copy(loader)) > 0
    assert (loader.skipped, loader.skipped_samples) == (0, [])


def test_a_number_is_no_flag_and_cannot_be_removed(tiny: str) -> None:
    with pytest.raises(forebay.UsageError, match="must be an integer"):
        forebay.Loader(tiny, batch_size=True)
    loader = forebay.Loader(tiny)
    with pytest.raises(AttributeError, match="cannot be removed"):
        del loader.batch_size
