"""Profiles and plans: what was measured, and what follows from it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from . import _native
from ._arguments import byte_count, number
from ._document import Document
from ._errors import UsageError
from ._objective import Wanted, objective
from ._pipeline import Pipeline
from ._plot import bars, stacks
from ._stats import Skipped
from ._table import Column, as_frame, as_html, as_text

if TYPE_CHECKING:
    import pandas

    from ._requests import MixRequest
    from ._work import Dataset

__all__ = ["Analysis", "Plan", "Profile", "plan"]


class _Rate(Column):
    """Throughput with its spread, or with the interval of the cost model."""

    def cell(self, row: dict[str, Any]) -> str:
        return _native.rate_with_spread(json.dumps(row)) or "-"


_STRATEGY = Column("strategy", "name")
_RATE = _Rate("samples/s", "samples_per_second", "number")
_FIRST_BATCH = Column("first batch", "first_batch_seconds", "seconds")
_STORAGE = Column("storage", "storage_bytes_total", "bytes")
_PREPARE = Column("prepare", "prep_seconds_total", "seconds")
_PREDICTED = Column("predicted", "predicted_samples_per_second", "number")
_BOUND = Column("bound by", "bound_by")

#: The width of a terminal, and the columns that a table omits to fit it, in this order. Notebooks show all.
_WIDTH = 80
_OPTIONAL = (_PREDICTED, _FIRST_BATCH)

#: The parts of a cost, as the report calls them.
_COSTS = {"accelerators": "training", "storage": "storage", "preparation": "prep", "requests": "requests"}


def plan(profile: Profile | str | os.PathLike[str], **wanted: Unpack[Wanted]) -> Plan:
    """Choose the best strategy of a profile.

    Parameters
    ----------
    profile
        A `Profile`, or the path of one.
    weights
        Weights of `prep`, `storage`, `throughput` and `money`, or a single name. By default `"throughput"`.
    max_storage, max_prep_time, lossless
        Exclude strategies that need more storage or preparation time for the entire data set, or that are lossy. If none is left, a
        `LimitError` names the closest.
    trainer
        Samples per second that the trainer can consume. Faster strategies score no better.
    what_if
        Predict for another machine with the cost model (see `WhatIf`).
    prices, epochs, months
        Prices (see `Prices`), and the number of epochs and months to pay for.
    """
    measured = profile if isinstance(profile, Profile) else Profile.load(profile)
    return Plan(_native.plan(measured.to_json(), objective(**wanted)), measured._functions)


class Profile(Document):
    """The measurements of a pipeline on this machine and storage."""

    _what = "profile"

    def __init__(self, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        #: Each strategy in numbers: throughput and its spread, storage and preparation of the entire data set, the bottleneck.
        self.strategies: list[dict[str, Any]] = json.loads(_native.summarize(text))
        #: What to know before relying on it, a paragraph each: that the data fits in memory but was measured without a cache.
        self.notices: list[str] = _native.notices(text)
        super().__init__(text, functions)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """Load a profile from a file written by `save` or `forebay profile`."""
        return cls(cls._read(path))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The cost of each step."""
        steps: list[dict[str, Any]] = self._content["steps"]
        return steps

    @property
    def skipped_samples(self) -> list[Skipped]:
        """The samples that were skipped (`on_error="skip"`): the first thousand, with the reasons."""
        return [Skipped(**skipped) for skipped in self._content.get("skipped_samples", [])]

    @property
    def fastest(self) -> str:
        """The strategy with the highest throughput."""
        name: str = max(self.strategies, key=lambda row: row["samples_per_second"])["name"]
        return name

    def plan(self, **wanted: Unpack[Wanted]) -> Plan:
        """Choose the best strategy. The same as `forebay.plan(profile, ...)`."""
        return plan(self, **wanted)

    def mix(
        self,
        *,
        formats: Sequence[str] = (),
        mode: Literal["linear", "search", "sweep"] = "linear",
        buffer: int | str = 0,
        max_storage: int | str | None = None,
        max_lossy_share: float = 0.0,
        trainer: float | None = None,
    ) -> dict[str, Any]:
        """Choose the formats of a data set and the share of each, so that storage and CPU are busy together.

        Returns the keys of `forebay mix --json`: `shares`, `predicted_samples_per_second`, `bound_by`, `sweep`.
        This predicts and measures nothing: `measured_samples_per_second` is None. The command `forebay mix` also builds
        the mix from some samples and loads it. Build it with `forebay.build(..., mix=...)`.

        Parameters
        ----------
        formats
            Consider only these strategies. By default all of the profile that are built, and those whose compression
            it knows the cost of.
        mode
            How to choose: `"linear"` solves a linear program over all formats; `"search"` is a binary search over eleven
            ratios of two formats, `"sweep"` looks at all eleven.
        buffer
            Memory for the shuffle buffer of a `liquid` cache, in bytes or e.g. `"4GB"`.
        max_storage
            Largest size of the data set, in bytes or e.g. `"500GB"`.
        max_lossy_share
            Largest share of samples in lossy formats, 0 to 1.
        trainer
            Samples per second that the trainer can consume.
        """
        wanted: MixRequest = {
            "formats": list(formats),
            "mode": mode,
            "buffer_bytes": byte_count("buffer", buffer),
            "max_storage_bytes": None if max_storage is None else byte_count("max_storage", max_storage),
            "max_lossy_share": number("max_lossy_share", max_lossy_share),
            "trainer": None if trainer is None else number("trainer", trainer),
        }
        found: dict[str, Any] = json.loads(_native.mix(self._text, wanted))
        return found

    def analyze(self, **wanted: Unpack[Wanted]) -> Analysis:
        """Rank all strategies, and find the Pareto front and what encodings save and cost."""
        return Analysis(_native.analyze(self._text, objective(**wanted)))

    def table(self, **wanted: Unpack[Wanted]) -> list[dict[str, Any]]:
        """Return all figures of each strategy as a dictionary: the columns of `forebay report --csv`."""
        return rows_of(_native.table([self._text], objective(**wanted)))

    def report(self, path: str | os.PathLike[str], **wanted: Unpack[Wanted]) -> None:
        """Write a self-contained HTML page with all plots, as `forebay report` does."""
        Path(path).write_text(_native.report([self._text], objective(**wanted)), encoding="utf-8")

    def to_pandas(self, **wanted: Unpack[Wanted]) -> pandas.DataFrame:
        """Return the table as a data frame indexed by strategy. Requires pandas."""
        return as_frame(self.table(**wanted), "strategy")

    def _title(self) -> str:
        method, name = self._content["method"], self._content["pipeline"]["name"]
        runs = f"{method['runs']} runs" if isinstance(method["runs"], int) else "by the cost model"
        return (
            f"Profile of `{name}` on storage `{self._content['storage']['name']}`: {method['sample_count']:,} of "
            f"{self._content['data']['samples']:,} samples, {runs}, {method['threads']} threads, "
            f"{_native.caching_words(method['caching'])}"
        )

    def _columns(self) -> list[Column]:
        was_run = any(row.get(_FIRST_BATCH.key) is not None for row in self.strategies)
        first = [_FIRST_BATCH] if was_run else []
        return [_STRATEGY, _RATE, *first, _STORAGE, _PREPARE, _PREDICTED, _BOUND]

    def __repr__(self) -> str:
        return _with(self.notices, f"{self._title()}\n{_fitting(self._columns(), self.strategies, self.fastest)}")

    def _repr_html_(self) -> str:
        return _with_html(self.notices, as_html(self._title(), self._columns(), self.strategies, self.fastest))

    def plot(self, ax: Any = None) -> Any:
        """Plot the throughput of each strategy on `ax` or new axes, and return the axes. Requires matplotlib."""
        names = [row["name"] for row in self.strategies]
        rates = [row["samples_per_second"] for row in self.strategies]
        spreads = [row["samples_per_second_std"] for row in self.strategies]
        title = f"{self._content['pipeline']['name']}, {_native.caching_words(self._content['method']['caching'])}"
        return bars(ax, names, rates, spreads, ["C0"] * len(names), title)


