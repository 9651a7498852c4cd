"""The loader: batches of an epoch, in an order that follows from the seed alone."""

from __future__ import annotations

import copy
import json
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cache_policy, cores, flag, integer, needs, number
from ._errors import UsageError
from ._files import Data
from ._foreign_names import hinted
from ._frameworks import converter, imported
from ._iteration import Iteration
from ._sampling import balanced, chosen, matching
from ._source import Several, Source
from ._stats import Cached, Skipped, Stats

if TYPE_CHECKING:
    from ._pipeline import Pipeline
    from ._planning import Plan, Profile
    from ._work import Dataset

__all__ = ["Loader"]


class Loader:
    """Stream batches from a data set or a pipeline.

    Each epoch yields every sample exactly once (unless `subset`, `where`, `weights` or `repeats` say otherwise), in an order that depends only on
    the seed and the epoch. A batch is a dictionary
    with an array per field, and the keys of the samples under `"key"`. Arrays are zero-copy views of the loader's buffers, and
    may be kept and written to.

    Iterating yields `epochs` epochs; iterating again continues with the next epoch. If a loop is left early, the next one restarts
    that epoch. `state_dict` and `load_state_dict` resume in the middle of an epoch, also with another number of ranks, batch
    size or number of threads: which samples make up a step (one batch of every rank) does not depend on the number of ranks.

    A loader can be copied, pickled, and sent to other processes. A copy starts where the next iteration over the original would
    start. The options of a loader cannot be changed, except `scans`.

    Parameters
    ----------
    source
        A data set built by Forebay (its folder or a `Dataset`), a `Plan`, or a pipeline: a `Pipeline`, the path of a TOML file,
        or the name of a preset. A list of several data sets, or of tuples of a pipeline and its data, interleaves them by `weights`.
    data
        The source files of a pipeline: a folder, or a list of files (see `FileList`) whose order is kept unless shuffled.
    classes
        Class names that labels index into. By default the classes found in `data`. Use `classes=train.classes` for a validation
        folder that lacks some of them. Files of other classes are errors.
    batch_size
        Number of samples per batch.
    shuffle
        Shuffle the samples, in a different order every epoch.
    seed
        Seed of shuffling and random steps.
    drop_last
        Drop the last batch if it is incomplete. Every rank then has the same number of batches, unless samples are skipped or a
        step makes several samples of one.
    even
        What to do with the last samples if ranks cannot share them equally: `"none"` gives some ranks one more sample,
        `"drop"` drops them, `"pad"` repeats the first samples of the epoch.
    epochs
        Number of epochs per iteration.
    threads
        Number of worker threads, and of reader threads. By default the number of cores.
    prefetch
        Number of batches to prefetch.
    rank, world_size
        The rank of this process, and the number of ranks that share each epoch. By default from the environment variables `RANK`
        and `WORLD_SIZE`, which torchrun sets.
    shuffle_window
        Size of the shuffle window in bytes, or e.g. `"64MB"` (the default). A window as large as the data set shuffles it fully.
    streams
        Number of streams that a shuffled epoch is read in (default 16). With a multiple of the world size, each rank reads its own
        streams and the fewest bytes.
    subset
        The samples to load: their numbers, counted in the order of a loader without `shuffle`, their keys (e.g. a column of a table), or a
        function of a sample's key and label that returns whether to load it. By default all. A function is called once for each sample when the
        loader is created; the keys and labels of a data set are read from its records.
    where
        A condition that samples must meet to be loaded, e.g. `"split == 'train' and width >= 224"`: comparisons (`==`, `!=`, `<`, `<=`, `>`, `>=`,
        `in (…)`) of columns, joined by `and`, `or` and `not`. Columns are those of `table`, of Parquet and Arrow files, and `key`, `label` and `class` (the
        name of the class). With `subset`, samples must be in both.
    table
        The table of `where`: the path of a CSV, TSV or Parquet file. Its first column has the keys (paths) of the samples, the names of their
        files, or these without the extension. Samples that it does not name are not loaded.
    weights
        How probable each sample is, compared with the others, in that order: an epoch draws `num_samples` of them. `"balanced"` makes
        classes equally probable, by the labels that are known without decoding, with replacement. With a list of data sets, how much of an epoch comes of each: with `shuffle=True` every batch has these
        shares. A small data set is repeated, and a large one gives different samples every epoch.
    replacement
        A sample may be drawn more than once in an epoch.
    num_samples
        Number of samples per epoch, over all ranks. By default as many as there are.
    repeats
        How often each drawn sample comes in an epoch, with other random choices each time (repeated augmentation). The length of the
        epoch stays the same.
    on_error
        `"fail"` raises at the first sample that cannot be read or processed; `"skip"` skips it (see `skipped`).
    framework
        Type of the arrays: `"numpy"`, `"torch"` or `"jax"`.
    pin_memory
        Copy each batch into page-locked memory for faster transfers to a GPU. Requires `framework="torch"`.
    cache
        What stays in memory between epochs (see `cached`): `"none"`; `"page"` (the default: the system's page cache); `"minio:2GB"`, a
        fixed random set of samples as they are stored; `"decoded:2GB"`, or a size alone, samples after as many deterministic steps as leave space for
        all of them; `"liquid:2GB"`, samples as they are stored, different ones every epoch and the same share of every batch (with `shuffle=True`; the
        budget of all ranks together); `"auto:2GB"`, the best of these, by the rates of `profile`, otherwise by sizes (`loader.cached.reason` says why).
    cache_dir, cache_size
        Folder in which to cache shards that are read from a bucket, from run to run, and its size (default `"100GB"`). Processes may share it.
    profile
        A `Profile` of the data, or the path of one, by which `cache="auto:..."` chooses.
    memory
        Memory budget in bytes, or e.g. `"2GB"`, for data that is read, processed or waiting in batches. By default half of what
        the machine, the control group and `ulimit` allow. A sample or batch that can never fit raises `LimitError`. The
        cache and the batches that you keep are not included. If several loaders share a machine, give each a part.
    collate
        How to batch tensors of different shapes: `"list"`, or `"pad"` to the largest shape of the batch; `batch["<field>_shape"]`
        then has the shape of each.
    pad_value
        The value to pad with (default 0).
    functions
        The Python functions of a data set's steps, by name (see `Pipeline.map`).
    decode, device
        Where images are decoded: `"cpu"`, or `"gpu"` (experimental): images that a data set stores as L3 are sent to `device` (default `"cuda"`) as they are,
        decoded there, and cropped and normalized if the pipeline says so. Requires `framework="torch"`, and `pip install forebay[gpu]`.
    scans
        How many of the 10 groups of scans to read of progressive records (a data set that was built as `concatenated+pcr`): fewer bytes, and
        images of a lower quality. By default all. `loader.scans = 5` changes it from the next iteration on; the order of samples stays.
    storage
        Storage to read from: `"local"`, `"direct"` (bypasses the page cache), `"mmap"` (reads the page cache without copying, for files
        that do not change), or one to simulate, e.g. `"ceph-hdd"`.
    allow_outside
        Allow the pipeline to read files outside `data`. Only for pipelines that you trust.

    Examples
    --------
    >>> loader = forebay.Loader("dataset/", batch_size=256, shuffle=True, framework="torch")
    >>> for batch in loader:
    ...     train(batch["image"], batch["label"])
    """

    @hinted
    def __init__(
        self,
        source: str | os.PathLike[str] | Pipeline | Dataset | Plan | list[Any],
        *,
        data: Data | None = None,
        classes: Iterable[str] | None = None,
        batch_size: int = 64,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        even: Literal["none", "drop", "pad"] = "none",
        epochs: int = 1,
        threads: int | None = None,
        prefetch: int = 2,
        rank: int | None = None,
        world_size: int | None = None,
        shuffle_window: int | str | None = None,
        streams: int | None = None,
        subset: Iterable[int] | Iterable[str] | Callable[[str, Any], bool] | None = None,
        where: str | None = None,
        table: str | os.PathLike[str] | None = None,
        weights: Iterable[float] | Literal["balanced"] | None = None,
        replacement: bool = False,
        num_samples: int | None = None,
        repeats: int = 1,
        on_error: Literal["fail", "skip"] = "fail",
        framework: Literal["numpy", "torch", "jax"] = "numpy",
        pin_memory: bool = False,
        cache: int | str | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_size: int | str | None = None,
        profile: Profile | str | os.PathLike[str] | None = None,
        memory: int | str | None = None,
        collate: Literal["list", "pad"] = "list",
        pad_value: float | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        decode: Literal["cpu", "gpu"] = "cpu",
        device: str | None = None,
        scans: int | None = None,
        storage: str = "local",
        allow_outside: bool = False,
    ) -> None:
        self.batch_size = integer("batch_size", batch_size, 1, 1 << 20)
        self.shuffle = flag("shuffle", shuffle)
        self.seed = integer("seed", seed, 0, (1 << 64) - 1)
        self.drop_last = flag("drop_last", drop_last)
        self.epochs = integer("epochs", epochs, 1, 1 << 62)
        self.threads = integer("threads", cores() if threads is None else threads, 1, THREADS_MAX)
        self.prefetch = integer("prefetch", prefetch, 0, 1024)
        self.rank, self.world_size = _rank(rank, world_size)
        self.shuffle_window = None if shuffle_window is None else integer("shuffle_window", byte_count("shuffle_window", shuffle_window), 1, 1 << 62)
        self.streams = None if streams is None else integer("streams", streams, 1, 1 << 16)
        needs("shuffle_window", shuffle_window, self.shuffle, "shuffle=True")
        needs("streams", streams, self.shuffle, "shuffle=True")
        if isinstance(weights, str) and weights != "balanced":
            raise UsageError(f'`weights` is `{weights}`, but must be `"balanced"` or a weight for each sample')
        by_class = isinstance(weights, str)
        self.weights = None if weights is None or isinstance(weights, str) else [number("weights", weight) for weight in weights]
        # Without replacement, an epoch of all samples has each of them once, regardless of the weights.
        self.replacement = flag("replacement", replacement) or by_class
        self.num_samples = None if num_samples is None else integer("num_samples", num_samples, 1, 1 << 50)
        self.repeats = integer("repeats", repeats, 1, 1 << 20)
        if even not in ("none", "drop", "pad"):
            raise UsageError(f"`even` is `{even}`, but must be `none`, `drop` or `pad`")
        if self.drop_last and even != "none":
            raise UsageError("`even` has no effect with `drop_last`\nhint: omit one of them")
        self.even = even
        if on_error not in ("fail", "skip"):
            raise UsageError(f"`on_error` is `{on_error}`, but must be `fail` or `skip`")
        self.on_error = on_error
        self.framework = framework
        self.pin_memory = flag("pin_memory", pin_memory)
        needs("pin_memory", self.pin_memory or None, framework == "torch", 'framework="torch"')
        converter(framework)
        self.cache, self.cache_bytes = cache_policy(cache)
        self.cache_dir = None if cache_dir is None else os.path.abspath(cache_dir)
        self.cache_size = byte_count("cache_size", "100GB" if cache_size is None else cache_size)
        needs("cache_size", cache_size, cache_dir is not None, 'cache_dir="…"')
        needs("profile", profile, self.cache.startswith("auto:"), 'cache="auto:SIZE"')
        self._profile = None if profile is None else _profile_text(profile)
        self.memory = None if memory is None else byte_count("memory", memory)
        if collate not in ("list", "pad"):
            raise UsageError(f"`collate` is `{collate}`, but must be `list` or `pad`")
        self.collate = collate
        self.pad_value = 0.0 if pad_value is None else number("pad_value", pad_value)
        needs("pad_value", pad_value, collate == "pad", 'collate="pad"')
        if decode not in ("cpu", "gpu"):
            raise UsageError(f"`decode` is `{decode}`, but must be `cpu` or `gpu`")
        self.decode = decode
        self.device = "cuda" if device is None else device
        needs("device", device, decode == "gpu", 'decode="gpu"')
        if decode == "gpu":
            needs("decode", decode, framework == "torch", 'framework="torch"')
            needs("collate", None if collate == "list" else collate, False, 'decode="cpu"')
            imported("triton", "forebay[gpu]")
        options: dict[str, Any] = {
            "classes": classes,
            "skip_errors": on_error == "skip",
            "allow_outside": flag("allow_outside", allow_outside),
            "cache": self.cache,
            "scans": _scan_groups(scans),
            "block_cache": None if self.cache_dir is None else (self.cache_dir, self.cache_size),
        }
        self._source: Source
        if isinstance(source, list):
            self._source = Several.of_list(source, data, storage, functions, options)
        else:
            self._source = Source.of(source, data, storage, functions, **options)
        needs("table", table, where is not None, "where")
        self.subset = matching(where, table, chosen(subset, self._source), self._source)
        if by_class:
            if isinstance(source, list):
                raise UsageError('`weights` is `"balanced"`, but several data sets need a weight each\nhint: pass as many weights as data sets')
            self.num_samples = self.num_samples or (None if self.subset is None else len(self.subset))
            self.weights, self.subset = balanced(self.subset, self._source), None
        self._check_shapes()
        if decode == "gpu":
            self._source.opened().on_device()
        self._fixed = frozenset(name for name in self.__dict__ if not name.startswith("_"))
        self._made: _native.Loader | None = None
        self._process = 0
        self._epoch = 0
        self._epochs_done = 0
        #: How much of the epoch was seen: samples of all ranks together; batches of this one where only those can be counted.
        self._samples_seen = 0
        self._batches_seen = 0
        self._skipped_before = 0
        self._stats_before = "{}"
        self._skipped_samples: list[Skipped] = []
        #: Whether an iteration began and was not completed, so that the next one restarts its epoch.
        self._left_early = False
        #: Weak, so that an iteration ends with the loop that it was made for, and its threads with it.
        self._iteration: weakref.ref[Iteration] | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__.get("_fixed", ()):
            raise AttributeError(f"`{name}` of a loader cannot be changed\nhint: make another loader")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._fixed:
            raise AttributeError(f"`{name}` of a loader cannot be removed")
        super().__delattr__(name)

    # What there is.

    def _engine(self) -> _native.Loader:
        """Made once in each process that uses it."""
        if self._made is None or self._process != os.getpid():
            several = isinstance(self._source, Several)
            self._made = _native.Loader(
                self._source.opened(),
                {
                    "batch_size": self.batch_size,
                    "threads": self.threads,
                    "prefetch": self.prefetch,
                    "drop_last": self.drop_last,
                    "even": self.even,
                    "skip_errors": self.on_error == "skip",
                    "seed": self.seed,
                    "shuffle": self.shuffle,
                    "shuffle_window": self.shuffle_window,
                    "streams": self.streams,
                    "subset": self.subset,
                    "weights": None if several else self.weights,
                    "shares": self.weights if several else None,
                    "replacement": self.replacement,
                    "num_samples": self.num_samples,
                    "repeats": self.repeats,
                    "rank": self.rank,
                    "world_size": self.world_size,
                    "cache": self.cache,
                    "profile": self._profile,
                    "memory_bytes": self.memory,
                    "pad_value": self.pad_value if self.collate == "pad" else None,
                    "decode_on_device": self.decode == "gpu",
                },
            )
            self._process = os.getpid()
        return self._made

    def _check_shapes(self) -> None:
        fields = [name for name, _ in self._source.opened().pipeline.output]
        taken = [name for name in fields if f"{name}_shape" in fields]
        if self.collate == "pad" and taken:
            raise UsageError(
                f"`collate='pad'` puts the shapes of `{taken[0]}` into `{taken[0]}_shape`, which is a field already\n"
                "hint: give that field another name"
            )

    @property
    def scans(self) -> int | None:
        """How many groups of scans are read of progressive records; `None`: all. Setting it ends a running iteration, and empties the cache."""
        return self._source.scans

    @scans.setter
    def scans(self, scans: int | None) -> None:
        source = self._source.with_scans(_scan_groups(scans))
        if source.pipeline is not None:
            raise UsageError("`scans` is for a data set of progressive records")
        source.opened()
        self._end_iteration()
        self._source, self._made = source, None

    @property
    def samples(self) -> int:
        """Number of samples per epoch, over all ranks."""
        return self._engine().samples

    @property
    def classes(self) -> list[str]:
        """The class names. A label is an index into this list."""
        return self._source.opened().classes

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, including the steps that were run offline."""
        from ._pipeline import Pipeline

        functions = self._source.functions if self._source.pipeline is None else self._source.pipeline._functions
        return Pipeline(self._source.opened().pipeline, functions)

    def __len__(self) -> int:
        """Number of batches per iteration on this rank. With `on_error="skip"`, batches may be smaller or missing."""
        batches = self._engine().batches_from(0)
        if batches is None:
            raise TypeError("a step makes several samples of one, so that the number of batches is unknown")
        return batches * self.epochs

    # Iterating.

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Start the next iteration with this epoch. Ends a running iteration."""
        self._end_iteration()
        self._go_to(integer("epoch", epoch, 0, (1 << 62) - 1), 0, 0, 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._end_iteration()
        if self._left_early:
            self._go_to(self._epoch, 0, 0, 0)
        iteration = Iteration(self)
        self._iteration = weakref.ref(iteration)
        return iteration

    def close(self) -> None:
        """End a running iteration and its threads. The loader can be used again."""
        self._end_iteration()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_iteration(self) -> None:
        iteration = self._running()
        if iteration is not None:
            iteration.close()
        self._iteration = None

    def _running(self) -> Iteration | None:
        return None if self._iteration is None else self._iteration()

    def _start(self) -> _native.Epoch:
        return self._engine().start(json.dumps(self._state()))

    def _go_to(self, epoch: int, epochs_done: int, samples_seen: int, batches_seen: int) -> None:
        self._epoch, self._epochs_done = epoch, epochs_done
        self._samples_seen, self._batches_seen = samples_seen, batches_seen
        self._left_early = False

    @property
    def cached(self) -> Cached:
        """What the cache holds (see `cache`)."""
        return Cached(*self._engine().cached)

    def stats(self) -> Stats:
        """Where the time went since the loader was created, and the bottleneck."""
        iteration = self._running()
        running = None if iteration is None else iteration.stats(self._stats_before)
        found = json.loads(self._stats_before if running is None else running)
        return Stats(**{"threads": self.threads, **dict.fromkeys(_COUNTED, 0), **found})

    # What was left out.

    @property
    def skipped(self) -> int:
        """Number of samples skipped since the loader was created, including those of prefetched batches."""
        iteration = self._running()
        return self._skipped_before + (iteration.skipped()[0] if iteration is not None else 0)

    @property
    def skipped_samples(self) -> list[Skipped]:
        """The first thousand skipped samples of each epoch, with the reasons."""
        iteration = self._running()
        return self._skipped_samples + (iteration.skipped()[1] if iteration is not None else [])

    # Resuming.

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the loader, to be saved with a checkpoint.

        The state consists of plain numbers and strings, and is the same on every rank. Only if a step makes several samples of one,
        each rank has its own state.
        """
        return {**self._state(), "epochs_done": self._epochs_done}

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self._engine().beginning_of(self._epoch))
        if "batches" in state:
            state["batches"]["seen"] = self._batches_seen
        else:
            state["samples_seen"] = self._samples_seen
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state returned by `state_dict`.

        The next iteration starts with the batch after the last one taken. Each sample of the epoch is yielded exactly once overall,
        even if the number of ranks, the batch size or the number of threads has changed. Options that determine the order must
        be unchanged; otherwise a `UsageError` names the difference.
        """
        mine = self._state()
        if not isinstance(state, Mapping) or state.get("version") != mine["version"]:
            found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            raise UsageError(f"this is not a loader state of version {mine['version']}: found `{found}`")
        epoch, done, samples = (integer(name, state.get(name), 0, 1 << 62) for name in _POSITION)
        theirs = {name: state.get(name) for name in [*mine, "batches"] if state.get(name) is not None}
        try:
            self._engine().check(json.dumps(theirs))
        except UsageError:
            raise
        except (TypeError, ValueError) as error:
            raise UsageError(f"this is not a loader state: {error}") from None
        batches: dict[str, int] = theirs.get("batches") or {"seen": 0}
        self._end_iteration()
        self._go_to(epoch, done, samples, batches["seen"])

    # Copies, also in other processes: what was asked for and the position go along, threads do not. Whether an iteration was left
    # early goes along too, so that the next one begins where it would here.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iteration": None, "_made": None, "_process": 0}

    def _share(self, part: int, parts: int) -> Loader:
        """A copy that has one of `parts` equal parts of this loader's share."""
        other = copy.copy(self)
        other.__dict__.update(rank=self.rank * parts + part, world_size=self.world_size * parts)
        return other

    def _begins_within_an_epoch(self) -> bool:
        return not self._left_early and (self._samples_seen > 0 or self._batches_seen > 0)

    def __repr__(self) -> str:
        shape = ", ".join(f"{name}: {kind}" for name, kind in self._source.opened().pipeline.output)
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (
            f"Loader({self._source.describe()}: {self.samples:,} samples in batches of {self.batch_size}"
            f"{', shuffled' if self.shuffle else ''}{rank}; {shape})"
        )


def _profile_text(profile: Profile | str | os.PathLike[str]) -> str:
    from ._planning import Profile

    return (profile if isinstance(profile, Profile) else Profile.load(profile)).to_json()


def _scan_groups(scans: int | None) -> int | None:
    return None if scans is None else integer("scans", scans, 1, 10)


_COUNTED = tuple(field.name for field in fields(Stats) if field.name != "threads")
_POSITION = ("epoch", "epochs_done", "samples_seen")


def _rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if rank is None and world_size is None and ("RANK" in os.environ or "WORLD_SIZE" in os.environ):
        try:
            rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except (KeyError, ValueError):
            raise UsageError(
                "the environment variables RANK and WORLD_SIZE are not both set to integers\n"
                "hint: start with torchrun, or pass `rank` and `world_size`"
            ) from None
    if rank is not None and world_size is None and os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError(
            f"`rank` is given without `world_size`, and the environment has WORLD_SIZE=`{os.environ['WORLD_SIZE']}`\n"
            "hint: pass `world_size` with `rank`, or neither"
        )
    if rank is None and world_size not in (None, 1):
        raise UsageError(f"`world_size` is `{world_size}`, but `rank` is missing\nhint: pass `rank` with `world_size`")
    world_size = integer("world_size", 1 if world_size is None else world_size, 1, 1 << 30)
    rank = integer("rank", 0 if rank is None else rank, 0, 1 << 30)
    if rank >= world_size:
        raise UsageError(
            f"rank `{rank}` is not below the world size `{world_size}`\nhint: ranks count from 0; pass `world_size` with `rank`"
        )
    return rank, world_size
