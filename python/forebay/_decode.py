"""Decoding of a single image."""

from __future__ import annotations

from typing import Any, Literal

import numpy

from . import _native

__all__ = ["decode"]


def decode(
    data: bytes | bytearray | memoryview, *, color: Literal["rgb", "gray", "stored"] = "rgb"
) -> numpy.ndarray[Any, Any]:
    """Decode an image of any supported format to an array `[height, width, channels]`, rotated according to EXIF.

    The GIL is released while decoding. For many images, a `Loader` is faster.
    """
    return numpy.asarray(_native.decode(bytes(data), color))
