"""Writes policies.txt beside itself: what torchvision's policies do to a picture of 160 x 100, how strong it is, and how often.

    python crates/pipeline/tests/golden/policies.py        # wants torch and torchvision

A line is the policy with its arguments, how many of its draws were this, and the changes of the draw. A change is its name and its strength;
one that moves pixels is `Warp` and where it takes three places, x and y of each. Of AugMix a draw is one of its chains. The test beside
`augment/policies.rs` draws the same and compares both the changes and how often they come.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms import AutoAugmentPolicy, v2

HEIGHT, WIDTH, DRAWS = 100, 160, 100_000
PLACES = [[80.0, 50.0], [130.0, 50.0], [80.0, 100.0]]
MOVES = {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"}

image = torch.zeros((3, HEIGHT, WIDTH), dtype=torch.uint8)
changes: list[str] = []
moved: dict[tuple[str, float], str] = {}
really = v2.AutoAugment._apply_image_or_video_transform


def recorded(self: v2.AutoAugment, picture: torch.Tensor, name: str, magnitude: float, **options: object) -> torch.Tensor:
    """Notes a change instead of making it; where pixels go is asked of torchvision's own functions for key points."""
    if name in MOVES:
        if (name, magnitude) not in moved:
            points = tv_tensors.KeyPoints(torch.tensor(PLACES, dtype=torch.float64), canvas_size=(HEIGHT, WIDTH))
            made = really(self, points, name, magnitude, **options)
            moved[name, magnitude] = "Warp " + " ".join(f"{value:.4f}" for value in made.flatten().tolist())
        changes.append(moved[name, magnitude])
    elif name in {"Brightness", "Color", "Contrast", "Sharpness"}:
        changes.append(f"{name} {1 + magnitude:.4f}")
    elif name in {"Posterize", "Solarize"}:
        changes.append(f"{name} {int(magnitude) if name == 'Posterize' else 255 * magnitude:.4f}")
    elif name != "Identity":
        changes.append(name)
    return picture


v2.AutoAugment._apply_image_or_video_transform = recorded
v2.RandAugment._apply_image_or_video_transform = recorded
v2.TrivialAugmentWide._apply_image_or_video_transform = recorded
v2.AugMix._apply_image_or_video_transform = recorded

POLICIES = {
    "RandAugment(1, 9)": v2.RandAugment(1, 9),
    "RandAugment(1, 5, 11)": v2.RandAugment(1, 5, 11),
    "TrivialAugmentWide()": v2.TrivialAugmentWide(),
    "AutoAugment(imagenet)": v2.AutoAugment(AutoAugmentPolicy.IMAGENET),
    "AutoAugment(cifar10)": v2.AutoAugment(AutoAugmentPolicy.CIFAR10),
    "AutoAugment(svhn)": v2.AutoAugment(AutoAugmentPolicy.SVHN),
    "AugMix(chain_depth=1)": v2.AugMix(chain_depth=1, mixture_width=1),
    "AugMix(severity=10, chain_depth=1, all_ops=False)": v2.AugMix(severity=10, chain_depth=1, mixture_width=1, all_ops=False),
}
torch.manual_seed(6)
torch.set_num_threads(1)
lines = []
for call, policy in POLICIES.items():
    counts: Counter[str] = Counter()
    for _ in range(DRAWS):
        changes.clear()
        policy(image)
        counts["\t".join(changes)] += 1
    lines += [f"{call}\t{count}\t{drawn}".rstrip("\t") for drawn, count in sorted(counts.items())]
(Path(__file__).parent / "policies.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} draws that differ")
