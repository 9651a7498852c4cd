"""Images at lower qualities."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, flag, integer
from ._errors import MissingFileError, UsageError
from ._foreign_names import hinted
from ._progress import listener
from ._table import Column, as_frame, as_html, as_text
from ._work import Dataset, _skips

if TYPE_CHECKING:
    import pandas

__all__ = ["Recompressed", "recompress"]

_COLUMNS = [
    Column("encoding", "name"),
    Column("encoded", "encoded", "count"),
    Column("copied", "copied", "count"),
    Column("reused", "reused", "count"),
    Column("size", "bytes_out", "bytes"),
    Column("ratio", "ratio", "number"),
    Column("bits/pixel", "bits_per_pixel", "number"),
    Column("encode", "encode_seconds", "seconds"),
    Column("PSNR", "psnr", "number"),
    Column("SSIM", "ssim", "number"),
    Column("MS-SSIM", "ms_ssim", "number"),
]


class Recompressed:
    """What became of the images at each quality. Printing it shows a table.

    Attributes
    ----------
    variants
        Of each quality: `encoding`, `images`, which were `encoded`, `copied` or `reused`, `bytes_in`, `bytes_out`, `ratio`, `bits_per_pixel`, and means
        of `encode_seconds`, `psnr`, `ssim` and `ms_ssim` (the last three with `metrics=True`).
    images
        The same of every image at every quality (of a data set none), with `key`, `outcome`, `source_quality`, `source_quality_exact`, `width` and `height`.
    folders
        The folder of each quality, by its encoding.
    others
        How many files that are not images were copied to each folder.
    skipped
        How many images were left out.
    skipped_samples
        Which: `key`, `reason` and `samples`.
    """

    def __init__(self, content: dict[str, Any], output: Path) -> None:
        self.variants: list[dict[str, Any]] = content["variants"]
        self.images: list[dict[str, Any]] = content["images"]
        self.others: int = content["others"]
        self.skipped: int = content["skipped"]
        self.skipped_samples: list[dict[str, Any]] = content["skipped_samples"]
        self.folders = {variant["encoding"]: str(output / variant["encoding"]) for variant in self.variants}

    def to_pandas(self) -> pandas.DataFrame:
        """Return every image at every quality as a data frame indexed by encoding and key. Requires pandas."""
        return as_frame(self.images, ["encoding", "key"])

    def __repr__(self) -> str:
        return as_text(self._columns(), self._rows(), None)

    def _repr_html_(self) -> str:
        return as_html(f"{len(self.images):,} images", self._columns(), self._rows(), None)

    def _rows(self) -> list[dict[str, Any]]:
        return [{"name": variant["encoding"], **variant} for variant in self.variants]

    def _columns(self) -> list[Column]:
        """Those that say something of some row."""
        return [column for column in _COLUMNS if any(column.cell(row) != "-" for row in self._rows())]


@hinted
def recompress(
    input: str | os.PathLike[str] | Dataset,
    output: str | os.PathLike[str],
    *,
    quality: int | Iterable[int],
    format: Literal["jpeg", "webp"] = "jpeg",
    verify: bool = False,
    metrics: bool = False,
    threads: int | None = None,
    memory: int | str | None = None,
    overwrite: bool = False,
    on_error: Literal["fail", "skip"] = "fail",
    progress: bool | None = None,
) -> Recompressed:
    """Write a folder of images, or a data set built by Forebay, at lower qualities, each to a separate folder: `output/jpeg-75`.

    Quality is never raised: a JPEG that has the requested quality or a lower one is copied. EXIF data and color profiles stay with their
    image, and files that are not images are copied. Existing files are kept, so that an interrupted run can be repeated. Of a data set each quality
    becomes a data set, with all other fields as they are.

    Parameters
    ----------
    input, output
        Folder of images or of a data set, and folder to write.
    quality
        Qualities from 1 to 100: one, or several.
    format
        `"jpeg"`, which everything decodes, or `"webp"`, which is smaller.
    verify
        Read every output back: images must decode, copies must be identical.
    metrics
        Compare every output with its input: PSNR, SSIM, MS-SSIM. Not for data sets.
    overwrite
        Replace existing files.
    threads, memory, on_error, progress
        As for `build`.

    Examples
    --------
    >>> done = forebay.recompress("photos/", "smaller/", quality=[75, 50], metrics=True)
    >>> print(done)
    >>> loader = forebay.Loader("imagenet", data=done.folders["jpeg-75"])
    """
    if format not in ("jpeg", "webp"):
        raise UsageError(f"`format` is `{format}`, but must be `jpeg` or `webp`")
    folder = input.path if isinstance(input, Dataset) else os.fspath(input)
    if not os.path.exists(folder):
        raise MissingFileError(f"there is no folder `{folder}`\nhint: check the path", path=folder)
    if not os.path.isdir(folder):
        raise UsageError(f"`{folder}` is a file, and a folder is needed")
    qualities = [quality] if not isinstance(quality, Iterable) else list(quality)
    if not qualities:
        raise UsageError("`quality` is empty\nhint: pass qualities from 1 to 100, e.g. [75, 50]")
    text = _native.recompress(
        {
            "input": folder,
            "output": os.fspath(output),
            "format": format,
            "quality": [integer("quality", one, 1, 100) for one in qualities],
            "verify": flag("verify", verify),
            "metrics": flag("metrics", metrics),
            "overwrite": flag("overwrite", overwrite),
            "threads": integer("threads", cores() if threads is None else threads, 1, THREADS_MAX),
            "skip_errors": _skips(on_error),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
        },
        listener(progress),
    )
    return Recompressed(json.loads(text), Path(output))
