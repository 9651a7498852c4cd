"""Compares loaders on a store with a latency and a bandwidth, over the loopback: how much of the bandwidth each uses.

Writes the same samples in each loader's format, serves them with `store.py`, and loads them by each loader in turn (`loaders.py`), in a process of its own: one
epoch, with nothing kept from before. Then loads several epochs of Forebay's twice, and compares each sample with what was written: undisturbed, and while the
store fails (errors, resets, truncations and stalls). Writes a page.
Needs Python's standard library; the loaders are installed, with PyTorch, into an environment of their own, or are those of `--python`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from loaders import BATCH, BUCKET, LOADERS, REGION, SAMPLE_BYTES, SHARDS, WORKERS, WRITERS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from pages import processor, table  # noqa: E402

PACKAGES = ("torch", "numpy", "s3torchconnector", "webdataset", "mosaicml-streaming", "litdata", "boto3")
#: Long enough for the slowest, and for a loader that waits for a stalled answer several times.
TIMEOUT_SECONDS = 300
#: How long a body stalls that does.
STALL_SECONDS = 30.0
#: What the bars are.
LINE_SHARE, FAULTS_SHARE = 0.9, 0.5
#: What is loaded while the store fails, how often, and what that part is called beside the loaders.
DISTURBED, DISTURBED_EPOCHS, FAULTS = "forebay-shuffled", 3, "faults"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def environment(folder: pathlib.Path) -> pathlib.Path:
    """An interpreter with all loaders, and Forebay as it is in `wheels`."""
    python = folder / "venv/bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for package in PACKAGES:
        if subprocess.run([*pip, package]).returncode != 0:
            say(f"{package} cannot be installed: its row will say so")
    subprocess.run([*pip, "--force-reinstall", "--no-deps", *(folder / "wheels").glob("*.whl")], check=True)
    return python


class Bench:
    def __init__(self, python: pathlib.Path, folder: pathlib.Path, samples: int) -> None:
        self.python, self.folder, self.samples = python, folder, samples

    def run(self, mode: str, name: str, folder: pathlib.Path, *extra: str, endpoint: str = "") -> dict[str, Any]:
        """What `loaders.py` found; `error` where it failed."""
        command = [self.python, HERE / "loaders.py", mode, name, "--folder", folder, "--samples", str(self.samples), "--endpoint", endpoint, *extra]
        keys = {"AWS_ACCESS_KEY_ID": "AKIATESTTESTTEST", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}
        settings = {**os.environ, **keys, "AWS_ENDPOINT_URL": endpoint, "AWS_EC2_METADATA_DISABLED": "true"}
        if not endpoint:
            del settings["AWS_ENDPOINT_URL"]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env=settings, text=True, start_new_session=True, cwd=self.folder)
            try:
                output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                return {"error": f"not done after {TIMEOUT_SECONDS} s"}
            finally:
                # Workers that a loader left behind would disturb the next one.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        lines = output.strip().splitlines()
        if process.returncode != 0 or not lines:
            say(f"{name} failed: {self.folder / 'log'} says why")
            return {"error": "failed"}
        return dict(json.loads(lines[-1]))

    def prepare(self, wanted: set[str]) -> None:
        """Writes the samples in the formats that are wanted, unless they are there."""
        for name in WRITERS:
            # Forebay's data set is built of the tars, and these are also those with an index.
            if name not in wanted and not (name == "tars" and wanted & {"forebay", "indexed"}):
                continue
            folder, stamp = self.folder / "data" / BUCKET / name, self.folder / f"{name}.stamp"
            if stamp.exists() and stamp.read_text() == str(self.samples):
                continue
            say(f"writing {name}")
            found = self.run("write", name, folder)
            if "error" in found:
                say(f"{name}: {found['error']}")
            else:
                stamp.write_text(str(self.samples))

    @contextlib.contextmanager
    def store(self, latency: float, bandwidth: float) -> Iterator[str]:
        command = [sys.executable, HERE / "store.py", self.folder / "data", "--latency", str(latency), "--bandwidth", str(bandwidth),
                   "--stall", str(STALL_SECONDS)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()

    def load(self, name: str, endpoint: str, *extra: str) -> dict[str, Any]:
        """One epoch, unless `extra` says more, with nothing kept from before but the files in the page cache, which is where the store reads them."""
        for path in (self.folder / "data" / BUCKET / LOADERS[name][2]).iterdir():
            with path.open("rb", buffering=0) as file:
                buffer = bytearray(1 << 20)
                while file.readinto(buffer):
                    pass
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        found = self.run("read", name, scratch, *extra, endpoint=endpoint)
        shutil.rmtree(scratch, ignore_errors=True)
        if "error" not in found:
            found["rate"] = found["bytes"] / found["seconds"]
            later = found["seconds"] - found["first_seconds"]
            found["later_rate"] = (found["bytes"] - found["first_bytes"]) / later if found["bytes"] > found["first_bytes"] else found["rate"]
        say(f"{' '.join((name, *extra))}: {json.dumps(found)}")
        return found

    def load_verified(self, endpoint: str, faults: float) -> dict[str, Any]:
        """Several epochs, in which a sample that is missing, comes twice or has a wrong byte is an error."""
        return self.load(DISTURBED, endpoint, "--verify", "--epochs", str(DISTURBED_EPOCHS), "--faults", str(faults))


def median(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round whose rate is in the middle; the error, where there was one."""
    failed = [found for found in rounds if "error" in found]
    if failed:
        return failed[0]
    middle = statistics.median_low(found["rate"] for found in rounds)
    return next(found for found in rounds if found["rate"] == middle)


