"""Makes the images that every peer reads, the same ones each time, from photographs.

Run in the environment that has Pillow and NumPy. The JPEGs are crops of small photographs, scaled to 500x375 (every
tenth is upright), quality 90, 4:2:0, with mild noise, because scaling takes away the grain of a photograph. The PNGs
are crops of large photographs at their own scale, 2048x1024, zlib level 6.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy
from PIL import Image

JPEG_SIZE = (500, 375)
JPEG_QUALITY = 90
#: Chosen so that the files are about as large as those that the peers were first measured on (57 KB).
JPEG_NOISE = 3.4
PNG_SIZE = (2048, 1024)
PNG_LEVEL = 6
SUFFIXES = {".jpg", ".jpeg", ".png"}


def make_jpeg(source: Path, number: int, target: Path) -> int:
    """Writes one JPEG and gives its size in bytes."""
    random = numpy.random.default_rng([1, number])
    size = JPEG_SIZE if number % 10 else JPEG_SIZE[::-1]
    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    scale = min(picture.width / size[0], picture.height / size[1]) * random.uniform(0.75, 1.0)
    width, height = size[0] * scale, size[1] * scale
    left, top = random.uniform(0, picture.width - width), random.uniform(0, picture.height - height)
    picture = picture.resize(size, Image.Resampling.LANCZOS, box=(left, top, left + width, top + height))
    if number % 2:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    noise = random.normal(0, JPEG_NOISE, (size[1], size[0], 1))
    pixels = numpy.clip(numpy.rint(numpy.asarray(picture) + noise), 0, 255).astype(numpy.uint8)
    target.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(target, quality=JPEG_QUALITY, subsampling="4:2:0")
    return target.stat().st_size


def make_png(source: Path, number: int, target: Path) -> int:
    """Writes one PNG and gives its size in bytes."""
    random = numpy.random.default_rng([2, number])
    with Image.open(source) as opened:
        picture = opened.convert("RGB")
    if picture.width < PNG_SIZE[0]:
        picture = picture.transpose(Image.Transpose.ROTATE_90)
    enlarge = max(1.0, PNG_SIZE[0] / picture.width, PNG_SIZE[1] / picture.height)
    if enlarge > 1:
        larger = (max(PNG_SIZE[0], round(picture.width * enlarge)), max(PNG_SIZE[1], round(picture.height * enlarge)))
        picture = picture.resize(larger, Image.Resampling.LANCZOS)
    left = int(random.integers(0, picture.width - PNG_SIZE[0] + 1))
    top = int(random.integers(0, picture.height - PNG_SIZE[1] + 1))
    picture = picture.crop((left, top, left + PNG_SIZE[0], top + PNG_SIZE[1]))
    if number % 2:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    target.parent.mkdir(parents=True, exist_ok=True)
    picture.save(target, compress_level=PNG_LEVEL)
    return target.stat().st_size


def photographs(folders: list[Path]) -> list[Path]:
    """The images directly in these folders or, where these have none, below them."""
    found = [path for folder in folders for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]
    found = found or [
        path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix.lower() in SUFFIXES
    ]
    if not found:
        sys.exit(f"error: no photographs in {', '.join(map(str, folders))}")
    return found


def jpeg_jobs(sources: list[Path], count: int, target: Path) -> list[tuple[Path, int, Path]]:
    """Sources in turn; the class of an image is the name of its photograph without the number."""
    jobs = []
    for number in range(count):
        source = sources[number % len(sources)]
        kind = source.stem.rpartition("_")[0] or source.parent.name
        jobs.append((source, number, target / kind / f"{number:05}.jpg"))
    return jobs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--jpegs", type=int, required=True)
    parser.add_argument("--pngs", type=int, required=True)
    parser.add_argument("--small", type=Path, action="append", required=True, help="a folder of small photographs")
    parser.add_argument("--large", type=Path, action="append", required=True, help="a folder of large photographs")
    arguments = parser.parse_args()
    for name in ("jpeg", "png"):
        shutil.rmtree(arguments.target / name, ignore_errors=True)
    small, large = photographs(arguments.small), photographs(arguments.large)
    pngs = [(large[n % len(large)], n, arguments.target / "png" / f"{n:05}.png") for n in range(arguments.pngs)]
    with ProcessPoolExecutor(2) as pool:
        jpeg_bytes = list(
            pool.map(make_jpeg, *zip(*jpeg_jobs(small, arguments.jpegs, arguments.target / "jpeg"), strict=True))
        )
        png_bytes = list(pool.map(make_png, *zip(*pngs, strict=True)))
    described = {
        "jpegs": len(jpeg_bytes),
        "jpeg_bytes": sum(jpeg_bytes) // len(jpeg_bytes),
        "pngs": len(png_bytes),
        "png_bytes": sum(png_bytes) // len(png_bytes),
        "small_photographs": len(small),
        "large_photographs": len(large),
    }
    print(json.dumps(described))


if __name__ == "__main__":
    main()
