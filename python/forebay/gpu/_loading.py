"""Batches of a loader whose images are decoded on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _native
from .._errors import Error
from .._stats import Skipped
from . import decode_on
from ._batch import Decoded, Wanted

__all__ = ["BatchDecoder"]


class BatchDecoder:
    """Makes images of the encoded fields of a batch, as the steps of the pipeline that the GPU does want them."""

    def __init__(self, source: _native.Source, device: str, skip_errors: bool) -> None:
        self._device = device
        self._skip_errors = skip_errors
        self._fields = {
            field: Wanted(crop, None, affine, None if affine is None else dtype, channels_first, channels, 16 if deep else 8)
            for field, channels, deep, crop, affine, dtype, channels_first in source.on_device()
        }

    def __call__(self, batch: dict[str, Any]) -> tuple[dict[str, Any], list[Skipped]]:
        """The batch with its images decoded, and the samples that were left out."""
        keys: list[str] = batch["key"]
        decoded = {field: decode_on(self._device, batch[field], wanted) for field, wanted in self._fields.items()}
        failed = {number: problem for done in decoded.values() for number, problem in done.failed.items()}
        if failed and not self._skip_errors:
            number = min(failed)
            raise _of_sample(failed[number], keys[number])
        for field, done in decoded.items():
            batch[field] = _without(done, failed)
        if failed:
            kept = [number for number in range(len(keys)) if number not in failed]
            for name in batch.keys() - decoded.keys():
                batch[name] = _select(batch[name], kept)
        return batch, [Skipped(keys[number], str(_of_sample(problem, keys[number]))) for number, problem in sorted(failed.items())]


def _of_sample(problem: Exception, key: str) -> Exception:
    kind = type(problem) if isinstance(problem, Error) else Error
    return kind(f"sample `{key}`: step `decode`: {problem}", key=key, step="decode")


def _without(done: Decoded, failed: dict[int, Exception]) -> Any:
    kept = [index for index, number in enumerate(done.numbers) if number not in failed]
    return done.images if len(kept) == len(done.numbers) else _select(done.images, kept)


def _select(values: Any, kept: Sequence[int]) -> Any:
    return [values[index] for index in kept] if isinstance(values, list) else values[kept]
