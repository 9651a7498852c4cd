"""Python functions as steps: one call at a time, unless a function is said to be thread-safe."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest

THREADS = 4


def pictures() -> forebay.Pipeline:
    return forebay.Pipeline.files("class1/*.png", label=None).decode().resize((8, 8))


def images(pipeline: forebay.Pipeline, data: Path, **options: Any) -> dict[str, Any]:
    loader = forebay.Loader(pipeline, data=data, batch_size=50, **{"threads": THREADS, **options})
    return {key: image for batch in loader for key, image in zip(batch["key"], batch["image"], strict=True)}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all((one[key] == other[key]).all() for key in one)


def let_others_in() -> None:
    """What an extension does that lets go of Python's lock in the middle of a call."""
    time.sleep(0.0002)


def test_calls_that_share_an_array_do_not_mix(tiny_files):
    scratch = numpy.zeros((8, 8, 3), numpy.uint8)

    def shared(image):
        scratch[:] = image
        let_others_in()
        return scratch

    assert same(images(pictures().map(shared), tiny_files), images(pictures(), tiny_files))


def jitter(image, *, seed):
    """As with `torch.manual_seed(seed)` and torchvision: the generator is of the whole process."""
    numpy.random.seed(seed % 2**32)
    let_others_in()
    return (image * numpy.random.uniform(0.5, 1.0)).astype(numpy.uint8)


def test_the_random_numbers_of_the_whole_process_can_be_used(tiny_files):
    pipeline = pictures().map(jitter, random=True)
    first, again = (images(pipeline, tiny_files, shuffle=True, seed=5) for _ in range(2))
    assert same(first, again) and same(first, images(pipeline, tiny_files, shuffle=True, seed=5, threads=1))
    assert not same(first, images(pictures(), tiny_files))


class Calls:
    """Counts how many calls are under way at most."""

    def __init__(self) -> None:
        self.now = self.most = self.total = 0
        self._lock = threading.Lock()

    def __call__(self, image):
        with self._lock:
            self.now += 1
            self.total += 1
            self.most = max(self.most, self.now)
        let_others_in()
        with self._lock:
            self.now -= 1
        return image


