"""The work that every peer does, and how a peer says that it does it.

Imported by the driver, which has the standard library only, and by every peer in its own environment; so nothing here,
and nothing at the top of a peer's module, imports a package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

WORKERS = 2
BATCH = 64
#: A batch of large images, which nobody trains on as they are.
PICTURE_BATCH = 4
SIZE = 224
SHORTER_SIDE = 256
AREA = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)

TASKS = {
    "full": "JPEG: decode, random_resized_crop 224, flip, normalize, float32 CHW batches of 64",
    "raw": "The same work from pixels that were decoded before",
    "decode": "JPEG: decode only, to uint8 HWC pixels",
    "png": "PNG 2048x1024: decode only, to uint8 HWC pixels",
    "l3": "L3 of the same images: decode only, to uint8 HWC pixels",
    "handover": "JPEG, the full work, batches given to PyTorch",
    "crop": "The random crop itself, made to take the whole image: pixels only, not timed",
}

#: What a task's pixels are compared with, and of how many images, the first ones by name. `center` is resized and
#: then cut, `cut` is cut and then resized, `whole` is only resized; `jpeg` and `png` are as Pillow decodes them.
REFERENCES = {
    "full": ("center", 64),
    "raw": ("center", 64),
    "crop": ("whole", 64),
    "decode": ("jpeg", 64),
    "png": ("png", 2),
    "l3": ("png", 2),
}

#: The numbers of the images of a batch (their places in the sorted list of files), and the images.
Batch = tuple[Sequence[int], Sequence[Any]]
#: One pass over the data.
Pass = Callable[[], Iterator[Batch]]


@dataclass(frozen=True)
class Work:
    """Where the data lies, and which variant is wanted."""

    data: Path
    #: The peer's own files, such as shards in its own format.
    prepared: Path
    #: Resize and center crop instead of the random crop, in any order of the samples: to compare pixels.
    deterministic: bool = False

    def files(self, kind: str = "jpeg") -> list[Path]:
        """The images of `data/<kind>`, by name; an image's number is its place here."""
        return sorted(path for path in (self.data / kind).rglob("*.*") if path.is_file())


@dataclass(frozen=True)
class Configuration:
    """One row of the table: a way to do a task."""

    name: str
    task: str
    #: Gets ready (imports, starts workers as far as the peer does) and gives what makes one pass.
    open: Callable[[Work], Pass]
    #: Writes the peer's own files, once.
    prepare: Callable[[Work], None] | None = None
    #: What its pixels are compared with, where that is not what the task's others are.
    reference: str | None = None
    #: Measures by itself instead, and gives the figures for the report.
    measure: Callable[[Work, float], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Peer:
    """A library, how it is installed, and what it is tried with."""

    name: str
    configurations: Sequence[Configuration]
    packages: Sequence[str] = ()
    #: The packages whose versions are reported.
    reported: Sequence[str] = ()
    #: The environment that this one is laid on; `None` for one of its own.
    parent: str | None = "torch"
    pip_options: Sequence[str] = ()
    #: Packages that must be there before the others can be built.
    build_packages: Sequence[str] = ()
    #: Libraries of the system (by their pkg-config names) without which it cannot be built, and how to get them.
    system_libraries: Sequence[str] = ()
    hint: str = ""


def batches(items: Sequence[Any], size: int = BATCH) -> Iterator[Sequence[Any]]:
    """Cuts `items` into runs of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def thread_pool_batches(work: Callable[[Any], Any], items: Sequence[Any], stack: Callable[[list[Any]], Any]) -> Pass:
    """Batches made by a pool of threads that calls `work` on each item; an item's number is its place."""
    import random
    from multiprocessing.pool import ThreadPool

    pool = ThreadPool(WORKERS)

    def one_pass() -> Iterator[Batch]:
        order = list(range(len(items)))
        random.shuffle(order)
        made = pool.imap(lambda number: work(items[number]), order, chunksize=8)
        for numbers in batches(order):
            yield numbers, stack(list(itertools.islice(made, len(numbers))))

    return one_pass


def bare_decoder(name: str, task: str, decoder: Callable[[], Callable[[bytes], Any]]) -> Configuration:
    """A decoder alone: bytes in memory, two threads, and every image dropped as soon as it is decoded."""
    return Configuration(name, task, partial(_open_decoder, task, decoder))


def _open_decoder(task: str, decoder: Callable[[], Callable[[bytes], Any]], work: Work) -> Pass:
    from multiprocessing.pool import ThreadPool

    decode = decoder()
    encoded = [path.read_bytes() for path in work.files("jpeg" if task == "decode" else task)]
    if work.deterministic:
        _, count = REFERENCES[task]
        return lambda: iter([(range(count), [decode(data) for data in encoded[:count]])])
    pool = ThreadPool(WORKERS)

    def decode_and_drop(numbers: Sequence[int]) -> Sequence[int]:
        for number in numbers:
            decode(encoded[number])
        return numbers

    def one_pass() -> Iterator[Batch]:
        for numbers in pool.imap_unordered(decode_and_drop, batches(range(len(encoded)), 4)):
            yield numbers, numbers

    return one_pass
