"""A loader as PyTorch's `IterableDataset`, for code that wants one. Needs PyTorch.

Most code does not: a `Loader` with `framework="torch"` is an iterable of batches already, has its own threads, and
hands over tensors without copying. If you need a `torch.utils.data.DataLoader`, use it like this::

    dataset = forebay.torch.IterableDataset(loader)
    batches = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)
    for epoch in range(3):
        dataset.set_epoch(epoch)
        for batch in batches: ...

`batch_size=None` leaves the batches as they are. Each worker process then runs a loader of its own on its share of the
samples, so workers multiply with the loader's threads; what they send to the main process is copied through shared memory.
What workers do, the main process does not see: call `set_epoch` before each epoch, or every epoch is the same, and save and
resume with `num_workers=0` or with the loader itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch.utils.data

from ._errors import UsageError
from ._loader import Loader

__all__ = ["IterableDataset"]


class IterableDataset(torch.utils.data.IterableDataset[dict[str, Any]]):
    """The batches of a loader. In a worker process, the worker's share of the loader's rank."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader
        # How often `set_epoch` was called, and with what: in memory that workers share, since those that live on from epoch to
        # epoch must hear of the next one.
        self._told = torch.zeros(2, dtype=torch.int64).share_memory_()
        self._heard = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            yield from self.loader
            return
        calls, epoch = self._told.tolist()
        if calls != self._heard:
            # After this process began.
            self.loader.set_epoch(epoch)
            self._heard = calls
        if self.loader._begins_within_an_epoch():
            raise UsageError(
                "the loader is in the middle of an epoch, which several workers cannot share\n"
                "hint: resume with num_workers=0, or iterate over the loader itself; it has its own threads"
            )
        yield from self.loader._share(worker.id, worker.num_workers)

    def set_epoch(self, epoch: int) -> None:
        """Start the next iteration with this epoch, in every worker."""
        self.loader.set_epoch(epoch)
        self._heard += 1
        self._told[1] = epoch
        self._told[0] = self._heard
