"""Ray Data: files, two processors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import Kernel, kernel


def transformed(transform: Kernel, numbers: dict[str, int], rows: dict[str, Any]) -> dict[str, Any]:
    import numpy

    return {
        "image": numpy.stack([transform(data) for data in rows["bytes"]]),
        "number": numpy.array([numbers[path] for path in rows["path"]]),
    }


def open_loader(work: Work) -> Pass:
    import logging

    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    numbers = {str(path): number for number, path in enumerate(work.files())}
    step = partial(transformed, kernel("fast", work.deterministic), numbers)

    def one_pass() -> Iterator[Batch]:
        shuffle = None if work.deterministic else "files"
        pictures = ray.data.read_binary_files(list(numbers), include_paths=True, shuffle=shuffle)
        made = pictures.map_batches(step, batch_size=BATCH)
        for batch in made.iter_batches(batch_size=BATCH):
            yield batch["number"], batch["image"]

    return one_pass


PEER = Peer(
    name="ray-data",
    packages=("ray[data]",),
    reported=("ray",),
    configurations=(Configuration("Ray Data + fast", "full", open_loader),),
)
