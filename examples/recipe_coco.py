"""COCO detection: boxes out of a COCO file, random resized crop, flip and color jitter, batches of as many boxes as there are.

Not Detectron's recipe, which draws the length of the shorter side and pads batches: all images become as large here.
"""

import json
from pathlib import Path

import forebay
import numpy
from PIL import Image

Path("coco/train").mkdir(parents=True, exist_ok=True)
images, annotations = [], []
for number in range(8):
    name = f"{number:012}.jpg"
    Image.fromarray(numpy.full((90, 120, 3), 16 * number, numpy.uint8)).save(f"coco/train/{name}")
    images.append({"id": number, "file_name": name, "width": 120, "height": 90})
    for place in range(number % 4):
        box = [10 + 15 * place, 20, 40, 50]  # left, top, width, height
        annotations.append({"id": len(annotations), "image_id": number, "category_id": 1 + place, "bbox": box, "iscrowd": 0})
Path("coco/instances.json").write_text(json.dumps({"images": images, "annotations": annotations}))

both = ["image", "boxes"]
pipeline = (
    forebay.Pipeline.files("train/*.jpg", label=None)
    .take_coco("coco/instances.json")
    .decode()
    .random_resized_crop(64, scale=(0.3, 1.0), fields=both)
    .random_horizontal_flip(fields=both)
    .color_jitter(0.4, 0.4, 0.4)
    .normalize()
    .to_chw()
)
for batch in forebay.Loader(pipeline, data="coco/", batch_size=4, shuffle=True, seed=7):
    assert batch["image"].shape == (4, 3, 64, 64)
    targets = [{"boxes": rows[:, :4], "labels": rows[:, 4].astype(numpy.int64)} for rows in batch["boxes"]]
    for target in targets:
        assert (target["boxes"] >= 0).all() and (target["boxes"] <= 64).all() and (target["labels"] >= 1).all()
print("boxes out of a COCO file stay within their images")
