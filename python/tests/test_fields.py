"""Samples of several fields: masks, boxes, JSON documents, further pictures, and Python functions as steps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from PIL import Image

SAMPLES = 12


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures whose red channel is their mask, a document with a box around the mask's object, and a second picture."""
    root = tmp_path_factory.mktemp("scenes")
    for folder in ("images", "masks", "meta", "right"):
        (root / folder).mkdir()
    random = numpy.random.default_rng(3)
    for number in range(SAMPLES):
        width, height = (int(random.integers(60, 90)) for _ in range(2))
        mask = numpy.zeros((height, width), numpy.uint8)
        left, top = (int(random.integers(5, 20)) for _ in range(2))
        mask[top : top + 25, left : left + 30] = number + 1
        image = numpy.repeat(mask[:, :, None], 3, axis=2)
        Image.fromarray(image).save(root / "images" / f"{number}.png")
        Image.fromarray(255 - image).save(root / "right" / f"{number}.png")
        palette = Image.fromarray(mask, mode="P")
        palette.putpalette([value for _ in range(256) for value in (9, 9, 9)])
        palette.save(root / "masks" / f"{number}.png")
        document = {"boxes": [[left, top, left + 30, top + 25, number + 1]], "weather": {"sunny": number % 2 == 0}}
        (root / "meta" / f"{number}.json").write_text(json.dumps(document))
    return root


def segmentation() -> forebay.Pipeline:
    return (
        forebay.Pipeline.files("images/*.png", label=None, sidecars={"mask": "masks/{stem}.png"})
        .decode()
        .decode_mask()
        .random_resized_crop(32, fields=["image", "mask"], interpolation="bilinear")
        .random_horizontal_flip(fields=["image", "mask"])
    )


def test_a_mask_is_cut_and_flipped_with_its_picture(scenes: Path) -> None:
    for batch in forebay.Loader(segmentation(), data=scenes, batch_size=5, shuffle=True, seed=3):
        assert batch["image"].shape[1:] == (32, 32, 3) and batch["mask"].shape[1:] == (32, 32)
        assert batch["mask"].dtype == numpy.uint8
        red = batch["image"][..., 0].astype(int)
        # The picture's values are interpolated, the mask's are not: they agree wherever the picture is not at an edge.
        classes = {int(Path(key).stem) + 1 for key in batch["key"]}
        assert set(numpy.unique(batch["mask"])) <= classes | {0}
        assert (numpy.abs(red - batch["mask"].astype(int)) == 0).mean() > 0.85


def test_a_mask_of_16_bits_stays_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "masks").mkdir()
    masks = {}
    for number in range(4):
        mask = numpy.arange(48 * 40, dtype=numpy.uint16).reshape(48, 40) * 33 + number
        masks[number] = mask
        Image.fromarray(numpy.zeros((48, 40, 3), numpy.uint8)).save(tmp_path / "images" / f"{number}.png")
        Image.fromarray(mask).save(tmp_path / "masks" / f"{number}.png")
    # One of 8 bits among them has the same values.
    masks[3] = numpy.full((48, 40), 200, numpy.uint16)
    Image.fromarray(masks[3].astype(numpy.uint8)).save(tmp_path / "masks" / "3.png")
    files = forebay.Pipeline.files("images/*.png", label=None, sidecars={"mask": "masks/{stem}.png"}).decode()
    pipeline = files.decode_mask(keep_depth=True)
    both = ["image", "mask"]
    resized = pipeline.resize((24, 20), fields=both).random_horizontal_flip(p=1.0, fields=both)
    forebay.build(pipeline, tmp_path / "set", data=tmp_path, strategy="mask-decoded", shards=2)
    for loader in (forebay.Loader(pipeline, data=tmp_path), forebay.Loader(tmp_path / "set")):
        (batch,) = loader
        for key, mask in zip(batch["key"], batch["mask"], strict=True):
            assert mask.dtype == numpy.uint16 and (mask == masks[int(Path(key).stem)]).all()
    (batch,) = forebay.Loader(resized, data=tmp_path)
    assert batch["mask"].dtype == numpy.uint16
    for key, mask in zip(batch["key"], batch["mask"], strict=True):
        # Every other pixel, mirrored: none that was not there.
        assert (mask == masks[int(Path(key).stem)][1::2, 1::2][:, ::-1]).all()
    with pytest.raises(forebay.DataError, match=r"mask of 16 bits, but the step gives uint8\nhint: .*keep_depth=True"):
        list(forebay.Loader(files.decode_mask(), data=tmp_path))


