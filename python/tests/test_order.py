"""Each sample once per epoch, in an order that follows from the seed alone; ranks share; epochs resume."""

from __future__ import annotations

import numpy
import pytest
from conftest import TINY_SAMPLES, keys_of

import forebay


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_sample_once_per_epoch(tiny, threads, world_size):
    for shuffle in (False, True):
        loaders = [
            forebay.Loader(tiny, shuffle=shuffle, seed=5, threads=threads, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        orders = []
        for epoch in range(3):
            shares = [keys_of(loader) for loader in loaders]
            for loader, share in zip(loaders, shares, strict=True):
                assert len(share) == len(loader)
                assert loader.epoch == epoch + 1
            everything = [key for share in shares for keys in share for key in keys]
            assert len(everything) == TINY_SAMPLES
            assert len(set(everything)) == TINY_SAMPLES
            orders.append(everything)
        assert (orders[0] == orders[1]) == (not shuffle)
        assert (orders[1] == orders[2]) == (not shuffle)


def test_the_order_follows_from_the_seed(tiny):
    def order(**options):
        return keys_of(forebay.Loader(tiny, shuffle=True, window_bytes=300_000, **options))

    first = order(seed=3, threads=1)
    assert first == order(seed=3, threads=4, prefetch=0)
    assert first != order(seed=4, threads=1)
    assert first == order(seed=3, epochs=2)[: len(first)]
    again = forebay.Loader(tiny, shuffle=True, window_bytes=300_000, seed=3)
    again.set_epoch(7)
    assert keys_of(again) != first
    again.set_epoch(0)
    assert keys_of(again) == first


def test_random_steps_follow_from_seed_and_epoch(tiny):
    def pixels(threads, epoch):
        loader = forebay.Loader(tiny, seed=9, threads=threads, batch_size=1000)
        loader.set_epoch(epoch)
        return numpy.concatenate([batch["image"] for batch in loader])

    one = pixels(1, 0)
    assert one.shape == (TINY_SAMPLES, 6, 6, 3)
    assert numpy.array_equal(one, pixels(4, 0))
    assert not numpy.array_equal(one, pixels(4, 1))


def test_labels_and_keys_belong_together(tiny):
    for loader in (forebay.Loader(tiny, shuffle=True), forebay.Loader(tiny, shuffle=True, rank=2, world_size=3)):
        for batch in loader:
            assert batch["label"].dtype == numpy.int64
            assert [loader.classes[label] for label in batch["label"]] == [key.split("/")[0] for key in batch["key"]]


def test_files_and_data_set_give_the_same(tiny, tiny_files, tiny_pipeline):
    built = forebay.Loader(tiny, batch_size=512)
    files = forebay.Loader(tiny_pipeline, data=tiny_files, batch_size=512)
    for one, other in zip(built, files, strict=True):
        assert one["key"] == other["key"]
        assert numpy.array_equal(one["image"], other["image"])
        assert numpy.array_equal(one["label"], other["label"])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 3)])