class Plan(Document):
    """The chosen strategy, with predictions and reasons."""

    _what = "plan"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Load a plan from a file written by `save` or `forebay plan`."""
        text = cls._read(path)
        try:
            made = cls(text)
            if made._content["version"] != 1 or not isinstance(made.ranking, list):
                raise KeyError("version")
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"`{os.fspath(path)}` is not a plan that this version can read: {error}") from None
        return made

    @property
    def chosen(self) -> str:
        """The name of the chosen strategy."""
        name: str = self._content["chosen"]
        return name

    @property
    def reason(self) -> str:
        """Why it was chosen, in a few sentences."""
        reason: str = self._content["reason"]
        return reason

    @property
    def notices(self) -> list[str]:
        """Caveats of the measurement, one paragraph each."""
        return list(self._content.get("notices", ()))

    @property
    def unsure_about(self) -> list[str]:
        """Strategies that may be faster than the chosen one: other programs disturbed the measurement too much to be sure."""
        return list(self._content.get("unsure_about", ()))

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """All strategies, best first; excluded ones last."""
        ranking: list[dict[str, Any]] = self._content["ranking"]
        return ranking

    @property
    def compressions(self) -> list[dict[str, Any]]:
        """The best compression of each split for which compressions were measured, and why: `compression` is `None` if none is best."""
        return list(self._content.get("compressions", ()))

    @property
    def assumptions(self) -> list[str]:
        """What was assumed about the other machine, one sentence each. Empty if the plan is for the measured one."""
        return list(self._content.get("other_machine", {}).get("assumptions", ()))

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline of the plan."""
        return Pipeline.from_json(json.dumps(self._content["pipeline"]), self._functions)

    @property
    def data(self) -> str:
        """The folder that was measured."""
        root: str = self._content["data"]["root"]
        return root

    @property
    def reads_files(self) -> bool:
        """Whether the source files are best loaded directly, so that there is nothing to build."""
        return bool(self._content["split"]["position"] == 0)

    def build(self, output: str | os.PathLike[str], **how: Any) -> Dataset:
        """Build the data set. The same as `forebay.build(plan, output, ...)`."""
        from ._work import build

        return build(self, output, **how)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the ranking as a data frame indexed by strategy. Requires pandas."""
        return as_frame(self.ranking, "name")

    def _bytes_per_sample(self, strategy: str) -> float | None:
        totals = [float(row["storage_bytes_total"]) for row in self.ranking if row["name"] == strategy]
        return totals[0] / max(1, int(self._content["data"]["samples"])) if totals else None

    @property
    def _is_forecast(self) -> bool:
        return "other_machine" in self._content

    def _columns(self) -> list[Column]:
        cost = [Column("cost", "cost.total", "number")] if "prices" in self._content else []
        head = [_STRATEGY, Column("score", "score", "score"), *cost]
        if self._is_forecast:
            last = [Column("measured here", _RATE.key, "number"), Column("bound by", "prediction.bound_by")]
        else:
            # What the runs showed; the sentence has what the model makes of it.
            last = [_PREDICTED, _BOUND]
        return [*head, *_figures(self._is_forecast), *last]

    def _title(self) -> str:
        measured = f"{self._content['threads']} threads, {_native.caching_words(self._content['caching'])}"
        return f"Recommended strategy: `{self.chosen}`. {self.reason} Measured with {measured}."

    def __repr__(self) -> str:
        return _with(self.notices, f"{self._title()}\n{_fitting(self._columns(), self.ranking, self.chosen)}")

    def _repr_html_(self) -> str:
        return _with_html(self.notices, as_html(self._title(), self._columns(), self.ranking, self.chosen))

    def plot(self, ax: Any = None) -> Any:
        """Plot the throughput of each strategy on `ax` or new axes, and return the axes. Requires matplotlib.

        The chosen strategy is highlighted, and excluded ones are gray. A plan for another machine shows the expected throughput. If
        money has a weight, the costs of accelerators, storage and preparation are plotted instead.
        """
        names = [row["name"] for row in self.ranking]
        title = f"{self._content['pipeline']['name']}: keep {self.chosen}"
        if self._content["weights"]["money"] > 0:
            costs = {part: [row["cost"].get(key, 0.0) for row in self.ranking] for part, key in _COSTS.items()}
            if not any(costs["requests"]):
                del costs["requests"]
            axes = stacks(ax, names, costs, title, "in the currency of the prices")
            for label, row in zip(axes.get_yticklabels(), self.ranking, strict=True):
                label.set_fontweight("bold" if row["name"] == self.chosen else "normal")
                label.set_color("gray" if row["score"] is None else "black")
            return axes
        if self._is_forecast:
            rates, spreads = [row["forecast"]["expected_samples_per_second"] for row in self.ranking], None
        else:
            rates = [row["samples_per_second"] for row in self.ranking]
            spreads = [row["samples_per_second_std"] for row in self.ranking]
        colors = ["lightgray" if row["score"] is None else "C0" for row in self.ranking]
        colors[names.index(self.chosen)] = "C1"
        return bars(ax, names, rates, spreads, colors, title)


class Analysis:
    """All strategies of a profile, ranked by an objective."""

    def __init__(self, text: str) -> None:
        content = json.loads(text)
        #: The name of the pipeline.
        self.pipeline: str = content["pipeline"]
        #: The strategies in the order of the pipeline, with the keys of `forebay report --csv` (docs/json.md).
        self.strategies: list[dict[str, Any]] = content["strategies"]

    @property
    def best(self) -> str:
        """The strategy of rank 1."""
        name: str = min(self.strategies, key=lambda row: row["rank"])["name"]
        return name

    @property
    def pareto(self) -> list[str]:
        """The Pareto front: strategies that no other strategy beats in storage, throughput and preparation time."""
        return [row["name"] for row in self.strategies if row["pareto"]]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the strategies as a data frame indexed by name. Requires pandas."""
        return as_frame(self.strategies, "name")

    def _columns(self) -> list[Column]:
        figures = _figures("forecast" in self.strategies[0])
        columns = [_STRATEGY, Column("rank", "rank", "count"), *figures, Column("Pareto", "pareto", "flag")]
        if any(row["plain"] is not None for row in self.strategies):
            columns += [Column("saves", "space_saving", "percent"), Column("throughput", "throughput_factor", "number")]
        return columns

    def __repr__(self) -> str:
        return f"Analysis of `{self.pipeline}`\n{_fitting(self._columns(), self.strategies, self.best)}"

    def _repr_html_(self) -> str:
        return as_html(f"Analysis of `{self.pipeline}`", self._columns(), self.strategies, self.best)


