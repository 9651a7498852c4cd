"""Draws polygons and run lengths with pycocotools, for the test `coco_masks`: python coco_masks.py > coco_masks.json (pycocotools 2.0, NumPy)."""

import json
import random

import numpy
from pycocotools import mask as coco


def polygon(draw: random.Random, size: tuple[int, int]) -> list[float]:
    """Corners within and around an image, whole or with two decimals, some of them twice."""
    height, width = size
    corners: list[float] = []
    for _ in range(draw.randint(3, 9)):
        around = draw.choice([0, 0, 0, 12])
        x, y = draw.uniform(-around, width + around), draw.uniform(-around, height + around)
        place = [round(x, 2), round(y, 2)] if draw.random() < 0.7 else [round(x), round(y)]
        corners += place * draw.choice([1, 1, 1, 2])
    return corners


def runs(pixels: numpy.ndarray) -> list[int]:
    """Run lengths of outside and inside in turns, down the columns."""
    flat = pixels.flatten(order="F")
    changes = numpy.flatnonzero(numpy.diff(flat)) + 1
    lengths = numpy.diff(numpy.concatenate([[0], changes, [len(flat)]])).tolist()
    return [0, *lengths] if flat[0] else lengths


cases = []
draw = random.Random(7)
for number in range(120):
    size = (draw.randint(1, 40), draw.randint(1, 40))
    polygons = [polygon(draw, size) for _ in range(draw.choice([1, 1, 2]))]
    encoded = coco.merge(coco.frPyObjects(polygons, *size))
    pixels = coco.decode(encoded)
    case = {"size": size, "segmentation": polygons, "runs": runs(pixels)}
    if number % 3 == 1:  # the same as COCO's text, with letters for run lengths
        case["segmentation"] = {"size": size, "counts": encoded["counts"].decode()}
    elif number % 3 == 2:  # a crowd's run lengths
        case["segmentation"] = {"size": size, "counts": runs(pixels)}
    cases.append(case)
print("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]")
