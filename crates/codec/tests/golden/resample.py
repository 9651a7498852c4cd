"""Writes `resample.txt`: what torchaudio makes of a made-up sound at other sample rates.

    python resample.py > resample.txt

Needs PyTorch and torchaudio. One line per pair of rates: from, to, and the samples, rounded to int16 and clamped.
"""

import torch
import torchaudio

RATES = [(44100, 16000), (22050, 16000), (48000, 16000), (8000, 16000), (16000, 48000), (11025, 16000), (16000, 15999)]
SAMPLES = 150

numbers = torch.arange(SAMPLES, dtype=torch.int64)
# Noise that any language makes the same, and at its end a step that overshoots what 16 bits hold.
sound = (numbers * numbers * 7919 + numbers * 104729) % 40009 - 20004
sound[-40:] = torch.where(numbers[-40:] % 20 < 10, 32767, -32768)
print(f"# torchaudio {torchaudio.__version__}")
for before, after in RATES:
    resampled = torchaudio.functional.resample(sound.to(torch.float64), before, after)
    values = resampled.round().clamp(-32768, 32767).to(torch.int64).tolist()
    print(before, after, *values)
