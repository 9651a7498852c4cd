"""What Python functions do to one image, for the loaders that leave that to their user.

`fast` is simplejpeg, OpenCV and NumPy; `tvio` torchvision's own decoder and its transforms on tensors; `pil` the
textbook way, Pillow and torchvision. Each takes the bytes of a JPEG and gives a float32 CHW array or tensor.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import Any

from common import AREA, DEVIATION, MEAN, RATIO, SHORTER_SIDE, SIZE

Kernel = Callable[[bytes], Any]


def kernel(name: str, deterministic: bool) -> Kernel:
    """The function of this name. A plain function of this module, so that it can be sent to other processes."""
    return _KERNELS[name, deterministic]


def stack(pictures: list[Any]) -> Any:
    """A batch of what `fast` makes."""
    import numpy

    return numpy.stack(pictures)


def random_box(width: int, height: int) -> tuple[int, int, int, int]:
    """A random crop as torchvision draws it: left, top, width, height."""
    area = width * height
    low, high = math.log(RATIO[0]), math.log(RATIO[1])
    for _ in range(10):
        target = area * random.uniform(*AREA)
        ratio = math.exp(random.uniform(low, high))
        box_width = round(math.sqrt(target * ratio))
        box_height = round(math.sqrt(target / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            left, top = random.randint(0, width - box_width), random.randint(0, height - box_height)
            return left, top, box_width, box_height
    box_width, box_height = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (width - box_width) // 2, (height - box_height) // 2, box_width, box_height


def resized(width: int, height: int) -> tuple[int, int]:
    """The size with the shorter side at `SHORTER_SIDE`, rounded as torchvision does."""
    shorter = min(width, height)
    return int(SHORTER_SIDE * width / shorter), int(SHORTER_SIDE * height / shorter)


def center(width: int, height: int) -> tuple[int, int]:
    """Left and top of the center crop, rounded as torchvision does."""
    return round((width - SIZE) / 2), round((height - SIZE) / 2)


@cache
def normalize_tables() -> Any:
    """For each channel, what each of the 256 values becomes."""
    import numpy

    values = numpy.arange(256, dtype=numpy.float32) / 255
    return numpy.stack([(values - mean) / deviation for mean, deviation in zip(MEAN, DEVIATION, strict=True)])


def normalize_chw(picture: Any) -> Any:
    """uint8 HWC to normalized float32 CHW, by table: of what NumPy and OpenCV have, the fastest."""
    import numpy

    cv2 = _opencv()
    tables = normalize_tables()
    made = numpy.empty((3, *picture.shape[:2]), numpy.float32)
    for channel, plane in enumerate(cv2.split(picture)):
        cv2.LUT(plane, tables[channel], dst=made[channel])
    return made


@cache
def _opencv() -> Any:
    import cv2

    cv2.setNumThreads(1)
    return cv2


def cut_and_resize(picture: Any) -> Any:
    """The random half of the work on decoded pixels: crop, resize and flip with OpenCV."""
    cv2 = _opencv()
    left, top, width, height = random_box(picture.shape[1], picture.shape[0])
    picture = cv2.resize(picture[top : top + height, left : left + width], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
    return cv2.flip(picture, 1) if random.random() < 0.5 else picture


def resize_and_cut(picture: Any) -> Any:
    """The deterministic variant of it."""
    cv2 = _opencv()
    width, height = resized(picture.shape[1], picture.shape[0])
    left, top = center(width, height)
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR)[top : top + SIZE, left : left + SIZE]


def fast(data: bytes) -> Any:
    import simplejpeg

    return normalize_chw(cut_and_resize(simplejpeg.decode_jpeg(data, "RGB")))


def fast_deterministic(data: bytes) -> Any:
    import simplejpeg

    return normalize_chw(resize_and_cut(simplejpeg.decode_jpeg(data, "RGB")))


@cache
def _transforms(deterministic: bool) -> Any:
    import torch
    from torchvision.transforms import v2

    cut = (
        [v2.Resize(SHORTER_SIDE, antialias=True), v2.CenterCrop(SIZE)]
        if deterministic
        else [v2.RandomResizedCrop(SIZE, AREA, RATIO, antialias=True), v2.RandomHorizontalFlip()]
    )
    return v2.Compose([*cut, v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])


def _tvio(data: bytes, deterministic: bool) -> Any:
    import numpy
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    encoded = torch.from_numpy(numpy.frombuffer(bytearray(data), numpy.uint8))
    return _transforms(deterministic)(decode_jpeg(encoded, ImageReadMode.RGB)).as_subclass(torch.Tensor)


def tvio(data: bytes) -> Any:
    return _tvio(data, deterministic=False)


def tvio_deterministic(data: bytes) -> Any:
    return _tvio(data, deterministic=True)


def _pil(data: bytes, deterministic: bool) -> Any:
    import io

    import torch
    from PIL import Image

    return _transforms(deterministic)(Image.open(io.BytesIO(data)).convert("RGB")).as_subclass(torch.Tensor)


def pil(data: bytes) -> Any:
    return _pil(data, deterministic=False)


def pil_deterministic(data: bytes) -> Any:
    return _pil(data, deterministic=True)


_KERNELS: dict[tuple[str, bool], Kernel] = {
    ("fast", False): fast,
    ("fast", True): fast_deterministic,
    ("tvio", False): tvio,
    ("tvio", True): tvio_deterministic,
    ("pil", False): pil,
    ("pil", True): pil_deterministic,
}
