"""Measuring and building."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, flag, integer, needs, number
from ._arguments import seconds as checked_seconds
from ._errors import UsageError
from ._files import Data, files_request
from ._foreign_names import hinted
from ._pipeline import Pipeline
from ._planning import Plan, Profile
from ._plot import bars
from ._progress import listener
from ._source import as_pipeline, on_data
from ._table import as_frame

if TYPE_CHECKING:
    import pandas

__all__ = ["Dataset", "build", "build_part", "profile"]


@hinted
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
    compression_candidates: Sequence[str] | None = None,
    on_error: Literal["fail", "skip"] = "fail",
    memory: int | str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    allow_outside: bool = False,
    progress: bool | None = None,
) -> Profile:
    """Measure the throughput, storage and preparation time of every strategy of a pipeline.

    Each strategy is built from `samples` samples drawn from all of the data, and loaded `runs` times for `seconds` each.

    Parameters
    ----------
    pipeline
        A `Pipeline`, the path of a TOML file, or the name of a preset.
    data
        The source files: a folder, or a list of files (see `FileList`).
    samples
        Number of samples to measure. More samples take longer and vary less.
    runs
        Number of runs per strategy (default 5).
    seconds
        Minimum duration of a run, counted from its first batch. Samples are repeated as needed; 0 loads each one once.
    fast
        Predict all strategies with a cost model that is fitted to a few samples, and verify only the top candidates.
    storage
        Storage to read from: `"local"`, `"direct"` (bypasses the page cache), `"mmap"` (reads the page cache without copying, for files
        that do not change), or one to simulate, e.g. `"ceph-hdd"`.
    caching
        What stays cached between runs: `"none"`, `"system"` (the page cache) or `"application"` (samples in memory).
    threads, shards
        Number of threads (default: number of cores), and of shards per strategy (default: number of threads).
    batch_size, seed
        Number of samples per batch, and the seed of random steps.
    strategies
        Measure only these strategies, e.g. `["resized", "decoded+png"]`.
    encodings
        Also measure these storage formats wherever they apply: image encodings (`"png"`, `"jpeg-85"`), tensor encodings (`"shuffle-zstd-3"`,
        `"pco-8"`; with a bounded error `"bfloat16"`), compressions (`"gzip"`, `"zstd-3"`), or several (`"png+gzip"`).
    compression_candidates
        Compressions to consider for each strategy: each is measured alone in memory, and only what should be faster by the cost model is
        run. By default the usual ones; an empty list considers none.
    on_error
        `"fail"` raises at the first sample that cannot be read or processed; `"skip"` skips it.
    memory
        Memory budget of builds and loaders (see `Loader`).
    work_dir
        Folder for temporary data sets (default: the current folder).
    allow_outside
        Allow the pipeline to read files outside `data`. Only for pipelines that you trust.
    progress
        Show a progress bar. By default only on a terminal or in a notebook.
    """
    count = integer("threads", cores() if threads is None else threads, 1, THREADS_MAX)
    needs("runs", runs, not flag("fast", fast), "fast=False")
    needs("encodings", encodings, strategies is None, "strategies=None")
    needs("compression_candidates", compression_candidates, strategies is None, "strategies=None")
    runs = integer("runs", 5 if runs is None else runs, 1, 10_000)
    if not fast and caching == "system" and runs < 2:
        raise UsageError(
            "with caching `system` the first run fills the cache and is not counted, so one run leaves none\n"
            "hint: pass `runs=2` or more"
        )
    pipeline, files = on_data(as_pipeline(pipeline), data, None, None)
    text = _native.profile(
        pipeline._native,
        {
            "files": files_request(files, _skips(on_error), flag("allow_outside", allow_outside)),
            "samples": integer("samples", samples, 1, 1 << 62),
            "runs": runs,
            "seconds": checked_seconds("seconds", seconds),
            "fast": fast,
            "storage": storage,
            "caching": caching,
            "threads": count,
            "shards": count if shards is None else integer("shards", shards, 1, 100_000),
            "batch_size": integer("batch_size", batch_size, 1, 1 << 20),
            "seed": integer("seed", seed, 0, (1 << 64) - 1),
            "strategies": None if strategies is None else list(strategies),
            "encodings": list(encodings or ()),
            "compression_candidates": None if compression_candidates is None else list(compression_candidates),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
            # Beside the data set to be, not in a temporary file system that may be memory: storage is measured there.
            "work_folder": os.path.abspath("." if work_dir is None else work_dir),
        },
        listener(progress),
    )
    return Profile(text, pipeline._functions)


@hinted
def build(
    what: Plan | Pipeline | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    data: Data | None = None,
    classes: Iterable[str] | None = None,
    strategy: str | None = None,
    mix: Mapping[str, float] | None = None,
    seed: int | None = None,
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
    """Build a data set: run the offline steps of a plan or strategy once.

    Builds are resumable: run an interrupted build again, and finished shards are kept. The result is the same, byte for byte.

    Parameters
    ----------
    what
        A `Plan` or the path of one, or a pipeline together with `strategy`.
    output
        Folder for the data set.
    data
        The source files: a folder, or a list of files (see `FileList`). By default the data that the plan was measured on.
    classes
        Class names that labels index into. By default the classes found.
    strategy
        Strategy to build, e.g. `"resized"` or `"decoded+png"`. By default the plan's choice.
    mix
        Build in several formats at once, instead of one `strategy`: the share of the samples of each, e.g. `{"decoded+png": 0.3, "decoded": 0.7}`.
    seed
        Decides which sample of a `mix` is in which format (default 0).
    threads, shards
        Number of threads (default: number of cores) and of shards.
    overwrite
        Replace an existing data set, or an unfinished build of another one.
    memory
        Memory budget (see `Loader`).
    functions
        The Python functions of the steps, by name, for a plan that was loaded from a file.
    storage, on_error, allow_outside, progress
        As for `profile`.
    """
    count = integer("threads", cores() if threads is None else threads, 1, THREADS_MAX)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith(".json"):
        what = Plan.load(what)
    if isinstance(what, Plan):
        pipeline, data = what.pipeline, what.data if data is None else data
        if mix is None:
            strategy = what.chosen if strategy is None else strategy
        bytes_per_sample = None if strategy is None else what._bytes_per_sample(strategy)
    else:
        pipeline, bytes_per_sample = as_pipeline(what), None
        if strategy is None and mix is None:
            names = "`, `".join(pipeline.splits[1:])
            raise UsageError(
                f"a pipeline needs a `strategy`\nhint: pass one of `{names}`, or build a plan"
            )
    if mix is not None and strategy is not None:
        raise UsageError("`strategy` and `mix` cannot be used together\nhint: omit one of them")
    needs("seed", seed, mix is not None, "mix={…}")
    if mix is None:
        formats = [] if strategy is None else [(strategy, 1.0)]
    else:
        formats = [(name, number(f"mix[{name!r}]", share)) for name, share in mix.items()]
    pipeline, files = on_data(pipeline, data, functions, classes)
    kept = _native.build(
        pipeline._native,
        {
            "files": files_request(files, _skips(on_error), flag("allow_outside", allow_outside)),
            "output": os.fspath(output),
            "formats": formats,
            "is_mix": mix is not None,
            "seed": 0 if seed is None else integer("seed", seed, 0, (1 << 64) - 1),
            "storage": storage,
            "threads": count,
            "shards": None if shards is None else integer("shards", shards, 1, 1_000_000),
            "bytes_per_sample": bytes_per_sample,
            "overwrite": flag("overwrite", overwrite),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
        },
        listener(progress),
    )
    dataset = Dataset(output)
    dataset.shards_reused = kept
    return dataset


@hinted
def build_part(
    what: Plan | Pipeline | str | os.PathLike[str],
    output: str | os.PathLike[str],
    part: str,
    *,
    data: Data | None = None,
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
) -> dict[str, int]:
    """Do a part of a build that many machines share, and return its figures: `shards`, `shards_reused`, `samples` and `bytes`.

    Call it once with `"prepare"`, then with `"1/N"` to `"N/N"` anywhere, in any order and as often as you like, and at last with `"finish"`.
    The result is that of `build`, byte for byte.

    Parameters
    ----------
    part
        `"prepare"` lists the source files and writes the list down in `output`; `"3/16"` builds the third of sixteen parts; `"finish"` checks that
        all shards exist and writes the manifest.
    shards, overwrite
        Only for `"prepare"`.
    what, output, data, strategy, threads, storage, on_error, allow_outside, memory, functions, progress
        As for `build`, and the same for all parts.
    """
    count = integer("threads", cores() if threads is None else threads, 1, THREADS_MAX)
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith(".json"):
        what = Plan.load(what)
    bytes_per_sample = None
    if isinstance(what, Plan):
        pipeline, data = what.pipeline, what.data if data is None else data
        strategy = what.chosen if strategy is None else strategy
        bytes_per_sample = what._bytes_per_sample(strategy)
    else:
        pipeline = as_pipeline(what)
    if strategy is None:
        names = "`, `".join(pipeline.splits[1:])
        raise UsageError(f"a pipeline needs a `strategy`\nhint: pass one of `{names}`, or build a plan")
    needs("shards", shards, part == "prepare", 'part="prepare"')
    pipeline, files = on_data(pipeline, data, functions, None)
    figures = _native.build_part(
        pipeline._native,
        {
            "files": files_request(files, _skips(on_error), flag("allow_outside", allow_outside)),
            "output": os.fspath(output),
            "formats": [(strategy, 1.0)],
            "is_mix": False,
            "seed": 0,
            "storage": storage,
            "threads": count,
            "shards": None if shards is None else integer("shards", shards, 1, 1_000_000),
            "bytes_per_sample": bytes_per_sample,
            "overwrite": flag("overwrite", overwrite),
            "memory_bytes": None if memory is None else byte_count("memory", memory),
        },
        part,
        listener(progress),
    )
    return dict(zip(("shards", "shards_reused", "samples", "bytes"), figures, strict=True))


class Dataset:
    """A data set built by Forebay: TFRecord shards, an index per shard, and a manifest, `dataset.json`.

    One in several formats has such a folder for each, and a manifest `mix.json`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        source = _native.Source.dataset(self.path, "local", "page", False)
        self._pipeline = Pipeline(source.pipeline)
        #: How many shards were there already, where this was just built.
        self.shards_reused: int | None = None
        #: Its manifest, with the keys of `dataset.json` or `mix.json` (docs/formats/dataset.md).
        self.manifest: dict[str, Any] = json.loads(source.manifest or "{}")
        #: What it stores: `resized`, `decoded+png`; for several formats their names.
        self.strategy: str = source.strategy

    @property
    def pipeline(self) -> Pipeline:
        """The full pipeline, offline and online steps."""
        return self._pipeline

    @property
    def mix(self) -> dict[str, float]:
        """The share of each format, where there are several; else empty."""
        return {entry["strategy"]: float(entry["share"]) for entry in self.manifest.get("formats", [])}

    def _parts(self) -> list[dict[str, Any]]:
        """The shards, or the folders of a mix."""
        if "formats" in self.manifest:
            return [{"file": entry["folder"], **entry} for entry in self.manifest["formats"]]
        return list(self.manifest["shards"])

    @property
    def bytes(self) -> int:
        """Size of the shards in bytes."""
        return int(self.manifest["bytes"])

    @property
    def classes(self) -> list[str]:
        """The class names. A label is an index into this list."""
        return list(self.manifest["classes"])

    @property
    def skipped(self) -> int:
        """Number of samples of the source that were skipped."""
        return sum(1 if entry["samples"] is None else entry["samples"] for entry in self.skipped_samples)

    @property
    def skipped_samples(self) -> list[dict[str, Any]]:
        """Samples of the source that were skipped: key, reason and number of samples."""
        return list(self.manifest["skipped_samples"])

    def __len__(self) -> int:
        return int(self.manifest["samples"])

    @hinted
    def export_tar(
        self,
        output: str | os.PathLike[str],
        *,
        threads: int | None = None,
        memory: int | str | None = None,
        progress: bool | None = None,
    ) -> list[str]:
        """Export the data set as tar shards for WebDataset, and return their paths.

        Encoded images are named after their format (`jpg`), labels are `cls`, tensors `npy`. The folder must not contain tars yet.
        Each tar gets an index (`.idx`) next to it, in the format of DALI's `wds2idx`.
        `memory` is the memory budget (see `Loader`).
        """
        count = integer("threads", cores() if threads is None else threads, 1, THREADS_MAX)
        most = None if memory is None else byte_count("memory", memory)
        paths = _native.export_tar(self.path, os.fspath(output), count, most, listener(progress))
        return [str(path) for path in paths]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the shards as a data frame indexed by file: samples, bytes, checksum; of a mix its formats. Requires pandas."""
        return as_frame(self._parts(), "file")

    def plot(self, ax: Any = None) -> Any:
        """Plot the size of each shard (of a mix, of each format) on `ax` or new axes, and return the axes. Requires matplotlib."""
        shards = self._parts()
        sizes = [shard["bytes"] / 1e6 for shard in shards]
        names = [shard["file"] for shard in shards]
        return bars(ax, names, sizes, None, ["C0"] * len(names), f"{len(self):,} samples, {self.strategy}", "MB")

    def __repr__(self) -> str:
        size = _native.format_quantity(self.bytes, "bytes")
        shards = sum(part["shards"] for part in self._parts()) if self.mix else len(self._parts())
        return f"Dataset({self.path!r}: `{self.strategy}`, {len(self):,} samples in {shards} shards, {size})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path,)


def _skips(on_error: str) -> bool:
    if on_error not in ("fail", "skip"):
        raise UsageError(f"`on_error` is `{on_error}`, but must be `fail` or `skip`")
    return on_error == "skip"
