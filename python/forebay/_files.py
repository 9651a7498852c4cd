"""The files that a pipeline runs on: a folder of them, or a list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeAlias

import numpy

from ._errors import UsageError
from ._requests import FilesRequest

__all__ = ["Data", "FileList", "as_data", "files_request", "is_url"]


class FileList:
    """A list of source files, to be passed as `data`.

    A plain list of paths as `data` is a `FileList` without labels. Missing and duplicate files are errors.

    Parameters
    ----------
    paths
        Paths relative to `root`, or absolute. The key of a sample is its path relative to `root`.
    labels
        A label per file: class names, or numbers. By default labels come from the pipeline.
    root
        Folder that paths are relative to (default: the current folder).
    """

    __slots__ = ("labels", "paths", "root")

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        labels: Iterable[str | int | float] | None = None,
        root: str | os.PathLike[str] = ".",
    ) -> None:
        self.paths = [_path(path) for path in in_order("files", paths)]
        self.labels = None if labels is None else [_label(label) for label in in_order("labels", labels)]
        if self.labels is not None and len(self.labels) != len(self.paths):
            raise UsageError(f"there are {len(self.paths)} files and {len(self.labels)} labels\nhint: pass one label per file")
        if not isinstance(root, str | os.PathLike):
            raise UsageError(f"`root` is `{root!r}`, but must be the path of a folder")
        self.root = os.fspath(root) if is_url(root) else os.path.abspath(root)

    def settings(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """What a pipeline's source, which is `source` now, must say to take its files from here."""
        settings: dict[str, Any] = {"source.files": "-"}
        if self.labels is not None:
            if source.get("label") in ("table", "function"):
                raise UsageError(
                    f"the list of files has labels, and the pipeline takes them from a {source['label']}\n"
                    "hint: omit one of them"
                )
            settings["source.label"] = "list"
            if "label_type" not in source and any(isinstance(label, float) for label in self.labels):
                settings["source.label_type"] = "float"
        return settings

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"FileList({len(self):,} files below {self.root!r}{'' if self.labels is None else ', with labels'})"


#: A folder, or the files themselves.
Data: TypeAlias = "str | os.PathLike[str] | FileList | Iterable[str | os.PathLike[str]]"


def is_url(path: object) -> bool:
    """Whether this is the URL of something in a store: `s3://bucket/photos`."""
    return isinstance(path, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def as_data(data: Any) -> str | FileList:
    """The folder, or the list of files, that was given as `data`."""
    if isinstance(data, FileList):
        return data
    if isinstance(data, str | os.PathLike):
        folder = os.fspath(data)
        if os.path.isfile(folder):
            raise UsageError(
                f"`data` is the file `{folder}`, but must be a folder or a list of files\n"
                "hint: pass the folder that it is in, and name the file in the pipeline's source; or pass it in a list"
            )
        return folder
    if not isinstance(data, Iterable):
        raise UsageError("a pipeline needs a folder of files, or a list of them\nhint: pass it as `data`")
    return FileList(data)


def files_request(data: str | FileList, skip_errors: bool, allow_outside: bool) -> FilesRequest:
    """What is asked of the native module."""
    folder, files = (data.root, (data.paths, data.labels)) if isinstance(data, FileList) else (data, None)
    return {"folder": folder, "files": files, "skip_errors": skip_errors, "allow_outside": allow_outside}


def in_order(what: str, values: Any) -> Iterable[Any]:
    """The values, if they are ordered."""
    if isinstance(values, str | bytes | os.PathLike | Mapping | Set | FileList) or not isinstance(values, Iterable):
        raise UsageError(f"the {what} `{values!r}` are not a list\nhint: pass a list, in the order that they are to have")
    return values


def _path(path: Any) -> str:
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"`{path!r}` is not a path\nhint: `data` is a folder, or a list of paths")
    return os.fspath(path)


def _label(label: Any) -> str | int | float:
    """A label of Python's own types: NumPy has more."""
    if isinstance(label, numpy.generic):
        label = label.item()
    if not isinstance(label, str | int | float):
        raise UsageError(f"`{label!r}` is not a label\nhint: a label is a class name or a number")
    return label
