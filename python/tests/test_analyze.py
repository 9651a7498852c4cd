"""Looking at data, and making it smaller: the engine is tested in Rust, what Python makes of it here."""

from __future__ import annotations

import json
from pathlib import Path

import forebay
import numpy
import pytest
from conftest import make_photos
from PIL import Image


def phash(path: Path) -> int:
    """The definition, by NumPy and Pillow's own box filter."""
    pixels = numpy.asarray(Image.open(path).convert("L").resize((32, 32), Image.Resampling.BOX), numpy.float64)
    at, frequency = numpy.arange(32), numpy.arange(8)[:, None]
    waves = numpy.cos(numpy.pi * frequency * (2 * at + 1) / 64)
    lowest = waves @ pixels @ waves.T
    bits = (lowest > numpy.median(lowest)).flatten()
    return int("".join("1" if bit else "0" for bit in bits), 2)


def test_colors_are_those_that_numpy_finds(photos):
    analysis = forebay.analyze(photos)
    means, squares = [], []
    for path in sorted(photos.rglob("*.jpg")):
        pixels = numpy.asarray(Image.open(path).convert("RGB"), numpy.float64) / 255
        means.append(pixels.mean((0, 1)))
        squares.append((pixels**2).mean((0, 1)))
    mean = numpy.mean(means, 0)
    std = numpy.sqrt(numpy.mean(squares, 0) - mean**2)
    # Pillow's decoder differs from ours by a level here and there.
    numpy.testing.assert_allclose(analysis.mean, mean, atol=2e-3)
    numpy.testing.assert_allclose(analysis.std, std, atol=2e-3)


def test_near_duplicates_are_those_whose_hashes_are_near(tmp_path):
    folder = make_photos(tmp_path / "photos", 12)
    first = folder / "dogs" / "000.jpg"
    image = Image.open(first)
    image.resize((150, 160)).save(folder / "cats" / "small.jpg", quality=60)
    (folder / "dogs" / "again.jpg").write_bytes(first.read_bytes())
    analysis = forebay.analyze(folder, distance=6)
    assert analysis.duplicates == ["dogs/again.jpg"]
    assert analysis.near_duplicates == ["cats/small.jpg"]
    hashes = {str(path.relative_to(folder)): phash(path) for path in folder.rglob("*.jpg")}
    near = [name for name in hashes if bin(hashes[name] ^ hashes["dogs/000.jpg"]).count("1") <= 6]
    assert sorted(near) == ["cats/small.jpg", "dogs/000.jpg", "dogs/again.jpg"]
    assert analysis.content["duplicates"]["conflicting_labels"] == 1


def test_an_analysis_prints_is_saved_and_has_a_page(own_photos, tmp_path):
    (own_photos / "cats" / "broken.jpg").write_bytes(b"\xff\xd8\xff no image")
    analysis = forebay.analyze(own_photos, threads=1, memory="200MB", progress=False)
    assert list(analysis.broken) == ["cats/broken.jpg"]
    assert analysis.classes == {"cats": 25, "dogs": 25}
    assert "1 broken" in repr(analysis) and "--list broken" in repr(analysis) and "<table>" in analysis._repr_html_()
    analysis.report(tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    analysis.save(tmp_path / "analysis.json")
    assert json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8")) == analysis.content
    with pytest.raises(forebay.DataError, match=r"broken\.jpg"):
        forebay.analyze(own_photos, on_error="fail")


def test_data_sets_lists_and_pipelines_are_analyzed(photos, tmp_path):
    dataset = forebay.build("cv", tmp_path / "dataset", data=photos, strategy="resized")
    built = forebay.analyze(dataset)
    assert built.content["formats"][0]["format"] == "tensor" and sum(built.classes.values()) == len(dataset)
    paths = sorted(photos.rglob("*.jpg"))[:5]
    assert forebay.analyze(paths).content["samples"] == 5
    assert forebay.analyze(photos, forebay.Pipeline.files("cats/*.jpg")).content["samples"] == 25
    assert forebay.analyze(dataset.export_tar(tmp_path / "tars")[0]).content["samples"] > 0
    pandas = pytest.importorskip("pandas")
    assert isinstance(built.to_pandas(), pandas.DataFrame)


def test_recompressing_gives_tables_and_folders(photos, tmp_path):
    done = forebay.recompress(photos, tmp_path / "smaller", quality=[60, 20], metrics=True, verify=True)
    assert [row["encoding"] for row in done.variants] == ["jpeg-60", "jpeg-20"]
    high, low = done.variants
    assert high["encoded"] == 50 and high["bytes_out"] > low["bytes_out"] and high["psnr"] > low["psnr"]
    assert len(done.images) == 100 and done.others == 0 and done.skipped == 0 and done.skipped_samples == []
    size = sum(path.stat().st_size for path in Path(done.folders["jpeg-20"]).rglob("*.jpg"))
    assert size == low["bytes_out"]
    assert "jpeg-60" in repr(done) and "PSNR" in repr(done) and "<table>" in done._repr_html_()
    again = forebay.recompress(photos, tmp_path / "smaller", quality=60)
    assert again.variants[0]["reused"] == 50
    assert "PSNR" not in repr(again)
    assert forebay.recompress(photos, tmp_path / "webp", quality=30, format="webp").variants[0]["encoding"] == "webp-30"


def test_wrong_requests_are_named(photos, tmp_path):
    with pytest.raises(forebay.UsageError, match="quality"):
        forebay.recompress(photos, tmp_path / "out", quality=0)
    with pytest.raises(forebay.UsageError, match="format"):
        forebay.recompress(photos, tmp_path / "out", quality=50, format="avif")  # type: ignore[arg-type]
    with pytest.raises(forebay.UsageError, match="within"):
        forebay.recompress(photos, photos / "out", quality=50)
    with pytest.raises(forebay.MissingFileError):
        forebay.recompress(tmp_path / "nowhere", tmp_path / "out", quality=50)
    with pytest.raises(forebay.MissingFileError):
        forebay.analyze(tmp_path / "nowhere")
    with pytest.raises(forebay.UsageError, match="distance"):
        forebay.analyze(photos, distance=17)
    with pytest.raises(forebay.UsageError, match="no images"):
        forebay.analyze(tmp_path)


def test_advice_knows_what_lower_quality_saves(photos, tmp_path):
    advice = forebay.advise(photos, "cv", lossy=True, seconds=0, work_dir=tmp_path, storage="custom:read=10MB/s")
    assert "JPEG quality 75" in advice.answers["quality"] and "(estimated from " in advice.answers["quality"]
    if advice.content["recompress"] is not None:
        assert advice.commands[0].startswith("forebay recompress ") and advice.strategy == "concatenated"
