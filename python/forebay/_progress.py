"""Progress of long work: a bar by tqdm where it is installed, a line of text otherwise."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from ._requests import Progress

__all__ = ["listener"]


def listener(wanted: bool | None) -> Progress | None:
    """What shows progress, if it is wanted; `None` where nobody would see it, unless it is asked for."""
    if wanted is None:
        wanted = sys.stderr.isatty() or _in_notebook()
    if not wanted:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(sys.stderr)
    return _Bar(tqdm)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and "IPKernelApp" in getattr(shell.get_ipython(), "config", {})


class _Bar:
    """tqdm's bar, which knows terminals and notebooks."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def begin(self, what: str, samples: int) -> None:
        self.end()
        self._bar = self._tqdm(total=samples, desc=what, unit=" samples", leave=False)

    def advance(self, samples: int) -> None:
        if self._bar is not None:
            self._bar.update(samples)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def note(self, message: str) -> None:
        self._tqdm.write(message)


class _Line:
    """One line, written over and over."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._what = ""
        self._done = 0
        self._total = 0

    def begin(self, what: str, samples: int) -> None:
        self._what, self._done, self._total = what, 0, samples
        self._show()

    def advance(self, samples: int) -> None:
        self._done += samples
        self._show()

    def end(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()

    def note(self, message: str) -> None:
        self._stream.write(f"\r\x1b[K{message}\n")

    def _show(self) -> None:
        self._stream.write(f"\r\x1b[K{self._what}: {self._done:,} of {self._total:,} samples")
        self._stream.flush()
