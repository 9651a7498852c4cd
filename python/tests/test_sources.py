"""Reading what people have: tar and TFRecord shards; writing tar; the cache."""

from __future__ import annotations

import struct
import tarfile
from pathlib import Path

import forebay
import pytest
from conftest import SAMPLES, png, tar_pipeline


@pytest.mark.parametrize("shuffle", [False, True])
def test_tars_are_read(tars: Path, shuffle: bool) -> None:
    loader = forebay.Loader(tar_pipeline(), data=tars, batch_size=7, shuffle=shuffle, threads=3)
    assert loader.samples == SAMPLES
    numbers = []
    for batch in loader:
        for place, key in enumerate(batch["key"]):
            number = int(key.removeprefix("folder/"))
            numbers.append(number)
            assert (batch["image"][place] == number).all() and (batch["depth"][place] == number).all()
            assert batch["label"][place] == number % 3 and batch["meta"][place] == {"number": number}
    assert sorted(numbers) == list(range(SAMPLES)) and (numbers == sorted(numbers)) is not shuffle


def test_a_tar_lacks_a_member(tars: Path) -> None:
    pipeline = forebay.Pipeline.tar("train-1.tar", fields={"image": "webp"})
    with pytest.raises(forebay.DataError, match="has no member `webp`, only `png`, `cls`") as raised:
        list(forebay.Loader(pipeline, data=tars, threads=1))
    assert raised.value.shard == "train-1.tar" and raised.value.record == 0


def test_a_cut_tar_is_an_error_that_names_it(tars: Path, tmp_path: Path) -> None:
    (tmp_path / "cut.tar").write_bytes((tars / "train-0.tar").read_bytes()[:5000])
    with pytest.raises(forebay.DataError, match=r"cut\.tar"):
        forebay.Loader(forebay.Pipeline.tar(fields={"image": "png"}), data=tmp_path)


def test_a_data_set_goes_to_tars_and_back(tars: Path, tmp_path: Path) -> None:
    dataset = forebay.build(
        tar_pipeline(), tmp_path / "set", data=tars, strategy="resized+png", shards=4, progress=False
    )
    files = dataset.export_tar(tmp_path / "out", progress=False)
    assert len(files) == 4
    with tarfile.open(files[0]) as tar:
        assert tar.getnames()[:4] == [f"folder/0000.{member}" for member in ("png", "cls", "meta.json", "depth.npy")]
    fields = {"image": "png", "label": ("cls", "int"), "meta": ("meta.json", "json"), "depth": ("depth.npy", "float32[2, 2]")}
    again = forebay.Pipeline.tar(fields=fields).decode().resize((10, 12))
    for mine, theirs in zip(
        forebay.Loader(dataset), forebay.Loader(again, data=tmp_path / "out"), strict=True
    ):
        assert mine["key"] == theirs["key"] and (mine["image"] == theirs["image"]).all()
        assert mine["meta"] == theirs["meta"] and (mine["depth"] == theirs["depth"]).all()
    with pytest.raises(forebay.UsageError, match="has tars already"):
        dataset.export_tar(tmp_path / "out", progress=False)


def test_samples_keep_apart_in_tars(records: Path, tmp_path: Path) -> None:
    """Keys of records differ only in what looks like an extension, and files may differ in theirs alone."""
    for name in ("1.png", "1.jpeg", "1.b.png"):
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files" / name).write_bytes(png(len(name)))
    files = forebay.Pipeline.files("*.{png,jpeg}", label=None)
    for pipeline, data, samples in ((forebay.Pipeline.tfrecord(), records, SAMPLES), (files, tmp_path / "files", 3)):
        dataset = forebay.build(
            pipeline, tmp_path / f"set{samples}", data=data, strategy="concatenated", shards=1, progress=False
        )
        out = tmp_path / f"out{samples}"
        dataset.export_tar(out, progress=False)
        assert forebay.Loader(forebay.Pipeline.tar(fields={"image": "png"}), data=out).samples == samples


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def example(number: int) -> bytes:
    """A `tf.train.Example`, by hand, as the format is specified."""
    features = {
        "image/encoded": message(1, message(1, png(number))),
        "image/class/label": message(3, message(1, varint(number % 3))),
        "scores": message(2, message(1, struct.pack("<2f", number, number / 2))),
    }
    entries = b"".join(message(1, message(1, name.encode()) + message(2, value)) for name, value in features.items())
    return message(1, entries)


def masked_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("records")
    for shard in range(2):
        with open(root / f"train.tfrecord-{shard:05}-of-00002", "wb") as file:
            for number in range(shard * 15, shard * 15 + 15):
                data = example(number)
                length = struct.pack("<Q", len(data))
                file.write(length + struct.pack("<I", masked_crc32c(length)))
                file.write(data + struct.pack("<I", masked_crc32c(data)))
    return root


def test_tfrecords_of_others_are_read(records: Path) -> None:
    fields = {
        "image": "image/encoded",
        "label": ("image/class/label", "int"),
        "scores": ("scores", "float32[2]"),
    }
    pipeline = forebay.Pipeline.tfrecord(fields=fields).decode()
    numbers = []
    for batch in forebay.Loader(pipeline, data=records, batch_size=8):
        for place in range(len(batch["key"])):
            number = int(batch["image"][place][0, 0, 0])
            numbers.append(number)
            assert batch["label"][place] == number % 3 and list(batch["scores"][place]) == [number, number / 2]
    assert numbers == list(range(SAMPLES))
    # Picture and label are what they usually are called, unless said otherwise.
    loader = forebay.Loader(forebay.Pipeline.tfrecord().decode(), data=records)
    assert sum(len(batch["label"]) for batch in loader) == SAMPLES


