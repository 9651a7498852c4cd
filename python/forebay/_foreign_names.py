"""Arguments that other libraries have are answered with what they are here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from . import _native

__all__ = ["hinted"]

P = ParamSpec("P")
R = TypeVar("R")


def hinted(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose `TypeError` about an unknown argument has a hint: `num_workers` is `threads` here."""
    arguments = list(inspect.signature(function).parameters)
    name = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> R:
        for argument in named.keys() - arguments:
            hint = _native.meant_argument(argument, arguments)
            if hint is not None:
                raise TypeError(f"{name}() got an unexpected keyword argument `{argument}`\nhint: {hint}")
        return function(*given, **named)

    return called
