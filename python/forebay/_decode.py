"""One picture, decoded."""

from __future__ import annotations

from typing import Any, Literal

import numpy

from . import _native

__all__ = ["decode"]


def decode(
    data: bytes | bytearray | memoryview, *, colour: Literal["rgb", "grey", "stored"] = "rgb"
) -> numpy.ndarray[Any, Any]:
    """The picture in `data`, of any known format, as an array `[height, width, channels]`, turned upright as EXIF says.

    Python is free meanwhile, so that threads decode at the same time. For many pictures a `Loader` is faster.
    """
    return numpy.asarray(_native.decode(bytes(data), colour))
