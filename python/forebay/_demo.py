"""Data that is made from a seed, so that trying something out needs no download."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from . import _native
from ._arguments import integer
from ._progress import listener

__all__ = ["DemoData", "demo_data"]


@dataclass(frozen=True)
class DemoData:
    """Generated data. Load it with `forebay.Loader(made.pipeline, data=made.data)`."""

    #: The folder of the files.
    data: Path
    #: The pipeline for them: a preset's name, or the path of a file.
    pipeline: str


def demo_data(
    domain: str,
    folder: str | os.PathLike[str],
    *,
    samples: int | None = None,
    seed: int = 1,
    progress: bool | None = None,
) -> DemoData:
    """Generate small files of a domain in `folder`.

    Domains are `"cv"` (photos), `"cv2-jpg"` and `"cv2-png"` (large photos), `"nlp"` (web pages), `"flac"` and `"mp3"` (speech),
    `"nilm"` (mains voltage and current), and `"synthetic"` (tensors). The same seed gives the same files. Existing files are an
    error.
    """
    count = None if samples is None else integer("samples", samples, 1, 100_000)
    made = _native.demo_data(domain, os.fspath(folder), count, integer("seed", seed, 0, (1 << 64) - 1), listener(progress))
    return DemoData(Path(made[0]), made[1])
