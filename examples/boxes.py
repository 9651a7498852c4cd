"""Detection: boxes move, are clipped and dropped with their image; batches are padded."""

import json
from pathlib import Path

import forebay
import numpy
from PIL import Image

for number in range(8):
    for folder in ("images", "boxes"):
        Path("street", folder).mkdir(parents=True, exist_ok=True)
    Image.fromarray(numpy.full((90, 120, 3), 16 * number, numpy.uint8)).save(f"street/images/{number}.jpg")
    rows = [[20 * place, 10, 20 * place + 30, 70, place] for place in range(number % 4)]  # left, top, right, bottom, class
    Path(f"street/boxes/{number}.json").write_text(json.dumps({"boxes": rows}))

both = ["image", "boxes"]
pipeline = (
    forebay.Pipeline.files("images/*.jpg", label=None, sidecars={"annotation": ("boxes/{stem}.json", "json")})
    .take_json("annotation", {"boxes": ("/boxes", "float32[?, 5]")})
    .drop("annotation")
    .decode()
    .random_crop((64, 80), padding=4, fields=both)
    .random_horizontal_flip(fields=both)
    .normalize()
    .to_chw()
)
for batch in forebay.Loader(pipeline, data="street/", batch_size=4, shuffle=True, seed=7, collate="pad", pad_value=-1):
    assert batch["image"].shape == (4, 3, 64, 80)
    for boxes, (count, _) in zip(batch["boxes"], batch["boxes_shape"], strict=True):
        assert (boxes[:count, 2] <= 80).all() and (boxes[count:] == -1).all()
print("boxes stay within their images")
