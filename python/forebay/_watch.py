"""What training waits for, while it runs."""

from __future__ import annotations

import csv
import html
import json
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TextIO

from . import _native
from ._arguments import integer, number
from ._diagnose import batch_samples
from ._errors import UsageError
from ._loader import Loader

__all__ = ["Watch", "watch"]


class ScalarWriter(Protocol):
    """What TensorBoard's `SummaryWriter` has."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...


def watch(
    loader: Iterable[Any],
    *,
    every: float = 1.0,
    log: str | os.PathLike[str] | None = None,
    writer: ScalarWriter | None = None,
    prometheus_port: int | None = None,
    line: bool | None = None,
) -> Watch:
    """Report what training waits for while it runs.

    Iterate over what this returns instead of the loader; batches and their order stay the same. A `forebay.Loader` may also be iterated
    itself, and its waits are divided into preparation and storage. For other loaders, only the total waiting time is known.

    Parameters
    ----------
    loader
        Any iterable of batches.
    every
        Seconds between reports.
    log
        File to append a line per report to: CSV if its name ends in `.csv`, JSON lines otherwise.
    writer
        A TensorBoard `SummaryWriter`, or anything with `add_scalar(tag, value, step)`. The step is the number of batches.
    prometheus_port
        Serve the figures on this port of localhost in Prometheus' text format, at `/metrics`. 0 chooses a free port.
    line
        Show a line on standard error that is updated in place. By default only on a terminal.

    Examples
    --------
    >>> with forebay.watch(loader, log="waits.csv") as watched:
    ...     for batch in watched:
    ...         train(batch)
    >>> print(watched)
    waited 41 % of 12.0 s: 33 % for preparation, 8 % for storage; 870 samples/s
    """
    return Watch(loader, every, log, writer, prometheus_port, line)


class Watch:
    """A loader that is watched. Made by `watch`."""

    def __init__(
        self,
        loader: Iterable[Any],
        every: float,
        log: str | os.PathLike[str] | None,
        writer: ScalarWriter | None,
        prometheus_port: int | None,
        line: bool | None,
    ) -> None:
        self._loader = loader
        self._every = number("every", every)
        if not 0.01 <= self._every <= 3600:
            raise UsageError(f"`every` is `{every}`, but must be from 0.01 to 3600 seconds")
        self._log_path = log
        self._writer = writer
        self._port = None if prometheus_port is None else integer("prometheus_port", prometheus_port, 0, 65535)
        self._line = sys.stderr.isatty() if line is None else line
        self._batches = self._samples = 0
        self._waited = 0.0
        self._begun = self._ended = 0.0
        #: What was seen by its end.
        self._final: dict[str, Any] | None = None
        #: When it began to wait for the batch that is awaited now.
        self._waits_since: float | None = None
        self._before = self._stats()
        self._log: TextIO | None = None
        self._server: ThreadingHTTPServer | None = None
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __iter__(self) -> Iterator[Any]:
        # A generator's own time is all that is added: two looks at the clock per batch.
        batches = iter(self._loader)
        while True:
            begun = self._waits_since = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                return
            finally:
                self._waited += time.perf_counter() - begun
                self._waits_since = None
            self._batches += 1
            self._samples += batch_samples(batch)
            yield batch

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        # What else the loader has: `sampler`, `dataset`, `set_epoch`.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __enter__(self) -> Watch:
        self._begun, self._ended, self._before = time.perf_counter(), 0.0, self._stats()
        self._batches, self._samples, self._waited, self._final = 0, 0, 0.0, None
        self._over.clear()
        if self._log_path is not None:
            self._log = open(self._log_path, "a", encoding="utf-8", newline="")
        if self._port is not None:
            self._serve(self._port)
        self._start(self._report_often)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = time.perf_counter()
        self._over.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for thread in self._threads:
            thread.join()
        self._threads = []
        self._final = self.figures()
        self._report()
        if self._line:
            print(file=sys.stderr)
        if self._log is not None:
            self._log.close()
            self._log = None

    @property
    def prometheus_port(self) -> int | None:
        """The port that figures are served on, while they are."""
        return None if self._server is None else int(self._server.server_address[1])

    def _stats(self) -> dict[str, Any]:
        return asdict(self._loader.stats()) if isinstance(self._loader, Loader) else {}

    def figures(self) -> dict[str, Any]:
        """Return what was seen so far, or by the end of the last `with` block.

        `seconds`, `batches`, `samples`, `samples_per_second`, `wait_share`, and of a `forebay.Loader` `prep_stall_share` and
        `fetch_stall_share`; of others these are None.
        """
        if self._final is not None:
            return dict(self._final)
        now = time.perf_counter()
        seconds = max((self._ended or now) - (self._begun or now), 0.0)
        since = self._waits_since
        waited = self._waited + (now - since if since is not None else 0.0)
        samples, stalls = self._samples, {"prep_stall_share": None, "fetch_stall_share": None}
        wait_share = min(waited / seconds, 1.0) if seconds else 0.0
        if isinstance(self._loader, Loader):
            found, before = self._stats(), self._before
            delta = {key: value - before[key] for key, value in found.items() if key != "threads"}
            # The loader's clock is stopped while no batch is consumed.
            delta.update(threads=found["threads"], seconds=seconds)
            stalls = json.loads(_native.stalls(json.dumps(delta)))
            samples, wait_share = delta["samples"], stalls.pop("wait_share")
        return {
            "seconds": seconds,
            "batches": self._batches,
            "samples": samples,
            "samples_per_second": samples / seconds if seconds else 0.0,
            "wait_share": wait_share,
            **stalls,
        }

    def _start(self, work: Any) -> None:
        thread = threading.Thread(target=work, name="forebay-watch", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _report_often(self) -> None:
        while not self._over.wait(self._every):
            self._report()

    def _report(self) -> None:
        figures = self.figures()
        if self._line:
            print(f"\r\x1b[K{_sentence(figures)}", end="", file=sys.stderr, flush=True)
        if self._writer is not None:
            for name, value in figures.items():
                if value is not None and name not in ("batches", "seconds"):
                    self._writer.add_scalar(f"forebay/{name}", float(value), self._batches)
        if self._log is not None:
            if os.fspath(self._log_path or "").endswith(".csv"):
                rows = csv.DictWriter(self._log, figures)
                if self._log.tell() == 0:
                    rows.writeheader()
                rows.writerow(figures)
            else:
                self._log.write(json.dumps(figures) + "\n")
            self._log.flush()

    def _serve(self, port: int) -> None:
        watched = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                text = _prometheus(watched.figures()).encode() if self.path == "/metrics" else b"see /metrics\n"
                self.send_response(200 if self.path == "/metrics" else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._start(self._server.serve_forever)

    def __repr__(self) -> str:
        return _sentence(self.figures())

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"


def _sentence(figures: dict[str, Any]) -> str:
    percent = {name: f"{100 * value:.0f} %" for name, value in figures.items() if name.endswith("_share") and value is not None}
    parts = ""
    if "prep_stall_share" in percent:
        parts = f": {percent['prep_stall_share']} for preparation, {percent['fetch_stall_share']} for storage"
    rate = _native.format_quantity(figures["samples_per_second"], "number")
    time_text = _native.format_quantity(figures["seconds"], "seconds")
    return f"waited {percent['wait_share']} of {time_text}{parts}; {rate} samples/s"


#: What each figure is to Prometheus: its name, type and meaning.
_METRICS = {
    "seconds": ("forebay_seconds_total", "counter", "Seconds of training that were watched"),
    "batches": ("forebay_batches_total", "counter", "Batches consumed"),
    "samples": ("forebay_samples_total", "counter", "Samples consumed"),
    "samples_per_second": ("forebay_samples_per_second", "gauge", "Samples per second since watching began"),
    "wait_share": ("forebay_wait_share", "gauge", "Share of the time that training waited for data"),
    "prep_stall_share": ("forebay_prep_stall_share", "gauge", "Share of the time that training waited for preparation"),
    "fetch_stall_share": ("forebay_fetch_stall_share", "gauge", "Share of the time that training waited for storage"),
}


def _prometheus(figures: dict[str, Any]) -> str:
    lines = []
    for key, (name, kind, meaning) in _METRICS.items():
        if figures[key] is not None:
            lines += [f"# HELP {name} {meaning}.", f"# TYPE {name} {kind}", f"{name} {figures[key]}"]
    return "\n".join(lines) + "\n"
