"""Each sample once per epoch, in an order that follows from the seed alone; ranks share; epochs resume."""

from __future__ import annotations

import itertools

import forebay
import numpy
import pytest
from conftest import TINY_SAMPLES, keys_of


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
        return keys_of(forebay.Loader(tiny, shuffle=True, shuffle_window=300_000, **options))

    first = order(seed=3, threads=1)
    assert first == order(seed=3, threads=4, prefetch=0)
    assert first != order(seed=4, threads=1)
    assert first == order(seed=3, epochs=2)[: len(first)]
    again = forebay.Loader(tiny, shuffle=True, shuffle_window=300_000, seed=3)
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


def samples_of(loader):
    """The pixels and the label of each sample, by its key, in the order in which they come."""
    samples = {}
    for batch in loader:
        pixels = (picture.tobytes() for picture in batch["image"])
        samples |= dict(zip(batch["key"], zip(pixels, batch["label"].tolist(), strict=True), strict=True))
    return samples


def test_files_and_data_set_give_the_same(tiny, tiny_files, tiny_pipeline, tmp_path):
    """Random steps do the same to a sample, too, though a build writes samples in random order and files come by name."""
    files = samples_of(forebay.Loader(tiny_pipeline, data=tiny_files, batch_size=512, seed=5))
    built = samples_of(forebay.Loader(tiny, batch_size=512, seed=5))
    assert files == built and len(files) == TINY_SAMPLES
    assert list(files) == sorted(files) != list(built)
    # Unless the build is to go by name.
    pipeline = forebay.Pipeline.files("class1/*.png", order="sorted").decode().random_crop(6)
    dataset = forebay.build(pipeline, tmp_path / "sorted", data=tiny_files, strategy="decoded", shards=3)
    loaders = forebay.Loader(dataset, batch_size=512), forebay.Loader(pipeline, data=tiny_files, batch_size=512)
    for one, other in zip(*loaders, strict=True):
        assert one["key"] == other["key"]
        assert numpy.array_equal(one["image"], other["image"])
        assert numpy.array_equal(one["label"], other["label"])


def test_every_way_of_reading_gives_the_same(tiny):
    """Shards of the data set are large enough to be mapped, and its index is not."""
    loaders = [forebay.Loader(tiny, batch_size=256, shuffle=True, seed=4, storage=storage) for storage in ("local", "mmap", "direct")]
    for batches in zip(*loaders, strict=True):
        for other in batches[1:]:
            for one, two in zip(batches[0], other, strict=True):
                assert (numpy.asarray(one) == numpy.asarray(two)).all()


def test_files_come_by_name_unless_shuffled(photos):
    by_name = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    for seed in (1, 2):
        assert [key for batch in keys_of(forebay.Loader("cv", data=photos, seed=seed)) for key in batch] == by_name
    shuffled = [key for batch in keys_of(forebay.Loader("cv", data=photos, shuffle=True)) for key in batch]
    assert shuffled != by_name and sorted(shuffled) == by_name
    # Ranks take them by name, too: a step has what comes next.
    first = [next(iter(forebay.Loader("cv", data=photos, batch_size=4, rank=rank, world_size=3))) for rank in range(3)]
    assert sorted(key for batch in first for key in batch["key"]) == by_name[:12]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("rank", "world_size"), [(0, 1), (1, 3)])
def test_resuming_equals_going_on(tiny, shuffle, rank, world_size):
    options = {"batch_size": 128, "shuffle": shuffle, "seed": 11, "epochs": 2, "rank": rank, "world_size": world_size}
    options |= {"shuffle_window": 300_000} if shuffle else {}
    whole, states = [], []
    loader = forebay.Loader(tiny, threads=2, **options)
    states.append(loader.state_dict())
    for batch in loader:
        whole.append((batch["key"], batch["image"].tobytes(), batch["label"].tolist()))
        states.append(loader.state_dict())
    assert len(whole) == len(loader)
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


@pytest.mark.parametrize("shuffle", [False, True])
def test_another_world_goes_on(tiny, shuffle):
    """Interrupted twice, each time to go on with another number of ranks and another batch size."""

    def world(size, batch_size):
        options = {"shuffle": shuffle, "seed": 3, "threads": 1}
        options |= {"shuffle_window": 100_000, "streams": 4} if shuffle else {}
        return [forebay.Loader(tiny, rank=rank, world_size=size, batch_size=batch_size, **options) for rank in range(size)]

    whole = [key for batch in keys_of(world(1, 100)[0]) for key in batch]
    for sizes in [(1, 2, 3), (5, 3, 8), (8, 1, 5)]:
        state, seen = None, []
        for size, batch_size, steps in zip(sizes, (37, 100, 64), (9, 5, 1000), strict=True):
            loaders = world(size, batch_size)
            if state is not None:
                for loader in loaders:
                    loader.load_state_dict(state)
            for step, batches in enumerate(itertools.zip_longest(*loaders)):
                if step == steps:
                    break
                keys = [key for batch in batches if batch is not None for key in batch["key"]]
                # A step has the samples that come next, whoever takes them.
                assert sorted(keys) == sorted(whole[len(seen) : len(seen) + len(keys)])
                seen += keys
                state = loaders[0].state_dict()
                assert None in batches or all(loader.state_dict() == state for loader in loaders)
        assert sorted(seen) == sorted(whole) and len(seen) == TINY_SAMPLES


