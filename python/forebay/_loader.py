"""The loader: batches of an epoch, in an order that follows from the seed alone."""

from __future__ import annotations

import atexit
import copy
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, flag, needs, number, whole
from ._errors import UsageError
from ._files import Data
from ._frameworks import converter
from ._source import Source

if TYPE_CHECKING:
    from ._pipeline import Pipeline
    from ._planning import Plan
    from ._work import Dataset

__all__ = ["Cached", "Loader", "Skipped", "Stats"]


@dataclass(frozen=True)
class Skipped:
    """A sample that was left out, or a stretch of a shard with several, and why.

    `samples` is how many: `None` where nobody knows how many the stretch was to hold, and 0 where something is damaged but could
    be read in another way.
    """

    key: str
    reason: str
    samples: int | None = 1


@dataclass(frozen=True)
class Cached:
    """What a loader keeps in memory: samples, their bytes, how often one was found there, and the state that they are kept in.

    The state is what a data set is called that is kept so (`"resized"`), or the strategy of the one that is loaded where samples are
    kept as they are stored; None before the first samples showed how large they are.
    """

    samples: int
    bytes: int
    hits: int
    state: str | None


@dataclass(frozen=True)
class Stats:
    """What the threads of a loader did with their time; printed, it says what bound the loader.

    Seconds of readers and workers are sums over their threads, `threads` each.

    seconds: from the start of each epoch to the last batch that was taken.
    read_seconds, read_wait_seconds: readers reading, and waiting for room because workers are slower.
    work_seconds, data_wait_seconds, batch_wait_seconds: workers at work, waiting for bytes, and waiting for a free batch because
        you are slower.
    consumer_wait_seconds: you, waiting for a batch.
    user_seconds, system_seconds: processor time of readers and workers, and of that in the kernel.
    """

    seconds: float
    threads: int
    samples: int
    bytes_read: int
    read_seconds: float
    read_wait_seconds: float
    work_seconds: float
    data_wait_seconds: float
    batch_wait_seconds: float
    consumer_wait_seconds: float
    user_seconds: float
    system_seconds: float

    @property
    def bound_by(self) -> str:
        """`"storage"`, `"cpu"`, or `"trainer"` where the loader was ahead of you; `"unknown"` before anything was loaded."""
        return _native.bound_by(json.dumps(asdict(self)))[0]

    def __str__(self) -> str:
        return _native.bound_by(json.dumps(asdict(self)))[1]


