"""Regimens: training in phases, each with a loader of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ._arguments import integer, number
from ._errors import UsageError

__all__ = ["Phase", "Regimen", "SuccessiveHalving", "Trial"]

_VERSION = 1


class Phase(NamedTuple):
    """A part of a regimen: its name, what it loads from (a `Loader`, or any iterable of batches), and its number of epochs."""

    name: str
    loader: Any
    epochs: int


class Regimen:
    """Train in phases, each on another variant of the data: first on small files of low quality, then on better ones.

    Iterating yields the number of each epoch and its loader; `phase` is the name of the phase, for instance to change the learning rate.
    Epochs are numbered through all phases, and the loader of each is set to its number, so that no two epochs have the same order.

    `state_dict` and `load_state_dict` resume, also in the middle of an epoch where the loader is a `Loader`. With other loaders a
    state counts the epoch as done: save it at the end of the loop's body.

    Parameters
    ----------
    phases
        Name, loader and number of epochs of each phase.

    Examples
    --------
    >>> regimen = forebay.Regimen([("q10", low, 8), ("original", high, 2)])
    >>> for epoch, loader in regimen:
    ...     for batch in loader:
    ...         train(batch)
    """

    def __init__(self, phases: Iterable[tuple[str, Any, int]]) -> None:
        #: The phases, in their order.
        self.phases: tuple[Phase, ...] = _phases(phases)
        self._epoch = 0
        self._begun = False
        #: Whether the loader of the next epoch is where it should begin already.
        self._placed = False

    @classmethod
    def simple(cls, loaders: Mapping[str, Any], epochs: int) -> Regimen:
        """Divide `epochs` equally among phases, in the order of `loaders`; the first ones have one more where that leaves a rest."""
        epochs = integer("epochs", epochs, max(1, len(loaders)), 1 << 40)
        each, rest = divmod(epochs, max(1, len(loaders)))
        return cls((name, loader, each + (index < rest)) for index, (name, loader) in enumerate(loaders.items()))

    @classmethod
    def transfer(cls, loaders: Mapping[str, Any], epochs: int, last_epochs: int) -> Regimen:
        """Train on the first of two `loaders`, and for the `last_epochs` of all `epochs` on the second, as in transfer learning."""
        if len(loaders) != 2:
            raise UsageError(f"`loaders` has {len(loaders)} entries, but transfer goes from one to another\nhint: pass two")
        epochs = integer("epochs", epochs, 2, 1 << 40)
        last = integer("last_epochs", last_epochs, 1, epochs - 1)
        parts = (epochs - last, last)
        return cls((name, loader, part) for (name, loader), part in zip(loaders.items(), parts, strict=True))

    @property
    def epochs(self) -> int:
        """Number of epochs of all phases."""
        return sum(phase.epochs for phase in self.phases)

    @property
    def epoch(self) -> int:
        """The epoch that is under way or comes next; `epochs` at the end."""
        return self._epoch

    @property
    def phase(self) -> str:
        """The name of that epoch's phase; of the last one at the end."""
        return self._phase().name

    def __len__(self) -> int:
        return self.epochs

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of each epoch and its loader. A loop that was left begins its epoch again, as with a `Loader`."""
        while self._epoch < self.epochs:
            loader = self._phase().loader
            if not self._placed:
                _set_epoch(loader, self._epoch)
            self._begun, self._placed = True, False
            yield self._epoch, loader
            self._begun = False
            self._epoch += 1

    def average_bytes(self, sizes: Mapping[str, int | float]) -> float:
        """Return the bytes that an epoch has on average: the size of each phase's variant, weighted by its epochs.

        Where loading is the bottleneck, it tells how regimens compare in time. `sizes` has the bytes of each phase by name.
        """
        missing = [phase.name for phase in self.phases if phase.name not in sizes]
        if missing:
            raise UsageError(f"`sizes` has no entry for phase `{missing[0]}`\nhint: pass the bytes of every phase")
        return sum(phase.epochs * float(sizes[phase.name]) for phase in self.phases) / self.epochs

    def state_dict(self) -> dict[str, Any]:
        """Return the position, to be saved with a checkpoint: plain numbers and strings."""
        epoch, state = self._epoch, None
        if self._begun:
            loader = self._phase().loader
            if _is_resumable(loader) and loader.epoch == epoch:
                state = loader.state_dict()
            else:
                epoch += 1
        return {"version": _VERSION, "phases": self._plan(), "epoch": epoch, "loader": state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state returned by `state_dict`. The phases must be the same; otherwise a `UsageError` says so."""
        _check(state, "regimen", self._plan())
        epoch = integer("epoch", state.get("epoch"), 0, self.epochs)
        self._epoch, self._begun, self._placed = epoch, False, False
        if state.get("loader") is not None:
            loader = self._phase().loader
            if not _is_resumable(loader):
                raise UsageError(f"the state is within an epoch of phase `{self.phase}`, whose loader cannot resume\nhint: pass a `forebay.Loader`")
            loader.load_state_dict(state["loader"])
            self._placed = True

    def _plan(self) -> list[list[Any]]:
        return [[phase.name, phase.epochs] for phase in self.phases]

    def _phase(self) -> Phase:
        left = self._epoch
        for phase in self.phases:
            if left < phase.epochs:
                return phase
            left -= phase.epochs
        return self.phases[-1]

    def __repr__(self) -> str:
        parts = ", ".join(f"{phase.name}: {phase.epochs}" for phase in self.phases)
        return f"Regimen({parts}; epoch {self._epoch} of {self.epochs})"


