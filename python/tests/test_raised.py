"""What Python functions raise or give wrongly: it stays what it is, says where it was, and is never an empty epoch."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from conftest import make_photos
from PIL import Image

SAMPLES = 20


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_photos(tmp_path_factory.mktemp("raised"), SAMPLES)


def pictures() -> forebay.Pipeline:
    return forebay.Pipeline.files("**/*.jpg", order="sorted").decode().center_crop(64)


def load(pipeline: forebay.Pipeline, data: Path, **options: Any) -> forebay.Loader:
    loader = forebay.Loader(pipeline, data=data, batch_size=4, threads=2, **options)
    for _ in loader:
        pass
    return loader


def in_all_ways(pipeline: forebay.Pipeline, data: Path, folder: Path, **options: Any) -> list[Any]:
    """What calls the functions of a pipeline, whose last state has a function's name."""
    state = pipeline.splits[-1]
    return [
        lambda: load(pipeline, data, **options),
        lambda: load(pipeline, data, cache="1GB", **options),
        lambda: forebay.build(pipeline, folder / "set", data=data, strategy=state, **options),
        lambda: forebay.profile(pipeline, data, samples=8, runs=1, seconds=0, work_dir=folder, strategies=[state], **options),
        lambda: forebay.profile(pipeline, data, samples=8, runs=1, seconds=0, work_dir=folder, strategies=["unprocessed"], **options),
        lambda: forebay.profile(pipeline, data, samples=8, fast=True, seconds=0, work_dir=folder, **options),
    ]


class Odd(Exception):
    """It cannot be made again from its message, and knows more than that."""

    def __init__(self, first: int, second: object) -> None:
        super().__init__("odd")
        self.first, self.second = first, second


def raises(image: Any) -> Any:
    try:
        return {}["nothing"]
    except KeyError as error:
        raise Odd(1, image.shape) from error


def test_what_a_function_raises_stays_what_it_is(data, tmp_path):
    for number, run in enumerate(in_all_ways(pictures().map(raises), data, tmp_path)):
        with pytest.raises(Odd) as caught:
            run()
        error = caught.value
        assert type(error) is Odd and (error.first, error.second) == (1, (64, 64, 3)), number
        assert isinstance(error.__cause__, KeyError)
        (note,) = error.__notes__
        assert note.startswith("in the function `raises`, on sample `") and ".jpg`" in note
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert frames[-1] == "raises" and frames[0].startswith("test_what")
        assert not isinstance(error, forebay.Error)


def test_one_exception_that_is_raised_again_and_again_gets_one_note(data):
    kept = ValueError("kept")

    def again(image):
        raise kept

    kept.add_note("the user's own")
    for _ in range(20):
        with pytest.raises(ValueError) as caught:
            load(pictures().map(again), data, shuffle=False)
        assert caught.value is kept
        own, ours = kept.__notes__
        assert own == "the user's own" and ours.startswith("in the function `again`, on sample `")


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_asks_for_an_end_is_no_error_to_be_skipped(data, tmp_path, kind, on_error):
    def ends(image):
        raise kind("enough")

    for run in in_all_ways(pictures().map(ends), data, tmp_path, on_error=on_error):
        with pytest.raises(kind, match="enough"):
            run()


def test_the_end_of_an_iterator_in_a_function_is_not_the_end_of_the_loop(data):
    few = iter(range(7))

    def takes(image):
        next(few)
        return image

    loader = forebay.Loader(pictures().map(takes), data=data, batch_size=2, threads=1)
    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        list(loader)
    assert isinstance(caught.value.__cause__, StopIteration)


def test_samples_on_which_a_function_fails_are_skipped_and_counted(data, tmp_path):
    def picky(image):
        if image[0, 0, 0] % 3 == 0:
            raise Odd(3, None)
        return image

    pipeline = pictures().map(picky)
    loader = load(pipeline, data, on_error="skip")
    assert 0 < loader.skipped < SAMPLES and len(loader.skipped_samples) == loader.skipped
    entry = loader.skipped_samples[0]
    assert "step `picky`: Odd: odd (File " in entry.reason and entry.key in entry.reason
    dataset = forebay.build(pipeline, tmp_path / "set", data=data, strategy="picky", on_error="skip")
    assert len(dataset.skipped_samples) == dataset.skipped == loader.skipped == SAMPLES - len(dataset)
    with pytest.raises(Odd):
        load(pipeline, data)