class Loader:
    """Streams batches: each sample of an epoch exactly once, in an order that follows from seed and epoch alone.

    `source` is a data set that Forebay built (its folder or a `Dataset`), or a pipeline (a `Pipeline`, the path of a TOML
    file, or the name of a ready one) with `data`: the folder of its files, or a list of them (see `FileList`), which come in
    that order unless they are shuffled. A batch is a dictionary: an array for each
    field, and the samples' keys under `"key"`. Arrays are views of the loader's own buffers, never copies, and may be kept
    and written to.

    One iteration gives `epochs` epochs, one after another; the next one goes on with the epoch after. An iteration that
    is left early is ended by the next, which begins the same epoch again. `state_dict` and `load_state_dict` resume in the
    middle of an epoch, with the batch after the last one that was taken: also with another number of ranks, another batch
    size and other threads. Which samples a step has (a batch of every rank) does not depend on how many ranks there are.

    A copy of a loader, be it pickled, sent to a spawned process, inherited by a forked one or made by `copy.copy`, begins where
    the next iteration over the original would begin. What a loader was made with cannot be changed afterwards.

    classes: the names of the classes, where a label is to be a place among others than those that the files have: a validation
        folder that lacks a class gets the labels of training with `classes=train.classes`. Files of other classes are errors.
    batch_size: samples in a batch.
    shuffle: put samples in random order, another one each epoch; `window_bytes` (64 MB) are shuffled at a time, in `streams`
        (16) streams. Ranks read fewest bytes where streams are as many as ranks, or a multiple.
    seed: of the order and of random steps.
    drop_last: leave out the last batch if it is not full. With several ranks, every rank then has equally many batches,
        unless samples are skipped or a step makes several of one: how many come out is known only when they are there.
    even: what becomes of the last samples, where ranks cannot share them equally: `"none"` gives some ranks one more than
        others, `"drop"` leaves them out, `"pad"` takes the first samples of the epoch again.
    threads: workers, and as many readers; one for each core unless given.
    prefetch: batches that are kept ready.
    rank, world_size: this process's share of every epoch; from the environment, where torchrun sets it, unless given.
    on_error: `"fail"` raises at the first sample that cannot be read or processed, `"skip"` leaves it out (see `skipped`).
    framework: `"numpy"`, `"torch"` or `"jax"`.
    pin_memory: copy each batch into page-locked memory, from where it goes to a GPU faster and without being waited for; only with
        `framework="torch"`. Without a GPU nothing is copied, and PyTorch's own warning says so.
    cache: how much of the samples is kept in memory from one epoch to the next: bytes, or a text such as `"2GB"`. They are kept
        after as many of the steps that always give the same as leave room for all samples (see `cached`).
    memory: the memory budget: how much may be taken at once for what is read, worked on and ready, as bytes or a text such
        as `"2GB"`; half of what the machine, the control group and `ulimit` leave, unless given. What does not fit yet waits;
        a sample or a batch that never fits raises `LimitError`. The cache is not part of it, nor are batches that you keep.
        Where several loaders run on one machine, give each its share.
    collate: what becomes of tensors that differ in shape: `"list"`, or `"pad"` with `pad_value` to the largest of the batch
        (`batch["<field>_shape"]` says how large each is).
    functions: the Python functions that a data set's steps name, where it was built with some (see `Pipeline.map`).
    storage: where bytes come from: `"local"`, `"direct"` (past the page cache), or a slower one to be imitated.
    allow_outside: let the pipeline's source name files outside `data`; only for a pipeline that you trust.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Pipeline | Dataset | Plan,
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
        window_bytes: int | None = None,
        streams: int | None = None,
        on_error: Literal["fail", "skip"] = "fail",
        framework: Literal["numpy", "torch", "jax"] = "numpy",
        pin_memory: bool = False,
        cache: int | str | None = None,
        memory: int | str | None = None,
        collate: Literal["list", "pad"] = "list",
        pad_value: float | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        storage: str = "local",
        allow_outside: bool = False,
    ) -> None:
        self.batch_size = whole("batch_size", batch_size, 1, 1 << 20)
        self.shuffle = flag("shuffle", shuffle)
        self.seed = whole("seed", seed, 0, (1 << 64) - 1)
        self.drop_last = flag("drop_last", drop_last)
        self.epochs = whole("epochs", epochs, 1, 1 << 62)
        self.threads = whole("threads", cores() if threads is None else threads, 1, THREADS_MAX)
        self.prefetch = whole("prefetch", prefetch, 0, 1024)
        self.rank, self.world_size = _rank(rank, world_size)
        self.window_bytes = None if window_bytes is None else whole("window_bytes", window_bytes, 1, 1 << 62)
        self.streams = None if streams is None else whole("streams", streams, 1, 1 << 16)
        needs("window_bytes", window_bytes, self.shuffle, "shuffle=True")
        needs("streams", streams, self.shuffle, "shuffle=True")
        if even not in ("none", "drop", "pad"):
            raise UsageError(f"no even `{even}`\nhint: `none`, `drop` or `pad`")
        if self.drop_last and even != "none":
            raise UsageError("`even` has no effect with `drop_last`\nhint: leave one of them out")
        self.even = even
        if on_error not in ("fail", "skip"):
            raise UsageError(f"no on_error `{on_error}`\nhint: `fail` or `skip`")
        self.on_error = on_error
        self.framework = framework
        self.pin_memory = flag("pin_memory", pin_memory)
        needs("pin_memory", self.pin_memory or None, framework == "torch", 'framework="torch"')
        converter(framework)
        self.cache_bytes = byte_count("cache", cache)
        self.memory_bytes = None if memory is None else byte_count("memory", memory)
        if collate not in ("list", "pad"):
            raise UsageError(f"no collate `{collate}`\nhint: `list` or `pad`")
        self.collate = collate
        self.pad_value = 0.0 if pad_value is None else number("pad_value", pad_value)
        needs("pad_value", pad_value, collate == "pad", 'collate="pad"')
        self._source = Source.of(
            source,
            data,
            storage,
            functions,
            classes=classes,
            skip_errors=on_error == "skip",
            allow_outside=flag("allow_outside", allow_outside),
        )
        self._check_shapes()
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
        self._skipped_list: list[Skipped] = []
        #: Whether an iteration began and did not come to its end, so that the next one begins its epoch again.
        self._left_early = False
        #: Weak, so that an iteration ends with the loop that it was made for, and its threads with it.
        self._iteration: weakref.ref[_Iteration] | None = None

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
                    "window_bytes": self.window_bytes,
                    "streams": self.streams,
                    "rank": self.rank,
                    "world_size": self.world_size,
                    "cache_bytes": self.cache_bytes,
                    "memory_bytes": self.memory_bytes,
                    "pad_value": self.pad_value if self.collate == "pad" else None,
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
    def samples(self) -> int:
        """How many samples an epoch has, all ranks together."""
        return len(self._source.opened())

    @property
    def classes(self) -> list[str]:
        """The names of the classes; a label is a place in this list."""
        return self._source.opened().classes

    @property
    def pipeline(self) -> Pipeline:
        """What is done to a sample, what was done once included."""
        from ._pipeline import Pipeline

        functions = self._source.functions if self._source.pipeline is None else self._source.pipeline._functions
        return Pipeline(self._source.opened().pipeline, functions)

    def __len__(self) -> int:
        """Batches that a whole iteration gives this rank; with `on_error="skip"`, some may be smaller or missing."""
        batches = self._engine().batches_from(0)
        if batches is None:
            raise TypeError("a step makes several samples of one, so that nobody knows how many batches there are")
        return batches * self.epochs

    # Iterating.

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins with this epoch. Ends an iteration that is under way."""
        self._end_iteration()
        self._go_to(whole("epoch", epoch, 0, (1 << 62) - 1), 0, 0, 0)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._end_iteration()
        if self._left_early:
            self._go_to(self._epoch, 0, 0, 0)
        iteration = _Iteration(self)
        self._iteration = weakref.ref(iteration)
        return iteration

    def close(self) -> None:
        """Ends an iteration that is under way, and its threads. The loader can be used again."""
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

    def _running(self) -> _Iteration | None:
        return None if self._iteration is None else self._iteration()

    def _start(self) -> _native.Epoch:
        return self._engine().start(json.dumps(self._state()))

    def _go_to(self, epoch: int, epochs_done: int, samples_seen: int, batches_seen: int) -> None:
        self._epoch, self._epochs_done = epoch, epochs_done
        self._samples_seen, self._batches_seen = samples_seen, batches_seen
        self._left_early = False

    @property
    def cached(self) -> Cached:
        """What is kept in memory (`cache`)."""
        return Cached(*self._engine().cached)

    def stats(self) -> Stats:
        """Where the time went since this loader was made, and what bound it."""
        iteration = self._running()
        running = None if iteration is None else iteration.stats(self._stats_before)
        found = json.loads(self._stats_before if running is None else running)
        return Stats(**{"threads": self.threads, **dict.fromkeys(_COUNTED, 0), **found})

    # What was left out.

    @property
    def skipped(self) -> int:
        """How many samples were skipped since this loader was made; samples of batches that are kept ready count too."""
        iteration = self._running()
        return self._skipped_before + (iteration.skipped()[0] if iteration is not None else 0)

    @property
    def skipped_list(self) -> list[Skipped]:
        """The first thousand of them of each epoch, and why."""
        iteration = self._running()
        return self._skipped_list + (iteration.skipped()[1] if iteration is not None else [])

    # Resuming.

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is, to be kept with a checkpoint: plain numbers and texts, the same on every rank.

        Except where a step makes several samples of one: there each rank has its own, and keeps it.
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
        """Goes on where `state` was taken: the next iteration begins with the batch after the last one taken then.

        Each sample of the epoch comes exactly once, before and after, whatever the number of ranks, the batch size and the
        threads are now. What decides the order must be the same as then; where it is not, `UsageError` says what differs.
        """
        mine = self._state()
        if not isinstance(state, Mapping) or state.get("version") != mine["version"]:
            found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            raise UsageError(f"this is no loader's state of version {mine['version']}: found `{found}`")
        epoch, done, samples = (whole(name, state.get(name), 0, 1 << 62) for name in _POSITION)
        theirs = {name: state.get(name) for name in [*mine, "batches"] if state.get(name) is not None}
        try:
            self._engine().check(json.dumps(theirs))
        except UsageError:
            raise
        except (TypeError, ValueError) as error:
            raise UsageError(f"this is no loader's state: {error}") from None
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


