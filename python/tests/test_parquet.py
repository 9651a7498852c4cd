"""Parquet files as sources and as tables, beside pyarrow; and conditions."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from PIL import Image

pa = pytest.importorskip("pyarrow", reason="pyarrow writes the files that are read here")
pq = pytest.importorskip("pyarrow.parquet")

SAMPLES = 60


def picture(number: int) -> bytes:
    pixels = numpy.full((16, 16, 3), number, numpy.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def rows() -> dict[str, Any]:
    return {
        "image": pa.array(
            [{"bytes": picture(n), "path": f"{n}.png"} for n in range(SAMPLES)],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        ),
        "label": pa.array([n % 4 for n in range(SAMPLES)], pa.int64()),
        "split": pa.array(["train" if n % 3 else "test" for n in range(SAMPLES)]),
        "width": pa.array([n * 10 for n in range(SAMPLES)], pa.int32()),
        "caption": pa.array([f"number {n} é" for n in range(SAMPLES)]),
        "bbox": pa.array([[n, n + 0.5, n + 1, n + 2] for n in range(SAMPLES)], pa.list_(pa.float32())),
        "boxes": pa.array([[[1.0]] for _ in range(SAMPLES)], pa.list_(pa.list_(pa.float32()))),
        "score": pa.array([n / 4 for n in range(SAMPLES)], pa.float64()),
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of several row groups."""
    root = tmp_path_factory.mktemp("parquet")
    names = {"info": {"features": {"label": {"names": ["ant", "bee", "cat", "dog"], "_type": "ClassLabel"}}}}
    table = pa.table(rows()).replace_schema_metadata({"huggingface": json.dumps(names)})
    pq.write_table(table.slice(0, 35), root / "train-0.parquet", row_group_size=10, compression="zstd")
    pq.write_table(table.slice(35), root / "train-1.parquet", row_group_size=7)
    return root


def numbers(loader: forebay.Loader) -> list[int]:
    return [int(image[0, 0, 0]) for batch in loader for image in batch["image"]]


def test_pictures_as_hugging_face_keeps_them(files: Path) -> None:
    loader = forebay.Loader(forebay.Pipeline.parquet().decode(), data=files, batch_size=8)
    assert loader.samples == SAMPLES and loader.classes == ["ant", "bee", "cat", "dog"]
    batches = list(loader)
    assert [int(image[0, 0, 0]) for batch in batches for image in batch["image"]] == list(range(SAMPLES))
    assert [int(label) for batch in batches for label in batch["label"]] == [n % 4 for n in range(SAMPLES)]
    assert batches[0]["key"][1] == "train-0.parquet:1"
    shuffled = forebay.Loader(forebay.Pipeline.parquet().decode(), data=files, shuffle=True, seed=3, threads=3)
    order = numbers(shuffled)
    assert sorted(order) == list(range(SAMPLES)) and order != list(range(SAMPLES))
    assert numbers(forebay.Loader(forebay.Pipeline.parquet().decode(), data=files, shuffle=True, seed=3, threads=1)) == order


def test_columns_are_fields(files: Path) -> None:
    fields = {
        "image": "image.bytes",
        "caption": ("caption", "text"),
        "box": ("bbox", "float32[4]"),
        "score": ("score", "float32[]"),
        "width": ("width", "int"),
    }
    pipeline = forebay.Pipeline.parquet("train-*.parquet", fields=fields).decode()
    (batch,) = forebay.Loader(pipeline, data=files, batch_size=SAMPLES)
    assert list(batch["caption"]) == [f"number {n} é" for n in range(SAMPLES)]
    numpy.testing.assert_array_equal(batch["box"], [[n, n + 0.5, n + 1, n + 2] for n in range(SAMPLES)])
    numpy.testing.assert_array_equal(batch["score"], [n / 4 for n in range(SAMPLES)])
    numpy.testing.assert_array_equal(batch["width"], [n * 10 for n in range(SAMPLES)])


def test_what_does_not_fit_is_refused_by_name(files: Path) -> None:
    for fields, says in [
        ({"image": "images"}, "did you mean `image"),
        ({"image": "image", "boxes": ("boxes", "float32[?, 4]")}, "boxes: list<list<float32>>"),
        ({"image": "image", "width": ("width", "text")}, "`width`.*int32"),
        ({"image": "image", "split": ("split", "float32[2]")}, None),
    ]:
        pipeline = forebay.Pipeline.parquet(fields=fields)
        if says is None:
            continue
        with pytest.raises(forebay.Error, match=says):
            forebay.Loader(pipeline, data=files)
    with pytest.raises(forebay.Error, match="row groups"):
        forebay.build(forebay.Pipeline.parquet().set({"source.order": "shuffled"}).decode(), files / "x", data=files, strategy="decoded")


