#!/usr/bin/env python3
"""Fuzzes every parser, sanitized, for that many seconds of CPU time each, and reports the results.

    tools/fuzz.py run [--seconds 5] [--jobs 2] [--own] [TARGET ...]    fuzz; the saved corpus runs first
    tools/fuzz.py keep [--seconds 60] [TARGET ...]                     extend the saved corpus with inputs generated here, and minimize it
    tools/fuzz.py show --record FILE                                   the table of the runs that were recorded in the file

The build has AddressSanitizer and libFuzzer's coverage, of Rust and of the C libraries, by plain flags of the stable compilers;
only the sanitizer's is an unstable one, which RUSTC_BOOTSTRAP lets pass, for this workspace alone. Finds are in fuzz/artifacts.
Kept inputs (fuzz/seeds/TARGET.zip, in git) are made here or grown from such; `run` also takes other people's files where they are present
(FOREBAY_TEST_DATA), and what grows from those stays in fuzz/corpus, outside git.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
#: What targets write; emptied before each campaign.
SCRATCH = ROOT / "target/fuzz/scratch"
DATA = Path(os.environ.get("FOREBAY_TEST_DATA", ROOT / "../shared/data"))
INPUT_BYTES_MAX = 65536
# What no target may come near: the targets' own limits are a quarter of that. The sanitizer takes some as well.
MEMORY_MEGABYTES_MAX = 2048
ALLOCATION_MEGABYTES_MAX = 256
# Of a single input, by the clock: generous, since the machine may be busy.
INPUT_SECONDS_MAX = 60
# Saved inputs are small, so that hundreds of them are small, too.
KEPT_BYTES_MAX = 4096
KEPT_TARGET_BYTES_MAX = 64 << 10

# Files of others that a target begins with, where they are present; and of ours, which lie elsewhere in the repository.
SHARED = {
    "arrays": ["golden", "malformed/pngsuite", "codec/pngsuite"],
    "article": ["text-html/readability"],
    "audio": ["malformed/flac-fuzz-seeds", "malformed/flac-faulty", "audio-mp3/conformance", "malformed/mp3"],
    "signal": ["electrical/comtrade", "electrical/lab-1hz"],
    "tar": ["golden"],
    "tfrecord": ["golden"],
    "image": ["malformed/pngsuite", "malformed/go-fuzz-jpeg", "malformed/go-fuzz-webp", "codec/pngsuite"],
    "jpeg": ["malformed/go-fuzz-jpeg", "codec/jpeg-variants"],
    "png": ["malformed/pngsuite", "codec/pngsuite"],
}
OWN = {
    "arrow": ["crates/record/tests/golden/arrow"],
    "signal": ["crates/codec/tests/golden"],
    "tokenizer": ["crates/codec/tests/golden/tokenizers"],
    "l3_decode": ["crates/l3/tests/golden"],
    "image": ["crates/l3/tests/golden"],
    "documents": ["pipelines"],
    "annotations": ["crates/pipeline/tests/golden"],
}


@dataclass
class Result:
    """What a run of one target gave."""

    target: str
    runs: int = 0
    cpu_seconds: float = 0.0
    edges: int = 0
    features: int = 0
    corpus: int = 0
    megabytes: int = 0
    finds: int = 0
    commit: str = ""
    log: str = field(default="", repr=False)


def targets() -> list[str]:
    return sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))


def host() -> str:
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return re.search(r"^host: (.*)$", version, re.MULTILINE)[1]


def build(triple: str, names: list[str]) -> Path:
    """Builds the targets and returns the folder that they are in."""
    # Nothing is gained by optimizing what was instrumented once more, across the parts of a crate, but minutes are lost.
    flags = ["-Zsanitizer=address", "-Clto=off", "-Cpasses=sancov-module"]
    for coverage in ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"]:
        flags.append(f"-Cllvm-args=-sanitizer-coverage-{coverage}")
    # Not `--cfg fuzzing`, by which libraries leave their checksums out: what is fuzzed is what is shipped.
    environment = {
        **os.environ,
        "RUSTC_BOOTSTRAP": "1",
        "RUSTFLAGS": " ".join(flags),
        # The C libraries: the same sanitizer (its calls are alike in both compilers, and the runtime is Rust's), and coverage of
        # the kind that gcc has; fuzz/foreign/coverage.c makes libFuzzer's of it. Checks are calls: in line, some of the files take
        # gcc half a minute.
        f"CFLAGS_{triple.replace('-', '_')}": "-fsanitize=address --param asan-instrumentation-with-call-threshold=0 "
        "-fsanitize-coverage=trace-pc,trace-cmp",
        # The libraries' builds link programs of their own, which nobody runs; coverage.c is not there.
        "LDFLAGS": "-Wl,--unresolved-symbols=ignore-all",
    }
    command = ["cargo", "build", "--release", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--target", triple]
    command += ["--target-dir", "target/fuzz"]
    for name in names:
        command += ["--bin", name]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return ROOT / "target/fuzz" / triple / "release"


def environment() -> dict[str, str]:
    # A little quarantine finds as much in short runs and leaves the memory's limit to the target. An allocation that fails is an
    # answer, not a find; what is asked for beyond the limit is one.
    options = "quarantine_size_mb=16:allocator_may_return_null=1:detect_leaks=1"
    return {**os.environ, "ASAN_OPTIONS": options, "RUST_BACKTRACE": "0", "TMPDIR": str(SCRATCH)}


def limits(target: str) -> list[str]:
    (FUZZ / "artifacts" / target).mkdir(parents=True, exist_ok=True)
    return [
        f"-max_len={INPUT_BYTES_MAX}",
        f"-rss_limit_mb={MEMORY_MEGABYTES_MAX}",
        f"-malloc_limit_mb={ALLOCATION_MEGABYTES_MAX}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-artifact_prefix={FUZZ / 'artifacts' / target}/",
        "-print_final_stats=1",
    ]


def inputs(target: str, own: bool) -> list[Path]:
    """The folders to begin with, without the one that grows."""
    folders = [kept(target)] + [ROOT / folder for folder in OWN.get(target, [])]
    if not own:
        folders += [DATA / folder for folder in SHARED.get(target, [])]
    return [folder for folder in folders if folder.is_dir()]


def kept(target: str) -> Path:
    """The saved corpus of a target, unpacked."""
    folder = ROOT / "target/fuzz/seeds" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = FUZZ / "seeds" / f"{target}.zip"
    if packed.exists():
        zipfile.ZipFile(packed).extractall(folder)
    return folder


def cpu_seconds(process: int) -> float:
    """The CPU time of a process so far, by its own account."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """A target at work."""

    def __init__(self, folder: Path, target: str, seconds: float, own: bool, seed: int, commit: str) -> None:
        self.target, self.seconds, self.stopped, self.commit = target, seconds, False, commit
        self.corpus = FUZZ / ("corpus-own" if own else "corpus") / target
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.before = set(artifacts(target))
        self.log = tempfile.NamedTemporaryFile("w+", prefix=f"fuzz-{target}-", suffix=".log")  # noqa: SIM115
        # A machine that gives a tenth of a core is waited for; one that gives nothing is not.
        self.deadline = time.monotonic() + 60 + 20 * seconds
        command = [folder / target, *limits(target), f"-seed={seed}", self.corpus, *inputs(target, own)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )
        self.cpu = 0.0

    def poll(self) -> bool:
        """Whether it ended. It is asked to once its time is up: libFuzzer then says what it did."""
        if self.process.poll() is not None:
            return True
        try:
            self.cpu = cpu_seconds(self.process.pid)
        except OSError:
            return False
        done = self.cpu >= self.seconds and self.began()
        if not self.stopped and (done or time.monotonic() > self.deadline):
            self.process.send_signal(signal.SIGINT)
            self.stopped, self.deadline = True, time.monotonic() + 120
        elif self.stopped and time.monotonic() > self.deadline:
            self.process.kill()
        return False

    def began(self) -> bool:
        """Whether every input that it began with was run."""
        return b"\tINITED" in Path(self.log.name).read_bytes()

    def result(self) -> Result:
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        def found(pattern):
            return max([int(number) for number in re.findall(pattern, text)], default=0)
        finds = len(set(artifacts(self.target)) - self.before)
        # 72 is libFuzzer's word for having been asked to stop.
        if self.process.returncode not in (0, 72) and finds == 0:
            finds = 1
        return Result(
            self.target,
            runs=found(r"stat::number_of_executed_units:\s*(\d+)") or found(r"^#(\d+)"),
            cpu_seconds=round(self.cpu, 1),
            edges=found(r" cov: (\d+)"),
            features=found(r" ft: (\d+)"),
            corpus=found(r" corp: (\d+)"),
            megabytes=found(r"stat::peak_rss_mb:\s*(\d+)"),
            finds=finds,
            commit=self.commit,
            log=text,
        )


def artifacts(target: str) -> list[str]:
    folder = FUZZ / "artifacts" / target
    return [path.name for path in folder.iterdir()] if folder.is_dir() else []


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def fuzz(folder: Path, names: list[str], seconds: float, jobs: int, own: bool, seed: int, file: Path | None) -> list[Result]:
    """Runs the targets, that many at once; reports each result when it is available, and adds it to the file."""
    waiting, running, results, built = list(names), [], [], commit()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(Run(folder, waiting.pop(0), seconds, own, seed, built))
            time.sleep(0.1)
            for run in [run for run in running if run.poll()]:
                running.remove(run)
                result = run.result()
                results.append(result)
                if file:
                    record(result, file)
                verdict = "nothing found" if result.finds == 0 else f"{result.finds} found"
                print(f"fuzz {result.target}: {result.runs} runs in {result.cpu_seconds:.0f} s, {verdict}", flush=True)
                if result.finds:
                    print("\n".join(result.log.splitlines()[-60:]), flush=True)
    finally:
        for run in running:
            run.process.kill()
    return sorted(results, key=lambda result: result.target)


def table(results: list[Result]) -> str:
    lines = ["| target | runs | runs/s | CPU s | edges | corpus | peak MB | finds | commit |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|--:|---|")
    for one in results:
        rate = one.runs / one.cpu_seconds if one.cpu_seconds else 0
        lines.append(
            f"| `{one.target}` | {one.runs:,} | {rate:,.0f} | {one.cpu_seconds:,.0f} | {one.edges:,} | {one.corpus:,} "
            f"| {one.megabytes:,} | {one.finds} | {one.commit} |"
        )
    return "\n".join(lines)


def record(result: Result, file: Path) -> None:
    """Adds a run to a file of results: of several runs of a target, each going on with the corpus of the last, time and runs add up."""
    kept = {one["target"]: one for one in json.loads(file.read_text())} if file.exists() else {}
    one = {key: value for key, value in asdict(result).items() if key != "log"}
    if before := kept.get(result.target):
        for sum_of in ["runs", "cpu_seconds", "finds"]:
            one[sum_of] = round(one[sum_of] + before[sum_of], 1)
        one["megabytes"] = max(one["megabytes"], before["megabytes"])
        one["commit"] = " ".join(dict.fromkeys([*before["commit"].split(), result.commit]))
    kept[result.target] = one
    file.write_text(json.dumps(sorted(kept.values(), key=lambda one: one["target"]), indent=1) + "\n")


def keep(folder: Path, target: str) -> None:
    """Minimizes the saved corpus together with the new inputs: as few small files as have the same coverage."""
    sources = [kept(target), FUZZ / "corpus-own" / target, *(ROOT / folder for folder in OWN.get(target, []))]
    with tempfile.TemporaryDirectory() as scratch:
        small, merged = Path(scratch, "small"), Path(scratch, "merged")
        small.mkdir()
        merged.mkdir()
        paths = [path for source in sources if source.is_dir() for path in sorted(source.iterdir()) if path.is_file()]
        for number, path in enumerate(path for path in paths if 0 < path.stat().st_size <= KEPT_BYTES_MAX):
            shutil.copy(path, small / f"{number:06}")
        command = [folder / target, "-set_cover_merge=1", *limits(target), merged, small]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
        # Small ones first, up to what a repository should hold. The same inputs always give the same file.
        (FUZZ / "seeds").mkdir(exist_ok=True)
        size, count = 0, 0
        with zipfile.ZipFile(FUZZ / "seeds" / f"{target}.zip", "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(merged.iterdir(), key=lambda path: (path.stat().st_size, path.name)):
                size += path.stat().st_size
                if size > KEPT_TARGET_BYTES_MAX:
                    break
                packed.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED)
                count += 1
        print(f"fuzz {target}: kept {count} of {len(list(merged.iterdir()))} inputs", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=["run", "keep", "show"])
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--seconds", type=float, default=5, help="of CPU time, for each target")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="targets at once")
    parser.add_argument("--own", action="store_true", help="begin with inputs of our own only")
    # Whether a change lands should not be decided by luck: CI mutates by the same numbers each time.
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0: another one each time")
    parser.add_argument("--record", type=Path, metavar="FILE", help="a file of JSON that runs are added to")
    arguments = parser.parse_intermixed_args()
    if arguments.job == "show":
        print(table([Result(**one) for one in json.loads(arguments.record.read_text())]))
        return 0
    names = arguments.targets or targets()
    if unknown := set(names) - set(targets()):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    folder = build(host(), names)
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir(parents=True)
    growing = arguments.job == "keep"
    if growing:
        subprocess.run([sys.executable, ROOT / "tools/fuzz_seeds.py"], check=True)
        subprocess.run([build(host(), ["seeds"]) / "seeds", FUZZ / "corpus-own"], env=environment(), check=True)
    results = fuzz(folder, names, arguments.seconds, arguments.jobs, arguments.own or growing, arguments.seed, arguments.record)
    print(table(results))
    if any(result.finds for result in results):
        print("the inputs are in fuzz/artifacts; target/fuzz/*/release/TARGET FILE runs one again")
        return 1
    if growing:
        for name in names:
            keep(folder, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
