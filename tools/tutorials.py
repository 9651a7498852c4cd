#!/usr/bin/env python3
"""Runs the commands of the tutorials, and replaces the outputs that they show.

    cargo build --release -p forebay-cli
    tools/tutorials.py                      all of them, with target/release/forebay
    tools/tutorials.py --program FILE docs/tutorials/audio.md

A block marked `console` has the commands, and the block marked `text` right after it, if there is one, has what they print. The commands of a page
run one after another in an empty folder. Run it on an idle machine: the figures are what readers see. Sentences that speak of figures are yours to
read again.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def run(commands: str, program: Path, folder: Path) -> str:
    """What the commands of a block print."""
    outputs = []
    for line in re.findall(r"^\$ (.*)$", commands, re.MULTILINE):
        name, *arguments = shlex.split(line)
        assert name == "forebay", line
        print(f"  {line}", flush=True)
        done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{line}\n{done.stderr}")
        # What to do next is what the page says next.
        outputs.append(re.sub(r"\n\nNext, [^\n]*\n  forebay [^\n]*\n$", "\n", done.stdout))
    return "\n".join(outputs)


def refresh(page: Path, program: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:

        def replaced(block: re.Match[str]) -> str:
            output = run(block["commands"], program, Path(folder))
            commands = f"```console\n{block['commands']}```\n"
            return commands if block["output"] is None else f"{commands}\n```text\n{output}```\n"

        page.write_text(BLOCK.sub(replaced, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, default=ROOT / "target/release/forebay")
    parser.add_argument("pages", nargs="*", type=Path, default=sorted((ROOT / "docs/tutorials").glob("*.md")))
    arguments = parser.parse_args()
    for page in arguments.pages:
        print(page)
        refresh(page, arguments.program.resolve())


if __name__ == "__main__":
    main()
