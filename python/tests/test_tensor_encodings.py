"""Data sets whose tensors are kept encoded, from Python."""

from __future__ import annotations

import json
from pathlib import Path

import forebay
import numpy
import pytest


@pytest.fixture
def arrays(tmp_path: Path) -> Path:
    random = numpy.random.default_rng(3)
    (tmp_path / "arrays").mkdir()
    for number in range(12):
        array = random.normal(size=(50, 3)).cumsum(axis=0).astype(numpy.float32)
        array[0] = numpy.nan, numpy.inf, -0.0
        numpy.save(tmp_path / "arrays" / f"{number:02}.npy", array)
    return tmp_path / "arrays"


PIPELINE = """
name = "arrays"
[source]
files = "**/*.npy"
field = "array"
label = "none"
[[step]]
op = "decode_npy"
type = "float32[50, 3]"
"""


def pipeline(arrays: Path) -> forebay.Pipeline:
    path = arrays.parent / "arrays.toml"
    path.write_text(PIPELINE)
    return forebay.Pipeline.from_toml(path)


def loaded(arrays: Path, output: Path, strategy: str) -> tuple[numpy.ndarray, dict]:
    dataset = forebay.build(pipeline(arrays), output, data=arrays, strategy=strategy, shards=2, progress=False)
    batches = [numpy.array(batch["array"]) for batch in forebay.Loader(dataset.path, batch_size=5, shuffle=False)]
    return numpy.concatenate(batches), json.loads((Path(dataset.path) / "dataset.json").read_text())


@pytest.mark.parametrize("encoding", ["shuffle-zstd-3", "delta-shuffle-lz4", "pco-8", "sparse", "rle", "pco-4+zstd-3"])
def test_what_is_lossless_comes_back_to_the_bit(arrays: Path, tmp_path: Path, encoding: str) -> None:
    raw, manifest = loaded(arrays, tmp_path / "raw", "decoded")
    assert "encodings" not in manifest
    found, manifest = loaded(arrays, tmp_path / "set", f"decoded+{encoding}")
    assert found.tobytes() == raw.tobytes()
    assert manifest["encodings"] == [{"field": "array", "encoding": encoding.split("+")[0]}]


def test_bounds_are_kept(arrays: Path, tmp_path: Path) -> None:
    raw, _ = loaded(arrays, tmp_path / "raw", "decoded")
    for encoding in ["bfloat16", "round-absolute-0.01-pco-8", "round-relative-0.001-shuffle-zstd-3"]:
        found, manifest = loaded(arrays, tmp_path / encoding, f"decoded+{encoding}")
        bound = manifest["encodings"][0]
        numbers = numpy.isfinite(raw)
        assert (numpy.isnan(found) == numpy.isnan(raw)).all() and (numpy.isinf(found) == numpy.isinf(raw)).all()
        error = numpy.abs(found[numbers].astype(float) - raw[numbers])
        most = numpy.maximum(bound["max_absolute_error"], bound["max_relative_error"] * numpy.abs(raw[numbers]))
        assert (error <= most).all() and error.max() > 0


def test_a_profile_measures_them_where_they_apply(arrays: Path, tmp_path: Path) -> None:
    profile = forebay.profile(
        pipeline(arrays), arrays, seconds=0, runs=1, work_dir=tmp_path, encodings=["pco-8", "bitpack"], progress=False
    )
    names = {row["strategy"] for row in profile.table()}
    assert "decoded+pco-8" in names and "decoded+bitpack" not in names
    with pytest.raises(forebay.PipelineError, match="a number from 0 to 12"):
        forebay.build(pipeline(arrays), tmp_path / "set", data=arrays, strategy="decoded+pco-13", progress=False)
