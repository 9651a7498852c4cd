"""Statistics of a loader: where the time went, what is cached, what was skipped."""

from __future__ import annotations

import json
from dataclasses import InitVar, asdict, dataclass
from typing import Any

from . import _native

__all__ = ["Cached", "Skipped", "Stats"]


@dataclass(frozen=True)
class Skipped:
    """A sample that was skipped, or a damaged part of a shard with several samples.

    Attributes
    ----------
    key
        The key of the sample.
    reason
        Why it was skipped.
    samples
        Number of samples: None if unknown, 0 if damage was found but every sample could still be read.
    """

    key: str
    reason: str
    samples: int | None = 1


@dataclass(frozen=True)
class Cached:
    """The samples that a loader caches in memory.

    Attributes
    ----------
    samples, bytes
        Number and size of the cached samples.
    hits
        How often a sample was found in the cache.
    stage
        The stage that samples are cached at, e.g. `"resized"`; the strategy of the data set if they are cached as stored; None
        before the first samples have been measured.
    policy
        Which cache it is: `"decoded"`, `"liquid"`, `"minio"`, `"page"` or `"none"`; of `cache="auto:..."` the one that was chosen.
    reason
        Why that one was chosen, with `cache="auto:..."`.
    """

    samples: int
    bytes: int
    hits: int
    stage: str | None
    policy: str = "decoded"
    reason: str | None = None


@dataclass(frozen=True)
class Stats:
    """How the threads of a loader spent their time. Printing it names the bottleneck.

    Times of readers and workers are summed over their `threads` threads each. The bottleneck is that of the time after the first batch
    of each epoch: until then everybody waits for the first bytes.

    Attributes
    ----------
    seconds
        From the start of each epoch to the last batch taken.
    read_seconds, read_wait_seconds
        Readers reading, and waiting for buffer space because workers are slower.
    work_seconds, data_wait_seconds, batch_wait_seconds
        Workers processing, waiting for data, and waiting for a free batch because the consumer is slower.
    consumer_wait_seconds
        The consumer (your loop) waiting for a batch.
    user_seconds, system_seconds
        CPU time of readers and workers in user space and in the kernel.
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
    # What of it came after the first batches: the same keys. Not a field, so that `asdict` has numbers alone.
    steady: InitVar[dict[str, Any] | None] = None

    def __post_init__(self, steady: dict[str, Any] | None) -> None:
        object.__setattr__(self, "_steady", steady or {})

    @property
    def bound_by(self) -> str:
        """The bottleneck: `"storage"`, `"cpu"` or `"trainer"` (the consumer); `"unknown"` if too little was loaded to determine it."""
        return self._verdict()[0]

    def __str__(self) -> str:
        return self._verdict()[1]

    def _verdict(self) -> tuple[str, str]:
        steady: dict[str, Any] = self.__dict__["_steady"]
        return _native.bound_by(json.dumps({**asdict(self), "steady": steady}))