@dataclass
class Trial:
    """One configuration at one phase of a `SuccessiveHalving`. Iterating yields the number of each epoch and its loader.

    Attributes
    ----------
    number, configuration
        Which configuration, by its index and itself: keep its model by `number`, to continue with it in the next phase.
    phase
        Name, loader and number of epochs.
    first_epoch
        Number of the first epoch: those of earlier phases count.
    score
        What was reported; None before.
    """

    number: int
    configuration: Any
    phase: Phase
    first_epoch: int
    score: float | None = None

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        for epoch in range(self.first_epoch, self.first_epoch + self.phase.epochs):
            _set_epoch(self.phase.loader, epoch)
            yield epoch, self.phase.loader

    def report(self, score: float) -> None:
        """Report how good the configuration is after this phase; higher is better."""
        score = number("score", score)
        # A model that diverged is the worst, not an error.
        self.score = -math.inf if math.isnan(score) else score


class SuccessiveHalving:
    """Search among configurations: all of them train at the first phase, and the best share of each phase advances to the next.

    With small files of low quality in early phases, poor configurations are dropped at little cost.

    Parameters
    ----------
    configurations
        What to choose from, of any type.
    phases
        Name, loader and number of epochs of each phase, with rising quality.
    keep
        The share that advances to the next phase, rounded up.

    Examples
    --------
    >>> search = forebay.SuccessiveHalving([0.1, 0.01, 0.001], [("q10", low, 2), ("original", high, 4)])
    >>> for trial in search:
    ...     for epoch, loader in trial:
    ...         train(models[trial.number], loader, learning_rate=trial.configuration)
    ...     trial.report(accuracy(models[trial.number]))
    >>> search.best
    """

    def __init__(self, configurations: Sequence[Any], phases: Iterable[tuple[str, Any, int]], *, keep: float = 0.5) -> None:
        #: What to choose from.
        self.configurations = list(configurations)
        if not self.configurations:
            raise UsageError("`configurations` is empty\nhint: pass two or more")
        #: The phases, in their order.
        self.phases: tuple[Phase, ...] = _phases(phases)
        self.keep = number("keep", keep)
        if not 0 < self.keep < 1:
            raise UsageError(f"`keep` is `{keep!r}`, but must be between 0 and 1")
        #: Of each phase that began, the scores by the number of the configuration.
        self.scores: list[dict[int, float]] = []

    def __iter__(self) -> Iterator[Trial]:
        """Yield the trials that have no score yet. Each must be given one (`report`) before the next."""
        first = 0
        for phase_index, phase in enumerate(self.phases):
            if phase_index == len(self.scores):
                self.scores.append({})
            for chosen in self._taking_part(phase_index):
                if chosen in self.scores[phase_index]:
                    continue
                trial = Trial(chosen, self.configurations[chosen], phase, first)
                yield trial
                if trial.score is None:
                    raise UsageError(f"the trial of configuration {chosen} has no score\nhint: call `trial.report(score)`")
                self.scores[phase_index][chosen] = trial.score
            first += phase.epochs

    @property
    def best(self) -> Any:
        """The configuration with the highest score of the last phase in which all trials are done."""
        done = [phase_index for phase_index in range(len(self.scores)) if len(self.scores[phase_index]) == len(self._taking_part(phase_index))]
        if not done:
            raise UsageError("no phase is done\nhint: iterate over the trials, and report a score for each")
        return self.configurations[self._ranked(done[-1])[0]]

    def state_dict(self) -> dict[str, Any]:
        """Return what was reported: plain numbers and strings. A trial that is under way begins again."""
        return {"version": _VERSION, "phases": self._plan(), "scores": [sorted(scores.items()) for scores in self.scores]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state returned by `state_dict`. Phases, `keep` and the number of configurations must be the same."""
        _check(state, "search", self._plan())
        self.scores = [{int(chosen): float(score) for chosen, score in scores} for scores in state["scores"]]

    def _plan(self) -> list[list[Any]]:
        return [[phase.name, phase.epochs] for phase in self.phases] + [["configurations", len(self.configurations)], ["keep", self.keep]]

    def _ranked(self, phase_index: int) -> list[int]:
        """Best first; of equal ones the first of the list."""
        return sorted(self.scores[phase_index], key=lambda chosen: (-self.scores[phase_index][chosen], chosen))

    def _taking_part(self, phase_index: int) -> list[int]:
        if phase_index == 0:
            return list(range(len(self.configurations)))
        before = self._ranked(phase_index - 1)
        return sorted(before[: math.ceil(len(before) * self.keep)])


def _phases(phases: Iterable[tuple[str, Any, int]]) -> tuple[Phase, ...]:
    found = []
    for entry in phases:
        name, loader, epochs = entry
        if not hasattr(loader, "__iter__"):
            raise UsageError(f"the loader of phase `{name}` is `{loader!r}`, which cannot be iterated over\nhint: a phase is (name, loader, epochs)")
        # Only ours has it: a pass over a loader must be one epoch.
        if _is_resumable(loader) and getattr(loader, "epochs", 1) != 1:
            raise UsageError(f"the loader of phase `{name}` has `epochs={loader.epochs}`\nhint: leave `epochs` of the loader out; the phase has it")
        found.append(Phase(str(name), loader, integer("epochs", epochs, 1, 1 << 40)))
    if not found:
        raise UsageError("there are no phases\nhint: pass (name, loader, epochs) of each")
    names = [phase.name for phase in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two phases are called `{name}`\nhint: give each another name")
    return tuple(found)


def _is_resumable(loader: Any) -> bool:
    return all(hasattr(loader, name) for name in ("epoch", "set_epoch", "state_dict", "load_state_dict"))


def _set_epoch(loader: Any, epoch: int) -> None:
    """Says the epoch to a loader that wants to know: ours, or a torch `DataLoader` with a `DistributedSampler`."""
    sampler = getattr(loader, "sampler", None)
    if hasattr(loader, "set_epoch"):
        loader.set_epoch(epoch)
    elif sampler is not None and hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)


def _check(state: Any, what: str, plan: list[list[Any]]) -> None:
    if not isinstance(state, Mapping) or state.get("version") != _VERSION or "phases" not in state:
        raise UsageError(f"this is not a state of a {what}\nhint: pass what `state_dict` returned")
    theirs = [list(entry) for entry in state["phases"]]
    if theirs != plan:
        raise UsageError(f"the state is of a {what} of {theirs}, but this one has {plan}\nhint: use the same phases")