def test_one_call_at_a_time_in_all_loaders_and_functions(tiny_files):
    calls = Calls()

    def one(image):
        return calls(image)

    def other(image):
        return calls(image)

    pipelines = [pictures().map(one).map(other), pictures().map(other)]
    threads = [threading.Thread(target=images, args=(pipeline, tiny_files)) for pipeline in pipelines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert (calls.most, calls.total) == (1, 3000)


def test_one_call_at_a_time_in_builds_and_profiles(tiny_files, tmp_path):
    calls = Calls()

    def function(image):
        return calls(image)

    pipeline = pictures().map(function)
    forebay.build(pipeline, tmp_path / "set", data=tiny_files, strategy="function", threads=THREADS, shards=8)
    assert (calls.most, calls.total) == (1, 1000)
    forebay.profile(pipeline, tiny_files, samples=50, runs=1, seconds=0, threads=THREADS, work_dir=tmp_path)
    assert calls.most == 1 and calls.total > 1100


def test_thread_safe_functions_run_at_the_same_time(tiny_files, tmp_path):
    both, met = threading.Barrier(2, timeout=20), threading.Event()

    def meet(image):
        # Once is enough: at the end, one may have a sample more than the other.
        if not met.is_set():
            both.wait()
            met.set()
        return image

    assert len(images(pictures().map(meet, parallel=True), tiny_files, threads=2)) == 1000
    # What may be done to a function is no part of the pipeline, and is said where the function is given again.
    assert "parallel" not in pictures().map(meet, parallel=True).to_json()
    dataset = forebay.build(pictures().map(meet), tmp_path / "set", data=tiny_files, strategy="resized")
    met.clear()
    loader = forebay.Loader(dataset, functions={"meet": forebay.Parallel(meet)}, threads=2)
    assert sum(len(batch["key"]) for batch in loader) == 1000
    # Others still have to wait for each other.
    both = threading.Barrier(2, timeout=0.2)
    met.clear()
    with pytest.raises(threading.BrokenBarrierError):
        images(pictures().map(meet), tiny_files)


def unchanged(image):
    return image


def test_that_a_function_is_thread_safe_goes_where_it_goes():
    pipeline = pictures().map(unchanged, parallel=True)
    assert pipeline.steps[-1] == "unchanged" and pipeline == pictures().map(unchanged)
    for other in (pickle.loads(pickle.dumps(pipeline)), pipeline.set({"resize.size": [8, 9]}), pipeline.to_chw()):
        assert other._functions == {"unchanged": forebay.Parallel(unchanged)}


def test_functions_that_could_be_mistaken_for_each_other_are_refused():
    pipeline = pictures().map(lambda image, seed: image, random=True)
    with pytest.raises(forebay.UsageError, match="two functions are named `lambda`"):
        pipeline.map(lambda image, seed: image + 1, random=True, name=None)
    with pytest.raises(forebay.UsageError, match="is not callable"):
        pipeline.map(3)
    with pytest.raises(forebay.UsageError, match="`parallel` is `'yes'`"):
        pipeline.map(unchanged, parallel="yes")


def test_a_function_that_no_step_calls_is_refused(tiny, tiny_files):
    for source, data in ((pictures().map(unchanged), tiny_files), (tiny, None)):
        with pytest.raises(forebay.UsageError, match="no step calls the function `unchangd`"):
            forebay.Loader(source, data=data, functions={"unchangd": unchanged})


def command(text: str, *arguments: Any) -> list[str]:
    """Runs a script in a process of its own: where one waits for ever, the test fails instead."""
    prelude = """
        import gc, os, signal, sys, threading, time
        import numpy, forebay
        # A test run in the background may have been told to ignore Ctrl-C, and passes that on.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        def pictures(pattern="class1/1*1.png"):
            return forebay.Pipeline.files(pattern, label=None).decode().resize((8, 8))
        def count(pipeline, **options):
            loader = forebay.Loader(pipeline, data=sys.argv[1], batch_size=8, **{"threads": 4, **options})
            return sum(len(batch["key"]) for batch in loader)
        def unchanged(image):
            return image
        def slow(image):
            time.sleep(0.002)
            return image
    """
    return [sys.executable, "-c", textwrap.dedent(prelude) + textwrap.dedent(text), *map(str, arguments)]


def output_of(text: str, *arguments: Any) -> list[str]:
    done = subprocess.run(command(text, *arguments), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_function_may_load_with_functions_itself(tiny_files):
    text = """
        calls = []
        def inner(image):
            calls.append(threading.get_ident())
            return image

        def outer(image):
            before = len(calls)
            assert count(pictures("class2/11*2.png").map(inner).map(slow)) == 11
            assert len(calls) == before + 11, "others ran meanwhile"
            return image
        print(count(pictures("class1/11*1.png").map(outer)))

        # An iteration that goes on between the calls, in the background.
        endless = iter(forebay.Loader(
            pictures("class2/*.png").map(inner), data=sys.argv[1], batch_size=1, threads=2, epochs=1000
        ))
        def mix(image):
            return image // 2 + next(endless)["image"][0] // 2
        print(count(pictures().map(mix)))

        # Through a thread-safe function, which has no turn of its own to pass on.
        def between(image):
            assert count(pictures("class2/11*2.png").map(inner)) == 11
            return image
        def outermost(image):
            assert count(pictures("class1/111*1.png").map(between, parallel=True)) == 1
            return image
        print(count(pictures("class1/11*1.png").map(outermost)), count(pictures().map(between, parallel=True)))
    """
    assert output_of(text, tiny_files) == ["11", "111", "11", "111"]


def test_a_function_may_build_and_profile_with_functions(tiny_files, tmp_path):
    text = """
        def outer(image):
            forebay.build(pictures().map(slow), sys.argv[2], data=sys.argv[1], strategy="slow", overwrite=True, threads=2)
            forebay.profile(pictures().map(slow), sys.argv[1], samples=8, runs=1, seconds=0, strategies=["slow"], work_dir=sys.argv[3])
            return image
        print(count(pictures("class1/111*1.png").map(outer)))
    """
    assert output_of(text, tiny_files, tmp_path / "set", tmp_path / "work") == ["1"]


def test_a_function_may_end_loaders(tiny_files):
    text = """
        # That of another, whose workers wait for a turn meanwhile; also where nobody but the garbage collector does it.
        def outer(image):
            other = forebay.Loader(pictures().map(slow), data=sys.argv[1], batch_size=4, threads=4)
            batches = iter(other)
            next(batches)
            time.sleep(0.01)
            if image[0, 0, 2] % 2:
                circle = [batches]
                circle.append(circle)
                del batches, circle
                gc.collect()
            else:
                other.close()
            return image
        print(count(pictures("class1/11*1.png").map(outer)))

        # Its own.
        def close(image):
            loader.close()
            return image
        loader = forebay.Loader(pictures().map(close), data=sys.argv[1], batch_size=4, threads=4)
        try:
            list(loader)
        except forebay.UsageError as error:
            print("ended" if "was ended" in str(error) else error)
        print(count(pictures().map(unchanged)))
    """
    assert output_of(text, tiny_files) == ["11", "ended", "111"]


def test_a_child_does_not_wait_for_calls_of_its_parent(tiny_files):
    text = """
        started = threading.Event()
        def held(image):
            started.set()
            time.sleep(0.3)
            return image

        def child(work):
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    work()
                    status = 0
                finally:
                    os._exit(status)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    return print("status", status)
                time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
            print("hangs")

        # While a worker of the parent is in a call, and others wait for their turn.
        batches = iter(forebay.Loader(pictures().map(held), data=sys.argv[1], batch_size=1, threads=4))
        next(batches)
        assert started.wait(30)
        for _ in range(3):
            child(lambda: count(pictures().map(unchanged)) == 111 or 1 / 0)
        del batches

        # Out of a call: the child goes on within it.
        def forks(image):
            child(lambda: count(pictures().map(unchanged)) == 111 or 1 / 0)
            return image
        print(count(pictures("class1/1111.png").map(forks)))
    """
    assert output_of(text, tiny_files) == ["status", "0"] * 4 + ["1"]


def test_ctrl_c_waits_for_one_call_only(tiny_files, tmp_path):
    text = """
        calls = 0
        def sleeps(image):
            global calls
            calls += 1
            print("called", calls, flush=True)
            time.sleep(0.5)
            return image
        try:
            if sys.argv[2] == "load":
                count(pictures().map(sleeps), threads=16)
            else:
                forebay.build(pictures().map(sleeps), sys.argv[2], data=sys.argv[1], strategy="sleeps", threads=16, shards=32)
        except KeyboardInterrupt:
            print("interrupted", calls, flush=True)
            raise
    """
    for what in ("load", str(tmp_path / "set")):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command(text, tiny_files, what), text=True, **pipes) as process:
            assert process.stdout.readline() == "called 1\n"
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            try:
                output, errors = process.communicate(timeout=30)
            finally:
                process.kill()
            seconds = time.monotonic() - begun
        assert "KeyboardInterrupt" in errors and output.split()[-2] == "interrupted"
        # One of each thread would be 16 calls, and 8 seconds.
        assert int(output.split()[-1]) <= 4 and seconds < 7, (output, seconds)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("work", ["load", "build"])
def test_functions_that_wait_for_memory_hold_up_nobody(tmp_path, parallel, work):
    """What a function returns is larger than what is free; whoever could free some needs the function, too."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(64):
        (folder / f"{number:02}.bin").write_bytes(bytes([number]))
    script = f"""
import numpy, time, forebay
def fill(content):
    time.sleep(0.001)
    return numpy.full(1_000_000, content[0], numpy.uint8)
pipeline = forebay.Pipeline.files("*.bin", label=None, order="sorted").map(fill, output="uint8[?]", parallel={parallel})
if {work!r} == "load":
    loader = forebay.Loader(pipeline, data={str(folder)!r}, batch_size=2, threads=4, memory="24MB")
    found = [int(image[0]) for batch in loader for image in batch["image"]]
    assert found == list(range(64)), found
else:
    built = forebay.build(pipeline, {str(tmp_path / "built")!r}, data={str(folder)!r}, strategy=pipeline.splits[-1], threads=4, memory="16MB")
    assert len(built) == 64
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_profile_counts_what_functions_cost(tiny_files, tmp_path):
    """Also of what was built, whose manifest knows functions by name only."""

    def busy(image):
        end = time.thread_time() + 0.004
        while time.thread_time() < end:
            pass
        return image

    pipeline = pictures().map(busy)
    options = {"samples": 8, "runs": 1, "threads": 1, "strategies": ["resized", "busy"], "work_dir": tmp_path}
    profile = json.loads(forebay.profile(pipeline, tiny_files, **options).to_json())
    costs = {strategy["name"]: strategy["online_cpu_seconds"] for strategy in profile["strategies"]}
    assert costs["resized"] >= 0.004 and costs["busy"] < 0.002, costs
