"""SSD detection: photometric distortion, zooming out, crops that look at boxes, flips: torchvision's references with `--data-augmentation ssd`.

Images then have any size, so they are resized to SSD's 300 x 300 at the end, which the model does there. Without `random_photometric_distort` and
`random_zoom_out` it is `--data-augmentation ssdlite`.
"""

import json
from pathlib import Path

import forebay
import numpy
from PIL import Image

Path("ssd/train").mkdir(parents=True, exist_ok=True)
images, annotations = [], []
for number in range(8):
    name = f"{number:012}.png"
    pixels = numpy.full((90, 120, 3), 128, numpy.uint8)
    images.append({"id": number, "file_name": name, "width": 120, "height": 90})
    for place in range(number % 4):
        left, top, width, height = 5 + 40 * place, 20, 25, 50
        pixels[top : top + height, left : left + width] = 255  # an object is white
        box = {"id": len(annotations), "image_id": number, "category_id": 1 + place, "bbox": [left, top, width, height], "iscrowd": 0}
        annotations.append(box)
    Image.fromarray(pixels).save(f"ssd/train/{name}")
Path("ssd/instances.json").write_text(json.dumps({"images": images, "annotations": annotations}))

both = ["image", "boxes"]
pipeline = (
    forebay.Pipeline.files("train/*.png", label=None)
    .take_coco("ssd/instances.json")
    .decode()
    .random_photometric_distort()
    .random_zoom_out(fill=(123.0, 117.0, 104.0), fields=both)
    .random_iou_crop(fields=both)
    .random_horizontal_flip(fields=both)
    .resize((300, 300), fields=both)
    .to_chw()
    .to_dtype("float32", scale=True)
)
loader = forebay.Loader(pipeline, data="ssd/", batch_size=4, shuffle=True, seed=7)
found = 0
for batch in (batch for _ in range(16) for batch in loader):
    assert batch["image"].shape == (4, 3, 300, 300)
    for image, boxes in zip(batch["image"], batch["boxes"], strict=True):
        assert (boxes[:, :4] >= 0).all() and (boxes[:, :4] <= 300).all()
        for left, top, right, bottom, label in boxes[:, :5]:
            if right - left < 8 or bottom - top < 8:
                continue
            # However its colors were distorted, an object remains brighter than the gray around it and the filling.
            inside = image[:, round(top) + 2 : round(bottom) - 2, round(left) + 2 : round(right) - 2]
            assert inside.mean() > image.mean() - 1e-3 and 1 <= label <= 3
            found += 1
assert found > 100, "most objects are still there"
print("boxes go where crops and zooming out take their objects")
