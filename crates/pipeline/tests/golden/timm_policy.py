"""Writes timm.txt beside itself: what timm's RandAugment does to a picture of 160 x 100, how strong it is, and how often.

    python crates/pipeline/tests/golden/timm_policy.py        # wants timm

Lines are those of policies.txt: configuration, how many draws were this, and the changes. Of configurations with noise they are those of draws.txt:
the quantiles of the magnitudes (seen by the factors of contrast) and of the bits that are kept.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import timm
from timm.data.auto_augment import rand_augment_transform

DRAWS, WIDTH, HEIGHT = 100_000, 160, 100
PLACES = [(80.0, 50.0), (130.0, 50.0), (80.0, 100.0)]
NAMES = {"contrast": "Contrast", "color": "Color", "brightness": "Brightness", "sharpness": "Sharpness", "posterize": "Posterize"}
NAMES |= {"solarize": "Solarize", "solarize_add": "SolarizeAdd", "auto_contrast": "AutoContrast", "equalize": "Equalize", "invert": "Invert"}


class Picture:
    """Stands for an image of Pillow: notes where pixels are taken from."""

    size = (WIDTH, HEIGHT)

    def __init__(self) -> None:
        self.changes: list[str] = []

    def transform(self, _size: tuple[int, int], _method: int, matrix: tuple[float, ...], **_options: object) -> Picture:
        back = np.array([matrix[:3], matrix[3:], (0, 0, 1)], float)
        made = [np.linalg.solve(back, (x, y, 1))[:2] for x, y in PLACES]
        self.changes.append("Warp " + " ".join(f"{value + 0.0:.4f}" for place in made for value in place))
        return self

    def rotate(self, degrees: float, **options: object) -> Picture:
        """Counterclockwise about the middle, as Pillow has it."""
        angle, (x, y) = -math.radians(degrees), (WIDTH / 2, HEIGHT / 2)
        a, b, d, e = math.cos(angle), math.sin(angle), -math.sin(angle), math.cos(angle)
        return self.transform(self.size, 0, (a, b, x - a * x - b * y, d, e, y - d * x - e * y))


def noted(change: object) -> object:
    """The change, but of values it notes only its strength."""
    name = NAMES.get(change.__name__)
    if name is None:
        return change

    def note(picture: Picture, *strength: float, **_options: object) -> Picture:
        # Fewer than no bits are kept as none are.
        strength = tuple(max(0, value) for value in strength)
        picture.changes.append(" ".join([name, *(f"{value:.4f}" for value in strength)]))
        return picture

    return note


def drawn(config: str) -> list[list[str]]:
    policy = rand_augment_transform(config, {"img_mean": (124, 116, 104)})
    for op in policy.ops:
        op.aug_fn = noted(op.aug_fn)
    return [policy(Picture()).changes for _ in range(DRAWS)]


random.seed(7)
np.random.seed(7)
lines = []
for config in ("rand-m7-n1-p0.9-inc1", "rand-m4-n1-p0.8", "rand-m15-n1-p1-mmax20-inc1"):
    counts = Counter("\t".join(changes) for changes in drawn(config))
    lines += [f"{config}\t{count}\t{changes}".rstrip("\t") for changes, count in sorted(counts.items())]
for config in ("rand-m9-mstd0.5-inc1", "rand-m6-mstd3-inc1", "rand-m9-mstd101-inc1"):
    numbers: dict[str, list[float]] = defaultdict(list)
    for change in (change for changes in drawn(config) for change in changes):
        name, *strength = change.split(" ")
        if name == "Contrast":
            numbers["magnitude"].append(abs(float(strength[0]) - 1) / 0.09)
        elif name == "Posterize":
            numbers["bits"].append(float(strength[0]))
    for name, values in numbers.items():
        quantiles = np.quantile(values, np.linspace(0, 1, 21), method="inverted_cdf")
        lines.append("\t".join([config, name, *(f"{value:.5g}" for value in quantiles)]))
(Path(__file__).parent / "timm.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"timm {timm.__version__}: {len(lines)} lines")
