"""Compares Forebay with other loaders and decoders, all on the same images, in the same run; see README.md.

Needs Python's standard library only: peers are installed into environments of their own, and run there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import environments
import measure
import report
from common import REFERENCES, TASKS
from rows import Row, is_disturbed, summarize

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULTS = ROOT / "bench" / "results" / "peers.md"
PNGS = 60
TIMEOUT_SECONDS = 600
GRACE_SECONDS = 5
#: How often a round is tried again with --wait-quiet, if it was disturbed all the same.
TRIES = 3
QUIET_SAMPLE_SECONDS = 2.0

#: Forebay first: the rows that others are compared with.
MODULES = (
    "forebay_",
    "torch_dataloader",
    "decoders",
    "dali",
    "ffcv_",
    "spdl_",
    "webdataset_",
    "streaming_",
    "litdata_",
    "grain_",
    "tfdata",
    "hf_datasets",
    "ray_data",
    "kornia_rs_",
    "imagecodecs_",
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Bench:
    """The folders of a run, and how a worker is started."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.program = program

    def work(self, mode: str, environment: str, *extra: str) -> dict[str, Any]:
        """Runs `worker.py` in an environment; gives what it wrote, or `error`."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            result = Path(temporary, "result.json")
            command = [str(environments.python(self.folder, environment)), str(HERE / "worker.py"), mode, *extra]
            command += ["--data", str(self.data), "--result", str(result)]
            log = self.folder / "worker.log"
            code = self._run_worker(command, Path(temporary), log)
            if result.exists():
                return dict(json.loads(result.read_text(encoding="utf-8")))
            if code is None:
                return {"error": f"failed: not done after {TIMEOUT_SECONDS} seconds"}
            return {"error": f"failed: its process ended with code {code}: {_last_line(log)}"}

    def _run_worker(self, command: list[str], temporary: Path, log: Path) -> int | None:
        """Gives the exit code, if the worker ended in time, and leaves nothing behind that it started."""
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "RAY_USAGE_STATS_ENABLED": "0", "HF_HUB_OFFLINE": "1"}
        folders = {"HF_HOME": str(self.folder / "cache"), "TMPDIR": str(temporary), "RAY_TMPDIR": str(temporary)}
        variables = {**os.environ, **quiet, **folders, "PYTHONDONTWRITEBYTECODE": "1"}
        with log.open("w", encoding="utf-8") as output:
            worker = subprocess.Popen(
                command, cwd=temporary, stdout=output, stderr=output, env=variables, start_new_session=True
            )
            try:
                return worker.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                return None
            finally:
                end_group(worker.pid)
                worker.wait()

    def work_on(self, row: Row, mode: str, *extra: str) -> dict[str, Any]:
        which = ["--peer", row.module, "--configuration", str(row.index)]
        return self.work(mode, row.environment, *which, "--prepared", str(self._prepared(row)), *extra)

    def prepare(self, row: Row) -> None:
        """Writes the peer's own files, unless they were written before."""
        stamp = self._prepared(row) / "done"
        if row.configuration.prepare is None or stamp.exists():
            return
        say(f"preparing {row.label}")
        row.problem = self.work_on(row, "prepare").get("error", "")
        if not row.problem:
            stamp.touch()

    def _prepared(self, row: Row) -> Path:
        """Configurations of one peer and task read the same files."""
        return self.folder / "prepared" / row.peer.name / row.configuration.task


