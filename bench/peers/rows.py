"""What is measured, and its figures over the rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import environments
from common import Configuration, Peer
from measure import OTHERS_CORES_MAX


def is_disturbed(found: dict[str, Any]) -> bool:
    return bool(found.get("others_cores", 0.0) > OTHERS_CORES_MAX)


@dataclass
class Row:
    """One configuration of one peer, and what is known of it."""

    module: str
    peer: Peer
    index: int
    configuration: Configuration
    #: Why there are no figures.
    problem: str = ""
    difference_percent: float | None = None
    rounds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def environment(self) -> str:
        """Where it runs: peers without packages of their own use the shared environment."""
        return self.peer.name if self.peer.packages or self.peer.name == "forebay" else environments.TORCH.name

    @property
    def label(self) -> str:
        return f"{self.configuration.task}: {self.configuration.name}"


@dataclass(frozen=True)
class Figure:
    """A median and its range."""

    median: float
    least: float
    most: float

    @staticmethod
    def of(values: list[float]) -> Figure:
        return Figure(median(values), min(values), max(values))


@dataclass(frozen=True)
class Summary:
    """A row's figures over its rounds."""

    task: str
    name: str
    peer: str
    problem: str
    difference_percent: float | None
    rounds: int
    rounds_disturbed: int
    #: Whether the figures are of disturbed rounds, for want of others.
    disturbed: bool = False
    images_per_second: Figure | None = None
    images_per_cpu_second: Figure | None = None
    cpu_milliseconds_per_image: Figure | None = None
    cores: float | None = None
    #: Of batches given to PyTorch.
    handover_percent: Figure | None = None
    handover_microseconds: float | None = None
    batches: int = 0
    batches_shared: int = 0


def summarize(row: Row) -> Summary:
    """Medians over the undisturbed rounds, or over all of them if there is none."""
    rounds = [found for found in row.rounds if "error" not in found]
    clean = [found for found in rounds if not is_disturbed(found)]
    used = clean or rounds
    basics: dict[str, Any] = {
        "task": row.configuration.task,
        "name": row.configuration.name,
        "peer": row.peer.name,
        "problem": row.problem,
        "difference_percent": row.difference_percent,
        "rounds": len(rounds),
        "rounds_disturbed": len(rounds) - len(clean),
        "disturbed": not clean,
    }
    if not used:
        return Summary(**basics)
    if "handover_share" in used[0]:
        return Summary(
            **basics,
            handover_percent=Figure.of([100 * found["handover_share"] for found in used]),
            handover_microseconds=median(found["handover_microseconds"] for found in used),
            batches=sum(found["batches"] for found in used),
            batches_shared=sum(found["batches_shared"] for found in used),
        )
    return Summary(
        **basics,
        images_per_second=Figure.of([found["images"] / found["elapsed_seconds"] for found in used]),
        images_per_cpu_second=Figure.of([found["images"] / found["cpu_seconds"] for found in used]),
        cpu_milliseconds_per_image=Figure.of([1000 * found["cpu_seconds"] / found["images"] for found in used]),
        cores=median(found["cpu_seconds"] / found["elapsed_seconds"] for found in used),
    )
