#!/usr/bin/env python3
"""Makes inputs for fuzzing, small ones of every kind, into fuzz/corpus-own/TARGET. Nothing here comes from other people's files.

What Python has no library for, fuzz/src/bin/seeds.rs makes.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import tarfile
import zlib
from pathlib import Path

import numpy
from PIL import Image

FOLDER = Path(__file__).resolve().parent.parent / "fuzz/corpus-own"


def write(target: str, name: str, content: bytes) -> None:
    folder = FOLDER / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def picture(mode: str, size: tuple[int, int]) -> Image.Image:
    """Shades with some noise, which use more of the codes than either would."""
    draw = random.Random(5)
    channels = len(Image.new(mode, (1, 1)).getbands())
    across, down = size
    values = [(x * 9 + y * 5 * (c + 1) + draw.randrange(24)) % 256 for y in range(down) for x in range(across) for c in range(channels)]
    return Image.frombytes(mode, size, bytes(values))


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def jpegs() -> None:
    files = {}
    exif = Image.Exif()
    exif[0x0112] = 6
    for mode in ["L", "RGB", "CMYK"]:
        for size in [(8, 8), (17, 9), (33, 35)]:
            for progressive in [False, True]:
                files[f"{mode}-{size[0]}-{progressive}.jpg"] = saved(
                    picture(mode, size), "JPEG", quality=80, progressive=progressive, optimize=progressive
                )
    color = picture("RGB", (35, 19))
    for sampling in ["4:4:4", "4:2:2", "4:2:0"]:
        name = sampling.replace(":", "")
        files[f"{name}.jpg"] = saved(color, "JPEG", quality=70, subsampling=sampling)
        files[f"{name}-restart.jpg"] = saved(color, "JPEG", quality=30, subsampling=sampling, restart_marker_blocks=2)
        files[f"{name}-progressive.jpg"] = saved(color, "JPEG", quality=40, subsampling=sampling, progressive=True)
    files["rows.jpg"] = saved(color, "JPEG", restart_marker_rows=1)
    files["keep-rgb.jpg"] = saved(color, "JPEG", keep_rgb=True)
    files["comment.jpg"] = saved(color, "JPEG", comment=b"a comment", dpi=(72, 72))
    for turn in range(1, 9):
        exif[0x0112] = turn
        files[f"turned-{turn}.jpg"] = saved(picture("RGB", (10, 9)), "JPEG", exif=exif)
    for name, file in files.items():
        write("jpeg", name, file)
        write("image", name, file)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(color: int, depth: int, interlaced: bool, size: tuple[int, int], extra: bytes = b"") -> bytes:
    """A PNG of a color type and depth, each row with another filter."""
    draw = random.Random(color * 100 + depth)
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    rows, count = b"", 0
    for left, top, across, down in passes:
        width, height = max(0, -(-(size[0] - left) // across)), max(0, -(-(size[1] - top) // down))
        for _ in range(height if width else 0):
            rows += bytes([count % 5]) + bytes(draw.randrange(64) for _ in range(-(-width * samples * depth // 8)))
            count += 1
    header = struct.pack(">IIBBBBB", *size, depth, color, 0, 0, interlaced)
    palette = chunk(b"PLTE", bytes(draw.randrange(256) for _ in range(3 * 2 ** min(depth, 6)))) if color == 3 else b""
    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + extra
    return file + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pngs() -> None:
    depths = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}
    for color, allowed in depths.items():
        for depth in allowed:
            for interlaced in [False, True]:
                for number, size in enumerate([(1, 1), (9, 7), (33, 5)]):
                    file = png(color, depth, interlaced, size)
                    for target in ("image", "png"):
                        write(target, f"{color}-{depth}-{interlaced}-{number}.png", file)
                    if color in (0, 3):
                        write("arrays", f"{color}-{depth}-{interlaced}-{number}.png", file)
    extras = {
        "gray-key": (0, chunk(b"tRNS", b"\0\x07")),
        "color-key": (2, chunk(b"tRNS", b"\0\1\0\2\0\3")),
        "alpha": (3, chunk(b"tRNS", bytes(range(30)))),
        "gamma": (2, chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"sRGB", b"\0")),
        "words": (0, chunk(b"tEXt", b"Title\0words") + chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"words"))),
        "exif": (2, chunk(b"eXIf", b"II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\0\0")),
        "animated": (2, chunk(b"acTL", struct.pack(">II", 1, 0)) + chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, 9, 7, 0, 0, 1, 1, 0, 0))),
    }
    for name, (color, extra) in extras.items():
        write("image", f"{name}.png", png(color, 8, False, (9, 7), extra))


def other_pictures() -> None:
    for mode in ["RGB", "RGBA"]:
        image = picture(mode, (19, 11))
        for quality in [5, 90]:
            write("image", f"{mode}-{quality}.webp", saved(image, "WEBP", quality=quality))
        write("image", f"{mode}.webp", saved(image, "WEBP", lossless=True))
        few = image.quantize(7).convert(mode)
        write("image", f"{mode}-few.webp", saved(few, "WEBP", lossless=True, method=6, exact=True))
    exif = Image.Exif()
    exif[0x0112] = 3
    write("image", "turned.webp", saved(picture("RGB", (5, 4)), "WEBP", exif=exif))
    frames = [picture("RGB", (8, 8)), Image.new("RGB", (8, 8))]
    write("image", "animated.webp", saved(frames[0], "WEBP", save_all=True, append_images=frames[1:]))
    for mode in ["1", "L", "P", "RGB", "RGBA"]:
        image = picture("RGBA" if mode == "RGBA" else "RGB", (13, 5)).convert(mode)
        write("image", f"{mode}.bmp", saved(image, "BMP"))
    for mode in ["1", "L", "RGB", "I;16"]:
        image = picture("RGB", (13, 5)).convert("L" if mode == "I;16" else mode)
        if mode == "I;16":
            image = Image.fromarray(numpy.asarray(image).astype(numpy.uint16) * 257)
        write("image", f"{mode.replace(';', '')}.pnm", saved(image, "PPM"))
    for name, text in {"ascii": "P3 2 1 255 1 2 3 4 5 6\n", "gray": "P2\n# words\n2 2\n15\n0 1\n2 15\n", "bits": "P1 3 1 1 0 1\n"}.items():
        write("image", f"{name}.pnm", text.encode())
    pixels = b"".join(b"\xfe" + bytes([x, 3 * x % 256, 9]) for x in range(20)) + b"\xff\1\2\3\4" + b"\x02\x6a\xa8\x88\xc3"
    write("image", "small.qoi", b"qoif" + struct.pack(">IIBB", 7, 4, 4, 0) + pixels + b"\0" * 7 + b"\1")


def arrays() -> None:
    kinds = ["u1", "i1", "<u2", "<i2", "<i4", "<i8", "<f4", "<f8", "<f2", "?", ">i4", "<c8"]
    for number, kind in enumerate(kinds):
        for shape in [(), (3,), (2, 3), (2, 1, 2)]:
            file = io.BytesIO()
            numpy.save(file, numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape).astype(kind))
            write("arrays", f"{number}-{len(shape)}.npy", file.getvalue())
    file = io.BytesIO()
    numpy.save(file, numpy.asfortranarray(numpy.ones((3, 2), "<f4")))
    write("arrays", "columns.npy", file.getvalue())
    header = json.dumps({"embedding": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}).encode()
    write("arrays", "table.safetensors", struct.pack("<Q", len(header)) + header + b"\0\0\x80\x3f" * 6)


def crc32c(content: bytes) -> int:
    total = 0xFFFFFFFF
    for byte in content:
        total ^= byte
        for _ in range(8):
            total = total >> 1 ^ (0x82F63B78 if total & 1 else 0)
    return total ^ 0xFFFFFFFF


def framed(content: bytes) -> bytes:
    def masked(part: bytes) -> bytes:
        total = crc32c(part)
        return struct.pack("<I", ((total >> 15 | total << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(content))
    return length + masked(length) + content + masked(content)


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128, "longer than a varint of one byte says"
    return bytes([number << 3 | 2, len(content)]) + content


def example(**features: bytes) -> bytes:
    entries = b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items())
    return field(1, entries)


def records() -> list[bytes]:
    tensor = b"\x08\x04" + field(2, field(2, b"\x08\1") + field(2, b"\x08\2") + field(2, b"\x08\3")) + field(4, b"abcdef")
    whole = example(image=field(1, field(1, tensor)), label=field(3, field(1, b"\7")))
    return [
        whole,
        example(numbers=field(3, b"\x08\1\x08\2"), label=field(3, field(1, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"))),
        example(floats=field(2, field(1, b"\0\0\x80\x3f\0\0\0\x40")), one=field(2, b"\x0d\0\0\x80\x3f")),
        example(words=field(1, field(1, b"a") + field(1, b"")), none=b""),
        tensor,
        b"",
    ]


def shards() -> None:
    for number, record in enumerate(records()):
        write("example", f"{number}", record)
    shard = b"".join(framed(record) for record in records())
    write("tfrecord", "plain", shard)
    write("tfrecord", "one", framed(b"abc"))
    write("tfrecord", "empty", framed(b""))
    write("tfrecord", "gzip", gzip.compress(shard, mtime=0))
    write("tfrecord", "two.gzip", gzip.compress(shard, mtime=0) + gzip.compress(framed(b"x"), mtime=0))
    write("tfrecord", "zlib", zlib.compress(shard))
    write("tfrecord", "stored", zlib.compress(shard, 0))
    write("tfrecord", "damaged", shard[:40] + b"?" + shard[41:])
    write("tfrecord", "cut", shard[:-3])
    offsets, text, at = [], "", 0
    for record in records():
        text += f"{at} {len(record) + 16}\n"
        offsets.append(at)
        at += len(record) + 16
    write("lists", "index", text.encode())
    write("lists", "gaps", b"0 16\n\n  20   17 \r\n40 16")
    # A packed shard as two blocks that inflate alone.
    stream = zlib.compressobj(6)
    head, blocks, packed, inflated = 2, "", b"", 0
    for part in [shard[: offsets[3]], shard[offsets[3] :]]:
        block = stream.compress(part) + stream.flush(zlib.Z_FULL_FLUSH)
        start = len(packed) or head
        packed += block
        blocks += f"{start} {len(packed) - start} {inflated} {len(part)}\n"
        inflated += len(part)
    packed += stream.flush()
    write("lists", "packed", blocks.encode() + b"\0" + packed)
    write("lists", "blocks", blocks.encode())
    # One of each algorithm and scope, of some content.
    for kind in range(24):
        write("compression", f"{kind}", bytes([kind, 0, 4, 200]) + shard[:400] + b"a run " * 30)


def indexed(archive: bytes) -> bytes:
    """The files of a tar, behind their index as DALI has it."""
    lines: dict[str, list[str]] = {}
    end = 0
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for entry in filter(tarfile.TarInfo.isreg, tar):
            folder, _, name = entry.name.rpartition("/")
            key, _, kind = name.partition(".")
            lines.setdefault(f"{folder}/{key}", []).append(f"{kind or name} {entry.offset_data} {entry.size} {entry.name}")
            end = entry.offset_data + (entry.size + 511) // 512 * 512
    text = "".join(f"{' '.join(members)}\n" for members in lines.values())
    return f"v1.2 {len(lines)}\n{text}\0".encode() + archive[:end] + bytes(1024)


def tars() -> None:
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    members = {
        "plain": [("a/1.jpg", b"x" * 600), ("a/1.cls", b"7"), ("a/2.jpg", b""), ("b.txt", b"words")],
        "long": [("f/" * 60 + "name.jpg", b"1"), ("f/" * 60 + "name.cls", b"2")],
        "names": [("./a.b.c", b"1"), (".hidden", b"2"), ("none", b"3"), ("\u00e9/\u5b57.png", b"4"), ("a.b.c", b"5")],
    }
    for format_name, number in formats.items():
        for name, files in members.items():
            archive = io.BytesIO()
            with tarfile.open(fileobj=archive, mode="w", format=number) as tar:
                for path, content in files:
                    entry = tarfile.TarInfo(path)
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
                folder = tarfile.TarInfo("folder")
                folder.type = tarfile.DIRTYPE
                tar.addfile(folder)
                link = tarfile.TarInfo("link.jpg")
                link.type, link.linkname = tarfile.SYMTYPE, "a/1.jpg"
                tar.addfile(link)
            # Python fills up to 20 blocks; two are the end.
            ended = archive.getvalue().rstrip(b"\0") + b"\0" * 1536
            write("tar", f"{format_name}-{name}.tar", ended)
            # The mutator makes others of it.
            write("tar", f"{format_name}-{name}.tar.gz", gzip.compress(ended, mtime=0))
            write("tar_index", f"{format_name}-{name}", indexed(archive.getvalue()))


def flac(channels: int, bits: int, assignment: int, subframes: list[bytes], samples: int) -> bytes:
    """A FLAC of one frame; each subframe is bytes that end where it ends."""

    def sum_of(content: bytes, width: int, polynomial: int) -> int:
        total = 0
        for byte in content:
            total ^= byte << width - 8
            for _ in range(8):
                total = (total << 1 ^ (polynomial if total >> width - 1 else 0)) & (1 << width) - 1
        return total

    info = struct.pack(">HH", samples, samples) + b"\0" * 6
    packed = 8000 << 44 | channels - 1 << 41 | bits - 1 << 36 | samples
    info += packed.to_bytes(8, "big") + b"\0" * 16
    depth = {8: 1, 12: 2, 16: 4, 24: 6}[bits]
    head = bytes([0xFF, 0xF8, 0x64, assignment << 4 | depth << 1, 0, samples - 1])
    frame = head + bytes([sum_of(head, 8, 0x07)]) + b"".join(subframes)
    return b"fLaC\x80\0\0\x22" + info + frame + struct.pack(">H", sum_of(frame, 16, 0x8005))


def wav(tag: int, channels: int, bits: int, data: bytes) -> bytes:
    form = struct.pack("<HHIIHH", tag, channels, 8000, 8000 * channels * bits // 8, channels * bits // 8, bits)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def sounds() -> None:
    for tag, channels, bits in [(1, 1, 8), (1, 2, 16), (1, 1, 24), (1, 1, 32), (3, 1, 32)]:
        write("audio", f"{tag}-{channels}-{bits}.wav", wav(tag, channels, bits, bytes(range(24))))
    write("audio", "constant.flac", flac(1, 8, 0, [b"\0\x55"], 16))
    write("audio", "verbatim.flac", flac(1, 8, 0, [b"\x02" + bytes(range(16))], 16))
    write("audio", "two.flac", flac(2, 16, 1, [b"\0\1\2", b"\x02" + bytes(range(32))], 16))
    write("audio", "side.flac", flac(2, 16, 9, [b"\0\0\x01\x80", b"\0\1\0"], 16))
    # A fixed predictor of order 1, Rice codes of parameter 0: sixteen residues of 0.
    write("audio", "rice.flac", flac(1, 8, 0, [b"\x12\x05" + int("00" "0000" "0000" + "1" * 15 + "0000000", 2).to_bytes(4, "big")], 16))


def texts() -> None:
    pages = {
        "article": "<html><head><title>T</title></head><body><nav>a b</nav><article><h1>Head</h1><p>"
        + "Words and words, and more of them. " * 12 + "</p><p>&amp; &eacute;</p></article></body></html>",
        "table": "<table><tr><td>1<td>2</table><p>" + "x y z, " * 40,
        "charset": "<meta charset=windows-1252><p>" + "caf\xe9, " * 40,
        "deep": "<div>" * 60 + "words" + "</div>" * 60,
        "script": "<script>if (a < b) {}</script><style>p{}</style><!-- c --><p>text</p>",
    }
    for name, page in pages.items():
        write("article", f"{name}.html", page.encode("latin-1"))
    write("article", "utf16.html", "<p>words</p>".encode("utf-16"))
    tables = {
        "plain": "time,voltage,current1\n0,1.5,2\n1,-3e2,4\n",
        "semicolons": "t;voltage;current1\n0;1,5;2\n",
        "tabs": "1\t2\n3\t4\n",
        "quoted": '"voltage","current1"\n"1","2"\n',
        "strange": "voltage,current1\nnan,inf\n,\n1e400,-0\n",
        "lines": "voltage,current1\r\n1,2\r\n\r\n3,4",
    }
    for name, table in tables.items():
        write("signal", f"{name}.csv", table.encode())
    write("signal", "raw", struct.pack("<8d", *range(8)))


PROFILE = {
    "version": 1, "forebay": "0.1.0",
    "machine": {"processor": "an example", "cores": 2, "memory_bytes": 8000000000, "memory_bytes_per_second": 4e9},
    "pipeline": {"name": "photos", "step": [{"op": "decode"}]},
    "data": {"root": "photos", "samples": 10000, "bytes": 1000000000},
    "method": {"sample_count": 100, "runs": 1, "threads": 2, "shards": 2, "caching": "none", "seed": 7},
    "storage": {"name": "disk", "sequential_bytes_per_second": 4e8, "files_per_second": 100, "file_bytes": 1e5},
    "steps": [
        {"name": "read", "cpu_seconds": 0.0001, "bytes_out": 1e5, "random": False},
        {"name": "decode", "cpu_seconds": 0.004, "bytes_out": 6e5, "random": False},
    ],
    "strategies": [
        {"name": "unprocessed", "split": {"position": 0, "name": "unprocessed"}, "storage_bytes": 10000000,
         "bytes_per_sample": 1e5, "prep_seconds": 0, "deserialize_cpu_seconds": 0, "online_cpu_seconds": 0.0041,
         "runs": [{"samples": 100, "skipped": 0, "seconds": 1.02, "bytes_read": 10000000}]},
        {"name": "decoded", "split": {"position": 2, "name": "decoded"}, "storage_bytes": 60000000,
         "bytes_per_sample": 6e5, "prep_seconds": 1.2, "deserialize_cpu_seconds": 0.0001, "online_cpu_seconds": 0,
         "runs": [{"samples": 100, "skipped": 0, "seconds": 0.155, "bytes_read": 60000000}]},
    ],
}


def documents() -> None:
    write("documents", "profile.json", json.dumps(PROFILE).encode())
    manifest = {
        "format": "forebay-dataset", "version": 2, "forebay": "0.1.0", "pipeline": PROFILE["pipeline"],
        "identity": "0123456789abcdef", "samples": 3, "bytes": 100, "classes": ["a", "b"],
        "shards": [{"file": "shard-0.tfrecord", "samples": 3, "bytes": 100, "xxh3": "0123456789abcdef",
                    "index_xxh3": "0123456789abcdef", "crc_xxh3": "0123456789abcdef"}],
        "skipped_samples": [{"key": "a/7.jpg", "reason": "it ends within the header", "samples": 1}],
    }
    strategies = [
        {"split": {"position": 1, "name": "concatenated"}},
        {"split": {"position": 2, "name": "decoded"}},
        {"split": {"position": 2, "name": "decoded"}, "encoding": "png"},
        {"split": {"position": 2, "name": "decoded"}, "packing": "gzip"},
    ]
    for number, strategy in enumerate(strategies):
        write("documents", f"{number}.json", json.dumps({**manifest, "strategy": strategy}, indent=1).encode())


def annotations() -> None:
    """One of each kind, and masks of each kind by themselves."""
    segments = {
        "polygon": [[0, 0, 10.5, 0, 10.5, 9.25, 0, 9]],
        "runs": {"size": [7, 9], "counts": [3, 5, 50, 5]},
        "text": {"size": [7, 9], "counts": "35b10"},
    }
    for name, segment in segments.items():
        write("annotations", f"{name}.json", json.dumps(segment).encode())
        one = {"image_id": 1, "category_id": 3, "bbox": [1, 2, 3, 4], "iscrowd": 0, "segmentation": segment, "keypoints": [1, 2, 2]}
        image = {"id": 1, "file_name": "a", "height": 7, "width": 9}
        write("annotations", f"coco-{name}.json", json.dumps({"images": [image], "annotations": [one]}).encode())
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3.5</xmax><ymax>4</ymax></bndbox>"
    voc = f"<annotation><object><name>a &amp; b</name><difficult>1</difficult>{box}</object></annotation>"
    write("annotations", "voc.xml", voc.encode())
    write("annotations", "yolo.txt", b"0 0.5 0.5 0.25 0.5\n1 0 0 1 0 1 1\n2 0.5 0.5 1 1 0.9\n")
    write("annotations", "boxes.csv", b'image,label,xmin,ymin,xmax,ymax\na,dog,1,2,3,4\n"a",cat,0,0,9,9\n')


def pixels() -> None:
    """Raw pixels after the bytes that say what to do with them."""
    draw = random.Random(3)
    for kind in range(12):
        for channels in range(4):
            data = bytes(draw.randrange(256) for _ in range(9 * 5 * (channels + 1)))
            write("image_round_trip", f"{kind}-{channels}", bytes([kind, channels, kind, 8]) + data)
    for mode in range(3):
        for channels in range(4):
            data = bytes((at * 3) % 256 for at in range(12 * 6 * (channels + 1)))
            write("l3_round_trip", f"{mode}-{channels}", bytes([mode, channels, mode, 11, mode, 1, 3]) + data)


def main() -> None:
    for make in [jpegs, pngs, other_pictures, arrays, shards, tars, sounds, texts, documents, annotations, pixels]:
        make()


if __name__ == "__main__":
    main()
