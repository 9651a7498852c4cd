"""Weights and subsets for loaders that do not draw each sample alike."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from ._arguments import integer, number
from ._errors import UsageError
from ._source import Source

__all__ = ["balanced_weights", "stratified_subset"]


def balanced_weights(labels: Iterable[Hashable]) -> list[float]:
    """Return a weight for each label, by which all classes are equally probable: `Loader(..., weights=balanced_weights(labels))`.

    `labels` are those of all samples, in the order of a loader without `shuffle`.
    """
    labels = [label.item() if hasattr(label, "item") else label for label in labels]
    counts = Counter(labels)
    if not counts:
        raise UsageError("`labels` is empty\nhint: pass the label of every sample")
    return [1 / (len(counts) * counts[label]) for label in labels]


def stratified_subset(labels: Iterable[Hashable], share: float) -> list[int]:
    """Return the numbers of the first `share` of the samples of each class: `Loader(..., subset=stratified_subset(labels, 0.1))`.

    At least one of each class is included. `labels` are those of all samples, in the order of a loader without `shuffle`: by name, so
    that the subset is the same everywhere.
    """
    part = number("share", share)
    if not 0 < part <= 1:
        raise UsageError(f"`share` is `{share!r}`, but must be above 0 and at most 1")
    found = [label.item() if hasattr(label, "item") else label for label in labels]
    # As exact as a share of a count can be: 0.29 of 100 is 29, not 28.
    left = {label: max(1, int(count * part + 1e-9)) for label, count in Counter(found).items()}
    taken = []
    for index, label in enumerate(found):
        if left[label] > 0:
            left[label] -= 1
            taken.append(index)
    return taken


def balanced(subset: list[int] | None, source: Source) -> list[float]:
    """Weights by which all classes of `subset` (all samples, if it is `None`) are equally probable; of others 0. Labels are read, nothing is decoded."""
    known = source.opened().keys_and_labels()
    indices = range(len(known)) if subset is None else subset
    labels = []
    for index in indices:
        if not 0 <= index < len(known):
            raise UsageError(f"the subset has sample {index} of {len(known)}\nhint: samples count from 0")
        key, label = known[index]
        if label is None:
            hint = "set the pipeline's `label` (a folder, a table), or pass a weight for each sample"
            raise UsageError(f'`weights` is `"balanced"`, but `{key}` has no label\nhint: {hint}')
        labels.append(label)
    weights = [0.0] * len(known)
    for index, weight in zip(indices, balanced_weights(labels), strict=True):
        weights[index] = weight
    return weights


def matching(where: str | None, table: str | os.PathLike[str] | None, subset: list[int] | None, source: Source) -> list[int] | None:
    """The numbers of the samples that a loader's `where` means, of those in `subset` if there is one."""
    if where is None:
        return subset
    if not isinstance(where, str):
        raise UsageError(f"`where` is `{where!r}`, but must be a condition\nhint: e.g. `\"split == 'train'\"`; `subset` takes functions")
    found = source.opened().matching(where, None if table is None else os.fspath(table))
    if subset is None:
        return found
    known = set(found)
    both = [sample for sample in subset if sample in known]
    if not both:
        raise UsageError(f"no sample of `subset` meets `where`: `{where}`\nhint: check both, or omit one")
    return both


def chosen(subset: Iterable[int] | Iterable[str] | Callable[[str, Any], bool] | None, source: Source) -> list[int] | None:
    """The numbers of the samples that a loader's `subset` means."""
    if subset is None:
        return None
    if callable(subset):
        known = source.opened().keys_and_labels()
        return [index for index, (key, label) in enumerate(known) if subset(key, label)]
    wanted: list[Any] = list(subset)
    if not any(isinstance(sample, str) for sample in wanted):
        return [integer("subset", sample, 0, 1 << 62) for sample in wanted]
    indices = {key: index for index, (key, _) in enumerate(source.opened().keys_and_labels())}
    missing = [sample for sample in wanted if sample not in indices]
    if missing:
        raise UsageError(f"`subset` has `{missing[0]}`, which is not the key of a sample\nhint: keys are paths below the data folder")
    return [indices[sample] for sample in wanted]
