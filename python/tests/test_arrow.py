"""Arrow's files and streams as sources, beside pyarrow: what `datasets` saves, and Feather."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from PIL import Image

pa = pytest.importorskip("pyarrow", reason="pyarrow writes the files that are read here")

SAMPLES = 60
NAMES = ["ant", "bee", "cat", "dog"]


def picture(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(numpy.full((16, 16, 3), number, numpy.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def table() -> Any:
    rows = {
        "image": pa.array(
            [{"bytes": picture(n), "path": f"{n}.png"} for n in range(SAMPLES)],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        ),
        "label": pa.array([n % 4 for n in range(SAMPLES)], pa.int64()),
        "split": pa.array(["train" if n % 3 else "test" for n in range(SAMPLES)]).dictionary_encode(),
        "width": pa.array([n * 10 for n in range(SAMPLES)], pa.int32()),
        "caption": pa.array([f"number {n} é" for n in range(SAMPLES)]).cast(pa.string_view()),
        "bbox": pa.array([[n, n + 0.5, n + 1, n + 2] for n in range(SAMPLES)], pa.list_(pa.float32(), 4)),
        "tokens": pa.array([list(range(n % 5)) for n in range(SAMPLES)], pa.large_list(pa.int32())),
    }
    features = {"label": {"names": NAMES, "_type": "ClassLabel"}}
    return pa.table(rows).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})


def save(content: Any, path: Path, batch_rows: int = 10, compression: str | None = None, stream: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, content.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(content, max_chunksize=batch_rows)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `save_to_disk` writes a `DatasetDict` of one split."""
    root = tmp_path_factory.mktemp("saved")
    whole = table()
    save(whole.slice(0, 35), root / "train" / "data-00000-of-00002.arrow")
    save(whole.slice(35), root / "train" / "data-00001-of-00002.arrow", 7)
    (root / "dataset_dict.json").write_text('{"splits": ["train"]}', encoding="utf-8")
    (root / "train" / "state.json").write_text("{}", encoding="utf-8")
    return root


def numbers(loader: forebay.Loader) -> list[int]:
    return [int(image[0, 0, 0]) for batch in loader for image in batch["image"]]


def test_pictures_as_datasets_saves_them(saved: Path, tmp_path: Path) -> None:
    pipeline = forebay.Pipeline.arrow().decode()
    loader = forebay.Loader(pipeline, data=saved, batch_size=8)
    assert loader.samples == SAMPLES and loader.classes == NAMES
    batches = list(loader)
    assert [int(image[0, 0, 0]) for batch in batches for image in batch["image"]] == list(range(SAMPLES))
    assert [int(label) for batch in batches for label in batch["label"]] == [n % 4 for n in range(SAMPLES)]
    assert batches[0]["key"][1] == "train/data-00000-of-00002.arrow:1"
    order = numbers(forebay.Loader(pipeline, data=saved, shuffle=True, seed=3, threads=3))
    assert sorted(order) == list(range(SAMPLES)) and order != list(range(SAMPLES))
    assert numbers(forebay.Loader(pipeline, data=saved, shuffle=True, seed=3, threads=1)) == order
    ranks = [
        numbers(forebay.Loader(pipeline, data=saved, shuffle=True, seed=3, batch_size=4, rank=rank, world_size=2)) for rank in range(2)
    ]
    assert sorted(ranks[0] + ranks[1]) == list(range(SAMPLES))
    built = forebay.build(pipeline.resize((16, 16)), tmp_path / "built", data=saved, strategy="resized", shards=3, threads=2)
    assert numbers(forebay.Loader(built)) == list(range(SAMPLES)) and forebay.Loader(built).classes == NAMES


@pytest.mark.parametrize(("stream", "compression"), [(True, None), (True, "zstd"), (False, None), (False, "lz4")])
def test_columns_are_fields(tmp_path: Path, stream: bool, compression: str | None) -> None:
    save(table(), tmp_path / "rows.arrow", 13, compression, stream)
    fields = {
        "image": "image.bytes",
        "split": ("split", "text"),
        "caption": ("caption", "text"),
        "box": ("bbox", "float32[4]"),
        "tokens": ("tokens", "int32[?]"),
        "width": ("width", "int"),
    }
    pipeline = forebay.Pipeline.arrow(fields=fields, where="width < 400").decode()
    (batch,) = forebay.Loader(pipeline, data=tmp_path, batch_size=SAMPLES)
    rows = range(40)
    assert [int(image[0, 0, 0]) for image in batch["image"]] == list(rows)
    assert list(batch["split"]) == ["train" if n % 3 else "test" for n in rows]
    assert list(batch["caption"]) == [f"number {n} é" for n in rows]
    numpy.testing.assert_array_equal(batch["box"], [[n, n + 0.5, n + 1, n + 2] for n in rows])
    assert [tokens.tolist() for tokens in batch["tokens"]] == [list(range(n % 5)) for n in rows]
    numpy.testing.assert_array_equal(batch["width"], [n * 10 for n in rows])


