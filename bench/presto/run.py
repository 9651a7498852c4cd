"""Does `forebay profile --fast` choose what measuring everything would?

For each of PRESTO's seven pipelines: makes data, measures every strategy (builds it, loads it three times), then answers by costs
alone (`--fast`), and compares the choices and the times. Writes a table. Needs Python's standard library and the program only.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from pages import processor, table  # noqa: E402

# Enough samples that a run takes longer than its start, few enough that all of it takes minutes.
SAMPLES = {"cv": 400, "cv2-jpg": 80, "cv2-png": 24, "nlp": 300, "flac": 240, "mp3": 300, "nilm": 160}

# `--fast` may choose a strategy that is slower than the fastest by so much, and take this share of the time.
SLOWER_MAX = 0.05
TIME_SHARE_MAX = 0.2


def run(program: pathlib.Path, *arguments: str) -> tuple[dict, float]:
    """What the program prints, and how long it took."""
    begun = time.monotonic()
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"forebay {' '.join(arguments)} failed:\n{done.stderr}")
    return json.loads(done.stdout), time.monotonic() - begun


def compare(program: pathlib.Path, domain: str, folder: pathlib.Path, storage: str) -> dict:
    """One pipeline, both ways."""
    made, _ = run(program, "demo", "--domain", domain, "--data-only", "--samples", str(SAMPLES[domain]), "--folder",
                  str(folder / domain))
    made = made["data"]
    common = [made["pipeline"], "--data", made["folder"], "--samples", str(SAMPLES[domain]), "--storage", storage]
    whole, whole_seconds = run(program, "profile", *common, "--runs", "3", "-o", str(folder / f"{domain}.json"))
    fast, fast_seconds = run(program, "profile", *common, "--fast", "-o", str(folder / f"{domain}-fast.json"))
    measured = {strategy["name"]: strategy["samples_per_second"] for strategy in whole["strategies"]}
    return {
        "pipeline": domain,
        "samples": SAMPLES[domain],
        "measured": measured,
        "expected": {strategy["name"]: strategy["samples_per_second"] for strategy in fast["strategies"]},
        "winner": whole["fastest"],
        "chosen": fast["fastest"],
        "slower": 1 - measured[fast["fastest"]] / measured[whole["fastest"]],
        "whole_seconds": whole_seconds,
        "fast_seconds": fast_seconds,
    }


def holds(row: dict) -> bool:
    return row["slower"] <= SLOWER_MAX and row["fast_seconds"] <= TIME_SHARE_MAX * row["whole_seconds"]


def page(rows: list[dict], storage: str) -> str:
    answers = table(
        ["pipeline", "samples", "fastest by measuring", "samples/s", "chosen by `--fast`", "samples/s measured",
         "slower by", "measuring took", "`--fast` took", "share", ""],
        [[row["pipeline"], str(row["samples"]), f"`{row['winner']}`", f"{row['measured'][row['winner']]:,.0f}",
          f"`{row['chosen']}`", f"{row['measured'][row['chosen']]:,.0f}", f"{row['slower']:.1%}",
          f"{row['whole_seconds']:.1f} s", f"{row['fast_seconds']:.1f} s",
          f"{row['fast_seconds'] / row['whole_seconds']:.1%}", "holds" if holds(row) else "missed"] for row in rows])
    details = table(
        ["pipeline", "strategy", "measured", "expected by `--fast`", "error"],
        [[row["pipeline"], f"`{name}`", f"{rate:,.1f}", f"{row['expected'][name]:,.1f}",
          f"{row['expected'][name] / rate - 1:+.0%}"] for row in rows for name, rate in row["measured"].items()])
    return f"""# PRESTO's seven pipelines: measuring everything, and `--fast`

Regenerate with `make bench-presto`. These figures: {datetime.date.today()}, storage `{storage}` (local files, slowed down), \
{processor()}, {os.cpu_count()} cores; data by `forebay demo --domain NAME --data-only`. Measuring builds every strategy and loads it three
times; `--fast` builds a few samples of each, leaves the rest to the cost model, and runs only what may lead by it. The times are of the whole command.

Wanted: what `--fast` chooses is at most {SLOWER_MAX:.0%} slower, as measured, than the fastest, and it takes at most {TIME_SHARE_MAX:.0%} of the time.

{answers}
## Every strategy, in samples per second that reach the trainer

{details}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/release/forebay")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/bench-presto", help="data and profiles")
    parser.add_argument("--storage", default="ceph-hdd", help="as `forebay profile --storage`")
    parser.add_argument("--only", default=",".join(SAMPLES), help="pipelines, by commas")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/presto.md")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for domain in arguments.only.split(","):
        row = compare(arguments.program, domain, arguments.folder, arguments.storage)
        rows.append(row)
        print(f"{domain}: fastest {row['winner']}, chosen {row['chosen']} ({row['slower']:.1%} slower), "
              f"{row['whole_seconds']:.1f} s and {row['fast_seconds']:.1f} s", file=sys.stderr)
    arguments.output.write_text(page(rows, arguments.storage), encoding="utf-8")
    if not all(map(holds, rows)):
        sys.exit("a bar was missed: see the table")


if __name__ == "__main__":
    main()
