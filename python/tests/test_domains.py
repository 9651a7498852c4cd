"""Arrays and sound through their presets: what NumPy computes, and batches of clips that differ in length."""

from __future__ import annotations

import os
from pathlib import Path

import forebay
import numpy
import pytest

TYPES = ("uint8", "uint16", "int16", "int32", "int64", "float32", "float64")


def sound() -> Path:
    """The folder of speech among the test data."""
    root = os.environ.get("FOREBAY_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")
    folder = Path(root) / "audio-flac" / "librispeech"
    if not folder.exists():
        pytest.skip(f"no test data at `{folder}`")
    return folder


@pytest.mark.parametrize("dtype", TYPES)
def test_root_mean_squares_are_numpys(tmp_path: Path, dtype: str) -> None:
    random = numpy.random.default_rng(3)
    arrays = {}
    for number in range(6):
        low, high = (0 if dtype.startswith("u") else -(2**15)), (200 if dtype == "uint8" else 2**15 - 1)
        values = random.uniform(low, high, (2500, 3))
        arrays[f"{number}.npy"] = values.astype(dtype)
        numpy.save(tmp_path / f"{number}.npy", arrays[f"{number}.npy"])
    pipeline = forebay.Pipeline.files("*.npy", label=None, field="tensor")
    pipeline = pipeline.step("decode_npy", type=f"{dtype}[2500, ?]").step("rms", period=500)
    seen = 0
    for batch in forebay.Loader(pipeline, data=tmp_path, batch_size=2):
        for key, found in zip(batch["key"], batch["tensor"], strict=True):
            values = arrays[key]
            if values.dtype.kind != "f":
                values = values.astype(numpy.float64)
            expected = [numpy.sqrt(numpy.mean(numpy.square(part))) for part in values.reshape(-1, 500)]
            numpys = numpy.array(expected, dtype=values.dtype)
            numpy.testing.assert_array_equal(numpy.asarray(found), numpys, strict=True)
            seen += 1
    assert seen == 6


def test_clips_that_differ_in_length_are_a_list_or_padded() -> None:
    folder = sound()
    options = {"data": folder, "batch_size": 4, "shuffle": False}
    lists = list(forebay.Loader("flac", collate="list", **options))
    padded = list(forebay.Loader("flac", collate="pad", pad_value=-1.0, **options))
    assert len(lists) == len(padded) > 1
    for one, other in zip(lists, padded, strict=True):
        longest = max(len(clip) for clip in one["audio"])
        assert other["audio"].shape == (len(one["audio"]), longest, 80)
        for clip, row, shape in zip(one["audio"], other["audio"], other["audio_shape"], strict=True):
            assert tuple(shape) == clip.shape
            numpy.testing.assert_array_equal(row[: len(clip)], clip)
            assert (row[len(clip) :] == -1.0).all()
