"""Pipelines, profiles, plans and builds."""

from __future__ import annotations

import json
import pickle

import forebay
import numpy
import pytest
from conftest import keys_of


def test_a_pipeline_shows_its_steps():
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().resize(256).random_crop(224).normalize().to_chw()
    assert repr(pipeline).splitlines() == [
        "Pipeline `pipeline`",
        "  read         image: bytes, label: int",
        "  decode       image: uint8[?, ?, 3], label: int",
        "  resize       image: uint8[?, ?, 3], label: int",
        "  random_crop  image: uint8[224, 224, 3], label: int  (random)",
        "  normalize    image: float32[224, 224, 3], label: int",
        "  to_chw       image: float32[3, 224, 224], label: int",
    ]
    assert pipeline.steps == ["decode", "resize", "random_crop", "normalize", "to_chw"]
    assert pipeline.splits == ["unprocessed", "concatenated", "decoded", "resized"]
    assert pipeline.output == {"image": "float32[3, 224, 224]", "label": "int"}


def test_pipelines_travel(tmp_path):
    pipeline = (
        forebay.Pipeline.files(order="sorted", label=None, name="mine")
        .decode(color="gray", keep_depth=True)
        .resize((32, numpy.int64(32)), interpolation="lanczos", name="small")
        .center_crop(16)
    )
    pipeline.save(tmp_path / "mine.toml")
    assert forebay.Pipeline.from_toml(tmp_path / "mine.toml") == pipeline
    assert pickle.loads(pickle.dumps(pipeline)) == pipeline
    assert pipeline != forebay.Pipeline.preset("cv")
    assert {"cv", "imagenet"} <= set(forebay.Pipeline.preset_names())


def test_every_step_has_its_method():
    pipeline = (
        forebay.Pipeline.files()
        .decode()
        .random_resized_crop(64, scale=(0.5, 1.0))
        .random_horizontal_flip(0.2)
        .grayscale()
        .center_pixels()
    )
    assert pipeline.output["image"] == "float32[64, 64, 1]"
    tiled = forebay.Pipeline.files().decode().tiles(32)
    assert tiled.output["image"] == "uint8[32, 32, 3]"
    assert forebay.Pipeline.files().step("decode", color="rgb") == forebay.Pipeline.files().step("decode", color="rgb")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: forebay.Pipeline.files().grayscale(), "steps do not fit: `read` gives bytes in field `image`"),
        (lambda: forebay.Pipeline.files().decode().resize([1, 2, 3]), "a number of pixels, or [height, width]"),
        (lambda: forebay.Pipeline.files().decode().random_crop(0), "`size` is `0`, but must be"),
        (lambda: forebay.Pipeline.files().step("sharpen"), "no operation `sharpen`"),
        (lambda: forebay.Pipeline.files().decode(sharp=True), "unknown field `sharp`"),
        (lambda: forebay.Pipeline.files().decode().resize(9, interpolation="nearest"), "nearest"),
        (lambda: forebay.Pipeline.files().decode().decode(), "two steps are called `decode`"),
        (lambda: forebay.Pipeline.preset("vc"), "no preset `vc`"),
    ],
)
def test_a_wrong_pipeline_is_refused_at_once(make, message):
    with pytest.raises(forebay.PipelineError) as caught:
        make()
    assert message in str(caught.value)


def test_a_wrong_source_is_refused_at_once():
    with pytest.raises(forebay.UsageError, match="filename"):
        forebay.Pipeline.files(label="filename")
    with pytest.raises(forebay.UsageError, match="not a number, string or list"):
        forebay.Pipeline.files().step("decode", color=object())