_COUNTED = tuple(field.name for field in fields(Stats) if field.name != "threads")
_POSITION = ("epoch", "epochs_done", "samples_seen")


#: The iterations that are under way. They end before Python does: a thread that runs a Python function cannot.
_under_way: weakref.WeakSet[_Iteration] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for iteration in list(_under_way):
        iteration.close()


class _Iteration(Iterator[dict[str, Any]]):
    """One iteration over a loader. Belongs to the process that started it; several threads may share it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._convert = converter(loader.framework, loader.pin_memory)
        self._documents = [name for name, kind in loader._source.opened().pipeline.output if kind == "json"]
        self._process = os.getpid()
        self._running: _native.Epoch | None = None
        self._over = False
        self._ended = False
        self._lock = threading.Lock()
        _under_way.add(self)

    def __next__(self) -> dict[str, Any]:
        self._check_process()
        with self._lock:
            self._check_ended()
            if self._over:
                raise StopIteration
            try:
                return self._next()
            except BaseException:
                # At the end, after an error and after Ctrl-C: no thread is left behind.
                self._over = True
                self._end_epoch()
                raise

    def _next(self) -> dict[str, Any]:
        loader = self._loader
        loader._left_early = True
        while True:
            running = self._running
            if running is None:
                running = self._running = loader._start()
            found = running.next_batch()
            if found is not None:
                samples_seen, batches_seen, batch = found
                batch = self._convert(batch)
                for name in self._documents:
                    batch[name] = [json.loads(text) for text in batch[name]]
                # Last: a batch that Ctrl-C keeps from its reader was not seen.
                loader._samples_seen, loader._batches_seen = samples_seen, batches_seen
                return batch
            # Another thread may have ended it while this one waited.
            self._check_ended()
            self._end_epoch()
            done = loader._epochs_done + 1
            loader._go_to(loader._epoch + 1, done % loader.epochs, 0, 0)
            if done >= loader.epochs:
                raise StopIteration
            loader._left_early = True

    def _end_epoch(self) -> None:
        count, listed = self.skipped()
        running, self._running = self._running, None
        if running is not None:
            self._loader._skipped_before += count
            self._loader._stats_before = running.stats(self._loader._stats_before)
            # Another list, since copies of the loader have this one too.
            self._loader._skipped_list = [*self._loader._skipped_list, *listed]
            running.close()

    def skipped(self) -> tuple[int, list[Skipped]]:
        if self._running is None or self._process != os.getpid():
            return 0, []
        count, listed = self._running.skipped()
        return count, [Skipped(key, reason, samples) for key, reason, samples in listed]

    def stats(self, before: str) -> str | None:
        running = self._running
        return None if running is None or self._process != os.getpid() else running.stats(before)

    def close(self) -> None:
        self._ended = not self._over
        self._over = True
        if self._process == os.getpid():
            self._end_epoch()

    def __del__(self) -> None:
        # The loop was left: the threads end now, and what they skipped is counted.
        self.close()

    def __reduce__(self) -> Any:
        raise UsageError("an iteration cannot be copied\nhint: copy the loader, and begin another iteration")

    def _check_ended(self) -> None:
        if self._ended:
            raise UsageError(
                "this iteration was ended, by another one over the same loader or by hand\n"
                "hint: make a second loader to iterate over the same data at the same time"
            )

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise UsageError(
                f"this iteration was started in process {self._process}, and its threads are there\n"
                "hint: start iterating in the child process; the loader itself may be made before the fork"
            )


def _rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    if rank is None and world_size is None and ("RANK" in os.environ or "WORLD_SIZE" in os.environ):
        try:
            rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        except (KeyError, ValueError):
            raise UsageError(
                "rank and world size are taken from RANK and WORLD_SIZE, which are not both set to numbers\n"
                "hint: start with torchrun, or pass `rank` and `world_size`"
            ) from None
    if rank is not None and world_size is None and os.environ.get("WORLD_SIZE", "1") != "1":
        raise UsageError(
            f"rank `{rank}` of how many? The environment says `{os.environ['WORLD_SIZE']}`\n"
            "hint: pass `world_size` with `rank`, or neither"
        )
    if rank is None and world_size not in (None, 1):
        raise UsageError(f"which of the `{world_size}` ranks is this?\nhint: pass `rank` with `world_size`")
    world_size = whole("world_size", 1 if world_size is None else world_size, 1, 1 << 30)
    rank = whole("rank", 0 if rank is None else rank, 0, 1 << 30)
    if rank >= world_size:
        raise UsageError(
            f"rank `{rank}` is not below the world size `{world_size}`\nhint: ranks count from 0; pass `world_size` with `rank`"
        )
    return rank, world_size
