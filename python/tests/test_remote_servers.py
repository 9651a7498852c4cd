"""Buckets of servers that other people wrote: SeaweedFS, which checks signatures, and moto. `make test-remote` installs both."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forebay
import pytest
from test_remote import SECRET, connect, samples, walk_through

KEY = "AKIATESTTESTTEST"
# One process of the tests runs all of these, so that each server is started once.
pytestmark = pytest.mark.xdist_group("servers")
REQUIRED = os.environ.get("FOREBAY_REMOTE") == "required"


def missing(what: str) -> None:
    """Skips, unless the servers were asked for."""
    if REQUIRED:
        pytest.fail(f"{what}, and FOREBAY_REMOTE=required")
    pytest.skip(f"{what}: `make test-remote` installs it")


def client_of(endpoint: str) -> Any:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: `make test-remote` installs it")
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=KEY, aws_secret_access_key=SECRET
    )


def free_ports(count: int) -> list[int]:
    """Ports that differ, since all are taken at once: each process of the tests has its own."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in taken:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in taken]


def wait_until_answered(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(endpoint, timeout=1).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"the server does not answer: {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="module")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a SeaweedFS of our own, which knows one pair of keys."""
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if weed is None:
        missing("SeaweedFS is not installed")
        return
    folder = tmp_path_factory.mktemp("seaweed")
    identity = {"name": "forebay", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin", "Read", "Write", "List"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
    # Those for gRPC are 10,000 higher unless they are named, and there may be no such ports.
    names = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    command = [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", f"-s3.config={folder / 's3.json'}"]
    command += ["-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=200", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        endpoint = f"http://127.0.0.1:{ports['s3.port']}"
        wait_until_answered(endpoint, process, log)
        yield endpoint
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """The endpoint of moto's server."""
    try:
        from moto.server import ThreadedMotoServer
    except ImportError:
        missing("moto[server] is not installed")
        return
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["seaweed", "moto"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, Any]:
    """A new bucket of each server, which the environment names, and a client of another make."""
    endpoint = request.getfixturevalue(request.param)
    client = client_of(endpoint)
    name = f"b{abs(hash(tmp_path)) % 10**10}"
    create(client, name)
    connect(monkeypatch, endpoint)
    return name, client


def create(client: Any, name: str) -> None:
    """Makes a bucket. A server that has just been started may not be ready for it at once."""
    for attempt in range(40):
        try:
            client.create_bucket(Bucket=name)
            return
        except Exception:
            if attempt == 39:
                raise
            time.sleep(0.25)


def uploader(client: Any, bucket: str) -> Callable[[Path, str], None]:
    def upload(folder: Path, prefix: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                client.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(folder)}".partition("/")[2], Body=path.read_bytes())

    return upload


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "forebay._command", *arguments], capture_output=True, text=True)


def test_profile_plan_build_and_load(bucket, tmp_path):
    name, client = bucket
    walk_through(None, name, uploader(client, name), tmp_path)
    profile = forebay.profile("cv", f"s3://{name}/photos", samples=6, seconds=0, runs=1, strategies=["concatenated", "resized"], work_dir=tmp_path)
    dataset = profile.plan().build(f"s3://{name}/planned", strategy="resized", shards=2)
    assert len(samples(forebay.Loader(dataset, batch_size=4))) == 20
    listed = client.list_multipart_uploads(Bucket=name)
    assert not listed.get("Uploads")


def test_parts_of_a_build_by_sixteen_at_once(bucket, tmp_path):
    name, client = bucket
    forebay.demo_data("cv", tmp_path, samples=16)
    how: dict[str, Any] = {"data": tmp_path / "photos", "strategy": "resized"}
    output = f"s3://{name}/dataset"
    # Once more is no harm.
    assert [forebay.build_part("cv", output, "prepare", shards=2, **how)["samples"] for _ in range(2)] == [16, 16]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        run = lambda part: list(pool.map(lambda _: forebay.build_part("cv", output, part, threads=1, **how), range(16)))  # noqa: E731
        assert [done["shards"] for done in run("1/1")] == [2] * 16
        assert [done["shards"] for done in run("finish")] == [2] * 16
    forebay.build("cv", tmp_path / "plain", shards=2, **how)
    for path in (tmp_path / "plain").iterdir():
        assert client.get_object(Bucket=name, Key=f"dataset/{path.name}")["Body"].read() == path.read_bytes(), path.name
    assert client.list_objects_v2(Bucket=name)["KeyCount"] == len(list((tmp_path / "plain").iterdir())), "nothing is left"


@pytest.mark.parametrize("bucket", ["seaweed"], indirect=True)
def test_large_objects_and_long_listings(bucket, tmp_path):
    name, client = bucket
    # 30 MB in a shard: in four parts.
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().resize((1000, 1000))
    forebay.demo_data("cv", tmp_path, samples=10)
    built = forebay.build(pipeline, f"s3://{name}/large", data=tmp_path / "photos", strategy="resized", shards=1)
    assert built.bytes > 25e6
    plain = forebay.build(pipeline, tmp_path / "plain", data=tmp_path / "photos", strategy="resized", shards=1)
    assert samples(forebay.Loader(built, batch_size=4, shuffle=True)) == samples(forebay.Loader(plain, batch_size=4, shuffle=True))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.put_object(Bucket=name, Key=f"many/{number % 7}/{number}.txt", Body=b"x"), range(1100)))
    found = json.loads(command("inspect", f"s3://{name}/many", "--json").stdout)
    assert found["files"] == 1100, "more than a page of a listing has"


@pytest.mark.parametrize("bucket", ["seaweed"], indirect=True)
def test_the_program_exports(bucket, tmp_path):
    name, client = bucket
    forebay.demo_data("cv", tmp_path, samples=6)
    forebay.build("cv", tmp_path / "dataset", data=tmp_path / "photos", strategy="resized", shards=2)
    exported = command("export", str(tmp_path / "dataset"), f"s3://{name}/tars")
    assert exported.returncode == 0, exported.stderr
    # Each with its index beside it.
    expected = {f"tars/shard-00000{shard}.{end}" for shard in range(2) for end in ("tar", "idx")}
    assert {found["Key"] for found in client.list_objects_v2(Bucket=name)["Contents"]} == expected


@pytest.mark.skipif(not REQUIRED, reason="it measures for half a minute: `make test-remote` runs it")
@pytest.mark.parametrize("bucket", ["seaweed"], indirect=True)
def test_the_program_probes(bucket):
    name, client = bucket
    probed = command("probe", f"s3://{name}/scratch", "--seconds", "0.05", "--json")
    assert probed.returncode == 0, probed.stderr
    assert {found["threads"] for found in json.loads(probed.stdout)["measurements"]} >= {1, 32}
    assert client.list_objects_v2(Bucket=name, Prefix="scratch")["KeyCount"] == 0


def test_a_bucket_that_is_not_there_is_said(bucket):
    ran = command("inspect", "s3://nobody-has-this/photos")
    assert ran.returncode != 0 and "there is no such bucket" in ran.stderr, ran.stderr
    with pytest.raises(forebay.Error, match="there is no such bucket"):
        forebay.Loader("cv", data="s3://nobody-has-this/photos", batch_size=4)


def test_a_wrong_secret_is_refused_and_not_repeated(seaweed, monkeypatch):
    connect(monkeypatch, seaweed)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-than-that")
    with pytest.raises(forebay.Error, match="hint: check the credentials") as raised:
        forebay.Loader("s3://bucket/dataset", batch_size=4)
    assert "another-secret" not in str(raised.value) and KEY not in str(raised.value)
