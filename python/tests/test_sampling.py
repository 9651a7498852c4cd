"""Epochs that do not have each sample once: subsets, weights, repeats."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import forebay
import numpy
import pytest

PLAIN = forebay.Pipeline.files("**/*.jpg").decode().random_crop(32)
#: The same images with other pixels.
INVERTED = PLAIN.random_invert(1)


def keys(loader: forebay.Loader) -> list[str]:
    return [key for batch in loader for key in batch["key"]]


def test_a_subset_has_its_samples(photos: Path) -> None:
    everything = keys(forebay.Loader(PLAIN, data=photos))
    loader = forebay.Loader(PLAIN, data=photos, subset=[4, 0, 49], batch_size=2)
    assert keys(loader) == [everything[0], everything[4], everything[49]]
    assert loader.samples == 3 and len(loader) == 2
    shuffled = forebay.Loader(PLAIN, data=photos, subset=range(20, 40), shuffle=True, epochs=2)
    assert Counter(keys(shuffled)) == dict.fromkeys(everything[20:40], 2)


@pytest.mark.parametrize("cache", ["minio:1GB", "minio:100kB", "decoded:1GB", "liquid:1GB", "liquid:100kB", "auto:1GB"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_cache_keeps_a_subset(photos: Path, tmp_path: Path, cache: str, stored: bool) -> None:
    data = forebay.build(PLAIN, tmp_path / "set", data=photos, strategy="concatenated", progress=False) if stored else PLAIN
    folder = {} if stored else {"data": photos}
    everything = keys(forebay.Loader(data, **folder))
    subset = [0, *range(3, 30, 2), 41, 49]
    options = {"subset": subset, "batch_size": 4, "seed": 6, "shuffle": True, **folder}

    def epochs(loader: forebay.Loader) -> list[dict[str, bytes]]:
        loaded = [{key: image.tobytes() for batch in loader for key, image in zip(batch["key"], batch["image"], strict=True)} for _ in range(3)]
        assert all(epoch.keys() == {everything[number] for number in subset} for epoch in loaded)
        return loaded

    kept = forebay.Loader(data, cache=cache, **options)
    assert epochs(kept) == epochs(forebay.Loader(data, **options)), "the same draws"
    if "1GB" in cache:
        assert (kept.cached.hits, kept.cached.samples) == (2 * len(subset), len(subset))
    else:
        # `minio` keeps whole blocks, as many as fit: here none may.
        assert kept.cached.samples < len(subset) and (kept.cached.hits > 0 or cache.startswith("minio"))


def test_weights_balance_classes(photos: Path) -> None:
    labels = [label for batch in forebay.Loader(PLAIN, data=photos) for label in batch["label"]]
    labels[:20] = [7] * 20
    weights = forebay.balanced_weights(labels)
    assert sum(weights) == pytest.approx(1) and weights[0] == pytest.approx(1 / 60)
    loader = forebay.Loader(PLAIN, data=photos, weights=weights, replacement=True, num_samples=3000, seed=1, shuffle=True)
    everything = keys(forebay.Loader(PLAIN, data=photos))
    counts = Counter(keys(loader))
    assert counts.total() == 3000
    assert 900 < sum(counts[key] for key in everything[:20]) < 1100
    without = forebay.Loader(PLAIN, data=photos, weights=[1] * 10 + [0] * 40, num_samples=10)
    assert keys(without) == everything[:10]


def test_classes_are_balanced_without_an_epoch_before(photos: Path) -> None:
    everything = forebay.Loader(PLAIN, data=photos)
    labels = {key: int(label) for batch in everything for key, label in zip(batch["key"], batch["label"], strict=True)}
    first = next(key for key, label in labels.items() if label == 1)
    # One sample of class 1 and all of class 0: each class makes half of an epoch.
    loader = forebay.Loader(
        PLAIN, data=photos, weights="balanced", subset=lambda key, label: label == 0 or key == first, num_samples=2000, seed=3, shuffle=True
    )
    counts = Counter(keys(loader))
    assert counts.total() == 2000 and 900 < counts[first] < 1100
    assert {labels[key] for key in counts} == {0, 1} and len(counts) == 1 + sum(label == 0 for label in labels.values())
    given = forebay.Loader(PLAIN, data=photos, weights=forebay.balanced_weights(labels.values()), replacement=True, seed=4, shuffle=True)
    assert keys(forebay.Loader(PLAIN, data=photos, weights="balanced", seed=4, shuffle=True)) == keys(given)
    unlabeled = forebay.Pipeline.files("**/*.jpg", label=None).decode().random_crop(32)
    with pytest.raises(forebay.UsageError, match="has no label"):
        forebay.Loader(unlabeled, data=photos, weights="balanced")
    with pytest.raises(forebay.UsageError, match='must be `"balanced"`'):
        forebay.Loader(PLAIN, data=photos, weights="even")  # type: ignore[arg-type]
    with pytest.raises(forebay.UsageError, match="a weight each"):
        forebay.Loader([(PLAIN, photos), (PLAIN, photos)], weights="balanced")


def test_repeats_come_with_other_draws(photos: Path) -> None:
    loader = forebay.Loader(PLAIN, data=photos, repeats=2, shuffle=True, seed=4, batch_size=50)
    (batch,) = loader
    counts = Counter(batch["key"])
    assert set(counts.values()) == {2} and len(counts) == 25
    pairs = [[image for image, other in zip(batch["image"], batch["key"], strict=True) if other == key] for key in counts]
    assert sum((one != two).any() for one, two in pairs) > 20
    (again,) = forebay.Loader(PLAIN, data=photos, repeats=2, shuffle=True, seed=4, batch_size=50, threads=1)
    assert again["key"] == batch["key"] and (again["image"] == batch["image"]).all()


def test_ranks_share_and_resume_a_drawn_epoch(photos: Path) -> None:
    def options(**more: object) -> forebay.Loader:
        draw = {"weights": numpy.arange(50), "replacement": True, "num_samples": 60, "seed": 2, "shuffle": True}
        return forebay.Loader(PLAIN, data=photos, batch_size=10, **draw, **more)  # type: ignore[arg-type]

    whole = keys(options())
    ranks = [keys(options(rank=rank, world_size=2)) for rank in range(2)]
    assert Counter(ranks[0] + ranks[1]) == Counter(whole)
    loader = options()
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    rest = options()
    rest.load_state_dict(state)
    assert keys(rest) == whole[10:]
    other = forebay.Loader(PLAIN, data=photos, batch_size=10, seed=2, shuffle=True)
    with pytest.raises(forebay.UsageError, match="other data"):
        other.load_state_dict(state)


DRAWN_EPOCHS = {
    "weighted": {"weights": numpy.arange(50), "num_samples": 40},
    "replacement": {"weights": numpy.arange(50), "replacement": True, "num_samples": 90},
    "subset": {"subset": range(3, 47)},
    "repeats": {"repeats": 3},
    "subset and repeats": {"subset": range(10, 40), "repeats": 2},
    "interleaved": {"data": [PLAIN, INVERTED]},
    "interleaved by weights": {"data": [PLAIN, INVERTED], "weights": [3, 1], "num_samples": 96},
    "interleaved, one of them again and again": {"data": [PLAIN, INVERTED, PLAIN.random_crop(32, name="cropped_again")], "weights": [1, 5, 1], "num_samples": 130},
}


@pytest.mark.parametrize("draw", DRAWN_EPOCHS)
def test_a_drawn_epoch_resumes_with_other_numbers_of_ranks(draw: str, photos: Path) -> None:
    def loader(rank: int = 0, world_size: int = 1) -> forebay.Loader:
        options = {"batch_size": 4, "seed": 2, "shuffle": True, "rank": rank, "world_size": world_size, **DRAWN_EPOCHS[draw]}
        several = options.pop("data", None)
        if several is not None:
            return forebay.Loader([(pipeline, photos) for pipeline in several], **options)  # type: ignore[arg-type, attr-defined]
        return forebay.Loader(PLAIN, data=photos, **options)  # type: ignore[arg-type]

    def samples(batches: list[dict[str, object]]) -> Counter[tuple[str, bytes]]:
        """Keys and pixels: repeats of one image have other crops, which must not change either."""
        return Counter(
            (key, image.tobytes()) for batch in batches for key, image in zip(batch["key"], numpy.array(batch["image"]), strict=True)
        )

    whole = samples(list(loader()))
    for before, after in [(2, 3), (3, 1), (1, 4)]:
        seen: Counter[tuple[str, bytes]] = Counter()
        states = []
        for rank in range(before):
            first = loader(rank, before)
            batches = iter(first)
            seen += samples([next(batches) for _ in range(3)])
            states.append(first.state_dict())
        for rank in range(after):
            rest = loader(rank, after)
            rest.load_state_dict(states[rank % before])
            seen += samples(list(rest))
        assert seen == whole, (before, after)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"weights": [1.0]}, "1 weights for 50 samples"),
        ({"weights": [-1.0] * 50}, "negative"),
        ({"subset": [50]}, "sample 50 of 50"),
        ({"subset": [1, 1]}, "twice"),
        ({"num_samples": 51}, "51 samples of 50 without replacement"),
        ({"repeats": 2, "cache": "1GB"}, "each epoch draws other samples"),
        ({"subset": range(9), "num_samples": 5, "shuffle": True, "cache": "liquid:1GB"}, "each epoch draws other samples"),
    ],
)
def test_what_cannot_be_drawn_is_refused(photos: Path, options: dict[str, object], problem: str) -> None:
    with pytest.raises(forebay.UsageError, match=problem):
        list(forebay.Loader(PLAIN, data=photos, **options))  # type: ignore[arg-type]


def test_a_subset_may_be_a_function_of_key_and_label(photos: Path, tmp_path: Path) -> None:
    everything = forebay.Loader(PLAIN, data=photos)
    wanted = {key for batch in everything for key, label in zip(batch["key"], batch["label"], strict=True) if label == 1}
    assert 0 < len(wanted) < everything.samples
    loader = forebay.Loader(PLAIN, data=photos, subset=lambda key, label: label == 1, shuffle=True)
    assert set(keys(loader)) == wanted and loader.samples == len(wanted)
    dataset = forebay.build(PLAIN, tmp_path / "set", data=photos, strategy="decoded", progress=False)
    assert set(keys(forebay.Loader(dataset, subset=lambda key, label: label == 1))) == wanted
    assert set(keys(forebay.Loader(dataset, subset=lambda key, label: key in wanted))) == wanted
    assert keys(forebay.Loader(PLAIN, data=photos, subset=sorted(wanted))) == sorted(wanted)
    with pytest.raises(forebay.UsageError, match="not the key of a sample"):
        forebay.Loader(PLAIN, data=photos, subset=["nowhere.jpg"])
    with pytest.raises(forebay.UsageError, match="empty"):
        keys(forebay.Loader(dataset, subset=lambda key, label: False))


def test_data_sets_are_interleaved_by_weights(photos: Path, tmp_path: Path) -> None:
    labeled = forebay.Pipeline.files("**/*.jpg", label=None).decode().resize((24, 24))
    one = forebay.build(labeled, tmp_path / "one", data=photos, strategy="decoded", progress=False)
    for number in range(20):
        make = numpy.full((40, 30, 3), number, numpy.uint8)
        (tmp_path / "more").mkdir(exist_ok=True)
        forebay_image(make, tmp_path / "more" / f"more-{number}.png")
    other = forebay.Pipeline.files("*.png", label=None).decode().resize((24, 24)).random_horizontal_flip()

    def loader(**options: object) -> forebay.Loader:
        sources = [one, (other, tmp_path / "more")]
        return forebay.Loader(sources, weights=[3, 1], batch_size=8, seed=5, shuffle=True, num_samples=96, **options)  # type: ignore[arg-type]

    batches = list(loader())
    assert [sum("more-" in key for key in batch["key"]) for batch in batches] == [2] * 12
    everything = keys(loader())
    assert len({key for key in everything if "more-" in key}) == 20, "all of the small one, some again"
    assert keys(loader(threads=1)) == everything
    assert Counter(keys(loader(rank=0, world_size=2)) + keys(loader(rank=1, world_size=2))) == Counter(everything)
    first = loader()
    next(iter(first))
    rest = loader()
    rest.load_state_dict(first.state_dict())
    assert keys(rest) == everything[8:]
    # Without weights, each sample once.
    assert Counter(keys(forebay.Loader([one, (other, tmp_path / "more")]))).total() == 70
    with pytest.raises(forebay.UsageError, match="2 data sets"):
        keys(forebay.Loader([one, one], weights=[1]))
    with pytest.raises(forebay.UsageError, match="other fields than data set 0"):
        keys(forebay.Loader([one, (PLAIN, photos)], weights=[1, 1]))


def forebay_image(pixels: numpy.ndarray, path: Path) -> None:  # type: ignore[type-arg]
    from PIL import Image

    Image.fromarray(pixels).save(path)
