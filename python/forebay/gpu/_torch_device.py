"""PyTorch's GPU, or its CPU under Triton's interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from .._errors import UsageError
from .._frameworks import imported

__all__ = ["TorchDevice"]


class TorchDevice:
    """A device that kernels run on, with a stream of its own: to wait for decoding is not to wait for training."""

    def __init__(self, name: str) -> None:
        self.torch = imported("torch", "torch")
        imported("triton", "forebay[gpu]")
        self.device = self.torch.device(name)
        interpreted = os.environ.get("TRITON_INTERPRET") == "1"
        if self.device.type != "cuda" and not (interpreted and self.device.type == "cpu"):
            raise UsageError(f"`device` is `{name}`, but must be a GPU such as `cuda` or `cuda:1` (which is what PyTorch calls AMD's, too)")
        if self.device.type == "cuda" and not self.torch.cuda.is_available():
            raise UsageError("PyTorch finds no GPU\nhint: install a PyTorch for it, or decode on the CPU")
        self.stream = self.torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    @contextmanager
    def working(self) -> Iterator[None]:
        """What is done within goes to the device's own stream."""
        if self.stream is None:
            yield
            return
        with self.torch.cuda.device(self.device), self.torch.cuda.stream(self.stream):
            yield

    def hand_over(self, images: Any) -> None:
        """The images are used on the current stream from now on: it waits for them, and their memory is not free before that is done."""
        if self.stream is not None:
            current = self.torch.cuda.current_stream(self.device)
            current.wait_stream(self.stream)
            for image in images if isinstance(images, list) else [images]:
                image.record_stream(current)

    def upload(self, array: numpy.ndarray[Any, Any]) -> Any:
        # An empty tensor has no address, and a kernel may not even be given one.
        array = array if array.size else numpy.zeros(1, array.dtype)
        tensor = self.torch.from_numpy(numpy.ascontiguousarray(array))
        return tensor if self.stream is None else tensor.pin_memory().to(self.device, non_blocking=True)

    def as_words(self, data: Any) -> Any:
        return data.view(self.torch.int16)

    def empty(self, count: int, dtype: str) -> Any:
        return self.torch.empty(max(count, 1), dtype=getattr(self.torch, dtype), device=self.device)

    def zeros(self, count: int, dtype: str) -> Any:
        return self.torch.zeros(max(count, 1), dtype=getattr(self.torch, dtype), device=self.device)

    def download(self, tensor: Any) -> numpy.ndarray[Any, Any]:
        found: numpy.ndarray[Any, Any] = tensor.cpu().numpy()
        return found

    def view(self, tensor: Any, start: int, shape: tuple[int, ...]) -> Any:
        count = 1
        for dim in shape:
            count *= dim
        return tensor[start : start + count].view(shape)

    def run(self, kernel: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        from . import _kernels

        # Numbers are to be those of the CPU, which rounds products before it adds.
        getattr(_kernels, kernel)[grid](*arguments, **constants, enable_fp_fusion=False)