def row(name: str, found: dict[str, Any], bandwidth: float) -> list[str]:
    if "error" in found:
        return [name, found["error"], "", "", "", "", "", ""]
    store = found["store"]
    return [name, f"{found['rate'] / 1e6:.0f}", f"{found['rate'] / bandwidth:.0%}", f"{found['later_rate'] / 1e6:.0f}", f"{found['first_seconds']:.2f}",
            f"{store['requests']:,.0f}", f"{store['bytes'] / 1e6:,.0f}", f"{store['processor_seconds'] / found['seconds']:.2f}"]


def faults_section(arguments: argparse.Namespace, head: list[str], undisturbed: dict[str, Any], disturbed: dict[str, Any]) -> str:
    store, bandwidth = disturbed.get("store", {}), arguments.bandwidth
    kinds = (("error", "answers were 503"), ("reset", "connections were cut before an answer"), ("truncation", "bodies broke off in the middle"),
             ("stall", f"bodies stalled there for {STALL_SECONDS:.0f} s"))
    went_wrong = ", ".join(f"{store.get(kind, 0):,} {words}" for kind, words in kinds)
    if "rate" in undisturbed and "rate" in disturbed:
        share = disturbed["rate"] / undisturbed["rate"]
        found = f"Of {store['requests']:,} requests, {went_wrong}. Each sample came once in each epoch, with no wrong byte, at {share:.0%} of the undisturbed throughput: " \
                f"{'reached' if share >= FAULTS_SHARE else '**not reached**'}."
    else:
        found = "**Not reached**, since a run failed."
    return f"""
## While the store fails

{arguments.faults:.0%} of the answers each are an error (503), a connection that is cut, a body that breaks off, and one that stalls. {DISTURBED_EPOCHS} epochs of one loader, and as many undisturbed
ones beside them; a checksum of each sample is compared with that of what was written, in both. Wanted: every sample once in each epoch, no wrong byte, and at least {FAULTS_SHARE:.0%} of the undisturbed
throughput. {found}

{table(head, [row(f"Forebay, shuffled, {DISTURBED_EPOCHS} epochs", undisturbed, bandwidth), row("The same under faults", disturbed, bandwidth)])}"""


def reached(rows: dict[str, dict[str, Any]], bandwidth: float) -> str:
    """What came of what is wanted of Forebay."""
    ours = {name: rows[name]["rate"] for name in ("forebay", "forebay-shuffled") if "rate" in rows.get(name, {})}
    others = {name: found["rate"] for name, found in rows.items() if "rate" in found and LOADERS[name][1] not in ("", "forebay")}
    found = [f"{LOADERS[name][0]}: {rate / bandwidth:.0%}." for name, rate in ours.items()]
    if others:
        fastest = max(others, key=lambda name: others[name])
        found.append(f"The fastest of the others is {LOADERS[fastest][0]}: {others[fastest] / bandwidth:.0%}.")
    return " ".join(found)


def shown_command(arguments: argparse.Namespace) -> str:
    """What makes this page again, without the paths of a machine."""
    named = {name: getattr(arguments, name) for name in ("samples", "rounds", "latency", "bandwidth", "faults", "only")}
    options = " ".join(f"--{name} {value}" for name, value in named.items() if value != PARSER.get_default(name))
    return f"make bench-remote REMOTE='{options}'" if options else "make bench-remote"


