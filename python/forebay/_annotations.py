"""Steps that read the annotations and transcripts of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Self

__all__ = ["AnnotationSteps"]


class AnnotationSteps:
    """The steps of a pipeline that read annotations and transcripts."""

    __slots__ = ()

    def step(self, op: str, **parameters: Any) -> Self:
        """Add a step by its `op`."""
        raise NotImplementedError

    def take_coco(
        self,
        annotations: str | os.PathLike[str],
        *,
        crowd: bool = False,
        masks: Literal["semantic", "instance"] | None = None,
        keypoints: bool = False,
        **options: Any,
    ) -> Self:
        """Give each sample what a COCO file has for its image.

        Boxes are a field `boxes`, `float32[?, 5]`: left, top, right, bottom in pixels, and the category's id. `crowd` takes the boxes of
        crowds, too. `masks` draws polygons and run lengths into a field `mask`: of category ids, `uint8`, or of the numbers of objects, from 1 on,
        `uint16`. `keypoints` adds a field `keypoints`, `float32[?, 3]`, as many rows for each object.

        With instance masks or key points a sixth column of the boxes is the object's number, so that masks and key points stay with their boxes
        when crops drop some: `mask == boxes[:, 5, None, None]`, `keypoints.reshape(-1, 17, 3)[boxes[:, 5].astype(int) - 1]`.
        """
        if masks is not None:
            options["masks"] = masks
        return self.step("take_coco", annotations=os.fspath(annotations), crowd=crowd, keypoints=keypoints, **options)

    def take_voc(
        self, field: str = "annotation", *, classes: Iterable[str] | None = None, difficult: bool = False, one_based: bool = True, **options: Any
    ) -> Self:
        """Give each sample the boxes of its Pascal VOC file, the XML in `field`: `boxes`, `float32[?, 5]`.

        The last column is an index into `classes`, by default the 20 of Pascal VOC. `difficult` takes boxes, too, that are marked so. `one_based` is
        for files whose first pixel is number 1, as those of VOC.
        """
        named = {} if classes is None else {"classes": list(classes)}
        return self.step("take_voc", fields=[field], difficult=difficult, one_based=one_based, **named, **options)

    def take_yolo(
        self, field: str = "annotation", *, image: str = "image", task: Literal["detect", "segment", "pose"] = "detect", **options: Any
    ) -> Self:
        """Give each sample the boxes of its YOLO file, the text in `field`: `boxes`, `float32[?, 5]`, in pixels of `image`.

        `task` says what the lines are, as Ultralytics calls it: boxes, polygons (whose bounding boxes are taken), or boxes with key points (which
        are not read).
        """
        return self.step("take_yolo", fields=[field, image], task=task, **options)

    def take_csv(
        self,
        annotations: str | os.PathLike[str],
        *,
        image_column: str = "image",
        box_columns: Iterable[str] = ("xmin", "ymin", "xmax", "ymax"),
        label_column: str = "label",
        box_format: str = "xyxy",
        normalized: bool = False,
        classes: Iterable[str] | None = None,
        **options: Any,
    ) -> Self:
        """Give each sample the boxes that a CSV or TSV table has for its image, a row each: `boxes`, `float32[?, 5]`.

        `box_format` is `"xyxy"`, `"xywh"` or `"cxcywh"`. `normalized` is for numbers that are parts of the image's width and height. The last column
        is an index into `classes`; by default integers stay as they are, and names are those in the table, sorted.
        """
        named = {} if classes is None else {"classes": list(classes)}
        return self.step(
            "take_csv",
            annotations=os.fspath(annotations),
            image_column=image_column,
            box_columns=list(box_columns),
            label_column=label_column,
            box_format=box_format,
            normalized=normalized,
            **named,
            **options,
        )

    def take_open_images(
        self, annotations: str | os.PathLike[str], *, classes: Iterable[str] | None = None, group_of: bool = False, **options: Any
    ) -> Self:
        """Give each sample the boxes that a table of Open Images has for its image: `boxes`, `float32[?, 5]`.

        The last column is an index into `classes` (as `/m/01g317`), by default those in the table, sorted. `group_of` takes boxes around groups, too.
        """
        named = {} if classes is None else {"classes": list(classes)}
        return self.step("take_open_images", annotations=os.fspath(annotations), group_of=group_of, **named, **options)

    def take_transcript(self, transcripts: str | os.PathLike[str], **options: Any) -> Self:
        """Give each sample its text, in a field `transcript`.

        `transcripts` is a folder of LibriSpeech, with its `*.trans.txt`, or a file of lines: a name, which is that of the sample's file without
        the extension, and the text after it (as Kaldi's `text`). Then `tokenize(fields=["transcript"])`.
        """
        return self.step("take_transcript", transcripts=os.fspath(transcripts), **options)
