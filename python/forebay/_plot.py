"""Plots, by matplotlib where it is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import UsageError

__all__ = ["bars", "stacks"]


def bars(
    ax: Any,
    names: Sequence[str],
    values: Sequence[float],
    spreads: Sequence[float] | None,
    colors: Sequence[str],
    title: str,
    unit: str = "samples per second",
) -> Any:
    """A bar for each name, the first at the top, on `ax` or, without one, on new axes; returns the axes."""
    axes = _axes(ax, names, title, unit)
    axes.barh(range(len(names)), values, xerr=spreads, color=colors)
    return axes


def stacks(ax: Any, names: Sequence[str], parts: Mapping[str, Sequence[float]], title: str, unit: str) -> Any:
    """The same with a bar of several parts for each name, and a legend of them."""
    axes = _axes(ax, names, title, unit)
    ends = [0.0] * len(names)
    for part, values in parts.items():
        axes.barh(range(len(names)), values, left=ends, label=part)
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    axes.legend()
    return axes


def _axes(ax: Any, names: Sequence[str], title: str, unit: str) -> Any:
    """`ax` with a row for each name; new axes where it is None."""
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise UsageError(f"matplotlib cannot be imported: {error}\nhint: pip install matplotlib") from error
        _, ax = pyplot.subplots(figsize=(7, 0.5 + 0.4 * len(names)), layout="constrained")
    # Rows by number: names would go on with those of what was drawn there before.
    ax.set_yticks(range(len(names)), labels=names)
    if not ax.yaxis_inverted():
        ax.invert_yaxis()
    ax.set_xlabel(unit)
    ax.set_title(title)
    return ax
