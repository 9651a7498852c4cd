"""What people do to a loader that nobody planned for: peek, copy, share, leave it alive, feed it odd values."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import forebay
import numpy
import pytest


def test_an_iteration_that_is_alive_at_exit_ends_quietly(photos):
    script = """
        import sys, numpy, forebay

        def noise(image, *, seed):
            return image + numpy.random.default_rng(seed).normal(size=image.shape).astype(numpy.float32)

        pipeline = forebay.Pipeline.files("**/*.jpg").decode().center_crop(200)
        pipeline = pipeline.map(noise, output="float32[200, 200, 3]", random=True)
        batches = iter(forebay.Loader(pipeline, data=sys.argv[1], batch_size=4, shuffle=True))
        print(next(batches)["image"].shape)
    """
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(script), str(photos)], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout) == (0, "(4, 200, 200, 3)\n"), done.stderr


def test_a_copy_begins_again_as_the_loader_does_unless_it_is_told_to_go_on(tiny):
    loader = forebay.Loader(tiny, batch_size=100)
    peeked = iter(loader)
    next(peeked)
    for other in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        state = other.state_dict()
        assert sum(len(batch["key"]) for batch in other) == 10_000
        other.load_state_dict(state)
        assert sum(len(batch["key"]) for batch in other) == 9_900
    assert sum(len(batch["key"]) for batch in loader) == 10_000


def test_threads_share_an_iterator(tiny):
    loader = forebay.Loader(tiny, batch_size=50, shuffle=True)
    batches = iter(loader)
    found: list[list[str]] = [[] for _ in range(4)]

    def take(keys: list[str]) -> None:
        for batch in batches:
            keys += batch["key"]

    threads = [threading.Thread(target=take, args=(keys,)) for keys in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    keys = [key for part in found for key in part]
    assert len(keys) == len(set(keys)) == 10_000
    assert loader.epoch == 1


def test_closing_a_loader_that_another_thread_waits_for_is_an_error_there(photos):
    def slow(image):
        time.sleep(0.3)
        return image

    pipeline = forebay.Pipeline.files("**/*.jpg").decode().center_crop(64).map(slow)
    loader = forebay.Loader(pipeline, data=photos, batch_size=32)
    raised: list[BaseException] = []

    def take() -> None:
        try:
            list(loader)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    time.sleep(0.5)
    loader.close()
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(raised[0], forebay.UsageError) and "was ended" in str(raised[0])
    assert loader.epoch == 0


def test_numbers_in_a_table_of_labels_stay_what_they_are(tmp_path):
    from PIL import Image

    for number in range(12):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{number}.png")

    def labels(numbers):
        (tmp_path / "labels.tsv").write_text("".join(f"{place}.png\t{label}\n" for place, label in enumerate(numbers)))
        pipeline = forebay.Pipeline.files("*.png", label="table", table="labels.tsv").decode()
        loader = forebay.Loader(pipeline, data=tmp_path, batch_size=12)
        (batch,) = loader
        found = {int(key.split(".")[0]): int(label) for key, label in zip(batch["key"], batch["label"], strict=True)}
        return [found[place] for place in range(12)], loader.classes

    assert labels(range(12)) == (list(range(12)), [str(number) for number in range(12)])
    assert labels(range(5, 17)) == (list(range(5, 17)), [])
    assert labels("abcabcabcabc") == ([0, 1, 2] * 4, ["a", "b", "c"])


def test_a_function_may_give_arrays_of_another_byte_order(photos):
    swapped = forebay.Pipeline.files("**/*.jpg").decode()
    swapped = swapped.map(lambda image: numpy.full(2, 7, ">i4"), output="int32[2]")
    batch = next(iter(forebay.Loader(swapped, data=photos, batch_size=2)))
    assert batch["image"].tolist() == [[7, 7], [7, 7]]


def test_two_functions_in_a_row_and_a_plan_of_them(photos, tmp_path):
    def twice(image):
        return image // 2

    def thrice(image):
        return image // 3

    pipeline = forebay.Pipeline.files("**/*.jpg").decode().center_crop(32).map(twice).map(thrice, fields="image")
    assert pipeline.splits[-2:] == ["twice", "thrice"]
    plan = forebay.profile(pipeline, photos, samples=8, runs=1, seconds=0, strategies=["thrice"], work_dir=tmp_path).plan()
    dataset = plan.build(tmp_path / "built")
    assert len(dataset) == 50
    plan.save(tmp_path / "plan.json")
    functions = {"twice": twice, "thrice": thrice}
    again = forebay.build(tmp_path / "plan.json", tmp_path / "again", functions=functions)
    assert len(again) == 50


def test_a_fast_profile_answers_by_the_cost_model(photos, tmp_path):
    fast = forebay.profile("cv", photos, samples=20, fast=True, seconds=0, work_dir=tmp_path, encodings=["gzip"])
    assert "by the cost model" in repr(fast) and fast.content["method"]["runs"] == "fast"
    assert "resized+gzip" in [row["name"] for row in fast.strategies]
    assert "over 2 runs" in fast.plan().reason, "what leads was run to check it"


def test_names_that_a_batch_uses_itself_are_refused(photos, tmp_path):
    with pytest.raises(forebay.PipelineError, match="cannot be called `key`"):
        forebay.Pipeline.files("**/*.jpg", field="key")
    pipeline = forebay.Pipeline.files("**/*.jpg").decode()
    with pytest.raises(forebay.PipelineError, match="cannot be called `key`"):
        pipeline.map(lambda image: {"key": image}, output={"key": "uint8[?, ?, 3]"})
    both = pipeline.map(
        lambda image: {"image": image, "image_shape": image[0, 0]},
        output={"image": "uint8[?, ?, 3]", "image_shape": "uint8[3]"},
    )
    with pytest.raises(forebay.UsageError, match="`image_shape`, which is a field already"):
        forebay.Loader(both, data=photos, collate="pad")


def test_wrong_arguments_are_named(photos, tmp_path, monkeypatch):
    def refused(match, source="cv", **arguments):
        with pytest.raises(forebay.UsageError, match=match):
            forebay.Loader(source, **{"data": photos, **arguments})

    refused("`shuffle` is `'no'`", shuffle="no")
    refused("`drop_last` is `'false'`", drop_last="false")
    refused("`even` has no effect with `drop_last`", drop_last=True, even="pad")
    refused("`pad_value` is `'x'`", pad_value="x")
    refused("`pad_value` is `'x'`", pad_value="x", collate="pad")
    refused("pass it as `data`", data=3)
    refused("cannot take its samples from `3`", source=3)
    refused("must be a folder", data=sorted(photos.rglob("*.jpg"))[0])
    # A folder of the user's that is called like a preset.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cv").mkdir()
    assert forebay.Loader("cv", data=photos).samples == 50


def test_what_would_have_no_effect_is_refused(photos, tmp_path):
    def refused(name, other, call, *arguments, **named):
        with pytest.raises(forebay.UsageError, match=f"`{name}` has no effect without `{other}`\nhint: pass `{other}`"):
            call(*arguments, **named)

    files, tar = forebay.Pipeline.files, forebay.Pipeline.tar
    refused("shuffle_window", "shuffle=True", forebay.Loader, "cv", data=photos, shuffle_window=1000)
    refused("streams", "shuffle=True", forebay.Loader, "cv", data=photos, streams=4)
    refused("pad_value", 'collate="pad"', forebay.Loader, "cv", data=photos, pad_value=0.0)
    refused("runs", "fast=False", forebay.profile, "cv", photos, runs=3, fast=True)
    refused("encodings", "strategies=None", forebay.profile, "cv", photos, encodings=["png"], strategies=["decoded"])
    refused("table", 'label="table"` or `where', files, table="labels.tsv")
    refused("table", 'label="table"` or `where', files, label=None, table="labels.tsv")
    refused("seed", 'order="shuffled"', files, order="sorted", seed=1)
    refused("seed", 'order="shuffled"', tar, seed=1)
    # Where each has one, it is taken.
    forebay.Loader("cv", data=photos, shuffle=True, shuffle_window=1000, streams=4)
    forebay.Loader("cv", data=photos, collate="pad", pad_value=1)
    assert files(seed=1) != files() == files(order="shuffled", seed=42)
    assert tar(order="shuffled", seed=1) != tar(order="shuffled", seed=2)
    files(label="table", table="labels.tsv")
