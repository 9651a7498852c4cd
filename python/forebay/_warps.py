"""Steps that warp images, with the names, arguments and defaults of `torchvision.transforms.v2`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

__all__ = ["WarpSteps", "listed"]


def listed(numbers: float | Sequence[float]) -> float | list[float]:
    """A number, or a list of them, as JSON has it."""
    return list(numbers) if isinstance(numbers, Sequence) else numbers


class WarpSteps:
    """The steps of a pipeline that move each pixel of an image elsewhere."""

    __slots__ = ()

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`."""
        raise NotImplementedError

    def random_rotation(
        self,
        degrees: float | Sequence[float],
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: float | Sequence[float] = 0.0,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Rotate by an angle of up to `degrees` either way, or between the two that are given, counterclockwise.

        `interpolation` is `"nearest"` or `"bilinear"`; `center` is x and y in pixels. With `expand` the image becomes as large as the rotated one.
        Outside of the image is `fill`, and `mask_fill` in a mask.
        """
        return self.step(
            "random_rotation",
            degrees=listed(degrees),
            interpolation=interpolation,
            expand=expand,
            center=None if center is None else list(center),
            fill=listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def random_affine(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: str = "nearest",
        fill: float | Sequence[float] = 0.0,
        center: Sequence[float] | None = None,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Rotate, translate, scale and shear by random amounts.

        Parameters
        ----------
        degrees
            Angle of up to so much either way, or between two, clockwise.
        translate
            Maximum shares of width and height.
        scale
            Smallest and largest factor.
        shear
            Degrees along x: up to that many either way, or between two; with four, between two along x and two along y.
        interpolation
            `"nearest"` or `"bilinear"`.
        fill, mask_fill
            Value outside of the image, and class outside of a mask.
        center
            What is rotated about, x and y in pixels. By default the center of the image.
        """
        return self.step(
            "random_affine",
            degrees=listed(degrees),
            translate=None if translate is None else list(translate),
            scale=None if scale is None else list(scale),
            shear=None if shear is None else listed(shear),
            interpolation=interpolation,
            fill=listed(fill),
            mask_fill=mask_fill,
            center=None if center is None else list(center),
            **options,
        )

    def random_perspective(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: str = "bilinear",
        fill: float | Sequence[float] = 0.0,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Distort the perspective with probability `p`: corners move inwards by up to `distortion_scale` of half the size."""
        return self.step(
            "random_perspective",
            distortion_scale=distortion_scale,
            p=p,
            interpolation=interpolation,
            fill=listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def elastic_transform(
        self,
        alpha: float | Sequence[float] = 50.0,
        sigma: float | Sequence[float] = 5.0,
        interpolation: str = "bilinear",
        fill: float | Sequence[float] = 0.0,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Move pixels by random distances, up to half of `alpha` pixels before a Gaussian of standard deviation `sigma` smooths them."""
        return self.step(
            "elastic_transform",
            alpha=listed(alpha),
            sigma=listed(sigma),
            interpolation=interpolation,
            fill=listed(fill),
            mask_fill=mask_fill,
            **options,
        )
