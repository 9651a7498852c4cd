"""kornia-rs: its decoders, and its fused resize and normalize under a pool of threads (it has no loader)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import DEVIATION, MEAN, SIZE, Configuration, Pass, Peer, Work, bare_decoder, thread_pool_batches
from kernels import center, random_box, resized, stack


def random_crop(path: Path) -> Any:
    import random

    from kornia_rs import imgproc, io, pipeline

    picture = io.decode_image_jpegturbo(path.read_bytes(), "rgb")
    left, top, width, height = random_box(picture.shape[1], picture.shape[0])
    picture = imgproc.crop(picture, left, top, width, height)
    if random.random() < 0.5:
        picture = imgproc.horizontal_flip(picture)
    return pipeline.resize_normalize_to_tensor(picture, (SIZE, SIZE), MEAN, DEVIATION)


def center_crop(path: Path) -> Any:
    from kornia_rs import io, pipeline

    picture = io.decode_image_jpegturbo(path.read_bytes(), "rgb")
    width, height = resized(picture.shape[1], picture.shape[0])
    left, top = center(width, height)
    made = pipeline.resize_normalize_to_tensor(picture, (height, width), MEAN, DEVIATION)
    return made[:, top : top + SIZE, left : left + SIZE]


def open_thread_pool(work: Work) -> Pass:
    return thread_pool_batches(center_crop if work.deterministic else random_crop, work.files(), stack)


def turbo_decoder() -> Callable[[bytes], Any]:
    from kornia_rs import io

    return lambda data: io.decode_image_jpegturbo(data, "rgb")


def zune_decoder() -> Callable[[bytes], Any]:
    from kornia_rs import io

    return lambda data: io.decode_image_jpeg(data)


def png_decoder() -> Callable[[bytes], Any]:
    from kornia_rs.image import Image

    return lambda data: Image.decode(data).numpy()


PEER = Peer(
    name="kornia-rs",
    packages=("kornia-rs",),
    reported=("kornia-rs",),
    configurations=(
        Configuration("kornia-rs, thread pool", "full", open_thread_pool),
        bare_decoder("kornia-rs, libjpeg-turbo", "decode", turbo_decoder),
        bare_decoder("kornia-rs, zune-jpeg", "decode", zune_decoder),
        bare_decoder("kornia-rs", "png", png_decoder),
    ),
)
