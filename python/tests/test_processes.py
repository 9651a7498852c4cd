"""Ctrl-C, fork, spawn, and what becomes of threads."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import forebay
import pytest
from conftest import keys_of

# Each file takes 20 ms to find, so that the first batch takes minutes.
WAITING = """
import signal, sys, forebay
# A test run in the background may have been told to ignore Ctrl-C, and passes that on.
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = forebay.Loader(
    forebay.Pipeline.files("**/*.png").decode().resize((8, 8)),
    data=sys.argv[1], batch_size=10_000, storage="custom:read=100MB/s,stream=100MB/s,seek=20ms,iops=50", threads=2,
)
print("waiting", flush=True)
try:
    next(iter(loader))
except KeyboardInterrupt:
    import test_processes
    print("interrupted", test_processes.native_threads(), flush=True)
    raise
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_ctrl_c_interrupts_at_once(tiny_files):
    arguments = [sys.executable, "-c", WAITING, str(tiny_files)]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, text=True, env=environment, **pipes) as process:
        assert process.stdout.readline() == "waiting\n"
        wait_for_reading(process.pid)
        assert process.poll() is None
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            output, errors = process.communicate(timeout=30)
        finally:
            process.kill()
        seconds = time.monotonic() - begun
    assert output == "interrupted 0\n"
    assert "KeyboardInterrupt" in errors and process.returncode != 0
    # Soon, on a busy machine too.
    assert seconds < 10, seconds


def wait_for_reading(process: int) -> None:
    """Until the batch is being waited for: readers and workers are there."""
    deadline = time.monotonic() + 30
    while listed_threads(str(process)) < 4:
        assert time.monotonic() < deadline, "it does not begin to read"
        time.sleep(0.005)


def native_threads() -> int:
    """Threads of ours. One that was joined may still be listed for a moment."""
    deadline = time.monotonic() + 10
    while (count := listed_threads()) > 0 and time.monotonic() < deadline:
        time.sleep(0.002)
    return count


def listed_threads(process: str = "self") -> int:
    names = []
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/comm") as file:
                names.append(file.read())
        except OSError:
            continue
    return sum(name.startswith("forebay-") for name in names)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="threads are counted in /proc")
def test_no_thread_is_left(tiny):
    loader = forebay.Loader(tiny, threads=3)
    for _ in loader:
        assert listed_threads() > 0
        break
    assert native_threads() == 0
    list(loader)
    assert native_threads() == 0
    iterator = iter(loader)
    next(iterator)
    assert listed_threads() > 0
    loader.close()
    assert native_threads() == 0
    with forebay.Loader(tiny) as other:
        held = iter(other)
        next(held)
    assert native_threads() == 0


def test_python_runs_while_a_batch_is_made(tiny_files):
    """The lock is free: another thread counts on while this one waits for a batch."""
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    pipeline = forebay.Pipeline.files("class1/*.png").decode().resize((8, 8))
    slow = "custom:read=100MB/s,stream=100MB/s,seek=1ms,iops=1000"
    loader = forebay.Loader(pipeline, data=tiny_files, batch_size=1000, storage=slow, threads=2)
    thread.start()
    begun, before = time.monotonic(), counted[0]
    assert len(next(iter(loader))["key"]) == 1000
    seconds, found = time.monotonic() - begun, counted[0] - before
    stop.set()
    thread.join()
    # 1000 files, one every millisecond.
    assert seconds > 0.9
    # Were the lock held, it would count once or twice, on its way in and out. How often it does otherwise is up to the machine.
    assert found > 20, f"{found} in {seconds} s"


def in_child(loader, iterator, expected):
    with pytest.raises(forebay.UsageError, match="started in process"):
        next(iterator)
    del iterator
    assert keys_of(loader) == expected
    assert loader.skipped == 0


def run(context, target, *arguments):
    process = context.Process(target=target, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == 0, process.exitcode


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_fork(tiny):
    expected = keys_of(forebay.Loader(tiny, shuffle=True, threads=2))
    loader = forebay.Loader(tiny, shuffle=True, threads=2)
    iterator = iter(loader)
    first = next(iterator)
    run(multiprocessing.get_context("fork"), in_child, loader, iterator, expected)
    # The parent goes on as if nothing had happened.
    assert [first["key"], *keys_of(iterator)] == expected


def in_spawned(loader, expected):
    assert keys_of(loader) == expected


def test_spawn(tiny, photos):
    for loader in [
        forebay.Loader(tiny, shuffle=True, seed=3),
        forebay.Loader(forebay.Pipeline.files().decode().random_crop(64), data=photos, batch_size=8),
    ]:
        expected = keys_of(copy.copy(loader))
        run(multiprocessing.get_context("spawn"), in_spawned, loader, expected)


def test_a_pickled_loader_keeps_its_place(tiny):
    loader = forebay.Loader(tiny, shuffle=True)
    iterator = iter(loader)
    for _ in range(10):
        next(iterator)
    moved = pickle.loads(pickle.dumps(loader))
    assert moved.state_dict() == loader.state_dict()
    moved.load_state_dict(moved.state_dict())
    assert keys_of(moved) == keys_of(iterator)


def test_two_loaders_at_once(tiny):
    one, other = forebay.Loader(tiny, threads=2), forebay.Loader(tiny, threads=1)
    for first, second in zip(one, other, strict=True):
        assert first["key"] == second["key"]


def test_one_loader_on_another_thread(tiny):
    found = []
    thread = threading.Thread(target=lambda: found.extend(keys_of(forebay.Loader(tiny))))
    thread.start()
    thread.join(60)
    assert found == keys_of(forebay.Loader(tiny))
