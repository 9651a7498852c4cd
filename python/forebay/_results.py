"""The results of a study: recorded line by line while it runs, then a table, a page and what budgets need."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._budget import Variant
from ._errors import DataError, MissingFileError
from ._table import Column, as_frame, as_html, as_text

if TYPE_CHECKING:
    import pandas

__all__ = ["Results", "Study"]

#: The file of a study's folder that has a line of JSON for each run.
RUNS = "runs.jsonl"
#: What makes a run the one that was asked for.
_IDENTITY = ("name", "cache", "repeat", "epochs", "options")


class Results:
    """The runs that are done, each a line of a file where there is a folder for it."""

    def __init__(self, folder: Path | None) -> None:
        self._path = None if folder is None else folder / RUNS
        self._runs: list[dict[str, Any]] = []
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        if self._path is not None and self._path.exists():
            self._runs = _read(self._path)
            # Without the rest of a line that was being written when the study was stopped.
            _write(self._path, self._runs)

    def has(self, what: dict[str, Any]) -> bool:
        return self._found(what) is not None

    def add(self, run: dict[str, Any]) -> None:
        self._runs.append(run)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(run) + "\n")

    def of(
        self,
        variants: Sequence[str],
        regimens: Sequence[str],
        caches: Sequence[str | None],
        repeats: int,
        epochs: int,
        options: dict[str, str],
    ) -> list[dict[str, Any]]:
        """The runs of one study, in its order. The file may have those of others."""
        found = []
        for cache in caches:
            for name in [*variants, *regimens]:
                for repeat in range(repeats):
                    run = self._found({"name": name, "cache": cache, "repeat": repeat, "epochs": epochs, "options": options})
                    found += [] if run is None else [run]
        return found

    def _found(self, what: dict[str, Any]) -> dict[str, Any] | None:
        same = (run for run in self._runs if all(run.get(key) == what[key] for key in _IDENTITY))
        return next(same, None)


_COLUMNS = [
    Column("variant", "name"),
    Column("cache", "cache"),
    Column("samples/s", "samples_per_second", "number"),
    Column("stalled", "stall_share", "percent"),
    Column("epoch", "epoch_seconds", "seconds"),
    Column("data", "bytes", "bytes"),
    Column("accuracy", "metrics.accuracy", "percent"),
    Column("±", "accuracy_std", "percent"),
    Column("bound by", "bound_by"),
]


class Study:
    """What a study measured. Printing it shows a table; `report` writes a page with plots.

    Attributes
    ----------
    runs
        Every run: `name`, `kind` (`variant` or `regimen`), `cache`, `repeat`, `samples_per_second`, `stall_share`, `epoch_seconds`,
        `first_epoch_seconds`, `seconds`, `bytes`, `bytes_read`, `bound_by`, `metrics`, and `history` with the figures of each epoch.
    rows
        The same for each variant or regimen and cache: means over the repeats, and `samples_per_second_std` and `accuracy_std`.
    """

    def __init__(self, runs: Sequence[dict[str, Any]]) -> None:
        self.runs = list(runs)
        self.rows = _rows(self.runs)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Load a study from a file written by `save`, or from its folder."""
        found = Path(path)
        if found.is_dir():
            return cls(_read(found / RUNS))
        if not found.exists():
            raise MissingFileError(f"cannot read the study `{found}`: it does not exist\nhint: check the path", path=found)
        try:
            return cls(json.loads(found.read_text(encoding="utf-8"))["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"`{found}` is not a study: {error}\nhint: pass a file written by `Study.save`", path=found) from None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and strings."""
        return {"rows": self.rows, "runs": self.runs}

    def to_json(self) -> str:
        """Return the same as a text."""
        return json.dumps(self.to_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page with plots: throughput, stalls, accuracy, and accuracy over epochs and time."""
        Path(path).write_text(_native.study_page(json.dumps({"rows": self.rows})), encoding="utf-8")

    def variants(self) -> list[Variant]:
        """Return the variants for `budget`, in their order: those whose size is known, with the first cache."""
        first = self.rows[0]["cache"] if self.rows else None
        return [
            Variant(row["name"], row["bytes"], row["epoch_seconds"], row["first_epoch_seconds"])
            for row in self.rows
            if row["kind"] == "variant" and row["cache"] == first and row["bytes"] is not None
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a data frame. Requires pandas."""
        return as_frame([{key: value for key, value in row.items() if key != "history"} for row in self.rows], ["name", "cache"])

    def __repr__(self) -> str:
        return as_text(self._columns(), self.rows, None)

    def _repr_html_(self) -> str:
        return as_html(f"Study of {len(self.runs)} runs", self._columns(), self.rows, None)

    def _columns(self) -> list[Column]:
        """Those that say something of some row."""
        return [column for column in _COLUMNS if any(column.cell(row) != "-" for row in self.rows)]


def _rows(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["name"], run["cache"]), []).append(run)
    return [_row(group) for group in groups.values()]


def _row(group: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of runs that differ in the seed only."""
    first = group[0]
    means = ("samples_per_second", "stall_share", "epoch_seconds", "first_epoch_seconds", "seconds")
    metrics = [name for name in first["metrics"] if all(name in run["metrics"] for run in group)]
    accuracies = [run["metrics"]["accuracy"] for run in group if "accuracy" in run["metrics"]]
    rates = [run["samples_per_second"] for run in group]
    return {
        **{key: first[key] for key in ("name", "kind", "cache", "epochs", "bytes", "bound_by")},
        "repeats": len(group),
        **{name: statistics.fmean(run[name] for run in group) for name in means},
        "samples_per_second_std": statistics.stdev(rates) if len(rates) > 1 else None,
        "accuracy_std": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        "metrics": {name: statistics.fmean(run["metrics"][name] for run in group) for name in metrics},
        "history": first["history"],
    }


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise MissingFileError(f"cannot read the study `{path}`: it does not exist\nhint: check the path", path=path) from None
    runs = []
    # What comes after the last line break was not finished.
    for number, line in enumerate(lines[:-1], start=1):
        try:
            run = json.loads(line)
        except ValueError:
            run = None
        if not isinstance(run, dict) or not set(_IDENTITY) <= set(run):
            raise DataError(f"line {number} of `{path}` is not a run of a study\nhint: remove the line, or choose another folder", path=path)
        runs.append(run)
    return runs


def _write(path: Path, runs: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(run) + "\n" for run in runs)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