@pytest.fixture(scope="module")
def profile(photos, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("profile")
        patch.chdir(folder)
        profile = forebay.profile("cv", photos, samples=30, runs=2, seconds=0, threads=2, compression_candidates=[])
        assert list(folder.iterdir()) == [], "the folder that strategies were built in is gone"
    return profile


def test_a_profile(profile, tmp_path):
    names = ["unprocessed", "concatenated", "decoded", "resized", "pixel-centered"]
    assert [row["name"] for row in profile.strategies] == names
    assert [step["name"] for step in profile.steps] == ["read", "decode", "resize", "center_pixels", "random_crop"]
    assert profile.fastest in names
    lines = repr(profile).splitlines()
    assert lines[0].startswith("Profile of `cv` on storage `local") and "30 of 50 samples, 2 runs" in lines[0]
    assert lines[0].endswith("threads, nothing cached")
    assert len(lines) == 8 and sum(line.startswith("*") for line in lines) == 1
    (notice,) = profile.notices
    assert lines[-1] == f"warning: {notice}" and 'caching="system"' in notice
    assert profile._repr_html_().count("<tr") == 6 and "<b>Warning:</b>" in profile._repr_html_()
    profile.save(tmp_path / "profile.json")
    assert forebay.Profile.load(tmp_path / "profile.json").content == profile.content
    with pytest.raises(forebay.MissingFileError):
        forebay.Profile.load(tmp_path / "none.json")
    (tmp_path / "wrong.json").write_text("{}")
    with pytest.raises(forebay.Error, match="cannot read the profile"):
        forebay.Profile.load(tmp_path / "wrong.json")


def test_profiles_and_plans_in_pandas(profile):
    pytest.importorskip("pandas")
    frame = profile.to_pandas()
    assert list(frame.index) == [row["name"] for row in profile.strategies]
    assert (frame["samples_per_second"] > 0).all()
    assert profile.plan().to_pandas().index[0] == profile.plan().chosen


def test_profiles_plotted(profile):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    assert len(profile.plot().patches) == 5


def test_a_plan(profile, photos, tmp_path):
    fastest = profile.plan()
    assert fastest.chosen == profile.fastest == forebay.plan(profile).chosen
    assert repr(fastest).startswith(f"Recommended strategy: `{fastest.chosen}`. ")
    smallest = profile.plan(weights={"storage": 1})
    # The photos as they are take as much as the photos in one file, without preparing anything.
    assert smallest.chosen in ("unprocessed", "concatenated")
    limited = profile.plan(weights={"throughput": 1}, max_prep_time=0)
    assert limited.chosen == "unprocessed" and limited.reads_files
    assert [row["name"] for row in limited.ranking if row["score"] is not None] == ["unprocessed"]
    with pytest.raises(forebay.LimitError, match="comes nearest"):
        profile.plan(max_storage=10)
    with pytest.raises(forebay.UsageError, match="unknown weight `speed`"):
        profile.plan(weights={"speed": 1})
    with pytest.raises(forebay.UsageError, match="at least one is above 0"):
        profile.plan(weights={"storage": 0})
    # A plan that keeps the files is loaded as it is.
    loader = forebay.Loader(limited, batch_size=10)
    assert sum(len(keys) for keys in keys_of(loader)) == 50
    limited.save(tmp_path / "plan.json")
    assert forebay.Plan.load(tmp_path / "plan.json").content == limited.content
    with pytest.raises(forebay.UsageError, match="is not a plan"):
        (tmp_path / "wrong.json").write_text(json.dumps({"version": 1}))
        forebay.Plan.load(tmp_path / "wrong.json")
    with pytest.raises(forebay.UsageError, match="nothing to build"):
        limited.build(tmp_path / "dataset")


def test_a_planned_build(profile, tmp_path):
    plan = profile.plan()
    if plan.reads_files:
        pytest.skip("on this machine reading the files was fastest")
    with pytest.raises(forebay.UsageError, match="must be built"):
        forebay.Loader(plan)
    plan.save(tmp_path / "plan.json")
    dataset = forebay.build(tmp_path / "plan.json", tmp_path / "dataset")
    assert dataset.strategy == plan.chosen and len(dataset) == 50
    assert next(iter(forebay.Loader(dataset)))["image"].shape == (50, 224, 224, 3)


def test_a_build(photos, tmp_path):
    pipeline = forebay.Pipeline.preset("cv")
    with pytest.raises(forebay.UsageError, match="`concatenated`, `decoded`, `resized`"):
        forebay.build(pipeline, tmp_path / "dataset", data=photos)
    with pytest.raises(forebay.UsageError, match="pass it as `data`"):
        forebay.build(pipeline, tmp_path / "dataset", strategy="resized")
    with pytest.raises(forebay.PipelineError, match="no strategy `shrunk`"):
        forebay.build(pipeline, tmp_path / "dataset", data=photos, strategy="shrunk")
    dataset = forebay.build(pipeline, tmp_path / "dataset", data=photos, strategy="resized", shards=3)
    assert dataset.shards_reused == 0
    assert repr(dataset).startswith(f"Dataset({str(tmp_path / 'dataset')!r}: `resized`, 50 samples in 3 shards, ")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    shards = dataset.to_pandas()
    assert isinstance(shards, pandas.DataFrame) and shards["samples"].sum() == 50 and len(shards) == 3
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    assert dataset.plot().get_xlabel() == "MB"
    assert dataset.classes == ["cats", "dogs"] and dataset.skipped_samples == [] and dataset.skipped == 0 and dataset.bytes > 0
    assert dataset.pipeline == pipeline
    again = forebay.build(pipeline, tmp_path / "dataset", data=photos, strategy="resized", shards=3)
    assert again.shards_reused == 3
    with pytest.raises(forebay.UsageError):
        forebay.build(pipeline, tmp_path / "dataset", data=photos, strategy="decoded", shards=3)
    encoded = forebay.build(
        pipeline, tmp_path / "dataset", data=photos, strategy="resized+png", shards=3, overwrite=True
    )
    assert encoded.strategy == "resized+png" and encoded.bytes < dataset.bytes
    files = {}
    for batch in forebay.Loader(pipeline, data=photos, batch_size=10, shuffle=False):
        files |= dict(zip(batch["key"], batch["image"], strict=True))
    assert len(files) == 50
    for batch in forebay.Loader(encoded, batch_size=10):
        for key, image in zip(batch["key"], batch["image"], strict=True):
            assert numpy.array_equal(image, files.pop(key))
    assert not files


def test_progress_is_told(photos, tmp_path, capfd):
    forebay.build("cv", tmp_path / "one", data=photos, strategy="decoded", progress=True)
    assert "build" in capfd.readouterr().err
    forebay.build("cv", tmp_path / "two", data=photos, strategy="decoded", progress=False)
    assert capfd.readouterr().err == ""


def test_progress_adds_up(photos, tmp_path):
    from forebay import _native

    class Listener:
        def __init__(self):
            self.told, self.total, self.ends = 0, 0, 0

        def begin(self, what, samples):
            self.total += samples

        def advance(self, samples):
            self.told += samples

        def end(self):
            self.ends += 1

        def note(self, message):
            pass

    listener = Listener()
    files = {"folder": str(photos), "files": None, "skip_errors": False, "allow_outside": False}
    request = {"files": files, "output": str(tmp_path / "set"), "storage": "local"}
    request |= {"formats": [("decoded", 1.0)], "is_mix": False, "seed": 0}
    request |= {"threads": 2, "shards": 4, "bytes_per_sample": None, "overwrite": False, "memory_bytes": None}
    _native.build(forebay.Pipeline.preset("cv")._native, request, listener)
    assert (listener.told, listener.total, listener.ends) == (50, 50, 1)


def test_a_build_skips_what_is_damaged(own_photos, tmp_path):
    (own_photos / "cats" / "spoiled.jpg").write_bytes(b"\xff\xd8\xff nothing")
    with pytest.raises(forebay.DataError) as caught:
        forebay.build("cv", tmp_path / "dataset", data=own_photos, strategy="decoded")
    assert caught.value.path == str(own_photos / "cats" / "spoiled.jpg")
    dataset = forebay.build(
        "cv", tmp_path / "dataset", data=own_photos, strategy="decoded", on_error="skip", overwrite=True
    )
    assert len(dataset) == 50 and [entry["key"] for entry in dataset.skipped_samples] == ["cats/spoiled.jpg"]


def test_a_loader_shows_itself(tiny, photos):
    loader = forebay.Loader(tiny, shuffle=True, rank=1, world_size=4)
    shown = repr(loader)
    assert shown.endswith("10,000 samples in batches of 64, shuffled, rank 1 of 4; image: uint8[6, 6, 3], label: int)")
    assert loader.pipeline.steps == ["decode", "resize", "random_crop"]
    with pytest.raises(TypeError, match="number of batches is unknown"):
        len(forebay.Loader(forebay.Pipeline.files().decode().tiles(64), data=photos))


def test_ctrl_c_stops_a_build_and_the_next_one_goes_on(tiny_files, tiny_pipeline, tmp_path):
    import os
    import signal
    import threading
    import time

    class Interrupt(threading.Thread):
        def run(self):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    def slow(image):
        time.sleep(0.001)
        return image

    pipeline = forebay.Pipeline.files("**/*.png").decode().resize((8, 8)).map(slow, output="uint8[8, 8, 3]")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        begun = time.monotonic()
        Interrupt().start()
        with pytest.raises(KeyboardInterrupt):
            forebay.build(pipeline, tmp_path / "set", data=tiny_files, strategy="slow", shards=50, progress=False)
        assert time.monotonic() - begun < 10
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (tmp_path / "set" / "dataset.json").exists()


def test_one_picture_is_decoded(photos):
    from PIL import Image

    for path in sorted(photos.rglob("*.jpg"))[:5]:
        assert (forebay.decode(path.read_bytes()) == numpy.asarray(Image.open(path).convert("RGB"))).all()
    with pytest.raises(forebay.DataError):
        forebay.decode(b"no picture")


def test_parameters_are_set(photos):
    pipeline = forebay.Pipeline.preset("cv").set({"random_crop.size": 96, "source.files": "**/*.jpg"})
    assert next(iter(forebay.Loader(pipeline, data=photos)))["image"].shape[1:] == (96, 96, 3)
    assert forebay.Pipeline.preset("nilm").set({"signal_windows.channels": [0, 2]}).name == "nilm"
    with pytest.raises(forebay.PipelineError, match="random_crop, source"):
        pipeline.set({"crop.size": 96})
    with pytest.raises(forebay.UsageError, match="omit it"):
        pipeline.set({"random_crop.size": None})
    with pytest.raises(forebay.UsageError, match=r"random_crop\.size"):
        pipeline.set({"random_crop.size": object()})
