"""Decoders alone that come with the shared environment: simplejpeg, OpenCV, Pillow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common import Peer, bare_decoder


def simplejpeg_decoder() -> Callable[[bytes], Any]:
    import simplejpeg

    return lambda data: simplejpeg.decode_jpeg(data, "RGB")


def simplejpeg_fast_decoder() -> Callable[[bytes], Any]:
    import simplejpeg

    return lambda data: simplejpeg.decode_jpeg(data, "RGB", fastdct=True, fastupsample=True)


def opencv_decoder() -> Callable[[bytes], Any]:
    import cv2
    import numpy

    cv2.setNumThreads(1)
    return lambda data: cv2.imdecode(numpy.frombuffer(data, numpy.uint8), cv2.IMREAD_COLOR_RGB)


def pillow_decoder() -> Callable[[bytes], Any]:
    import io

    import numpy
    from PIL import Image

    return lambda data: numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


PEER = Peer(
    name="decoders",
    reported=("simplejpeg", "opencv-python-headless", "pillow", "numpy"),
    configurations=(
        bare_decoder("simplejpeg", "decode", simplejpeg_decoder),
        bare_decoder("simplejpeg, fast DCT and upsampling", "decode", simplejpeg_fast_decoder),
        bare_decoder("OpenCV", "decode", opencv_decoder),
        bare_decoder("Pillow", "decode", pillow_decoder),
        bare_decoder("OpenCV", "png", opencv_decoder),
        bare_decoder("Pillow", "png", pillow_decoder),
    ),
)
