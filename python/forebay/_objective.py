"""What is wanted of a strategy: weights, limits, prices, another machine."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ._arguments import byte_count, duration, integer
from ._errors import UsageError
from ._requests import ObjectiveRequest

__all__ = ["Criterion", "Prices", "Wanted", "WhatIf", "objective"]

#: What a strategy is judged by.
Criterion = Literal["prep", "storage", "throughput", "money"]

_CRITERIA = ("prep", "storage", "throughput", "money")


class WhatIf(TypedDict, total=False):
    """Another machine, trainer or number of samples to plan for. Keys that are not given stay as measured.

    cores: number of cores, each as fast as here.
    read_bytes_per_second: sequential read throughput of the storage.
    files_per_second: source files read per second; by default opening a file takes as long as here.
    latency_seconds: time that an object store takes to answer a request; 32 are under way at a time.
    requests_per_second: requests that an object store answers per second.
    memory_bytes: memory that is available for caching the data set.
    trainer_samples_per_second: samples per second that the trainer can consume.
    samples: number of samples, each like those measured.
    """

    cores: int
    read_bytes_per_second: float
    files_per_second: float
    latency_seconds: float
    requests_per_second: float
    memory_bytes: int
    trainer_samples_per_second: float
    samples: int


class Prices(TypedDict, total=False):
    """Prices in any currency: per core and hour, per GB (10^9 bytes) and month, per hour of the accelerators, and per 1,000 requests to an object store."""

    cpu_hour: float
    gb_month: float
    accelerator_hour: float
    request: float


class Wanted(TypedDict, total=False):
    """The objective of `plan`, `analyze` and `table`.

    weights: weights of `prep` (preparation time), `storage`, `throughput` and `money`, or a single name; only their ratios matter.
        By default `"throughput"`.
    max_storage, max_prep_time: exclude strategies that need more, for the entire data set.
    lossless: exclude strategies that store samples in a lossy encoding.
    trainer: samples per second that the trainer can consume; faster strategies score no better.
    what_if: another machine to predict for, with the cost model.
    prices: prices, required if `money` has a weight; `epochs` and `months` are the number of epochs to pay the accelerators for, and
        of months to pay the storage for.
    """

    weights: Mapping[Criterion, float] | Criterion | None
    max_storage: int | str | None
    max_prep_time: float | str | None
    lossless: bool
    trainer: float | None
    what_if: WhatIf | None
    prices: Prices | None
    epochs: int | None
    months: float | None


def objective(
    *,
    weights: Mapping[Criterion, float] | Criterion | None = None,
    max_storage: int | str | None = None,
    max_prep_time: float | str | None = None,
    lossless: bool = False,
    trainer: float | None = None,
    what_if: WhatIf | None = None,
    prices: Prices | None = None,
    epochs: int | None = None,
    months: float | None = None,
) -> ObjectiveRequest:
    """What is wanted, as the native module takes it."""
    if isinstance(weights, str):
        weights = {weights: 1.0}
    if prices is None and (epochs is not None or months is not None):
        raise UsageError("`epochs` and `months` are what prices are paid for\nhint: pass `prices`")
    if prices is None and weights is not None and weights.get("money"):
        raise UsageError(
            "a weight of `money` requires `prices`\n"
            "hint: pass `prices={'accelerator_hour': 2.5, 'gb_month': 0.02}, epochs=90, months=6`, with your own figures"
        )
    limits = {
        "max_storage_bytes": None if max_storage is None else byte_count("max_storage", max_storage),
        "max_prep_seconds": None if max_prep_time is None else duration("max_prep_time", max_prep_time),
        "lossless": bool(lossless),
    }
    rate = _number("trainer", trainer)
    wanted: dict[str, Any] = {
        "limits": limits,
        "trainer_samples_per_second": rate,
        "what_if": None if what_if is None else _numbers("`what_if`", what_if, tuple(WhatIf.__annotations__)),
        "prices": None if prices is None else _numbers("price", prices, tuple(Prices.__annotations__)),
    }
    if weights is not None:
        wanted["weights"] = dict.fromkeys(_CRITERIA, 0.0) | _numbers("weight", weights, _CRITERIA)
    return {
        "objective": json.dumps(wanted),
        "epochs": None if epochs is None else integer("epochs", epochs, 0, 1 << 62),
        "months": None if months is None else float(months),
    }


def _numbers(what: str, given: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """What was given by name, where there may be only these."""
    for name in given:
        if name not in names:
            raise UsageError(f"unknown {what} `{name}`\nhint: expected `{'`, `'.join(names)}`")
    return {name: _number(name, value) for name, value in given.items()}


def _number(name: str, value: Any) -> int | float | None:
    """Whole where it is: `80e9` bytes are a count."""
    if value is None:
        return None
    if not isinstance(value, numbers.Real):
        raise UsageError(f"`{name}` is `{value!r}`, but must be a number")
    if isinstance(value, numbers.Integral):
        return int(value)
    number = float(value)
    return int(number) if number.is_integer() else number
