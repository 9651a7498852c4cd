"""Azure Blob Storage, by Microsoft's emulator Azurite, where `make test-remote` could install it (it needs npm)."""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import forebay
import pytest
from test_remote import samples, walk_through
from test_remote_servers import command, free_ports, missing, wait_until_answered

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "forebaytests"
KEY = base64.b64encode(b"a key that only this test knows, of 64 bytes, as Azure has them.").decode()
# One process of the tests runs all of these, so that the server is started once.
pytestmark = pytest.mark.xdist_group("azurite")


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of an Azurite of our own, with one account."""
    program = shutil.which("azurite-blob", path=f"{ROOT / '.tools/azurite/node_modules/.bin'}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        missing("Azurite is not installed" if shutil.which("npm") else "Azurite is not installed, and there is no npm to install it with")
        return
    folder = tmp_path_factory.mktemp("azurite")
    [port] = free_ports(1)
    log = folder / "log"
    arguments = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    settings = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
    with log.open("wb") as output:
        process = subprocess.Popen([program, *arguments], stdout=output, stderr=output, cwd=folder, env=settings)
    try:
        wait_until_answered(f"http://127.0.0.1:{port}/", process, log)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.terminate()
        process.wait(timeout=20)


def ask(endpoint: str, method: str, below: str, body: bytes = b"", **headers: str) -> bytes:
    """A request that is signed with the account's key."""
    path, _, query = below.partition("?")
    own = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    own |= {name.replace("_", "-"): value for name, value in headers.items()}
    named = "".join(f"{name}:{value}\n" for name, value in sorted(own.items()))
    # An account's name is in the path twice: once as what is asked, and once as this server's URLs have it.
    resource = f"/{ACCOUNT}/{ACCOUNT}/{path}"
    parameters = "".join(f"\n{name}:{value}" for name, value in sorted(urllib.parse.parse_qsl(query)))
    kind = "application/octet-stream" if body else ""
    signed = f"{method}\n\n\n{len(body) or ''}\n\n{kind}\n\n\n\n\n\n\n{named}{resource}{parameters}"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    own["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    if body:
        own["Content-Type"] = kind
    request = urllib.request.Request(f"{endpoint}/{below}", body or None, own, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bytes(answer.read())


@pytest.fixture
def container(azurite: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    """A new container, which the environment names."""
    name = f"c{abs(hash(tmp_path)) % 10**10}"
    ask(azurite, "PUT", f"{name}?restype=container")
    for setting, value in {"ACCOUNT_NAME": ACCOUNT, "ACCOUNT_KEY": KEY, "ENDPOINT": azurite}.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{setting}", value)
    return azurite, name


def test_profile_plan_build_and_load(container, tmp_path):
    endpoint, name = container

    def upload(folder: Path, prefix: str) -> None:
        for path in folder.rglob("*"):
            if path.is_file():
                ask(endpoint, "PUT", f"{prefix}/{path.relative_to(folder)}", path.read_bytes(), x_ms_blob_type="BlockBlob")

    walk_through(None, name, upload, tmp_path, scheme="az")
    profile = forebay.profile("cv", f"az://{name}/photos", samples=6, seconds=0, runs=1, strategies=["concatenated", "resized"], work_dir=tmp_path)
    dataset = profile.plan().build(f"az://{name}/planned", strategy="resized", shards=2)
    assert len(samples(forebay.Loader(dataset, batch_size=4))) == 20


def test_parts_large_objects_and_the_program(container, tmp_path):
    endpoint, name = container
    # 30 MB in a shard: in four parts.
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().resize((1000, 1000))
    forebay.demo_data("cv", tmp_path, samples=10)
    how = {"data": tmp_path / "photos", "strategy": "resized"}
    output = f"az://{name}/large"
    forebay.build_part(pipeline, output, "prepare", shards=1, **how)
    # A note that is there already is the same note.
    assert [forebay.build_part(pipeline, output, "1/1", **how)["shards"] for _ in range(2)] == [1, 1]
    forebay.build_part(pipeline, output, "finish", **how)
    forebay.build(pipeline, tmp_path / "plain", shards=1, **how)
    for path in (tmp_path / "plain").iterdir():
        assert ask(endpoint, "GET", f"{name}/large/{path.name}") == path.read_bytes(), path.name
    verified = command("inspect", output, "--verify")
    assert verified.returncode == 0 and "every byte is as it was built" in verified.stdout, verified.stderr
    found = json.loads(command("inspect", output, "--json").stdout)
    assert found["samples"] == 10


def test_a_wrong_key_is_refused_and_not_shown(container, monkeypatch):
    _, name = container
    other = base64.b64encode(b"another key").decode()
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", other)
    with pytest.raises(forebay.Error, match="hint: check the credentials") as raised:
        forebay.Loader(f"az://{name}/dataset", batch_size=4)
    assert other not in str(raised.value)
