"""The study: what it measures is so, an interrupted one goes on, and codecs of one's own take part."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import forebay
import numpy
import pytest


class Clock:
    """Time that passes only by sleeping, so that what was measured can be told exactly, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def slow(clock: Clock, wait: float, batches: int = 4, samples: int = 10):
    """A loader that waits before each batch."""

    class Slow:
        def __iter__(self):
            for _ in range(batches):
                clock.sleep(wait)
                yield {"x": numpy.zeros(samples)}

    return lambda **_: Slow()


def train_for(clock: Clock, seconds: float):
    def train(run):
        for _, loader in run:
            for _ in loader:
                clock.sleep(seconds)
            clock.sleep(0.05)  # evaluating does not count
            run.report(accuracy=0.5)
        return {"loss": 1.5}

    return train


def test_throughput_and_stalls_are_those_that_were_made(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(forebay._study, "time", clock)
    variants = {"fast": slow(clock, 0.0), "even": slow(clock, 0.02), "slow": slow(clock, 0.06)}
    study = forebay.study(train_for(clock, 0.02), variants, epochs=2)
    rows = {row["name"]: row for row in study.rows}
    for name, wait in [("fast", 0.0), ("even", 0.02), ("slow", 0.06)]:
        assert rows[name]["stall_share"] == pytest.approx(wait / (wait + 0.02)), name
        assert rows[name]["samples_per_second"] == pytest.approx(10 / (wait + 0.02))
        assert rows[name]["metrics"] == {"accuracy": 0.5, "loss": 1.5}
        assert rows[name]["bytes"] is None and rows[name]["bound_by"] is None
    assert [len(run["history"]) for run in study.runs] == [2, 2, 2]


@pytest.fixture(scope="module")
def qualities(photos, tmp_path_factory):
    """The photos as data sets of two qualities."""
    root = tmp_path_factory.mktemp("qualities")
    pipeline = forebay.Pipeline.files("**/*.jpg", label="folder").decode().resize((48, 48)).normalize()
    return {
        quality: forebay.build(pipeline, root / quality, data=photos, strategy=f"resized+{quality}", shards=1, threads=1)
        for quality in ("jpeg-90", "jpeg-10")
    }


def counting(calls):
    def train(run):
        calls.append((run.name, run.cache, run.repeat))
        for _, loader in run:
            for batch in loader:
                assert batch["image"].shape[1:] == (48, 48, 3)
        return 0.5 + 0.1 * run.repeat

    return train


def regimens():
    return {"rising": lambda loaders: forebay.Regimen([(name, loaders[name], 1) for name in ("jpeg-10", "jpeg-90")])}


def test_variants_caches_regimens_and_repeats_are_all_run(qualities):
    calls = []
    study = forebay.study(
        counting(calls), qualities, epochs=2, caches=["page", "minio:1MB"], regimens=regimens(), repeats=2, batch_size=16, shuffle=True, threads=1
    )
    assert len(calls) == len(set(calls)) == 2 * 2 * 3 == len(study.runs)
    assert [(row["name"], row["cache"]) for row in study.rows] == [
        (name, cache) for cache in ("page", "minio:1MB") for name in ("jpeg-90", "jpeg-10", "rising")
    ]
    best, low, rising = study.rows[:3]
    assert best["bytes"] == qualities["jpeg-90"].bytes > low["bytes"]
    assert rising["bytes"] == pytest.approx((best["bytes"] + low["bytes"]) / 2, abs=1)
    assert best["metrics"]["accuracy"] == pytest.approx(0.55) and best["accuracy_std"] == pytest.approx(0.0707, abs=1e-3)
    assert best["bound_by"] in ("storage", "cpu", "trainer", "unknown")
    assert [variant.name for variant in study.variants()] == ["jpeg-90", "jpeg-10"]
    assert forebay.budget(study.variants(), storage=low["bytes"]).chosen == "jpeg-10"


def test_an_interrupted_study_continues(qualities, tmp_path):
    calls = []
    options = {"epochs": 1, "batch_size": 16, "regimens": regimens(), "output": tmp_path / "study", "threads": 1}

    def interrupted(run):
        if len(calls) == 2:
            raise KeyboardInterrupt
        return counting(calls)(run)

    with pytest.raises(KeyboardInterrupt):
        forebay.study(interrupted, qualities, **options)
    lines = (tmp_path / "study/runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["jpeg-90", "jpeg-10"]
    # Stopped in the middle of a line.
    with (tmp_path / "study/runs.jsonl").open("a") as file:
        file.write('{"name": "ris')
    study = forebay.study(counting(calls), qualities, **options)
    assert [name for name, *_ in calls] == ["jpeg-90", "jpeg-10", "rising"]
    assert len(study.rows) == 3
    # Nothing is left to do; with other options everything is.
    again = forebay.study(counting(calls), qualities, **options)
    assert len(calls) == 3 and again.to_dict() == study.to_dict()
    forebay.study(counting(calls), qualities, **{**options, "batch_size": 8})
    assert len(calls) == 6
    (tmp_path / "study/runs.jsonl").write_text("nonsense\n")
    with pytest.raises(forebay.DataError, match="line 1"):
        forebay.study(counting(calls), qualities, **options)


def test_a_study_is_a_table_a_file_and_a_page(qualities, tmp_path):
    study = forebay.study(counting([]), qualities, epochs=1, batch_size=16, threads=1)
    assert "samples/s" in repr(study) and "50 %" in repr(study) and "cache" not in repr(study)
    assert study._repr_html_().count("<tr") == 3
    study.save(tmp_path / "study.json")
    assert forebay.Study.load(tmp_path / "study.json").to_dict() == study.to_dict()
    study.report(tmp_path / "study.html")
    page = (tmp_path / "study.html").read_text()
    assert page.startswith("<!doctype html>") and "<svg" in page and "jpeg-10" in page and "http" not in page.replace("http://www.w3.org", "")
    pytest.importorskip("pandas")
    assert list(study.to_pandas().index.get_level_values("name")) == ["jpeg-90", "jpeg-10"]
    for wrong in ("{}", "no"):
        (tmp_path / "wrong.json").write_text(wrong)
        with pytest.raises(forebay.DataError, match="not a study"):
            forebay.Study.load(tmp_path / "wrong.json")
    with pytest.raises(forebay.MissingFileError):
        forebay.Study.load(tmp_path / "nowhere.json")


def test_what_cannot_be_is_refused(qualities):
    with pytest.raises(forebay.UsageError, match="`variants` is empty"):
        forebay.study(counting([]), {})
    with pytest.raises(forebay.UsageError, match="loaded no batches"):
        forebay.study(lambda run: 0.5, qualities)
    with pytest.raises(forebay.UsageError, match="both called"):
        forebay.study(counting([]), qualities, regimens={"jpeg-10": lambda loaders: forebay.Regimen([])})


def encode(image):
    # Every other level, and the shape before it.
    return numpy.array(image.shape[:2], numpy.uint16).tobytes() + zlib.compress((image & 0xFE).tobytes(), 1)


def decode(content):
    height, width = numpy.frombuffer(content[:4], numpy.uint16)
    return numpy.frombuffer(zlib.decompress(content[4:]), numpy.uint8).reshape(height, width, 3)


def test_a_codec_of_ones_own_takes_part(photos, tmp_path):
    coded = forebay.apply_codec(photos, tmp_path / "coded", encode=encode, decode=decode)
    files = sorted(Path(photos).rglob("*.jpg"))
    assert coded.images == len(files) and coded.source_bytes == sum(path.stat().st_size for path in files)
    assert coded.bytes == sum(path.stat().st_size for path in coded.folder.rglob("*.encoded"))
    # Half of the levels are one off: a mean square error of 1/2.
    assert 50.5 < coded.psnr_db < 51.8
    assert coded.encode_seconds > 0 and coded.decode_seconds > 0 and coded.source_decode_seconds > 0
    assert coded.to_dict()["bits_per_pixel"] == pytest.approx(8 * coded.bytes / coded.pixels)
    assert "bits per pixel" in repr(coded)
    variants = {"learned": {"source": coded.pipeline.resize((48, 48)).normalize(), "data": coded.folder}}
    study = forebay.study(counting([]), variants, batch_size=16, threads=1)
    assert study.rows[0]["bytes"] == coded.bytes
    # It decodes what was encoded, with the labels of the folders.
    loader = forebay.Loader(coded.pipeline, data=coded.folder, batch_size=1)
    assert loader.classes == ["cats", "dogs"]
    batch = next(iter(loader))
    path = Path(photos) / batch["key"][0].removesuffix(".encoded")
    assert numpy.array_equal(batch["image"][0], forebay.decode(path.read_bytes()) & 0xFE)


def test_a_codec_that_does_not_fit_is_refused(photos, tmp_path):
    with pytest.raises(forebay.UsageError, match="must make uint8"):
        forebay.apply_codec(photos, tmp_path / "a", encode=encode, decode=lambda content: numpy.zeros(3))
    with pytest.raises(forebay.UsageError, match="made an image of"):
        forebay.apply_codec(photos, tmp_path / "b", encode=encode, decode=lambda content: numpy.zeros((2, 2, 3), numpy.uint8))
    with pytest.raises(forebay.UsageError, match="no images"):
        (tmp_path / "empty").mkdir()
        forebay.apply_codec(tmp_path / "empty", tmp_path / "c", encode=encode, decode=decode)
    with pytest.raises(forebay.UsageError, match="not empty"):
        forebay.apply_codec(photos, photos, encode=encode, decode=decode)
