"""Measuring and building."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, flag, needs, seconds as checked_seconds, whole
from ._errors import UsageError
from ._files import Data, files_request
from ._pipeline import Pipeline
from ._planning import Plan, Profile
from ._plot import bars
from ._progress import listener
from ._source import as_pipeline, on_data
from ._table import as_frame

if TYPE_CHECKING:
    import pandas

__all__ = ["Dataset", "build", "profile"]


def profile(
    pipeline: Pipeline | str | os.PathLike[str],
    data: Data,
    *,
    samples: int = 200,
    runs: int | None = None,
    seconds: float = 1.0,
    fast: bool = False,
    storage: str = "local",
    caching: Literal["none", "system", "application"] = "none",
    threads: int | None = None,
    shards: int | None = None,
    batch_size: int = 64,
    seed: int = 0,
    strategies: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    on_error: Literal["fail", "skip"] = "fail",
    memory: int | str | None = None,
    work: str | os.PathLike[str] | None = None,
    allow_outside: bool = False,
    progress: bool | None = None,
) -> Profile:
    """Measures every way to split a pipeline into *once* and *every epoch*, on the first `samples` samples of `data`,
    a folder or a list of files.

    Each strategy is built (in `work`, or in a temporary folder below the current one) and loaded `runs` (3) times, for
    `seconds` each once its first batch is there: the samples come as often as that takes (0: once). Pictures are kept raw, and in each of `encodings` (`"png"`, `"jpeg-85"`; `"gzip"` compresses records) that can hold them;
    `strategies` names the only ones to measure instead. `caching` says what is kept between runs. `fast` takes a small part of
    the time: it measures the costs of a few samples, the cost model says what each strategy gives, and only those that lead
    are run, twice for half a second, to check it. `memory` is the memory budget of builds and of loading (see `Loader`).
    `allow_outside` lets the pipeline's source name files outside `data`. `progress`
    shows a bar; it does where somebody can see it.
    """
    count = whole("threads", cores() if threads is None else threads, 1, THREADS_MAX)
    needs("runs", runs, not flag("fast", fast), "fast=False")
    needs("encodings", encodings, strategies is None, "strategies=None")
    runs = whole("runs", 3 if runs is None else runs, 1, 10_000)
    if not fast and caching == "system" and runs < 2:
        raise UsageError(
            "with caching `system` the first run fills the cache and does not count, so one run leaves none\n"
            "hint: pass `runs=2` or more"
        )
    pipeline, files = on_data(as_pipeline(pipeline), data, None, None)
    text = _native.profile(
        pipeline._native,
        {
            "files": files_request(files, _skips(on_error), flag("allow_outside", allow_outside)),
            "samples": whole("samples", samples, 1, 1 << 62),
            "runs": runs,
            "seconds": checked_seconds("seconds", seconds),
            "fast": fast,
            "storage": storage,
            "caching": caching,
            "threads": count,
            "shards": count if shards is None else whole("shards", shards, 1, 100_000),
            "batch_size": whole("batch_size", batch_size, 1, 1 << 20),
            "seed": whole("seed", seed, 0, (1 << 64) - 1),
            "strategies": None if strategies is None else list(strategies),
            "encodings": list(encodings or ()),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
            # Beside the data set to be, not in a temporary file system that may be memory: storage is measured there.
            "work_folder": os.path.abspath("." if work is None else work),
        },
        listener(progress),
    )
    return Profile(text, pipeline._functions)


def build(
    what: Plan | Pipeline | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    data: Data | None = None,
    classes: Iterable[str] | None = None,
    strategy: str | None = None,
    threads: int | None = None,
    shards: int | None = None,
    storage: str = "local",
    on_error: Literal["fail", "skip"] = "fail",
    overwrite: bool = False,
    allow_outside: bool = False,
    memory: int | str | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    progress: bool | None = None,
) -> Dataset:
    """Rewrites the data once: as a plan says, or at the `strategy` of a pipeline (`"resized"`, `"decoded+png"`).

    A build that was stopped goes on where it was when it is run again, and what comes out is the same to the byte. `data`
    is the folder of the files, or a list of them (for a plan: others than were measured). `classes` are the classes, where a label
    is to be a place among others than those that the files have. `functions` are the Python functions that the
    steps of a plan from a file name. `memory` is the memory budget of the samples at work (see `Loader`).
    `allow_outside` lets the pipeline's source name files outside `data`: only for one that you trust.
    """
    count = whole("threads", cores() if threads is None else threads, 1, THREADS_MAX)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith(".json"):
        what = Plan.load(what)
    if isinstance(what, Plan):
        pipeline, data = what.pipeline, what.data if data is None else data
        strategy = what.chosen if strategy is None else strategy
        bytes_per_sample = what._bytes_per_sample(strategy)
    else:
        pipeline, bytes_per_sample = as_pipeline(what), None
        if strategy is None:
            names = "`, `".join(pipeline.splits[1:])
            raise UsageError(
                "a pipeline can be kept in several states, and none was chosen\n"
                f"hint: pass `strategy` with one of `{names}`, or build a plan"
            )
    pipeline, files = on_data(pipeline, data, functions, classes)
    kept = _native.build(
        pipeline._native,
        {
            "files": files_request(files, _skips(on_error), flag("allow_outside", allow_outside)),
            "output": os.fspath(output),
            "strategy": strategy,
            "storage": storage,
            "threads": count,
            "shards": None if shards is None else whole("shards", shards, 1, 1_000_000),
            "bytes_per_sample": bytes_per_sample,
            "overwrite": flag("overwrite", overwrite),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
        },
        listener(progress),
    )
    dataset = Dataset(output)
    dataset.shards_kept = kept
    return dataset


class Dataset:
    """A data set that Forebay built: TFRecord shards, an index beside each, and `dataset.json`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        source = _native.Source.dataset(self.path, "local", False)
        self._pipeline = Pipeline(source.pipeline)
        #: How many shards were there already, where this was just built.
        self.shards_kept: int | None = None
        #: Its manifest, with the keys of `dataset.json` (docs/formats/dataset.md).
        self.manifest: dict[str, Any] = json.loads(source.manifest or "{}")
        #: What it keeps: `resized`, `decoded+png`.
        self.strategy: str = source.strategy

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
    def skipped(self) -> list[dict[str, Any]]:
        """Samples of the source that could not be processed and are not in the data set: key, reason, and how many samples."""
        return list(self.manifest["skipped"])

    def __len__(self) -> int:
        return int(self.manifest["samples"])

    def export_tar(
        self,
        output: str | os.PathLike[str],
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Writes it as tar shards that WebDataset reads, into a folder that has none yet; their paths.

        A picture that is kept encoded is a member called after its format (`jpg`), the label is `cls`, tensors are `npy`. What
        is read and written at once stays within `memory`, as for a `Loader`.
        """
        count = whole("threads", cores() if threads is None else threads, 1, THREADS_MAX)
        most = None if memory is None else byte_count("memory", memory)
        paths = _native.export_tar(self.path, os.fspath(output), count, most, listener(progress))
        return [str(path) for path in paths]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each shard, indexed by its file: samples, bytes, checksum. Needs pandas."""
        return as_frame(self.manifest["shards"], "file")

    def plot(self, ax: Any = None) -> Any:
        """A bar of megabytes for each shard, on the axes `ax` or new ones. Needs matplotlib; returns the axes."""
        shards = self.manifest["shards"]
        sizes = [shard["bytes"] / 1e6 for shard in shards]
        names = [shard["file"] for shard in shards]
        return bars(ax, names, sizes, None, ["C0"] * len(names), f"{len(self):,} samples, {self.strategy}", "MB")

    def __repr__(self) -> str:
        size = _native.format_quantity(self.bytes, "bytes")
        shards = len(self.manifest["shards"])
        return f"Dataset({self.path!r}: `{self.strategy}`, {len(self):,} samples in {shards} shards, {size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


def _skips(on_error: str) -> bool:
    if on_error not in ("fail", "skip"):
        raise UsageError(f"no on_error `{on_error}`\nhint: `fail` or `skip`")
    return on_error == "skip"
