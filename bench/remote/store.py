"""A store on the loopback to measure loaders with: as much of S3 as a client needs to read, with a latency, a bandwidth, and faults.

Serves the folders below one folder as buckets. Each answer begins after the latency, and all bodies share the bandwidth, as they would share a line. It
takes little of the processor, which loaders are to have: bodies go from the page cache to the socket without passing through Python.
"""

from __future__ import annotations

import argparse
import contextlib
import email.utils
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import socket
import struct
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.sax.saxutils import escape

#: So much of a body is sent at a time. Smaller pieces share the line more evenly, and take more of the processor.
PIECE_BYTES = 256 << 10
#: How far behind its bandwidth the store may be and still catch up: a thread that wakes late must not make the line slower.
CATCH_UP_SECONDS = 0.02
#: Keys in a page of a listing, as S3 has it.
PAGE_KEYS = 1000
#: The kinds of fault, each as often as the others.
FAULTS = ("error", "reset", "truncation", "stall")


class Line:
    """The bandwidth, which all answers share."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self.lock = threading.Lock()
        self.free_at = 0.0

    def wait(self, sent_bytes: int) -> None:
        """Waits until the line has carried so much more."""
        with self.lock:
            now = time.monotonic()
            self.free_at = max(self.free_at, now - CATCH_UP_SECONDS) + sent_bytes / self.bytes_per_second
            seconds = self.free_at - now
        if seconds > 0:
            time.sleep(seconds)


class Store:
    """What is served, and what was asked for."""

    def __init__(self, folder: pathlib.Path, latency_seconds: float, bytes_per_second: float, stall_seconds: float) -> None:
        self.folder = folder.resolve()
        self.latency_seconds, self.stall_seconds = latency_seconds, stall_seconds
        self.line = Line(bytes_per_second)
        self.lock = threading.Lock()
        self.set(0.0)

    def set(self, faults: float) -> None:
        """Begins anew, with this share of each fault."""
        with self.lock:
            self.faults, self.random = faults, random.Random(19)
            self.counted = {"requests": 0, "bytes": 0, **dict.fromkeys(FAULTS, 0)}
            self.begun_seconds = processor_seconds()

    def count(self, **more: int) -> None:
        with self.lock:
            for name, number in more.items():
                self.counted[name] += number

    def draw(self) -> str | None:
        """What goes wrong with a request, if anything does."""
        with self.lock:
            at = self.random.random()
        fault = FAULTS[int(at / self.faults)] if self.faults and at < self.faults * len(FAULTS) else None
        if fault:
            self.count(**{fault: 1})
        return fault

    def stats(self) -> dict[str, float]:
        with self.lock:
            return {**self.counted, "processor_seconds": processor_seconds() - self.begun_seconds}

    def file(self, name: str) -> pathlib.Path | None:
        path = (self.folder / name).resolve()
        return path if path.is_relative_to(self.folder) and path.is_file() else None


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def tag_of(path: pathlib.Path) -> str:
    found = path.stat()
    return hashlib.md5(f"{path}:{found.st_size}:{found.st_mtime_ns}".encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    store: Store

    def log_message(self, *_: object) -> None:
        pass

    def split(self) -> tuple[str, dict[str, list[str]]]:
        parts = urllib.parse.urlsplit(self.path)
        return urllib.parse.unquote(parts.path).strip("/"), urllib.parse.parse_qs(parts.query, keep_blank_values=True)

    def do_GET(self) -> None:
        name, query = self.split()
        if name == "-/stats":
            return self.say(200, json.dumps(self.store.stats()).encode())
        if name == "-/reset":
            self.store.set(float(query.get("faults", ["0"])[0]))
            return self.say(200)
        time.sleep(self.store.latency_seconds)
        if "list-type" in query or "/" not in name:
            return self.say(200, self.listing(name.partition("/")[0], query).encode())
        self.store.count(requests=1)
        fault = self.store.draw() if self.command == "GET" else None
        if fault == "reset":
            return self.cut()
        if fault == "error":
            return self.say(503, b"<Error><Code>SlowDown</Code></Error>")
        path = self.store.file(name)
        if path is None:
            return self.say(404, b"<Error><Code>NoSuchKey</Code></Error>")
        self.send_object(path, fault)

    do_HEAD = do_GET

    def send_object(self, path: pathlib.Path, fault: str | None) -> None:
        size, tag = path.stat().st_size, f'"{tag_of(path)}"'
        if self.headers.get("If-Match", tag) != tag:
            return self.say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = (int(wanted[1]), min(int(wanted[2] or size), size - 1)) if wanted else (0, size - 1)
        if wanted and start > end:
            return self.say(416)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{end}/{size}")
        headers = {"Content-Length": end + 1 - start, "ETag": tag, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream",
                   "Last-Modified": email.utils.formatdate(path.stat().st_mtime, usegmt=True)}
        for header, value in headers.items():
            self.send_header(header, str(value))
        self.end_headers()
        self.wfile.flush()
        if self.command == "HEAD":
            return
        stop = (start + end + 1) // 2 if fault else end + 1
        with path.open("rb") as file:
            while start < stop:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), start, min(PIECE_BYTES, stop - start))
                if sent == 0:
                    break
                start += sent
                self.store.count(bytes=sent)
                self.store.line.wait(sent)
        if fault == "stall":
            time.sleep(self.store.stall_seconds)
        # A body that ends too early ends with its connection.
        self.close_connection = self.close_connection or fault is not None

    def cut(self) -> None:
        """Ends the connection without a word."""
        # At once, and not once everything was sent.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def say(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/xml")
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def listing(self, bucket: str, query: dict[str, list[str]]) -> str:
        prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        root = self.store.folder / bucket
        keys = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        files, folders = [], set()
        for key in keys:
            if not key.startswith(prefix) or key <= after:
                continue
            if delimiter and delimiter in key[len(prefix) :]:
                folders.add(prefix + key[len(prefix) :].partition(delimiter)[0] + delimiter)
            else:
                files.append(key)
        more, files = len(files) > PAGE_KEYS, files[:PAGE_KEYS]
        parts = [f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(files)}</KeyCount><MaxKeys>{PAGE_KEYS}</MaxKeys>"]
        parts.append(f"<IsTruncated>{str(more).lower()}</IsTruncated>")
        if more:
            parts.append(f"<NextContinuationToken>{escape(files[-1])}</NextContinuationToken>")
        for key in files:
            found = (root / key).stat()
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.st_mtime))
            parts.append(f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified><ETag>&quot;{tag_of(root / key)}&quot;</ETag>"
                         f"<Size>{found.st_size}</Size><StorageClass>STANDARD</StorageClass></Contents>")
        parts += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
        return ('<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                f"{''.join(parts)}</ListBucketResult>")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        """A client that went away is nothing to speak of; anything else is."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(*_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path, help="its folders are the buckets")
    parser.add_argument("--latency", type=float, default=0.05, help="seconds to the first byte of an answer")
    parser.add_argument("--bandwidth", type=float, default=200e6, help="bytes per second of all answers together")
    parser.add_argument("--stall", type=float, default=30.0, help="seconds of a stall, which ends the connection")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    Handler.store = Store(arguments.folder, arguments.latency, arguments.bandwidth, arguments.stall)
    server = Server(("127.0.0.1", arguments.port), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
