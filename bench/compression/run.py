"""Does the planner choose the right compression for each split?

For each of PRESTO's seven pipelines and each throttled storage: makes data, lets `forebay profile --fast` and `forebay plan` choose a
compression (or none) for each split, then measures every split in every compression (`forebay experiment compression`), and compares:
how much slower the choice is than the best of the study, and how much of its time the choice took. The best of many runs is often the luckiest:
so the choice, the two best of the study and the split as it is are measured again by themselves, in turns, where the study has them apart. Writes a table. Needs Python's standard library and the program only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench/presto")]
from pages import processor, table  # noqa: E402
from run import SAMPLES  # noqa: E402  (the same data for both)

STORAGES = ["hdd", "ssd", "ceph-hdd"]

# The choice may be slower than the best of the study by so much, and take this share of its time.
REGRET_MAX = 0.05
TIME_SHARE_MAX = 0.2

# Where those that matter are further apart than that in the study, they are measured again, and how.
APART = 0.03
AGAIN = ["--runs", "3", "--seconds", "1"]


def run(program: pathlib.Path, *arguments: str) -> tuple[dict[str, Any], float]:
    """What the program prints, and how long it took."""
    begun = time.monotonic()
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout), time.monotonic() - begun


def measure(
    program: pathlib.Path, pipeline: str, storage: str, folder: pathlib.Path, count: int, how: list[str]
) -> dict[str, Any]:
    """One pipeline on one storage: what is chosen, and what every compression gives."""
    samples = str(count)
    made = run(program, "demo", "--domain", pipeline, "--data-only", "--samples", samples, "--folder", str(folder / pipeline))
    data = made[0]["data"]
    common = [data["pipeline"], "--data", data["folder"], "--samples", samples, "--storage", storage]
    profile, plan = (str(folder / f"{pipeline}-{storage}-{what}.json") for what in ("profile", "plan"))
    _, fast_seconds = run(program, "profile", *common, "--fast", "-o", profile)
    chosen, plan_seconds = run(program, "plan", profile, "-o", plan)
    study, study_seconds = run(program, "experiment", "compression", *common, *how, "--restart", "-o",
                               str(folder / f"{pipeline}-{storage}-study"))
    measured = {
        "pipeline": pipeline,
        "storage": storage,
        "how": " ".join(how),
        "samples": count,
        "date": str(datetime.date.today()),
        "chosen": chosen["chosen"],
        "choices": chosen["compressions"],
        "findings": study["findings"],
        "fast_seconds": fast_seconds + plan_seconds,
        "study_seconds": study_seconds,
        "again": {},
    }
    for choice in measured["choices"]:
        chosen_name, forms = forms_of(measured, choice)
        two_best = sorted(forms, key=lambda name: forms[name], reverse=True)[:2]
        names = list(dict.fromkeys([choice["strategy"], chosen_name, *two_best]))
        rates = [forms[name] for name in names]
        if min(rates) < max(rates) * (1 - APART):
            # A profile's strategies take turns.
            these = [part for name in names for part in ("--strategy", name)]
            found, _ = run(program, "profile", *common, *these, *AGAIN, "--compression-candidates", "none",
                           "-o", str(folder / f"{pipeline}-{storage}-again.json"))
            measured["again"][choice["strategy"]] = {one["name"]: one["samples_per_second"] for one in found["strategies"]}
    return measured


def forms_of(measured: dict[str, Any], choice: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """What was chosen for a split, and what the study found of it in every form."""
    plain = choice["strategy"]
    rates = {finding["strategy"]: finding["samples_per_second"] for finding in measured["findings"]}
    forms = {name: rate for name, rate in rates.items() if name == plain or name.startswith(f"{plain}+")}
    return plain if choice["compression"] is None else f"{plain}+{choice['compression']}", forms


def splits(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """The choice and the best for each split, as they were last measured."""
    rows = []
    for choice in measured["choices"]:
        plain = choice["strategy"]
        chosen, forms = forms_of(measured, choice)
        again = measured["again"].get(plain)
        # Figures of two measurements do not compare: what was not measured again is not the best.
        compared = again or forms
        best = max(compared, key=lambda name: compared[name])
        forms |= compared
        rows.append({
            "pipeline": measured["pipeline"], "storage": measured["storage"], "split": plain,
            "chosen": chosen, "best": best, "plain_rate": forms[plain], "chosen_rate": forms[chosen], "best_rate": forms[best],
            "regret": 1 - forms[chosen] / forms[best], "again": again is not None, "sentence": choice["sentence"],
        })
    return rows


def form(strategy: str) -> str:
    """`zstd-3` of `resized+zstd-3`."""
    return f"`{strategy.split('+', 1)[1]}`" if "+" in strategy else "none"


def speed(bytes_per_second: float | None) -> str:
    return "" if bytes_per_second is None else f"{bytes_per_second / 1e6:,.0f}"


def page(kept: list[dict[str, Any]]) -> str:
    rows = [row for measured in kept for row in splits(measured)]
    share = [measured["fast_seconds"] / measured["study_seconds"] for measured in kept]
    missing = [f"{pipeline} on {storage}" for storage in STORAGES for pipeline in SAMPLES
               if not any((one["pipeline"], one["storage"]) == (pipeline, storage) for one in kept)]
    within = sum(row["regret"] <= REGRET_MAX for row in rows)
    choices = table(
        ["pipeline", "storage", "split", "chosen", "best of the study", "samples/s as it is", "chosen", "best", "slower by"],
        [[row["pipeline"], row["storage"], f"`{row['split']}`", form(row["chosen"]), form(row["best"]),
          f"{row['plain_rate']:,.0f}", f"{row['chosen_rate']:,.0f}", f"{row['best_rate']:,.0f}", f"{row['regret']:.1%}" + (" (again)" if row["again"] else "")]
         for row in rows])
    times = table(
        ["pipeline", "storage", "samples", "the choice took", "the study took", "share", "measured with"],
        [[one["pipeline"], one["storage"], str(one["samples"]), f"{one['fast_seconds']:.1f} s", f"{one['study_seconds']:.1f} s", f"{part:.1%}",
          f"`{one['how']}`, {one['date']}"] for one, part in zip(kept, share, strict=True)])
    reasons = "".join(f"- {row['pipeline']} on {row['storage']}, `{row['split']}`: {row['sentence']}.\n" for row in rows)
    figures = table(
        ["pipeline", "storage", "strategy", "ratio", "compression, MB/s", "decompression, MB/s", "samples/s", "gain", "saved", "prepared in"],
        [[one["pipeline"], one["storage"], f"`{finding['strategy']}`",
          "" if finding["compression_ratio"] is None else f"{finding['compression_ratio']:.2f}",
          speed(finding["compress_bytes_per_second"]), speed(finding["decompress_bytes_per_second"]),
          f"{finding['samples_per_second']:,.0f}",
          "" if finding["throughput_factor"] is None else f"{finding['throughput_factor']:.2f}",
          "" if finding["space_saving"] is None else f"{finding['space_saving']:.0%}", f"{finding['prep_seconds_total']:.2f} s"]
         for one in kept for finding in one["findings"]])
    return f"""# The planner's compression compared with a study of all

