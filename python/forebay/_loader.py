"""The loader: batches of an epoch, in an order that follows from the seed alone."""

from __future__ import annotations

import atexit
import copy
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, flag, number, whole
from ._errors import UsageError
from ._frameworks import converter
from ._source import Source

if TYPE_CHECKING:
    from ._pipeline import Pipeline
    from ._planning import Plan
    from ._work import Dataset

__all__ = ["Cached", "Loader", "Skipped"]

#: The layout of what `Loader.state_dict` gives.
STATE_VERSION = 1


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
    """What a loader keeps in memory: samples, their bytes, and how often one was found there."""

    samples: int
    bytes: int
    hits: int


class Loader:
    """Streams batches: each sample of an epoch exactly once, in an order that follows from seed and epoch alone.

    `source` is a data set that Forebay built (its folder or a `Dataset`), or a pipeline (a `Pipeline`, the path of a TOML
    file, or the name of a ready one) with `data`, the folder of its files. A batch is a dictionary: an array for each
    field, and the samples' keys under `"key"`. Arrays are views of the loader's own buffers, never copies, and may be kept
    and written to.

    One iteration gives `epochs` epochs, one after another; the next one goes on with the epoch after. An iteration that
    is left early is ended by the next, which begins the same epoch again. `state_dict` and `load_state_dict` resume in the
    middle of an epoch, with the batch after the last one that was taken.

    batch_size: samples in a batch.
    shuffle: put samples in random order, another one each epoch; `window_bytes` are shuffled at a time.
    seed: of the order and of random steps.
    drop_last: leave out the last batch if it is not full. With several ranks, every rank then has equally many batches,
        unless samples are skipped or a step makes several of one: how many come out is known only when they are there.
    threads: workers, and as many readers; one for each core unless given.
    prefetch: batches that are kept ready.
    rank, world_size: this process's share of every epoch. `rank=None` takes both from the environment, as torchrun sets it.
    on_error: `"fail"` raises at the first sample that cannot be read or processed, `"skip"` leaves it out (see `skipped`).
    framework: `"numpy"`, `"torch"` or `"jax"`.
    cache: how much of the samples is kept in memory from one epoch to the next, after the steps that always give the same:
        bytes, or a text such as `"2GB"`.
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
        data: str | os.PathLike[str] | None = None,
        batch_size: int = 64,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        epochs: int = 1,
        threads: int | None = None,
        prefetch: int = 2,
        rank: int | None = 0,
        world_size: int | None = None,
        window_bytes: int = 64_000_000,
        on_error: Literal["fail", "skip"] = "fail",
        framework: Literal["numpy", "torch", "jax"] = "numpy",
        cache: int | str | None = None,
        memory: int | str | None = None,
        collate: Literal["list", "pad"] = "list",
        pad_value: float = 0.0,
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
        self.window_bytes = whole("window_bytes", window_bytes, 1, 1 << 62)
        if on_error not in ("fail", "skip"):
            raise UsageError(f"no on_error `{on_error}`\nhint: `fail` or `skip`")
        self.on_error = on_error
        self.framework = framework
        converter(framework)
        self.cache_bytes = byte_count("cache", cache)
        self.memory_bytes = None if memory is None else byte_count("memory", memory)
        if collate not in ("list", "pad"):
            raise UsageError(f"no collate `{collate}`\nhint: `list` or `pad`")
        self.collate = collate
        self.pad_value = number("pad_value", pad_value)
        self._source = Source.of(
            source,
            data,
            storage,
            functions,
            skip_errors=on_error == "skip",
            allow_outside=flag("allow_outside", allow_outside),
        )
        self._check_shapes()
        self._epoch = 0
        self._epochs_done = 0
        self._batches_seen = 0
        self._skipped_before = 0
        self._skipped_list: list[Skipped] = []
        #: Whether an iteration began and did not come to its end, so that the next one begins its epoch again.
        self._left_early = False
        #: Weak, so that an iteration ends with the loop that it was made for, and its threads with it.
        self._iteration: weakref.ref[_Iteration] | None = None

    # What there is.

    def _samples(self) -> _native.Samples:
        return self._source.samples()

    def _check_shapes(self) -> None:
        fields = [name for name, _ in self._samples().pipeline.output]
        taken = [name for name in fields if f"{name}_shape" in fields]
        if self.collate == "pad" and taken:
            raise UsageError(
                f"`collate='pad'` puts the shapes of `{taken[0]}` into `{taken[0]}_shape`, which is a field already\n"
                "hint: give that field another name"
            )

    @property
    def samples(self) -> int:
        """How many samples an epoch has, all ranks together."""
        return len(self._samples())

    @property
    def classes(self) -> list[str]:
        """The names of the classes; a label is a place in this list."""
        return self._samples().classes

    @property
    def pipeline(self) -> Pipeline:
        """What is done to a sample, what was done once included."""
        from ._pipeline import Pipeline

        functions = self._source.functions if self._source.pipeline is None else self._source.pipeline._functions
        return Pipeline(self._samples().pipeline, functions)

    def __len__(self) -> int:
        """Batches in one epoch of this rank; with `on_error="skip"`, some may be smaller or missing."""
        if self._samples().expands:
            raise TypeError("a step makes several samples of one, so that nobody knows how many batches there are")
        return self._batches()

    def _batches(self) -> int:
        samples = self.samples
        if self.drop_last:
            # The smallest share, so that no rank waits for another one's last batch.
            return samples // self.world_size // self.batch_size
        share = samples * (self.rank + 1) // self.world_size - samples * self.rank // self.world_size
        return -(-share // self.batch_size)

    # Iterating.

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is of."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """The next iteration begins with this epoch. Ends an iteration that is under way."""
        self._end_iteration()
        self._epoch = whole("epoch", epoch, 0, (1 << 62) - 1)
        self._epochs_done = 0
        self._batches_seen = 0
        self._left_early = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._end_iteration()
        if self._left_early:
            self._epochs_done = 0
            self._batches_seen = 0
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
        return self._samples().start(
            {
                "batch_size": self.batch_size,
                "threads": self.threads,
                "prefetch": self.prefetch,
                "drop_last": self.drop_last,
                "skip_errors": self.on_error == "skip",
                "seed": self.seed,
                "epoch": self._epoch,
                "window_bytes": self.window_bytes if self.shuffle else None,
                "rank": self.rank,
                "world_size": self.world_size,
                "batches_seen": self._batches_seen,
                "cache_bytes": self.cache_bytes,
                "memory_bytes": self.memory_bytes,
                "pad_value": self.pad_value if self.collate == "pad" else None,
            }
        )

    @property
    def cached(self) -> Cached:
        """What is kept in memory (`cache`)."""
        return Cached(*self._samples().cached)

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
        """Where the loader is, to be kept with a checkpoint: plain numbers and texts."""
        return {
            "version": STATE_VERSION,
            "epoch": self._epoch,
            "epochs_done": self._epochs_done,
            "batches_seen": self._batches_seen,
            **self._must_match(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on where `state` was taken: the next iteration begins with the batch after the last one taken then.

        The batches and their order are the same as if nothing had happened, with any number of threads. What decides the
        order must be the same as then; where it is not, `UsageError` says what differs.
        """
        if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION:
            found = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            raise UsageError(f"this is no loader's state of version {STATE_VERSION}: found `{found}`")
        for name, mine in self._must_match().items():
            theirs = state.get(name)
            if theirs == mine:
                continue
            if name == "identity":
                raise UsageError(
                    "the state was taken of other data: its samples, or what is done to them, differ\n"
                    "hint: load from the data set (or folder and pipeline) that the state was taken of"
                )
            raise UsageError(
                f"the state was taken with {name} `{theirs}`, but this loader has `{mine}`\n"
                f"hint: make the loader with {name}={theirs!r}"
            )
        epoch, done, seen = (whole(name, state.get(name), 0, 1 << 62) for name in _POSITION)
        self._end_iteration()
        self._epoch, self._epochs_done, self._batches_seen = epoch, done, seen
        self._left_early = False

    def _must_match(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "shuffle": self.shuffle,
            "window_bytes": self.window_bytes if self.shuffle else None,
            "drop_last": self.drop_last,
            "rank": self.rank,
            "world_size": self.world_size,
            "identity": self._source.identity(),
        }

    # Copies, also in other processes: what was asked for and the position go along, threads do not.

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iteration": None, "_left_early": False}

    def _from_the_beginning(self) -> Loader:
        """A copy that begins where the next iteration over this one would."""
        other = copy.copy(self)
        if self._left_early:
            other.set_epoch(self._epoch)
        return other

    def __repr__(self) -> str:
        shape = ", ".join(f"{name}: {kind}" for name, kind in self._samples().pipeline.output)
        rank = f", rank {self.rank} of {self.world_size}" if self.world_size > 1 else ""
        return (
            f"Loader({self._source.describe()}: {self.samples:,} samples in batches of {self.batch_size}"
            f"{', shuffled' if self.shuffle else ''}{rank}; {shape})"
        )


