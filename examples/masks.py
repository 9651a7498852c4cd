"""Segmentation: each image has a mask of the same name, which is cut and flipped with it."""

from pathlib import Path

import forebay
import numpy
from PIL import Image

for number in range(8):
    mask = numpy.zeros((90, 120), numpy.uint8)
    mask[20:60, 10 * number : 10 * number + 40] = 1 + number % 3
    for folder, pixels in {"images": numpy.dstack([mask * 60] * 3), "masks": mask}.items():
        path = Path("scenes", folder, f"{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)

both = ["image", "mask"]
pipeline = (
    forebay.Pipeline.files("images/*.png", label=None, sidecars={"mask": "masks/{stem}.png"})
    .decode()
    .decode_mask()
    .random_crop(64, fields=both)
    .random_horizontal_flip(fields=both)
)
for batch in forebay.Loader(pipeline, data="scenes/", batch_size=4, shuffle=True, seed=7):
    images, masks = batch["image"], batch["mask"]
    assert images.shape == (4, 64, 64, 3) and masks.shape == (4, 64, 64)
    assert (images[..., 0] == masks * 60).all(), "the same place of both"
print("images and masks agree in every pixel")
