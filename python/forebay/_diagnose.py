"""Differential analysis of a training loop: what the accelerator waits for."""

from __future__ import annotations

import copy
import html
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from . import _native
from ._arguments import integer
from ._arguments import seconds as checked_seconds
from ._errors import Error, UsageError
from ._loader import Loader
from ._table import Column, as_html, as_text

__all__ = ["Diagnosis", "batch_samples", "diagnose"]

#: A rate is measured in this many parts, to see how far they differ.
PARTS = 5
#: The minimum number of batches for a rate, unless they take far too long.
BATCHES_MIN = 10
PATIENCE = 10.0
#: So many batches are held for the trainer alone.
HELD = 8

Step = Callable[[Any], object]


class Diagnosis:
    """What training waits for, and what other resources would give. Made by `diagnose`."""

    def __init__(self, content: dict[str, Any], further: list[str]) -> None:
        #: Everything, with the keys of `forebay diagnose --json`.
        self.content = content
        #: The verdict, a sentence each; the last one says what to do next.
        self.sentences: list[str] = [*content["sentences"], *further]

    @property
    def wait_share(self) -> float:
        """The share of the time that training waits for data, 0 to 1."""
        return float(self.content["wait_share"])

    @property
    def prep_stall_share(self) -> float | None:
        """Of that, waiting for preparation; None if it cannot be separated from storage."""
        share: float | None = self.content["prep_stall_share"]
        return share

    @property
    def fetch_stall_share(self) -> float | None:
        """Of that, waiting for storage; None if it cannot be separated from preparation."""
        share: float | None = self.content["fetch_stall_share"]
        return share

    @property
    def bound_by(self) -> str:
        """The bottleneck: `"storage"`, `"cpu"` or `"trainer"`; `"unknown"` if storage and preparation cannot be separated."""
        return str(self.content["bound_by"])

    @property
    def what_ifs(self) -> list[dict[str, Any]]:
        """What other resources would give: `change`, `samples_per_second` with `_min` and `_max`, `wait_share`."""
        rows: list[dict[str, Any]] = self.content["what_ifs"]
        return rows

    def __str__(self) -> str:
        return "\n".join(f"{text[:1].upper()}{text[1:]}." for text in self.sentences)

    def __repr__(self) -> str:
        rows = [{"name": row["change"], **row} for row in self.what_ifs]
        return f"{self}\n{as_text(_COLUMNS, rows, None)}" if rows else str(self)

    def _repr_html_(self) -> str:
        rows = [{"name": row["change"], **row} for row in self.what_ifs]
        text = "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())
        return text + (as_html("What if", _COLUMNS, rows, None) if rows else "")


_COLUMNS = [
    Column("what if", "name"),
    Column("samples/s", "samples_per_second", "number"),
    Column("at least", "min_samples_per_second", "number"),
    Column("at most", "max_samples_per_second", "number"),
    Column("waits", "wait_share", "percent"),
]


