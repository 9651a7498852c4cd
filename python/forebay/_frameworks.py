"""Batches as NumPy, PyTorch or JAX arrays. The frameworks are imported when they are asked for, and not before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy

from . import _native
from ._errors import UsageError

__all__ = ["as_numpy", "converter", "imported"]


def converter(framework: str, pin_memory: bool = False) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What turns a native batch into arrays of `framework`, without copying them unless it is to page-locked memory."""
    convert = _pinned(_array(framework)) if pin_memory else _array(framework)

    def field(value: Any) -> Any:
        if isinstance(value, _native.Array):
            return convert(value)
        if value and isinstance(value, list) and isinstance(value[0], _native.Array):
            return [convert(array) for array in value]
        return value

    return lambda batch: {name: field(value) for name, value in batch.items()}


def as_numpy(array: _native.Array) -> numpy.ndarray[Any, Any]:
    """The same elements as a NumPy array. `bfloat16`, which NumPy lacks, is that of `ml_dtypes`."""
    if array.dtype == "bfloat16":
        return numpy.asarray(array).view(imported("ml_dtypes", "ml_dtypes").bfloat16)
    return numpy.asarray(array)


def _pinned(convert: Callable[[_native.Array], Any]) -> Callable[[_native.Array], Any]:
    """The same, in page-locked memory where PyTorch has a device that reads from there."""
    torch = imported("torch", "torch")
    # Before PyTorch 2.6 there is CUDA alone.
    devices = getattr(torch, "accelerator", torch.cuda)
    if devices.is_available():
        return lambda array: convert(array).pin_memory()
    # What PyTorch's own loader does and says.
    message = "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
    warnings.warn(message, stacklevel=5)
    return convert


def _array(framework: str) -> Callable[[_native.Array], Any]:
    if framework == "numpy":
        return as_numpy
    if framework == "torch":
        torch = imported("torch", "torch")

        def to_torch(array: _native.Array) -> Any:
            # Exact, writable and of the same memory; what PyTorch has no type for (uint16 before 2.3) it refuses itself.
            if array.dtype == "bfloat16":
                return torch.from_numpy(numpy.asarray(array).view(numpy.int16)).view(torch.bfloat16)
            return torch.from_numpy(numpy.asarray(array))

        return to_torch
    if framework == "jax":
        jax = imported("jax", "jax")
        jax_numpy = imported("jax.numpy", "jax")
        wide = jax.config.jax_enable_x64

        def to_jax(native: _native.Array) -> Any:
            array = as_numpy(native)
            # Without its 64-bit mode JAX narrows integers to 32 bit, which DLPack cannot do; nor does NumPy give it bfloat16.
            if native.dtype == "bfloat16" or (array.dtype.itemsize == 8 and not wide):
                return jax_numpy.asarray(array)
            return jax_numpy.from_dlpack(array)

        return to_jax
    raise UsageError(f"no framework `{framework}`\nhint: one of numpy, torch, jax")


def imported(module: str, package: str) -> Any:
    """A module that is not a dependency."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(f"`{package}` cannot be imported: {error}\nhint: install it (pip install {package})") from error
