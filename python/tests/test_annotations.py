"""Annotations as other tools write them: Pascal VOC, YOLO, Open Images, tables, COCO's masks and key points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from PIL import Image


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Three images of 40 × 20, and a folder for annotations."""
    for folder in ("images", "labels"):
        (tmp_path / folder).mkdir()
    for number in range(3):
        Image.fromarray(numpy.full((20, 40, 3), 10 * number, numpy.uint8)).save(tmp_path / "images" / f"{number}.png")
    return tmp_path


def boxes(pipeline: forebay.Pipeline, folder: Path, **options: Any) -> list[list[list[float]]]:
    (batch,) = forebay.Loader(pipeline, data=folder, batch_size=3, **options)
    return [numpy.asarray(rows).round(3).tolist() for rows in batch["boxes"]]


def with_files(kind: str, **more: Any) -> forebay.Pipeline:
    sidecar = {"from": f"labels/{{stem}}.{kind}", "type": "text", **more}
    return forebay.Pipeline.files("images/*.png", label=None, sidecars={"annotation": sidecar})


def test_pascal_voc(images: Path) -> None:
    thing = "<object><name>{}</name><difficult>{}</difficult><bndbox><xmin>3</xmin><ymin>5</ymin><xmax>20</xmax><ymax>10</ymax></bndbox></object>"
    for number, objects in enumerate([thing.format("dog", 0), "", thing.format("cat", 1) + thing.format("dog", 0)]):
        (images / "labels" / f"{number}.xml").write_text(f"<annotation><folder>x</folder>{objects}</annotation>")
    one = [2, 4, 20, 10]
    found = boxes(with_files("xml").take_voc().drop("annotation").decode(), images)
    assert found == [[[*one, 11]], [], [[*one, 11]]]
    found = boxes(with_files("xml").take_voc(classes=["dog", "cat"], difficult=True, one_based=False).drop("annotation").decode(), images)
    assert found == [[[3, 5, 21, 11, 0]], [], [[3, 5, 21, 11, 1], [3, 5, 21, 11, 0]]]
    (images / "labels" / "1.xml").write_text("<annotation>\n<object></annotation>")
    with pytest.raises(forebay.DataError, match="line 2"):
        boxes(with_files("xml").take_voc().decode(), images)


def test_yolo_with_images_that_have_no_file(images: Path) -> None:
    (images / "labels" / "0.txt").write_text("2 0.5 0.5 0.5 1\n0 0.1 0.1 0.3 0.1 0.3 0.5\n")
    (images / "labels" / "2.txt").write_text("")
    with pytest.raises(forebay.Error, match=r"1\.txt"):
        boxes(with_files("txt").take_yolo(task="segment").decode(), images)
    expected = [[[10, 0, 30, 20, 2], [4, 2, 12, 10, 0]], [], []]
    pipeline = with_files("txt", optional=True)
    with pytest.raises(forebay.DataError, match=r"task = .segment"):
        boxes(pipeline.take_yolo().decode(), images)
    assert boxes(pipeline.take_yolo(task="segment").drop("annotation").decode(), images) == expected
    assert boxes(pipeline.decode().take_yolo(task="segment").drop("annotation"), images) == expected
    segments = pipeline.take_yolo(task="segment").drop("annotation").decode()
    dataset = forebay.build(segments, images / "built", data=images, strategy="annotated", progress=False)
    (batch,) = forebay.Loader(dataset, batch_size=3)
    assert sorted(len(rows) for rows in batch["boxes"]) == [0, 0, 2]


