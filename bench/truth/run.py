"""Can a profile be trusted? Compares each of its figures with an independent load.

For each case (a pipeline and its data) every strategy is built once from all of the data. For each setting (storage, threads, caching)
some samples are profiled, whole and with `--fast`, and every strategy is loaded with `forebay load` for some seconds. A cell is one strategy
in one setting: what the cost model said, what the profile said, what the load gave, and what bound it. Once more with a core kept busy by
another process: then the choice counts, against what the quiet loads gave.

Writes a table and a scatter plot. Needs Python's standard library and the program only.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/peers")]
import measure as clocks  # noqa: E402  (what others do meanwhile: one mechanism for both)
from pages import processor, table  # noqa: E402

DATA = pathlib.Path(os.environ.get("FOREBAY_TEST_DATA", ROOT / "../shared/data"))
CUSTOM = "custom:read=200MB/s,stream=100MB/s,seek=4ms,iops=400"

#: What is wanted: of the errors' median and 90th percentile, of bottlenecks that are right, of what a choice loses.
MEDIAN_MAX, NINETIETH_MAX, FAST_NINETIETH_MAX = 0.05, 0.15, 0.20
BOTTLENECKS_MIN, REGRET_MAX, FAST_SHARE_MAX = 0.95, 0.05, 0.2


#: Where the loads of a strategy before and after the profiles differ by more than this, it is loaded a third time.
DRIFT_MAX = 0.10

#: How long to wait for the disk to become idle after data sets were written.
SETTLE_SECONDS = 10

#: How long an epoch of a load should last, and how many samples are in a batch.
EPOCH_SECONDS, BATCH = 1.2, 64

#: The warm-up time of a load before it counts.
WARM_UP_SECONDS = 1.0

#: So much longer than by the rate that is expected, so that few loads are too short and made again.
SPARE = 1.15


#: For the cases that do not go through all settings: a fast storage that is read, a slow one, and none.
FEW = ("local, 2 threads, cold", "local, 2 threads, page cache", "ceph-hdd, 2 threads")

#: Where `cv` and `imagenet` are profiled once more with one core kept busy by another process.
BUSY = ("local, 2 threads, page cache", "ceph-hdd, 2 threads")


@dataclass
class Case:
    """A pipeline and its data; `times` is how often each file comes, so that an epoch is longer than its start; `settings` are the
    beginnings of those that it goes through; with `tar` the files lie in shards as WebDataset writes them."""

    name: str
    pipeline: str
    data: pathlib.Path
    times: int
    samples: int
    encodings: list[str] = field(default_factory=list)
    settings: tuple[str, ...] = ("",)
    tar: bool = False

    def options(self, data: pathlib.Path) -> list[str]:
        """The pipeline, and the location of its data."""
        source = ["--set", "source.format=tar", "--set", "source.files=**/*.tar", "--set", "source.label=none"] if self.tar else []
        return [self.pipeline, "--data", str(data), *source]


@dataclass
class Setting:
    storage: str
    threads: int
    caching: str

    def __str__(self) -> str:
        name = "custom" if self.storage.startswith("custom") else self.storage
        return f"{name}, {self.threads} thread{'s' if self.threads > 1 else ''}, {CACHING[self.caching]}"


CACHING = {"none": "cold", "system": "page cache", "application": "samples in memory"}

CASES = [
    Case("cv", "cv", DATA / "images-jpeg", 10, 200),
    Case("imagenet", "imagenet", DATA / "images-jpeg", 10, 200, ["l3-fast", "gzip"], (*FEW, "ssd")),
    Case("tar", "cv", DATA / "images-jpeg", 10, 200, [], FEW, tar=True),
    Case("png", "cv2-png", DATA / "images-png-hd", 20, 60, ["l3-fast"], FEW),
    Case("nlp", "nlp", DATA / "text-html", 4, 100, [], FEW),
    Case("flac", "flac", DATA / "audio-flac", 4, 100, [], FEW),
]
SETTINGS = [
    Setting("local", 2, "none"),
    Setting("local", 1, "none"),
    Setting("local", 2, "system"),
    Setting("local", 2, "application"),
    Setting("direct", 2, "none"),
    Setting("hdd", 2, "none"),
    Setting("ssd", 2, "none"),
    Setting("ceph-hdd", 2, "none"),
    Setting("ceph-hdd", 1, "none"),
    Setting(CUSTOM, 2, "none"),
]


@dataclass
class Cell:
    """One strategy in one setting, all in samples per second."""

    case: str
    setting: str
    strategy: str
    model: float
    profile: float
    fast: float
    truth: float
    profile_bound: str
    model_bound: str
    fast_bound: str
    truth_bound: str
    ran_fast: bool
    #: The load before the profile, and the one after it.
    before: float
    after: float


@dataclass
class Choice:
    """What was chosen in one setting, and how much slower that is, truly, than the fastest."""

    case: str
    setting: str
    how: str
    chosen: str
    best: str
    regret: float
    unsure: bool
    seconds: float


class Bench:
    def __init__(self, program: pathlib.Path, folder: pathlib.Path, seconds: float) -> None:
        self.program, self.folder, self.seconds = program, folder, seconds
        self.samples = 0

    def run(self, *arguments: str) -> Any:
        done = subprocess.run([self.program, *arguments, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
        return json.loads(done.stdout)

    def files(self, case: Case) -> pathlib.Path:
        """A folder with the files of the case, each several times, so that an epoch is longer than its start."""
        suffixes = {"cv": (".jpg",), "imagenet": (".jpg",), "cv2-png": (".png",), "nlp": (".html",), "flac": (".flac",)}
        found = sorted(path for path in case.data.rglob("*") if path.suffix in suffixes[case.pipeline])
        copies = self.folder / case.name / "data" / "all"
        shutil.rmtree(copies.parent, ignore_errors=True)
        copies.mkdir(parents=True)
        files = [(f"{number}-{path.name}", path) for number in range(case.times) for path in found]
        if case.tar:
            for shard in range(2):
                with tarfile.open(copies / f"{shard}.tar", "w") as tar:
                    for name, path in files[shard::2]:
                        tar.add(path, name)
        else:
            for name, path in files:
                shutil.copyfile(path, copies / name)
        self.samples = len(files)
        return copies.parent

    def common(self, case: Case, data: pathlib.Path, setting: Setting) -> list[str]:
        encodings = [word for encoding in case.encodings for word in ("--encoding", encoding)]
        return [*case.options(data), "--samples", str(case.samples), "--storage", setting.storage,
                "--threads", str(setting.threads), "--caching", setting.caching, *encodings]

    def profile(self, case: Case, data: pathlib.Path, setting: Setting, *options: str) -> tuple[dict[str, Any], float]:
        """What `profile` says, with the `plan` that `plan` makes of it, and how long measuring took."""
        begun = time.monotonic()
        output = str(self.folder / case.name / "profile.json")
        runs = ["--runs", "6"] if setting.caching == "system" and "--fast" not in options else []
        found = self.run("profile", *self.common(case, data, setting), "-o", output, *runs, *options)
        seconds = time.monotonic() - begun
        found["plan"] = self.run("plan", output, "-o", str(self.folder / case.name / "plan.json"))
        return found, seconds

    def build(self, case: Case, data: pathlib.Path, strategy: str) -> pathlib.Path | None:
        """The strategy's data set, of all the data; none where it keeps files."""
        if strategy == "unprocessed":
            return None
        folder = self.folder / case.name / "built" / strategy
        if not (folder / "dataset.json").exists():
            self.run("build", *case.options(data), "--strategy", strategy, "--output", str(folder),
                     "--shards", "2")
        return folder

    def load(self, case: Case, data: pathlib.Path, setting: Setting, strategy: str, rate: float) -> tuple[list[float], str]:
        """What a load of some seconds gives, epoch by epoch, and what bound it. The first epochs do not count: they fill the caches, if there are
        any, and the system gives the process and the page cache memory that it will not have to give again."""
        folder = self.build(case, data, strategy)
        what = case.options(data) if folder is None else [str(folder)]
        # Epochs of a second or so, so that their start counts for little and a stall is in one of several.
        samples = min(self.samples, max(256, math.ceil(EPOCH_SECONDS * rate)))
        epochs = max(3, math.ceil(SPARE * (self.seconds + WARM_UP_SECONDS) * rate / samples) + 1)
        options = ["--storage", setting.storage, "--threads", str(setting.threads), "--samples", str(samples)]
        if setting.caching == "none":
            options += ["--cold"]
        elif setting.caching == "application":
            options += ["--cache", "8GB"]
        while True:
            found = clocks.undisturbed(self.run, "load", *what, *options, "--epochs", str(epochs))
            counted, warm_up = found["epochs"][1:], found["epochs"][0]["seconds"]
            while warm_up < WARM_UP_SECONDS and len(counted) > 1:
                warm_up += counted.pop(0)["seconds"]
            seconds = [epoch["seconds"] - epoch["first_batch_seconds"] for epoch in counted]
            if sum(seconds) >= self.seconds:
                rates = [(epoch["samples"] - BATCH) / taken for epoch, taken in zip(counted, seconds, strict=True)]
                return rates, found["bound_by"]
            epochs = math.ceil(SPARE * epochs * self.seconds / max(sum(seconds), 0.01)) + 1


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    # It ends with this process, however that ends.
    loop = f"import os\nwhile os.getppid() == {os.getpid()}: sum(range(10000))"
    other = subprocess.Popen([sys.executable, "-c", loop])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def choice(case: Case, setting: Setting, how: str, found: dict[str, Any], seconds: float, truth: dict[str, float]) -> Choice:
    """What the plan ranks first of the strategies that were loaded, and whether it says that it may be wrong: where it is, about the fastest."""
    best = max(truth, key=lambda name: truth[name])
    chosen = next(ranked["name"] for ranked in found["plan"]["ranking"] if ranked["name"] in truth)
    unsure_about = found["plan"]["unsure_about"]
    unsure = bool(unsure_about) if chosen == best else best in unsure_about
    return Choice(case.name, str(setting), how, chosen, best, 1 - truth[chosen] / truth[best], unsure, seconds)