_POSITION = ("epoch", "epochs_done", "batches_seen")


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
        self._convert = converter(loader.framework)
        self._documents = [name for name, kind in loader._samples().pipeline.output if kind == "json"]
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
            found = None if self._is_enough() else running.next_batch()
            if found is not None:
                position, batch = found
                batch = self._convert(batch)
                for name in self._documents:
                    batch[name] = [json.loads(text) for text in batch[name]]
                # Last: a batch that Ctrl-C keeps from its reader was not seen.
                loader._batches_seen = position
                return batch
            # Another thread may have ended it while this one waited.
            self._check_ended()
            self._end_epoch()
            loader._epoch += 1
            loader._batches_seen = 0
            loader._epochs_done += 1
            if loader._epochs_done >= loader.epochs:
                loader._epochs_done = 0
                loader._left_early = False
                raise StopIteration

    def _is_enough(self) -> bool:
        """Whether this rank has given as many batches as every other one has."""
        loader = self._loader
        return loader.drop_last and not loader._samples().expands and loader._batches_seen >= loader._batches()

    def _end_epoch(self) -> None:
        count, listed = self.skipped()
        running, self._running = self._running, None
        if running is not None:
            self._loader._skipped_before += count
            self._loader._skipped_list += listed
            running.close()

    def skipped(self) -> tuple[int, list[Skipped]]:
        if self._running is None or self._process != os.getpid():
            return 0, []
        count, listed = self._running.skipped()
        return count, [Skipped(key, reason, samples) for key, reason, samples in listed]

    def close(self) -> None:
        self._ended = not self._over
        self._over = True
        if self._process == os.getpid():
            self._end_epoch()

    def __del__(self) -> None:
        # The loop was left: the threads end now, and what they skipped is counted.
        self.close()

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
    if rank is None:
        try:
            rank = int(os.environ["RANK"])
            world_size = int(os.environ["WORLD_SIZE"]) if world_size is None else world_size
        except (KeyError, ValueError):
            raise UsageError(
                "`rank=None` takes rank and world size from RANK and WORLD_SIZE, which are not both set to numbers\n"
                "hint: start with torchrun, or pass `rank` and `world_size`"
            ) from None
    world_size = whole("world_size", 1 if world_size is None else world_size, 1, 1 << 30)
    rank = whole("rank", rank, 0, 1 << 30)
    if rank >= world_size:
        raise UsageError(f"rank `{rank}` is not below the world size `{world_size}`\nhint: ranks count from 0")
    return rank, world_size
