"""L3 images decoded on a GPU, NVIDIA's or AMD's, to PyTorch's tensors. Experimental. Needs PyTorch and Triton: `pip install forebay[gpu]`.

A `Loader` with `decode="gpu"` does it for a data set whose images are kept as L3; `decode` does it for bytes of your own::

    images = forebay.gpu.decode(files, crop=224, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225), layout="CHW")

What is compressed crosses to the device, and pixels are made there. The manual is docs/how-to/gpu.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from .._errors import Error, UsageError
from ._batch import Decoded, Wanted, decode_batch
from ._torch_device import TorchDevice

__all__ = ["decode"]

_FLOATS = ("float32", "float16", "bfloat16")
_devices: dict[str, TorchDevice] = {}


def decode(
    images: Sequence[bytes],
    *,
    device: str = "cuda",
    crop: int | tuple[int, int] | Sequence[tuple[int, int, int, int]] | None = None,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    dtype: Literal["float32", "float16", "bfloat16"] | None = None,
    layout: Literal["HWC", "CHW"] = "HWC",
) -> Any:
    """Decode L3 images (`fast` and `dense`) on a GPU.

    Checksums, headers and tables are verified on the CPU first. An image that is damaged, or that kernels find damaged, raises
    `DataError` with its number in `record`.

    Parameters
    ----------
    images
        The bytes of each.
    device
        The GPU, as PyTorch names it. AMD's are called `"cuda"` there, too.
    crop
        What to cut out: a size (one number, or height and width) of the middle, or a rectangle of each image: top, left, height and width. Strips of an
        image that it does not touch are neither sent nor decoded.
    mean, std
        Of each channel, for values from 0 to 1: pixels become (pixel / 255 - mean) / std, or / 65535 for 16 bits.
    dtype
        Floating point type of the pixels. By default `uint8` or `uint16` as they are stored, and `float32` with `mean`; without `mean`, from 0 to 1.
    layout
        `"HWC"` (channels last) or `"CHW"`.

    Returns
    -------
    A tensor `[images, height, width, channels]` (or `[images, channels, height, width]`) if all images are alike, otherwise a list of tensors.
    """
    if layout not in ("HWC", "CHW"):
        raise UsageError(f"`layout` is `{layout}`, but must be `HWC` or `CHW`")
    if dtype not in (None, *_FLOATS):
        raise UsageError(f"`dtype` is `{dtype}`, but must be `float32`, `float16` or `bfloat16`")
    if (mean is None) != (std is None) or (mean is not None and std is not None and len(mean) != len(std)):
        raise UsageError("`mean` and `std` must be given together, and be as many as each other")
    images = list(images)
    size, regions = _crop(crop, len(images))
    if not images:
        return []
    affine = None
    if mean is not None or dtype is not None:
        # By the first image: what differs from it in depth is refused.
        largest = 65535.0 if len(images[0]) > 8 and images[0][8] == 16 else 255.0
        means = [0.0] if mean is None else [float(number) for number in mean]
        deviations = [1.0] if std is None else [float(number) for number in std]
        if not all(deviations):
            raise UsageError("`std` has a 0, by which nothing can be divided")
        affine = ([1 / (largest * s) for s in deviations], [-m / s for m, s in zip(means, deviations, strict=True)])
    bits = None if affine is None else 16 if largest > 255 else 8
    made = (dtype or "float32") if affine else None
    wanted = Wanted(size, regions, affine, made, channels_first=layout == "CHW", bits=bits)
    done = decode_on(device, images, wanted)
    if done.failed:
        raise first_failure(done.failed)
    return done.images


def _crop(crop: Any, images: int) -> tuple[tuple[int, int] | None, list[tuple[int, int, int, int]] | None]:
    """The size of what is cut out of the middle, or what is cut out of each image."""
    if crop is None:
        return None, None
    if isinstance(crop, int):
        return (crop, crop), None
    crop = list(crop)
    if len(crop) == 2 and all(isinstance(side, int) for side in crop):
        return (crop[0], crop[1]), None
    regions = [tuple(int(number) for number in region) for region in crop]
    if len(regions) != images or any(len(region) != 4 for region in regions):
        raise UsageError(f"`crop` must be a size, or top, left, height and width for each of the {images} images")
    return None, [(top, left, height, width) for top, left, height, width in regions]


def decode_on(device: str, images: Sequence[bytes], wanted: Wanted) -> Decoded:
    """Decode images on a device, on a stream of its own."""
    if device not in _devices:
        _devices[device] = TorchDevice(device)
    gpu = _devices[device]
    with gpu.working():
        done = decode_batch(gpu, images, wanted)
    gpu.hand_over(done.images)
    return done


def first_failure(failed: dict[int, Exception]) -> Exception:
    """What is wrong with the first image that is wrong, and how many are."""
    number = min(failed)
    more = f" ({len(failed)} of the images are damaged or cannot be decoded here)" if len(failed) > 1 else ""
    problem = failed[number]
    kind = type(problem) if isinstance(problem, Error) else Error
    return kind(f"image {number}{more}: {problem}", record=number)
