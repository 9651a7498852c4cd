"""Diagnosed stalls are those that were constructed, whatever the loader is."""

from __future__ import annotations

import functools
import importlib.util
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from queue import Queue

import forebay
import numpy
import pytest

#: Samples in a batch of the constructed loaders, and how far a diagnosed share may be from the constructed one.
BATCH = 10
POINTS = 0.05


def in_one_of_some_tries(test: Callable[..., None]) -> Callable[..., None]:
    """What is timed with real clocks: another process may disturb a try or two, and have ended after a pause; a wrong diagnosis is wrong in all.

    `make python-test` runs what is marked so after all else, one at a time.
    """
    pauses_seconds = [0, 0, 5, 10, 20]

    @functools.wraps(test)
    def tried(*arguments: object, **named: object) -> None:
        for attempt, pause in enumerate(pauses_seconds, 1):
            time.sleep(pause)
            try:
                return test(*arguments, **named)
            except AssertionError:
                if attempt == len(pauses_seconds):
                    raise
        return None

    return pytest.mark.timed(tried)


class Constructed:
    """A loader of known rates, like torch's: a thread fetches, another prepares, and the trainer takes. All overlap."""

    def __init__(self, fetch_seconds: float, prepare_seconds: float, batches: int = 60) -> None:
        self.fetch_seconds, self.prepare_seconds, self.batches = fetch_seconds, prepare_seconds, batches
        self.num_workers = 1

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[tuple[numpy.ndarray, numpy.ndarray]]:
        fetched: Queue[int] = Queue(2)
        prepared: Queue[int] = Queue(2)
        ended = threading.Event()

        def work(seconds: float, source: Queue[int] | None, target: Queue[int]) -> None:
            due = time.perf_counter()
            for number in range(self.batches):
                if source is not None:
                    source.get()
                if ended.is_set():
                    return
                # By a schedule, so that sleeping too long does not add up.
                due = max(due, time.perf_counter() - 0.002) + seconds
                time.sleep(max(0.0, due - time.perf_counter()))
                target.put(number)

        for stage in ((self.fetch_seconds, None, fetched), (self.prepare_seconds, fetched, prepared)):
            threading.Thread(target=work, args=stage, daemon=True).start()
        try:
            for _ in range(self.batches):
                prepared.get()
                yield numpy.zeros((BATCH, 4)), numpy.zeros(BATCH)
        finally:
            ended.set()


