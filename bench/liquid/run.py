"""Compares a mix of formats and its buffer with one format and the page cache, and with MinIO.

Makes photos, profiles the formats, lets `forebay mix` choose, builds PNG, JPEG, raw and the mixes, and loads each past the page cache from throttled
storage, with memory for a share of the data. Compares: the mixes with PNG (and JPEG) alone, with the best of eleven ratios, with MinIO and the page cache at
several sizes of memory (what the storage really gave in an epoch), and what `forebay mix` predicts with what is measured on several settings of storage,
cores and memory. Writes tables and a plot. Needs Python's standard library and the program only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]
import measure as clocks  # noqa: E402  (what others do meanwhile: one mechanism for all)
from pages import processor, table  # noqa: E402

PIPELINE = """name = "photos"
[source]
files = "**/*.jpg"
[[step]]
op = "decode"
[[step]]
op = "random_crop"
size = 128
"""

PNG, RAW, L3, JPEG = "decoded+png", "decoded", "decoded+l3-fast", "decoded+jpeg-90"

#: The first is the storage of the comparison: fast enough that the disk idles under PNG, as in the paper.
STORAGES = {"fast": "custom:read=1.5GB/s", "middle": "custom:read=400MB/s", "slow": "custom:read=150MB/s"}
MEMORY = [0.1, 0.3, 0.6, 0.9]
BATCH_SIZE = 32
#: What formats are called on the page.
NAMES = {PNG: "PNG", RAW: "raw", JPEG: "JPEG"}
#: This many of the best ratios are measured again in turns with the chosen one, this often.
LEADERS, ROUNDS = 3, 3
CORES = [1, 2]
CACHES = ["page", "minio", "liquid"]
MIXED = "mix, liquid"


def run(program: pathlib.Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


class Bench:
    def __init__(self, program: pathlib.Path, folder: pathlib.Path, samples: int, epochs: int) -> None:
        self.program, self.folder, self.samples, self.epochs = program, folder, samples, epochs
        #: What was built in this run, by its shares.
        self.sets: dict[str, tuple[str, int]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "photos.toml").write_text(PIPELINE)
        made = run(program, "demo", "--domain", "cv", "--data-only", "--samples", str(samples), "--folder", str(folder / "data"))
        self.data = made["data"]["folder"]
        self.pipeline = str(folder / "photos.toml")

    def built(self, shares: dict[str, float]) -> tuple[str, int]:
        """The folder of a data set in these shares, and its bytes. A share of less than one sample is none."""
        text = ",".join(f"{name}={share:.4f}" for name, share in shares.items() if share * self.samples >= 1)
        if text not in self.sets:
            output = str(self.folder / ("set-" + text.replace(",", "-").replace("+", "-").replace("=", "-")))
            built = run(self.program, "build", self.pipeline, "--data", self.data, "--mix", text, "-o", output, "--shards", "32", "--overwrite")
            self.sets[text] = (output, built["bytes"])
        return self.sets[text]

    def load(self, dataset: str, storage: str, cache: str, threads: int) -> dict[str, float]:
        """Samples per second once the first batch is there, the median of the epochs after the first, and what the storage gave in each of them."""
        options = ["--shuffle", "--shuffle-window", "16MB", "--epochs", str(self.epochs), "--storage", storage, "--cache", cache,
                   "--threads", str(threads), "--batch-size", str(BATCH_SIZE)]
        found = clocks.undisturbed(run, self.program, "load", dataset, *options)
        later = found["epochs"][1:]
        rates = [(one["samples"] - min(BATCH_SIZE, one["samples"])) / (one["seconds"] - one["first_batch_seconds"]) for one in later]
        return {
            "rate": statistics.median(rates),
            "bytes": sum(one["device_bytes_read"] for one in later) / len(later),
        }

    def profile(self, storage: str, threads: int, *formats: str) -> str:
        name = next(name for name, what in STORAGES.items() if what == storage)
        file = str(self.folder / f"profile-{name}-{threads}-{len(formats)}.json")
        strategies = [part for name in formats for part in ("--strategy", name)]
        run(self.program, "profile", self.pipeline, "--data", self.data, "--samples", str(min(200, self.samples)), "--runs", "2", "--storage", storage,
            "--threads", str(threads), *strategies, "-o", file)
        return file

    def mix(self, profile: str, buffer: int, *formats: str) -> dict[str, Any]:
        named = [part for name in formats for part in ("--format", name)]
        lossy = ["--max-lossy-share", "1"] if JPEG in formats else []
        return run(self.program, "mix", profile, "--buffer", str(buffer), "--predict", *lossy, *named)


def shares_of(mix: dict[str, Any]) -> dict[str, float]:
    return {share["format"]: share["share"] for share in mix["shares"]}


def words(shares: dict[str, float]) -> str:
    return ", ".join(f"{share:.0%} `{name}`" for name, share in shares.items())


def compare(bench: Bench, share: float, threads: int) -> list[dict[str, Any]]:
    """PNG and JPEG with the page cache, and the mixes."""
    storage = STORAGES["fast"]
    png, png_bytes = bench.built({PNG: 1.0})
    jpeg, _ = bench.built({JPEG: 1.0})
    budget = int(share * png_bytes)
    rows = [{"what": "PNG, page cache", **bench.load(png, storage, f"page:{budget}", threads)},
            {"what": "PNG, MinIO", **bench.load(png, storage, f"minio:{budget}", threads)},
            {"what": "PNG, Liquid's buffer", **bench.load(png, storage, f"liquid:{budget}", threads)},
            {"what": "JPEG of quality 90, page cache", **bench.load(jpeg, storage, f"page:{budget}", threads)}]
    profile = bench.profile(storage, threads, PNG, RAW, L3, JPEG)
    for formats in ((PNG, RAW), (PNG, RAW, L3), (JPEG, RAW)):
        shares = shares_of(bench.mix(profile, budget, *formats))
        dataset, _ = bench.built(shares)
        row = {"what": f"mix of {words(shares)}", **bench.load(dataset, storage, f"liquid:{budget}", threads)}
        rows.append(row)
        if len(formats) == 2:
            swept = sweep(bench, formats[0], budget, threads)
            rows += swept
            row |= {"formats": " and ".join(NAMES[name] for name in formats), **in_turns(bench, shares, swept, budget, threads)}
    return rows


def sweep(bench: Bench, encoded: str, budget: int, threads: int) -> list[dict[str, Any]]:
    """The eleven ratios of a format and raw pixels."""
    rows = []
    for tenth in range(11):
        shares = {encoded: 1 - tenth / 10, RAW: tenth / 10}
        dataset, _ = bench.built(shares)
        what = f"{10 - tenth}:{tenth} {NAMES[encoded]}:raw"
        rows.append({"what": what, "ratio": shares, **bench.load(dataset, STORAGES["fast"], f"liquid:{budget}", threads)})
    return rows


def in_turns(bench: Bench, shares: dict[str, float], swept: list[dict[str, Any]], budget: int, threads: int) -> dict[str, Any]:
    """What was chosen, and the best of a sweep, again and in turns: of many loads the luckiest seems the best."""
    best = sorted(swept, key=lambda row: -row["rate"])[:LEADERS]
    rates: dict[str, list[float]] = {"": [], **{row["what"]: [] for row in best}}
    for _ in range(ROUNDS):
        for what, mixed in (("", shares), *((row["what"], row["ratio"]) for row in best)):
            rates[what].append(bench.load(bench.built(mixed)[0], STORAGES["fast"], f"liquid:{budget}", threads)["rate"])
    medians = {what: statistics.median(found) for what, found in rates.items()}
    chosen = medians.pop("")
    leader = max(medians, key=lambda what: medians[what])
    return {"of_best": chosen / medians[leader], "best": leader}


def curve(bench: Bench, threads: int) -> list[dict[str, Any]]:
    """What the storage gives in an epoch with each cache, and of a mix, by its share of memory."""
    storage = STORAGES["fast"]
    png, size = bench.built({PNG: 1.0})
    profile = bench.profile(storage, threads, PNG, RAW)
    rows = []
    for share in MEMORY:
        budget = int(share * size)
        rows += [{"memory": share, "cache": cache, "size": size, **bench.load(png, storage, f"{cache}:{budget}", threads)} for cache in CACHES]
        # The same memory, and the mix that suits it: it is larger than PNG, so that less of it stays in memory.
        mixed, mixed_size = bench.built(shares_of(bench.mix(profile, budget, PNG, RAW)))
        rows.append({"memory": share, "cache": MIXED, "size": mixed_size, **bench.load(mixed, storage, f"liquid:{budget}", threads)})
    return rows


def truth(bench: Bench) -> list[dict[str, Any]]:
    """Predictions compared with measurements."""
    rows = []
    png_bytes = bench.built({PNG: 1.0})[1]
    for name, storage in STORAGES.items():
        for threads in CORES:
            profile = bench.profile(storage, threads, PNG, RAW)
            for memory in (0.1, 0.3):
                buffer = int(memory * png_bytes)
                mix = bench.mix(profile, buffer, PNG, RAW)
                dataset, _ = bench.built(shares_of(mix))
                measured = bench.load(dataset, storage, f"liquid:{buffer}", threads)["rate"]
                predicted = mix["predicted_samples_per_second"]
                rows.append({"storage": name, "threads": threads, "memory": memory, "shares": shares_of(mix), "predicted": predicted,
                             "measured": measured, "error": predicted / measured - 1})
    return rows


#: The colors of the plot: those of the report.
COLORS = ["#0072b2", "#d55e00", "#009e73"]


def plot(curves: list[dict[str, Any]], truths: list[dict[str, Any]]) -> str:
    """Two panels: what is read by memory, and what was predicted against what was measured."""
    side, gap, left, top = 300, 90, 70, 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * side + gap + left + 30} {side + top + 60}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="#ffffff"/>']

    def axes(x: float, title: str, across: str, upwards: str) -> None:
        parts.append(f'<text x="{x}" y="{top - 28}" font-weight="600">{title}</text><text x="{x}" y="{top - 10}" fill="#566171">{upwards}</text>')
        parts.append(f'<path d="M{x} {top}V{top + side}H{x + side}" fill="none" stroke="#566171"/>')
        parts.append(f'<text x="{x + side / 2}" y="{top + side + 38}" text-anchor="middle" fill="#566171">{across}</text>')

    def ticks(x: float, values: list[float], most: float, text: str) -> None:
        for value in values:
            at = side * value / most
            parts.append(f'<text x="{x - 6}" y="{top + side - at + 4:.1f}" text-anchor="end" fill="#566171">{value:{text}}</text>')
            parts.append(f'<text x="{x + at:.1f}" y="{top + side + 17}" text-anchor="middle" fill="#566171">{value:{text}}</text>')

    axes(left, "Read per epoch, PNG", "memory, of the data", "read from storage, of the data")
    ticks(left, [0, 0.25, 0.5, 0.75, 1], 1.05, ".0%")
    for number, cache in enumerate(CACHES):
        rows = [one for one in curves if one["cache"] == cache]
        points = [(left + side * one["memory"] / 1.05, top + side * (1 - one["bytes"] / one["size"] / 1.05)) for one in rows]
        parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="{COLORS[number]}" stroke-width="2"/>')
        parts.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLORS[number]}"/>' for x, y in points)
        parts.append(f'<text x="{left + 16}" y="{top + side - 58 + 17 * number}" fill="{COLORS[number]}">{cache}</text>')
    x = left + side + gap
    most = 1.1 * max(max(one["predicted"], one["measured"]) for one in truths)
    axes(x, "Predicted and measured", "measured, samples/s", "predicted, samples/s (dashed: 10 % off)")
    ticks(x, [round(most * part / 4, -2) for part in range(4)], most, ",.0f")
    for factor, dashes in ((1.0, ""), (0.9, "4 4"), (1.1, "4 4")):
        end = min(1.0, 1 / factor)
        parts.append(f'<path d="M{x} {top + side}L{x + side * end:.1f} {top + side * (1 - end * factor):.1f}" stroke="#566171" stroke-dasharray="{dashes}"/>')
    for one in truths:
        color = COLORS[list(STORAGES).index(one["storage"])]
        parts.append(f'<circle cx="{x + side * one["measured"] / most:.1f}" cy="{top + side * (1 - one["predicted"] / most):.1f}" r="4" fill="{color}"/>')
    for number, name in enumerate(STORAGES):
        parts.append(f'<text x="{x + side - 60}" y="{top + side - 58 + 17 * number}" fill="{COLORS[number]}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def page(bench: Bench, share: float, compared: list[dict[str, Any]], curves: list[dict[str, Any]], truths: list[dict[str, Any]]) -> str:
    base = compared[0]["rate"]
    chosen = next(one for one in compared if one["what"].startswith("mix"))
    beside = " and ".join(f"{one['of_best']:.0%} of the best of {one['formats']} ({one['best']})" for one in compared if "of_best" in one)
    within = [abs(one["error"]) <= 0.1 for one in truths]
    off_by = [abs(one["error"]) for one in truths]
    comparison = table(["what", "samples/s", "against PNG with the page cache", "MB read per epoch"],
                       [[one["what"], f"{one['rate']:,.0f}", f"{one['rate'] / base:.2f}", f"{one['bytes'] / 1e6:,.0f}"] for one in compared])
    thrash = table(["memory for", "cache", "read per epoch", "of the data", "samples/s"],
                   [[f"{one['memory']:.0%}", f"`{one['cache']}`", f"{one['bytes'] / 1e6:,.0f} MB", f"{one['bytes'] / one['size']:.0%}", f"{one['rate']:,.0f}"]
                    for one in curves])
    errors = table(["storage", "threads", "memory", "mix", "predicted", "measured", "error"],
                   [[one["storage"], str(one["threads"]), f"{one['memory']:.0%}", words(one["shares"]), f"{one['predicted']:,.0f}", f"{one['measured']:,.0f}",
                     f"{one['error']:+.1%}"] for one in truths])
    storages = ", ".join(f"{name} `{what}`" for name, what in STORAGES.items())
    return f"""# Liquid: mixes of formats, and caches