def diagnose(
    step: Step,
    loader: Iterable[Any],
    *,
    seconds: float = 2.0,
    warm: Iterable[Any] | None = None,
    files: str | os.PathLike[str] | None = None,
    pipeline: str = "imagenet",
    workers: int | None = None,
) -> Diagnosis:
    """Find out what training waits for: preparation or storage, and what other resources would give.

    Runs your training step on batches that are held in memory, then on batches of the loader with its data in memory and from
    storage, and compares the rates. The loader is any iterable of batches: a `forebay.Loader`, a torch `DataLoader`, a tf.data or
    webdataset pipeline. It is iterated several times. A `forebay.Loader` is copied, and keeps its position.

    Parameters
    ----------
    step
        Your training step, called with one batch. It really trains: pass a copy of the model if that matters.
    loader
        What yields the batches.
    seconds
        Duration of each measurement.
    warm
        An iterable of the same batches whose data is in memory. By default made from a `forebay.Loader`; of other loaders, those of `files`
        are read into the page cache. Without either, preparation and storage cannot be separated.
    files
        Folder with the files that the loader reads. By default `loader.dataset.root`, if there is such a folder. They are dropped from
        the page cache for measuring storage, and Forebay's own loader is measured on them for comparison.
    pipeline
        The pipeline to compare with, a preset or TOML file.
    workers
        Number of threads or processes that prepare batches. By default `threads` or `num_workers` of the loader.

    Examples
    --------
    >>> diagnosis = forebay.diagnose(lambda batch: train_step(model, batch), loader)
    >>> print(diagnosis)
    Your accelerator waits 41 % of the time: 33 % for preparation, 8 % for storage.
    """
    seconds = checked_seconds("seconds", seconds)
    if seconds == 0:
        raise UsageError("`seconds` is 0, but a rate takes time to measure\nhint: pass 1 or more")
    if not callable(step):
        raise UsageError(f"`step` is `{step!r}`, but must be a function of a batch\nhint: diagnose(step, loader)")
    folder = _folder(loader, files)
    measured: dict[str, Any] = dict.fromkeys(("prep", "fetch", "warm", "data_bytes", "memory_bytes"))
    held = _held(loader)
    measured["trainer"] = _rate(_cycled(held), step, seconds)
    measured["threads"] = _workers(loader, workers)
    if isinstance(loader, Loader):
        cold = _copy(loader, "repeated", "none")
        memory = _copy(loader, "in_memory", "page")
        engine = cold._engine()
        measured["data_bytes"] = engine.data_bytes
        engine.drop_page_cache()
        measured["fetch"] = json.loads(engine.reading(seconds))
        measured["prep"] = _rate(memory, None, seconds)
        # Half of it before the measurement that it is compared with, and half after, so that a machine that slows down affects both.
        warm_parts = _parts(memory, step, seconds / 2)
        measured["cold"] = _rate(cold, step, seconds)
        measured["warm"] = _rate_of(warm_parts + _parts(memory, step, seconds / 2))
        other = _native.threads_to_compare(loader.threads)
        if other is not None:
            memory = _copy(loader, "in_memory", "page", other)
            measured["scaling"] = {"threads": other, **_rate(memory, None, seconds)}
    else:
        if warm is None and folder is not None:
            measured["data_bytes"] = _each_file(folder, _read)
            warm = loader
        if warm is not None:
            measured["warm"], measured["prep"] = _rate(warm, step, seconds), _rate(warm, None, seconds)
        if folder is not None:
            _each_file(folder, _forget)
        measured["cold"] = _rate(loader, step, seconds)
        if measured["prep"] is not None:
            if folder is not None:
                _each_file(folder, _forget)
            measured["fetch"] = _rate(loader, None, seconds)
    if measured["data_bytes"] is not None:
        measured["memory_bytes"] = _memory_bytes()
    content = json.loads(_native.diagnose(json.dumps(measured)))
    return Diagnosis(content, _further(content, loader, folder, pipeline, seconds))


def _copy(loader: Loader, kind: str, cache: str, *threads: int) -> Loader:
    """A copy of `loader` whose epochs are long, with its samples in memory (and another number of threads) or from storage."""
    other = copy.copy(loader)
    other.__dict__.update(cache=cache, subset=None, weights=None, num_samples=None, replacement=False, repeats=1)
    other._source = copy.copy(loader._source)
    other._source.cache = cache
    if kind == "in_memory":
        # However slow the simulated storage is, the data in memory is read once.
        other._source.storage = "local"
    other._made = getattr(other._engine(), kind)(*threads)
    other._go_to(0, 0, 0, 0)
    return other


def _held(loader: Iterable[Any]) -> list[Any]:
    source = copy.copy(loader) if isinstance(loader, Loader) else loader
    held = []
    for batch in source:
        held.append(batch)
        if len(held) == HELD:
            break
    if not held:
        raise UsageError("the loader yields no batches\nhint: an iterator can be used once; pass the loader itself")
    return held


def _cycled(batches: list[Any]) -> Iterator[Any]:
    while True:
        yield from batches


def _rate(loader: Iterable[Any], step: Step | None, seconds: float) -> dict[str, float]:
    """Samples per second, with the step or without."""
    return _rate_of(_parts(loader, step, seconds))


