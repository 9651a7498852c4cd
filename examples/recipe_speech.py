"""LibriSpeech: noise of a folder, other speeds, spectrograms with SpecAugment; and a masked language model's tokens."""

from pathlib import Path

import forebay

forebay.demo_data("flac", ".", samples=8)
forebay.demo_data("nlp", ".", samples=12)
Path("noise").mkdir(exist_ok=True)
clips = sorted(Path("clips").rglob("*.flac"))
clips[-1].replace("noise/babble.flac")  # other people talk: the folder may be MUSAN's

speech = (
    forebay.Pipeline.files("**/*.flac", label=None, field="audio")
    .step("decode_audio", sample_rate=16_000)
    .step("speed_perturbation", factors=[0.9, 1.0, 1.1])
    .step("random_time_crop", length=16_000)
    .step("random_gain", min_gain_db=-6, max_gain_db=6)
    .step("add_background_noise", sounds_path="noise", sample_rate=16_000, min_snr_db=5, max_snr_db=20)
    .step("add_gaussian_snr", min_snr_db=15, max_snr_db=40)
    .step("log_mel_spectrogram")
    .step("spec_augment", n_time_masks=2, time_mask_param=20, n_freq_masks=2, freq_mask_param=15)
)
seen = 0
for batch in forebay.Loader(speech, data="clips/", batch_size=3, shuffle=True, seed=7):
    assert batch["audio"].shape[2] == 80
    seen += len(batch["audio"])
assert seen == 7
print("spectrograms of a second each")

text = (
    forebay.Pipeline.files("**/*.html", label=None, field="text")
    .step("extract_text")
    .step("tokenize", tokenizer="tokenizer.tiktoken", max_length=128, pad_to=128, pad_token_id=0)
    .step("mask_tokens", mask_token_id=1, vocab_size=1000, special_token_ids=[0])
)
for batch in forebay.Loader(text, data="pages/", batch_size=4, shuffle=True, seed=7):
    hidden = batch["labels"] != -100
    assert batch["text"].shape == batch["labels"].shape == (4, 128) and 0 < hidden.mean() < 0.4
print("tokens, and what they were")
