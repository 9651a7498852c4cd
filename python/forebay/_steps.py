"""Steps that work on images, with the names, arguments and defaults of `torchvision.transforms.v2`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from ._audio import AudioSteps
from ._warps import WarpSteps, listed

__all__ = ["ImageSteps", "Steps"]


class ImageSteps(WarpSteps):
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
        backend: str = "pillow",
        **options: Any,
    ) -> Self:
        """Resize to a shorter side (`256`), or to a height and width (`(256, 320)`). `backend` is the library whose result it equals."""
        return self.step("resize", size=size, interpolation=interpolation, backend=backend, **options)

    def center_crop(self, size: int | Sequence[int], *, padding: int = 0, **options: Any) -> Self:
        """Crop the center: a square (`224`), or a height and width. `padding` zeros are added on each side first."""
        return self.step("center_crop", size=size, padding=padding, **options)

    def random_crop(
        self,
        size: int | Sequence[int],
        *,
        padding: int = 0,
        pad_if_needed: bool = False,
        fill: float | Sequence[float] = 0.0,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """Crop a random square (`224`), or a height and width.

        `padding` pixels are added on each side first; with `pad_if_needed` also as many as are lacking. They are `fill`, and `mask_fill` in a mask.
        """
        more = {"pad_if_needed": pad_if_needed or None, "fill": listed(fill) or None, "mask_fill": mask_fill or None}
        return self.step("random_crop", size=size, padding=padding, **more, **options)

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        *,
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
        **options: Any,
    ) -> Self:
        """Crop a random rectangle with `scale` of the area and an aspect ratio within `ratio`, and resize it to `size`.

        Without `antialias`, not all pixels count where the rectangle becomes smaller, as in OpenCV.
        """
        return self.step(
            "random_resized_crop",
            size=size,
            scale=list(scale),
            ratio=list(ratio),
            interpolation=interpolation,
            antialias=antialias,
            **options,
        )

    def scale_jitter(
        self,
        target_size: Sequence[int],
        scale_range: Sequence[float] = (0.1, 2.0),
        interpolation: str = "bilinear",
        **options: Any,
    ) -> Self:
        """Resize so that the image just fits into `target_size` (width, height), times a random factor: large scale jitter."""
        return self.step("scale_jitter", target_size=list(target_size), scale_range=list(scale_range), interpolation=interpolation, **options)

    def random_shortest_size(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: str = "bilinear",
        **options: Any,
    ) -> Self:
        """Resize to a shorter side drawn from `min_size`, but no longer side above `max_size`."""
        return self.step("random_shortest_size", min_size=listed(min_size), max_size=max_size, interpolation=interpolation, **options)

    def random_resize(self, min_size: int, max_size: int, interpolation: str = "bilinear", **options: Any) -> Self:
        """Resize to a shorter side from `min_size` to below `max_size`."""
        return self.step("random_resize", min_size=min_size, max_size=max_size, interpolation=interpolation, **options)

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

    def to_dtype(self, dtype: str, scale: bool = False, **options: Any) -> Self:
        """Convert to another element type, e.g. `"float32"`, `"float16"` or `"bfloat16"`. With `scale`, 255 of `uint8` becomes 1.0, and back.

        NumPy has no `bfloat16`: batches of it are PyTorch's or JAX's, or those of the package `ml_dtypes`.
        """
        return self.step("to_dtype", dtype=dtype, scale=scale, **options)

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
            brightness=listed(brightness),
            contrast=listed(contrast),
            saturation=listed(saturation),
            hue=listed(hue),
            **options,
        )

    def random_photometric_distort(
        self,
        brightness: Sequence[float] = (0.875, 1.125),
        contrast: Sequence[float] = (0.5, 1.5),
        saturation: Sequence[float] = (0.5, 1.5),
        hue: Sequence[float] = (-0.05, 0.05),
        p: float = 0.5,
        **options: Any,
    ) -> Self:
        """Change brightness, contrast, saturation, hue and the order of the channels, each with probability `p`, as SSD's recipe does.

        Factors are drawn between the two that are given; the hue turns by a share of a full turn between two.
        """
        return self.step(
            "random_photometric_distort",
            brightness=list(brightness),
            contrast=list(contrast),
            saturation=list(saturation),
            hue=list(hue),
            p=p,
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

    def gaussian_blur(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0), **options: Any) -> Self:
        """Blur with a Gaussian kernel of odd size (one number, or x and y) and a standard deviation drawn from `sigma`."""
        return self.step("gaussian_blur", kernel_size=listed(kernel_size), sigma=listed(sigma), **options)

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
            padding=listed(padding),
            fill=listed(fill),
            padding_mode=padding_mode,
            mask_fill=mask_fill,
            **options,
        )

    def random_zoom_out(
        self,
        fill: float | Sequence[float] = 0.0,
        side_range: Sequence[float] = (1.0, 4.0),
        p: float = 0.5,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """With probability `p`, put the image somewhere on one that is larger by a factor within `side_range`.

        Around it is `fill`, and `mask_fill` in a mask.
        """
        return self.step("random_zoom_out", fill=listed(fill), side_range=list(side_range), p=p, mask_fill=mask_fill, **options)

    def random_iou_crop(
        self,
        min_scale: float = 0.3,
        max_scale: float = 1.0,
        min_aspect_ratio: float = 0.5,
        max_aspect_ratio: float = 2.0,
        sampler_options: Sequence[float] | None = None,
        trials: int = 40,
        **options: Any,
    ) -> Self:
        """Crop a random rectangle that overlaps a box by a random least IoU: `random_iou_crop(fields=["image", "boxes"])`.

        The IoU is one of `sampler_options` (0, 0.1, 0.3, 0.5, 0.7, 0.9 and 1, which leaves the image as it is); after `trials` rectangles in vain,
        another one is drawn. Boxes whose center is outside are removed.
        """
        return self.step(
            "random_iou_crop",
            min_scale=min_scale,
            max_scale=max_scale,
            min_aspect_ratio=min_aspect_ratio,
            max_aspect_ratio=max_aspect_ratio,
            sampler_options=None if sampler_options is None else list(sampler_options),
            trials=trials,
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
        value = value if isinstance(value, str) else listed(value)
        return self.step("random_erasing", p=p, scale=list(scale), ratio=list(ratio), value=value, **options)

    def random_apply(self, steps: Iterable[Mapping[str, Any]], p: float = 0.5, **options: Any) -> Self:
        """Apply all of `steps` with probability `p`, else none: `random_apply(Steps().color_jitter(0.4), p=0.8)`."""
        return self.step("random_apply", steps=[dict(step) for step in steps], p=p, **options)

    def random_choice(
        self,
        steps: Iterable[Mapping[str, Any] | Iterable[Mapping[str, Any]]],
        p: Sequence[float] | None = None,
        **options: Any,
    ) -> Self:
        """Apply one of `steps`; `p` are their probabilities, compared with each other.

        `steps` is a `Steps`, one of whose steps is applied, or a list of them, one of which is applied entirely.
        """
        return self.step("random_choice", steps=[_as_one(step) for step in steps], p=None if p is None else list(p), **options)

    def rand_augment(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """RandAugment: `num_ops` random changes of one `magnitude`, below `num_magnitude_bins`."""
        return self.step(
            "rand_augment",
            num_ops=num_ops,
            magnitude=magnitude,
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=None if fill is None else listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def rand_augment_transform(
        self,
        config_str: str,
        *,
        interpolation: str = "bilinear",
        fill: float | Sequence[float] = (124, 116, 104),
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """RandAugment as timm has it, by its configuration: `"rand-m9-mstd0.5-inc1"`.

        `fill` is timm's `img_mean`. With `mstd` the magnitude of each change is drawn.
        """
        return self.step(
            "rand_augment_transform",
            config_str=config_str,
            interpolation=interpolation,
            fill=listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def trivial_augment_wide(
        self,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """TrivialAugmentWide: one random change of random magnitude."""
        return self.step(
            "trivial_augment_wide",
            num_magnitude_bins=num_magnitude_bins,
            interpolation=interpolation,
            fill=None if fill is None else listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def auto_augment(
        self,
        policy: str = "imagenet",
        interpolation: str = "nearest",
        fill: float | Sequence[float] | None = None,
        *,
        mask_fill: int = 0,
        **options: Any,
    ) -> Self:
        """AutoAugment: one of the 25 learned pairs of changes of `policy`, `"imagenet"`, `"cifar10"` or `"svhn"`."""
        return self.step(
            "auto_augment",
            policy=policy,
            interpolation=interpolation,
            fill=None if fill is None else listed(fill),
            mask_fill=mask_fill,
            **options,
        )

    def aug_mix(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: str = "bilinear",
        fill: float | Sequence[float] | None = None,
        **options: Any,
    ) -> Self:
        """AugMix: mix the image with what `mixture_width` chains of random changes make of it.

        Parameters
        ----------
        severity
            Maximum strength, 1 to 10.
        chain_depth
            Number of changes in a chain; -1 draws 1 to 3.
        alpha
            Parameter of the distribution of the weights.
        all_ops
            Include brightness, color, contrast and sharpness.
        """
        return self.step(
            "aug_mix",
            severity=severity,
            mixture_width=mixture_width,
            chain_depth=chain_depth,
            alpha=alpha,
            all_ops=all_ops,
            interpolation=interpolation,
            fill=None if fill is None else listed(fill),
            **options,
        )

    def five_crop(self, size: int | Sequence[int], **options: Any) -> Self:
        """Cut out the four corners and the center, one sample each."""
        return self.step("five_crop", size=size, **options)

    def ten_crop(self, size: int | Sequence[int], vertical_flip: bool = False, **options: Any) -> Self:
        """Cut out the four corners and the center, and each of them flipped, one sample each."""
        return self.step("ten_crop", size=size, vertical_flip=vertical_flip, **options)


def _as_one(step: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A step, or several as one."""
    if isinstance(step, Mapping):
        return dict(step)
    steps = [dict(one) for one in step]
    return steps[0] if len(steps) == 1 else {"op": "random_apply", "p": 1.0, "steps": steps}


class Steps(ImageSteps, AudioSteps):
    """Steps without a source, for `Pipeline.random_apply` and `Pipeline.random_choice`.

    Each method returns a new object, as those of `Pipeline` do: `forebay.Steps().color_jitter(0.4).random_grayscale()`.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: Iterable[Mapping[str, Any]] = ()) -> None:
        self._steps = tuple(dict(step) for step in steps)

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`, with the parameters of a pipeline file."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return type(self)((*self._steps, {"op": op, **given}))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter([dict(step) for step in self._steps])

    def __len__(self) -> int:
        return len(self._steps)

    def __repr__(self) -> str:
        return f"Steps({[step['op'] for step in self._steps]})"
