"""Compares what Forebay says about stalls, quality and budgets with what was constructed or measured: the sections of bench/results/dl2.md.

Each section is a function that returns Markdown; sections that are not run keep the text that the file has. Needs the program and Python's
standard library only, and real photos where they are present (otherwise generated ones).

    bench/dl2/run.py                        all sections, within about ten minutes
    bench/dl2/run.py --only diagnose --small
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import recompress

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from pages import processor  # noqa: E402

RESULTS = ROOT / "bench" / "results" / "dl2.md"

PIPELINE = """name = "photos"
[source]
files = "**/*.jpg"
[[step]]
op = "decode"
[[step]]
op = "random_crop"
size = 128
"""


class Bench:
    """The program, a working folder, and how much to do."""

    def __init__(self, program: list[str], folder: pathlib.Path, small: bool) -> None:
        self.program, self.folder, self.small = program, folder, small

    def photos(self, count: int = 400) -> pathlib.Path:
        """Real photos if they are present, otherwise generated ones; a tenth of them for a small run."""
        real = ROOT / "../shared/data/images-jpeg"
        count = count // 10 if self.small else count
        folder = self.folder / "photos"
        if real.is_dir():
            for path in sorted(path for path in real.rglob("*.jpg") if path.is_file())[:count]:
                target = folder / path.relative_to(real)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            return folder
        made = self.run("demo", "--domain", "cv", "--data-only", "--samples", str(count), "--folder", str(folder))
        return pathlib.Path(made["data"]["folder"])

    def run(self, *arguments: str) -> dict[str, Any]:
        done = subprocess.run([*self.program, *arguments, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
        return json.loads(done.stdout)


#: How far a diagnosed share may be from the constructed one, and a what-if from what comes true.
POINTS, OFF = 5.0, 0.10


def diagnose(bench: Bench) -> str:
    """Constructed stalls, with throttled storage and trainers of known rate, compared with the diagnosed ones."""
    samples = 200 if bench.small else 1000
    data = bench.run("demo", "--domain", "cv", "--data-only", "--samples", str(samples), "--folder", str(bench.folder / "data"))
    pipeline = bench.folder / "photos.toml"
    pipeline.write_text(PIPELINE)
    dataset = str(bench.folder / "dataset")
    built = bench.run("build", str(pipeline), "--data", data["data"]["folder"], "--strategy", "concatenated", "-o", dataset)
    sample_bytes = built["bytes"] / built["samples"]
    # A diagnosis takes six measurements of so long, and there are some twenty of them: all sections together are to end within ten minutes.
    seconds = "1" if bench.small else "2.5"

    def diagnosed(trainer: float, read: float, threads: int = 1) -> dict[str, Any]:
        storage = f"custom:read={read * sample_bytes / 1e6:.3f}MB/s"
        options = ["--trainer", f"{trainer:.1f}", "--storage", storage, "--threads", str(threads), "--seconds", seconds]
        return bench.run("diagnose", dataset, "--batch-size", "16", *options)

    # What one thread prepares, by a run that nothing else bounds: all cases are multiples of it.
    prepare = diagnosed(1e6, 1e6)["measured"]["prep"]["samples_per_second"]
    rows = ["| trainer | storage | prep stall | diagnosed | fetch stall | diagnosed | off by at most |", "|--:|--:|--:|--:|--:|--:|--:|"]
    worst = 0.0
    trainers, reads = ([0.5, 2.0], [0.4, 4.0]) if bench.small else ([0.5, 1.0, 2.0, 4.0], [0.25, 0.5, 1.0, 4.0])
    for trainer in trainers:
        for read in reads:
            tries = [_off(trainer, read, prepare, diagnosed(trainer * prepare, read * prepare))]
            if tries[0][0] > POINTS:
                # What disturbed one of three leaves the median alone.
                tries += [_off(trainer, read, prepare, diagnosed(trainer * prepare, read * prepare)) for _ in range(2)]
            off, shares = sorted(tries)[len(tries) // 2]
            worst = max(worst, off)
            again = f" ({', '.join(f'{one[0]:.1f}' for one in tries)})" if len(tries) > 1 else ""
            rows.append(f"| {trainer} | {read} | " + " | ".join(f"{share:.0%}" for share in shares) + f" | {off:.1f} points{again} |")
    lines = [
        "Trainers and storages in multiples of what one thread prepares. Constructed shares follow from the rates; diagnosed ones are "
        "those of `forebay diagnose`. Where one is off by more than is wanted, it is measured twice more, and the median counts.",
        "",
        *rows,
        "",
        f"The worst is off by {worst:.1f} points (at most {POINTS:.0f} are wanted).",
        "",
        *_what_ifs(diagnosed, prepare),
    ]
    return "\n".join(lines)


def _off(trainer: float, read: float, prepare: float, found: dict[str, Any]) -> tuple[float, list[float]]:
    """The error of a diagnosis in percentage points, and its shares next to the constructed ones."""
    # Of this run's own preparation: the machine is not equally fast all the time.
    now = found["measured"]["prep"]["samples_per_second"] / prepare
    cold, warm = min(trainer, now, read), min(trainer, now)
    prep, fetch = cold / warm - cold / trainer, 1 - cold / warm
    off = 100 * max(abs(prep - found["prep_stall_share"]), abs(fetch - found["fetch_stall_share"]))
    return off, [prep, found["prep_stall_share"], fetch, found["fetch_stall_share"]]


def _what_ifs(diagnosed: Callable[..., dict[str, Any]], prepare: float) -> list[str]:
    """What is promised of a resource, and what it gives when it is really changed."""
    rows = ["| what if | case | promised | between | comes true | off by |", "|---|---|--:|--:|--:|--:|"]
    misses: list[float] = []

    def row(case: str, before: dict[str, Any], resource: str, amount: float, true: float) -> None:
        (promise,) = [one for one in before["what_ifs"] if one["resource"] == resource and one["amount"] == amount]
        rate = promise["samples_per_second"]
        between = f"{promise['min_samples_per_second']:,.0f} to {promise['max_samples_per_second']:,.0f}"
        misses.append(abs(rate / true - 1))
        rows.append(f"| {promise['change']} | {case} | {rate:,.0f} | {between} | {true:,.0f} | {rate / true - 1:+.0%} |")

    cold = ("measured", "cold", "samples_per_second")

    def got(found: dict[str, Any]) -> float:
        value: Any = found
        for key in cold:
            value = value[key]
        return float(value)

    slow = diagnosed(4 * prepare, 0.3 * prepare)
    row("storage binds", slow, "disk", 2.0, got(diagnosed(4 * prepare, 0.6 * prepare)))
    row("storage binds", slow, "memory", 0.5, got(diagnosed(4 * prepare, 0.6 * prepare)))
    row("storage binds", slow, "memory", 1.0, float(slow["measured"]["warm"]["samples_per_second"]))
    busy = diagnosed(4 * prepare, 8 * prepare)
    if (os.cpu_count() or 1) >= 2:
        row("preparation binds", busy, "cores", 2.0, got(diagnosed(4 * prepare, 8 * prepare, 2)))
    row("preparation binds", busy, "disk", 2.0, got(diagnosed(4 * prepare, 16 * prepare)))
    note = f"The worst is off by {max(misses):.0%} (at most {OFF:.0%} are wanted). Half of the data in memory comes true as twice the disk: half of the bytes are read."
    return ["### What-ifs", "", *rows, "", note]


def quality(bench: Bench) -> str:
    """What lower qualities save, and how similar the images are: the two lists of the paper."""
    photos = bench.photos(150)
    count = sum(path.is_file() for path in photos.rglob("*"))
    found = bench.run("analyze", str(photos))
    median = f"{found['quality']['distribution']['median']:.0f}"
    # Places365 has been compressed before: it is represented by the same photos at its quality.
    bench.run("recompress", str(photos), str(bench.folder / "places"), "--quality", "75", "--on-error", "skip")
    program = bench.program[0]
    lines = [
        f"{count:,} photos of median quality {median}, with `forebay recompress --metrics`.",
        "",
        "The qualities that the paper has for ImageNet:",
        "",
        recompress.section(photos, recompress.HIGH, program),
        "Those that it has for Places365, whose images have quality 75; here the same photos at that quality, so that ratios and PSNR are against these:",
        "",
        recompress.section(bench.folder / "places" / "jpeg-75", recompress.LOW, program),
    ]
    return "\n".join(lines)


def progressive(bench: Bench) -> str:
    """Progressive records: bytes and throughput by how many groups of scans are read."""
    storage = "custom:read=10MB/s"
    pipeline, dataset = bench.folder / "photos.toml", str(bench.folder / "dataset")
    pipeline.write_text(PIPELINE)
    built = bench.run("build", str(pipeline), "--data", str(bench.photos()), "--strategy", "concatenated+pcr", "-o", dataset, "--on-error", "skip")
    rows = ["| groups of scans | read per epoch | samples/s | times |", "|--:|--:|--:|--:|"]
    rates: list[float] = []
    for scans in (10, 5, 2, 1):
        epochs = bench.run("load", dataset, "--scans", str(scans), "--storage", storage, "--cold", "--shuffle", "--epochs", "2")["epochs"]
        rates.append(epochs[-1]["samples_per_second"])
        rows.append(f"| {scans} | {epochs[-1]['bytes_read'] / 1e6:.1f} MB | {rates[-1]:,.0f} | {rates[-1] / rates[0]:.2f} |")
    rises = "rises" if rates == sorted(rates) else "does not always rise"
    text = f"{built['samples']:,} photos as `concatenated+pcr`, on storage `{storage}`, cold, the second of two epochs."
    return "\n".join([text, "", *rows, "", f"Throughput {rises} as bytes fall."])


def minio(bench: Bench) -> str:
    """The paper's figure 10: a MinIO cache, lower quality, and both, on storage that binds."""
    photos, pipeline = bench.photos(), bench.folder / "photos.toml"
    pipeline.write_text(PIPELINE)
    smaller = bench.folder / "smaller"
    bench.run("recompress", str(photos), str(smaller), "--quality", "50", "--on-error", "skip")
    size = sum(path.stat().st_size for path in photos.rglob("*") if path.is_file())
    storage, cache = "custom:read=10MB/s", f"minio:{int(0.35 * size / 1e6)}MB"
    rows = ["| files | cache | read per epoch | samples/s | times |", "|---|---|--:|--:|--:|"]
    rates = []
    for files, folder in (("as they are", photos), ("JPEG 50", smaller / "jpeg-50")):
        for kept_in in ("none", cache):
            options = ["--storage", storage, "--cold", "--shuffle", "--epochs", "3", "--cache", kept_in, "--on-error", "skip"]
            epoch = bench.run("load", str(pipeline), "--data", str(folder), *options)["epochs"][-1]
            rates.append(epoch["samples_per_second"])
            read = f"{epoch['bytes_read'] / 1e6:.1f} MB"
            rows.append(f"| {files} | {kept_in} | {read} | {rates[-1]:,.0f} | {rates[-1] / rates[0]:.2f} |")
    plain, cached, low, both = rates
    holds = "holds" if plain < min(cached, low) and both > max(cached, low) else "does not hold"
    text = f"Storage `{storage}`, cold, the last of three epochs; the cache has space for 35 % of the files as they are."
    return "\n".join([text, "", *rows, "", f"The paper's order, plain below either and both above either, {holds}."])


