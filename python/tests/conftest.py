"""Data that the tests make: tiny pictures in great number, and a few photos."""

from __future__ import annotations

import functools
import io
import json
import tarfile
from pathlib import Path

import forebay
import numpy
import pytest
from PIL import Image

TINY_SAMPLES = 10_000
TINY_CLASSES = 10
PHOTOS = 50
#: Samples in the tars.
SAMPLES = 30


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 PNG files of 8×8 pixels; the first pixel is the number of the picture."""
    root = tmp_path_factory.mktemp("tiny")
    random = numpy.random.default_rng(1)
    for label in range(TINY_CLASSES):
        (root / f"class{label}").mkdir()
    for number in range(TINY_SAMPLES):
        pixels = random.integers(0, 256, (8, 8, 3), dtype=numpy.uint8)
        pixels[0, 0] = number >> 16, number >> 8 & 255, number & 255
        Image.fromarray(pixels).save(root / f"class{number % TINY_CLASSES}" / f"{number}.png", compress_level=1)
    return root


@pytest.fixture(scope="session")
def tiny_pipeline() -> forebay.Pipeline:
    return forebay.Pipeline.files("**/*.png").decode().resize((8, 8)).random_crop(6)


@pytest.fixture(scope="session")
def tiny(tiny_files: Path, tiny_pipeline: forebay.Pipeline, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data set of the tiny pictures, decoded. Shards are uneven: 7 do not divide 10,000."""
    output = tmp_path_factory.mktemp("built") / "tiny"
    dataset = forebay.build(tiny_pipeline, output, data=tiny_files, strategy="resized", shards=7, threads=2)
    assert len(dataset) == TINY_SAMPLES
    return dataset.path


def make_photos(root: Path, count: int = PHOTOS) -> Path:
    random = numpy.random.default_rng(2)
    for number in range(count):
        folder = root / ("cats" if number % 2 else "dogs")
        folder.mkdir(parents=True, exist_ok=True)
        coarse = random.integers(0, 256, (5, 6, 3), dtype=numpy.uint8)
        size = (int(random.integers(270, 420)), int(random.integers(270, 420)))
        Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(folder / f"{number:03}.jpg", quality=90)
    return root


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JPEG files of two classes, of different sizes."""
    return make_photos(tmp_path_factory.mktemp("photos"))


@pytest.fixture
def own_photos(tmp_path: Path) -> Path:
    """The same, to be spoiled by one test."""
    return make_photos(tmp_path / "photos")


def png(number: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(numpy.full((10, 12, 3), number, numpy.uint8)).save(file, "png")
    return file.getvalue()


def npy(array: numpy.ndarray) -> bytes:  # type: ignore[type-arg]
    file = io.BytesIO()
    numpy.save(file, array)
    return file.getvalue()


@pytest.fixture(scope="session")
def tars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tars, written by Python's own module."""
    root = tmp_path_factory.mktemp("tars")
    for shard in range(3):
        with tarfile.open(root / f"train-{shard}.tar", "w") as tar:
            for number in range(shard * 10, shard * 10 + 10):
                members = {
                    "png": png(number),
                    "cls": str(number % 3).encode(),
                    "json": json.dumps({"number": number}).encode(),
                    "depth.npy": npy(numpy.full((2, 2), number, numpy.float32)),
                }
                for member, content in members.items():
                    info = tarfile.TarInfo(f"folder/{number:04}.{member}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    return root


def tar_pipeline() -> forebay.Pipeline:
    fields = {
        "image": "jpg;png",
        "label": ("cls", "int"),
        "meta": ("json", "json"),
        "depth": ("depth.npy", "float32[2, 2]"),
    }
    return forebay.Pipeline.tar("train-*.tar", fields=fields).decode().resize((10, 12))


def keys_of(batches: object) -> list[list[str]]:
    return [batch["key"] for batch in batches]  # type: ignore[attr-defined]


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles in examples run as long as their samples take once: what they say is not looked at, only that they run."""
    monkeypatch.setattr(forebay, "profile", functools.partial(forebay.profile, seconds=0))
