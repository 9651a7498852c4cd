"""Measuring, planning and building."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._errors import MissingFileError, UsageError
from ._loader import THREADS_MAX, _cores, _whole
from ._pipeline import Pipeline
from ._progress import listener
from ._source import as_pipeline
from ._table import Column, as_html, as_text

if TYPE_CHECKING:
    import pandas

__all__ = ["Dataset", "Plan", "Profile", "build", "plan", "profile"]

#: How large a shard should be: large enough that opening it costs nothing, small enough that little is lost when a build
#: is stopped.
SHARD_BYTES = 128_000_000

_STRATEGY_COLUMNS = [
    Column("strategy", "name"),
    Column("samples/s", "t4_samples_per_second", "number"),
    Column("storage", "storage_bytes_total", "bytes"),
    Column("prepare", "prep_seconds_total", "seconds"),
    Column("predicted", "predicted_samples_per_second", "number"),
    Column("bound by", "bound_by"),
]


def profile(
    pipeline: Pipeline | str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    samples: int = 200,
    runs: int = 3,
    storage: str = "local",
    caching: Literal["none", "system", "application"] = "none",
    threads: int | None = None,
    shards: int | None = None,
    batch_size: int = 64,
    seed: int = 0,
    strategies: Sequence[str] | None = None,
    encodings: Sequence[str] = (),
    on_error: Literal["fail", "skip"] = "fail",
    work: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Profile:
    """Measures every way to split a pipeline into *once* and *every epoch*, on the first `samples` samples of `data`.

    Each strategy is built (in `work`, or in a temporary folder below the current one) and loaded `runs` times. Pictures
    are kept raw, and in each of `encodings` (`"png"`, `"jpeg-85"`) that can hold them; `strategies` names the only ones to
    measure. `caching` says what is kept between runs. `progress` shows a bar; it does where somebody can see it.
    """
    count = _whole("threads", _cores() if threads is None else threads, 1, THREADS_MAX)
    runs = _whole("runs", runs, 1, 10_000)
    if caching == "system" and runs < 2:
        raise UsageError(
            "with caching `system` the first run fills the cache and does not count, so one run leaves none\n"
            "hint: pass `runs=2` or more"
        )
    native = as_pipeline(pipeline)._native
    # Beside the data set to be, not in a temporary file system that may be memory: storage is measured there.
    with tempfile.TemporaryDirectory(prefix=".forebay-profile-", dir=".") if work is None else _Folder(work) as folder:
        text = _native.profile(
            native,
            {
                "folder": os.fspath(data),
                "samples": _whole("samples", samples, 1, 1 << 62),
                "runs": runs,
                "storage": storage,
                "caching": caching,
                "threads": count,
                "shards": count if shards is None else _whole("shards", shards, 1, 100_000),
                "batch_size": _whole("batch_size", batch_size, 1, 1 << 20),
                "seed": _whole("seed", seed, 0, (1 << 64) - 1),
                "strategies": None if strategies is None else list(strategies),
                "encodings": list(encodings),
                "skip_errors": _skips(on_error),
                "work_folder": os.path.abspath(folder),
            },
            listener(progress),
        )
    return Profile(text)


def plan(
    profile: Profile | str | os.PathLike[str],
    *,
    weights: Mapping[str, float] | None = None,
    storage_bytes_max: int | None = None,
    prep_seconds_max: float | None = None,
    lossless: bool = False,
    trainer_samples_per_second: float | None = None,
) -> Plan:
    """Chooses the best strategy of a profile.

    `weights` says how much `prep`, `storage` and `throughput` count (throughput alone unless given). The limits, which are
    of the whole data set, rule strategies out. `trainer_samples_per_second` is how much the trainer takes; more counts for
    nothing. `LimitError` says what comes nearest where nothing meets the limits.
    """
    measured = profile if isinstance(profile, Profile) else Profile.load(profile)
    wrong = set(weights or ()) - {"prep", "storage", "throughput"}
    if wrong:
        raise UsageError(f"no weight `{wrong.pop()}`\nhint: `prep`, `storage` and `throughput` have one each")
    objective: dict[str, Any] = {
        "limits": {
            "storage_bytes_max": storage_bytes_max,
            "prep_seconds_max": prep_seconds_max,
            "lossless": lossless,
        },
        "trainer_samples_per_second": trainer_samples_per_second,
    }
    if weights is not None:
        objective["weights"] = {"prep": 0.0, "storage": 0.0, "throughput": 0.0, **weights}
    return Plan(_native.plan(measured.to_json(), json.dumps(objective)))


def build(
    what: Plan | Pipeline | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    strategy: str | None = None,
    threads: int | None = None,
    shards: int | None = None,
    storage: str = "local",
    on_error: Literal["fail", "skip"] = "fail",
    overwrite: bool = False,
    progress: bool | None = None,
) -> Dataset:
    """Rewrites the data once: as a plan says, or at the `strategy` of a pipeline (`"resized"`, `"decoded+png"`).

    A build that was stopped goes on where it was when it is run again, and what comes out is the same to the byte. `data`
    is the folder of the files (for a plan: another one than was measured).
    """
    count = _whole("threads", _cores() if threads is None else threads, 1, THREADS_MAX)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith(".json"):
        what = Plan.load(what)
    if isinstance(what, Plan):
        pipeline, folder = what.pipeline, what.data if data is None else data
        strategy = what.chosen if strategy is None else strategy
        if shards is None:
            shards = what._shards(strategy, count)
    else:
        pipeline = as_pipeline(what)
        if data is None:
            raise UsageError("a pipeline needs a folder of files\nhint: pass it as `data`")
        folder = data
        if strategy is None:
            names = "`, `".join(pipeline.splits[1:])
            raise UsageError(
                "a pipeline can be kept in several states, and none was chosen\n"
                f"hint: pass `strategy` with one of `{names}`, or build a plan"
            )
    kept = _native.build(
        pipeline._native,
        {
            "folder": os.fspath(folder),
            "output": os.fspath(output),
            "strategy": strategy,
            "storage": storage,
            "threads": count,
            "shards": None if shards is None else _whole("shards", shards, 1, 1_000_000),
            "skip_errors": _skips(on_error),
            "overwrite": bool(overwrite),
        },
        listener(progress),
    )
    dataset = Dataset(output)
    dataset.shards_kept = kept
    return dataset


class _Document:
    """What was measured or chosen: a JSON document, with its content as attributes of the subclass."""

    _what = "document"

    def __init__(self, text: str) -> None:
        self._text = text
        self._content: dict[str, Any] = json.loads(text)

    @property
    def content(self) -> dict[str, Any]:
        """Everything, with the keys of its JSON file (docs/json.md)."""
        return self._content

    def to_json(self) -> str:
        """The text of its file."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file, which the `forebay` program reads too."""
        Path(path).write_text(self._text, encoding="utf-8")

    @classmethod
    def _read(cls, path: str | os.PathLike[str]) -> str:
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            message = f"cannot read the {cls._what} `{os.fspath(path)}`: it does not exist\nhint: check the path"
            raise MissingFileError(message, path=path, errno=error.errno) from None

    def _rows(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each strategy, indexed by its name. Needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise UsageError(f"pandas cannot be imported: {error}\nhint: pip install pandas") from error
        return pandas.json_normalize(self._rows()).set_index("name")


class Profile(_Document):
    """What was measured of a pipeline on this machine and storage."""

    _what = "profile"

    def __init__(self, text: str) -> None:
        #: Each strategy in numbers: T4 and its spread, storage and preparation of the whole data set, what binds it.
        self.strategies: list[dict[str, Any]] = json.loads(_native.summarise(text))
        super().__init__(text)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Profile:
        """The profile in a file that `save` or `forebay profile` wrote."""
        return cls(cls._read(path))

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What each step costs."""
        steps: list[dict[str, Any]] = self._content["steps"]
        return steps

    @property
    def fastest(self) -> str:
        """The strategy with the highest throughput."""
        name: str = max(self.strategies, key=lambda row: row["t4_samples_per_second"])["name"]
        return name

    def plan(self, **wanted: Any) -> Plan:
        """Chooses the best strategy; the same as `forebay.plan(profile, ...)`."""
        return plan(self, **wanted)

    def _rows(self) -> list[dict[str, Any]]:
        return self.strategies

    def _title(self) -> str:
        method, name = self._content["method"], self._content["pipeline"]["name"]
        return (
            f"Profile of `{name}` on storage `{self._content['storage']['name']}`: {method['sample_count']:,} of "
            f"{self._content['data']['samples']:,} samples, {method['runs_total']} runs, {method['threads']} threads"
        )

    def __repr__(self) -> str:
        return f"{self._title()}\n{as_text(_STRATEGY_COLUMNS, self.strategies, self.fastest)}"

    def _repr_html_(self) -> str:
        return as_html(self._title(), _STRATEGY_COLUMNS, self.strategies, self.fastest)

    def plot(self) -> Any:
        """A bar chart of samples per second by strategy, with their spread. Needs matplotlib; returns the axes."""
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise UsageError(f"matplotlib cannot be imported: {error}\nhint: pip install matplotlib") from error
        figure, axes = pyplot.subplots(figsize=(7, 0.5 + 0.4 * len(self.strategies)), layout="constrained")
        names = [row["name"] for row in self.strategies]
        rates = [row["t4_samples_per_second"] for row in self.strategies]
        spreads = [row["t4_spread"] for row in self.strategies]
        axes.barh(names, rates, xerr=spreads)
        axes.invert_yaxis()
        axes.set_xlabel("samples per second")
        axes.set_title(self._content["pipeline"]["name"])
        return axes


class Plan(_Document):
    """What was chosen, with its prediction and its reasons."""

    _what = "plan"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """The plan in a file that `save` or `forebay plan` wrote."""
        text = cls._read(path)
        try:
            made = cls(text)
            if made._content["version"] != 1 or not isinstance(made.ranking, list):
                raise KeyError("version")
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"`{os.fspath(path)}` is no plan that this version reads: {error}") from None
        return made

    @property
    def chosen(self) -> str:
        """The strategy."""
        name: str = self._content["chosen"]
        return name

    @property
    def reason(self) -> str:
        """Why, in a few sentences."""
        reason: str = self._content["reason"]
        return reason

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """All strategies, best first; those that a limit rules out come last."""
        ranking: list[dict[str, Any]] = self._content["ranking"]
        return ranking

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return Pipeline.from_json(json.dumps(self._content["pipeline"]))

    @property
    def data(self) -> str:
        """The folder that was measured on."""
        root: str = self._content["data"]["root"]
        return root

    @property
    def keeps_files(self) -> bool:
        """Whether the files are best read as they are, so that there is nothing to build."""
        return bool(self._content["split"]["position"] == 0)

    def build(self, output: str | os.PathLike[str], **how: Any) -> Dataset:
        """Rewrites the data so; the same as `forebay.build(plan, output, ...)`."""
        return build(self, output, **how)

    def _shards(self, strategy: str, threads: int) -> int | None:
        for row in self.ranking:
            if row["name"] == strategy:
                wanted = max(threads, -(-int(row["storage_bytes_total"]) // SHARD_BYTES))
                return max(1, min(wanted, int(self._content["data"]["samples"])))
        return None

    def _rows(self) -> list[dict[str, Any]]:
        return self.ranking

    def __repr__(self) -> str:
        columns = [_STRATEGY_COLUMNS[0], Column("score", "score", "score"), *_STRATEGY_COLUMNS[1:]]
        return f"Keep `{self.chosen}`: {self.reason}\n{as_text(columns, self.ranking, self.chosen)}"

    def _repr_html_(self) -> str:
        columns = [_STRATEGY_COLUMNS[0], Column("score", "score", "score"), *_STRATEGY_COLUMNS[1:]]
        return as_html(f"Keep `{self.chosen}`: {self.reason}", columns, self.ranking, self.chosen)


class Dataset:
    """A data set that Forebay built: TFRecord shards, an index beside each, and `dataset.json`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        samples = _native.Samples.dataset(self.path, "local")
        self._pipeline = Pipeline(samples.pipeline)
        #: How many shards were there already, where this was just built.
        self.shards_kept: int | None = None
        #: Its manifest, with the keys of `dataset.json` (docs/formats/dataset.md).
        self.manifest: dict[str, Any] = json.loads(samples.manifest or "{}")
        #: What it keeps: `resized`, `decoded+png`.
        self.strategy: str = samples.strategy

    @property
    def pipeline(self) -> Pipeline:
        """The whole pipeline."""
        return self._pipeline

    @property
    def bytes(self) -> int:
        """The size of its shards."""
        return int(self.manifest["bytes"])

    @property
    def classes(self) -> list[str]:
        """The names of the classes; a label is a place in this list."""
        return list(self.manifest["classes"])

    @property
    def skipped(self) -> list[dict[str, str]]:
        """Samples of the source that could not be processed and are not in the data set: key and reason."""
        return list(self.manifest["skipped"])

    def __len__(self) -> int:
        return int(self.manifest["samples"])

    def export_tar(
        self, output: str | os.PathLike[str], *, threads: int | None = None, progress: bool | None = None
    ) -> list[str]:
        """Writes it as tar shards that WebDataset reads, into a folder that has none yet; their paths.

        A picture that is kept encoded is a member called after its format (`jpg`), the label is `cls`, tensors are `npy`.
        """
        count = _whole("threads", _cores() if threads is None else threads, 1, THREADS_MAX)
        return [str(path) for path in _native.export_tar(self.path, os.fspath(output), count, listener(progress))]

    def __repr__(self) -> str:
        size = _native.format_quantity(self.bytes, "bytes")
        shards = len(self.manifest["shards"])
        return f"Dataset({self.path!r}: `{self.strategy}`, {len(self):,} samples in {shards} shards, {size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


class _Folder:
    """A folder that stays."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __enter__(self) -> str:
        return self.path

    def __exit__(self, *_: object) -> None:
        return None


def _skips(on_error: str) -> bool:
    if on_error not in ("fail", "skip"):
        raise UsageError(f"no on_error `{on_error}`\nhint: `fail` or `skip`")
    return on_error == "skip"
