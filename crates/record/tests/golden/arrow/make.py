"""Makes the golden Arrow files beside it, with pyarrow: `python make.py`. The tests compute what must be in them from a row's number."""

import io
import json
from pathlib import Path

import pyarrow as pa
from PIL import Image

HERE = Path(__file__).parent
ROWS = 24
BATCH_ROWS = 10


def unless(null: bool, value):
    return None if null else value


def columns() -> dict[str, pa.Array]:
    rows = range(ROWS)
    pictures = [unless(i % 13 == 12, {"bytes": bytes([i]) * (i % 11), "path": f"{i}.png"}) for i in rows]
    texts = [unless(i % 7 == 6, f"text é {i // 4}" * (1 + i % 3)) for i in rows]
    blobs = [unless(i % 5 == 4, bytes([i]) * (i * 3)) for i in rows]
    return {
        "id": pa.array([i * 7 - 100 for i in rows], pa.int64()),
        "small": pa.array([unless(i % 6 == 5, i % 5) for i in rows], pa.int32()),
        "large": pa.array([4_000_000_000 + i for i in rows], pa.uint32()),
        "byte": pa.array([i - 12 for i in rows], pa.int8()),
        "short": pa.array([65_000 + i for i in rows], pa.uint16()),
        "whole": pa.array([unless(i % 6 == 5, i) for i in rows], pa.uint64()),
        "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
        "ratio": pa.array([unless(i % 10 == 9, i / 8) for i in rows], pa.float32()),
        "exact": pa.array([i / 3 for i in rows], pa.float64()),
        "text": pa.array(texts, pa.string()),
        "large_text": pa.array(texts, pa.large_string()),
        "blob": pa.array(blobs, pa.large_binary()),
        "image": pa.array(pictures, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        "floats": pa.array([unless(i % 9 == 8, [i + k / 2 for k in range(i % 4)]) for i in rows], pa.list_(pa.float32())),
        "ints": pa.array([[i * k for k in range(i % 3)] for i in rows], pa.large_list(pa.int64())),
        "flags": pa.array([[k == i % 3 for k in range(i % 3)] for i in rows], pa.list_(pa.bool_())),
        "box": pa.array([unless(i % 9 == 8, [i, i + 0.5, 2 * i]) for i in rows], pa.list_(pa.float64(), 3)),
        "fixed": pa.array([bytes([i, i + 1, i + 2]) for i in rows], pa.binary(3)),
        "tag": pa.array([unless(i % 6 == 5, f"tag {i % 4}") for i in rows]).dictionary_encode(),
        "code": pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in rows], pa.int8()), pa.array([0, 100, 200], pa.int64())),
    }


def views() -> dict[str, pa.Array]:
    """As polars writes text and bytes."""
    plain = columns()
    return {
        "id": plain["id"],
        "text": plain["text"].cast(pa.string_view()),
        "byte": plain["byte"],
        "blob": plain["blob"].cast(pa.binary()).cast(pa.binary_view()),
        "exact": plain["exact"],
    }


def unread() -> dict[str, pa.Array]:
    """What is not read, between what is: buffers behind it must be found all the same."""
    rows = range(ROWS)
    plain = columns()
    return {
        "boxes": pa.array([[[0.0, 1.0]] for _ in rows], pa.list_(pa.list_(pa.float32()))),
        "id": plain["id"],
        "time": pa.array(list(rows), pa.timestamp("us")),
        "nothing": pa.nulls(ROWS),
        "text": plain["text"],
        "map": pa.array([[("a", i)] for i in rows], pa.map_(pa.string(), pa.int32())),
        "half": pa.array([float(i) for i in rows], pa.float32()).cast(pa.float16()),
        "ratio": plain["ratio"],
        "union": pa.UnionArray.from_dense(
            pa.array([0] * ROWS, pa.int8()), pa.array(list(rows), pa.int32()), [pa.array(list(rows)), pa.array(["x"])]
        ),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array([1], pa.int64())),
        "exact": plain["exact"],
    }


def write(name: str, columns: dict[str, pa.Array], stream: bool, batch_rows: int = BATCH_ROWS, **options) -> None:
    table = pa.table(columns)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(HERE / name, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=batch_rows)


def dictionaries(name: str, **options) -> None:
    """Three batches whose dictionaries are not the same: replaced, or with more values."""
    parts = [["a", "b", "a"], ["a", "b", "c", "c"], ["a", "b", "c", "d", None]]
    batches = []
    words = ["a", "b", "c", "d"]
    for number, part in enumerate(parts):
        known = words[: 2 + number] if options else list(reversed(words[: 2 + number]))
        indices = pa.array([None if word is None else known.index(word) for word in part], pa.int16())
        batches.append(pa.record_batch({"tag": pa.DictionaryArray.from_arrays(indices, pa.array(known))}))
    with pa.ipc.new_stream(HERE / name, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)


def png(number: int) -> bytes:
    image = Image.new("RGB", (8, 8), (number, 255 - number, 7))
    image.putpixel((0, 0), (number, 0, 0))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def main() -> None:
    write("stream.arrow", columns(), stream=True)
    write("old.arrow", {"id": columns()["id"], "text": columns()["text"]}, stream=True, use_legacy_format=True)
    write("file.arrow", columns(), stream=False)
    write("lz4.arrow", columns(), stream=False, compression="lz4")
    write("zstd.arrow", columns(), stream=True, compression="zstd")
    write("views.arrow", views(), stream=False)
    write("views-zstd.arrow", views(), stream=False, compression="zstd")
    write("unread.arrow", unread(), stream=True, batch_rows=ROWS)
    dictionaries("replaced.arrow")
    dictionaries("delta.arrow", emit_dictionary_deltas=True)

    # As `datasets` of Hugging Face saves pictures.
    images = pa.table(
        {
            "image": pa.array(
                [{"bytes": png(i), "path": f"{i}.png"} for i in range(30)],
                pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
            ),
            "label": pa.array([i % 3 for i in range(30)], pa.int64()),
            "split": pa.array(["train" if i % 5 else "test" for i in range(30)]),
            "width": pa.array([100 + i for i in range(30)], pa.int32()),
        }
    )
    features = {
        "image": {"_type": "Image"},
        "label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"},
        "split": {"dtype": "string", "_type": "Value"},
        "width": {"dtype": "int32", "_type": "Value"},
    }
    images = images.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    with pa.ipc.new_stream(HERE / "images.arrow", images.schema) as writer:
        writer.write_table(images, max_chunksize=8)
    with pa.ipc.new_file(HERE / "images-lz4.arrow", images.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(images, max_chunksize=8)


if __name__ == "__main__":
    main()
