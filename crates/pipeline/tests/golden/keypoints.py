"""Writes keypoints.txt beside itself: where torchvision.transforms.v2 takes key points of a picture of 20 x 17.

    python crates/pipeline/tests/golden/keypoints.py        # wants torch and torchvision

A line is a map as the tests spell it, the function of torchvision that is called, and x and y of each point. `tests/it/augmentations.rs` does
the same to the points and compares. Points that leave the picture are compared, too: nothing is cut off.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F  # noqa: F401 (for the cases)

HEIGHT, WIDTH = 17, 20
POINTS = [[3.0, 4.0], [10.0, 8.5], [12.25, 7.5], [15.5, 12.0], [8.0, 3.5]]
CORNERS = [[0, 0], [19, 0], [19, 16], [0, 16]]
CASES = [
    ("rotation = 30", "F.rotate(points, 30)"),
    ("rotation = -71.5", "F.rotate(points, -71.5)"),
    ("affine = [25, 2, -3, 1.3, 8, -5]", "F.affine(points, 25, [2, -3], 1.3, [8, -5])"),
    ("affine = [-160, 0, 0, 0.6, 0, 12]", "F.affine(points, -160, [0, 0], 0.6, [0, 12])"),
    ("affine = [0, 4, 1, 1, -20, 0]", "F.affine(points, 0, [4, 1], 1, [-20, 0])"),
    ("perspective = [[2, 1], [17, 3], [16, 14], [1, 15]]", "F.perspective(points, CORNERS, [[2, 1], [17, 3], [16, 14], [1, 15]])"),
    ("perspective = [[0, 4], [19, 0], [14, 16], [3, 12]]", "F.perspective(points, CORNERS, [[0, 4], [19, 0], [14, 16], [3, 12]])"),
]

lines = []
for case, call in CASES:
    points = tv_tensors.KeyPoints(torch.tensor(POINTS, dtype=torch.float64), canvas_size=(HEIGHT, WIDTH))
    made = eval(call)
    lines.append("\t".join([case, call, *(f"{value:.5f}" for value in made.flatten().tolist())]))
(Path(__file__).parent / "keypoints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} maps")
