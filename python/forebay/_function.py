"""Python functions as steps, and what is known of them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import UsageError

__all__ = ["Parallel", "check_named", "function_name", "given", "with_function"]


@dataclass(frozen=True)
class Parallel:
    """A thread-safe function, whose calls may run concurrently.

    `Pipeline.map(function, parallel=True)` creates one. Use it where functions are passed by name, for a data set or a plan loaded
    from a file: `functions={"noise": forebay.Parallel(noise)}`. Pipeline files, plans and data sets only store the name of a
    function, not whether it is thread-safe.
    """

    function: Callable[..., Any]

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)


def function_name(function: Callable[..., Any]) -> str:
    """What a step is called that calls `function`."""
    while isinstance(function, Parallel | functools.partial):
        function = function.function if isinstance(function, Parallel) else function.func
    name = getattr(function, "__name__", type(function).__name__)
    return re.sub(r"[^A-Za-z0-9_-]", "", name) or "function"


def with_function(
    functions: Mapping[str, Callable[..., Any]], name: str, function: Callable[..., Any]
) -> dict[str, Callable[..., Any]]:
    """The functions and one more, which must not be mistaken for another."""
    if not callable(function):
        raise UsageError(f"`{function!r}` is not callable\nhint: pass a function of the values of a sample")
    if functions.get(name, function) != function:
        raise UsageError(
            f"two functions are named `{name}`\nhint: pass a `name` for one of them"
        )
    return {**functions, name: function}


def check_named(functions: Mapping[str, Callable[..., Any]], pipeline: str) -> None:
    """Refuses a function that nothing in the pipeline, as JSON, calls: its name is wrong, and it would never be called."""
    spec = json.loads(pipeline) if functions else {}
    named = [step["function"] for step in spec.get("step", []) if step.get("op") == "function"]
    labels = spec.get("source", {}).get("function")
    named += [] if labels is None else [labels]
    for name in functions:
        if name not in named:
            there = f"the steps name `{'`, `'.join(named)}`" if named else "no step is a function"
            raise UsageError(f"no step calls the function `{name}`\nhint: {there}")


def given(functions: Mapping[str, Callable[..., Any]]) -> dict[str, tuple[Callable[..., Any], bool]]:
    """The functions as the native module takes them: each with whether it may be called at the same time."""
    checked: dict[str, Callable[..., Any]] = {}
    for name, function in functions.items():
        checked = with_function(checked, name, function)
    return {
        name: (function.function, True) if isinstance(function, Parallel) else (function, False)
        for name, function in checked.items()
    }