def _fitting(columns: Sequence[Column], rows: Sequence[dict[str, Any]], marked: str) -> str:
    """A table that leaves out columns where it would be wider than a terminal."""
    text = as_text(columns, rows, marked)
    for optional in _OPTIONAL:
        if max(map(len, text.splitlines())) > _WIDTH and optional in columns:
            columns = [column for column in columns if column is not optional]
            text = as_text(columns, rows, marked)
    return text


def _with(notices: list[str], text: str) -> str:
    return "\n".join([text, *(f"warning: {notice}" for notice in notices)])


def _with_html(notices: list[str], text: str) -> str:
    return text + "".join(f"<p><b>Warning:</b> {html.escape(notice)}</p>" for notice in notices)


def _figures(forecast: bool) -> list[Column]:
    """Throughput, storage and preparation: as measured, or as expected on another machine."""
    if not forecast:
        return [_RATE, _STORAGE, _PREPARE]
    there = [Column(column.title, f"forecast.{column.key}", column.unit) for column in (_STORAGE, _PREPARE)]
    return [Column("expected", "forecast.expected_samples_per_second", "number"), *there]


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows of a native table, without what is missing."""
    table = json.loads(text)
    names = [column["name"] for column in table["columns"]]
    return [
        {name: cell for name, cell in zip(names, row, strict=True) if cell is not None} for row in table["rows"]
    ]
