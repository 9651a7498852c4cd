"""Writes elastic.txt beside itself: what torchvision's elastic distortion makes of an image for fixed distances, and what it draws.

    python crates/pipeline/tests/golden/elastic.py        # wants torch and torchvision

The first lines are a call and the values of the new picture, of 20 x 17 pixels; image and distances are made by formulas that both sides have. The
others are as in draws.txt: how far a pixel of a picture of 60 x 48 is moved, as quantiles of many draws. The tests of `steps/elastic.rs` compare.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torchvision
from torchvision.transforms import InterpolationMode

HEIGHT, WIDTH, DRAWS = 17, 20, 3000
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR

y, x = np.meshgrid(np.arange(HEIGHT), np.arange(WIDTH), indexing="ij")
values = np.stack([(y * 13 + x * 7 + c * 50 + y * x) % 256 for c in range(3)])
image = torch.from_numpy(values.astype(np.uint8))
across = 3 * np.sin(0.4 * x + 0.3 * y) + 0.13
down = 2 * np.cos(0.5 * x - 0.2 * y) - 0.21
displacement = torch.from_numpy(np.stack([across * 2 / WIDTH, down * 2 / HEIGHT], axis=-1)[None].astype(np.float32))

lines = []
for call in (
    "F.elastic(image, displacement, BILINEAR, fill=0)",
    "F.elastic(image, displacement, BILINEAR, fill=[9, 99, 199])",
    "F.elastic(image, displacement, NEAREST, fill=[9, 99, 199])",
):
    made = eval(call)
    lines.append("\t".join([call, *map(str, made.permute(1, 2, 0).flatten().tolist())]))

torch.manual_seed(5)
torch.set_num_threads(1)
small = torch.zeros((1, 48, 60), dtype=torch.uint8)
for call in ("ElasticTransform()", "ElasticTransform((30.0, 80.0), (3.0, 2.0))"):
    transform = eval(call)
    drawn = [transform.make_params([small])["displacement"][0, 20, 30] for _ in range(DRAWS)]
    numbers = torch.stack(drawn) * torch.tensor([60 / 2, 48 / 2])
    for place, name in enumerate(("across", "down")):
        quantiles = np.quantile(numbers[:, place].numpy(), np.linspace(0, 1, 21), method="inverted_cdf")
        lines.append("\t".join([call, name, *(f"{value:.5g}" for value in quantiles)]))
(Path(__file__).parent / "elastic.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} lines")