class Kept:
    """What was measured so far, setting by setting, in a file: a run that was stopped goes on."""

    def __init__(self, path: pathlib.Path, resume: bool) -> None:
        self.path = path
        self.measured: dict[str, Any] = json.loads(path.read_text()) if resume and path.exists() else {}

    def has(self, case: Case, setting: Setting) -> bool:
        return f"{case.name}; {setting}" in self.measured

    def add(self, case: Case, setting: Setting, cells: list[Cell], choices: list[Choice]) -> None:
        key = f"{case.name}; {setting}"
        self.measured[key] = {"cells": [asdict(one) for one in cells], "choices": [asdict(one) for one in choices]}
        self.path.write_text(json.dumps(self.measured, indent=1), encoding="utf-8")

    def cells(self) -> list[Cell]:
        return [Cell(**one) for setting in self.measured.values() for one in setting["cells"]]

    def choices(self) -> list[Choice]:
        return [Choice(**one) for setting in self.measured.values() for one in setting["choices"]]


def measure(bench: Bench, case: Case, settings: list[Setting], busy: bool) -> Iterator[tuple[Setting, list[Cell], list[Choice]]]:
    """The cells and choices of each setting, one after the other."""
    data = bench.files(case)
    # Before anything is measured: what was written goes on its way to the disk for a while.
    whole, _ = bench.profile(case, data, Setting("local", 2, "none"), "--fast", "--seconds", "0")
    for strategy in whole["strategies"]:
        bench.build(case, data, strategy["name"])
    os.sync()
    time.sleep(SETTLE_SECONDS)
    for setting in settings:
        cells, choices, truth = measure_setting(bench, case, data, setting)
        if busy and case.name in ("cv", "imagenet") and str(setting).startswith(BUSY):
            with busy_core():
                whole, whole_seconds = bench.profile(case, data, setting)
                fast, fast_seconds = bench.profile(case, data, setting, "--fast")
            choices.append(choice(case, setting, "whole, a core busy", whole, whole_seconds, truth))
            choices.append(choice(case, setting, "--fast, a core busy", fast, fast_seconds, truth))
        for one in choices:
            print(f"{one.case}, {one.setting}, {one.how}: {one.chosen}, regret {one.regret:.1%}"
                  f"{', unsure' if one.unsure else ''} ({one.seconds:.1f} s)", file=sys.stderr)
        yield setting, cells, choices
    shutil.rmtree(bench.folder / case.name)


