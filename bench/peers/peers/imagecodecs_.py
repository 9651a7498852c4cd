"""imagecodecs: decoders alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common import Peer, bare_decoder


def jpeg_decoder() -> Callable[[bytes], Any]:
    import imagecodecs

    return imagecodecs.jpeg8_decode


def png_decoder() -> Callable[[bytes], Any]:
    import imagecodecs

    return imagecodecs.png_decode


def spng_decoder() -> Callable[[bytes], Any]:
    import imagecodecs

    return imagecodecs.spng_decode


PEER = Peer(
    name="imagecodecs",
    packages=("imagecodecs",),
    reported=("imagecodecs",),
    configurations=(
        bare_decoder("imagecodecs", "decode", jpeg_decoder),
        bare_decoder("imagecodecs", "png", png_decoder),
        bare_decoder("imagecodecs, libspng", "png", spng_decoder),
    ),
)
