"""A build that was begun in Python is gone on with by the program, and the other way round."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import forebay
import pytest

ROOT = Path(__file__).parents[2]

#: So slow that a build can be stopped in the middle.
SLOW = "custom:read=100MB/s,stream=100MB/s,seek=10ms,iops=100"

IN_PYTHON = """
import sys, forebay
forebay.build("cv", sys.argv[2], data=sys.argv[1], strategy="resized", shards=6, threads=1, storage=sys.argv[3])
"""


def program() -> str:
    """The `forebay` program of this checkout."""
    targets = [os.environ.get("CARGO_TARGET_DIR"), ROOT / "target"]
    found = [Path(target, profile, "forebay") for target in targets if target for profile in ("release", "debug")]
    for path in [Path(os.environ.get("FOREBAY_PROGRAM", "")), *found]:
        if path.is_file():
            return os.fspath(path)
    pytest.skip("the program is not built; FOREBAY_PROGRAM names it")


def stopped(command: list[str], output: Path) -> int:
    """Runs a build until two of its shards are there, and kills it. How many there are."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(list(output.glob("*.tfrecord"))) < 2 and time.monotonic() < deadline:
            assert process.poll() is None, process.returncode
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (output / "dataset.json").exists()
    return len(list(output.glob("*.tfrecord")))


def of_program(photos: Path, output: Path, *more: str) -> list[str]:
    how = ["--data", os.fspath(photos), "--strategy", "resized", "-o", os.fspath(output), "--shards", "6"]
    return [program(), "build", "cv", *how, "--threads", "1", *more]


@pytest.fixture(scope="module")
def whole(photos, tmp_path_factory):
    """The data set as it comes out when nobody stops it."""
    output = tmp_path_factory.mktemp("whole") / "set"
    forebay.build("cv", output, data=photos, strategy="resized", shards=6, progress=False)
    return contents(output)


def contents(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(output.iterdir()) if not path.name.startswith(".")}


def test_python_goes_on_where_the_program_stopped(photos, whole, tmp_path):
    output = tmp_path / "set"
    shards = stopped(of_program(photos, output, "--storage", SLOW), output)
    dataset = forebay.build("cv", output, data=photos, strategy="resized", shards=6, progress=False)
    assert 1 <= dataset.shards_reused <= shards
    assert contents(output) == whole


def test_the_program_goes_on_where_python_stopped(photos, whole, tmp_path):
    output = tmp_path / "set"
    command = of_program(photos, output, "--json")
    shards = stopped([sys.executable, "-c", IN_PYTHON, os.fspath(photos), os.fspath(output), SLOW], output)
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 1 <= found["shards_reused"] <= shards
    assert contents(output) == whole


def test_both_choose_the_same_without_being_told(photos, tmp_path):
    """Shards, order and names: what is finished for one is finished for the other."""
    output, plan = tmp_path / "set", tmp_path / "plan.json"
    how = ["--data", os.fspath(photos), "--strategy", "resized", "-o", os.fspath(output)]
    subprocess.run([program(), "build", "cv", *how], check=True, capture_output=True)
    dataset = forebay.build("cv", output, data=photos, strategy="resized", progress=False)
    assert dataset.shards_reused == len(dataset.manifest["shards"]) > 0
    # By a plan, which knows how large a sample will be.
    profile = forebay.profile("cv", photos, samples=4, runs=1, seconds=0, strategies=["resized"], work_dir=tmp_path, progress=False)
    profile.plan().save(plan)
    shutil.rmtree(output)
    subprocess.run([program(), "build", os.fspath(plan), "-o", os.fspath(output)], check=True, capture_output=True)
    dataset = forebay.build(plan, output, progress=False)
    assert dataset.shards_reused == len(dataset.manifest["shards"]) > 0


def test_a_list_of_files_is_the_same_to_both(photos, tmp_path):
    output, listed = tmp_path / "set", tmp_path / "listed.txt"
    paths = [os.fspath(path.relative_to(photos)) for path in sorted(photos.rglob("*.jpg"))[::2]]
    listed.write_text("\n".join(paths))
    how = ["--data", os.fspath(photos), "--strategy", "resized", "-o", os.fspath(output)]
    command = [program(), "build", "cv", *how, "--files-from", os.fspath(listed)]
    subprocess.run(command, check=True, capture_output=True)
    data = forebay.FileList(paths, root=photos)
    dataset = forebay.build("cv", output, data=data, strategy="resized", progress=False)
    assert dataset.shards_reused == len(dataset.manifest["shards"]) > 0 and len(dataset) == len(paths)
