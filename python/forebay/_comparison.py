"""Several profiles of a pipeline side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from . import _native
from ._errors import UsageError
from ._objective import Wanted, objective
from ._planning import Profile, rows_of
from ._table import Column, as_frame, as_text

if TYPE_CHECKING:
    import pandas

__all__ = ["Comparison", "compare"]


def compare(profiles: Iterable[Profile | str | os.PathLike[str]]) -> Comparison:
    """Compare profiles (or their files) of one pipeline that differ in one setting.

    Settings are caching, threads, the number of samples and the sample size.
    """
    return Comparison([one if isinstance(one, Profile) else Profile.load(one) for one in profiles])


class Comparison:
    """Several profiles of one pipeline, compared by setting."""

    def __init__(self, profiles: list[Profile]) -> None:
        if not profiles:
            raise UsageError("no profiles to compare\nhint: pass two or more")
        #: The profiles.
        self.profiles = profiles
        content = json.loads(_native.compare(self._texts()))
        #: Samples per second by what is cached: `threads`, `sample_count`, and `rows` of a strategy each. None where no two
        #: profiles differ in that alone; the same holds of the others.
        self.caching: dict[str, Any] | None = content["caching"]
        #: The speed-up over the fewest threads: for each kind of caching, `lines` of `points`.
        self.threads: list[dict[str, Any]] = content["threads"]
        #: Samples per second by the number of samples measured.
        self.sample_counts: dict[str, Any] | None = content["sample_counts"]
        #: Bytes per second by the bytes of a sample.
        self.sample_sizes: dict[str, Any] | None = content["sample_sizes"]

    def _texts(self) -> list[str]:
        return [profile.to_json() for profile in self.profiles]

    def table(self, **wanted: Unpack[Wanted]) -> list[dict[str, Any]]:
        """Return all figures of each strategy and profile as a dictionary: the columns of `forebay report --csv`."""
        return rows_of(_native.table(self._texts(), objective(**wanted)))

    def to_pandas(self, **wanted: Unpack[Wanted]) -> pandas.DataFrame:
        """Return the table as a data frame indexed by the profile's number and the strategy. Requires pandas."""
        return as_frame(self.table(**wanted), ["profile", "strategy"])

    def __repr__(self) -> str:
        parts = [f"Comparison of {len(self.profiles)} profiles"]
        if self.caching is not None:
            columns = [Column(kind, kind, "number") for kind in ("none", "system", "application")]
            parts.append(_part("Samples per second by what is cached", columns, self.caching["rows"]))
        parts += [_lines(f"Speed-up by threads (caching `{group['caching']}`)", group) for group in self.threads]
        if self.sample_counts is not None:
            parts.append(_lines("Samples per second by samples measured", self.sample_counts))
        if self.sample_sizes is not None:
            parts.append(_sizes(self.sample_sizes))
        return "\n".join(parts if len(parts) > 1 else [*parts, "No two of them differ in exactly one setting."])


def _lines(title: str, group: dict[str, Any]) -> str:
    """A column for each value of what varies."""
    values = sorted({point["x"] for line in group["lines"] for point in line["points"]})
    columns = [Column(f"{value:,g}", f"{index}", "number") for index, value in enumerate(values)]
    rows = [
        {"strategy": line["strategy"], **{f"{values.index(point['x'])}": point["y"] for point in line["points"]}}
        for line in group["lines"]
    ]
    return _part(title, columns, rows)


def _sizes(group: dict[str, Any]) -> str:
    """A row for each point: no two strategies have samples of the same size."""
    columns = [Column("bytes of a sample", "x", "bytes"), Column("bytes per second", "y", "bytes")]
    rows = [{"strategy": line["strategy"], **point} for line in group["lines"] for point in line["points"]]
    return _part("Bytes per second by the size of a sample", columns, rows)


def _part(title: str, columns: list[Column], rows: list[dict[str, Any]]) -> str:
    named = [{"name": row["strategy"], **row} for row in rows]
    return f"{title}:\n{as_text([Column('strategy', 'name'), *columns], named, None)}"