def test_a_build_has_the_same_samples(files: Path, tmp_path: Path) -> None:
    pipeline = forebay.Pipeline.parquet().decode().resize((16, 16))
    dataset = forebay.build(pipeline, tmp_path / "built", data=files, strategy="resized", shards=3, threads=2)
    assert len(dataset) == SAMPLES
    assert numbers(forebay.Loader(dataset)) == list(range(SAMPLES))
    assert forebay.Loader(dataset).classes == ["ant", "bee", "cat", "dog"]


@pytest.mark.parametrize("page_bytes", [1 << 14, 1 << 22])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_large_row_groups_are_read_in_parts(tmp_path: Path, compression: str, page_bytes: int) -> None:
    random = numpy.random.default_rng(5)
    values = [random.integers(0, 256, int(size), dtype=numpy.uint8).tobytes() for size in random.integers(1 << 16, 1 << 18, 150)]
    table = pa.table({"blob": pa.array(values, pa.binary()), "number": pa.array(range(len(values)), pa.int32())})
    options: dict[str, Any] = {"data_page_size": page_bytes, "write_batch_size": 3}
    pq.write_table(table, tmp_path / "large.parquet", compression=compression, use_dictionary=page_bytes > 1 << 20, **options)
    pipeline = forebay.Pipeline.parquet(fields={"blob": "blob", "number": ("number", "int")}, field="blob")
    for more in [{}, {"shuffle": True, "shuffle_window": "3MB", "threads": 2}, {"shuffle": True, "memory": "200MB"}]:
        found = {int(n): bytes(b) for batch in forebay.Loader(pipeline, data=tmp_path, **more) for n, b in zip(batch["number"], batch["blob"], strict=True)}
        assert len(found) == len(values) and all(found[n] == value for n, value in enumerate(values))
    dataset = forebay.build(pipeline, tmp_path / "built", data=tmp_path, strategy="concatenated", shards=2, threads=2)
    assert [bytes(b) for batch in forebay.Loader(dataset) for b in batch["blob"]] == values


def test_conditions_on_the_columns_of_a_source(files: Path) -> None:
    train = [n for n in range(SAMPLES) if n % 3 and n * 10 >= 200]
    condition = "split == 'train' and width >= 200"
    source = forebay.Pipeline.parquet(where=condition).decode()
    assert numbers(forebay.Loader(source, data=files)) == train
    plain = forebay.Pipeline.parquet().decode()
    assert numbers(forebay.Loader(plain, data=files, where=condition)) == train
    assert numbers(forebay.Loader(plain, data=files, where="class in ('ant', 'dog')")) == [n for n in range(SAMPLES) if n % 4 in (0, 3)]
    both = forebay.Loader(plain, data=files, where="label == 0", subset=range(10))
    assert numbers(both) == [0, 4, 8]
    shuffled = forebay.Loader(plain, data=files, where=condition, shuffle=True, epochs=2, batch_size=5)
    assert Counter(numbers(shuffled)) == dict.fromkeys(train, 2)
    for wrong, says in [
        ("splits == 'train'", "did you mean `split`"),
        ("split = 'train'", "write `==`"),
        ("split == 'dev'", "none of 60 samples"),
        ("width == 'wide'", "without quotes"),
        ("bbox == 3", "list"),
    ]:
        with pytest.raises(forebay.UsageError, match=says):
            forebay.Loader(plain, data=files, where=wrong)
    with pytest.raises(forebay.UsageError) as refused:
        forebay.Loader(plain, data=files, where="splits == 'train'")
    assert str(refused.value).count("`label`") == 1, "a column of the file hides the one that samples have"