def test_tables(images: Path) -> None:
    (images / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax,label\n0.png,1,2,3,4,dog\n2.png,5,6,7,8,cat\n0.png,0,0,9,9,cat\n")
    files = forebay.Pipeline.files("images/*.png", label=None)
    expected = [[[1, 2, 3, 4, 1], [0, 0, 9, 9, 0]], [], [[5, 6, 7, 8, 0]]]
    assert boxes(files.take_csv(images / "boxes.csv").decode(), images) == expected
    named = files.take_csv(images / "boxes.csv", classes=["bird", "dog", "cat"], box_format="xywh").decode()
    assert boxes(named, images)[0] == [[1, 2, 4, 6, 1], [0, 0, 9, 9, 2]]
    (images / "open.csv").write_text(
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,IsDepiction,IsInside\n"
        "1,xclick,/m/05,1,0.25,0.5,0.5,1,0,0,0,0,0\n1,xclick,/m/06,1,0,1,0,1,0,0,1,0,0\n"
    )
    assert boxes(files.take_open_images(images / "open.csv").decode(), images) == [[], [[10, 10, 20, 20, 0]], []]
    assert len(boxes(files.take_open_images(images / "open.csv", group_of=True).decode(), images)[1]) == 2
    (images / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax,label\n0.png,1,2,x,4,dog\n")
    with pytest.raises(forebay.PipelineError, match="line 2: `xmax` is not a number"):
        boxes(files.take_csv(images / "boxes.csv").decode(), images)


def test_rows_without_corners_are_images_without_objects(images: Path) -> None:
    files = forebay.Pipeline.files("images/*.png", label=None)
    expected = [[[1, 2, 3, 4, 0]], [], []]
    (images / "boxes.csv").write_text("image,xmin,ymin,xmax,ymax,label\n0.png,1,2,3,4,dog\n1.png,,,,,\n")
    assert boxes(files.take_csv(images / "boxes.csv").decode(), images) == expected
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"image": ["0.png", "1.png"], "label": ["dog", None]}
    columns |= {name: [float(number), None] for name, number in [("xmin", 1), ("ymin", 2), ("xmax", 3), ("ymax", 4)]}
    pq.write_table(pa.table(columns), images / "boxes.parquet")
    assert boxes(files.take_csv(images / "boxes.parquet").decode(), images) == expected


def test_masks_and_key_points_of_coco(images: Path) -> None:
    listed = [{"id": number, "file_name": f"{number}.png", "height": 20, "width": 40} for number in range(3)]
    square = {"image_id": 0, "category_id": 7, "bbox": [0, 0, 10, 10], "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]], "keypoints": [3, 4, 2]}
    runs = {"image_id": 0, "category_id": 9, "bbox": [5, 0, 1, 20], "segmentation": {"size": [20, 40], "counts": [100, 20, 680]}}
    coco = images / "instances.json"
    coco.write_text(json.dumps({"images": listed, "annotations": [square, runs]}))
    files = forebay.Pipeline.files("images/*.png", label=None)
    together = ["image", "mask", "boxes", "keypoints"]
    pipeline = files.take_coco(coco, masks="semantic", keypoints=True).decode().random_horizontal_flip(p=1.0, fields=together)
    (batch,) = forebay.Loader(pipeline, data=images, batch_size=3)
    expected = numpy.zeros((20, 40), numpy.uint8)
    expected[:10, :10] = 7
    expected[:, 5] = 9
    numpy.testing.assert_array_equal(batch["mask"][0], expected[:, ::-1])
    assert not batch["mask"][1].any() and batch["mask"][1].shape == (20, 40)
    # A row for each point of each object, so that they stay with the boxes: an object without key points has zeros.
    numpy.testing.assert_array_equal(batch["keypoints"][0], [[37, 4, 2], [0, 0, 0]])
    assert len(batch["keypoints"][1]) == 0
    (batch,) = forebay.Loader(files.take_coco(coco, masks="instance").decode(), data=images, batch_size=3)
    assert batch["mask"][0].dtype == numpy.uint16
    assert (batch["mask"][0] == numpy.where(expected == 7, 1, 0) + numpy.where(expected == 9, 2, 0)).all()


def test_against_pycocotools(images: Path) -> None:
    masks = pytest.importorskip("pycocotools.mask")
    random = numpy.random.default_rng(5)
    listed = [{"id": number, "file_name": f"{number}.png", "height": 20, "width": 40} for number in range(3)]
    outlines = [random.uniform(-5, 45, 12).round(2).tolist() for _ in range(3)]
    annotations = [{"image_id": n, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": [outline]} for n, outline in enumerate(outlines)]
    (images / "c.json").write_text(json.dumps({"images": listed, "annotations": annotations}))
    pipeline = forebay.Pipeline.files("images/*.png", label=None).take_coco(images / "c.json", masks="semantic").decode()
    (batch,) = forebay.Loader(pipeline, data=images, batch_size=3)
    for outline, mask in zip(outlines, batch["mask"], strict=True):
        numpy.testing.assert_array_equal(mask, masks.decode(masks.frPyObjects([outline], 20, 40))[..., 0])
