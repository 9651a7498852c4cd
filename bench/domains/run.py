"""Runs the benchmarks of audio, signals and text, and writes their output to a file, with the machine they ran on.

    python bench/domains/run.py [--output bench/results/domains.md]

Needs what they need: see `audio_signal.py` and `text.py`, each of which makes itself an environment.
"""

import argparse
import datetime
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bench"))
from pages import processor  # noqa: E402

SCRIPTS = {"Audio and signals": "audio_signal.py", "Text": "text.py"}

HEAD = """# Audio, signals and text compared with the usual Python stack

Regenerate with `make bench-domains`. These figures: {date}, {processor}, one core; data from the shared test data. Wanted: spectrograms, tokens and
NILM features at least 3 times as fast as librosa, the faster of tiktoken and tokenizers, and NumPy as it is usually written.
"""


def printed(script):
    """What the script prints, shown on the way."""
    lines = []
    with subprocess.Popen([sys.executable, HERE / script], stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if running.returncode != 0:
        sys.exit(f"{script} failed")
    return "".join(lines).strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench" / "results" / "domains.md")
    output = parser.parse_args().output
    parts = [HEAD.format(date=datetime.date.today(), processor=processor())]
    parts += [f"## {title}\n\n```text\n{printed(script)}\n```\n" for title, script in SCRIPTS.items()]
    output.write_text("\n".join(parts))
    print(f"wrote {os.path.relpath(output)}")


if __name__ == "__main__":
    main()
