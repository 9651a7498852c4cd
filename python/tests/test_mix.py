"""One data set in several formats, and the caches."""

from __future__ import annotations

from pathlib import Path

import forebay
import pytest

SHARES = {"decoded+png": 0.3, "resized": 0.7}


def keys(loader: forebay.Loader) -> list[list[str]]:
    return [list(batch["key"]) for batch in loader]


def pipeline() -> forebay.Pipeline:
    return forebay.Pipeline.files().decode().resize((12, 12)).random_crop(8)


def test_a_mix_is_built_and_loaded_as_any_data_set(photos: Path, tmp_path: Path) -> None:
    dataset = forebay.build(pipeline(), tmp_path / "mixed", data=photos, mix=SHARES, seed=4, shards=8)
    single = forebay.build(pipeline(), tmp_path / "single", data=photos, strategy="resized", shards=8)
    assert len(dataset) == len(single) == 50
    assert dataset.mix == SHARES and single.mix == {}
    assert [part["samples"] for part in dataset.manifest["formats"]] == [15, 35]
    assert dataset.strategy == "decoded+png, resized" and "9 shards" in repr(dataset)
    assert dataset.classes == single.classes

    def samples(source: object) -> dict[str, bytes]:
        loader = forebay.Loader(source, batch_size=8, shuffle=True, seed=1)  # type: ignore[arg-type]
        return {
            key: image.tobytes()
            for batch in loader
            for key, image in zip(batch["key"], batch["image"], strict=True)
        }

    assert samples(dataset) == samples(single), "a sample does not depend on its format"
    assert samples(tmp_path / "mixed" / "mix.json") == samples(single)


@pytest.mark.parametrize("name", ["none", "page", "minio", "liquid", "auto", None])
def test_every_cache_gives_every_sample(photos: Path, tmp_path: Path, name: str | None) -> None:
    budget = forebay.build(pipeline(), tmp_path / "set", data=photos, mix=SHARES, shards=20).bytes * 2 // 5
    cache = f"{name}:{budget}" if name in ("minio", "liquid", "auto") else name
    loader = forebay.Loader(tmp_path / "set", batch_size=7, shuffle=True, seed=3, cache=cache)
    for _ in range(3):
        assert len({key for batch in keys(loader) for key in batch}) == 50
    if cache is not None and ":" in cache:
        assert loader.cached.hits > 0 and 0 < loader.cached.bytes <= loader.cache_bytes == budget
        assert loader.cached.stage == "decoded+png, resized"


def test_a_liquid_cache_resumes(photos: Path, tmp_path: Path) -> None:
    forebay.build(pipeline(), tmp_path / "set", data=photos, mix=SHARES, shards=20)

    def loader(cache: str = "liquid:20KB") -> forebay.Loader:
        return forebay.Loader(tmp_path / "set", batch_size=10, shuffle=True, seed=3, cache=cache, epochs=2)

    whole = keys(loader())
    begun = loader()
    iteration = iter(begun)
    for _ in range(7):
        next(iteration)
    state = begun.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert keys(again) == whole[7:]
    with pytest.raises(forebay.UsageError, match="liquid"):
        loader("liquid:10KB").load_state_dict(state)


def test_what_makes_no_sense_is_refused(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(forebay.UsageError, match="cannot be used together"):
        forebay.build(pipeline(), tmp_path / "x", data=photos, mix=SHARES, strategy="resized")
    with pytest.raises(forebay.UsageError, match="seed"):
        forebay.build(pipeline(), tmp_path / "x", data=photos, strategy="resized", seed=3)
    with pytest.raises(forebay.UsageError, match="requires shuffling"):
        list(forebay.Loader(pipeline(), data=photos, cache="liquid:1MB"))
    with pytest.raises(forebay.UsageError, match="needs a budget"):
        forebay.Loader(pipeline(), data=photos, cache="minio")


def test_a_profile_finds_shares(photos: Path, tmp_path: Path) -> None:
    profile = forebay.profile(
        pipeline(), photos, strategies=["decoded", "decoded+png", "decoded+jpeg-85"], runs=1, seconds=0, samples=20, work_dir=tmp_path
    )
    mix = profile.mix(buffer="10KB")
    keys = ["shares", "predicted_samples_per_second", "measured_samples_per_second", "bound_by", "sweep", "notices"]
    assert list(mix) == keys and any("the data fits in memory" in notice for notice in mix["notices"])
    assert sum(share["share"] for share in mix["shares"]) == pytest.approx(1.0)
    assert len(mix["sweep"]) == 11 and mix["measured_samples_per_second"] is None
    assert "decoded+jpeg-85" not in {share["format"] for share in mix["shares"]}
    assert profile.mix(trainer=1.0)["bound_by"] == ["trainer"]
    pair, best = ["decoded", "decoded+png"], profile.mix(formats=["decoded", "decoded+png"])["predicted_samples_per_second"]
    ways = [profile.mix(formats=pair, mode=mode)["predicted_samples_per_second"] for mode in ("search", "sweep")]
    assert ways[0] == pytest.approx(ways[1]) and 0.8 * best <= ways[0] <= 1.000_001 * best
    with pytest.raises(forebay.UsageError, match="two, to search or sweep"):
        profile.mix(formats=["decoded"], mode="search")
    with pytest.raises(forebay.UsageError, match="`linear`, `search` or `sweep`"):
        profile.mix(mode="best")  # type: ignore[arg-type]
    with pytest.raises(forebay.UsageError, match="decoded\\+qoi"):
        profile.mix(formats=["decoded+qoi"])


def test_a_cache_is_chosen_by_a_profile(photos: Path, tmp_path: Path) -> None:
    profile = forebay.profile(pipeline(), photos, strategies=["resized"], runs=1, seconds=0, samples=20, work_dir=tmp_path)
    profile.save(tmp_path / "profile.json")
    dataset = forebay.build(pipeline(), tmp_path / "set", data=photos, strategy="resized")
    for given in (profile, tmp_path / "profile.json"):
        loader = forebay.Loader(dataset, shuffle=True, cache="auto:1GB", profile=given)
        assert len(keys(loader)[0]) == 50
        assert loader.cached.policy in ("none", "liquid", "decoded")
        assert "(profiled on `local`)" in str(loader.cached.reason)
    sizes = forebay.Loader(dataset, shuffle=True, cache="auto:1GB")
    assert sizes.cached.policy == "decoded" and "all samples fit" in str(sizes.cached.reason)
    assert forebay.Loader(dataset).cached.policy == "page"
    with pytest.raises(forebay.UsageError, match="profile"):
        forebay.Loader(dataset, cache="minio:1MB", profile=profile)
    other = forebay.build(pipeline(), tmp_path / "other", data=photos, strategy="decoded")
    with pytest.raises(forebay.UsageError, match="without `decoded`"):
        keys(forebay.Loader(other, cache="auto:1MB", profile=profile))
