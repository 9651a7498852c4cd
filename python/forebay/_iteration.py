"""One iteration over a loader: its batches, and the threads behind them."""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import UsageError
from ._frameworks import converter
from ._stats import Skipped

if TYPE_CHECKING:
    from . import _native
    from ._loader import Loader
    from .gpu._loading import BatchDecoder

__all__ = ["Iteration"]

#: The iterations that are under way. They end before Python does: a thread that runs a Python function cannot.
_under_way: weakref.WeakSet[Iteration] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for iteration in list(_under_way):
        iteration.close()


class Iteration(Iterator[dict[str, Any]]):
    """One iteration over a loader. Belongs to the process that started it; several threads may share it."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._convert = converter(loader.framework, loader.pin_memory)
        self._decode: BatchDecoder | None = None
        if loader.decode == "gpu":
            from .gpu._loading import BatchDecoder

            self._decode = BatchDecoder(loader._source.opened(), loader.device, loader.on_error == "skip")
        self._documents = [name for name, kind in loader._source.opened().pipeline.output if kind == "json"]
        self._process = os.getpid()
        self._running: _native.Epoch | None = None
        self._over = False
        self._ended = False
        self._lock = threading.Lock()
        _under_way.add(self)

    def __next__(self) -> dict[str, Any]:
        self._check_process()
        with self._lock:
            self._check_ended()
            if self._over:
                raise StopIteration
            try:
                return self._next()
            except BaseException:
                # At the end, after an error and after Ctrl-C: no thread is left behind.
                self._over = True
                self._end_epoch()
                raise

    def _next(self) -> dict[str, Any]:
        loader = self._loader
        loader._left_early = True
        while True:
            running = self._running
            if running is None:
                running = self._running = loader._start()
            found = running.next_batch()
            if found is not None:
                samples_seen, batches_seen, batch = found
                batch = self._convert(batch)
                for name in self._documents:
                    batch[name] = [json.loads(text) for text in batch[name]]
                if self._decode is not None:
                    batch, left_out = self._decode(batch)
                    loader._skipped_before += len(left_out)
                    loader._skipped_samples = [*loader._skipped_samples, *left_out]
                # Last: a batch that Ctrl-C withholds from the caller does not count.
                loader._samples_seen, loader._batches_seen = samples_seen, batches_seen
                if not batch["key"]:
                    continue
                return batch
            # Another thread may have ended it while this one waited.
            self._check_ended()
            self._end_epoch()
            done = loader._epochs_done + 1
            loader._go_to(loader._epoch + 1, done % loader.epochs, 0, 0)
            if done >= loader.epochs:
                raise StopIteration
            loader._left_early = True

    def _end_epoch(self) -> None:
        count, listed = self.skipped()
        running, self._running = self._running, None
        if running is not None:
            self._loader._skipped_before += count
            self._loader._stats_before = running.stats(self._loader._stats_before)
            # Another list, since copies of the loader have this one too.
            self._loader._skipped_samples = [*self._loader._skipped_samples, *listed]
            running.close()

    def skipped(self) -> tuple[int, list[Skipped]]:
        if self._running is None or self._process != os.getpid():
            return 0, []
        count, listed = self._running.skipped()
        return count, [Skipped(key, reason, samples) for key, reason, samples in listed]

    def stats(self, before: str) -> str | None:
        running = self._running
        return None if running is None or self._process != os.getpid() else running.stats(before)

    def close(self) -> None:
        self._ended = not self._over
        self._over = True
        if self._process == os.getpid():
            self._end_epoch()

    def __del__(self) -> None:
        # The loop was left: the threads end now, and what they skipped is counted.
        self.close()

    def __reduce__(self) -> Any:
        raise UsageError("an iteration cannot be copied\nhint: copy the loader, and begin another iteration")

    def _check_ended(self) -> None:
        if self._ended:
            raise UsageError(
                "this iteration was ended, by another one over the same loader or by hand\n"
                "hint: make a second loader to iterate over the same data at the same time"
            )

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise UsageError(
                f"this iteration was started in process {self._process}, and its threads are there\n"
                "hint: start iterating in the child process; the loader itself may be made before the fork"
            )
