#!/usr/bin/env python3
"""Mutated PNGs, decoded by us and by libpng: what both accept has the same pixels, and nothing is accepted that libpng refuses.

    tools/fuzz_png.py [--count 3000] [--seed 1]

libpng is the one that Pillow brings, called directly, since Pillow's own reader of PNG is another. What we take and libpng refuses or
warns of is listed by libpng's words, with whether Pillow takes it; KNOWN has those that were judged. The other way round is
counted only: to refuse is allowed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import io
import random
import struct
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import fuzz_seeds
from PIL import Image

import fuzz

# libpng's words for what we take, each with the reason why that is right: as long as Pillow takes it, too.
KNOWN = {
    "IDAT: Too much image data": "every pixel is there, and libpng gives them",
    "IDAT: incorrect data check": "libpng only warns where it comes after too much data; elsewhere we refuse, and so does Pillow",
    "IDAT: invalid distance too far back": "it comes after the last pixel, and libpng only warns",
    "Not enough image data": "every pixel is there; the end of the stream is not, which the chunk's checksum vouches for",
    "bad header (invalid type)": "a chunk that nobody knows, and that its name says may be left out",
}

SIGNATURE = b"\x89PNG\r\n\x1a\n"


class PngImage(ctypes.Structure):
    """`png_image` of libpng's simplified interface."""

    _fields_ = [
        ("opaque", ctypes.c_void_p),
        *((name, ctypes.c_uint32) for name in ["version", "width", "height", "format", "flags", "entries", "fault"]),
        ("message", ctypes.c_char * 64),
    ]


def libpng() -> ctypes.CDLL | None:
    import PIL

    found = sorted(Path(PIL.__file__).parent.parent.glob("pillow.libs/libpng16*"))
    return ctypes.CDLL(str(found[0])) if found else None


def judge(library: ctypes.CDLL, file: bytes) -> tuple[str, str, tuple[int, int, int], bytes]:
    """`taken`, `warned` or `refused`, libpng's words, height, width and channels, and the pixels."""
    image = PngImage(version=1)
    nothing = (0, 0, 0)
    if not library.png_image_begin_read_from_memory(ctypes.byref(image), file, ctypes.c_size_t(len(file))):
        return "refused", image.message.decode(), nothing, b""
    # As stored: alpha (1) and color (2) stay; no 16 bit (4), no palette (8).
    deep = bool(image.format & 4)
    image.format &= 3
    channels = 1 + (image.format & 1) + (image.format & 2)
    if image.width * image.height > 1 << 18:
        library.png_image_free(ctypes.byref(image))
        return "refused", "too large for this test", nothing, b""
    pixels = ctypes.create_string_buffer(image.width * image.height * channels)
    if not library.png_image_finish_read(ctypes.byref(image), None, pixels, 0, None):
        return "refused", image.message.decode(), nothing, b""
    # 16 bit become 8 by way of linear light there, which no training pipeline does.
    size = (image.height, image.width, channels)
    return ("warned" if image.fault else "taken"), image.message.decode(), size, b"" if deep else pixels.raw


