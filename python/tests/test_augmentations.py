"""Augmentations through the whole loader: types, draws that repeat, masks that follow, names of torchvision."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import forebay
import numpy
import pytest

#: Each with the arguments that it cannot do without.
AUGMENTATIONS: dict[str, tuple[object, ...]] = {
    "color_jitter": (0.4, 0.4, 0.4, 0.1),
    "random_grayscale": (),
    "random_invert": (),
    "random_solarize": (128,),
    "random_posterize": (4,),
    "random_equalize": (),
    "random_autocontrast": (),
    "random_adjust_sharpness": (2,),
    "gaussian_blur": (5,),
    "random_vertical_flip": (),
    "pad": ((1, 2, 3, 4),),
    "random_erasing": (),
    "random_rotation": (30,),
    "random_affine": (15, (0.1, 0.1), (0.8, 1.2), 5, "bilinear"),
    "random_perspective": (),
    "rand_augment": (),
    "trivial_augment_wide": (),
    "auto_augment": (),
    "aug_mix": (),
}


def images(pipeline: forebay.Pipeline, data: Path, **options: object) -> numpy.ndarray:  # type: ignore[type-arg]
    loader = forebay.Loader(pipeline, data=data, batch_size=25, seed=3, **options)  # type: ignore[arg-type]
    return numpy.concatenate([numpy.array(batch["image"]) for batch in loader])


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_each_augmentation_changes_images_and_repeats(name: str, photos: Path) -> None:
    plain = forebay.Pipeline.files("**/*.jpg").decode().center_crop(64)
    augmented = getattr(plain, name)(*AUGMENTATIONS[name])
    assert name in augmented.steps
    found = images(augmented, photos, threads=2)
    assert found.dtype == numpy.uint8 and found.shape[3] == 3
    assert (found.shape != (50, 64, 64, 3)) or (found != images(plain, photos)).any()
    assert (found == images(augmented, photos, threads=1)).all(), "draws do not depend on threads"


def test_arguments_are_those_of_torchvision() -> None:
    def names(method: Callable[..., object]) -> list[str]:
        parameters = inspect.signature(method).parameters.values()
        return [name.name for name in parameters if name.kind is name.POSITIONAL_OR_KEYWORD][1:]

    steps = forebay.Steps
    assert names(steps.color_jitter) == ["brightness", "contrast", "saturation", "hue"]
    assert names(steps.random_affine) == ["degrees", "translate", "scale", "shear", "interpolation", "fill", "center"]
    assert names(steps.random_erasing) == ["p", "scale", "ratio", "value"]
    assert names(steps.gaussian_blur) == ["kernel_size", "sigma"]
    assert names(steps.rand_augment) == ["num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill"]


def test_steps_within_steps(photos: Path) -> None:
    steps = forebay.Steps().random_invert(1).random_vertical_flip(1)
    assert len(steps) == 2 and "random_invert" in repr(steps)
    plain = forebay.Pipeline.files("**/*.jpg").decode().center_crop(32)
    before = images(plain, photos)
    changed = 255 - before[:, ::-1]
    found = images(plain.random_apply(steps, p=0.5), photos)
    kept = (found == before).all(axis=(1, 2, 3))
    assert ((found == changed).all(axis=(1, 2, 3)) ^ kept).all() and 10 < kept.sum() < 40
    found = images(plain.random_choice(steps, p=[1, 0]), photos)
    assert (found == 255 - before).all()
    with pytest.raises(forebay.PipelineError, match="give what they get"):
        plain.random_apply(forebay.Steps().random_crop(8))


def test_crops_become_samples(photos: Path) -> None:
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().ten_crop(32)
    assert images(pipeline, photos).shape == (500, 32, 32, 3)


def test_errors_name_the_parameter() -> None:
    decoded = forebay.Pipeline.files("**/*.jpg").decode()
    with pytest.raises(forebay.PipelineError, match="`hue` is `0.7`"):
        decoded.color_jitter(hue=0.7)
    with pytest.raises(forebay.PipelineError, match="`kernel_size` is `4"):
        decoded.gaussian_blur(4)
    with pytest.raises(forebay.PipelineError, match="1 or 3 channels in uint8"):
        decoded.normalize().color_jitter(0.4)
    with pytest.raises(forebay.PipelineError, match="float32 for a `random` value"):
        decoded.random_erasing(value="random")
