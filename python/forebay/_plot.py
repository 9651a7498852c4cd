"""Plots, by matplotlib where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._errors import UsageError

__all__ = ["bars"]


def bars(
    names: Sequence[str],
    values: Sequence[float],
    spreads: Sequence[float] | None,
    colours: Sequence[str],
    title: str,
    unit: str = "samples per second",
) -> Any:
    """A bar for each name, the first at the top; the axes."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise UsageError(f"matplotlib cannot be imported: {error}\nhint: pip install matplotlib") from error
    _, axes = pyplot.subplots(figsize=(7, 0.5 + 0.4 * len(names)), layout="constrained")
    axes.barh(names, values, xerr=spreads, color=colours)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    axes.set_title(title)
    return axes