def measure_setting(
    bench: Bench, case: Case, data: pathlib.Path, setting: Setting
) -> tuple[list[Cell], list[Choice], dict[str, float]]:
    """The cells and choices of a setting, and what each strategy truly gives."""
    cells: list[Cell] = []
    # How long loads will take, roughly.
    rough, _ = bench.profile(case, data, setting, "--fast", "--seconds", "0")
    # Loads before and after: the machine is faster at one time than at another, and profiles last a while. The mean of both is what it
    # is in between, if it changes steadily; where they are far apart, one of them was held up, and a third one tells which.
    before = {one["name"]: bench.load(case, data, setting, one["name"], one["samples_per_second"])[0] for one in rough["strategies"]}
    fast, fast_seconds = bench.profile(case, data, setting, "--fast")
    quick = {strategy["name"]: strategy for strategy in fast["strategies"]}
    whole, whole_seconds = bench.profile(case, data, setting)
    truth = {}
    last = max(strategy["split"]["position"] for strategy in whole["strategies"])
    for strategy in whole["strategies"]:
        name = strategy["name"]
        # `load --cache` keeps samples after the last step that always gives the same: only of those that are stored
        # so is it what the profile measured.
        if setting.caching == "application" and strategy["split"]["position"] < last:
            continue
        # A compression that only one of the profiles tried has nothing to be compared with.
        if name not in before or name not in quick:
            continue
        after, bound = bench.load(case, data, setting, name, strategy["samples_per_second"])
        sides = [statistics.median(before[name]), statistics.median(after)]
        loads = list(sides)
        if abs(sides[0] / sides[1] - 1) > DRIFT_MAX:
            loads.append(statistics.median(bench.load(case, data, setting, name, sides[1])[0]))
        truth[name] = statistics.median(loads)
        cells.append(Cell(case.name, str(setting), name, strategy["predicted_samples_per_second"] or math.nan,
                          strategy["samples_per_second"], quick[name]["samples_per_second"], truth[name],
                          strategy["bound_by"], strategy["modeled_bound_by"], quick[name]["bound_by"], bound,
                          quick[name]["runs"] > 0, *sides))
        cell = cells[-1]
        print(f"{case.name}, {setting}, {name}: model {off(cell.model, cell.truth)}, profile "
              f"{off(cell.profile, cell.truth)}, fast {off(cell.fast, cell.truth)} of {cell.truth:,.0f}; "
              f"{cell.model_bound}, {cell.profile_bound}, {cell.fast_bound}; {cell.truth_bound}", file=sys.stderr)
    choices = [choice(case, setting, "whole", whole, whole_seconds, truth), choice(case, setting, "--fast", fast, fast_seconds, truth)]
    return cells, choices, truth


