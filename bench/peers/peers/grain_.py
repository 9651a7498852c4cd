"""Grain: files, with two threads and with two processes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import Kernel, kernel


def load(transform: Kernel, item: tuple[int, str]) -> tuple[int, Any]:
    number, path = item
    return number, transform(Path(path).read_bytes())


def open_loader(processes: bool, work: Work) -> Pass:
    import grain
    from absl import flags

    # Its process pool reads flags, which a program without absl's start never parses.
    flags.FLAGS.mark_as_parsed()
    items = [(number, str(path)) for number, path in enumerate(work.files())]

    def one_pass() -> Iterator[Batch]:
        pictures = grain.MapDataset.source(items)
        if not work.deterministic:
            pictures = pictures.shuffle(seed=1)
        pictures = pictures.map(partial(load, kernel("fast", work.deterministic)))
        threads = 1 if processes else WORKERS
        made = pictures.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=2 * BATCH)).batch(
            BATCH
        )
        if processes:
            made = made.mp_prefetch(grain.MultiprocessingOptions(num_workers=WORKERS))
        yield from made

    return one_pass


PEER = Peer(
    name="grain",
    packages=("grain",),
    reported=("grain",),
    configurations=(
        Configuration("Grain, threads + fast", "full", partial(open_loader, False)),
        Configuration("Grain, processes + fast", "full", partial(open_loader, True)),
    ),
)
