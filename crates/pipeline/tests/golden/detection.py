"""Writes detection.txt beside itself: what the transforms of torchvision's SSD recipe draw for a picture of 160 x 100 with three boxes.

    python crates/pipeline/tests/golden/detection.py        # wants torch and torchvision

Lines are as in draws.txt: the transform with its arguments, the parameter, and its 0 %, 5 %, ..., 100 % quantiles. `tests/it/detection.rs` draws
the same with the steps of these names and compares the distributions.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms import v2

DRAWS, HEIGHT, WIDTH = 10_000, 100, 160
BOXES = [[20.0, 30.0, 70.0, 90.0], [100.0, 10.0, 150.0, 60.0], [60.0, 40.0, 80.0, 60.0]]

image = torch.zeros((3, HEIGHT, WIDTH), dtype=torch.uint8)
boxes = tv_tensors.BoundingBoxes(torch.tensor(BOXES), format="XYXY", canvas_size=(HEIGHT, WIDTH))


def drawn(call: str, transform: v2.Transform) -> dict[str, float]:
    """The numbers of one draw, by name."""
    given = transform.make_params([image, boxes])
    if "IoUCrop" in call:
        if not given:
            return {"cropped": 0}
        kept = int(given["is_within_crop_area"].sum())
        return {"cropped": 1, "boxes": kept, **{name: given[name] for name in ("left", "top", "width", "height")}}
    if "ZoomOut" in call:
        left, top, right, bottom = given["padding"]
        return {"left": left, "top": top, "width": left + WIDTH + right, "height": top + HEIGHT + bottom}
    found: dict[str, float] = {"contrast_first": given["contrast_before"]}
    for name in ("brightness", "contrast", "saturation", "hue"):
        factor = given[f"{name}_factor"]
        found[f"has_{name}"] = factor is not None
        if factor is not None:
            found[name] = factor
    found["permuted"] = given["channel_permutation"] is not None
    if found["permuted"]:
        first, second, _ = given["channel_permutation"].tolist()
        found["permutation"] = 3 * first + second
    return found


CALLS = [
    "RandomIoUCrop()",
    "RandomIoUCrop(0.2, 0.8, 0.4, 2.5, [0.3, 0.6, 1.5], 10)",
    "RandomZoomOut(p=1)",
    "RandomZoomOut(side_range=(1.5, 2.5), p=1)",
    "RandomPhotometricDistort()",
    "RandomPhotometricDistort((0.5, 0.9), (1.0, 2.0), (0.0, 0.5), (-0.3, 0.1), 0.7)",
]

torch.manual_seed(5)
torch.set_num_threads(1)
lines = []
for call in CALLS:
    transform = eval(f"v2.{call}")
    numbers: dict[str, list[float]] = defaultdict(list)
    for _ in range(DRAWS):
        for name, value in drawn(call, transform).items():
            numbers[name].append(float(value))
    for name, values in numbers.items():
        quantiles = np.quantile(values, np.linspace(0, 1, 21), method="inverted_cdf")
        lines.append("\t".join([call, name, *(f"{value:.5g}" for value in quantiles)]))
(Path(__file__).parent / "detection.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} parameters")
