"""Codecs of your own, learned ones too: images encoded by one function and decoded by another, with their cost."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

from ._decode import decode as decode_image
from ._errors import MissingFileError, UsageError
from ._pipeline import Pipeline

__all__ = ["AppliedCodec", "apply_codec"]

#: What an encoded file's name ends in.
SUFFIX = ".encoded"
_IMAGES = (".bmp", ".jpeg", ".jpg", ".l3", ".png", ".ppm", ".qoi", ".webp")

Image = numpy.ndarray[Any, Any]
Encode = Callable[[Image], bytes]
Decode = Callable[[bytes], Image]


@dataclass(frozen=True)
class AppliedCodec:
    """A folder of images in a codec of your own, and what that cost.

    Attributes
    ----------
    folder
        Where the encoded files are; their paths are those of the images.
    pipeline
        A pipeline that reads and decodes them, to be continued: `coded.pipeline.resize(64).normalize()`.
    images, pixels, bytes, source_bytes
        Number of images, of their pixels, and the size of the encoded files and of the images as they were.
    encode_seconds, decode_seconds
        Time of all calls of `encode` and of `decode`, one at a time.
    source_decode_seconds
        Time of decoding the images as they were, one at a time: what the codec is to be compared with.
    psnr_db
        Peak signal-to-noise ratio over all images in decibels; infinite if nothing was lost.
    """

    folder: Path
    pipeline: Pipeline
    images: int
    pixels: int
    bytes: int
    source_bytes: int
    encode_seconds: float
    decode_seconds: float
    source_decode_seconds: float
    psnr_db: float

    @property
    def bits_per_pixel(self) -> float:
        """Bits of the encoded files for each pixel."""
        return 8 * self.bytes / self.pixels

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain numbers and strings."""
        figures = {name: value for name, value in vars(self).items() if name != "pipeline"}
        return {**figures, "folder": os.fspath(self.folder), "bits_per_pixel": self.bits_per_pixel}

    def __repr__(self) -> str:
        def each(seconds: float) -> str:
            return f"{1e3 * seconds / self.images:.2f} ms"

        return (
            f"AppliedCodec({os.fspath(self.folder)!r}: {self.images:,} images, {self.bits_per_pixel:.2f} bits per pixel, "
            f"{self.source_bytes / self.bytes:.2f}× smaller, {self.psnr_db:.1f} dB; of each image encode {each(self.encode_seconds)}, "
            f"decode {each(self.decode_seconds)}, as it was {each(self.source_decode_seconds)})"
        )


def apply_codec(
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    encode: Encode,
    decode: Decode,
    parallel: bool = False,
) -> AppliedCodec:
    """Encode a folder of images with a codec of your own, and measure what encoding and decoding cost.

    It is how a learned codec takes part in a study: the pipeline of the result decodes with your function.

    Parameters
    ----------
    data
        A folder of images, with subfolders.
    output
        The folder to write to, which must be empty or new.
    encode
        Makes bytes of an image, an array `[height, width, 3]` of `uint8`.
    decode
        Makes such an image of the bytes.
    parallel
        `decode` is thread-safe (see `Pipeline.map`).

    Examples
    --------
    >>> coded = forebay.apply_codec("photos/", "coded/", encode=model.compress, decode=model.decompress)
    >>> loader = forebay.Loader(coded.pipeline.resize(64), data=coded.folder, batch_size=32)
    """
    source, folder = Path(data), Path(output)
    if not source.is_dir():
        raise MissingFileError(f"`{source}` is not a folder\nhint: pass a folder of images", path=source)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"`{folder}` is not empty\nhint: pass a new folder")
    totals = _Totals()
    for path in _images(source):
        totals.add(path, folder / path.relative_to(source), encode, decode)
    if totals.images == 0:
        raise UsageError(f"there are no images in `{source}`\nhint: names of images end in {', '.join(_IMAGES)}")

    def decode_encoded(content: Any) -> Image:
        return _checked(decode(bytes(content)), "decode")

    pipeline = Pipeline.files(f"**/*{SUFFIX}", label="folder").map(decode_encoded, output="uint8[?, ?, 3]", parallel=parallel, name="decode", stage="decoded")
    error = totals.squared_error / (3 * totals.pixels)
    figures = {name: value for name, value in asdict(totals).items() if name != "squared_error"}
    return AppliedCodec(folder, pipeline, psnr_db=math.inf if error == 0 else 10 * math.log10(255**2 / error), **figures)


@dataclass
class _Totals:
    images: int = 0
    pixels: int = 0
    bytes: int = 0
    source_bytes: int = 0
    encode_seconds: float = 0.0
    decode_seconds: float = 0.0
    source_decode_seconds: float = 0.0
    squared_error: float = 0.0

    def add(self, path: Path, target: Path, encode: Encode, decode: Decode) -> None:
        content = path.read_bytes()
        began = time.perf_counter()
        image = decode_image(content)
        decoded = time.perf_counter()
        encoded = bytes(encode(image))
        done = time.perf_counter()
        again = _checked(decode(encoded), "decode")
        self.decode_seconds += time.perf_counter() - done
        self.encode_seconds += done - decoded
        self.source_decode_seconds += decoded - began
        if again.shape != image.shape:
            raise UsageError(f"`decode` made an image of {again.shape} of `{path}`, which has {image.shape}")
        self.squared_error += float(numpy.square(again.astype(numpy.float64) - image).sum())
        self.images += 1
        self.pixels += image.shape[0] * image.shape[1]
        self.bytes += len(encoded)
        self.source_bytes += len(content)
        target.parent.mkdir(parents=True, exist_ok=True)
        # After the full name: `1.jpg` and `1.png` stay two files.
        target.with_name(target.name + SUFFIX).write_bytes(encoded)


def _images(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.suffix.lower() in _IMAGES and path.is_file())


def _checked(image: Any, name: str) -> Image:
    found = numpy.asarray(image)
    if found.dtype != numpy.uint8 or found.ndim != 3 or found.shape[2] != 3:
        raise UsageError(f"`{name}` made {found.dtype}{list(found.shape)}, but must make uint8[height, width, 3]")
    return found
