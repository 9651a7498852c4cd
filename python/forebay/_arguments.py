"""Arguments as they must be, or an error that says how."""

from __future__ import annotations

import operator
import os
from typing import Any

from . import _native
from ._errors import UsageError

__all__ = ["THREADS_MAX", "byte_count", "cache_policy", "cores", "duration", "flag", "integer", "needs", "number"]

THREADS_MAX = 1024


def integer(name: str, value: Any, least: int, most: int) -> int:
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    # True is a number to Python, and here a mistake.
    if found is None or isinstance(value, bool):
        raise UsageError(f"`{name}` is `{value!r}`, but must be an integer")
    if not least <= found <= most:
        raise UsageError(f"`{name}` is `{found}`, but must be from {least} to {most}")
    return found


def flag(name: str, value: Any) -> bool:
    # `"no"` would be true. NumPy has a type of its own.
    if type(value).__name__ not in ("bool", "bool_"):
        raise UsageError(f"`{name}` is `{value!r}`, but must be True or False")
    return bool(value)


def needs(name: str, value: Any, condition: bool, *others: str) -> None:
    """Refuses an argument that would have no effect: `value` was given, but not what it goes with, which is one of `others`."""
    if value is not None and not condition:
        other = " or ".join(f"`{other}`" for other in others)
        raise UsageError(f"`{name}` has no effect without {other}\nhint: pass {other}, or leave `{name}` out")


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(f"`{name}` is `{value!r}`, but must be a number") from None


def seconds(name: str, value: Any) -> float:
    """A time, up to an hour."""
    found = number(name, value)
    if not 0 <= found <= 3600:
        raise UsageError(f"`{name}` is `{value!r}`, but must be from 0 to 3600")
    return found


def byte_count(name: str, value: Any) -> int:
    """A number of bytes, also as a text: `2GB`, `512MiB`."""
    if value is None:
        return 0
    if isinstance(value, str):
        try:
            value = _native.parse_bytes(value)
        except ValueError as error:
            raise UsageError(f"`{name}` is `{value}`, but must be a number of bytes\nhint: {error}") from None
    return integer(name, value, 0, 1 << 62)


def cache_policy(value: Any) -> tuple[str, int]:
    """What is cached between epochs, in the engine's notation (`liquid:4000000000`), and its budget."""
    if value is None:
        value = "page"
    if not isinstance(value, str):
        value = str(byte_count("cache", value))
    try:
        return _native.parse_cache(value)
    except ValueError as error:
        raise UsageError(f"`cache` is `{value}`: {error}") from None


def duration(name: str, value: Any) -> float:
    """A time in seconds, also as a text: `2h`, `1h30min`."""
    if isinstance(value, str):
        try:
            return _native.parse_seconds(value)
        except ValueError as error:
            raise UsageError(f"`{name}` is `{value}`, but must be a time\nhint: {error}") from None
    found = number(name, value)
    if not found >= 0:
        raise UsageError(f"`{name}` is `{value!r}`, but must be a number of 0 or more")
    return found


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
