"""What the pages of all benchmarks have: their tables, and the machine that they name. Needs Python's standard library only."""

from __future__ import annotations

import pathlib
import platform


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def processor() -> str:
    """The name of the processor, as the system has it; of one that has none, its instruction set."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
