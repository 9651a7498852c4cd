"""Writes draws.txt beside itself: what torchvision.transforms.v2 draws for a picture of 160 x 100, as quantiles of many draws.

    python crates/pipeline/tests/golden/draws.py        # wants torch, torchvision and torchaudio

A line is the transform with its arguments, the parameter, and its 0 %, 5 %, ..., 100 % quantiles. `tests/it/draws.rs` draws the same with
the steps of these names and compares the distributions.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
import torchaudio  # noqa: F401 (for a call)
import torchvision
from torchvision.transforms import v2

DRAWS, HEIGHT, WIDTH = 20_000, 100, 160
CORNERS = ("top_left", "top_right", "bottom_right", "bottom_left")

image = torch.zeros((1, HEIGHT, WIDTH), dtype=torch.uint8)
batch = torch.zeros((2, 1, HEIGHT, WIDTH), dtype=torch.uint8)


def drawn(call: str, transform: v2.Transform) -> dict[str, float]:
    """The numbers of one draw, by name."""
    if "AugMix" in call:
        return weights(transform)
    if "SpecAugment" in call:
        return masked(transform)
    if "RandomResize(" in call:
        # It draws the shorter side; the longer one follows when it is done.
        height, width = transform(image).shape[-2:]
        return {"width": width, "height": height}
    if "Size" in call or "Jitter" in call:
        height, width = transform.make_params([image])["size"]
        return {"width": width, "height": height}
    given = transform.make_params([batch if "Mix" in call else image])
    if "angle" in given and "scale" in given:
        names = ("translate_x", "translate_y", "shear_x", "shear_y")
        return {"angle": given["angle"], "scale": given["scale"], **dict(zip(names, [*given["translate"], *given["shear"]], strict=True))}
    if "box" in given and given["lam_adjusted"] == 1:
        return {"kept": 1}  # nothing is pasted, so nobody sees where
    if "box" in given:
        return {**dict(zip(("left", "top", "right", "bottom"), given["box"], strict=True)), "kept": given["lam_adjusted"]}
    if "lam" in given:
        return {"kept": given["lam"]}
    wanted = {"i": "top", "j": "left", "h": "height", "w": "width"}
    return {wanted.get(name, name): value for name, value in given.items() if isinstance(value, (int, float))}


def corners(scale: float) -> dict[str, float]:
    """Where the four corners of a picture go by RandomPerspective."""
    seen: dict[str, float] = {}

    def taken(start: list[list[int]], end: list[list[int]], coefficients: object = None, **_: object) -> list[float]:
        for name, (x0, y0), (x1, y1) in zip(CORNERS, start, end, strict=True):
            seen[f"{name}_x"], seen[f"{name}_y"] = abs(x1 - x0), abs(y1 - y0)
        return [1.0] * 8

    module = v2._geometry
    before, module._get_perspective_coeffs = module._get_perspective_coeffs, taken
    try:
        v2.RandomPerspective(scale, p=1).make_params([image])
    finally:
        module._get_perspective_coeffs = before
    return seen


def weights(transform: v2.AugMix) -> dict[str, float]:
    """What AugMix keeps of the picture, and the weight of its first chain, drawn as its `forward` draws them."""
    kept, mixed = transform._sample_dirichlet(torch.tensor([[transform.alpha] * 2]))[0].tolist()
    first = transform._sample_dirichlet(torch.tensor([[transform.alpha] * transform.mixture_width]))[0, 0]
    return {"kept": kept, "first": float(first) * mixed}


def masked(transform: torch.nn.Module) -> dict[str, float]:
    """Which frames and bands SpecAugment masks, of a spectrogram of 100 frames and 40 bands; of no frames nobody sees where they are."""
    kept = transform(torch.ones(1, 40, 100))[0] > 0
    found: dict[str, float] = {}
    for name, lines in (("frame", kept.any(dim=0)), ("band", kept.any(dim=1))):
        places = (~lines).nonzero().flatten().tolist()
        found[f"{name}s"] = len(places)
        if places:
            found[name] = places[0]
    return found


CALLS = [
    "RandomRotation(30)",
    "RandomAffine((-10, 40), translate=(0.3, 0.2), scale=(0.5, 2), shear=(-8, 12, -5, 6))",
    "RandomPerspective(0.4, p=1)",
    "RandomResizedCrop(8)",
    "RandomResizedCrop(8, scale=(0.1, 0.5), ratio=(0.5, 3))",
    "RandomErasing(p=1)",
    "CutMix(alpha=1.0)",
    "CutMix(alpha=0.4)",
    "MixUp(alpha=0.2)",
    "RandomCrop((40, 50))",
    "RandomCrop((100, 130), padding=12)",
    "AugMix()",
    "AugMix(alpha=0.4, mixture_width=2)",
    "SpecAugment(1, 30, 1, 10, zero_masking=True)",
    "SpecAugment(1, 30, 1, 30, p=0.2, zero_masking=True)",
    "ScaleJitter((300, 200))",
    "ScaleJitter((64, 256), scale_range=(0.5, 1.5))",
    "RandomShortestSize([60, 75, 90, 130], max_size=180)",
    "RandomResize(60, 140)",
]

torch.manual_seed(5)
lines = []
for call in CALLS:
    transform = eval(f"{'torchaudio.transforms' if 'Spec' in call else 'v2'}.{call}")
    numbers: dict[str, list[float]] = defaultdict(list)
    for _ in range(DRAWS):
        for name, value in (corners(0.4) if "Perspective" in call else drawn(call, transform)).items():
            numbers[name].append(float(value))
    for name, values in numbers.items():
        quantiles = np.quantile(values, np.linspace(0, 1, 21), method="inverted_cdf")
        lines.append("\t".join([call, name, *(f"{value:.5g}" for value in quantiles)]))
(Path(__file__).parent / "draws.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} parameters")
