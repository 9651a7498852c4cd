"""NVIDIA DALI on the CPU: its file reader, fused decode and crop, and both ways out (its own memory, torch tensors)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from common import (
    AREA,
    BATCH,
    DEVIATION,
    MEAN,
    PICTURE_BATCH,
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


def build_full(work: Work, quick: bool) -> Any:
    """The full work. `quick` takes the faster DCT, and resizes without antialiasing."""
    from nvidia.dali import fn, pipeline_def, types

    files = [str(path) for path in work.files()]

    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None)
    def pipeline() -> Any:
        encoded, numbers = fn.readers.file(
            files=files, labels=list(range(len(files))), random_shuffle=not work.deterministic, name="reader"
        )
        if work.deterministic:
            images = fn.decoders.image(encoded, output_type=types.RGB, use_fast_idct=quick)
            images = fn.resize(images, resize_shorter=SHORTER_SIDE, antialias=not quick)
            mirror: Any = 0
        else:
            images = fn.decoders.image_random_crop(
                encoded, output_type=types.RGB, random_area=AREA, random_aspect_ratio=RATIO, use_fast_idct=quick
            )
            images = fn.resize(images, resize_x=SIZE, resize_y=SIZE, antialias=not quick)
            mirror = fn.random.coin_flip()
        images = fn.crop_mirror_normalize(
            images,
            crop=(SIZE, SIZE),
            # DALI rounds half a pixel up where torchvision rounds it to the even one.
            crop_pos_x=0.499,
            crop_pos_y=0.499,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * value for value in MEAN],
            std=[255 * value for value in DEVIATION],
            mirror=mirror,
        )
        return images, numbers

    built = pipeline()
    built.build()
    return built


def build_decode(work: Work, kind: str, quick: bool) -> Any:
    from nvidia.dali import fn, pipeline_def, types

    files = [str(path) for path in work.files(kind)]

    @pipeline_def(batch_size=BATCH if kind == "jpeg" else PICTURE_BATCH, num_threads=WORKERS, device_id=None)
    def pipeline() -> Any:
        encoded, numbers = fn.readers.file(files=files, labels=list(range(len(files))), name="reader")
        return fn.decoders.image(encoded, output_type=types.RGB, use_fast_idct=quick), numbers

    built = pipeline()
    built.build()
    return built


def array(batch: Any) -> Any:
    """A view of a batch, without a copy."""
    import numpy

    return numpy.asarray(batch.as_tensor())


def places(numbers: Any) -> list[int]:
    return [int(number) for number in array(numbers).ravel()]


def open_full(quick: bool, work: Work) -> Pass:
    pipeline = build_full(work, quick)
    rounds = -(-len(work.files()) // BATCH)

    def one_pass() -> Iterator[Batch]:
        # The reader begins anew by itself: a pass is full batches only.
        for _ in range(rounds):
            images, numbers = pipeline.run()
            yield places(numbers), array(images)

    return one_pass


def open_torch(work: Work) -> Pass:
    from nvidia.dali.plugin.base_iterator import LastBatchPolicy
    from nvidia.dali.plugin.pytorch import DALIGenericIterator

    iterator = DALIGenericIterator(
        [build_full(work, quick=False)],
        ["image", "number"],
        reader_name="reader",
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )

    def one_pass() -> Iterator[Batch]:
        for (batch,) in iterator:
            yield batch["number"].ravel(), batch["image"]

    return one_pass


def open_decode(kind: str, quick: bool, work: Work) -> Pass:
    import numpy

    pipeline = build_decode(work, kind, quick)
    rounds = -(-len(work.files(kind)) // pipeline.max_batch_size)

    def one_pass() -> Iterator[Batch]:
        for _ in range(rounds):
            images, numbers = pipeline.run()
            yield places(numbers), [numpy.asarray(image) for image in images]

    return one_pass


PEER = Peer(
    name="dali",
    packages=("nvidia-dali-cuda130",),
    reported=("nvidia-dali-cuda130",),
    configurations=(
        Configuration("DALI", "full", partial(open_full, False)),
        Configuration("DALI, fast DCT, no antialias", "full", partial(open_full, True)),
        Configuration("DALI, torch iterator", "full", open_torch),
        Configuration("DALI", "decode", partial(open_decode, "jpeg", False)),
        Configuration("DALI, fast DCT", "decode", partial(open_decode, "jpeg", True)),
        Configuration("DALI", "png", partial(open_decode, "png", False)),
    ),
)
