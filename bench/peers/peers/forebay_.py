"""Forebay: its loader on plain files, on L3, and on a data set of decoded pixels; and its hand-over to PyTorch."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from common import (
    AREA,
    BATCH,
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
    bare_decoder,
)

KINDS = {"jpeg": "**/*.jpg", "png": "**/*.png", "l3-fast": "**/*.l3", "l3-dense": "**/*.l3"}


def full_pipeline(deterministic: bool) -> Any:
    import forebay

    decoded = forebay.Pipeline.files("**/*.jpg", order="sorted").decode()
    cut = (
        decoded.resize(SHORTER_SIDE).center_crop(SIZE)
        if deterministic
        else decoded.random_resized_crop(SIZE, scale=AREA, ratio=RATIO).random_horizontal_flip()
    )
    return cut.normalize().to_chw()


def passes(loader: Any, work: Work, kind: str) -> Pass:
    places = {path.relative_to(work.data / kind).as_posix(): number for number, path in enumerate(work.files(kind))}

    def one_pass() -> Iterator[Batch]:
        for batch in loader:
            yield [places[key] for key in batch["key"]], batch["image"]

    return one_pass


def open_full(framework: Any, work: Work) -> Pass:
    import forebay

    pipeline = full_pipeline(work.deterministic)
    loader = forebay.Loader(
        pipeline, data=work.data / "jpeg", batch_size=BATCH, shuffle=True, threads=WORKERS, framework=framework
    )
    return passes(loader, work, "jpeg")


def open_whole_crop(work: Work) -> Pass:
    """The random crop, made to take the whole image, so that the very steps of the full work can be compared."""
    import forebay

    decoded = forebay.Pipeline.files("**/*.jpg", order="sorted").decode()
    # No ratio but the image's own fits, and the way out where none was found is the largest that does.
    cut = decoded.random_resized_crop(SIZE, scale=(1.0, 1.0), ratio=RATIO)
    loader = forebay.Loader(cut.normalize().to_chw(), data=work.data / "jpeg", batch_size=BATCH, threads=WORKERS)
    return passes(loader, work, "jpeg")


def prepare_decoded(deterministic: bool, work: Work) -> None:
    import forebay

    target = work.prepared / ("checked" if deterministic else "decoded")
    shutil.rmtree(target, ignore_errors=True)
    forebay.build(full_pipeline(deterministic), target, data=work.data / "jpeg", strategy="decoded")


def prepare_both(work: Work) -> None:
    for deterministic in (False, True):
        prepare_decoded(deterministic, work)


def open_decoded(work: Work) -> Pass:
    import forebay

    target = work.prepared / ("checked" if work.deterministic else "decoded")
    loader = forebay.Loader(target, batch_size=BATCH, shuffle=True, threads=WORKERS)
    return passes(loader, work, "jpeg")


def open_decode(kind: str, work: Work) -> Pass:
    import forebay

    pipeline = forebay.Pipeline.files(KINDS[kind], order="sorted", label=None).decode()
    batch = BATCH if kind == "jpeg" else PICTURE_BATCH
    loader = forebay.Loader(pipeline, data=work.data / kind, batch_size=batch, threads=WORKERS)
    return passes(loader, work, kind)


def decoder() -> Callable[[bytes], Any]:
    import forebay

    return forebay.decode  # type: ignore[attr-defined, no-any-return]


def measure_handover(work: Work, seconds: float) -> dict[str, Any]:
    """How much of the loader's time goes into making torch tensors of its batches, and whether they are its memory.

    The loader's own conversion is timed in place, with everything that it does to a batch.
    """
    import forebay._frameworks
    import forebay._iteration
    import numpy

    spent = {"seconds": 0.0, "batches": 0, "shared": 0}
    make_converter = forebay._frameworks.converter

    def timed_converter(framework: str, pin_memory: bool = False) -> Any:
        convert = make_converter(framework, pin_memory)

        def timed(native: dict[str, Any]) -> dict[str, Any]:
            begin = time.perf_counter()
            batch = convert(native)
            spent["seconds"] += time.perf_counter() - begin
            spent["batches"] += 1
            spent["shared"] += batch["image"].data_ptr() == numpy.asarray(native["image"]).ctypes.data
            return batch

        return timed

    forebay._iteration.converter = timed_converter  # type: ignore[attr-defined]
    one_pass = open_full("torch", work)
    for _ in one_pass():
        pass
    spent.update(seconds=0.0, batches=0, shared=0)
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in one_pass():
            pass
    elapsed_seconds = time.perf_counter() - begin
    return {
        "handover_share": spent["seconds"] / elapsed_seconds,
        "handover_microseconds": 1e6 * spent["seconds"] / spent["batches"],
        "batches": spent["batches"],
        "batches_shared": spent["shared"],
    }


PEER = Peer(
    name="forebay",
    reported=("forebay",),
    configurations=(
        Configuration("Forebay", "full", partial(open_full, "numpy")),
        Configuration("Forebay, torch tensors", "full", partial(open_full, "torch")),
        Configuration("Forebay, decoded data set", "raw", open_decoded, prepare_both),
        Configuration("Forebay, loader", "decode", partial(open_decode, "jpeg")),
        bare_decoder("Forebay, decoder alone", "decode", decoder),
        Configuration("Forebay, loader", "png", partial(open_decode, "png")),
        Configuration("Forebay, L3 fast", "l3", partial(open_decode, "l3-fast")),
        Configuration("Forebay, L3 dense", "l3", partial(open_decode, "l3-dense")),
        Configuration("Forebay, torch tensors", "handover", partial(open_full, "torch"), measure=measure_handover),
        Configuration("Forebay", "crop", open_whole_crop),
    ),
)
