"""Augmentations beside torchvision's (v2): images per second on one core, of 224 × 224 × 3 in uint8, in turns.

    make bench-augmentations TORCH_PYTHON=PYTHON       # a Python that has torch and torchvision

Each line is a step alone (with `p=1`, so that all images are changed), or a chain of steps as a recipe has it. torchvision works on
tensors, with one thread. Medians of five runs of 0.2 s each; the two take turns, step by step.
"""

from __future__ import annotations

import platform
import statistics
import subprocess
import time
from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

ROOT = Path(__file__).resolve().parents[2]
STEPS = [
    ('{ op = "color_jitter", brightness = 0.4 }', v2.ColorJitter(brightness=0.4)),
    ('{ op = "color_jitter", contrast = 0.4 }', v2.ColorJitter(contrast=0.4)),
    ('{ op = "color_jitter", saturation = 0.4 }', v2.ColorJitter(saturation=0.4)),
    ('{ op = "color_jitter", hue = 0.1 }', v2.ColorJitter(hue=0.1)),
    (
        '{ op = "color_jitter", brightness = 0.4, contrast = 0.4, saturation = 0.4, hue = 0.1 }',
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
    ),
    ('{ op = "random_grayscale", p = 1 }', v2.RandomGrayscale(p=1)),
    ('{ op = "random_invert", p = 1 }', v2.RandomInvert(p=1)),
    ('{ op = "random_solarize", threshold = 128, p = 1 }', v2.RandomSolarize(128, p=1)),
    ('{ op = "random_posterize", bits = 4, p = 1 }', v2.RandomPosterize(4, p=1)),
    ('{ op = "random_equalize", p = 1 }', v2.RandomEqualize(p=1)),
    ('{ op = "random_autocontrast", p = 1 }', v2.RandomAutocontrast(p=1)),
    ('{ op = "random_adjust_sharpness", sharpness_factor = 2, p = 1 }', v2.RandomAdjustSharpness(2, p=1)),
    ('{ op = "gaussian_blur", kernel_size = 5 }', v2.GaussianBlur(5)),
    ('{ op = "gaussian_blur", kernel_size = 23 }', v2.GaussianBlur(23)),
    ('{ op = "random_vertical_flip", p = 1 }', v2.RandomVerticalFlip(p=1)),
    ('{ op = "pad", padding = 8 }', v2.Pad(8)),
    ('{ op = "random_erasing", p = 1 }', v2.RandomErasing(p=1)),
    ('{ op = "random_rotation", degrees = 30 }', v2.RandomRotation(30)),
    ('{ op = "random_rotation", degrees = 30, interpolation = "bilinear" }', v2.RandomRotation(30, "bilinear")),
    ('{ op = "random_affine", degrees = 15, translate = [0.1, 0.1] }', v2.RandomAffine(15, translate=(0.1, 0.1))),
    ('{ op = "random_perspective", p = 1 }', v2.RandomPerspective(p=1)),
    ('{ op = "rand_augment" }', v2.RandAugment()),
    ('{ op = "trivial_augment_wide" }', v2.TrivialAugmentWide()),
    ('{ op = "auto_augment" }', v2.AutoAugment()),
    ('{ op = "aug_mix" }', v2.AugMix()),
    (
        '{ op = "color_jitter", brightness = 0.4, contrast = 0.4 };{ op = "random_invert", p = 1 };'
        '{ op = "random_solarize", threshold = 128, p = 1 }',
        v2.Compose([v2.ColorJitter(0.4, 0.4), v2.RandomInvert(p=1), v2.RandomSolarize(128, p=1)]),
    ),
]


def photo(side: int = 224) -> torch.Tensor:
    index = torch.arange(side * side * 3)
    y, x, channel = index // 3 // side, index // 3 % side, index % 3
    smooth = 60 + 50 * torch.sin((x + 40 * channel) / 37) + 50 * torch.cos(y / 29)
    values = smooth.to(torch.uint8) + (index * 7919 % 41).to(torch.uint8)
    return values.reshape(side, side, 3).permute(2, 0, 1).contiguous()


def theirs(transform: torch.nn.Module, image: torch.Tensor) -> float:
    rates = []
    for _ in range(5):
        begun, images = time.perf_counter(), 0
        while time.perf_counter() - begun < 0.2:
            for _ in range(8):
                transform(image)
            images += 8
        rates.append(images / (time.perf_counter() - begun))
    return statistics.median(rates)


def main() -> None:
    torch.set_num_threads(1)
    image = photo()
    program = subprocess.Popen(
        [ROOT / "target/release/examples/augmentations"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None and program.stdout is not None
    lines = [
        "# Augmentations beside torchvision",
        "",
        "Images of 224 × 224 × 3 in uint8 per second, one core, by `bench/augmentations/run.py`: Forebay beside torchvision's transforms (v2) on",
        f"tensors (torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}, one thread; {platform.machine()}).",
        "",
        "| step | Forebay | torchvision | ratio |",
        "|---|--:|--:|--:|",
    ]
    ratios = []
    for step, transform in STEPS:
        program.stdin.write(step + "\n")
        program.stdin.flush()
        ours = float(program.stdout.readline())
        rate = theirs(transform, image)
        ratios.append(ours / rate)
        lines.append(f"| `{step.replace(';', '`, `')}` | {ours:,.0f} | {rate:,.0f} | {ours / rate:.1f} |")
        print(lines[-1], flush=True)
    lines += ["", f"Geometric mean of the ratios: {statistics.geometric_mean(ratios):.1f}; the lowest: {min(ratios):.1f}."]
    (ROOT / "bench/results/augmentations.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