def test_a_profile_lists_what_it_left_out(tmp_path: Path) -> None:
    for number in range(6):
        Image.fromarray(numpy.full((9, 8, 3), number, numpy.uint8)).save(tmp_path / f"{number}.png")
    (tmp_path / "5.png").write_bytes(b"no picture")
    options = {"samples": 6, "runs": 1, "seconds": 0, "work_dir": tmp_path, "progress": False, "on_error": "skip"}
    pipeline = forebay.Pipeline.files("*.png", label=None).decode()
    for strategies in (["decoded"], ["unprocessed", "decoded"]):
        profile = forebay.profile(pipeline, tmp_path, strategies=strategies, **options)
        (skipped,) = profile.skipped_samples
        assert (skipped.key, skipped.samples) == ("5.png", 1) and "`5.png`: step `decode`" in skipped.reason
    (tmp_path / "5.png").unlink()
    assert forebay.profile(pipeline, tmp_path, strategies=["decoded"], **options).skipped_samples == []


def test_files_are_paired_by_substitution(tmp_path: Path) -> None:
    for kind, suffix in (("leftImg8bit", "leftImg8bit"), ("gtFine", "gtFine_labelIds")):
        (tmp_path / kind / "train" / "ulm").mkdir(parents=True)
        pixels = numpy.full((8, 8), 7, numpy.uint8)
        Image.fromarray(pixels).save(tmp_path / kind / "train" / "ulm" / f"ulm_000001_000019_{suffix}.png")
    mask = "{folder:leftImg8bit=gtFine}/{stem:_leftImg8bit=_gtFine_labelIds}.png"
    pipeline = forebay.Pipeline.files("leftImg8bit/**/*.png", label=None, sidecars={"mask": mask}).decode().decode_mask()
    (batch,) = forebay.Loader(pipeline, data=tmp_path)
    assert [mask.tolist() for mask in batch["mask"]] == [[[7] * 8] * 8]
    with pytest.raises(forebay.PipelineError, match=r"`{stme}`, which is none of .*; did you mean `{stem}`\?"):
        forebay.Pipeline.files(sidecars={"mask": "{stme}.png"})


def test_a_mask_of_another_size_is_an_error(scenes: Path, tmp_path: Path) -> None:
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
    Image.fromarray(numpy.zeros((40, 40, 3), numpy.uint8)).save(tmp_path / "images" / "1.png")
    Image.fromarray(numpy.zeros((40, 41), numpy.uint8)).save(tmp_path / "masks" / "1.png")
    with pytest.raises(forebay.DataError, match="41x40, but the first of the step's fields is 40x40"):
        list(forebay.Loader(segmentation(), data=tmp_path))


def detection() -> forebay.Pipeline:
    return (
        forebay.Pipeline.files("images/*.png", label=None, sidecars={"meta": ("meta/{stem}.json", "json")})
        .take_json("meta", {"boxes": ("/boxes", "float32[?, 5]")})
        .decode()
        .random_crop(48, fields=["image", "boxes"])
        .random_horizontal_flip(fields=["image", "boxes"])
    )


