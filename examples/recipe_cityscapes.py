"""Cityscapes segmentation: images and their label ids as Cityscapes lays them out, scaled, cut, flipped and colored together, ids for training.

A random resized crop stands for the random scale and crop of the usual recipe. The 19 ids for training are looked up in NumPy, for whole batches.
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

# The 19 classes that are trained, by their ids; all others are 255, which losses leave out.
TRAINED = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
train_ids = numpy.full(256, 255, numpy.uint8)
train_ids[TRAINED] = numpy.arange(len(TRAINED))

both = ["image", "mask"]
pipeline = (
    forebay.Pipeline.files(
        "leftImg8bit/train/**/*_leftImg8bit.png",
        label=None,
        sidecars={"mask": "{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png"},
    )
    .decode()
    .decode_mask()
    .random_resized_crop((96, 96), scale=(0.25, 1.0), ratio=(0.75, 1.33), fields=both)
    .random_horizontal_flip(fields=both)
    .color_jitter(0.3, 0.3, 0.3)
    .normalize()
    .to_chw()
)
for batch in forebay.Loader(pipeline, data="cityscapes/", batch_size=4, shuffle=True, seed=7):
    images, masks = batch["image"], train_ids[batch["mask"]]
    assert images.shape == (4, 3, 96, 96) and images.dtype == numpy.float32
    assert masks.shape == (4, 96, 96) and set(numpy.unique(masks)) <= {0, 13, 255}, "the nearest label, never one between"
print("crops of images and of their 19 classes")