def test_a_damaged_record_is_named_and_skipped(records: Path, tmp_path: Path) -> None:
    content = bytearray((records / "train.tfrecord-00000-of-00002").read_bytes())
    content[100] ^= 1
    (tmp_path / "bad.tfrecord").write_bytes(content)
    pipeline = forebay.Pipeline.tfrecord().decode()
    with pytest.raises(forebay.DataError, match="checksum") as raised:
        list(forebay.Loader(pipeline, data=tmp_path))
    assert raised.value.shard == "bad.tfrecord" and raised.value.record == 0
    loader = forebay.Loader(pipeline, data=tmp_path, on_error="skip")
    assert sum(len(batch["key"]) for batch in loader) == 14 and loader.skipped == 1


@pytest.mark.parametrize("limit", ["1GB", 20_000])
def test_the_cache_changes_nothing_but_what_is_read(tiny: str, limit: int | str) -> None:
    def load(**options: object) -> list[dict[str, object]]:
        loader = forebay.Loader(tiny, batch_size=1000, shuffle=True, seed=5, epochs=2, **options)  # type: ignore[arg-type]
        batches = list(loader)
        if options:
            assert loader.cached.samples > 0 and loader.cached.hits > 0
            assert loader.cached.bytes <= loader.cache_bytes
        return batches

    for plain, cached in zip(load(), load(cache=limit), strict=True):
        assert plain["key"] == cached["key"]
        assert (plain["image"] == cached["image"]).all()  # type: ignore[attr-defined]


def test_a_cache_keeps_the_furthest_stage_at_which_all_fit(photos: Path, tmp_path: Path) -> None:
    pipeline = forebay.Pipeline.files().decode().resize((8, 8)).normalize().random_crop(6)
    forebay.build(pipeline, tmp_path / "set", data=photos, strategy="resized")
    pixels, label = 8 * 8 * 3, 8
    for cache, stage, each in (("1MB", "normalized", 4 * pixels + label), (50 * (300 + 384), "resized", pixels + label)):
        loader = forebay.Loader(tmp_path / "set", batch_size=10, cache=cache, epochs=2)
        list(loader)
        assert loader.cached == forebay.Cached(samples=50, bytes=50 * each, hits=50, stage=stage)


def test_cached_files_are_not_read_again(photos: Path) -> None:
    loader = forebay.Loader("imagenet", data=photos, batch_size=10, cache="1GB")
    assert loader.cached.stage is None
    read = []
    for _ in range(3):
        iteration = iter(loader)
        batches = list(iteration)
        assert len(batches) == len(loader)
        read.append(loader.cached.hits)
    assert read == [0, loader.samples, 2 * loader.samples]


@pytest.mark.parametrize("cache", ["2 apples", -1, "GB"])
def test_a_cache_of_no_size_is_refused(tiny: str, cache: int | str) -> None:
    with pytest.raises(forebay.UsageError, match="cache"):
        forebay.Loader(tiny, cache=cache)


def test_a_pipeline_stays_below_the_data_folder_unless_allowed(photos: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    picture = next(photos.rglob("*.jpg"))
    (folder / "one.jpg").write_bytes(picture.read_bytes())
    (tmp_path / "one.txt").write_text("outside")
    pipeline = forebay.Pipeline.files("*.jpg", label=None, sidecars={"note": ("../{stem}.txt", "text")}).decode()
    for work in (
        lambda **how: list(forebay.Loader(pipeline, data=folder, **how)),
        lambda **how: forebay.build(pipeline, tmp_path / "set", data=folder, strategy="decoded", **how),
        lambda **how: forebay.profile(pipeline, folder, samples=1, runs=1, seconds=0, work_dir=tmp_path, **how),
    ):
        with pytest.raises(forebay.UsageError, match=r"outside the data folder.*\n.*allow_outside=True"):
            work()
        work(allow_outside=True)
    with pytest.raises(forebay.UsageError, match="cannot be used with a data set"):
        forebay.Loader(tmp_path / "set", allow_outside=True)
    assert not list(tmp_path.glob(".forebay*"))


def test_a_memory_budget_is_kept_or_an_error(photos: Path) -> None:
    loader = forebay.Loader("imagenet", data=photos, batch_size=2, memory="100MB")
    assert sum(len(batch["key"]) for batch in loader) == loader.samples
    with pytest.raises(forebay.LimitError, match="a batch of 64 samples"):
        list(forebay.Loader("imagenet", data=photos, memory="20MB"))
    with pytest.raises(forebay.UsageError, match="too small to work with"):
        list(forebay.Loader("imagenet", data=photos, memory="1kB"))


@pytest.mark.parametrize("memory", ["2 apples", -1, "GB"])
def test_a_memory_budget_of_no_size_is_refused(tiny: str, memory: int | str) -> None:
    with pytest.raises(forebay.UsageError, match="memory"):
        forebay.Loader(tiny, memory=memory)