def end_group(group: int) -> None:
    """Ends what a worker left running, after a while in which it may tidy up by itself (shared memory, for one)."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(10 * GRACE_SECONDS):
            os.killpg(group, 0)
            time.sleep(0.1)
        os.killpg(group, signal.SIGKILL)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")[:200]


# The data.


def make_data(bench: Bench, jpegs: int) -> dict[str, Any]:
    """Makes the images, unless the same ones are there; gives what they are."""
    stamp = bench.data / "described.json"
    shared = ROOT.parent / "shared" / "data"
    wanted = {"jpegs_wanted": jpegs, "shared": shared.is_dir()}
    if stamp.exists():
        described = dict(json.loads(stamp.read_text(encoding="utf-8")))
        if wanted.items() <= described.items():
            return described
    shutil.rmtree(bench.folder / "prepared", ignore_errors=True)
    shutil.rmtree(bench.data, ignore_errors=True)
    bench.data.mkdir(parents=True)
    if shared.is_dir():
        small, large = [shared / "images-jpeg"], [shared / "images-png-hd", shared / "images-jpeg-large"]
    else:
        photos = bench.folder / "demo"
        say("making photographs: there are no real ones here")
        run_program([str(bench.program), "demo", "--folder", str(photos), "--data-only"])
        small = large = [photos]
    say(f"making {jpegs} JPEGs and {PNGS} PNGs")
    command = [str(environments.python(bench.folder, "torch")), str(HERE / "data.py"), "--target", str(bench.data)]
    command += ["--jpegs", str(jpegs), "--pngs", str(PNGS)]
    command += [part for folder in small for part in ("--small", str(folder))]
    command += [part for folder in large for part in ("--large", str(folder))]
    described = dict(json.loads(run_program(command))) | wanted
    failed = bench.work("references", "torch").get("error")
    if failed:
        sys.exit(f"error: cannot make the images to compare with: {failed}")
    stamp.write_text(json.dumps(described), encoding="utf-8")
    return described


def make_l3(bench: Bench) -> dict[str, int]:
    """Converts the PNGs, anew each time: the encoder may have changed. Gives the mean sizes in bytes."""
    sizes = {}
    for mode in ("fast", "dense"):
        target = bench.data / f"l3-{mode}"
        say(f"converting the PNGs to L3 {mode}")
        run_program(
            [str(bench.program), "convert", str(bench.data / "png"), str(target), "--mode", mode, "--overwrite"]
        )
        files = [path.stat().st_size for path in target.rglob("*.l3")]
        sizes[f"l3_{mode}_bytes"] = sum(files) // len(files)
    return sizes


def run_program(command: list[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: `{Path(command[0]).name}` failed: {done.stderr.strip()}")
    return done.stdout


# The peers.


def find_rows(only: set[str], tasks: set[str]) -> list[Row]:
    """Every configuration that was asked for."""
    peers = {module: importlib.import_module(f"peers.{module}").PEER for module in MODULES}
    unknown = only - {peer.name for peer in peers.values()}
    if unknown:
        sys.exit(f"error: no peer `{', '.join(unknown)}`\nhint: {', '.join(peer.name for peer in peers.values())}")
    return [
        Row(module, peer, index, configuration)
        for module, peer in peers.items()
        if not only or peer.name in only
        for index, configuration in enumerate(peer.configurations)
        if configuration.task in tasks
    ]


def install_all(bench: Bench, rows: list[Row], offline: bool) -> None:
    """Installs every peer; where that fails, its rows say why."""
    say("installing torch, for most peers to lie on")
    try:
        environments.install(bench.folder, environments.TORCH, offline)
    except environments.InstallError as error:
        sys.exit(f"error: PyTorch, which the pixels are compared with, did not install: {error}")
    problems: dict[str, str] = {}
    for row in rows:
        if row.environment == environments.TORCH.name or row.peer.name in problems:
            row.problem = problems.get(row.peer.name, "")
            continue
        say(f"installing {row.peer.name}")
        try:
            environments.install(bench.folder, row.peer, offline and row.peer.name != "forebay")
            if row.peer.name == "forebay":
                install_wheel(bench)
            problems[row.peer.name] = ""
        except environments.InstallError as error:
            problems[row.peer.name] = row.problem = f"did not install: {error}"
            say(row.problem)


def install_wheel(bench: Bench) -> None:
    wheels = sorted((bench.folder / "wheels").glob("forebay-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise environments.InstallError("no wheel; `make bench-peers` builds it")
    environments.pip_install(bench.folder, "forebay", "--force-reinstall", "--no-deps", "--no-index", str(wheels[-1]))
    # What an older wheel wrote, this one may not read.
    shutil.rmtree(bench.folder / "prepared" / "forebay", ignore_errors=True)


def find_versions(bench: Bench, rows: list[Row]) -> dict[str, str]:
    versions: dict[str, str] = {}
    for module, row in {row.module: row for row in rows if not row.problem}.items():
        versions |= bench.work("versions", row.environment, "--peer", module).get("versions", {})
    return dict(sorted(versions.items()))


# Measuring.


def prepare_and_check(bench: Bench, rows: list[Row]) -> None:
    """Writes what peers need, and compares their pixels."""
    for row in rows:
        if row.problem:
            continue
        bench.prepare(row)
        if row.problem or row.configuration.task not in REFERENCES:
            continue
        found = bench.work_on(row, "check")
        row.problem = found.get("error", "")
        row.difference_percent = found.get("difference_percent")
        say(f"pixels of {row.label}: {row.problem or f'{row.difference_percent:.3f} % from the reference'}")


def measure_rounds(bench: Bench, rows: list[Row], rounds: int, seconds: float, quiet_seconds: float) -> None:
    """Every configuration once, then every one again, and so on."""
    timed = [row for row in rows if row.configuration.task != "crop"]
    for number in range(1, rounds + 1):
        for row in timed:
            if row.problem:
                continue
            for found in tries(bench, row, seconds, quiet_seconds):
                say(f"round {number} of {rounds}, {row.label}: {describe(found)}")


def tries(bench: Bench, row: Row, seconds: float, quiet_seconds: float) -> Iterator[dict[str, Any]]:
    """Measures a row, again where it was disturbed and a quiet machine is wanted; keeps the last try."""
    for left in reversed(range(TRIES if quiet_seconds else 1)):
        wait_until_quiet(quiet_seconds)
        found = bench.work_on(row, "speed", "--seconds", str(seconds))
        if "error" in found:
            row.problem = str(found["error"])
        disturbed = is_disturbed(found)
        if row.problem or not disturbed or not left:
            row.rounds.append(found)
            yield found
            return
        yield found


def wait_until_quiet(limit_seconds: float) -> None:
    """Waits until others use little of the machine, at most for `limit_seconds`."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit_seconds:
        before = measure.machine_seconds()
        time.sleep(QUIET_SAMPLE_SECONDS)
        if (measure.machine_seconds() - before) / QUIET_SAMPLE_SECONDS < measure.OTHERS_CORES_MAX:
            return


