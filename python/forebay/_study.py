"""The study: one training function over variants of the data, caches and regimens, with throughput, stalls and accuracy of each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._arguments import integer
from ._errors import UsageError
from ._loader import Loader
from ._progress import listener
from ._regimen import Regimen
from ._requests import Progress
from ._results import Results, Study
from ._work import Dataset

__all__ = ["Run", "Study", "study"]

#: What a variant of a study is: a data set (or its folder), arguments of a `Loader`, or a function that makes a loader.
VariantSource = str | os.PathLike[str] | Dataset | Mapping[str, Any] | Callable[..., Any]

Trained = float | Mapping[str, float] | None


class Run:
    """One training of a study. Iterating yields the number of each epoch and its loader, as a `Regimen` does.

    Attributes
    ----------
    name
        The name of the variant or regimen.
    cache
        What stays in memory between epochs; None if the study names no caches.
    repeat
        Which repetition, from 0. It is the seed of the loaders, too.
    regimen
        The regimen; of a variant, one phase.
    """

    def __init__(self, name: str, cache: str | None, repeat: int, regimen: Regimen, progress: Progress | None) -> None:
        self.name = name
        self.cache = cache
        self.repeat = repeat
        self.regimen = regimen
        #: What was measured of each epoch, and reported.
        self._history: list[dict[str, Any]] = []
        self._progress = progress

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for epoch, loader in self.regimen:
            measured = {"epoch": epoch, "phase": self.regimen.phase, "samples": 0, "seconds": 0.0, "wait_seconds": 0.0}
            self._history.append(measured)
            yield epoch, _Measured(loader, measured, self._progress)

    def report(self, **metrics: float) -> None:
        """Report figures of the epoch, e.g. `run.report(accuracy=0.7)`. The time that it takes to find them does not count."""
        if not self._history:
            raise UsageError("nothing was trained yet\nhint: call `report` after the batches of an epoch")
        self._history[-1].update({name: float(value) for name, value in metrics.items()})


class _Measured:
    """A loader that counts its samples, the time of a pass, and how much of it was spent waiting for batches."""

    def __init__(self, loader: Any, measured: dict[str, Any], progress: Progress | None) -> None:
        self._loader = loader
        self._measured = measured
        self._progress = progress

    def __iter__(self) -> Iterator[Any]:
        asked = time.perf_counter()
        for batch in self._loader:
            given = time.perf_counter()
            self._waited(given - asked)
            samples = _samples_of(batch)
            self._measured["samples"] += samples
            if self._progress is not None:
                self._progress.advance(samples)
            yield batch
            asked = time.perf_counter()
            self._measured["seconds"] += asked - given
        # The loader says only now that there are no more.
        self._waited(time.perf_counter() - asked)

    def _waited(self, seconds: float) -> None:
        self._measured["wait_seconds"] += seconds
        self._measured["seconds"] += seconds

    def __len__(self) -> int:
        return len(self._loader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def study(
    train: Callable[[Run], Trained],
    variants: Mapping[str, VariantSource],
    *,
    epochs: int = 1,
    caches: Sequence[str] | None = None,
    regimens: Mapping[str, Callable[[Mapping[str, Any]], Regimen]] | None = None,
    repeats: int = 1,
    output: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> Study:
    """Train with every variant of the data, cache and regimen, and tabulate throughput, stalls and accuracy.

    Throughput is that of your training: samples over the time of all epochs but the first (of one epoch, of that), and the stall share is
    the part of that time in which your loop waited for a batch. Evaluating between epochs does not count.

    Parameters
    ----------
    train
        Trains one model: `for epoch, loader in run: for batch in loader: …`. It returns the accuracy, a dictionary of figures
        with `"accuracy"`, or nothing if it reports each epoch (`Run.report`).
    variants
        By name, what to load from, best quality first: a data set or its folder, a dictionary of arguments of `Loader` (`source`, `data`,
        …), or a function that makes a loader, also one of other libraries.
    epochs
        Number of epochs of each variant.
    caches
        Values for `cache` of `Loader`: every variant and regimen runs with each. Functions that make loaders are called with `cache=`.
    regimens
        By name, functions that make a `Regimen` of the loaders by variant.
    repeats
        Number of runs of each, with different seeds.
    output
        A folder for the results. A study that was interrupted and is called again with the same arguments continues after the last
        run that was finished.
    progress
        Show a progress bar. By default only on a terminal or in a notebook.
    options
        Further arguments of `Loader`: `batch_size`, `shuffle`, `threads`, `storage`, …

    Examples
    --------
    >>> variants = {"original": "built/jpeg-95", "q50": "built/jpeg-50", "q10": "built/jpeg-10"}
    >>> study = forebay.study(train, variants, epochs=5, batch_size=64, shuffle=True, output="study/")
    >>> study                            # a table
    >>> study.report("study.html")       # with plots
    """
    if not variants:
        raise UsageError("`variants` is empty\nhint: pass the original and at least one other")
    epochs = integer("epochs", epochs, 1, 1 << 40)
    repeats = integer("repeats", repeats, 1, 1 << 20)
    results = Results(None if output is None else Path(output))
    shown = listener(progress)
    settings = {name: repr(value) for name, value in sorted(options.items())}
    for name in regimens or {}:
        if name in variants:
            raise UsageError(f"a variant and a regimen are both called `{name}`\nhint: give one another name")
    kept: list[str | None] = [None] if caches is None else [*caches]
    for repeat in range(repeats):
        for cache in kept:
            for name in [*variants, *(regimens or {})]:
                what = {"name": name, "cache": cache, "repeat": repeat, "epochs": epochs, "options": settings}
                if not results.has(what):
                    loaders = _Loaders(variants, cache, {"seed": repeat, **options})
                    make = (regimens or {}).get(name)
                    regimen = Regimen([(name, loaders[name], epochs)]) if make is None else make(loaders)
                    results.add({**what, "kind": "variant" if make is None else "regimen", **_measure(train, what, regimen, loaders, shown)})
    return Study(results.of(list(variants), list(regimens or {}), kept, repeats, epochs, settings))


def _measure(train: Callable[[Run], Trained], what: dict[str, Any], regimen: Regimen, loaders: _Loaders, progress: Progress | None) -> dict[str, Any]:
    run = Run(what["name"], what["cache"], what["repeat"], regimen, progress)
    if progress is not None:
        cached = "" if run.cache is None else f", cache {run.cache}"
        total = sum(phase.epochs * getattr(phase.loader, "samples", 0) for phase in regimen.phases)
        progress.begin(f"{run.name}{cached}, repeat {run.repeat}", total)
    began = time.perf_counter()
    try:
        trained = train(run)
        seconds = time.perf_counter() - began
        figures = loaders.figures(regimen)
    finally:
        loaders.close()
        if progress is not None:
            progress.end()
    history = run._history
    if not history or not any(epoch["samples"] for epoch in history):
        raise UsageError("`train` loaded no batches\nhint: `for epoch, loader in run: for batch in loader: …`")
    metrics = dict(trained) if isinstance(trained, Mapping) else {} if trained is None else {"accuracy": trained}
    last = {name: value for name, value in history[-1].items() if name not in ("epoch", "phase", "samples", "seconds", "wait_seconds")}
    # The first epoch fills caches and starts threads; where it is all there is, it counts.
    counted = history[1:] or history
    samples, spent, waited = (sum(epoch[name] for epoch in counted) for name in ("samples", "seconds", "wait_seconds"))
    return {
        "samples_per_second": samples / spent,
        "stall_share": waited / spent,
        "first_epoch_seconds": history[0]["seconds"],
        "epoch_seconds": spent / len(counted),
        "seconds": seconds,
        **figures,
        "metrics": {name: float(value) for name, value in {**last, **metrics}.items()},
        "history": history,
    }


class _Loaders(Mapping[str, Any]):
    """The loaders of one run by variant, each made when it is asked for."""

    def __init__(self, variants: Mapping[str, VariantSource], cache: str | None, options: Mapping[str, Any]) -> None:
        self._variants = variants
        self._given = {} if cache is None else {"cache": cache}
        self._options = options
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(self._variants[name])
        return self._made[name]

    def _make(self, variant: VariantSource) -> Any:
        if callable(variant):
            return variant(**self._given)
        if isinstance(variant, Mapping):
            # What is said of one variant counts more than what is said of all.
            return Loader(**{**self._options, **self._given, **variant})
        return Loader(variant, **{**self._options, **self._given})

    def __iter__(self) -> Iterator[str]:
        return iter(self._variants)

    def __len__(self) -> int:
        return len(self._variants)

    def figures(self, regimen: Regimen) -> dict[str, Any]:
        """What else is known: the size of an epoch's data, what was read of it, and the bottleneck, of the phase that comes last."""
        sizes = {name: _bytes_of(self._variants[name]) for name in self._made}
        last = regimen.phases[-1]
        known = [sizes.get(phase.name) for phase in regimen.phases]
        average = None if None in known else regimen.average_bytes({name: size for name, size in sizes.items() if size is not None})
        loader = last.loader
        stats = loader.stats() if isinstance(loader, Loader) else None
        return {
            "bytes": None if average is None else round(average),
            "bytes_read": None if stats is None else stats.bytes_read,
            "bound_by": None if stats is None else stats.bound_by,
        }

    def close(self) -> None:
        for loader in self._made.values():
            if isinstance(loader, Loader):
                loader.close()
        self._made.clear()


def _bytes_of(variant: VariantSource) -> int | None:
    """The size of a variant, where it is a data set or files."""
    if isinstance(variant, Mapping):
        data = variant.get("data")
        if isinstance(data, str | os.PathLike):
            return sum(path.stat().st_size for path in Path(data).rglob("*") if path.is_file())
        return _bytes_of(variant["source"]) if "source" in variant else None
    if isinstance(variant, Dataset):
        return variant.bytes
    if isinstance(variant, str | os.PathLike) and Path(variant).is_dir():
        return Dataset(variant).bytes
    return None


def _samples_of(batch: Any) -> int:
    """The samples of a batch: ours by their keys, others by the length of their first part."""
    if isinstance(batch, Mapping):
        batch = batch["key"] if "key" in batch else next(iter(batch.values()), ())
    elif isinstance(batch, tuple | list) and batch and hasattr(batch[0], "__len__"):
        batch = batch[0]
    return len(batch) if hasattr(batch, "__len__") else 1
