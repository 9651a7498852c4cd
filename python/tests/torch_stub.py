"""As much of PyTorch as `forebay.torch` and `pin_memory` use, where the real one is not installed."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy
import pytest


class Tensor:
    def __init__(self, array: Any, pinned: bool = False) -> None:
        self.array = array
        self.pinned = pinned

    def pin_memory(self) -> Tensor:
        return Tensor(self.array.copy(), pinned=True)

    def is_pinned(self) -> bool:
        return self.pinned

    def numpy(self) -> Any:
        return self.array

    def share_memory_(self) -> Tensor:
        return self

    def tolist(self) -> Any:
        return self.array.tolist()

    def __setitem__(self, place: int, value: int) -> None:
        self.array[place] = value


class Worker:
    def __init__(self, id: int, num_workers: int) -> None:
        self.id, self.num_workers = id, num_workers


def install(monkeypatch: pytest.MonkeyPatch, gpu: bool) -> types.ModuleType:
    torch = types.ModuleType("torch")
    torch.from_numpy = Tensor  # type: ignore[attr-defined]
    torch.int64 = numpy.int64  # type: ignore[attr-defined]
    torch.zeros = lambda size, dtype: Tensor(numpy.zeros(size, dtype))  # type: ignore[attr-defined]
    torch.cuda = types.SimpleNamespace(is_available=lambda: gpu)  # type: ignore[attr-defined]
    utils, data = types.ModuleType("torch.utils"), types.ModuleType("torch.utils.data")
    data.IterableDataset = type("IterableDataset", (), {"__class_getitem__": classmethod(lambda cls, _: cls)})  # type: ignore[attr-defined]
    data.worker = None  # type: ignore[attr-defined]
    data.get_worker_info = lambda: data.worker  # type: ignore[attr-defined]
    torch.utils, utils.data = utils, data  # type: ignore[attr-defined]
    for module in (torch, utils, data):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, "forebay.torch", raising=False)
    return torch
