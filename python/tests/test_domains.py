"""Arrays and sound through their presets: what NumPy computes, and batches of clips that differ in length."""

from __future__ import annotations

import os
from pathlib import Path

import forebay
import numpy
import pytest

TYPES = ("uint8", "uint16", "int16", "int32", "int64", "float32", "float64")


def sound() -> Path:
    """The folder of speech among the test data."""
    root = os.environ.get("FOREBAY_TEST_DATA", Path(__file__).parents[3] / "shared" / "data")
    folder = Path(root) / "audio-flac" / "librispeech"
    if not folder.exists():
        pytest.skip(f"no test data at `{folder}`")
    return folder


@pytest.mark.parametrize("dtype", TYPES)
def test_root_mean_squares_are_numpys(tmp_path: Path, dtype: str) -> None:
    random = numpy.random.default_rng(3)
    arrays = {}
    for number in range(6):
        low, high = (0 if dtype.startswith("u") else -(2**15)), (200 if dtype == "uint8" else 2**15 - 1)
        values = random.uniform(low, high, (2500, 3))
        arrays[f"{number}.npy"] = values.astype(dtype)
        numpy.save(tmp_path / f"{number}.npy", arrays[f"{number}.npy"])
    pipeline = forebay.Pipeline.files("*.npy", label=None, field="tensor")
    pipeline = pipeline.step("decode_npy", type=f"{dtype}[2500, ?]").step("rms", period=500)
    seen = 0
    for batch in forebay.Loader(pipeline, data=tmp_path, batch_size=2):
        for key, found in zip(batch["key"], batch["tensor"], strict=True):
            values = arrays[key]
            if values.dtype.kind != "f":
                values = values.astype(numpy.float64)
            expected = [numpy.sqrt(numpy.mean(numpy.square(part))) for part in values.reshape(-1, 500)]
            numpys = numpy.array(expected, dtype=values.dtype)
            numpy.testing.assert_array_equal(numpy.asarray(found), numpys, strict=True)
            seen += 1
    assert seen == 6


def test_clips_that_differ_in_length_are_a_list_or_padded() -> None:
    folder = sound()
    options = {"data": folder, "batch_size": 4, "shuffle": False}
    lists = list(forebay.Loader("flac", collate="list", **options))
    padded = list(forebay.Loader("flac", collate="pad", pad_value=-1.0, **options))
    assert len(lists) == len(padded) > 1
    for one, other in zip(lists, padded, strict=True):
        longest = max(len(clip) for clip in one["audio"])
        assert other["audio"].shape == (len(one["audio"]), longest, 80)
        for clip, row, shape in zip(one["audio"], other["audio"], other["audio_shape"], strict=True):
            assert tuple(shape) == clip.shape
            numpy.testing.assert_array_equal(row[: len(clip)], clip)
            assert (row[len(clip) :] == -1.0).all()


def wav(path: Path, samples: numpy.ndarray, rate: int = 16_000) -> None:  # type: ignore[type-arg]
    import wave

    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())


def test_noise_of_a_folder_and_other_speeds(tmp_path: Path) -> None:
    for folder in ("clips", "noise"):
        (tmp_path / folder).mkdir()
    tone = (numpy.sin(numpy.arange(8000) * 0.05) * 8000).astype(numpy.int16)
    for number in range(4):
        wav(tmp_path / "clips" / f"{number}.wav", tone)
    wav(tmp_path / "noise" / "hum.wav", (numpy.sin(numpy.arange(900) * 0.9) * 3000).astype(numpy.int16), rate=8000)
    plain = forebay.Pipeline.files("*.wav", label=None, field="audio").step("decode_audio")
    noisy = plain.step("add_background_noise", sounds_path=str(tmp_path / "noise"), sample_rate=16_000, min_snr_db=10, max_snr_db=10, p=1.0)
    (batch,) = forebay.Loader(noisy, data=tmp_path / "clips", batch_size=4)
    for clip in batch["audio"]:
        added = numpy.asarray(clip, numpy.float64) - tone
        ratio = 10 * numpy.log10(numpy.square(tone, dtype=numpy.float64).sum() / numpy.square(added).sum())
        assert ratio == pytest.approx(10, abs=0.2)
    fast = plain.step("speed_perturbation", factors=[1.25])
    (batch,) = forebay.Loader(fast, data=tmp_path / "clips", batch_size=4)
    assert {len(clip) for clip in batch["audio"]} == {6400}
    with pytest.raises(forebay.PipelineError, match="folder of noises"):
        list(forebay.Loader(plain.step("add_background_noise", sounds_path=str(tmp_path / "none")), data=tmp_path / "clips"))


def test_documents_are_packed_once(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    lengths = [5, 9, 3, 14, 1, 7, 7, 2]
    for number, length in enumerate(lengths):
        (tmp_path / "texts" / f"{number}.txt").write_text(chr(97 + number) * length)
    tokens = forebay.Pipeline.files("*.txt", label=None, field="input_ids", order="sorted").step("tokenize")
    packed = tokens.pack(8, outputs=["position_ids", "segment_ids", "labels"])
    assert packed.splits == ["packed"] and packed.output["input_ids"] == "int32[8]"
    with pytest.raises(forebay.UsageError, match="works on the samples of a whole shard"):
        next(iter(forebay.Loader(packed, data=tmp_path / "texts")))
    dataset = forebay.build(packed, tmp_path / "set", data=tmp_path / "texts", strategy="packed", shards=1, progress=False)
    (batch,) = forebay.Loader(dataset, batch_size=10)
    flat = batch["input_ids"].reshape(-1)
    assert flat[: sum(lengths)].tolist() == [97 + number for number, length in enumerate(lengths) for _ in range(length)]
    assert not flat[sum(lengths) :].any() and len(batch["input_ids"]) == 6
    starts = batch["position_ids"] == 0
    assert (batch["labels"][starts] == -100).all()
    assert (batch["segment_ids"][0] == [1] * 5 + [2] * 3).all()
    whole = tokens.pack(16, packing_strategy="bfd")
    dataset = forebay.build(whole, tmp_path / "whole", data=tmp_path / "texts", strategy="packed", shards=1, progress=False)
    (batch,) = forebay.Loader(dataset, batch_size=10)
    for ids, segments in zip(batch["input_ids"], batch["segment_ids"], strict=True):
        for segment in range(1, segments.max() + 1):
            letters = set(ids[segments == segment].tolist())
            assert len(letters) == 1 and (segments == segment).sum() == lengths[letters.pop() - 97], "a document is whole"
