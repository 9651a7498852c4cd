"""Makes the golden Parquet files beside it, with pyarrow: `python make.py`. The tests compute what must be in them from a row's number."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

HERE = Path(__file__).parent
ROWS = 24


def unless(null: bool, value):
    return None if null else value


def table(wide: bool) -> pa.Table:
    rows = range(ROWS)
    columns = {
        "id": pa.array([i * 7 - 100 for i in rows], pa.int64()),
        "small": pa.array([unless(i % 6 == 5, i % 5) for i in rows], pa.int32()),
        "large": pa.array([4_000_000_000 + i for i in rows], pa.uint32()),
        "flag": pa.array([i % 3 == 0 for i in rows], pa.bool_()),
        "ratio": pa.array([unless(i % 10 == 9, i / 8) for i in rows], pa.float32()),
        "exact": pa.array([i / 3 for i in rows], pa.float64()),
        "text": pa.array([unless(i % 7 == 6, f"text é {i // 4}") for i in rows], pa.string()),
        "image": pa.array(
            [unless(i % 13 == 12, {"bytes": bytes([i]) * (i % 11), "path": f"{i}.png"}) for i in rows],
            pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
        ),
        "floats": pa.array([unless(i % 9 == 8, [i + k / 2 for k in range(i % 4)]) for i in rows], pa.list_(pa.float32())),
        "ints": pa.array([[i * k for k in range(i % 3)] for i in rows], pa.list_(pa.int64())),
        "fixed": pa.array([bytes([i, i + 1, i + 2]) for i in rows], pa.binary(3)),
    }
    if wide:
        columns["boxes"] = pa.array([[[0.0, 1.0]] for _ in rows], pa.list_(pa.list_(pa.float32())))
        columns["time"] = pa.array(list(rows), pa.timestamp("us"))
    return pa.table(columns)


def write(name: str, table: pa.Table, **options) -> None:
    plain = {"row_group_size": 10, "store_schema": False, "write_statistics": False}
    pq.write_table(table, HERE / f"{name}.parquet", **{**plain, **options})


def main() -> None:
    write("snappy", table(wide=True), compression="snappy")
    encodings = {
        "id": "DELTA_BINARY_PACKED",
        "small": "DELTA_BINARY_PACKED",
        "large": "PLAIN",
        "flag": "RLE",
        "ratio": "BYTE_STREAM_SPLIT",
        "exact": "BYTE_STREAM_SPLIT",
        "text": "DELTA_BYTE_ARRAY",
        "image.bytes": "DELTA_LENGTH_BYTE_ARRAY",
        "image.path": "DELTA_BYTE_ARRAY",
        "ints.list.element": "DELTA_BINARY_PACKED",
    }
    write(
        "zstd", table(wide=False), compression="zstd", data_page_version="2.0", use_dictionary=False, column_encoding=encodings
    )
    # Many pages, with checksums.
    pages = {"data_page_size": 32, "write_batch_size": 4, "write_page_checksum": True}
    write("gzip", table(wide=False).select(["id", "text", "image", "floats"]), compression="gzip", **pages)
    write("lz4", table(wide=False).select(["id", "small", "image"]), compression="lz4", use_dictionary=False)
    write("none", table(wide=False).select(["id", "flag", "image", "ints"]), compression="none", data_page_version="2.0")

    # As Hugging Face writes pictures.
    def png(number: int) -> bytes:
        image = Image.new("RGB", (8, 8), (number, 255 - number, 7))
        image.putpixel((0, 0), (number, 0, 0))
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        return buffer.getvalue()

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
    names = {"label": {"names": ["ant", "bee", "cat"], "_type": "ClassLabel"}}
    noted = {"huggingface": json.dumps({"info": {"features": names}})}
    write("images", images.replace_schema_metadata(noted), row_group_size=8, compression="snappy", store_schema=True)


if __name__ == "__main__":
    main()
