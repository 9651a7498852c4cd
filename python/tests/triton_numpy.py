"""NumPy's arrays as the tensors that Triton's interpreter wants, which are PyTorch's: so kernels run where PyTorch is not installed."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from typing import Any

import numpy


def quicken() -> None:
    """Two thirds of the interpreter's time go into what does not matter here: it prepares Triton's language again for every function that a kernel
    calls, and checks every sum for overflow (these kernels were run with the checks, too)."""
    from triton.runtime import interpreter

    prepared: set[int] = set()
    run = interpreter.GridExecutor.__call__

    def run_kernel(self: Any, *arguments: Any, **named: Any) -> Any:
        prepared.clear()
        return run(self, *arguments, **named)

    def call_function(self: Any, *arguments: Any, **named: Any) -> Any:
        if id(self.fn.__globals__) not in prepared:
            interpreter._patch_lang(self.fn)
            prepared.add(id(self.fn.__globals__))
        return self.rewrite()(*arguments, **named)

    interpreter.GridExecutor.__call__ = run_kernel
    interpreter.InterpretedFunction.__call__ = call_function
    options = interpreter.interpreter_builder.options
    interpreter.interpreter_builder.options = dataclasses.replace(options, sanitize_overflow=False)


class Storage:
    def __init__(self, array: numpy.ndarray) -> None:  # type: ignore[type-arg]
        self.array = array

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def cpu(self) -> Storage:
        return self

    def copy_(self, other: Storage) -> None:
        assert other.data_ptr() == self.data_ptr()


class Tensor:
    """An array that a kernel may be given."""

    def __init__(self, array: numpy.ndarray) -> None:  # type: ignore[type-arg]
        self.array = array
        self.dtype = array.dtype.name
        self.device = "cpu"

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def untyped_storage(self) -> Storage:
        return Storage(self.array)

    def new_empty(self, *_: Any, **__: Any) -> Tensor:
        return Tensor(self.array)

    def set_(self, storage: Storage, *_: Any) -> None:
        self.array = storage.array

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self.array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


#: So many bytes around each buffer must stay as they are: a store that leaves it is seen. (A load that does reads these.)
GUARD = 4096


class NumpyDevice:
    """The device of `forebay.gpu` under the interpreter. Buffers lie between guards."""

    def __init__(self) -> None:
        self.guarded: list[numpy.ndarray] = []  # type: ignore[type-arg]
        self.kernels: list[str] = []

    def _buffer(self, count: int, dtype: str) -> Tensor:
        size = max(count, 1) * numpy.dtype(dtype).itemsize
        room = numpy.full(size + 2 * GUARD, 0xA5, numpy.uint8)
        self.guarded.append(room)
        return Tensor(room[GUARD : GUARD + size].view(dtype))

    def check(self) -> None:
        """That no kernel wrote beside its buffers."""
        for room in self.guarded:
            assert (room[:GUARD] == 0xA5).all() and (room[-GUARD:] == 0xA5).all()

    def working(self) -> Any:
        return nullcontext()

    def hand_over(self, images: Any) -> None:
        self.check()

    def upload(self, array: numpy.ndarray) -> Tensor:  # type: ignore[type-arg]
        tensor = self._buffer(array.size, array.dtype.name)
        tensor.array[: array.size] = array.reshape(-1)
        return tensor

    def as_words(self, data: Tensor) -> Tensor:
        return Tensor(data.array.view(numpy.int16))

    def empty(self, count: int, dtype: str) -> Tensor:
        return self._buffer(count, dtype)

    def zeros(self, count: int, dtype: str) -> Tensor:
        tensor = self._buffer(count, dtype)
        tensor.array[:] = 0
        return tensor

    def download(self, tensor: Tensor) -> numpy.ndarray:  # type: ignore[type-arg]
        return tensor.array

    def view(self, tensor: Tensor, start: int, shape: tuple[int, ...]) -> Any:
        part = tensor.array[start : start + int(numpy.prod(shape))].reshape(shape)
        # What is given to kernels is flat, what the user gets is not.
        return Tensor(part) if len(shape) == 1 else part

    def run(self, kernel: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        from forebay.gpu import _kernels

        self.kernels.append(kernel)
        getattr(_kernels, kernel)[grid](*arguments, **constants)