def _parts(loader: Iterable[Any], step: Step | None, seconds: float) -> list[tuple[float, float]]:
    """How many samples came in how many seconds, in parts. The first batch of each iteration starts the clock."""
    parts: list[tuple[float, float]] = []
    batches, measured, rounds = 0, 0.0, 0
    while measured < seconds or (batches < BATCHES_MIN and measured < PATIENCE * seconds):
        samples, since, seen = 0, 0.0, 0
        for batch in loader:
            seen += 1
            if step is not None:
                step(batch)
                _synchronize()
            now = time.perf_counter()
            if seen > 1:
                samples += batch_samples(batch)
                batches += 1
                if now - since >= seconds / PARTS:
                    parts.append((samples, now - since))
                    measured, samples, since = measured + now - since, 0, now
                if measured >= seconds and (batches >= BATCHES_MIN or measured >= PATIENCE * seconds):
                    break
            else:
                since = now
        if samples and seen > 1 and measured < seconds:
            parts.append((samples, max(now - since, 1e-9)))
            measured += now - since
        rounds += 1
        if seen < 2 or (rounds > 1 and not batches):
            break
    return parts


def _rate_of(parts: list[tuple[float, float]]) -> dict[str, float]:
    found = _native.rate(parts)
    if found is None:
        raise UsageError(
            "the loader yields too few batches to measure a rate: more than one per iteration are needed\n"
            "hint: pass a loader, not an iterator; make batches smaller"
        )
    rate: dict[str, float] = json.loads(found)
    return rate


def _synchronize() -> None:
    """What a GPU was given to do counts for the step that gave it."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def batch_samples(batch: Any) -> int:
    """How many samples a batch has: the length of its first array."""
    if isinstance(batch, dict):
        batch = next(iter(batch.values()), ())
    elif isinstance(batch, (tuple, list)) and batch and hasattr(batch[0], "__len__") and not isinstance(batch[0], str):
        batch = batch[0]
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    return len(batch) if hasattr(batch, "__len__") else 1


def _workers(loader: Iterable[Any], workers: int | None) -> int | None:
    if workers is not None:
        return integer("workers", workers, 1, 1 << 20)
    found = getattr(loader, "threads", None) or getattr(loader, "num_workers", None)
    return found if isinstance(found, int) and found > 0 else None


def _folder(loader: Iterable[Any], files: str | os.PathLike[str] | None) -> Path | None:
    if files is not None:
        if not Path(files).is_dir():
            raise UsageError(f"`files` is `{os.fspath(files)}`, but must be a folder\nhint: check the path")
        return Path(files)
    root = getattr(getattr(loader, "dataset", None), "root", None)
    return Path(root) if isinstance(root, (str, os.PathLike)) and Path(root).is_dir() else None


def _each_file(folder: Path, work: Callable[[int], int]) -> int:
    total = 0
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                total += work(file)
            finally:
                os.close(file)
    return total


def _read(file: int) -> int:
    size = 0
    while piece := os.read(file, 1 << 20):
        size += len(piece)
    return size


def _forget(file: int) -> int:
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    return 0


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _further(
    content: dict[str, Any], loader: Iterable[Any], folder: Path | None, pipeline: str, seconds: float
) -> list[str]:
    """What to do next: what Forebay would give, where that can be measured."""
    if isinstance(loader, Loader):
        if content["bound_by"] == "trainer":
            return []
        return ["next: `forebay.profile` the source files and build the plan, or pass `cache=\"auto:4GB\"` to the loader"]
    if folder is None:
        told = content["prep_stall_share"] is not None
        return [
            ("" if told else "preparation and storage could not be separated; ")
            + "pass `files=` the folder of your files to see what Forebay would give"
        ]
    try:
        ours = _copy(Loader(pipeline, data=folder), "repeated", "none")
        rate = _rate(ours, None, seconds)["samples_per_second"]
    except Error as error:
        return [f"Forebay could not be measured on these files with the pipeline `{pipeline}`: {str(error).splitlines()[0]}"]
    trainer = content["measured"]["trainer"]["samples_per_second"]
    waits = max(0.0, 1 - min(rate, trainer) / trainer)
    return [
        f"Forebay loads these files with the pipeline `{pipeline}` at {_native.format_quantity(rate, 'number')} samples/s, measured now "
        f"and before any step was run offline: your accelerator would wait {waits:.0%} of the time".replace("%", " %")
    ]
