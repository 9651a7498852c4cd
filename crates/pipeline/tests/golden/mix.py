"""Writes mix.txt beside itself: what torchvision's MixUp and CutMix make of a batch for a fixed weight and box, and smoothed labels of torch.

    python crates/pipeline/tests/golden/mix.py        # wants torch and torchvision

A line of `mixup` has the weight, one of `cutmix` the box (left, top, right, bottom), and then the values of three pictures and of their labels. A line
of `one_hot` has the number of classes, the smoothing, the class, and the vector that torch's `cross_entropy(label_smoothing=…)` compares with.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

BATCH, CLASSES, CHANNELS, HEIGHT, WIDTH = 3, 4, 2, 5, 6


def pictures() -> torch.Tensor:
    """Values that both sides have: channels first, in float32."""
    place = torch.arange(BATCH * CHANNELS * HEIGHT * WIDTH)
    return (place * 7919 % 251).to(torch.float32).reshape(BATCH, CHANNELS, HEIGHT, WIDTH)


def line(name: str, numbers: list[float], *tensors: torch.Tensor) -> str:
    values = [value for tensor in tensors for value in tensor.flatten().tolist()]
    return "\t".join([name, *(f"{value:.7g}" for value in [*numbers, *values])])


def mixed(transform: v2.Transform, **params: object) -> list[torch.Tensor]:
    labels = torch.tensor([2, 0, 3])
    params |= {"labels": labels, "batch_size": BATCH}
    return [transform.transform(given, params) for given in (pictures(), labels)]


lines = []
for weight in (0.3, 0.75, 1.0):
    lines.append(line("mixup", [weight], *mixed(v2.MixUp(num_classes=CLASSES), lam=weight)))
for left, top, right, bottom in [(1, 2, 4, 5), (0, 0, 6, 1), (3, 1, 3, 4)]:
    kept = 1 - (right - left) * (bottom - top) / (WIDTH * HEIGHT)
    box = (left, top, right, bottom)
    lines.append(line("cutmix", list(box), *mixed(v2.CutMix(num_classes=CLASSES), box=box, lam_adjusted=kept)))
for classes, smoothing, label in [(4, 0.0, 1), (4, 0.1, 3), (10, 0.2, 0), (1000, 0.1, 999)]:
    scores = torch.zeros(1, classes, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.cross_entropy(scores, torch.tensor([label]), label_smoothing=smoothing).backward()
    # The gradient is what the scores say, less what is wanted.
    lines.append(line("one_hot", [classes, smoothing, label], 1 / classes - scores.grad))
(Path(__file__).parent / "mix.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} lines")