def test_splits_are_chosen(saved: Path, tmp_path: Path) -> None:
    for split in ("train", "test"):
        save(table(), tmp_path / split / "data-00000-of-00001.arrow")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}', encoding="utf-8")
    with pytest.raises(forebay.UsageError, match="several splits"):
        forebay.Loader(forebay.Pipeline.arrow().decode(), data=tmp_path)
    assert forebay.Loader(forebay.Pipeline.arrow("train/*.arrow").decode(), data=tmp_path).samples == SAMPLES
    assert forebay.Loader(forebay.Pipeline.arrow().decode(), data=tmp_path / "test").samples == SAMPLES


def random_column(random: numpy.random.Generator, count: int) -> Any:
    """Values of a random type, some of them null."""
    kinds = [
        pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.int64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
        pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(5),
    ]  # fmt: skip
    kind = kinds[int(random.integers(len(kinds)))]
    missing = random.random(count) < random.choice([0, 0.2, 1.0])
    if pa.types.is_boolean(kind):
        values: list[Any] = [bool(value) for value in random.integers(0, 2, count)]
    elif pa.types.is_integer(kind):
        values = [int(value) for value in random.integers(0, 100, count)]
    elif pa.types.is_floating(kind):
        values = [float(value) for value in random.integers(0, 100, count)]
    elif pa.types.is_fixed_size_binary(kind):
        values = [random.bytes(5) for _ in range(count)]
    else:
        lengths = random.integers(0, int(random.choice([3, 30, 3000])), count)
        values = ["".join(chr(97 + letter) for letter in random.integers(0, 26, length)) for length in lengths]
        if kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
            values = [value.encode() for value in values]
    column = pa.array([None if gone else value for gone, value in zip(missing, values, strict=True)], kind)
    if random.integers(4) == 0 and kind not in (pa.string_view(), pa.binary_view()):
        column = column.dictionary_encode()
    return column


def test_any_table_is_what_pyarrow_says(tmp_path: Path) -> None:
    """Of random tables, in random batches and compressions, the columns that can be fields: text and bytes."""
    random = numpy.random.default_rng(11)
    for number in range(40):
        count = int(random.integers(1, 200))
        columns = {f"c{place}": random_column(random, count) for place in range(int(random.integers(1, 7)))}
        columns["at"] = pa.array([bytes([n % 256]) * (n % 40) for n in range(count)])
        content = pa.table(columns)
        path = tmp_path / f"{number}.arrow"
        stream = bool(random.integers(2))
        # Each batch of a file must have the same dictionary, which one table has.
        save(content, path, int(random.integers(1, count + 1)), [None, "lz4", "zstd"][int(random.integers(3))], stream)
        readable = [
            name
            for name, column in columns.items()
            if name != "at"
            and str(column.type)
            .replace("dictionary<values=", "")
            .startswith(("string", "large_string", "binary", "large_binary", "fixed_size_binary"))
        ]
        fields = [{"field": name, "from": name, "type": "bytes", "optional": True} for name in readable]
        fields.append({"field": "at", "from": "at"})
        source = {"format": "arrow", "field": "at", "files": path.name, "fields": fields, "label": "none"}
        pipeline = forebay.Pipeline.from_json(json.dumps({"name": "rows", "source": source}))
        found: dict[str, list[bytes]] = {name: [] for name in readable}
        for batch in forebay.Loader(pipeline, data=tmp_path, batch_size=7):
            for name in readable:
                found[name] += [bytes(value) for value in batch[name]]
        for name in readable:
            expected = [value or b"" for value in columns[name].to_pylist()]
            assert found[name] == [value.encode() if isinstance(value, str) else value for value in expected], (number, name)


def test_damaged_files_are_errors_or_right(saved: Path, tmp_path: Path) -> None:
    whole = (saved / "train" / "data-00000-of-00002.arrow").read_bytes()
    random = numpy.random.default_rng(7)
    for _ in range(60):
        damaged = bytearray(whole)
        if random.integers(4) == 0:
            damaged = damaged[: int(random.integers(1, len(damaged)))]
        else:
            damaged[int(random.integers(len(damaged)))] ^= 1 << int(random.integers(8))
        (tmp_path / "damaged.arrow").write_bytes(damaged)
        try:
            found = numbers(forebay.Loader(forebay.Pipeline.arrow().decode(), data=tmp_path))
        except forebay.Error as error:
            assert "damaged.arrow" in str(error) or "column" in str(error), error
            continue
        # Arrow has no checksums; PNG has.
        assert len(found) == 35
