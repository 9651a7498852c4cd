"""Steps that work on images, with the names, arguments and defaults of `torchvision.transforms.v2`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

__all__ = ["ImageSteps"]


def _listed(numbers: float | Sequence[float]) -> float | list[float]:
    return list(numbers) if isinstance(numbers, Sequence) else numbers


class ImageSteps:
    """The image steps of a pipeline."""

    __slots__ = ()

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`."""
        raise NotImplementedError

    def resize(
        self,
        size: int | Sequence[int],
        *,
        interpolation: str = "bilinear",
        variant: str = "antialias",
        **options: Any,
    ) -> Self:
        """Resize to a shorter side (`256`), or to a height and width (`(256, 320)`)."""
        return self.step("resize", size=size, interpolation=interpolation, variant=variant, **options)

    def center_crop(self, size: int | Sequence[int], *, padding: int = 0, **options: Any) -> Self:
        """Crop the center: a square (`224`), or a height and width. `padding` zeros are added on each side first."""
        return self.step("center_crop", size=size, padding=padding, **options)

    def random_crop(self, size: int | Sequence[int], *, padding: int = 0, **options: Any) -> Self:
        """Crop a random square (`224`), or a height and width. `padding` zeros are added on each side first."""
        return self.step("random_crop", size=size, padding=padding, **options)

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        *,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        **options: Any,
    ) -> Self:
        """Crop a random rectangle with `scale` of the area and an aspect ratio within `ratio`, and resize it to `size`."""
        return self.step(
            "random_resized_crop",
            size=size,
            scale=list(scale),
            ratio=list(ratio),
            interpolation=interpolation,
            **options,
        )

    def random_horizontal_flip(self, p: float = 0.5, **options: Any) -> Self:
        """Flip horizontally with probability `p`."""
        return self.step("random_horizontal_flip", p=p, **options)

    def grayscale(self, **options: Any) -> Self:
        """Convert RGB to one channel."""
        return self.step("grayscale", **options)

    def center_pixels(self, **options: Any) -> Self:
        """Scale 8-bit values to [-1, 1]: x / 127.5 - 1."""
        return self.step("center_pixels", **options)

    def normalize(
        self,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        *,
        scale: float | None = None,
        **options: Any,
    ) -> Self:
        """Normalize each channel to (x · scale - mean) / std. By default with the statistics of ImageNet."""
        return self.step("normalize", mean=mean, std=std, scale=scale, **options)

    def to_chw(self, **options: Any) -> Self:
        """Transpose from `[height, width, channels]` to `[channels, height, width]`."""
        return self.step("to_chw", **options)

    def tiles(self, size: int, **options: Any) -> Self:
        """Cut an image into square tiles, one sample each."""
        return self.step("tiles", size=size, **options)

    def color_jitter(
        self,
        brightness: float | Sequence[float] = 0.0,
        contrast: float | Sequence[float] = 0.0,
        saturation: float | Sequence[float] = 0.0,
        hue: float | Sequence[float] = 0.0,
        **options: Any,
    ) -> Self:
        """Change brightness, contrast, saturation and hue by random amounts, in random order.

        A factor is drawn from 1 - x to 1 + x, or between the two that are given; the hue turns by up to `hue` of a full turn, at most 0.5.
        """
        return self.step(
            "color_jitter",
            brightness=_listed(brightness),
            contrast=_listed(contrast),
            saturation=_listed(saturation),
            hue=_listed(hue),
            **options,
        )

    def random_grayscale(self, p: float = 0.1, **options: Any) -> Self:
        """Convert to gray with probability `p`. The number of channels remains."""
        return self.step("random_grayscale", p=p, **options)

    def random_invert(self, p: float = 0.5, **options: Any) -> Self:
        """Invert with probability `p`."""
        return self.step("random_invert", p=p, **options)

    def random_solarize(self, threshold: float, p: float = 0.5, **options: Any) -> Self:
        """Invert values of at least `threshold` with probability `p`."""
        return self.step("random_solarize", threshold=threshold, p=p, **options)

    def random_posterize(self, bits: int, p: float = 0.5, **options: Any) -> Self:
        """Keep `bits` bits of each value with probability `p`."""
        return self.step("random_posterize", bits=bits, p=p, **options)

    def random_equalize(self, p: float = 0.5, **options: Any) -> Self:
        """Equalize the histogram of each channel with probability `p`."""
        return self.step("random_equalize", p=p, **options)

    def random_autocontrast(self, p: float = 0.5, **options: Any) -> Self:
        """Stretch the values of each channel to 0 to 255 with probability `p`."""
        return self.step("random_autocontrast", p=p, **options)

    def random_adjust_sharpness(self, sharpness_factor: float, p: float = 0.5, **options: Any) -> Self:
        """Change the sharpness with probability `p`: 0 is blurred, 1 unchanged, 2 twice as sharp."""
        return self.step("random_adjust_sharpness", sharpness_factor=sharpness_factor, p=p, **options)

    def gaussian_blur(
        self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0), **options: Any
    ) -> Self:
        """Blur with a Gaussian kernel of odd size (one number, or x and y) and a standard deviation drawn from `sigma`."""
        return self.step("gaussian_blur", kernel_size=_listed(kernel_size), sigma=_listed(sigma), **options)

    def random_vertical_flip(self, p: float = 0.5, **options: Any) -> Self:
        """Flip vertically with probability `p`."""
        return self.step("random_vertical_flip", p=p, **options)

    def pad(
        self,
        padding: int | Sequence[int],
        fill: float | Sequence[float] = 0.0,
        padding_mode: str = "constant",
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Pad on all sides.

        Parameters
        ----------
        padding
            Pixels on each side; left and right, top and bottom; or left, top, right, bottom.
        fill
            Value of the margin, one or one per channel.
        padding_mode
            `"constant"`, `"edge"`, `"reflect"` or `"symmetric"`.
        mask_fill
            Class of the margin of a mask, such as 255 to be ignored.
        """
        return self.step(
            "pad",
            padding=_listed(padding),
            fill=_listed(fill),
            padding_mode=padding_mode,
            mask_fill=mask_fill,
            **options,
        )

    def random_erasing(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: float | Sequence[float] | str = 0.0,
        **options: Any,
    ) -> Self:
        """Overwrite a random rectangle with probability `p`.

        `value` is one number, one per channel, or `"random"` for normally distributed values, of images in `float32`. Channels may
        be last or first.
        """
        value = value if isinstance(value, str) else _listed(value)
        return self.step("random_erasing", p=p, scale=list(scale), ratio=list(ratio), value=value, **options)
