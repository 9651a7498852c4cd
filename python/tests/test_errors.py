"""Errors are named, say where, and never hang."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import forebay
import pytest
from conftest import keys_of
from forebay import _native


def test_every_kind_of_error_has_its_exception():
    """A kind that is new has no line here, and fails."""
    assert dict(_native.exceptions()) == {
        "NotFound": "MissingFileError",
        "PermissionDenied": "AccessError",
        "Io": "StorageError",
        "Data": "DataError",
        "Unsupported": "UnsupportedError",
        "Limit": "LimitError",
        "Usage": "UsageError",
        "Pipeline": "PipelineError",
        "Cancelled": "InternalError",
        "Internal": "InternalError",
    }
    assert all(issubclass(getattr(forebay, name), forebay.Error) for _, name in _native.exceptions())


def spoil(path: Path, at: int, count: int = 40) -> None:
    content = bytearray(path.read_bytes())
    content[at : at + count] = bytes(byte ^ 0x5A for byte in content[at : at + count])
    path.write_bytes(content)


@pytest.fixture
def damaged(tiny, tmp_path) -> tuple[str, str]:
    """A data set with two damaged records, and the shard that they are in."""
    copy = tmp_path / "damaged"
    shutil.copytree(tiny, copy)
    shard = sorted(path for path in copy.iterdir() if path.name.endswith(".tfrecord"))[2]
    size = shard.stat().st_size
    spoil(shard, size // 2)
    spoil(shard, size // 4)
    return str(copy), shard.name


@pytest.mark.parametrize("threads", [1, 4])
def test_a_damaged_record_is_named(damaged, threads):
    folder, shard = damaged
    loader = forebay.Loader(folder, threads=threads)
    with pytest.raises(forebay.DataError) as caught:
        keys_of(loader)
    error = caught.value
    assert error.shard == shard
    assert error.record is not None and error.offset is not None and error.offset > 0
    assert f"record {error.record} of `{shard}`" in str(error)
    # The loader is not broken by it: the epoch begins again, and fails again.
    with pytest.raises(forebay.DataError):
        keys_of(loader)


@pytest.mark.parametrize("threads", [1, 4])
def test_damaged_records_are_skipped_counted_and_listed(damaged, threads):
    folder, shard = damaged
    loader = forebay.Loader(folder, threads=threads, on_error="skip", shuffle=True)
    keys = [key for keys in keys_of(loader) for key in keys]
    skipped = 10_000 - len(keys)
    assert 2 <= skipped <= 4 and len(set(keys)) == len(keys)
    assert loader.skipped == skipped
    assert len(loader.skipped_samples) == skipped
    for entry in loader.skipped_samples:
        assert entry.key.startswith(f"{shard}:") and entry.reason
    keys_of(loader)
    assert loader.skipped == 2 * skipped


def test_a_damaged_file_is_named(own_photos):
    path = own_photos / "cats" / "spoiled.jpg"
    path.write_bytes(b"\xff\xd8\xff\xe0" + b"no picture" * 20)
    loader = forebay.Loader("imagenet", data=own_photos, batch_size=8)
    with pytest.raises(forebay.DataError) as caught:
        keys_of(loader)
    error = caught.value
    assert (error.key, error.path) == ("cats/spoiled.jpg", str(path))
    # Decoding and cropping are done as one.
    assert error.step == "decode + random_resized_crop"
    assert "`cats/spoiled.jpg`" in str(error)
    loader = forebay.Loader("imagenet", data=own_photos, batch_size=8, on_error="skip")
    assert sum(len(keys) for keys in keys_of(loader)) == 50
    assert [entry.key for entry in loader.skipped_samples] == ["cats/spoiled.jpg"]


def test_a_batch_of_nothing_but_damage_is_passed_over(own_photos):
    for path in own_photos.rglob("*.jpg"):
        if "005.jpg" <= path.name < "034.jpg":
            path.write_bytes(b"no picture at all")
    pipeline = forebay.Pipeline.files(order="sorted").decode().random_crop(64)
    loader = forebay.Loader(pipeline, data=own_photos, batch_size=2, on_error="skip")
    batches = keys_of(loader)
    assert all(batches) and sum(map(len, batches)) == 21
    assert loader.skipped == 29


def test_a_picture_too_small_for_its_crop(photos):
    pipeline = forebay.Pipeline.files().decode().random_crop(1000)
    with pytest.raises(forebay.DataError, match="too small for a crop of 1000x1000\nhint: resize first") as caught:
        keys_of(forebay.Loader(pipeline, data=photos))
    assert caught.value.step == "decode + random_crop" and caught.value.path.startswith(str(photos))


def test_a_picture_over_the_limit(photos):
    pipeline = forebay.Pipeline.files().decode(max_pixels=1000).random_crop(8)
    with pytest.raises(forebay.LimitError, match="over the limit of `1000`"):
        keys_of(forebay.Loader(pipeline, data=photos))


def test_a_file_that_is_gone(own_photos):
    loader = forebay.Loader("imagenet", data=own_photos)
    gone = own_photos / "cats" / "001.jpg"
    gone.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        keys_of(loader)
    error = caught.value
    assert isinstance(error, forebay.MissingFileError) and isinstance(error, forebay.Error)
    assert error.path == error.filename == str(gone) and error.errno == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_must_not_be_read(own_photos):
    (own_photos / "cats" / "001.jpg").chmod(0)
    with pytest.raises(PermissionError) as caught:
        keys_of(forebay.Loader("imagenet", data=own_photos))
    assert isinstance(caught.value, forebay.AccessError)


def test_what_is_no_data_set(tmp_path, tiny):
    with pytest.raises(forebay.UsageError, match="is not a data set"):
        forebay.Loader(tmp_path)
    with pytest.raises(FileNotFoundError, match="no data set, pipeline file or preset"):
        forebay.Loader(tmp_path / "nowhere")
    with pytest.raises(forebay.MissingFileError):
        forebay.Loader(tmp_path / "nowhere.toml", data=tmp_path)
    (tmp_path / "1.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(forebay.DataError, match="it is not text") as caught:
        forebay.Loader(tmp_path / "1.jpg", data=tmp_path)
    assert caught.value.path == str(tmp_path / "1.jpg")
    with pytest.raises(forebay.DataError, match=r"cannot read the profile `.*`: it is not text"):
        forebay.Profile.load(tmp_path / "1.jpg")
    (tmp_path / "1.jpg").unlink()
    with pytest.raises(forebay.UsageError, match="no file below"):
        forebay.Loader("imagenet", data=tmp_path)
    with pytest.raises(forebay.UsageError, match="pass it as `data`"):
        forebay.Loader("imagenet")
    with pytest.raises(forebay.UsageError, match="omit it"):
        forebay.Loader(tiny, data=tmp_path)
    copy = tmp_path / "cut"
    shutil.copytree(tiny, copy)
    shard = next(path for path in copy.iterdir() if path.name.endswith(".tfrecord"))
    shard.write_bytes(shard.read_bytes()[:-10])
    with pytest.raises(forebay.DataError, match="damaged or replaced") as caught:
        forebay.Loader(copy)
    assert caught.value.path == str(shard)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 0),
        ("batch_size", 2.5),
        ("batch_size", "many"),
        ("seed", -1),
        ("epochs", 0),
        ("threads", 0),
        ("threads", 100_000),
        ("prefetch", -1),
        ("rank", 1),
        ("world_size", 0),
        ("shuffle_window", 0),
        ("on_error", "ignore"),
        ("framework", "mxnet"),
        ("storage", "tape"),
    ],
)
def test_arguments_that_make_no_sense(tiny, name, value):
    with pytest.raises(ValueError) as caught:
        forebay.Loader(tiny, **{name: value})
    assert isinstance(caught.value, forebay.UsageError)
    assert str(value) in str(caught.value)


def test_errors_travel_between_processes(damaged):
    with pytest.raises(forebay.DataError) as caught:
        keys_of(forebay.Loader(damaged[0]))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is forebay.DataError and str(copy) == str(caught.value)
    assert (copy.shard, copy.record, copy.offset) == (caught.value.shard, caught.value.record, caught.value.offset)
    error = forebay.MissingFileError("gone", path="a", errno=2)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.errno, copy.filename, str(copy)) == (2, "a", "gone")


def test_every_exception_is_an_error():
    for name in forebay.__all__:
        value = getattr(forebay, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, forebay.Error)
    assert issubclass(forebay.StorageError, OSError)
    assert issubclass(forebay.InternalError, RuntimeError)
    assert issubclass(forebay.PipelineError, ValueError)