#: In the order of the file.
SECTIONS: dict[str, tuple[str, Callable[[Bench], str]]] = {
    "diagnose": ("Stalls: constructed and diagnosed", diagnose),
    "quality": ("Qualities: size and distance", quality),
    "progressive": ("Progressive records", progressive),
    "minio": ("MinIO and quality", minio),
}


def kept(text: str) -> dict[str, str]:
    """The sections that the file has, by their headings."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="sections, comma-separated: " + ", ".join(SECTIONS))
    parser.add_argument("--small", action="store_true", help="fewer and shorter cases: to see that it runs")
    parser.add_argument("--program", default=str(ROOT / "target/release/forebay"), help="the program, with its first arguments")
    parser.add_argument("--output", type=pathlib.Path, default=RESULTS)
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else list(SECTIONS)
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(f"there is no section {', '.join(sorted(unknown))}")
    before = kept(options.output.read_text()) if options.output.exists() else {}
    texts = []
    for name, (title, section) in SECTIONS.items():
        if name in wanted:
            with tempfile.TemporaryDirectory(dir=ROOT / "target") as folder:
                stamp = f"{datetime.date.today()}, {os.cpu_count()} cores, {processor()}, load {os.getloadavg()[0]:.1f} at the start"
                small, begun = (" With `--small`." if options.small else ""), time.monotonic()
                text = section(Bench(options.program.split(), pathlib.Path(folder), options.small))
                took = f"{time.monotonic() - begun:.0f} s"
                print(f"{name}: {took}", file=sys.stderr)
                texts.append(f"## {title}\n\n{stamp}; took {took}.{small}\n\n{text}\n")
        elif title in before:
            texts.append(f"## {title}\n\n{before[title]}\n")
    head = "# Stalls, quality and budgets\n\n`make bench-dl2` writes this page; docs/benchmarks.md explains it.\n\n"
    options.output.write_text(head + "\n".join(texts))
    print(options.output.read_text())


if __name__ == "__main__":
    main()