def off(said: float, truth: float) -> str:
    return f"{said / truth - 1:+.0%}"


def errors(cells: list[Cell], said: str) -> list[float]:
    return sorted(abs(getattr(cell, said) / cell.truth - 1) for cell in cells)


def percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def summary(cells: list[Cell], choices: list[Choice]) -> list[list[str]]:
    rows = []
    for what, said, bound, ninetieth_max in [
        ("the cost model of a whole profile", "model", "model_bound", NINETIETH_MAX),
        ("a whole profile", "profile", "profile_bound", NINETIETH_MAX),
        ("`--fast`", "fast", "fast_bound", FAST_NINETIETH_MAX),
    ]:
        found = errors(cells, said)
        middle, ninetieth = statistics.median(found), percentile(found, 0.9)
        right = sum(getattr(cell, bound) == cell.truth_bound for cell in cells) / len(cells)
        rows.append([what, f"{middle:.1%} (≤ {MEDIAN_MAX:.0%})", f"{ninetieth:.1%} (≤ {ninetieth_max:.0%})",
                     f"{right:.0%} (≥ {BOTTLENECKS_MIN:.0%})"])
    apart = sorted(abs(cell.before / cell.after - 1) for cell in cells)
    rows.append(["the load before the profile, against the one after it", f"{statistics.median(apart):.1%}",
                 f"{percentile(apart, 0.9):.1%}", ""])
    return rows


