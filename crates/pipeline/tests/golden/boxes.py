"""Writes boxes.txt beside itself: where torchvision.transforms.v2 takes boxes of a picture of 20 x 17.

    python crates/pipeline/tests/golden/boxes.py        # wants torch and torchvision

A line is the step as a pipeline file spells it, or a map as in keypoints.txt, the function of torchvision that is called, and left, top, right and
bottom of each box, cut off at the edges of the picture as torchvision does it. A box with less than a pixel left, which the steps drop, is among them.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F

HEIGHT, WIDTH = 17, 20
BOXES = [[3.0, 4.0, 9.0, 8.5], [10.0, 2.0, 18.0, 15.0], [0.0, 0.0, 4.0, 3.0], [12.25, 7.5, 15.5, 12.0]]
CORNERS = [[0, 0], [19, 0], [19, 16], [0, 16]]
CASES = [
    ("rotation = 30", "F.rotate(boxes, 30)"),
    ("rotation = -71.5", "F.rotate(boxes, -71.5)"),
    ("rotation = 90", "F.rotate(boxes, 90)"),
    ("affine = [25, 2, -3, 1.3, 8, -5]", "F.affine(boxes, 25, [2, -3], 1.3, [8, -5])"),
    ("affine = [-160, 0, 0, 0.6, 0, 12]", "F.affine(boxes, -160, [0, 0], 0.6, [0, 12])"),
    ("affine = [0, 4, 1, 1, -20, 0]", "F.affine(boxes, 0, [4, 1], 1, [-20, 0])"),
    ("perspective = [[2, 1], [17, 3], [16, 14], [1, 15]]", "F.perspective(boxes, CORNERS, [[2, 1], [17, 3], [16, 14], [1, 15]])"),
    ("perspective = [[0, 4], [19, 0], [14, 16], [3, 12]]", "F.perspective(boxes, CORNERS, [[0, 4], [19, 0], [14, 16], [3, 12]])"),
    ('op = "random_rotation", degrees = [90, 90], expand = true', "F.rotate(boxes, 90, expand=True)"),
    ('op = "random_rotation", degrees = [-90, -90], expand = true', "F.rotate(boxes, -90, expand=True)"),
    ('op = "random_horizontal_flip", p = 1', "F.horizontal_flip(boxes)"),
    ('op = "random_vertical_flip", p = 1', "F.vertical_flip(boxes)"),
    ('op = "resize", size = [34, 10]', "F.resize(boxes, [34, 10])"),
    ('op = "center_crop", size = [9, 12]', "F.center_crop(boxes, [9, 12])"),
    ('op = "pad", padding = [1, 2, 3, 4]', "F.pad(boxes, [1, 2, 3, 4])"),
]

lines = []
for case, call in CASES:
    boxes = tv_tensors.BoundingBoxes(torch.tensor(BOXES, dtype=torch.float64), format="XYXY", canvas_size=(HEIGHT, WIDTH))
    made = F.clamp_bounding_boxes(eval(call))
    lines.append("\t".join([case, call, *(f"{value:.5f}" for value in made.flatten().tolist())]))
(Path(__file__).parent / "boxes.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} maps")
