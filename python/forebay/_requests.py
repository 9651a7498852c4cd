"""Requests to the native module, and its answers. The Rust side has the same fields."""

from __future__ import annotations

from typing import Protocol, TypedDict

__all__ = [
    "AdviceRequest",
    "AnalyzeRequest",
    "BuildRequest",
    "FilesRequest",
    "LoadRequest",
    "MixRequest",
    "ObjectiveRequest",
    "ProfileRequest",
    "Progress",
    "RecompressRequest",
]


class LoadRequest(TypedDict):
    """How to load."""

    batch_size: int
    threads: int
    prefetch: int
    drop_last: bool
    even: str
    skip_errors: bool
    seed: int
    shuffle: bool
    shuffle_window: int | None
    streams: int | None
    subset: list[int] | None
    weights: list[float] | None
    replacement: bool
    num_samples: int | None
    repeats: int
    shares: list[float] | None
    rank: int
    world_size: int
    cache: str
    profile: str | None
    memory_bytes: int | None
    pad_value: float | None
    decode_on_device: bool


class FilesRequest(TypedDict):
    """Where samples are, and how to handle errors."""

    folder: str
    files: tuple[list[str], list[str | int | float] | None] | None
    skip_errors: bool
    allow_outside: bool


class ProfileRequest(TypedDict):
    """What to measure, and how."""

    files: FilesRequest
    samples: int
    runs: int
    seconds: float
    fast: bool
    storage: str
    caching: str
    threads: int
    shards: int
    batch_size: int
    seed: int
    strategies: list[str] | None
    encodings: list[str]
    compression_candidates: list[str] | None
    memory_bytes: int | None
    work_folder: str


class ObjectiveRequest(TypedDict):
    """What is wanted of a strategy: an objective as JSON, and for how long its prices are paid."""

    objective: str
    epochs: int | None
    months: float | None


class MixRequest(TypedDict):
    """What is wanted of a mix of formats."""

    formats: list[str]
    mode: str
    buffer_bytes: int
    max_storage_bytes: int | None
    max_lossy_share: float
    trainer: float | None


class AdviceRequest(TypedDict):
    """What is wanted of advice, and what its commands name."""

    trainer: float | None
    memory_bytes: int | None
    max_storage_bytes: int | None
    max_prep_seconds: float | None
    lossy: bool
    lower_quality: tuple[int, float, int] | None
    pipeline: str
    data: str


class BuildRequest(TypedDict):
    """What to build, and how."""

    files: FilesRequest
    output: str
    formats: list[tuple[str, float]]
    is_mix: bool
    seed: int
    storage: str
    threads: int
    shards: int | None
    bytes_per_sample: float | None
    overwrite: bool
    memory_bytes: int | None


class AnalyzeRequest(TypedDict):
    """How to look at data."""

    data: str
    distance: int
    threads: int
    skip_errors: bool
    memory_bytes: int | None


class RecompressRequest(TypedDict):
    """What to recompress, and how."""

    input: str
    output: str
    format: str
    quality: list[int]
    verify: bool
    metrics: bool
    overwrite: bool
    threads: int
    skip_errors: bool
    memory_bytes: int | None


class Progress(Protocol):
    """Sees long work go on. Called from several threads, one at a time."""

    def begin(self, what: str, samples: int) -> None: ...
    def advance(self, samples: int) -> None: ...
    def end(self) -> None: ...
    def note(self, message: str) -> None: ...
