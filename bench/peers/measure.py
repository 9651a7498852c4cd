"""Time, and processor time of this process with everything that it started, and of everybody else."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

#: Cores that others may use before a run counts as disturbed.
OTHERS_CORES_MAX = 0.15

#: How often something is run that others disturb.
TRIES = 3

Found = TypeVar("Found")

_TICKS = os.sysconf("SC_CLK_TCK")
_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Reading:
    """Clocks at one moment; differences of two are what counts."""

    elapsed_seconds: float
    own_seconds: float
    machine_seconds: float


def adopt_orphans() -> None:
    """Makes processes whose parent ends children of this one, so that their processor time is still counted."""
    ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read() -> Reading:
    """Reads all clocks."""
    return Reading(time.perf_counter(), own_seconds(), machine_seconds())


def others_cores(begin: Reading, end: Reading) -> float:
    """Cores that everybody else used between two readings."""
    others_seconds = end.machine_seconds - begin.machine_seconds - (end.own_seconds - begin.own_seconds)
    return max(0.0, others_seconds / (end.elapsed_seconds - begin.elapsed_seconds))


def undisturbed(run: Callable[..., Found], *arguments: object) -> Found:
    """What `run` finds with these arguments when others leave the machine to it, or in the last of some tries."""
    for _ in range(TRIES - 1):
        begun = read()
        found = run(*arguments)
        if others_cores(begun, read()) <= OTHERS_CORES_MAX:
            return found
    return run(*arguments)


def machine_seconds() -> float:
    """Seconds that the processors worked, for anybody; what the hypervisor took away counts too."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = fields
    return (user + nice + system + interrupts + soft_interrupts + stolen) / _TICKS


def own_seconds() -> float:
    """Processor time of this process and its ended children, and of every living descendant and its ended children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = sum(ticks for _, ticks in _descendants()) / _TICKS
    return living + sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _descendants() -> list[tuple[int, int]]:
    """Every living descendant: its number, and the ticks that it and its ended children used."""
    children: dict[int, list[tuple[int, int]]] = {}
    for process, parent, ticks in _processes():
        children.setdefault(parent, []).append((process, ticks))
    found: list[tuple[int, int]] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process for process, _ in below]
    return found


def _processes() -> list[tuple[int, int, int]]:
    """Every process: its number, its parent's, and the ticks that it and its ended children used."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            text = (entry / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # It ended meanwhile.
            continue
        # The name is in brackets and may hold anything; utime, stime, cutime and cstime are fields 14 to 17 of proc(5).
        fields = text.rpartition(")")[2].split()
        found.append((int(entry.name), int(fields[1]), sum(int(field) for field in fields[11:15])))
    return found
