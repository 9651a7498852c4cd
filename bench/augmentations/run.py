"""Augmentations compared with torchvision's (v2) and Albumentations': images per second on one core, of 224 × 224 × 3 in uint8, in turns.

    make bench-augmentations TORCH_PYTHON=PYTHON       # a Python that has torch and torchvision; and albumentations, if it is to be compared

    TORCH_PYTHON bench/augmentations/run.py --only rotation   # some of the steps, shown and not written

Each line is a step alone (with `p=1`, so that all images are changed), or a chain of steps as a recipe has it. torchvision works on
tensors, with one thread; Albumentations on NumPy arrays, with one thread of OpenCV, where it has a transform that does the same. Medians of five runs of
0.2 s each (`--seconds` changes that of the peers), in which all take turns: a machine's speed moves while it is measured. MixUp and CutMix get batches of 64
images in float32, SpecAugment and MFCC (of torchaudio, where it is installed) log-mel spectrograms of 1,000 frames and 80 bands, and count these. The first line is the limit of all that write another image: a step that
draws nothing this time, so that the image is only copied into its slot in a batch, compared with `Tensor.clone` and `ndarray.copy`.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

try:
    from torchaudio.functional import create_dct
    from torchaudio.transforms import SpecAugment
except (ImportError, RuntimeError):  # what was built for another torch refuses to be imported
    SpecAugment = None

try:
    import albumentations
except ImportError:
    albumentations = None

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from pages import processor  # noqa: E402

COPY = "copy"
# The target for every augmentation: this many times a peer's rate.
BAR = 3
RUNS = 5
STEPS = [
    (COPY, torch.clone),
    ('{ op = "color_jitter", brightness = 0.4 }', v2.ColorJitter(brightness=0.4)),
    ('{ op = "color_jitter", contrast = 0.4 }', v2.ColorJitter(contrast=0.4)),
    ('{ op = "color_jitter", saturation = 0.4 }', v2.ColorJitter(saturation=0.4)),
    ('{ op = "color_jitter", hue = 0.1 }', v2.ColorJitter(hue=0.1)),
    (
        '{ op = "color_jitter", brightness = 0.4, contrast = 0.4, saturation = 0.4, hue = 0.1 }',
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
    ),
    ('{ op = "random_photometric_distort" }', v2.RandomPhotometricDistort()),
    ('{ op = "random_grayscale", p = 1 }', v2.RandomGrayscale(p=1)),
    ('{ op = "random_invert", p = 1 }', v2.RandomInvert(p=1)),
    ('{ op = "random_solarize", threshold = 128, p = 1 }', v2.RandomSolarize(128, p=1)),
    ('{ op = "random_posterize", bits = 4, p = 1 }', v2.RandomPosterize(4, p=1)),
    ('{ op = "random_equalize", p = 1 }', v2.RandomEqualize(p=1)),
    ('{ op = "random_autocontrast", p = 1 }', v2.RandomAutocontrast(p=1)),
    ('{ op = "random_adjust_sharpness", sharpness_factor = 2, p = 1 }', v2.RandomAdjustSharpness(2, p=1)),
    ('{ op = "gaussian_blur", kernel_size = 5 }', v2.GaussianBlur(5)),
    ('{ op = "gaussian_blur", kernel_size = 23 }', v2.GaussianBlur(23)),
    ('{ op = "random_horizontal_flip", p = 1 }', v2.RandomHorizontalFlip(p=1)),
    ('{ op = "random_vertical_flip", p = 1 }', v2.RandomVerticalFlip(p=1)),
    ('{ op = "pad", padding = 8 }', v2.Pad(8)),
    ('{ op = "random_erasing", p = 1 }', v2.RandomErasing(p=1)),
    ('{ op = "random_rotation", degrees = 30 }', v2.RandomRotation(30)),
    ('{ op = "random_rotation", degrees = 30, interpolation = "bilinear" }', v2.RandomRotation(30, "bilinear")),
    ('{ op = "random_rotation", degrees = 30, expand = true }', v2.RandomRotation(30, expand=True)),
    ('{ op = "random_affine", degrees = 15, translate = [0.1, 0.1] }', v2.RandomAffine(15, translate=(0.1, 0.1))),
    (
        '{ op = "random_affine", degrees = 15, translate = [0.1, 0.1], interpolation = "bilinear" }',
        v2.RandomAffine(15, translate=(0.1, 0.1), interpolation="bilinear"),
    ),
    ('{ op = "random_perspective", p = 1 }', v2.RandomPerspective(p=1)),
    ('{ op = "elastic_transform" }', v2.ElasticTransform()),
    ('{ op = "random_crop", size = 224, padding = 16 }', v2.RandomCrop(224, padding=16)),
    ('{ op = "random_resized_crop", size = 176 }', v2.RandomResizedCrop(176, antialias=True)),
    ('{ op = "random_resized_crop", size = 176, antialias = false }', v2.RandomResizedCrop(176, antialias=False)),
    # As torchvision's documentation of both says: what the crops are stacked to is the batch.
    ('{ op = "five_crop", size = 192 }', v2.Compose([v2.FiveCrop(192), torch.stack])),
    ('{ op = "ten_crop", size = 192 }', v2.Compose([v2.TenCrop(192), torch.stack])),
    ('{ op = "random_zoom_out", p = 1 }', v2.RandomZoomOut(p=1)),
    ('{ op = "to_dtype", dtype = "float32", scale = true }', v2.ToDtype(torch.float32, scale=True)),
    ('{ op = "to_dtype", dtype = "float16", scale = true }', v2.ToDtype(torch.float16, scale=True)),
    ('{ op = "rand_augment" }', v2.RandAugment()),
    ('{ op = "trivial_augment_wide" }', v2.TrivialAugmentWide()),
    ('{ op = "auto_augment" }', v2.AutoAugment()),
    ('{ op = "aug_mix" }', v2.AugMix()),
    (
        '{ op = "color_jitter", brightness = 0.4, contrast = 0.4 };{ op = "random_invert", p = 1 };'
        '{ op = "random_solarize", threshold = 128, p = 1 }',
        v2.Compose([v2.ColorJitter(0.4, 0.4), v2.RandomInvert(p=1), v2.RandomSolarize(128, p=1)]),
    ),
]


# For entire batches, with labels of 1,000 classes.
BATCH = 64
BATCH_STEPS = [
    ('{ op = "mixup" }', v2.MixUp(num_classes=1000)),
    ('{ op = "cutmix" }', v2.CutMix(num_classes=1000)),
]
SOUND_STEPS: list[tuple[str, Callable[[torch.Tensor], object]]] = []
if SpecAugment is not None:
    cosines = create_dct(40, 80, "ortho")
    SOUND_STEPS = [
        (
            '{ op = "spec_augment", n_time_masks = 2, time_mask_param = 40, n_freq_masks = 2, freq_mask_param = 27, zero_masking = true }',
            SpecAugment(2, 40, 2, 27, zero_masking=True),
        ),
        # The last line of torchaudio's MFCC, which makes the spectrogram itself.
        ('{ op = "mfcc" }', lambda mel: torch.matmul(mel.transpose(-1, -2), cosines).transpose(-1, -2)),
    ]


def photo(side: int = 224) -> torch.Tensor:
    index = torch.arange(side * side * 3)
    y, x, channel = index // 3 // side, index // 3 % side, index % 3
    smooth = 60 + 50 * torch.sin((x + 40 * channel) / 37) + 50 * torch.cos(y / 29)
    values = smooth.to(torch.uint8) + (index * 7919 % 41).to(torch.uint8)
    return values.reshape(side, side, 3).permute(2, 0, 1).contiguous()


def theirs(transform: Callable[[], object], seconds: float) -> float:
    for _ in range(8):
        transform()
    begun, images = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        for _ in range(8):
            transform()
        images += 8
    return images / (time.perf_counter() - begun)


def written_bytes(made: object) -> int:
    """How many bytes of images a transform gave; labels are not counted."""
    image = made[0] if isinstance(made, tuple) else made
    assert isinstance(image, torch.Tensor)
    return image.numel() * image.element_size()


def albumentation(step: str) -> Callable[..., object] | None:
    """What Albumentations has for a step, if it does the same."""
    if albumentations is None:
        return None
    a = albumentations

    def jitter(**given: float) -> Callable[..., object]:
        return a.ColorJitter(**{"brightness": 0, "contrast": 0, "saturation": 0, "hue": 0, **given}, p=1)

    known: dict[str, Callable[[], Callable[..., object]]] = {
        COPY: lambda: lambda image: image.copy(),
        '{ op = "color_jitter", brightness = 0.4 }': lambda: jitter(brightness=0.4),
        '{ op = "color_jitter", contrast = 0.4 }': lambda: jitter(contrast=0.4),
        '{ op = "color_jitter", saturation = 0.4 }': lambda: jitter(saturation=0.4),
        '{ op = "color_jitter", hue = 0.1 }': lambda: jitter(hue=0.1),
        '{ op = "color_jitter", brightness = 0.4, contrast = 0.4, saturation = 0.4, hue = 0.1 }': lambda: jitter(
            brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1
        ),
        '{ op = "random_grayscale", p = 1 }': lambda: a.ToGray(p=1),
        '{ op = "random_invert", p = 1 }': lambda: a.InvertImg(p=1),
        '{ op = "random_solarize", threshold = 128, p = 1 }': lambda: a.Solarize(threshold_range=(0.5, 0.5), p=1),
        '{ op = "random_posterize", bits = 4, p = 1 }': lambda: a.Posterize(num_bits=4, p=1),
        '{ op = "random_equalize", p = 1 }': lambda: a.Equalize(p=1),
        '{ op = "random_autocontrast", p = 1 }': lambda: a.AutoContrast(p=1),
        '{ op = "gaussian_blur", kernel_size = 5 }': lambda: a.GaussianBlur(blur_limit=(5, 5), sigma_limit=(0.1, 2.0), p=1),
        '{ op = "gaussian_blur", kernel_size = 23 }': lambda: a.GaussianBlur(blur_limit=(23, 23), sigma_limit=(0.1, 2.0), p=1),
        '{ op = "random_horizontal_flip", p = 1 }': lambda: a.HorizontalFlip(p=1),
        '{ op = "random_vertical_flip", p = 1 }': lambda: a.VerticalFlip(p=1),
        '{ op = "pad", padding = 8 }': lambda: a.Pad(padding=8, p=1),
        '{ op = "random_erasing", p = 1 }': lambda: a.Erasing(p=1),
        '{ op = "random_rotation", degrees = 30 }': lambda: a.Rotate(limit=30, interpolation=0, border_mode=0, p=1),
        '{ op = "random_rotation", degrees = 30, interpolation = "bilinear" }': lambda: a.Rotate(limit=30, interpolation=1, border_mode=0, p=1),
        '{ op = "random_affine", degrees = 15, translate = [0.1, 0.1] }': lambda: a.Affine(
            rotate=(-15, 15), translate_percent=(-0.1, 0.1), scale=1, shear=0, interpolation=0, p=1
        ),
        '{ op = "random_affine", degrees = 15, translate = [0.1, 0.1], interpolation = "bilinear" }': lambda: a.Affine(
            rotate=(-15, 15), translate_percent=(-0.1, 0.1), scale=1, shear=0, interpolation=1, p=1
        ),
        '{ op = "random_perspective", p = 1 }': lambda: a.Perspective(p=1),
        # Albumentations' `alpha` is in pixels.
        '{ op = "elastic_transform" }': lambda: a.ElasticTransform(alpha=25, sigma=5, p=1),
        '{ op = "random_crop", size = 224, padding = 16 }': lambda: a.Compose([a.Pad(padding=16, p=1), a.RandomCrop(224, 224, p=1)]),
        # OpenCV's `INTER_AREA` where the rectangle becomes smaller, which is its way to weigh all pixels; and its `INTER_LINEAR`, which never does.
        '{ op = "random_resized_crop", size = 176 }': lambda: a.RandomResizedCrop(size=(176, 176), area_for_downscale="image", p=1),
        '{ op = "random_resized_crop", size = 176, antialias = false }': lambda: a.RandomResizedCrop(size=(176, 176), p=1),
        '{ op = "to_dtype", dtype = "float32", scale = true }': lambda: a.ToFloat(p=1),
    }
    return known[step]() if step in known else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.2, help="how long each of the five runs of a peer lasts")
    parser.add_argument("--output", type=Path, default=ROOT / "bench/results/augmentations.md", help="the page that is written")
    parser.add_argument(
        "--program",
        type=Path,
        default=ROOT / "target/release/examples/augmentations",
        help="Forebay's half, where it was built",
    )
    parser.add_argument("--only", metavar="TEXT", help="only steps that have this in them; the page is not written")
    given = parser.parse_args()
    image = photo()
    batch = (image.to(torch.float32).div(255).repeat(BATCH, 1, 1, 1), torch.arange(BATCH))
    mel = (torch.arange(80_000) * 7919 % 1551 / 100 - 11.5).reshape(1000, 80).T[None].contiguous()
    # Each with what the peer is called with, and how many images that is.
    every = [(step, functools.partial(transform, image), 1) for step, transform in STEPS]
    every += [(step, functools.partial(transform, *batch), BATCH) for step, transform in BATCH_STEPS]
    every += [(step, functools.partial(transform, mel), 1) for step, transform in SOUND_STEPS]
    steps = [entry for entry in every if given.only is None or given.only in entry[0]]
    if not steps:
        parser.error(f"no step has `{given.only}` in it")
    torch.set_num_threads(1)
    pixels = image.permute(1, 2, 0).contiguous().numpy()
    if albumentations is not None:
        import cv2

        cv2.setNumThreads(1)
    program = subprocess.Popen([given.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdin is not None and program.stdout is not None

    def forebay(line: str) -> str:
        program.stdin.write(line + "\n")
        program.stdin.flush()
        return program.stdout.readline().strip()

    level = forebay("level")
    lines = [
        "# Augmentations compared with torchvision and Albumentations",
        "",
        f"Images of 224 × 224 × 3 in uint8 per second, one core of {processor()}, by `make bench-augmentations`: Forebay (kernels: {level}) beside",
        f"torchvision's transforms (v2) on tensors (torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}, one thread)",
        "and Albumentations on arrays "
        + (f"({albumentations.__version__}, one thread of OpenCV)" if albumentations is not None else "(not installed)")
        + ", where it has a transform that does the same.",
        "",
        "| step | Forebay | torchvision | ratio | Albumentations | ratio |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    ratios: list[float] = []
    others: list[float] = []
    below: list[str] = []
    for step, peer, images in steps:
        other = albumentation(step)
        runs: list[tuple[float, float, float]] = []
        for _ in range(RUNS):
            ours = float(forebay(step))
            torchvision_rate = images * theirs(peer, given.seconds)
            other_rate = theirs(functools.partial(other, image=pixels), given.seconds) if other is not None else 0.0
            runs.append((ours, torchvision_rate, other_rate))
        ours, torchvision_rate, other_rate = (statistics.median(rates) for rates in zip(*runs, strict=True))
        ratio, other_ratio = ours / torchvision_rate, ours / other_rate if other is not None else None
        line = f"| `{step.replace(';', '`, `')}` | {ours:,.0f} | {torchvision_rate:,.0f} | {ratio:.1f} |"
        line += f" {other_rate:,.0f} | {other_ratio:.1f} |" if other_ratio is not None else " | |"
        if step != COPY:
            ratios.append(ratio)
            others += [other_ratio] if other_ratio is not None else []
            missed = [
                f"{found:.1f} times {name}"
                for name, found in (("torchvision", ratio), ("Albumentations", other_ratio))
                if found is not None and found < BAR
            ]
            if missed:
                written = written_bytes(peer()) // images
                copies = statistics.median(float(forebay(f"copy {written}")) for _ in range(RUNS))
                limit = f"a bare copy of the {written:,} bytes that it writes is done {copies:,.0f} times a second, of which it reaches {ours / copies:.0%}"
                below.append(f"- `{step}`: {' and '.join(missed)}; {limit}")
        lines.append(line)
        print(lines[-1], flush=True)
    if given.only is not None:
        print("\n".join(below))
        return
    lines += ["", f"Geometric mean of the ratios to torchvision: {statistics.geometric_mean(ratios):.1f}; the lowest: {min(ratios):.1f}."]
    if others:
        lines += [f"To Albumentations: {statistics.geometric_mean(others):.1f}; the lowest: {min(others):.1f}."]
    lines += [
        "",
        "torchvision's `five_crop` and `ten_crop` give views of one image, or of one and its mirror image: here they are stacked, as its documentation says, since a batch",
        "has to be written. Ours are samples of their own, copied once when they are cut and once more into their batch. `random_resized_crop` gives Pillow's pixels, and without",
        "`antialias` those of torchvision without it. Albumentations does it by OpenCV: with `antialias` it is compared with `area_for_downscale`, which weighs all pixels where an image",
        "becomes smaller (but not by distance), and without it with the plain bilinear filter.",
    ]
    if below:
        lines += [
            "",
            f"Less than {BAR} times a peer's rate, with the limit of whatever writes as many bytes, read from and written to memory that stays the same:",
            "",
            *below,
        ]
    given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