def page(cells: list[Cell], choices: list[Choice], seconds: float) -> str:
    accuracy = table(["what", "error, median", "90th percentile", "bottleneck right"], summary(cells, choices))
    ways = sorted({made.how for made in choices}, key=[made.how for made in choices].index)
    regrets = []
    for how in ways:
        made = [one for one in choices if one.how == how]
        beyond = [one for one in made if one.regret > REGRET_MAX]
        regrets.append([how, str(len(made)), f"{max(one.regret for one in made):.1%}", str(len(beyond)),
                        str(sum(one.unsure for one in beyond)), f"{statistics.mean(one.seconds for one in made):.1f} s"])
    worst = table(["profile", "choices", "largest regret", f"regret above {REGRET_MAX:.0%}", "of those said to be unsure",
                   "time, mean"], regrets)
    quick = sum(one.seconds for one in choices if one.how == "--fast") / sum(
        one.seconds for one in choices if one.how == "whole")
    details = table(
        ["case", "setting", "strategy", "load", "before / after", "model", "profile", "`--fast`", "bound by: load", "model", "profile", "`--fast`"],
        [[cell.case, cell.setting, f"`{cell.strategy}`", f"{cell.truth:,.0f}", off(cell.before, cell.after), off(cell.model, cell.truth),
          off(cell.profile, cell.truth), off(cell.fast, cell.truth) + (" (run)" if cell.ran_fast else ""), cell.truth_bound,
          cell.model_bound, cell.profile_bound, cell.fast_bound] for cell in cells])
    chosen = table(["case", "setting", "profile", "chose", "fastest", "regret", ""],
                   [[one.case, one.setting, one.how, f"`{one.chosen}`", f"`{one.best}`", f"{one.regret:.1%}",
                     "unsure" if one.unsure else ""] for one in choices])
    return f"""# Can a profile be believed?

Regenerate with `make bench-truth` (`TRUTH='--only cv --settings ssd'` for a part; what is below is what was measured, and `--resume` adds to what the last run on the same machine left). These figures: {datetime.date.today()}, {processor()}, {os.cpu_count()} cores. A cell is a strategy in a setting; `load` is an
independent `forebay load` on all the data, {seconds:g} seconds and more before the profiles and as long after them, the first second and first batches left out: the mean of the medians of their epochs. Where
the two differ by more than {DRIFT_MAX:.0%}, a third load follows, and the median of the three counts. Profiles see a part of the samples. The errors are of what
a profile said: by its cost model, by its own runs, and with `--fast` (by the model, or by short runs where it says so). In brackets what is wanted.

{len(cells)} cells:

{accuracy}
What is chosen by them, and by how much that is slower, as loaded, than the fastest (`--fast` took {quick:.0%} of the time; wanted: {FAST_SHARE_MAX:.0%}):

{worst}
![what was said, against what loads gave](truth.svg)

## Every cell, in samples per second

{details}
## Every choice

{chosen}"""


