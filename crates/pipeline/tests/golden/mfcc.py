"""Writes mfcc.txt beside itself: the cepstral coefficients that librosa makes of a made-up log-mel spectrogram.

    python crates/pipeline/tests/golden/mfcc.py        # wants librosa

A line is the number of bands, of coefficients, and the coefficients of five frames. The spectrogram is made by a formula that both sides have.
"""

from __future__ import annotations

from pathlib import Path

import librosa
import numpy as np

FRAMES = 5

lines = []
for bands, coefficients in [(80, 40), (80, 13), (64, 20), (7, 7)]:
    frame, band = np.meshgrid(np.arange(FRAMES), np.arange(bands), indexing="ij")
    # From -11.5 (silence) to 4, as logarithms of energies are.
    spectrogram = (frame * 7919 + band * band * 104_729 + band * 13) % 1551 / 100 - 11.5
    made = librosa.feature.mfcc(S=spectrogram.T, n_mfcc=coefficients, dct_type=2, norm="ortho").T
    lines.append("\t".join([str(bands), str(coefficients), *(f"{value:.5f}" for value in made.flatten())]))
(Path(__file__).parent / "mfcc.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"librosa {librosa.__version__}: {len(lines)} spectrograms")
