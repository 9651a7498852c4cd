"""Cityscapes segmentation: images and their label ids as Cityscapes lays them out, scaled, cut, flipped and colored together, ids for training.

The scale is drawn from a half to twice the size, as usual (there 512 to 2048 for the shorter side, and crops of 512 x 1024). What a crop has outside of
a small image, and all ids but the 19 that are trained, are 255, which losses leave out.
"""

from pathlib import Path

import forebay
import numpy
from PIL import Image

for number in range(8):
    city, name = ("ulm", "bonn")[number % 2], f"{number:06}_000019"
    ids = numpy.zeros((128, 256), numpy.uint8)
    ids[60:, :] = 7  # road
    ids[20:90, 24 * number : 24 * number + 60] = 26  # car
    image = numpy.dstack([ids * 9, 255 - ids * 5, ids])
    for kind, suffix, pixels in (("leftImg8bit", "leftImg8bit", image), ("gtFine", "gtFine_labelIds", ids)):
        path = Path("cityscapes", kind, "train", city, f"{city}_{name}_{suffix}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)

# The 19 classes that are trained, by their ids.
TRAINED = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]

both = ["image", "mask"]
pipeline = (
    forebay.Pipeline.files(
        "leftImg8bit/train/**/*_leftImg8bit.png",
        label=None,
        sidecars={"mask": "{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png"},
    )
    .decode()
    .decode_mask()
    .lookup_table(TRAINED, range(len(TRAINED)), default_value=255)
    .random_resize(64, 257, fields=both)
    .random_crop((96, 192), pad_if_needed=True, mask_fill=255, fields=both)
    .random_horizontal_flip(fields=both)
    .color_jitter(0.3, 0.3, 0.3)
    .normalize()
    .to_chw()
)
for batch in forebay.Loader(pipeline, data="cityscapes/", batch_size=4, shuffle=True, seed=7):
    images, masks = batch["image"], batch["mask"]
    assert images.shape == (4, 3, 96, 192) and images.dtype == numpy.float32
    assert masks.shape == (4, 96, 192) and set(numpy.unique(masks)) <= {0, 13, 255}, "the nearest label, never one between"
print("crops of images and of their 19 classes")