def test_boxes_follow_their_picture(scenes: Path) -> None:
    loader = forebay.Loader(detection(), data=scenes, batch_size=4, shuffle=True, seed=1, epochs=3)
    seen = 0
    for batch in loader:
        assert isinstance(batch["image"], numpy.ndarray) and isinstance(batch["boxes"], list)
        assert [document["weather"]["sunny"] for document in batch["meta"]] == [
            int(Path(key).stem) % 2 == 0 for key in batch["key"]
        ]
        for image, boxes, key in zip(batch["image"], batch["boxes"], batch["key"], strict=True):
            rows, columns = numpy.nonzero(image[..., 0])
            if len(boxes) == 0:
                assert len(rows) == 0 or numpy.ptp(rows) == 0 or numpy.ptp(columns) == 0
                continue
            left, top, right, bottom, label = boxes[0]
            assert (left, top, right, bottom) == (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
            assert label == int(Path(key).stem) + 1
            seen += 1
    assert seen > SAMPLES


def test_boxes_can_be_padded(scenes: Path) -> None:
    pipeline = forebay.Pipeline.files(
        "images/*.png", label=None, sidecars={"right": "right/{name}", "meta": ("meta/{stem}.json", "json")}
    )
    pipeline = pipeline.take_json("meta", {"boxes": ("/boxes", "float32[?, 5]")}).drop("meta")
    pipeline = pipeline.decode(fields=["image", "right"])
    loader = forebay.Loader(pipeline, data=scenes, batch_size=SAMPLES, collate="pad", pad_value=7)
    (batch,) = loader
    assert "meta" not in batch
    assert batch["boxes"].shape == (SAMPLES, 1, 5) and (batch["boxes_shape"] == [1, 5]).all()
    for image, right, shape in zip(batch["image"], batch["right"], batch["image_shape"], strict=True):
        height, width, _ = shape
        assert (image[:height, :width] == 255 - right[:height, :width]).all()
        assert (image[height:] == 7).all() and (image[:, width:] == 7).all()


def test_boxes_without_their_picture_are_refused() -> None:
    pipeline = forebay.Pipeline.files(sidecars={"meta": ("{stem}.json", "json")})
    pipeline = pipeline.take_json("meta", {"boxes": ("/boxes", "float32[?, 4]")}).decode()
    with pytest.raises(forebay.PipelineError, match="the image that the boxes are on first in `fields`"):
        pipeline.random_horizontal_flip(fields=["boxes", "image"])


@pytest.mark.parametrize(
    ("document", "problem"),
    [("{", "is not JSON"), ("{}", "has nothing at `/boxes`"), ('{"boxes": [[1, 2], [3]]}', "not an array of numbers of one shape")],
)
def test_a_bad_document_is_named(tmp_path: Path, document: str, problem: str) -> None:
    Image.fromarray(numpy.zeros((9, 9, 3), numpy.uint8)).save(tmp_path / "1.png")
    (tmp_path / "1.json").write_text(document)
    pipeline = forebay.Pipeline.files("*.png", label=None, sidecars={"meta": ("{stem}.json", "json")})
    pipeline = pipeline.take_json("meta", {"boxes": ("/boxes", "float32[?, 2]")})
    with pytest.raises(forebay.DataError, match=problem.replace("[", r"\[")):
        list(forebay.Loader(pipeline, data=tmp_path))


def brighter(image: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    return numpy.minimum(image.astype(numpy.int32) + 10, 255).astype(numpy.uint8)


def noisy(image: numpy.ndarray[Any, Any], *, seed: int) -> dict[str, Any]:
    noise = numpy.random.default_rng(seed).normal(size=image.shape).astype(numpy.float32)
    return {"image": image + noise, "mean": float(image.mean()).__int__()}


def functions() -> forebay.Pipeline:
    types = {"image": "float32[24, 24, 3]", "mean": "int"}
    pipeline = forebay.Pipeline.files("images/*.png", label=None).decode().center_crop(24).map(brighter)
    return pipeline.map(noisy, output=types, random=True)


def test_python_functions_are_steps(scenes: Path) -> None:
    pipeline = functions()
    assert pipeline.steps == ["decode", "center_crop", "brighter", "noisy"]
    assert pipeline.splits[-1] == "brighter", "a random function runs every epoch"
    loader = forebay.Loader(pipeline, data=scenes, batch_size=5, shuffle=True, seed=2, threads=4)
    first = {key: image for batch in loader for key, image in zip(batch["key"], batch["image"], strict=True)}
    loader.set_epoch(0)
    again = {key: image for batch in loader for key, image in zip(batch["key"], batch["image"], strict=True)}
    other = {key: image for batch in loader for key, image in zip(batch["key"], batch["image"], strict=True)}
    assert len(first) == SAMPLES and first.keys() == again.keys()
    assert all((first[key] == again[key]).all() for key in first), "the seed follows from epoch and sample"
    assert any((first[key] != other[key]).any() for key in first)


def test_a_pipeline_with_functions_is_pickled_and_its_cost_is_measured(scenes: Path) -> None:
    pipeline = pickle.loads(pickle.dumps(functions()))
    assert len(list(forebay.Loader(pipeline, data=scenes, batch_size=5))) == 3
    profile = forebay.profile(pipeline, scenes, samples=SAMPLES, runs=1, seconds=0, progress=False)
    assert {"brighter", "noisy"} <= {step["name"] for step in json.loads(profile.to_json())["steps"]}


def test_functions_of_a_data_set_are_given_again(scenes: Path, tmp_path: Path) -> None:
    dataset = forebay.build(functions(), tmp_path / "set", data=scenes, strategy="cropped", progress=False)
    with pytest.raises(forebay.UsageError, match="is a function that this program does not have"):
        list(forebay.Loader(dataset))
    loader = forebay.Loader(dataset, functions={"brighter": brighter, "noisy": noisy})
    assert sum(len(batch["key"]) for batch in loader) == SAMPLES
    # What was done once is not needed again.
    done = forebay.build(functions(), tmp_path / "done", data=scenes, strategy="brighter", progress=False)
    assert len(list(forebay.Loader(done, functions={"noisy": noisy}))) == 1


def test_boxes_come_out_of_a_coco_file(tmp_path):
    for number in range(3):
        (tmp_path / "train").mkdir(exist_ok=True)
        Image.fromarray(numpy.zeros((20, 30, 3), numpy.uint8)).save(tmp_path / "train" / f"{number}.png")
    images = [{"id": 10 + number, "file_name": f"{number}.png"} for number in range(3)]
    crowd = {"image_id": 11, "category_id": 5, "bbox": [0, 0, 9, 9], "iscrowd": 1}
    one = {"image_id": 11, "category_id": 4, "bbox": [2, 3, 10, 8], "segmentation": [[2, 3, 12, 3, 12, 11]], "iscrowd": 0}
    coco = tmp_path / "instances.json"
    coco.write_text(json.dumps({"images": images, "annotations": [one, crowd]}))

    def made(**options):
        return forebay.Pipeline.files("train/*.png", label=None).take_coco(coco, **options).decode()

    pipeline = made()
    assert pipeline.output["boxes"] == "float32[?, 5]"
    (batch,) = forebay.Loader(pipeline, data=tmp_path, batch_size=3)
    assert [len(rows) for rows in batch["boxes"]] == [0, 1, 0]
    assert batch["boxes"][1].tolist() == [[2, 3, 12, 11, 4]]
    (batch,) = forebay.Loader(made(crowd=True), data=tmp_path, batch_size=3)
    assert [len(rows) for rows in batch["boxes"]] == [0, 2, 0]
    # A data set keeps them.
    dataset = forebay.build(pipeline, tmp_path / "built", data=tmp_path, strategy="annotated", threads=1)
    (batch,) = forebay.Loader(dataset, batch_size=3)
    kept = {key: rows.tolist() for key, rows in zip(batch["key"], batch["boxes"], strict=True)}
    assert kept == {"train/0.png": [], "train/1.png": [[2, 3, 12, 11, 4]], "train/2.png": []}

    coco.write_text(json.dumps({"images": images[:2], "annotations": []}))
    with pytest.raises(forebay.DataError, match="has no image of this name") as caught:
        list(forebay.Loader(made(), data=tmp_path, batch_size=3))
    assert caught.value.key == "train/2.png"
    coco.write_text('{"images": 3}')
    with pytest.raises(forebay.PipelineError, match="COCO file"):
        list(forebay.Loader(made(), data=tmp_path, batch_size=3))
