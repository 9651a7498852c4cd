"""Budgets: which variant of the data, how many epochs and how many samples fit into given time, storage and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from . import _native
from ._arguments import byte_count, duration, integer, needs, number
from ._errors import UsageError
from ._table import Column, as_html, as_text

__all__ = ["Budget", "Variant", "budget"]


@dataclass(frozen=True)
class Variant:
    """A data set in one codec and quality, and what it costs.

    Attributes
    ----------
    name
        Its name, e.g. `"jpeg-50"`.
    bytes
        The size of all samples.
    epoch_seconds
        How long an epoch takes, measured after the first one; None if unknown.
    first_epoch_seconds
        How long the first epoch takes, if longer: nothing is cached yet.
    """

    name: str
    bytes: int
    epoch_seconds: float | None = None
    first_epoch_seconds: float | None = None

    def epochs_in(self, seconds: float, share: float = 1.0) -> int | None:
        """Return the number of complete epochs in `seconds`, of a `share` of the samples; None if the time of an epoch is unknown."""
        if self.epoch_seconds is None:
            return None
        each = self.epoch_seconds * share
        first = each if self.first_epoch_seconds is None else self.first_epoch_seconds * share
        return 0 if seconds < first else 1 + math.floor((seconds - first) / each + 1e-9)

    def seconds_of(self, epochs: int) -> float | None:
        """Return the time that `epochs` take; None if unknown."""
        if self.epoch_seconds is None:
            return None
        first = self.epoch_seconds if self.first_epoch_seconds is None else self.first_epoch_seconds
        return first + (epochs - 1) * self.epoch_seconds


_COLUMNS = [
    Column("variant", "name"),
    Column("storage", "bytes", "bytes"),
    Column("samples that fit", "share", "percent"),
    Column("epochs in time", "epochs_in_time", "number"),
    Column("time of all epochs", "seconds", "seconds"),
    Column("in memory", "in_memory", "flag"),
]


@dataclass(frozen=True)
class Budget:
    """What fits into a budget. Printing it shows a table of all variants, with the chosen one marked.

    Attributes
    ----------
    chosen
        The name of the variant.
    share
        The share of its samples that storage has space for; 1 unless every variant is too large.
    epochs
        How many epochs to train; None if no time was given.
    reason
        Why, in words.
    rows
        Every variant: `name`, `bytes`, `share` (of its samples that fit into storage: what subsampling would leave), `epochs_in_time` (of
        that share), `seconds` (of all wanted epochs), `in_memory`.
    """

    chosen: str
    share: float
    epochs: int | None
    reason: str
    rows: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"{as_text(self._columns(), self.rows, self.chosen)}\n{self.reason}"

    def _repr_html_(self) -> str:
        return as_html(self.reason, self._columns(), self.rows, self.chosen)

    def _columns(self) -> list[Column]:
        """Those that say something of some variant."""
        said = [column for column in _COLUMNS if any(row[column.key] is not None for row in self.rows)]
        return said


def budget(
    variants: Iterable[Variant],
    *,
    epochs: int | None = None,
    time: float | str | None = None,
    storage: int | str | None = None,
    memory: int | str | None = None,
) -> Budget:
    """Choose the variant of a data set that fits into time, storage and memory, and the number of epochs.

    The rule is that of the (DL)² study: lower quality costs little accuracy, fewer samples or epochs cost much. So the best quality
    of which all samples fit is chosen, and all epochs if they fit in time; if no variant trains them all, the one that trains most. Samples
    are left out only where no variant fits.

    Parameters
    ----------
    variants
        The variants, from the best quality to the lowest. `Study.variants()` has what a study measured.
    epochs
        How many epochs you would like to train. Required with `time`.
    time
        How long training may take in seconds, or e.g. `"5h"`.
    storage
        How many bytes the data may take, or e.g. `"40GB"`.
    memory
        How much memory there is for the data. A variant that fits is read from storage only once, so it is preferred to better ones that
        do not.

    Examples
    --------
    >>> variants = [forebay.Variant("original", 146_900_000_000, 6585.0), forebay.Variant("q75", 55_000_000_000, 1251.0)]
    >>> forebay.budget(variants, epochs=90, time="62h")
    """
    candidates = list(variants)
    if not candidates:
        raise UsageError("there are no variants\nhint: pass the original and at least one other")
    needs("time", time, epochs is not None, "epochs=…")
    limit = _Limits(
        None if epochs is None else integer("epochs", epochs, 1, 1 << 40),
        None if time is None else duration("time", time),
        None if storage is None else byte_count("storage", storage),
        None if memory is None else byte_count("memory", memory),
    )
    for variant in candidates:
        integer("bytes", variant.bytes, 0, 1 << 63)
        for name in ("epoch_seconds", "first_epoch_seconds"):
            value = getattr(variant, name)
            if value is not None and not (math.isfinite(number(name, value)) and value >= 0):
                raise UsageError(f"`{name}` of `{variant.name}` is `{value}`, but must be seconds, 0 or more\nhint: measure it")
    if limit.seconds is not None:
        for variant in candidates:
            if variant.epoch_seconds is None or number("epoch_seconds", variant.epoch_seconds) <= 0:
                raise UsageError(f"the time of an epoch of `{variant.name}` is unknown\nhint: measure it, and pass `epoch_seconds`")
    rows = [limit.row(variant) for variant in candidates]
    chosen, reason = _choose(candidates, rows, limit)
    row = rows[candidates.index(chosen)]
    reached = row["epochs_in_time"]
    wanted = limit.epochs if limit.epochs is None or reached is None else min(limit.epochs, reached)
    return Budget(chosen.name, 1.0 if row["share"] is None else row["share"], wanted, reason, rows)


@dataclass(frozen=True)
class _Limits:
    epochs: int | None
    seconds: float | None
    storage: int | None
    memory: int | None

    def row(self, variant: Variant) -> dict[str, Any]:
        share = None if self.storage is None else min(1.0, self.storage / max(1, variant.bytes))
        return {
            "name": variant.name,
            "bytes": variant.bytes,
            "share": share,
            "epochs_in_time": None if self.seconds is None or share == 0 else variant.epochs_in(self.seconds, share or 1.0),
            "seconds": None if self.epochs is None else variant.seconds_of(self.epochs),
            "in_memory": None if self.memory is None else variant.bytes <= self.memory,
        }


def _choose(variants: list[Variant], rows: list[dict[str, Any]], limit: _Limits) -> tuple[Variant, str]:
    """The variant, and why."""
    pairs = list(zip(variants, rows, strict=True))
    fitting = [pair for pair in pairs if pair[1]["share"] in (None, 1.0)]
    if not fitting:
        smallest, row = min(pairs, key=lambda pair: pair[0].bytes)
        return smallest, (
            f"Not even `{smallest.name}`, the smallest, fits into {_bytes(limit.storage)}: load {row['share']:.0%} of its samples "
            "(`stratified_subset`), or compress further."
        )
    reasons = []
    best = pairs[0]
    if fitting[0] is not best:
        reasons.append(
            f"All samples of `{fitting[0][0].name}` fit into {_bytes(limit.storage)}, but only {best[1]['share']:.0%} of those of `{best[0].name}`"
        )
    candidates = fitting
    in_memory = [pair for pair in fitting if pair[1]["in_memory"]]
    if in_memory and in_memory[0] is not fitting[0]:
        reasons.append(f"`{in_memory[0][0].name}` is the best quality that fits into {_bytes(limit.memory)} of memory")
        candidates = in_memory
    chosen = candidates[0]
    if limit.seconds is not None and limit.epochs is not None:
        enough = [pair for pair in candidates if pair[1]["epochs_in_time"] >= limit.epochs]
        chosen = enough[0] if enough else max(candidates, key=lambda pair: pair[1]["epochs_in_time"])
        reached = chosen[1]["epochs_in_time"]
        if not enough:
            reasons.append(f"`{chosen[0].name}` trains the most epochs in {_time(limit.seconds)}: {reached} of {limit.epochs}")
        elif chosen is not candidates[0]:
            less = candidates[0]
            reasons.append(
                f"`{chosen[0].name}` is the best quality that trains {limit.epochs} epochs in {_time(limit.seconds)}; "
                f"`{less[0].name}` trains {less[1]['epochs_in_time']}"
            )
    if not reasons:
        return chosen[0], f"`{chosen[0].name}` fits, and no other has a better quality."
    return chosen[0], ". ".join(reasons) + "."


def _bytes(value: int | None) -> str:
    return _native.format_quantity(float(value or 0), "bytes")


def _time(value: float) -> str:
    return _native.format_quantity(value, "seconds")