Regenerate with `make bench-liquid`. {datetime.date.today()}, {processor()}, {os.cpu_count()} cores. {bench.samples} photos of `forebay demo`, decoded and cropped at
random; the median of {bench.epochs} epochs, of which the first is left out, and of each the time until its first batch; again where others used the CPU meanwhile. Storages are local files, slowed down: {storages}. Memory holds {share:.0%} of the PNG data set
unless said otherwise; the page cache is a simulated one of that size.

## The mix compared with one format

Wanted: PNG and raw at least 2.2 times PNG alone with the page cache, with L3 at least 5 times, and within 5 % of the best ratio. The mix of PNG and raw gave
{chosen["rate"] / base:.2f} times as much. In turns with the best {LEADERS} of eleven ratios, {ROUNDS} times each, the mixes of two formats gave {beside}. JPEG is for where loss is allowed:
its mix stands beside JPEG alone.

{comparison}
## What is read, by memory

Bytes that the storage gave, counted by it, in an epoch after the first, of PNG alone with each cache, and of the mix of PNG and raw that `forebay mix` chose for this memory. Memory is for a share of the PNG data set, and what was read
is of the data set itself. The page cache evicts what was read longest ago.

{thrash}
## The linear program compared with measurements

Wanted: within 10 %. {sum(within)} of {len(within)} settings are; the median of the error is {statistics.median(off_by):.1%}, the largest {max(off_by):.1%}.

{errors}
![what is read by memory; what was predicted, against what was measured](liquid.svg)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/forebay")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-liquid", help="data, profiles and data sets")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--memory", type=float, default=0.3, help="share of the PNG data set that memory holds")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/liquid.md")
    arguments = parser.parse_args()
    if arguments.epochs < 2:
        sys.exit("--epochs must be at least 2: the first one fills the caches")
    bench = Bench(arguments.program.resolve(), arguments.folder, arguments.samples, arguments.epochs)
    compared = compare(bench, arguments.memory, arguments.threads)
    curves = curve(bench, arguments.threads)
    truths = truth(bench)
    arguments.output.write_text(page(bench, arguments.memory, compared, curves, truths), encoding="utf-8")
    arguments.output.with_suffix(".svg").write_text(plot(curves, truths), encoding="utf-8")


if __name__ == "__main__":
    main()