def page(arguments: argparse.Namespace, rows: dict[str, dict[str, Any]], verified: list[dict[str, Any]]) -> str:
    """The whole page. `verified`: what was found undisturbed and under faults, if that was looked at."""
    bandwidth = arguments.bandwidth
    head = ["loader", "MB/s", "of the line", "MB/s after the first batch", "seconds to the first batch", "requests", "MB sent", "cores of the store"]
    shown = table(head, [row(LOADERS[name][0], found, bandwidth) for name, found in rows.items()])
    every = {**rows, "": verified[0]} if verified else rows
    versions = ", ".join(sorted({f"{LOADERS[name or DISTURBED][1]} {found['version']}" for name, found in every.items() if found.get("version")}))
    many = f"of {arguments.rounds} rounds, in which loaders took turns, the one in the middle"
    rounds = "each was run once" if arguments.rounds == 1 else many
    faults = faults_section(arguments, head, *verified) if verified else ""
    return f"""# A store with a latency

Regenerate with `{shown_command(arguments)}`. {datetime.date.today()}, {processor()}, {os.cpu_count()} cores, which the store has its share of (the last column). {versions}.

The store is `bench/remote/store.py`, on the loopback: {arguments.latency * 1000:.0f} ms to the first byte of each answer, {bandwidth / 1e6:.0f} MB/s for all together. {arguments.samples:,} samples of {SAMPLE_BYTES:,}
bytes (pixels of 224×224, and a number) become batches of {BATCH} PyTorch tensors, by {WORKERS} threads or worker processes; nothing is decoded. Shards: {SHARDS} tars, as many of Forebay's, and
MDS shards and LitData's chunks of their default size. One epoch in a new process, from before the loader is made, with nothing kept from before; {rounds}.
Each sample was seen exactly once.

Wanted of Forebay: {LINE_SHARE:.0%} of the line, in order and shuffled, and more than each of the others. {reached(rows, bandwidth)}

{shown}
*In order* and *shuffled* are as the loaders mean it: Forebay shuffles within windows of 64 MB of 16 streams, WebDataset shards and 250 samples, Streaming and LitData across all shards
that they keep on the disk. MosaicML Streaming and LitData write what they fetch to a local disk first, Forebay where it is given a `cache_dir`. s3torchconnector gives
objects and leaves tars to the user: `tarfile`, here. Forebay lists tars before the first batch, which takes as long as reading them, and keeps what it read for the epoch as far as a quarter of its
memory goes: their row is mostly that listing. With the index of DALI's `wds2idx` beside each tar, it reads that instead. WebDataset reads by `curl`, a process for each shard. One connection may use the whole line here, which real stores seldom allow.
{faults}"""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=pathlib.Path, help="an interpreter that has all loaders and Forebay; otherwise they are installed")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-remote", help="data, environment and what loaders keep (15 GB)")
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds to the first byte")
    parser.add_argument("--bandwidth", type=float, default=200e6, help="bytes per second")
    parser.add_argument("--faults", type=float, default=0.05, help="share of each of four faults in the last table; 0 for none")
    parser.add_argument("--only", help=f"some of {', '.join((*LOADERS, FAULTS))} (the last table); nothing is written then, unless --output says where")
    parser.add_argument("--output", type=pathlib.Path)
    return parser


PARSER = parser()


def main() -> None:
    arguments = PARSER.parse_args()
    wanted = arguments.only.split(",") if arguments.only else [*LOADERS, FAULTS]
    unknown = [name for name in wanted if name not in LOADERS and name != FAULTS]
    if unknown:
        sys.exit(f"no loader is called `{unknown[0]}`\nhint: there are {', '.join((*LOADERS, FAULTS))}")
    names = [name for name in wanted if name in LOADERS]
    # The last table compares with what is measured for it, so it needs no other row.
    with_faults = arguments.faults > 0 and (FAULTS in wanted or DISTURBED in wanted)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    # An environment's interpreter is a link, which must not be followed.
    python = pathlib.Path(os.path.abspath(arguments.python)) if arguments.python else environment(folder)
    bench = Bench(python, folder, arguments.samples)
    bench.prepare({LOADERS[name][2] for name in names + [DISTURBED] * with_faults})
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    undisturbed, disturbed = [], []
    with bench.store(arguments.latency, arguments.bandwidth) as endpoint:
        for _ in range(arguments.rounds):
            for name in names:
                rounds[name].append(bench.load(name, endpoint))
            if with_faults:
                undisturbed.append(bench.load_verified(endpoint, 0.0))
                disturbed.append(bench.load_verified(endpoint, arguments.faults))
    verified = [median(undisturbed), median(disturbed)] if with_faults else []
    text = page(arguments, {name: median(found) for name, found in rounds.items()}, verified)
    output = arguments.output or (None if arguments.only else ROOT / "bench/results/remote.md")
    if output is not None:
        output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
