"""Writes audio_and_text.txt beside itself: what the tools that steps of sound and text are named after make of made-up sound and tokens.

    python crates/pipeline/tests/golden/audio_and_text.py        # wants audiomentations, torchaudio, transformers and trl

A line is the call, what the numbers are, and the numbers. Of what is drawn there are, as in draws.txt, the 0 %, 5 %, ..., 100 % quantiles of
many draws. Sound, spectrogram, tokens and documents are made by formulas that `tests/it/audio_and_text.rs` has, too.
"""

from __future__ import annotations

import random
import tempfile
import wave
from collections.abc import Iterable
from pathlib import Path

import audiomentations
import numpy as np
import pyarrow as pa
import torch
import torchaudio
import transformers
import trl
from tokenizers import Tokenizer, models
from torchaudio.transforms import SpecAugment, SpeedPerturbation
from trl.data_utils import _pack_bfd, _pack_wrapped

RATE = 8000
lines: list[str] = []


def put(call: str, name: str, numbers: Iterable[object]) -> None:
    lines.append("\t".join([call, name, *map(str, numbers)]))


def put_floats(call: str, name: str, numbers: Iterable[float]) -> None:
    put(call, name, (f"{number:.7g}" for number in numbers))


def put_draws(call: str, name: str, numbers: list[float]) -> None:
    put_floats(call, name, np.quantile(numbers, np.linspace(0, 1, 21), method="inverted_cdf"))


def tone(samples: int) -> np.ndarray:
    """A sound that single precision has exactly, in sixteen bits."""
    at = np.arange(samples)
    return np.round(9000 * np.sin(0.05 * at) + 4000 * np.sin(0.31 * at + 1)).astype(np.int16)


def noise(samples: int) -> np.ndarray:
    at = np.arange(samples, dtype=np.int64)
    return ((at * at * 7919 + at * 104_729) % 20_011 - 10_005).astype(np.int16)


def as_floats(sound: np.ndarray) -> np.ndarray:
    return sound.astype(np.float32) / np.float32(32768)


