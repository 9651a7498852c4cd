"""Data sets in a bucket, over the loopback, with a small server of our own; test_remote_servers.py has others."""

from __future__ import annotations

import multiprocessing
import re
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.sax.saxutils import escape

import forebay
import numpy
import pytest

SECRET = "wJalrXUtnFEMI-K7MDENG"


class Objects(dict[str, bytes]):
    """Those of a server, by bucket and name, and what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []

    def take_requests(self) -> list[str]:
        taken, self.requests = self.requests, []
        return taken


class Handler(BaseHTTPRequestHandler):
    """As much of S3 as a build and a loader ask for."""

    protocol_version = "HTTP/1.1"
    objects: Objects

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def split(self) -> tuple[str, dict[str, list[str]]]:
        parts = urllib.parse.urlsplit(self.path)
        self.objects.requests.append(f"{self.command} {self.path}")
        return urllib.parse.unquote(parts.path).lstrip("/"), urllib.parse.parse_qs(parts.query, keep_blank_values=True)

    def do_GET(self) -> None:
        name, query = self.split()
        if "list-type" in query:
            return self.answer(200, listing(self.objects, name.rstrip("/") + "/", query).encode())
        content = self.objects.get(name)
        if content is None:
            return self.answer(404)
        tag = f'"{len(content)}-{hash(content)}"'
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None:
            body = b"" if self.command == "HEAD" else content
            return self.answer(200, body, len(content), ETag=tag)
        start, end = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
        self.answer(206, content[start : end + 1], ETag=tag, Content_Range=f"bytes {start}-{end}/{len(content)}")

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        name, _ = self.split()
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("If-None-Match") == "*" and name in self.objects:
            return self.answer(412)
        self.objects[name] = content
        self.answer(200, ETag=f'"{len(content)}-{hash(content)}"')

    def do_DELETE(self) -> None:
        self.objects.pop(self.split()[0], None)
        self.answer(204)


def listing(objects: dict[str, bytes], bucket: str, query: dict[str, list[str]]) -> str:
    prefix, delimiter = query.get("prefix", [""])[0], query.get("delimiter", [""])[0]
    files, folders = [], set()
    for name in sorted(objects):
        key = name.removeprefix(bucket)
        if not name.startswith(bucket) or not key.startswith(prefix):
            continue
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folders.add(prefix + rest.split(delimiter)[0] + delimiter)
        else:
            size, tag = len(objects[name]), f"{len(objects[name])}-{hash(objects[name])}"
            when = "2026-11-18T00:00:00.000Z"
            files.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>"
                f"<ETag>&quot;{tag}&quot;</ETag><Size>{size}</Size></Contents>"
            )
    files += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in sorted(folders)]
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(files)}</ListBucketResult>"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    """A server with a bucket called `bucket`, which the environment names: its objects."""
    objects = Objects()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"objects": objects}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    connect(monkeypatch, f"http://127.0.0.1:{server.server_port}")
    yield objects
    server.shutdown()
    server.server_close()


def connect(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    settings = {"ENDPOINT_URL": endpoint, "ACCESS_KEY_ID": "AKIATESTTESTTEST", "SECRET_ACCESS_KEY": SECRET, "REGION": "us-east-1"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def put(objects: dict[str, bytes], folder: Path, prefix: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            objects[f"{prefix}/{path.relative_to(folder)}"] = path.read_bytes()


def samples(loader: forebay.Loader) -> dict[str, bytes]:
    """Every sample of an epoch, by its key."""
    found: dict[str, bytes] = {}
    for batch in loader:
        for key, image in zip(batch["key"], numpy.asarray(batch["image"]), strict=True):
            assert key not in found
            found[key] = image.tobytes()
    return found


def load_in_child(url: str, queue: multiprocessing.Queue[int]) -> None:
    queue.put(sum(len(batch["label"]) for batch in forebay.Loader(url, batch_size=4)))


def walk_through(objects: dict[str, bytes] | None, name: str, upload, tmp_path: Path, scheme: str = "s3") -> None:
    forebay.demo_data("cv", tmp_path, samples=20)
    photos = tmp_path / "photos"
    upload(photos, f"{name}/photos")
    here = forebay.build("cv", tmp_path / "dataset", data=photos, strategy="resized", shards=3)
    there = forebay.build("cv", f"{scheme}://{name}/dataset", data=f"{scheme}://{name}/photos", strategy="resized", shards=3)
    shards = [(shard["file"], shard["xxh3"]) for shard in here.manifest["shards"]]
    assert [(shard["file"], shard["xxh3"]) for shard in there.manifest["shards"]] == shards
    expected = samples(forebay.Loader(here, batch_size=4, shuffle=True, seed=3))
    loader = forebay.Loader(f"{scheme}://{name}/dataset", batch_size=4, shuffle=True, seed=3)
    assert samples(loader) == expected and len(expected) == 20
    assert SECRET not in repr(loader) and SECRET not in str(loader.state_dict())
    cached = forebay.Loader(f"{scheme}://{name}/dataset", batch_size=4, shuffle=True, seed=3, cache_dir=tmp_path / "cache", cache_size="1GB")
    assert samples(cached) == expected and samples(cached) != {}
    assert list((tmp_path / "cache").rglob("*.block"))
    files = forebay.Loader("cv", data=f"{scheme}://{name}/photos", batch_size=4, seed=3)
    assert len(samples(files)) == 20


def test_a_bucket_is_built_and_loaded_like_a_folder(bucket, tmp_path):
    walk_through(bucket, "bucket", lambda folder, prefix: put(bucket, folder, prefix), tmp_path)
    assert not any(SECRET.encode() in content for content in bucket.values())
    with pytest.raises(forebay.Error, match="s3://bucket/nothing"):
        forebay.Loader("s3://bucket/nothing", batch_size=4)


def test_later_epochs_of_a_cache_ask_for_nothing(bucket, tmp_path):
    forebay.demo_data("cv", tmp_path, samples=12)
    forebay.build("cv", tmp_path / "dataset", data=tmp_path / "photos", strategy="resized", shards=3)
    put(bucket, tmp_path / "dataset", "cached/dataset")
    loader = forebay.Loader("s3://cached/dataset", batch_size=4, shuffle=True, seed=3, cache_dir=tmp_path / "cache", cache_size="1GB")
    first = samples(loader)
    assert len(bucket.take_requests()) > 3
    for _ in range(3):
        assert samples(loader).keys() == first.keys()
        assert bucket.take_requests() == []


def test_a_forked_child_connects_anew(bucket, tmp_path):
    forebay.demo_data("cv", tmp_path, samples=12)
    forebay.build("cv", tmp_path / "dataset", data=tmp_path / "photos", strategy="resized", shards=2)
    put(bucket, tmp_path / "dataset", "forked/dataset")
    assert len(samples(forebay.Loader("s3://forked/dataset", batch_size=4))) == 12
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=load_in_child, args=("s3://forked/dataset", queue))
    child.start()
    assert queue.get(timeout=60) == 12
    child.join(timeout=60)
    assert child.exitcode == 0


def test_parts_of_a_build(bucket, tmp_path):
    forebay.demo_data("cv", tmp_path, samples=12)
    put(bucket, tmp_path / "photos", "parted/photos")
    how = {"data": "s3://parted/photos", "strategy": "resized"}
    with pytest.raises(forebay.UsageError, match="--prepare"):
        forebay.build_part("cv", "s3://parted/dataset", "1/2", **how)
    with pytest.raises(forebay.UsageError, match="3/16"):
        forebay.build_part("cv", "s3://parted/dataset", "3/2", **how)
    assert forebay.build_part("cv", "s3://parted/dataset", "prepare", shards=4, **how)["samples"] == 12
    for part in ("1/2", "2/2", "1/2"):
        assert forebay.build_part("cv", "s3://parted/dataset", part, **how)["shards"] == 2
    assert forebay.build_part("cv", "s3://parted/dataset", "finish", **how)["shards"] == 4
    plain = forebay.build("cv", tmp_path / "plain", data=tmp_path / "photos", strategy="resized", shards=4)
    parted = forebay.Loader("s3://parted/dataset", batch_size=4)
    assert samples(parted) == samples(forebay.Loader(plain, batch_size=4))
