"""What is wanted of a strategy: weights, limits, prices, another machine."""

from __future__ import annotations

import json
import numbers
from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ._arguments import whole
from ._errors import UsageError
from ._requests import ObjectiveRequest

__all__ = ["Criterion", "Prices", "Wanted", "WhatIf", "objective"]

#: What a strategy is judged by.
Criterion = Literal["prep", "storage", "throughput", "money"]

_CRITERIA = ("prep", "storage", "throughput", "money")


class WhatIf(TypedDict, total=False):
    """Another machine, trainer or amount of data to plan for. What is left out is as it was measured.

    cores: how many, each as fast as those here.
    read_bytes_per_second: how fast the storage reads large blocks in order.
    files_per_second: how many whole source files it reads; unless given, opening one takes as long as here.
    memory_bytes: how much memory there is to cache the data set in.
    trainer_samples_per_second: how many samples the trainer takes.
    samples: how many the data set has, each like those measured.
    """

    cores: int
    read_bytes_per_second: float
    files_per_second: float
    memory_bytes: int
    trainer_samples_per_second: float
    samples: int


class Prices(TypedDict, total=False):
    """What things cost, in any currency: an hour of a core, a month of a GB (10^9 bytes), an hour of the accelerators."""

    cpu_hour: float
    gb_month: float
    accelerator_hour: float


class Wanted(TypedDict, total=False):
    """What `plan`, `analyse` and `table` take.

    weights: how much `prep` (little time to prepare), `storage`, `throughput` and `money` count; only their ratios matter. The
        name of one for that one alone. Throughput alone unless given.
    storage_bytes_max, prep_seconds_max: rule out strategies that need more, for the whole data set.
    lossless: rule out strategies that keep a lossy encoding of what the pipeline computes.
    trainer_samples_per_second: how much the trainer takes; more counts for nothing.
    what_if: another machine to plan for, by the cost model.
    prices: what things cost. Needed where money counts; `epochs` says for how many the accelerators are paid, `months` for how
        long the storage is.
    """

    weights: Mapping[Criterion, float] | Criterion | None
    storage_bytes_max: int | None
    prep_seconds_max: float | None
    lossless: bool
    trainer_samples_per_second: float | None
    what_if: WhatIf | None
    prices: Prices | None
    epochs: int | None
    months: float | None


def objective(
    *,
    weights: Mapping[Criterion, float] | Criterion | None = None,
    storage_bytes_max: int | None = None,
    prep_seconds_max: float | None = None,
    lossless: bool = False,
    trainer_samples_per_second: float | None = None,
    what_if: WhatIf | None = None,
    prices: Prices | None = None,
    epochs: int | None = None,
    months: float | None = None,
) -> ObjectiveRequest:
    """What is wanted, as the native module takes it."""
    if isinstance(weights, str):
        weights = {weights: 1.0}
    if prices is None and (epochs is not None or months is not None):
        raise UsageError("`epochs` and `months` say for how long prices are paid, and there are none\nhint: pass `prices`")
    if prices is None and weights is not None and weights.get("money"):
        raise UsageError(
            "where money counts there must be prices\n"
            "hint: pass `prices={'accelerator_hour': 2.5, 'gb_month': 0.02}, epochs=90, months=6`, with your own figures"
        )
    limits = {
        "storage_bytes_max": _number("storage_bytes_max", storage_bytes_max),
        "prep_seconds_max": _number("prep_seconds_max", prep_seconds_max),
        "lossless": bool(lossless),
    }
    trainer = _number("trainer_samples_per_second", trainer_samples_per_second)
    wanted: dict[str, Any] = {
        "limits": limits,
        "trainer_samples_per_second": trainer,
        "what_if": None if what_if is None else _numbers("`what_if`", what_if, tuple(WhatIf.__annotations__)),
        "prices": None if prices is None else _numbers("price", prices, tuple(Prices.__annotations__)),
    }
    if weights is not None:
        wanted["weights"] = dict.fromkeys(_CRITERIA, 0.0) | _numbers("weight", weights, _CRITERIA)
    return {
        "objective": json.dumps(wanted),
        "epochs": None if epochs is None else whole("epochs", epochs, 0, 1 << 62),
        "months": None if months is None else float(months),
    }


def _numbers(what: str, given: Mapping[Any, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """What was given by name, where there may be only these."""
    for name in given:
        if name not in names:
            raise UsageError(f"no {what} `{name}`\nhint: there are `{'`, `'.join(names)}`")
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