def scatter(cells: list[Cell]) -> str:
    """A log-log plot of what was said against what loads gave."""
    side, margin = 620, 70
    rates = [rate for cell in cells for rate in (cell.truth, cell.model, cell.profile, cell.fast) if rate > 0]
    low, high = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))

    def at(rate: float) -> float:
        return margin + (math.log10(rate) - low) / (high - low) * (side - 2 * margin)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" width="{side}" height="{side}" '
             'font-family="system-ui, sans-serif" font-size="13">',
             f'<rect width="{side}" height="{side}" fill="#fff"/>']
    start, end = margin, side - margin
    for exponent in range(low, high + 1):
        place = at(10**exponent)
        label = f"{10**exponent:,}"
        parts += [f'<path d="M{place} {start}V{end}M{start} {side - place}H{end}" stroke="#e3e3e3"/>',
                  f'<text x="{place}" y="{end + 20}" text-anchor="middle" fill="#555">{label}</text>',
                  f'<text x="{start - 8}" y="{side - place + 4}" text-anchor="end" fill="#555">{label}</text>']
    shift = math.log10(1.15) / (high - low) * (side - 2 * margin)
    parts += [f'<path d="M{start} {end}L{end} {start}" stroke="#888"/>',
              f'<path d="M{start} {end - shift}L{end - shift} {start}M{start + shift} {end}L{end} {start + shift}" stroke="#bbb" '
              'stroke-dasharray="4 4"/>']
    looks = [("fast", "#d98e04", "--fast"), ("model", "#3367b5", "cost model"), ("profile", "#1b8a5a", "profile")]
    for said, color, _ in looks:
        for cell in cells:
            rate = getattr(cell, said)
            if rate > 0:
                parts.append(f'<circle cx="{at(cell.truth):.1f}" cy="{side - at(rate):.1f}" r="4" fill="none" stroke="{color}" '
                             f'stroke-width="1.5"><title>{cell.case}, {cell.setting}, {cell.strategy}: {rate:,.0f} said, '
                             f'{cell.truth:,.0f} loaded</title></circle>')
    for number, (_, color, label) in enumerate(looks):
        y = start + 14 + 20 * number
        parts += [f'<circle cx="{start + 14}" cy="{y - 4}" r="4" fill="none" stroke="{color}" stroke-width="1.5"/>',
                  f'<text x="{start + 26}" y="{y}" fill="#222">{label}</text>']
    parts += [f'<text x="{side / 2}" y="{side - 18}" text-anchor="middle" fill="#222">samples/s that a load gave</text>',
              f'<text transform="translate(18 {side / 2}) rotate(-90)" text-anchor="middle" fill="#222">samples/s that was said '
              '(dashed: 15 % off)</text>', "</svg>\n"]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/forebay")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-truth", help="data and data sets")
    parser.add_argument("--only", default=",".join(case.name for case in CASES), help="cases, by commas")
    parser.add_argument("--settings", default="", help="only settings that begin with one of these, by semicolons: `ssd;local, 2 threads, cold`")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long a load lasts at least, before and after the profile")
    parser.add_argument("--quiet-only", action="store_true", help="leave out the profiles with one core kept busy")
    parser.add_argument("--resume", action="store_true", help="go on where the last run in this folder was stopped")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/truth.md")
    arguments = parser.parse_args()
    if not DATA.exists():
        sys.exit(f"there is no data in {DATA}: set FOREBAY_TEST_DATA")
    bench = Bench(arguments.program.resolve(), arguments.folder, arguments.seconds)
    begins = tuple(text.strip() for text in arguments.settings.split(";") if text.strip())
    settings = [one for one in SETTINGS if not begins or str(one).startswith(begins)]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    kept = Kept(arguments.folder / "measured.json", arguments.resume)
    for case in CASES:
        wanted = [one for one in settings if str(one).startswith(case.settings) and not kept.has(case, one)]
        if case.name in arguments.only.split(",") and wanted:
            for measured in measure(bench, case, wanted, not arguments.quiet_only):
                kept.add(case, *measured)
    cells = kept.cells()
    arguments.output.write_text(page(cells, kept.choices(), arguments.seconds), encoding="utf-8")
    arguments.output.with_suffix(".svg").write_text(scatter(cells), encoding="utf-8")
    for row in summary(cells, kept.choices()):
        print(": ".join(row[:1]) + ", " + ", ".join(row[1:]), file=sys.stderr)


if __name__ == "__main__":
    main()
