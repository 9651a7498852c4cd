"""Writes augmentations.bin beside itself: what torchvision.transforms.v2 makes of one image, for fixed parameters.

    python crates/pipeline/tests/golden/augmentations.py        # wants torch and torchvision

`augmentations.txt` beside it has a line for each case, the step as a pipeline file spells it and, after a tab, the function of
torchvision that is called with the image; `tests/it/augmentations.rs` does the steps and compares. The image is made by a
formula that both sides have.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import torch
import torchvision
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F  # noqa: F401 (for the cases)

HEIGHT, WIDTH = 17, 20


def image(channels: int) -> torch.Tensor:
    """Smooth colors with an edge, and noise on top."""
    y, x, c = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), np.arange(channels), indexing="ij")
    noise = (y * 7919 + x * 104729 + c * 15485863) % 41
    values = 30 + y * (9 - 2 * c) + x * (3 + 3 * c) + noise + np.where(x * 2 > WIDTH + y, 40, 0)
    return torch.from_numpy((values % 256).astype(np.uint8).transpose(2, 0, 1).copy())


NEAREST, BILINEAR, BICUBIC = InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC

folder = Path(__file__).parent
written = bytearray()
for line in (folder / "augmentations.txt").read_text(encoding="utf-8").splitlines():
    step, call = line.split("\t")
    channels = 1 if call.startswith("gray: ") else 3
    made = eval(call.removeprefix("gray: "), globals(), {"image": image(channels)})
    made = made.to(torch.uint8).numpy().transpose(1, 2, 0)
    written += struct.pack("<3H", *made.shape) + made.tobytes()
(folder / "augmentations.bin").write_bytes(written)
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(written)} bytes")