Regenerate with `make bench-compression`. On {os.cpu_count()} cores, {processor()}; storages are local files, slowed down; data by
`forebay demo --domain NAME --data-only`. The choice is that of `forebay profile --fast` and `forebay plan`; the study is `forebay experiment
compression` with its usual compressions, all of which it builds and loads at every split.

Wanted: at every split the choice is at most {REGRET_MAX:.0%} slower than the best of the study, and takes at most {TIME_SHARE_MAX:.0%} of the study's time.

Measured: {within} of {len(rows)} splits are within {REGRET_MAX:.0%}; the choice took {max(share, default=0):.1%} of the study's time at the most.
Of many strategies the one that seems the best is often the luckiest. So where the study has the choice, its two best ones and the split as it is more than
{APART:.0%} apart, these were measured again by themselves, in turns (`forebay profile {" ".join(AGAIN)}`), and the row, which says "again", has these figures. All others have the study's.
What has a ratio of 1.00 cannot be faster than the split as it is: what such rows of the last table differ by is the noise of the study.
{"Not measured yet: " + ", ".join(missing) + "." if missing else "All pipelines and storages were measured."}

{choices}
## Times

{times}
## What the plans say

{reasons}
## Every compression

Ratio and speeds are of records alone, in memory, on one thread; gain and saving are against the split as it is.

{figures}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/forebay")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-compression", help="data and profiles")
    parser.add_argument("--only", default=",".join(SAMPLES), help="pipelines, by commas")
    parser.add_argument("--settings", default=",".join(STORAGES), help="storages, by commas")
    parser.add_argument("--samples", type=int, default=max(SAMPLES.values()), help="at most this many of each pipeline")
    parser.add_argument("--runs", type=int, default=5, help="how often the study loads each")
    parser.add_argument("--seconds", type=float, default=1.0, help="for how long at least")
    parser.add_argument("--restart", action="store_true", help="measure again what was measured in this folder")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/compression.md")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    file = arguments.folder / "measured.json"
    kept: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    how = ["--runs", str(arguments.runs), "--seconds", str(arguments.seconds)]
    for storage in arguments.settings.split(","):
        for pipeline in arguments.only.split(","):
            name = f"{pipeline} {storage}"
            count = min(SAMPLES[pipeline], arguments.samples)
            same = name in kept and (kept[name]["how"], kept[name]["samples"]) == (" ".join(how), count)
            if same and not arguments.restart:
                continue
            kept[name] = measure(arguments.program.resolve(), pipeline, storage, arguments.folder, count, how)
            file.write_text(json.dumps(kept))
            for row in splits(kept[name]):
                print(f"{name} {row['split']}: chosen {form(row['chosen'])}, best {form(row['best'])} ({row['regret']:.1%} slower)",
                      file=sys.stderr)
    order = [f"{pipeline} {storage}" for storage in STORAGES for pipeline in SAMPLES]
    arguments.output.write_text(page([kept[name] for name in order if name in kept]), encoding="utf-8")


if __name__ == "__main__":
    main()