def test_shares_can_be_made_even(tiny):
    for even, sizes in [("none", [1428, 1429]), ("drop", [1428]), ("pad", [1429])]:
        shares = [keys_of(forebay.Loader(tiny, rank=rank, world_size=7, even=even)) for rank in range(7)]
        assert sorted({sum(len(batch) for batch in share) for share in shares}) == sizes
        keys = [key for share in shares for batch in share for key in batch]
        assert len(set(keys)) == (9996 if even == "drop" else TINY_SAMPLES)


def test_resuming_from_every_batch(tiny):
    options = {"batch_size": 500, "shuffle": True, "shuffle_window": 200_000}
    whole = keys_of(forebay.Loader(tiny, **options))
    for place in range(len(whole) + 1):
        resumed = forebay.Loader(tiny, **options)
        resumed.load_state_dict({**resumed.state_dict(), "samples_seen": min(500 * place, TINY_SAMPLES)})
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
        ({"seed": 1, "shuffle": True, "shuffle_window": 1000}, "shuffle_window"),
        ({"seed": 1, "shuffle": True, "streams": 3}, "streams"),
    ]:
        with pytest.raises(forebay.UsageError, match=f"with {named} .*\nhint: load with {named} "):
            forebay.Loader(tiny, **wrong).load_state_dict(state)
    files = forebay.Loader(tiny_pipeline, data=tiny_files, shuffle=True, seed=1)
    with pytest.raises(forebay.UsageError, match="taken of other data"):
        files.load_state_dict(state)
    with pytest.raises(forebay.UsageError, match="not a loader state"):
        files.load_state_dict({"epoch": 3})
    with pytest.raises(forebay.UsageError, match="samples_seen"):
        files.load_state_dict({**files.state_dict(), "samples_seen": -1})
    with pytest.raises(forebay.UsageError, match="has seen 10001 samples of 10000"):
        files.load_state_dict({**files.state_dict(), "samples_seen": TINY_SAMPLES + 1})
    # Where a step makes several samples of one, only the same batches can be gone on with.
    tiles = forebay.Pipeline.files("class1/*.png").decode().tiles(4)
    state = forebay.Loader(tiles, data=tiny_files, batch_size=7).state_dict()
    for wrong, named in [({"batch_size": 8}, "batch_size"), ({"batch_size": 7, "rank": 0, "world_size": 2}, "world_size")]:
        with pytest.raises(forebay.UsageError, match=f"with {named} "):
            forebay.Loader(tiles, data=tiny_files, **wrong).load_state_dict(state)


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
    for loader in (forebay.Loader(tiny), forebay.Loader(tiny, rank=None)):
        assert (loader.rank, loader.world_size) == (2, 5)
    # What is given counts.
    loader = forebay.Loader(tiny, rank=1, world_size=3)
    assert (loader.rank, loader.world_size) == (1, 3)
    assert forebay.Loader(tiny, world_size=1).rank == 0
    with pytest.raises(forebay.UsageError, match="`rank` is given without `world_size`"):
        forebay.Loader(tiny, rank=0)
    for variable, value in [("RANK", "two"), ("RANK", "5"), ("RANK", "-1"), ("WORLD_SIZE", "0"), ("WORLD_SIZE", "")]:
        with monkeypatch.context() as changed, pytest.raises(forebay.UsageError):
            changed.setenv(variable, value)
            forebay.Loader(tiny)
    monkeypatch.delenv("RANK")
    for arguments in ({}, {"rank": None}):
        with pytest.raises(forebay.UsageError, match="torchrun"):
            forebay.Loader(tiny, **arguments)
    monkeypatch.delenv("WORLD_SIZE")
    loader = forebay.Loader(tiny)
    assert (loader.rank, loader.world_size) == (0, 1)
    with pytest.raises(forebay.UsageError, match="`world_size` is `4`, but `rank` is missing"):
        forebay.Loader(tiny, world_size=4)
    with pytest.raises(forebay.UsageError, match="rank `1` is not below the world size `1`"):
        forebay.Loader(tiny, rank=1)
