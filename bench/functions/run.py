"""What it costs that Python functions are called one at a time: samples per second with and without `parallel=True`.

    .venv/bin/python bench/functions/run.py

One function computes with NumPy and zlib, which let go of Python's lock; one waits for 20 ms, as for a service; one is Python's own code,
which is run by one thread at a time in any case. Medians of three runs each, in turns.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forebay
import numpy
from PIL import Image

SAMPLES = 200
THREADS = 4
RUNS = 3


def computes(image: Any) -> Any:
    pixels = image.astype(numpy.float32)
    for _ in range(4):
        pixels = numpy.sqrt(pixels * pixels + 1)
    zlib.compress(image, 1)
    return pixels.astype(numpy.uint8)


def waits(image: Any) -> Any:
    time.sleep(0.02)
    return image


def python(image: Any) -> Any:
    total = 0
    for number in range(20_000):
        total += number
    return image


def seconds(function: Callable[[Any], Any], folder: Path, parallel: bool) -> float:
    pipeline = forebay.Pipeline.files("*.png", label=None).decode().map(function, parallel=parallel)
    loader = forebay.Loader(pipeline, data=folder, batch_size=64, threads=THREADS)
    begun = time.perf_counter()
    assert sum(len(batch["key"]) for batch in loader) == SAMPLES
    return time.perf_counter() - begun


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        random = numpy.random.default_rng(1)
        for number in range(SAMPLES):
            coarse = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=numpy.uint8))
            coarse.resize((224, 224)).save(folder / f"{number}.png", compress_level=1)
        print(f"{SAMPLES} images of 224x224, {THREADS} threads, {os.cpu_count()} cores; samples per second")
        print(f"{'function':10} {'one at a time':>14} {'parallel':>10} {'ratio':>7}")
        for function in (computes, waits, python):
            found: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(RUNS):
                for parallel in (False, True):
                    found[parallel].append(SAMPLES / seconds(function, folder, parallel))
            one, many = statistics.median(found[False]), statistics.median(found[True])
            print(f"{function.__name__:10} {one:14,.0f} {many:10,.0f} {many / one:6.2f}x")


if __name__ == "__main__":
    main()