def test_resuming_equals_going_on(tiny, shuffle, rank, world_size):
    options = {"batch_size": 128, "shuffle": shuffle, "seed": 11, "epochs": 2, "window_bytes": 300_000}
    options |= {"rank": rank, "world_size": world_size}
    whole, states = [], []
    loader = forebay.Loader(tiny, threads=2, **options)
    states.append(loader.state_dict())
    for batch in loader:
        whole.append((batch["key"], batch["image"].tobytes(), batch["label"].tolist()))
        states.append(loader.state_dict())
    assert len(whole) == 2 * len(loader)
    for place in [0, 1, 2, len(whole) // 3, len(whole) // 2 - 1, len(whole) // 2, len(whole) // 2 + 1, len(whole) - 1]:
        resumed = forebay.Loader(tiny, threads=1 + place % 4, prefetch=place % 3, **options)
        resumed.load_state_dict(states[place])
        rest = [(batch["key"], batch["image"].tobytes(), batch["label"].tolist()) for batch in resumed]
        assert rest == whole[place:], f"from batch {place}"
        # Both are at the same place afterwards.
        assert resumed.state_dict() == loader.state_dict()
    finished = forebay.Loader(tiny, **options)
    finished.load_state_dict(states[-1])
    assert keys_of(finished) == []
    assert finished.epoch == 2
    # A loader that came to its end goes on with the next epochs.
    following = forebay.Loader(tiny, **options)
    following.load_state_dict(loader.state_dict())
    assert keys_of(following) == keys_of(loader)


def test_resuming_from_every_batch(tiny):
    options = {"batch_size": 500, "shuffle": True, "window_bytes": 200_000}
    whole = keys_of(forebay.Loader(tiny, **options))
    for place in range(len(whole) + 1):
        resumed = forebay.Loader(tiny, **options)
        resumed.load_state_dict({**resumed.state_dict(), "batches_seen": place})
        assert keys_of(resumed) == whole[place:]


def test_resuming_where_batches_are_cut_from_a_line(own_photos):
    """Pictures of different sizes, one of them damaged, and tiles: the epoch is done again up to the place."""
    (own_photos / "cats" / "damaged.jpg").write_bytes(b"\xff\xd8\xff nothing")
    for pipeline in [
        forebay.Pipeline.files(order="sorted").decode(),
        forebay.Pipeline.files(order="sorted").decode().tiles(100),
    ]:
        options = {"data": own_photos, "batch_size": 4, "shuffle": True, "on_error": "skip"}
        loader = forebay.Loader(pipeline, threads=2, **options)
        whole, states = [], []
        for batch in loader:
            whole.append((batch["key"], [image.tobytes() for image in batch["image"]]))
            states.append(loader.state_dict())
        assert loader.skipped == 1
        for place in range(0, len(whole), 5):
            resumed = forebay.Loader(pipeline, threads=3, **options)
            resumed.load_state_dict(states[place])
            rest = [(batch["key"], [image.tobytes() for image in batch["image"]]) for batch in resumed]
            assert rest == whole[place + 1 :]


def test_a_state_of_something_else_is_refused(tiny, tiny_files, tiny_pipeline):
    state = forebay.Loader(tiny, shuffle=True, seed=1).state_dict()
    for wrong, named in [
        ({"seed": 2, "shuffle": True}, "seed"),
        ({"seed": 1, "shuffle": False}, "shuffle"),
        ({"seed": 1, "shuffle": True, "batch_size": 32}, "batch_size"),
        ({"seed": 1, "shuffle": True, "world_size": 2}, "world_size"),
        ({"seed": 1, "shuffle": True, "window_bytes": 1000}, "window_bytes"),
        ({"seed": 1, "shuffle": True, "drop_last": True}, "drop_last"),
    ]:
        with pytest.raises(forebay.UsageError, match=f"with {named} .*\nhint: make the loader with {named}="):
            forebay.Loader(tiny, **wrong).load_state_dict(state)
    files = forebay.Loader(tiny_pipeline, data=tiny_files, shuffle=True, seed=1)
    with pytest.raises(forebay.UsageError, match="taken of other data"):
        files.load_state_dict(state)
    with pytest.raises(forebay.UsageError, match="no loader's state"):
        files.load_state_dict({"epoch": 3})
    with pytest.raises(forebay.UsageError, match="batches_seen"):
        files.load_state_dict({**files.state_dict(), "batches_seen": -1})


def test_dropping_the_last_batch_gives_all_ranks_equally_many(tiny):
    # 10,000 samples on 3 ranks are 3333, 3333 and 3334: with batches of 1667 the third alone has two full ones.
    for batch_size, batches in [(1667, 1), (64, 52), (3334, 0), (3333, 1)]:
        for rank in range(3):
            loader = forebay.Loader(tiny, batch_size=batch_size, drop_last=True, rank=rank, world_size=3)
            sizes = [len(batch["key"]) for batch in loader]
            assert sizes == [batch_size] * batches
            assert len(loader) == batches
            assert loader.epoch == 1


def test_an_iteration_left_early_is_begun_again(tiny):
    loader = forebay.Loader(tiny, shuffle=True, epochs=2)
    whole = keys_of(forebay.Loader(tiny, shuffle=True, epochs=2))
    for place, _ in enumerate(loader):
        if place == 3:
            break
    assert loader.epoch == 0
    assert keys_of(loader) == whole
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(forebay.UsageError, match="ended, by another"):
        next(first)


def test_more_ranks_than_samples(photos):
    pipeline = forebay.Pipeline.files().decode().random_crop(64)
    shares = [keys_of(forebay.Loader(pipeline, data=photos, rank=rank, world_size=200)) for rank in range(200)]
    keys = [key for share in shares for batch in share for key in batch]
    assert len(keys) == len(set(keys)) == 50


def test_ranks_from_the_environment(tiny, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    loader = forebay.Loader(tiny, rank=None)
    assert (loader.rank, loader.world_size) == (2, 5)
    monkeypatch.delenv("RANK")
    with pytest.raises(forebay.UsageError, match="torchrun"):
        forebay.Loader(tiny, rank=None)