def test_conditions_are_shared_and_resumed_like_any_epoch(files: Path) -> None:
    plain = forebay.Pipeline.parquet().decode()

    def loader(**more: Any) -> forebay.Loader:
        return forebay.Loader(plain, data=files, where="split == 'train'", shuffle=True, seed=1, batch_size=4, **more)

    whole = numbers(loader())
    ranks = [numbers(loader(rank=rank, world_size=2)) for rank in range(2)]
    assert Counter(ranks[0] + ranks[1]) == Counter(whole) and len(whole) == 40
    first = loader()
    iterator = iter(first)
    seen = [int(image[0, 0, 0]) for _ in range(3) for image in next(iterator)["image"]]
    again = loader()
    again.load_state_dict(first.state_dict())
    assert seen + numbers(again) == whole


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_of_labels_and_splits(photos: Path, tmp_path: Path, kind: str) -> None:
    import shutil

    data = shutil.copytree(photos, tmp_path / "photos")
    paths = sorted(str(path.relative_to(data)) for path in data.rglob("*.jpg"))
    columns = {
        "path": paths,
        "breed": [["pug", "lab", "tabby"][n % 3] for n in range(len(paths))],
        "split": ["train" if n % 2 else "val" for n in range(len(paths))],
        "year": [2000 + n for n in range(len(paths))],
    }
    table = pa.table(columns)
    if kind == "csv":
        lines = [",".join(columns)] + [",".join(str(value) for value in row) for row in zip(*columns.values(), strict=True)]
        (data / "meta.csv").write_text("\n".join(lines), encoding="utf-8")
    else:
        pq.write_table(table, data / "meta.parquet")
    source: dict[str, Any] = {"label": "table", "table": f"meta.{kind}", "table_columns": ("path", "breed")}
    everything = forebay.Loader(forebay.Pipeline.files("**/*.jpg", **source).decode().resize((8, 8)), data=data)
    assert everything.classes == ["lab", "pug", "tabby"] and everything.samples == len(paths)
    pipeline = forebay.Pipeline.files("**/*.jpg", where="split == 'val' and breed != 'pug' and year < 2040", **source).decode().resize((8, 8))
    loader = forebay.Loader(pipeline, data=data)
    kept = [path for n, path in enumerate(paths) if n % 2 == 0 and n % 3 and n < 40]
    assert [key for batch in loader for key in batch["key"]] == kept
    assert loader.classes == everything.classes
    # The same of what was built, with the table beside it.
    dataset = forebay.build(forebay.Pipeline.files("**/*.jpg").decode().resize((8, 8)), tmp_path / "built", data=data, strategy="resized")
    later = forebay.Loader(dataset, where="split == 'val' and breed != 'pug' and year < 2040", table=data / f"meta.{kind}")
    assert sorted(key for batch in later for key in batch["key"]) == kept
    by_class = forebay.Loader(dataset, where="class == 'cats'")
    assert by_class.samples == len(paths) // 2
    with pytest.raises(forebay.UsageError, match="did you mean `split`"):
        forebay.Loader(dataset, where="splits == 'val'", table=data / f"meta.{kind}")
    with pytest.raises(forebay.UsageError, match="table"):
        forebay.Loader(dataset, table=data / f"meta.{kind}")


def test_boxes_of_a_table(photos: Path, tmp_path: Path) -> None:
    paths = sorted(path.stem for path in photos.rglob("*.jpg"))
    table = {"image": paths, "label": ["a", "b"] * (len(paths) // 2)}
    table |= {name: [float(value)] * len(paths) for name, value in [("xmin", 1), ("ymin", 2), ("xmax", 30), ("ymax", 40)]}
    pq.write_table(pa.table(table), tmp_path / "boxes.parquet")
    pipeline = forebay.Pipeline.files("**/*.jpg").step("take_csv", annotations=str(tmp_path / "boxes.parquet")).decode()
    boxes = {key: box for batch in forebay.Loader(pipeline, data=photos) for key, box in zip(batch["key"], batch["boxes"], strict=True)}
    for key, box in boxes.items():
        assert box.tolist() == [[1, 2, 30, 40, float(paths.index(Path(key).stem) % 2)]]


def test_damaged_files_are_errors_or_right(files: Path, tmp_path: Path) -> None:
    whole = (files / "train-0.parquet").read_bytes()
    random = numpy.random.default_rng(7)
    expected = list(range(35))
    for _ in range(60):
        damaged = bytearray(whole)
        if random.integers(4) == 0:
            damaged = damaged[: int(random.integers(1, len(damaged)))]
        else:
            damaged[int(random.integers(len(damaged)))] ^= 1 << int(random.integers(8))
        (tmp_path / "damaged.parquet").write_bytes(damaged)
        try:
            found = numbers(forebay.Loader(forebay.Pipeline.parquet().decode(), data=tmp_path))
        except forebay.Error as error:
            assert "damaged.parquet" in str(error) or "column" in str(error), error
            continue
        # PNG and the codec have checksums of their own for nearly all of it.
        assert len(found) == 35 and sum(a != b for a, b in zip(found, expected, strict=True)) <= 10
