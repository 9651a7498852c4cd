"""A loader as PyTorch's `IterableDataset`, for code that wants one. Needs PyTorch.

Most code does not: a `Loader` with `framework="torch"` is an iterable of batches already, has its own threads, and
hands tensors over without a copy. Where a `torch.utils.data.DataLoader` must be, use it so::

    dataset = forebay.torch.IterableDataset(loader)
    for batch in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2): ...

`batch_size=None` leaves the batches as they are. Each worker process then runs a loader of its own on its share of the
samples, so workers multiply with the loader's threads; what they send to the main process is copied through shared memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch.utils.data

from ._loader import Loader

__all__ = ["IterableDataset"]


class IterableDataset(torch.utils.data.IterableDataset[dict[str, Any]]):
    """The batches of a loader. In a worker process, the batches of that worker's share of the loader's rank."""

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self.loader = loader

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = torch.utils.data.get_worker_info()
        if worker is None:
            yield from self.loader
            return
        share = copy.copy(self.loader)
        share.rank = self.loader.rank * worker.num_workers + worker.id
        share.world_size = self.loader.world_size * worker.num_workers
        yield from share

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins with this epoch."""
        self.loader.set_epoch(epoch)
