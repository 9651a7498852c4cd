"""FFCV: its own file, with JPEGs that it encodes again and with raw pixels; two threads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from common import (
    AREA,
    BATCH,
    DEVIATION,
    MEAN,
    RATIO,
    SHORTER_SIDE,
    SIZE,
    WORKERS,
    Batch,
    Configuration,
    Pass,
    Peer,
    Work,
)


class Pictures:
    """What its writer reads: an image, and its number for a label."""

    def __init__(self, work: Work) -> None:
        self.files = work.files()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        from PIL import Image

        return Image.open(self.files[number]).convert("RGB"), number


def prepare(mode: str, work: Work) -> None:
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter

    fields = {"image": RGBImageField(write_mode=mode, jpeg_quality=90), "number": IntField()}
    writer = DatasetWriter(str(work.prepared / f"{mode}.beton"), fields, num_workers=WORKERS)
    writer.from_indexed_dataset(Pictures(work))


def open_loader(mode: str, channels_last: bool, work: Work) -> Pass:
    import numpy
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage

    cut = (
        [CenterCropRGBImageDecoder((SIZE, SIZE), ratio=SIZE / SHORTER_SIDE)]
        if work.deterministic
        else [RandomResizedCropRGBImageDecoder((SIZE, SIZE), AREA, RATIO), RandomHorizontalFlip()]
    )
    normalize = NormalizeImage(numpy.array(MEAN) * 255, numpy.array(DEVIATION) * 255, numpy.float32)
    loader = Loader(
        str(work.prepared / f"{mode}.beton"),
        batch_size=BATCH,
        num_workers=WORKERS,
        order=OrderOption.SEQUENTIAL if work.deterministic else OrderOption.RANDOM,
        os_cache=True,
        pipelines={
            "image": [*cut, normalize, ToTensor(), ToTorchImage(channels_last=channels_last)],
            "number": [IntDecoder(), ToTensor()],
        },
    )

    def one_pass() -> Iterator[Batch]:
        for images, numbers in loader:
            yield numbers.ravel(), images

    return one_pass


def configuration(name: str, task: str, mode: str, channels_last: bool) -> Configuration:
    # It can only cut first and resize then, which is other pixels than the other way round.
    return Configuration(name, task, partial(open_loader, mode, channels_last), partial(prepare, mode), reference="cut")


PEER = Peer(
    name="ffcv",
    packages=("ffcv",),
    reported=("ffcv",),
    # It is source only, and its build wants what is installed, PyTorch above all.
    build_packages=("setuptools", "wheel"),
    pip_options=("--no-build-isolation",),
    system_libraries=("opencv4", "libturbojpeg"),
    hint="apt-get install libopencv-dev libturbojpeg0-dev pkg-config",
    configurations=(
        configuration("FFCV jpg", "full", "jpg", channels_last=False),
        configuration("FFCV jpg, channels last in memory", "full", "jpg", channels_last=True),
        configuration("FFCV raw", "raw", "raw", channels_last=False),
        configuration("FFCV raw, channels last in memory", "raw", "raw", channels_last=True),
    ),
)
