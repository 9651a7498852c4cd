"""COCO detection: boxes and masks out of a COCO file, large scale jitter, crop, flip, batches of as many boxes as there are.

The recipe of torchvision's references with `--data-augmentation lsj`, of 1024 x 1024 there: what is left of an image that became smaller is filled with
ImageNet's mean. Detectron's default would be `random_shortest_size((640, 672, 704, 736, 768, 800), max_size=1333)` instead of the jitter.
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
        box = [5 + 40 * place, 20, 25, 50]  # left, top, width, height
        annotations.append({"id": len(annotations), "image_id": number, "category_id": 1 + place, "bbox": box, "iscrowd": 0})
        left, top, right, bottom = box[0], box[1], box[0] + box[2], box[1] + box[3]
        annotations[-1]["segmentation"] = [[left, top, right, top, right, bottom, left, bottom]]
Path("coco/instances.json").write_text(json.dumps({"images": images, "annotations": annotations}))

together = ["image", "mask", "boxes"]
pipeline = (
    forebay.Pipeline.files("train/*.jpg", label=None)
    .take_coco("coco/instances.json", masks="instance")
    .decode()
    .scale_jitter((64, 64), scale_range=(0.1, 2.0), fields=together)
    .random_crop(64, pad_if_needed=True, fill=(123.675, 116.28, 103.53), fields=together)
    .random_horizontal_flip(fields=together)
    .normalize()
    .to_chw()
)
loader = forebay.Loader(pipeline, data="coco/", batch_size=4, shuffle=True, seed=7)
renumbered = 0
for batch in (batch for _ in range(8) for batch in loader):
    assert batch["image"].shape == (4, 3, 64, 64) and batch["mask"].shape == (4, 64, 64)
    for boxes, mask in zip(batch["boxes"], batch["mask"], strict=True):
        # Crops drop boxes: the last column is the object's number, by which the others still find their masks.
        target = {"boxes": boxes[:, :4], "labels": boxes[:, 4].astype(numpy.int64), "masks": mask == boxes[:, 5, None, None]}
        assert (target["boxes"] >= 0).all() and (target["boxes"] <= 64).all() and (target["labels"] >= 1).all()
        for (left, top, right, bottom), own in zip(target["boxes"], target["masks"], strict=True):
            y, x = own.nonzero()
            assert ((x + 1 >= left) & (x <= right) & (y + 1 >= top) & (y <= bottom)).all(), "each mask lies in its box"
        renumbered += int((boxes[:, 5] != numpy.arange(1, len(boxes) + 1)).any())
assert renumbered, "some boxes lost one that came before them"
print("boxes and masks out of a COCO file go with their images")
