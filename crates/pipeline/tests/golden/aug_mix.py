"""Writes aug_mix.bin beside itself: what torchvision's AugMix makes of one image where weights and changes are fixed.

    python crates/pipeline/tests/golden/aug_mix.py        # wants torch and torchvision

The mixing is torchvision's; what it draws is replaced by `WEIGHTS` and `CHAINS`, which the test beside `augment/aug_mix.rs` has, too. The image is
that of `augmentations.py`, once in color and once in gray.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torchvision
from torchvision.transforms import v2

HEIGHT, WIDTH = 17, 20
WEIGHTS = [[0.3, 0.7], [0.2, 0.3, 0.5]]
CHAINS = [
    [("Posterize", 3), ("Brightness", 0.3)],
    [("Rotate", 10.0), ("Color", -0.5)],
    [("Equalize", 0.0), ("Solarize", 0.6)],
]


def image(channels: int) -> torch.Tensor:
    """Smooth colors with an edge, and noise on top."""
    y, x, c = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), np.arange(channels), indexing="ij")
    noise = (y * 7919 + x * 104729 + c * 15485863) % 41
    values = 30 + y * (9 - 2 * c) + x * (3 + 3 * c) + noise + np.where(x * 2 > WIDTH + y, 40, 0)
    return torch.from_numpy((values % 256).astype(np.uint8).transpose(2, 0, 1).copy())


class Fixed(v2.AugMix):
    """Takes its weights and changes from the lists above, one after another."""

    def forward(self, *inputs: object) -> torch.Tensor:
        self.weights = iter(WEIGHTS)
        self.changes = iter([change for chain in CHAINS for change in chain])
        return super().forward(*inputs)

    def _sample_dirichlet(self, params: torch.Tensor) -> torch.Tensor:
        return torch.tensor([next(self.weights)])

    def _apply_image_or_video_transform(self, image: torch.Tensor, transform_id: str, magnitude: float, **options: object) -> torch.Tensor:
        return super()._apply_image_or_video_transform(image, *next(self.changes), **options)


policy = Fixed(chain_depth=2, mixture_width=3)
written = b"".join(policy(image(channels)).numpy().transpose(1, 2, 0).tobytes() for channels in (3, 1))
(Path(__file__).parent / "aug_mix.bin").write_bytes(written)
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(written)} bytes")
