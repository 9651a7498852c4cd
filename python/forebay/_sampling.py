"""Weights for loaders that do not draw each sample alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from ._errors import UsageError

__all__ = ["balanced_weights"]


def balanced_weights(labels: Iterable[Hashable]) -> list[float]:
    """Return a weight for each label, by which all classes are equally probable: `Loader(..., weights=balanced_weights(labels))`.

    `labels` are those of all samples, in the order of a loader without `shuffle`.
    """
    labels = [label.item() if hasattr(label, "item") else label for label in labels]
    counts = Counter(labels)
    if not counts:
        raise UsageError("`labels` is empty\nhint: pass the label of every sample")
    return [1 / (len(counts) * counts[label]) for label in labels]