def describe(found: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])
    mark = ", disturbed" if is_disturbed(found) else ""
    if "handover_share" in found:
        return f"{100 * found['handover_share']:.3f} % of the time{mark}"
    rate = found["images"] / found["elapsed_seconds"]
    return f"{rate:.0f} images/s, {found['images'] / found['cpu_seconds']:.0f} per CPU-second{mark}"


# The program.


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/peers/run.py", description=__doc__)
    parser.add_argument("--only", default="", help="peers, by commas: forebay,dali")
    parser.add_argument("--tasks", default="", help=f"tasks, by commas: {','.join(TASKS)}")
    parser.add_argument("--images", type=int, default=1000, help="JPEGs to make")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="how long a configuration is timed in a round, at least"
    )
    parser.add_argument("--offline", action="store_true", help="install nothing but Forebay's wheel")
    parser.add_argument(
        "--wait-quiet",
        type=float,
        nargs="?",
        const=600.0,
        default=0.0,
        metavar="SECONDS",
        help="wait for a quiet machine before each measurement, at most so long (600), and try disturbed ones again",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the tables")
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "bench-peers", help="environments and data")
    parser.add_argument("--program", type=Path, default=ROOT / "target" / "release" / "forebay")
    parser.add_argument("--output", type=Path, help="where the tables go; bench/results/peers.md if all was measured")
    return parser.parse_args(arguments)


def chosen_tasks(text: str) -> set[str]:
    tasks = set(text.split(",")) if text else set(TASKS)
    unknown = tasks - set(TASKS)
    if unknown:
        sys.exit(f"error: no task `{', '.join(unknown)}`\nhint: {', '.join(TASKS)}")
    return tasks


def main() -> None:
    arguments = parse(sys.argv[1:])
    # As Ctrl-C does: no worker is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    tasks = chosen_tasks(arguments.tasks)
    rows = find_rows(set(filter(None, arguments.only.split(","))), tasks)
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(folder, arguments.program.resolve())
    install_all(bench, rows, arguments.offline)
    described = make_data(bench, arguments.images)
    if "l3" in tasks:
        described |= make_l3(bench)
    versions = find_versions(bench, rows)
    prepare_and_check(bench, rows)
    measure_rounds(bench, rows, arguments.rounds, arguments.seconds, arguments.wait_quiet)
    complete = not arguments.only and not arguments.tasks
    found = report.Report(
        rows=[summarize(row) for row in rows],
        versions=versions,
        data=described,
        command=" ".join(["bench/peers/run.py", *report.without_paths(sys.argv[1:])]),
    )
    text = found.to_markdown()
    output = arguments.output or (RESULTS if complete else None)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        say(f"written: {output.name}")
    print(found.to_json() if arguments.json else text)
    if any(bar.verdict == "missed" for bar in found.bars()):
        sys.exit(1)


if __name__ == "__main__":
    main()
