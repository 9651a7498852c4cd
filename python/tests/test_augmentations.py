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
    "random_photometric_distort": (),
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
    "elastic_transform": (),
    "rand_augment": (),
    "rand_augment_transform": ("rand-m9-mstd0.5-inc1",),
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
    assert names(steps.random_rotation) == ["degrees", "interpolation", "expand", "center", "fill"]
    assert names(steps.elastic_transform) == ["alpha", "sigma", "interpolation", "fill"]
    assert names(steps.random_zoom_out) == ["fill", "side_range", "p"]
    assert names(steps.random_iou_crop) == ["min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio", "sampler_options", "trials"]
    assert names(steps.random_photometric_distort) == ["brightness", "contrast", "saturation", "hue", "p"]
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
    # As torchvision's RandomChoice takes them: a list, of which one is done whole.
    found = images(plain.random_choice([forebay.Steps().random_invert(1), steps]), photos)
    inverted = (found == 255 - before).all(axis=(1, 2, 3))
    assert ((found == changed).all(axis=(1, 2, 3)) ^ inverted).all() and 10 < inverted.sum() < 40
    with pytest.raises(forebay.PipelineError, match="give what they get"):
        plain.random_apply(forebay.Steps().random_crop(8))


def test_crops_become_samples(photos: Path) -> None:
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().ten_crop(32)
    assert images(pipeline, photos).shape == (500, 32, 32, 3)


def test_errors_name_the_parameter() -> None:
    decoded = forebay.Pipeline.files("**/*.jpg").decode()
    with pytest.raises(forebay.PipelineError, match=r"`hue` is `0\.7`"):
        decoded.color_jitter(hue=0.7)
    with pytest.raises(forebay.PipelineError, match="`kernel_size` is `4"):
        decoded.gaussian_blur(4)
    with pytest.raises(forebay.PipelineError, match="1 or 3 channels in uint8"):
        decoded.normalize().color_jitter(0.4)
    with pytest.raises(forebay.PipelineError, match="float32 for a `random` value"):
        decoded.random_erasing(value="random")


def test_labels_are_vectors(photos: Path) -> None:
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().center_crop(16).one_hot(4, label_smoothing=0.2)
    assert pipeline.output["label"] == "float32[4]"
    (batch,) = forebay.Loader(pipeline, data=photos, batch_size=50)
    assert set(batch["label"].argmax(axis=1)) == {0, 1}
    numpy.testing.assert_allclose(batch["label"].max(axis=1), 0.85, rtol=1e-6)
    numpy.testing.assert_allclose(batch["label"].sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("first", [False, True])
def test_batches_are_mixed_with_their_neighbors(photos: Path, first: bool) -> None:
    plain = forebay.Pipeline.files("**/*.jpg").decode().center_crop(16).one_hot(2)
    plain = plain.normalize() if not first else plain.normalize().to_chw()
    (before,) = forebay.Loader(plain, data=photos, batch_size=50)
    (mixed,) = forebay.Loader(plain.mixup(alpha=0.4), data=photos, batch_size=50, seed=5)
    weight = mixed["label"][1] @ before["label"][1]
    same = (before["label"][1] == before["label"][0]).all()
    assert same or 0 <= weight <= 1
    pairs = [(own, other) for own, other in zip(before["image"], numpy.roll(before["image"], 1, axis=0), strict=True)]
    own, other = pairs[7]
    weight = ((mixed["image"][7] - other) * (own - other)).sum() / ((own - other) ** 2).sum()
    for found, (own, other) in zip(mixed["image"], pairs, strict=True):
        numpy.testing.assert_allclose(found, weight * own + (1 - weight) * other, atol=1e-4)
    (cut,) = forebay.Loader(plain.cutmix(), data=photos, batch_size=50, seed=5)
    for found, label, (own, other), labels in zip(
        cut["image"], cut["label"], pairs, zip(before["label"], numpy.roll(before["label"], 1, axis=0), strict=True), strict=False
    ):
        kept = (found == own).all(axis=0 if first else 2)
        assert ((found == other).all(axis=0 if first else 2) | kept).all()
        share = kept.mean()
        numpy.testing.assert_allclose(label, share * labels[0] + (1 - share) * labels[1], atol=1e-5)
    again = list(forebay.Loader(plain.mixup_or_cutmix(), data=photos, batch_size=10, seed=5, threads=1))
    for one, two in zip(again, forebay.Loader(plain.mixup_or_cutmix(), data=photos, batch_size=10, seed=5, threads=2), strict=True):
        assert (one["image"] == two["image"]).all() and (one["label"] == two["label"]).all()


def test_batch_steps_come_last(photos: Path) -> None:
    mixed = forebay.Pipeline.files("**/*.jpg").decode().center_crop(16).one_hot(2).mixup()
    with pytest.raises(forebay.PipelineError, match="works on whole batches: put it before"):
        mixed.to_chw()
    with pytest.raises(forebay.PipelineError, match="use `one_hot` first"):
        forebay.Pipeline.files("**/*.jpg").decode().center_crop(16).mixup()
    with pytest.raises(forebay.DataError, match="is not one of 1 classes"):
        list(forebay.Loader(forebay.Pipeline.files("**/*.jpg").decode().center_crop(16).one_hot(1), data=photos))


def test_masks_follow_policies_and_crops(tmp_path: Path) -> None:
    from PIL import Image

    for number in range(12):
        mask = numpy.zeros((48, 64), numpy.uint8)
        mask[10:30, 2 * number : 2 * number + 20] = 1
        for folder, pixels in {"images": numpy.dstack([mask * 200] * 3), "masks": mask}.items():
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / folder / f"{number}.png")
    plain = forebay.Pipeline.files("images/*.png", label=None, sidecars={"mask": "masks/{stem}.png"}).decode().decode_mask()
    both = ["image", "mask"]
    # Of a mask that stayed, hundreds of pixels would be elsewhere than in the image.
    rotated = plain.rand_augment(num_ops=1, magnitude=30, fields=both, mask_fill=9)
    filled = 0
    for batch in forebay.Loader(rotated, data=tmp_path, epochs=5, seed=2):
        for image, mask in zip(batch["image"], batch["mask"], strict=True):
            filled += int((mask == 9).any())
            if set(numpy.unique(image)) == {0, 200}:
                assert ((image[..., 0] > 0) == (mask == 1)).all()
    assert filled > 5
    for batch in forebay.Loader(plain.ten_crop(32, fields=both), data=tmp_path):
        assert batch["mask"].shape[1:] == (32, 32) and (batch["image"][..., 0] == batch["mask"] * 200).all()
    with pytest.raises(forebay.PipelineError, match="add it to the step's `fields`"):
        plain.rand_augment()