def recording(folder: Path, name: str, sound: np.ndarray) -> Path:
    with wave.open(str(folder / name), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(sound.astype("<i2").tobytes())
    return folder / name


def gains() -> None:
    for decibels in (-12.0, 5.5):
        made = audiomentations.Gain(decibels, decibels, p=1)(as_floats(tone(40)), RATE)
        put_floats(f"Gain({decibels})", "samples", made)
    transform = audiomentations.Gain(p=1)
    drawn = [float(transform(np.ones(1, np.float32), RATE)[0]) for _ in range(20_000)]
    put_draws("Gain()", "decibels", [20 * np.log10(factor) for factor in drawn])


def white_noise() -> None:
    loud, soft = as_floats(tone(2000)), as_floats(tone(2000) // 8)
    for name, sound in (("mono", loud), ("stereo", np.stack([loud, soft]))):
        call = f"AddGaussianSNR(15), {name}"
        transform = audiomentations.AddGaussianSNR(15, 15, p=1)
        added = np.concatenate([(transform(sound, RATE) - sound).flatten() for _ in range(20)])
        put_floats(call, "deviation", [transform.parameters["noise_std"]])
        put_draws(call, "noise", added)
    transform = audiomentations.AddGaussianSNR(p=1)
    rms, ratios = np.sqrt(np.mean(loud.astype(np.float64) ** 2)), []
    for _ in range(20_000):
        transform.randomize_parameters(loud, RATE)
        ratios.append(20 * np.log10(rms / transform.parameters["noise_std"]))
    put_draws("AddGaussianSNR()", "decibels", ratios)


def background_noise(folder: Path) -> None:
    # As long as the sound, shorter, and shorter than half of it.
    for samples in (100, 70, 30):
        file = recording(folder, f"{samples}.wav", noise(samples))
        made = audiomentations.AddBackgroundNoise(file, 6, 6, p=1)(as_floats(tone(100)), RATE)
        put_floats(f"AddBackgroundNoise(6), {samples} samples", "samples", made)
    # For what is drawn: what they are of does not matter here.
    sounds = folder / "sounds"
    sounds.mkdir()
    for number in range(3):
        recording(sounds, f"{number}.wav", noise(1000))
    call = "AddBackgroundNoise()"
    transform = audiomentations.AddBackgroundNoise(sounds, p=1)
    ratios, files, offsets = [], [], []
    for _ in range(20_000):
        transform.randomize_parameters(as_floats(tone(100)), RATE)
        ratios.append(transform.parameters["snr_db"])
        files.append(int(Path(transform.parameters["noise_file_path"]).stem))
        offsets.append(int(transform.parameters["offset"] * RATE))
    put_draws(call, "decibels", ratios)
    put_draws(call, "file", files)
    put_draws(call, "offset", offsets)


def speeds() -> None:
    sound = torch.from_numpy(tone(300).astype(np.float32))
    for factor in (0.9, 1.1, 1.5):
        made, _ = SpeedPerturbation(16_000, [factor])(sound)
        put(f"SpeedPerturbation({factor})", "samples", made.round().clamp(-32768, 32767).to(torch.int16).tolist())
    transform = SpeedPerturbation(16_000, [0.9, 1.0, 1.1])
    put_draws("SpeedPerturbation()", "samples", [len(transform(sound)[0]) for _ in range(20_000)])


def masked_spectrogram() -> None:
    frame, band = np.meshgrid(np.arange(30), np.arange(12), indexing="ij")
    spectrogram = torch.from_numpy((frame * 7919 + band * band * 104_729 + band * 13) % 1551 / 100 - 11.5).to(torch.float32)
    made = SpecAugment(2, 12, 2, 6)(spectrogram.T).T
    (filled,) = set(made[made != spectrogram].tolist())
    put_floats("SpecAugment(2, 12, 2, 6)", "filled", [filled])


def masked_tokens() -> None:
    names = ["[PAD]", "[MASK]", *(f"token{number}" for number in range(2, 500))]
    words = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="[PAD]"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", mask_token="[MASK]")
    # Every hundredth token is padding.
    at = np.arange(200_000)
    tokens = np.where(at % 100 == 0, 0, 2 + at * 7 % 98)
    for given in ((0.15, 0.8, 0.1), (0.4, 0.5, 0.3), (0.2, 1.0, 0.0), (0.2, 0.0, 1.0), (0.2, 0.0, 0.0)):
        collator = transformers.DataCollatorForLanguageModeling(
            tokenizer, mlm_probability=given[0], mask_replace_prob=given[1], random_replace_prob=given[2]
        )
        (batch,) = [collator([{"input_ids": tokens, "special_tokens_mask": (tokens == 0).astype(int)}])]
        made, labels = batch["input_ids"][0].numpy(), batch["labels"][0].numpy()
        hidden = labels != -100
        assert (labels[hidden] == tokens[hidden]).all() and (made[~hidden] == tokens[~hidden]).all()
        masked, kept = hidden & (made == 1), hidden & (made == tokens)
        other = hidden & ~masked & ~kept
        call = f"DataCollatorForLanguageModeling{given}"
        put(call, "special, hidden, masked, other, kept", ((hidden & (tokens == 0)).sum(), hidden.sum(), masked.sum(), other.sum(), kept.sum()))
        if other.any():
            put_draws(call, "token", made[other])


def packed() -> None:
    lengths = [(number * number * 37 + number * 11) % 61 for number in range(200)]
    begins = np.cumsum([1, *lengths])
    documents = [list(range(begin, begin + length)) for begin, length in zip(begins, lengths, strict=False)]
    table = pa.table({"input_ids": documents})
    for length in (48, 64):
        for name, overflow in (("bfd", "truncate"), ("bfd_split", "split")):
            windows = _pack_bfd(table, length, overflow).to_pydict()
            found = []
            for tokens, pieces in zip(windows["input_ids"], windows["seq_lengths"], strict=True):
                places = np.cumsum([0, *pieces])
                found.append(sorted((tokens[place], piece) for place, piece in zip(places, pieces, strict=False)))
            put(f"pack_dataset({length}, {name})", "windows", (" ".join(f"{first}+{piece}" for first, piece in window) for window in sorted(found)))
        wrapped = _pack_wrapped(table, length).to_pydict()["input_ids"]
        put(f"pack_dataset({length}, wrapped)", "windows", (f"{tokens[0]}+{len(tokens)}" for tokens in wrapped))


random.seed(7)
np.random.seed(7)
torch.manual_seed(7)
gains()
white_noise()
with tempfile.TemporaryDirectory() as folder:
    background_noise(Path(folder))
speeds()
masked_spectrogram()
masked_tokens()
packed()
(Path(__file__).parent / "audio_and_text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(
    f"audiomentations {audiomentations.__version__}, torchaudio {torchaudio.__version__}, transformers {transformers.__version__}, "
    f"trl {trl.__version__}: {len(lines)} lines"
)
