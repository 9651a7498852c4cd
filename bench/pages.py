"""What the pages of all benchmarks have: their tables, and the machine that they name. Needs Python's standard library only."""

from __future__ import annotations

import pathlib
import platform


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


#: What decides which kernels a processor gets, the best first: its flag in /proc/cpuinfo, and its name.
_VECTORS = {"avx512_vbmi2": "AVX-512", "avx2": "AVX2", "sse4_1": "SSE4.1", "asimd": "NEON"}


def processor() -> str:
    """The name of the processor, as the system has it (of one that has none, its instruction set), and its widest vectors."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []

    def value(*names: str) -> str:
        return next((line.partition(":")[2].strip() for line in lines if line.startswith(names)), "")

    flags = value("flags", "Features").split()
    vectors = next((name for flag, name in _VECTORS.items() if flag in flags), "no vectors")
    return f"{value('model name') or platform.machine()} with {vectors}"
