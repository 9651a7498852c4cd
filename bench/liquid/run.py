"""What a mix of formats and its buffer give beside one format with the page cache, and beside MinIO.

Makes photos, profiles the formats, lets `forebay mix` choose, builds PNG, raw and the mixes, and loads each past the page cache from throttled
storage, with memory for a share of the data. Compares: the mix with PNG alone, with the best of eleven ratios, with MinIO and the page cache at
several sizes of memory (what each reads in an epoch), and what `forebay mix` predicts with what is measured on several settings of storage, cores and
memory. Writes a table. Needs Python's standard library and the program only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]

PIPELINE = """name = "photos"
[source]
files = "**/*.jpg"
[[step]]
op = "decode"
[[step]]
op = "random_crop"
size = 128
"""

PNG, RAW, L3 = "decoded+png", "decoded", "decoded+l3-fast"

#: The first is the storage of the comparison: fast enough that the disk idles under PNG, as in the paper.
STORAGES = {"fast": "custom:read=1GB/s", "middle": "custom:read=400MB/s", "slow": "custom:read=150MB/s"}
MEMORY = [0.1, 0.3, 0.6, 0.9]
CORES = [1, 2]


def run(program: pathlib.Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout)


class Bench:
    def __init__(self, program: pathlib.Path, folder: pathlib.Path, samples: int, epochs: int) -> None:
        self.program, self.folder, self.samples, self.epochs = program, folder, samples, epochs
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "photos.toml").write_text(PIPELINE)
        made = run(program, "demo", "--domain", "cv", "--data-only", "--samples", str(samples), "--folder", str(folder / "data"))
        self.data = made["data"]["folder"]
        self.pipeline = str(folder / "photos.toml")

    def built(self, shares: dict[str, float]) -> tuple[str, int]:
        """The folder of a data set in these shares, and its bytes."""
        text = ",".join(f"{name}={share:.4f}" for name, share in shares.items() if share > 0)
        output = str(self.folder / ("set-" + text.replace(",", "-").replace("+", "-").replace("=", "-")))
        built = run(self.program, "build", self.pipeline, "--data", self.data, "--mix", text, "-o", output, "--shards", "32")
        return output, built["bytes"]

    def load(self, dataset: str, storage: str, cache: str, threads: int) -> dict[str, float]:
        """Samples per second and bytes read per epoch after the first."""
        found = run(self.program, "load", dataset, "--shuffle", "--shuffle-window", "16MB", "--epochs", str(self.epochs), "--storage", storage,
                    "--cache", cache, "--threads", str(threads), "--batch-size", "32")
        later = found["epochs"][1:]
        return {
            "rate": sum(one["samples"] for one in later) / sum(one["seconds"] for one in later),
            "bytes": sum(one["bytes_read"] for one in later) / len(later),
        }

    def profile(self, storage: str, threads: int) -> str:
        name = next(name for name, what in STORAGES.items() if what == storage)
        file = str(self.folder / f"profile-{name}-{threads}.json")
        strategies = [part for name in (PNG, RAW, L3) for part in ("--strategy", name)]
        run(self.program, "profile", self.pipeline, "--data", self.data, "--samples", str(min(200, self.samples)), "--fast", "--storage", storage,
            "--threads", str(threads), *strategies, "-o", file)
        return file

    def mix(self, profile: str, buffer: int, *formats: str) -> dict[str, Any]:
        named = [part for name in formats for part in ("--format", name)]
        return run(self.program, "mix", profile, "--buffer", str(buffer), "--predict", *named)


def shares_of(mix: dict[str, Any]) -> dict[str, float]:
    return {share["format"]: share["share"] for share in mix["shares"]}


def words(shares: dict[str, float]) -> str:
    return ", ".join(f"{share:.0%} `{name}`" for name, share in shares.items())


def compare(bench: Bench, share: float, threads: int) -> list[dict[str, Any]]:
    """PNG with the page cache, and the mixes."""
    storage = STORAGES["fast"]
    png, png_bytes = bench.built({PNG: 1.0})
    budget = int(share * png_bytes)
    rows = [{"what": "PNG, page cache", **bench.load(png, storage, f"page:{budget}", threads)},
            {"what": "PNG, MinIO", **bench.load(png, storage, f"minio:{budget}", threads)},
            {"what": "PNG, Liquid's buffer", **bench.load(png, storage, f"liquid:{budget}", threads)}]
    profile = bench.profile(storage, threads)
    for formats in ((PNG, RAW), (PNG, RAW, L3)):
        shares = shares_of(bench.mix(profile, budget, *formats))
        dataset, _ = bench.built(shares)
        rows.append({"what": f"mix of {words(shares)}", **bench.load(dataset, storage, f"liquid:{budget}", threads)})
    for tenth in range(11):
        shares = {PNG: 1 - tenth / 10, RAW: tenth / 10}
        dataset, _ = bench.built(shares)
        rows.append({"what": f"{10 - tenth}:{tenth} PNG:raw", **bench.load(dataset, storage, f"liquid:{budget}", threads)})
    return rows


def curve(bench: Bench, threads: int) -> list[dict[str, Any]]:
    """What each cache reads in an epoch, by its share of memory."""
    png, size = bench.built({PNG: 1.0})
    return [{"memory": share, "cache": cache, "size": size, **bench.load(png, STORAGES["fast"], f"{cache}:{int(share * size)}", threads)}
            for share in MEMORY for cache in ("page", "minio", "liquid")]


def truth(bench: Bench) -> list[dict[str, Any]]:
    """What is predicted beside what is measured."""
    rows = []
    for name, storage in STORAGES.items():
        for threads in CORES:
            profile = bench.profile(storage, threads)
            for memory in (0.1, 0.3):
                buffer = int(memory * bench.built({PNG: 1.0})[1])
                mix = bench.mix(profile, buffer, PNG, RAW)
                dataset, _ = bench.built(shares_of(mix))
                measured = bench.load(dataset, storage, f"liquid:{buffer}", threads)["rate"]
                predicted = mix["predicted_samples_per_second"]
                rows.append({"storage": name, "threads": threads, "memory": memory, "shares": shares_of(mix), "predicted": predicted,
                             "measured": measured, "error": predicted / measured - 1})
    return rows


def processor() -> str:
    """The name of the processor, as the system has it."""
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def page(bench: Bench, share: float, compared: list[dict[str, Any]], curves: list[dict[str, Any]], truths: list[dict[str, Any]]) -> str:
    base = compared[0]["rate"]
    comparison = table(["what", "samples/s", "beside PNG with the page cache", "MB read per epoch"],
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
random; {bench.epochs} epochs, of which the first is left out. Storages are local files, slowed down: {storages}. Memory holds {share:.0%} of the PNG data set
unless said otherwise; the page cache is a simulated one of that size.

## The mix beside one format

Wanted: PNG and raw at least 2.2 times PNG alone with the page cache, with L3 at least 5 times, and within 5 % of the best ratio.

{comparison}
## What is read, by memory

Of `page`, what was asked of it: how much it had shows in the rate alone.

{thrash}
## The linear program beside measurements

Wanted: within 10 %.

{errors}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/forebay")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-liquid", help="data, profiles and data sets")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=4)
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


if __name__ == "__main__":
    main()