def test_a_function_that_always_fails_is_no_empty_epoch(data, tmp_path):
    for number, run in enumerate(in_all_ways(pictures().map(raises), data, tmp_path, on_error="skip")):
        with pytest.raises(Odd) as caught:
            run()
        assert "in the function `raises`, on sample `" in caught.value.__notes__[-1], number
    with pytest.raises(Odd) as caught:
        load(pictures().map(raises), data, on_error="skip")
    assert f"all samples ({SAMPLES}) failed so and were skipped" in caught.value.__notes__[-1]


def test_samples_that_all_fail_otherwise_are_no_empty_epoch(data, tmp_path):
    pipeline = pictures().map(lambda image: image / 2)
    with pytest.raises(forebay.Error, match="not one of"):
        load(pipeline, data, on_error="skip")
    small = forebay.Pipeline.files("**/*.jpg").decode().center_crop(5000)
    with pytest.raises(forebay.Error, match="not one of"):
        load(small, data, on_error="skip")


def test_the_rest_of_an_epoch_may_be_damaged(own_photos):
    for path in sorted(own_photos.rglob("*.jpg"))[-2:]:
        path.write_bytes(b"no picture at all")
    loader = forebay.Loader(pictures(), data=own_photos, batch_size=48, on_error="skip")
    batches = iter(loader)
    next(batches)
    resumed = forebay.Loader(pictures(), data=own_photos, batch_size=48, on_error="skip")
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == [] and resumed.skipped == 2


@pytest.mark.parametrize(
    ("function", "output", "message"),
    [
        (lambda image: image / 2, None, r"gave float64\[64, 64, 3\] for field `image`, but should give uint8\[64, 64, 3\]"),
        (lambda image: image[:5], None, r"gave uint8\[5, 64, 3\] for field `image`"),
        (lambda image: None, None, "gave `None` for field `image`"),
        (lambda image: "text", None, r"gave `'text'` \(str\) for field `image`"),
        (lambda image: object, None, r"gave .* \(type\) for field `image`"),
        (lambda image: 2.5, "int", r"gave float64\[\] for field `image`, but should give int"),
        (lambda image: 1 << 70, "int", "gave .* for field `image`, but should give int"),
        (lambda image: image, "text", r"gave uint8\[64, 64, 3\] for field `image`, but should give text"),
        (lambda image: image, {"a": "int", "b": "int"}, r"gave uint8.*but should give a dictionary of the fields `a`, `b`"),
        (lambda image: {"a": 1}, {"a": "int", "b": "int"}, "gave a dictionary without the field `b`"),
        (lambda image: {"a": 1, "b": 2}, {"a": "int"}, r"gave the field `'b'` \(str\), but should give only the fields `a`"),
    ],
)
def test_what_a_function_gives_wrongly_is_named(data, function, output, message):
    pipeline = pictures().map(function, output=output, name="wrong")
    with pytest.raises(forebay.PipelineError, match=f"the function `wrong` {message}") as caught:
        load(pipeline, data)
    error = caught.value
    assert error.step == "wrong" and error.key.endswith(".jpg") and "\nhint: " in str(error)
    assert f"sample `{error.key}`" in str(error)


def test_what_an_array_raises_when_it_is_looked_at_stays_what_it_is(data):
    class Strange:
        def __array__(self, *_: object, **__: object) -> Any:
            raise Odd(2, None)

    with pytest.raises(Odd):
        load(pictures().map(lambda image: Strange()), data)


@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_files_beside_a_sample_that_are_nowhere_are_an_error(tmp_path, on_error):
    for number in range(5):
        Image.fromarray(numpy.zeros((9, 9, 3), numpy.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "unlike.png").write_bytes(b"")
    pipeline = forebay.Pipeline.files("*.png", label=None, sidecars={"mask": "masks/{stem}.png"})
    with pytest.raises(forebay.UsageError, match=r"`masks/\{stem\}.png`.*`masks/[0-9].png`") as caught:
        load(pipeline, tmp_path, on_error=on_error)
    assert "field `mask`" in str(caught.value)
    # One is enough: then those that are missing are samples that cannot be read.
    Image.fromarray(numpy.zeros((9, 9), numpy.uint8)).save(tmp_path / "masks" / "4.png")
    if on_error == "skip":
        assert load(pipeline.decode_mask(), tmp_path, on_error="skip").skipped == 4
    else:
        with pytest.raises(FileNotFoundError):
            load(pipeline, tmp_path)