def pillow_takes(file: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Image.open(io.BytesIO(file), formats=["PNG"]).load()
        return True
    except Exception:
        return False


def chunks(file: bytes) -> list[list[bytes]]:
    found, at = [], len(SIGNATURE)
    while at + 8 <= len(file):
        length = struct.unpack(">I", file[at : at + 4])[0]
        found.append([file[at + 4 : at + 8], file[at + 8 : at + 8 + length]])
        at += 12 + length
    return found


def flipped(draw: random.Random, content: bytes) -> bytes:
    if not content:
        return bytes([draw.randrange(256)])
    changed = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        at = draw.randrange(len(changed))
        match draw.randrange(4):
            case 0:
                changed[at] ^= 1 << draw.randrange(8)
            case 1:
                changed[at] = draw.choice([0, 1, 2, 3, 4, 6, 8, 16, 127, 255])
            case 2:
                changed.insert(at, draw.randrange(256))
            case _ if len(changed) > 1:
                del changed[at]
    return bytes(changed)


def mutant(draw: random.Random, file: bytes) -> bytes:
    parts = chunks(file)
    if not parts or draw.randrange(8) == 0:
        return file[: draw.randint(0, len(file))] if draw.randrange(2) else flipped(draw, file)
    part = draw.choice(parts)
    match draw.randrange(7):
        case 0:
            parts.remove(part)
        case 1:
            parts.insert(draw.randrange(len(parts) + 1), list(part))
        case 2:
            part[0] = bytes(draw.choice(b"IDATtRNSPLEexf") for _ in range(4))
        case 3:
            pixels = next((one for one in parts if one[0] == b"IDAT"), part)
            with contextlib.suppress(zlib.error):
                pixels[1] = zlib.compress(flipped(draw, zlib.decompress(pixels[1])))
        case 4:
            pixels = next((one for one in parts if one[0] == b"IDAT"), part)
            cut = draw.randrange(len(pixels[1]) + 1)
            parts.insert(parts.index(pixels) + 1, [b"IDAT", pixels[1][cut:]])
            pixels[1] = pixels[1][:cut]
        case _:
            part[1] = flipped(draw, part[1])
    return SIGNATURE + b"".join(fuzz_seeds.chunk(kind, content) for kind, content in parts)


class Ours:
    """`crates/codec/examples/verdicts.rs` at work."""

    def __init__(self, program: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe)

    def judge(self, file: bytes) -> tuple[tuple[int, int, int], bytes]:
        self.process.stdin.write(struct.pack("<I", len(file)) + file)
        self.process.stdin.flush()
        head = self.process.stdout.read(16)
        if len(head) < 16:
            sys.exit("the program ended: its last words are above")
        *size, length = struct.unpack("<4I", head)
        return tuple(size), self.process.stdout.read(length)


def compare(ours: Ours, library: ctypes.CDLL, count: int, seed: int) -> tuple[dict[str, int], list[str]]:
    draw = random.Random(seed)
    depths = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}
    kinds = [(color, depth) for color, allowed in depths.items() for depth in allowed]
    counts: collections.Counter[str] = collections.Counter()
    findings = []
    for number in range(count):
        color, depth = draw.choice(kinds)
        file = fuzz_seeds.png(color, depth, draw.random() < 0.5, (draw.randint(1, 20), draw.randint(1, 20)))
        for _ in range(draw.randint(0, 2)):
            file = mutant(draw, file)
        size, pixels = ours.judge(file)
        verdict, words, libpng_size, libpng_pixels = judge(library, file)
        taken = any(size)
        counts[f"{'taken' if taken else 'refused'}, libpng {verdict}"] += 1
        if not taken:
            continue
        where = f"mutant {number} of seed {seed}"
        if verdict != "taken":
            known = any(words.endswith(judged) for judged in KNOWN)
            also = "takes" if pillow_takes(file) else "refuses"
            if not known or also == "refuses":
                findings.append(f"{where}: taken; libpng {verdict}: {words!r}; Pillow {also} it")
        elif verdict == "taken" and (size != libpng_size or (libpng_pixels and pixels != libpng_pixels)):
            findings.append(f"{where}: {size} against {libpng_size}, other pixels: {len(pixels)} {len(libpng_pixels)}")
    return dict(sorted(counts.items())), findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    library = libpng()
    if library is None:
        print("skipped: this Pillow brings no libpng to compare with")
        return 0
    # With the features that the other tests use, so that nothing is compiled again.
    command = ["cargo", "build", "--quiet", "--workspace", "--example", "verdicts"]
    subprocess.run(command, cwd=fuzz.ROOT, check=True)
    ours = Ours(fuzz.ROOT / "target/debug/examples/verdicts")
    counts, findings = compare(ours, library, arguments.count, arguments.seed)
    print(f"png, {arguments.count} mutants: " + "; ".join(f"{kind}: {number}" for kind, number in counts.items()))
    print("\n".join(findings[:40]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
