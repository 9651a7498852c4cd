"""Where the samples of a pipeline come from: files, tars, TFRecord shards, and the rows of Parquet and Arrow files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Set
from pathlib import Path
from typing import Any, Literal, Self

from ._arguments import needs
from ._errors import UsageError
from ._function import function_name, with_function

__all__ = ["PipelineSources", "class_names"]


class PipelineSources:
    """What a pipeline starts with."""

    __slots__ = ()

    @classmethod
    def from_json(cls, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> Self:
        """Read a pipeline from JSON, with the keys of a pipeline file."""
        raise NotImplementedError

    @classmethod
    def files(
        cls,
        pattern: str | None = None,
        *,
        label: str | Callable[[Path], str | int | float] | None = "folder",
        table: str | None = None,
        table_columns: tuple[str, str] | None = None,
        label_type: Literal["class", "int", "float"] | None = None,
        classes: Iterable[str] | None = None,
        where: str | None = None,
        sidecars: Mapping[str, str | tuple[str, str] | Mapping[str, Any]] | None = None,
        order: str | None = None,
        seed: int | None = None,
        field: str = "image",
        name: str = "pipeline",
    ) -> Self:
        """Read the files of a folder, one sample each.

        Parameters
        ----------
        pattern
            Glob pattern of the files, e.g. `"**/*.{jpg,png}"`. By default all images.
        label
            Where labels come from: the name of the file's folder (`"folder"`), the first folder of its path (`"top-folder"`), a
            table (`"table"`), a function of the path, or None. A function is called once per file whenever the files are listed.
        table
            Name of the CSV, TSV or Parquet file with paths and labels, and with the columns of `where`.
        table_columns
            Columns of the paths and labels if the table has more than two, e.g. `("id", "breed")`.
        label_type
            `"class"` turns labels into class indices, `"int"` and `"float"` (`float32`) keep numbers. By default names are classes, and
            numbers stay numbers.
        classes
            Class names that labels index into. By default those found, sorted by name.
        where
            A condition on the columns of `table`, e.g. `"split == 'train'"` (see `Loader`): only files that meet it are listed. Class indices are
            those of all files in the table, regardless of the condition.
        sidecars
            Further files of each sample, by field: `{"mask": "masks/{stem}.png"}`. `{folder}`, `{stem}` and `{name}` refer to the
            sample's file; `{stem:_image=_mask}` replaces `_image` by `_mask`. A tuple also gives the type:
            `("meta/{stem}.json", "json")`. `{"from": "labels/{stem}.txt", "type": "text", "optional": True}` is empty where there is no such file.
        order
            Order in which a build writes samples: `"shuffled"` (default, by `seed`) or `"sorted"`. A loader of the files
            themselves yields them sorted by name.
        field
            Name of the field with the content of the file.
        name
            Name of the pipeline.
        """
        needs("table", table, label == "table" or where is not None, 'label="table"', "where")
        needs("where", where, table is not None, "table")
        needs("table_columns", table_columns, table is not None, "table")
        source: dict[str, Any] = {"field": field, **_order(order or "shuffled", seed)}
        functions: dict[str, Callable[..., Any]] = {}
        if label is None or isinstance(label, str):
            source["label"] = label or "none"
        else:
            source |= {"label": "function", "function": function_name(label)}
            functions = with_function({}, source["function"], label)
        if label_type is not None:
            source["label_type"] = label_type
        if classes is not None:
            source["classes"] = class_names(classes)
        if pattern is not None:
            source["files"] = pattern
        if table is not None:
            source["table"] = table
        if where is not None:
            source["where"] = where
        if table_columns is not None:
            if isinstance(table_columns, str) or len(table_columns) != 2:
                raise UsageError(f"`table_columns` is `{table_columns!r}`, but must be two names: of the paths' column and the labels'")
            source["table_columns"] = list(table_columns)
        if sidecars:
            source["fields"] = _source_fields(sidecars)
        return cls.from_json(json.dumps({"name": name, "source": source}), functions)

    @classmethod
    def tar(
        cls,
        pattern: str | None = None,
        *,
        fields: Mapping[str, str | tuple[str, str]] | None = None,
        field: str = "image",
        order: str | None = None,
        seed: int | None = None,
        name: str = "pipeline",
    ) -> Self:
        """Read tar shards as written by WebDataset.

        `fields` maps fields to members: `{"image": "jpg;png", "label": ("cls", "int"), "meta": ("json", "json")}`. By default an image
        and its `cls`.
        """
        return cls._shards("tar", pattern, fields, field, order, seed, name)

    @classmethod
    def tfrecord(
        cls,
        pattern: str | None = None,
        *,
        fields: Mapping[str, str | tuple[str, str]] | None = None,
        field: str = "image",
        order: str | None = None,
        seed: int | None = None,
        name: str = "pipeline",
    ) -> Self:
        """Read TFRecord shards of `tf.train.Example`s. An index (`.idx`) next to a shard is used if there is one.

        `fields` maps fields to features: `{"image": "image/encoded", "label": ("image/class/label", "int"), "boxes":
        ("boxes", "float32[?]")}`. By default the first two of these.
        """
        return cls._shards("tfrecord", pattern, fields, field, order, seed, name)

    @classmethod
    def parquet(
        cls,
        pattern: str | None = None,
        *,
        fields: Mapping[str, str | tuple[str, str]] | None = None,
        field: str = "image",
        label: str | None = "label",
        where: str | None = None,
        name: str = "pipeline",
    ) -> Self:
        """Read Parquet files, a row of which is a sample, as Hugging Face stores data sets.

        Parameters
        ----------
        pattern
            Glob pattern of the files, e.g. `"data/train-*.parquet"`. By default all Parquet files.
        fields
            Fields and their columns: `{"image": "image", "label": ("label", "int"), "caption": ("text", "text"), "box": ("bbox",
            "float32[4]")}`. A column that is a structure with `bytes` (and `path`) stands for these bytes. By default the column called
            like `field`, and `label`.
        field
            Name of the field that steps work on.
        label
            Column of the labels if `fields` is not given, or None.
        where
            A condition on the columns of the files, whether they are fields or not, e.g. `"width >= 224"` (see `Loader`): only rows that
            meet it are samples.
        name
            Name of the pipeline.
        """
        return cls._rows("parquet", pattern, fields, field, label, where, name)

    @classmethod
    def arrow(
        cls,
        pattern: str | None = None,
        *,
        fields: Mapping[str, str | tuple[str, str]] | None = None,
        field: str = "image",
        label: str | None = "label",
        where: str | None = None,
        name: str = "pipeline",
    ) -> Self:
        """Read Arrow's IPC files, a row of which is a sample: the folder that `datasets.Dataset.save_to_disk` writes, and Feather.

        Parameters
        ----------
        pattern
            Glob pattern of the files, e.g. `"train/*.arrow"` for a split of a `DatasetDict`. By default all Arrow files.
        fields
            Fields and their columns, as in `parquet`.
        field
            Name of the field that steps work on.
        label
            Column of the labels if `fields` is not given, or None.
        where
            A condition on the columns of the files, as in `parquet`.
        name
            Name of the pipeline.
        """
        return cls._rows("arrow", pattern, fields, field, label, where, name)

    @classmethod
    def _rows(
        cls,
        format: str,
        pattern: str | None,
        fields: Mapping[str, str | tuple[str, str]] | None,
        field: str,
        label: str | None,
        where: str | None,
        name: str,
    ) -> Self:
        if fields is not None and label != "label":
            raise UsageError("`label` has no effect with `fields`\nhint: add it to `fields`")
        if fields is None and label not in (None, "label"):
            fields = {field: field, "label": (str(label), "int")}
        source: dict[str, Any] = {"format": format, "field": field, "order": "sorted"}
        if pattern is not None:
            source["files"] = pattern
        if fields:
            source["fields"] = _source_fields(fields)
        if label is None:
            source["label"] = "none"
        if where is not None:
            source["where"] = where
        return cls.from_json(json.dumps({"name": name, "source": source}))

    @classmethod
    def _shards(
        cls,
        format: str,
        pattern: str | None,
        fields: Mapping[str, str | tuple[str, str]] | None,
        field: str,
        order: str | None,
        seed: int | None,
        name: str,
    ) -> Self:
        source: dict[str, Any] = {"format": format, "field": field, **_order(order or "sorted", seed)}
        if pattern is not None:
            source["files"] = pattern
        if fields:
            source["fields"] = _source_fields(fields)
        return cls.from_json(json.dumps({"name": name, "source": source}))


def class_names(classes: Iterable[str]) -> list[str]:
    # Of a set or a dictionary such as torchvision's `class_to_idx` the order is not the labels'.
    ordered = isinstance(classes, Iterable) and not isinstance(classes, str | Set | Mapping)
    names = list(classes) if ordered else []
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(f"`classes` is `{classes!r}`, but must be a list of names\nhint: omit it if labels are numbers")
    return [str(name) for name in names]


def _order(order: str, seed: int | None) -> dict[str, Any]:
    needs("seed", seed, order == "shuffled", 'order="shuffled"')
    return {"order": order} if seed is None else {"order": order, "seed": seed}


def _source_fields(fields: Mapping[str, str | tuple[str, str] | Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a source reads, as a pipeline file spells it."""
    spelled: list[dict[str, Any]] = []
    for name, found in fields.items():
        if isinstance(found, Mapping):
            spelled.append({"field": name, **found})
        else:
            path, kind = (found, "bytes") if isinstance(found, str) else found
            spelled.append({"field": name, "from": path, "type": kind})
    return spelled