class Trainer:
    """Takes a batch every so often, by a schedule, as an accelerator does."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.free = seconds, 0.0

    def __call__(self, batch: object) -> None:
        self.free = max(self.free, time.perf_counter() - 0.002) + self.seconds
        time.sleep(max(0.0, self.free - time.perf_counter()))


@pytest.mark.parametrize(
    ("trainer", "prepare", "fetch", "bound"),
    [
        (0.010, 0.020, 0.040, "storage"),
        (0.010, 0.040, 0.020, "cpu"),
        (0.010, 0.015, 0.030, "storage"),
        (0.040, 0.020, 0.010, "trainer"),
        (0.010, 0.001, 0.020, "storage"),
    ],
)
@in_one_of_some_tries
def test_a_plain_iterable_is_diagnosed_as_it_was_constructed(trainer, prepare, fetch, bound):
    cold, warm = Constructed(fetch, prepare), Constructed(0.0, prepare)
    found = forebay.diagnose(Trainer(trainer), cold, warm=warm, seconds=0.6)
    whole = max(trainer, prepare, fetch)
    prep_stall = (max(prepare, trainer) - trainer) / whole
    fetch_stall = (whole - max(prepare, trainer)) / whole
    assert found.bound_by == bound, found
    assert abs(found.prep_stall_share - prep_stall) < POINTS, found
    assert abs(found.fetch_stall_share - fetch_stall) < POINTS, found
    rates = found.content["measured"]
    assert abs(rates["trainer"]["samples_per_second"] * trainer / BATCH - 1) < 0.1, rates


@in_one_of_some_tries
def test_what_ifs_hold_when_the_resource_is_changed():
    trainer, prepare, fetch = 0.010, 0.015, 0.040
    warm = Constructed(0.0, prepare)
    found = forebay.diagnose(Trainer(trainer), Constructed(fetch, prepare), warm=warm, seconds=0.6)
    promised = {row["change"]: row["samples_per_second"] for row in found.what_ifs}
    twice = forebay.diagnose(Trainer(trainer), Constructed(fetch / 2, prepare), warm=warm, seconds=0.6)
    got = twice.content["measured"]["cold"]["samples_per_second"]
    assert abs(promised["twice the disk"] / got - 1) < 0.1, (promised, got)
    in_memory = twice.content["measured"]["warm"]["samples_per_second"]
    assert abs(promised["100 % of the data in memory"] / in_memory - 1) < 0.1, (promised, in_memory)


@in_one_of_some_tries
def test_without_more_only_the_waiting_is_known():
    found = forebay.diagnose(Trainer(0.005), Constructed(0.0, 0.010), seconds=0.3)
    assert abs(found.wait_share - 0.5) < 0.08, found
    assert (found.prep_stall_share, found.bound_by, found.what_ifs) == (None, "unknown", [])
    assert "could not be separated" in str(found) and "files=" in str(found)


@in_one_of_some_tries
def test_a_loader_of_forebay_is_diagnosed_and_stays_where_it_is(tiny):
    # Records have a few hundred bytes, so that this is a few thousand samples per second: fewer than are prepared.
    loader = forebay.Loader(tiny, batch_size=16, threads=2, storage="custom:read=1MB/s")
    before = loader.state_dict()
    found = forebay.diagnose(Trainer(0.001), loader, seconds=1)
    assert loader.state_dict() == before
    assert found.bound_by == "storage" and found.fetch_stall_share > 0.5, found
    assert {row["resource"] for row in found.what_ifs} == {"cores", "memory", "disk"}
    assert "<td>twice the disk</td>" in found._repr_html_() and "what if" in repr(found)


def test_files_show_what_forebay_would_give(photos):
    files = sorted(photos.rglob("*.jpg"))

    class Pictures:
        def __iter__(self) -> Iterator[list[bytes]]:
            for start in range(0, len(files), 5):
                yield [path.read_bytes() for path in files[start : start + 5]]

    found = forebay.diagnose(Trainer(0.005), Pictures(), files=photos, seconds=0.3)
    assert "Forebay loads these files with the pipeline `imagenet` at" in found.sentences[-1]
    assert found.content["measured"]["data_bytes"] == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize(("step", "loader"), [(None, [1, 2]), (print, []), (print, iter([numpy.zeros(3)]))])
def test_what_cannot_be_diagnosed_is_said(step, loader, capsys):
    with pytest.raises(forebay.UsageError, match="hint: "):
        forebay.diagnose(step, loader, seconds=0.01)


@pytest.mark.parametrize("peer", ["torch", "webdataset"])
@in_one_of_some_tries
def test_peers_are_diagnosed(peer, photos):
    if importlib.util.find_spec(peer) is None:
        print(f"skipped: {peer} is not installed")
        pytest.skip(f"{peer} is not installed")
    if peer == "torch":
        import torch.utils.data

        class Pictures(torch.utils.data.Dataset):  # type: ignore[misc,type-arg]
            root = str(photos)

            def __len__(self) -> int:
                return 200

            def __getitem__(self, index: int) -> numpy.ndarray:
                time.sleep(0.002)
                return numpy.zeros(3)

        loader = torch.utils.data.DataLoader(Pictures(), batch_size=10)
    else:
        import webdataset

        samples = [{"x": numpy.zeros(3)} for _ in range(200)]
        loader = webdataset.DataPipeline(lambda: iter(samples), webdataset.map(lambda one: time.sleep(0.002) or one), webdataset.batched(10))
    found = forebay.diagnose(Trainer(0.010), loader, seconds=0.4)
    # Neither overlaps without workers: 20 ms of preparation, then 10 ms of training.
    assert abs(found.wait_share - 2 / 3) < 0.1, found


class Writer:
    def __init__(self) -> None:
        self.scalars: list[tuple[str, float, int]] = []

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.scalars.append((tag, scalar_value, global_step))


@in_one_of_some_tries
def test_a_watch_sees_the_waiting(tmp_path):
    writer, step = Writer(), Trainer(0.010)
    with forebay.watch(Constructed(0.0, 0.020, 40), every=0.2, log=tmp_path / "waits.jsonl", writer=writer, line=False) as watched:
        assert len(watched) == 40 and watched.num_workers == 1
        batches = 0
        for batch in watched:
            step(batch)
            batches += 1
    figures = watched.figures()
    assert batches == figures["batches"] == 40 and figures["samples"] == 40 * BATCH
    assert abs(figures["wait_share"] - 0.5) < 0.1, figures
    assert figures["prep_stall_share"] is None
    lines = [json.loads(line) for line in (tmp_path / "waits.jsonl").read_text().splitlines()]
    assert len(lines) >= 3 and lines[-1]["batches"] == 40
    assert ("forebay/samples", 400.0, 40) in writer.scalars
    assert repr(watched).startswith("waited ") and "<p>waited" in watched._repr_html_()


def test_a_watch_begins_anew_and_keeps_what_it_saw(tiny):
    watched = forebay.watch(forebay.Loader(tiny, batch_size=100), line=False)
    for batches in (100, 30):
        with watched:
            for number, _ in enumerate(watched, 1):
                if number == batches:
                    break
        figures = watched.figures()
        assert figures["batches"] == batches
        for _ in watched:
            break
        assert watched.figures() == figures, "what comes after the block is not in it"


@in_one_of_some_tries
def test_a_watch_divides_the_waits_of_our_loader(tiny, tmp_path):
    loader = forebay.Loader(tiny, batch_size=16, threads=2, storage="custom:read=1MB/s")
    with forebay.watch(loader, log=tmp_path / "waits.csv", line=False, prometheus_port=0) as watched:
        port = watched.prometheus_port
        for number, _ in enumerate(watched):
            time.sleep(0.001)
            if number == 200:
                break
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
        figures = watched.figures()
    assert figures["fetch_stall_share"] > 0.4 and figures["prep_stall_share"] < 0.2, figures
    assert "# TYPE forebay_wait_share gauge\nforebay_wait_share 0." in text
    header, *rows = (tmp_path / "waits.csv").read_text().splitlines()
    assert header.startswith("seconds,batches,samples") and rows
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=1)


def test_advice_has_its_figures_and_commands(photos, tmp_path):
    advice = forebay.advise(photos, "cv", trainer=100_000, seconds=0.2, work_dir=tmp_path, progress=False)
    assert {"memory", "bottleneck", "offline steps", "mix", "quality", "cache"} <= set(advice.answers)
    for sentence in advice.answers.values():
        assert any(letter.isdigit() for letter in sentence) or "no" in sentence, sentence
    assert advice.commands[0].startswith(("forebay build cv --data", "forebay load cv --data"))
    assert advice.commands[-1].endswith("--trainer 100000")
    assert "Run:" in repr(advice) and "<table>" in advice._repr_html_()
