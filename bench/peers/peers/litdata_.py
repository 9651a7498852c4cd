"""LitData: optimized chunks and its own loader, two worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import kernel


def sample(item: tuple[int, str]) -> dict[str, Any]:
    number, path = item
    return {"image": Path(path).read_bytes(), "number": number}


def prepare(work: Work) -> None:
    import litdata

    inputs = [(number, str(path)) for number, path in enumerate(work.files())]
    litdata.optimize(sample, inputs, str(work.prepared / "chunks"), chunk_bytes="16MB", num_workers=1, mode="overwrite")


def transformed(transform: Any, item: dict[str, Any]) -> tuple[Any, int]:
    return transform(item["image"]), item["number"]


def open_loader(work: Work) -> Pass:
    import litdata

    pictures = litdata.StreamingDataset(
        str(work.prepared / "chunks"),
        shuffle=not work.deterministic,
        transform=partial(transformed, kernel("fast", work.deterministic)),
    )
    loader = litdata.StreamingDataLoader(pictures, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True)

    def one_pass() -> Iterator[Batch]:
        for images, numbers in loader:
            yield numbers, images

    return one_pass


PEER = Peer(
    name="litdata",
    packages=("litdata",),
    reported=("litdata",),
    configurations=(Configuration("LitData + fast", "full", open_loader, prepare),),
)
