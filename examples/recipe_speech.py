"""LibriSpeech: spectrograms with other speeds, noise of a folder and SpecAugment, and the tokens of what is said, for CTC; a masked language model's tokens."""

from pathlib import Path

import forebay
import numpy

forebay.demo_data("flac", ".", samples=8)
forebay.demo_data("nlp", ".", samples=12)
Path("noise").mkdir(exist_ok=True)
clips = sorted(Path("clips").rglob("*.flac"))
clips[-1].replace("noise/babble.flac")  # other people talk: the folder may be MUSAN's

# Laid out as LibriSpeech is: SPEAKER/CHAPTER/SPEAKER-CHAPTER-NUMBER.flac, and a file for each chapter with what is said in its recordings.
SAID = ["GO DO YOU HEAR", "BUT IN LESS THAN FIVE MINUTES", "NOT A WORD", "YES"]
for number, clip in enumerate(clips[:-1]):
    speaker, chapter = [(84, 121123), (174, 50561)][number % 2]
    name = f"{speaker}-{chapter}-{number // 2:04}"
    folder = Path("LibriSpeech", str(speaker), str(chapter))
    folder.mkdir(parents=True, exist_ok=True)
    clip.replace(folder / f"{name}.flac")
    with (folder / f"{speaker}-{chapter}.trans.txt").open("a") as lines:
        lines.write(f"{name} {SAID[number // 2]}\n")

speech = (
    forebay.Pipeline.files("**/*.flac", label=None, field="audio")
    .take_transcript("LibriSpeech")
    .tokenize(fields=["transcript"])  # characters; or the path of a tokenizer
    .decode_audio(sample_rate=16_000)
    .speed_perturbation([0.9, 1.0, 1.1])
    .random_gain(-6, 6)
    .add_background_noise("noise", 5, 20, sample_rate=16_000)
    .add_gaussian_snr(15, 40)
    .log_mel_spectrogram()
    .spec_augment(n_time_masks=2, time_mask_param=20, n_freq_masks=2, freq_mask_param=15)
)
seen = []
for batch in forebay.Loader(speech, data="LibriSpeech/", batch_size=3, shuffle=True, seed=7, collate="pad"):
    spectrograms, targets = batch["audio"], batch["transcript"]
    input_lengths, target_lengths = batch["audio_shape"][:, 0], batch["transcript_shape"][:, 0]
    # With these, torch.nn.functional.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0): no character is 0.
    assert spectrograms.shape == (len(targets), input_lengths.max(), 80) and targets.shape[1] == target_lengths.max()
    assert targets.dtype == numpy.int32 and (input_lengths >= target_lengths).all()
    for key, row, length in zip(batch["key"], targets, target_lengths, strict=True):
        assert bytes(row[:length].tolist()).decode() == SAID[int(Path(key).stem[-4:])]
        assert (row[:length] != 0).all() and (row[length:] == 0).all()
        seen.append(key)
assert len(set(seen)) == len(seen) == 7
print("spectrograms, and the tokens of what is said in them")

text = (
    forebay.Pipeline.files("**/*.html", label=None, field="text")
    .extract_text()
    .tokenize("tokenizer.tiktoken", max_length=128, pad_to=128, pad_token_id=0)
    .mask_tokens(mask_token_id=1, vocab_size=1000, special_token_ids=[0])
)
for batch in forebay.Loader(text, data="pages/", batch_size=4, shuffle=True, seed=7):
    hidden = batch["labels"] != -100
    assert batch["text"].shape == batch["labels"].shape == (4, 128) and 0 < hidden.mean() < 0.4
print("tokens, and what they were")
