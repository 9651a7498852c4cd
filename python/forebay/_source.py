"""What a loader, a profile or a build takes its samples from."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _native
from ._errors import MissingFileError, UsageError
from ._files import Data, FileList, as_data, files_request, is_url
from ._function import check_named, given
from ._pipeline import Pipeline
from ._pipeline_sources import class_names

__all__ = ["Several", "Source", "as_pipeline", "on_data"]

MANIFEST = "dataset.json"
MIX = "mix.json"


class Source:
    """A data set's folder, or a pipeline and a folder of files. Opened once in each process that uses it."""

    def __init__(
        self,
        pipeline: Pipeline | None,
        data: str | FileList,
        storage: str,
        functions: Mapping[str, Callable[..., Any]] | None,
        skip_errors: bool,
        allow_outside: bool = False,
        cache: str = "page",
        scans: int | None = None,
        block_cache: tuple[str, int] | None = None,
    ) -> None:
        #: The folder and the size of a cache of blocks, for what is read from a bucket.
        self.block_cache = block_cache
        #: How many groups of scans are read of progressive records.
        self.scans = scans
        self.allow_outside = allow_outside
        self.cache = cache
        self.pipeline = pipeline
        self.functions = dict(functions or {})
        #: The data set's folder, that of the files, or the files: fixed now, even if the current folder or the list changes later.
        self.data = _fixed(data)
        self._described = str(data)
        self.storage = storage
        #: Whether what is damaged is left out, or ends the work.
        self.skip_errors = skip_errors
        self._opened: _native.Source | None = None
        self._process = 0

    @classmethod
    def of(
        cls,
        source: Any,
        data: Data | None,
        storage: str,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        *,
        classes: Iterable[str] | None = None,
        skip_errors: bool = False,
        allow_outside: bool = False,
        cache: str = "page",
        scans: int | None = None,
        block_cache: tuple[str, int] | None = None,
    ) -> Source:
        from ._planning import Plan
        from ._work import Dataset

        if isinstance(source, Dataset):
            source = source.path
        if isinstance(source, Plan):
            if not source.reads_files:
                raise UsageError(
                    f"the plan stores `{source.chosen}`, which must be built before it can be loaded\n"
                    'hint: load what `plan.build("dataset/")` returns'
                )
            data = source.data if data is None else data
            source = source.pipeline
        if not isinstance(source, Pipeline | str | os.PathLike):
            raise UsageError(
                f"a loader cannot take its samples from `{source!r}`\n"
                "hint: pass a pipeline, a data set, or the path or name of one"
            )
        if not isinstance(source, Pipeline) and _is_dataset(source, data):
            if data is not None:
                raise UsageError("`data` cannot be used with a data set\nhint: omit it")
            if allow_outside:
                raise UsageError("`allow_outside` cannot be used with a data set\nhint: omit it")
            if classes is not None:
                raise UsageError("`classes` cannot be used with a data set\nhint: pass them where it is built")
            return cls(None, _folder(source), storage, functions, skip_errors, cache=cache, scans=scans, block_cache=block_cache)
        if scans is not None:
            raise UsageError('`scans` is for a data set of progressive records\nhint: omit it, or build one with strategy="concatenated+pcr"')
        pipeline, files = on_data(as_pipeline(source), data, functions, classes)
        return cls(pipeline, files, storage, None, skip_errors, allow_outside, cache, block_cache=block_cache)

    def with_scans(self, scans: int | None) -> Source:
        """The same data set, reading that many groups of scans of its progressive records."""
        other = copy.copy(self)
        other.scans = scans
        return other

    def opened(self) -> _native.Source:
        if self._opened is None or self._process != os.getpid():
            if self.pipeline is None:
                functions = given(self.functions)
                self._opened = _native.Source.dataset(
                    str(self.data), self.storage, self.cache, self.skip_errors, functions, self.scans, self.block_cache
                )
                check_named(self.functions, self._opened.pipeline.to_json())
            else:
                request = files_request(self.data, self.skip_errors, self.allow_outside)
                self._opened = _native.Source.files(self.pipeline._native, self.storage, self.cache, request, self.block_cache)
            self._process = os.getpid()
        return self._opened

    def describe(self) -> str:
        return self._described if self.pipeline is None else f"{self.pipeline.name} on {self._described}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_process": 0}


class Several(Source):
    """Several data sets as one."""

    def __init__(self, sources: list[Source]) -> None:
        first = sources[0]
        super().__init__(first.pipeline, first.data, first.storage, first.functions, first.skip_errors, first.allow_outside, first.cache)
        self.sources = sources
        self._described = ", ".join(source.describe() for source in sources)

    @classmethod
    def of_list(
        cls, sources: list[Any], data: Any, storage: str, functions: Mapping[str, Callable[..., Any]] | None, options: Mapping[str, Any]
    ) -> Several:
        """Data sets, or tuples of a pipeline and its data."""
        if not sources:
            raise UsageError("the list of data sets is empty\nhint: name at least one")
        if data is not None:
            raise UsageError("`data` cannot be used with a list of data sets\nhint: write `(pipeline, data)` for each")
        made = []
        for source in sources:
            what, files = source if isinstance(source, tuple) and len(source) == 2 else (source, None)
            made.append(Source.of(what, files, storage, functions, **options))
        return cls(made)

    def opened(self) -> _native.Source:
        if self._opened is None or self._process != os.getpid():
            self._opened = _native.Source.interleaved([source.opened() for source in self.sources])
            self._process = os.getpid()
        return self._opened

    def with_scans(self, scans: int | None) -> Source:
        if scans is not None:
            raise UsageError("`scans` is for one data set\nhint: omit it")
        return self

    def describe(self) -> str:
        return self._described


def on_data(
    pipeline: Pipeline,
    data: Any,
    functions: Mapping[str, Callable[..., Any]] | None,
    classes: Iterable[str] | None,
) -> tuple[Pipeline, str | FileList]:
    """The pipeline as it runs on `data`, with these functions and classes, and the folder or the files."""
    files = as_data(data)
    if functions:
        pipeline = Pipeline.from_json(pipeline.to_json(), {**pipeline._functions, **functions})
    settings = files.settings(json.loads(pipeline.to_json())["source"]) if isinstance(files, FileList) else {}
    if classes is not None:
        settings["source.classes"] = class_names(classes)
    return (pipeline.set(settings) if settings else pipeline), files


def _fixed(data: str | FileList) -> str | FileList:
    if isinstance(data, FileList):
        return FileList(data.paths, labels=data.labels, root=data.root)
    return data if is_url(data) else os.path.abspath(data)


def _folder(source: str | os.PathLike[str]) -> str:
    """The folder of a data set that was named by its folder or its manifest."""
    if is_url(source):
        url = os.fspath(source).rstrip("/")
        folder, _, name = url.rpartition("/")
        return folder if name in (MANIFEST, MIX) else url
    path = Path(source)
    return str(path.parent if path.name in (MANIFEST, MIX) else path)


def _is_dataset(source: str | os.PathLike[str], data: object) -> bool:
    if is_url(source):
        # Pipelines are files of this machine.
        return data is None
    path = Path(source)
    if data is not None and os.fspath(source) in Pipeline.preset_names():
        # A folder that is called like a preset; with data to run it on, the pipeline is meant.
        return (path / MANIFEST).is_file() or (path / MIX).is_file()
    return path.is_dir() or path.name in (MANIFEST, MIX)


def as_pipeline(source: Pipeline | str | os.PathLike[str]) -> Pipeline:
    """A pipeline, the TOML file of one, or the name of a preset."""
    if isinstance(source, Pipeline):
        return source
    text = os.fspath(source)
    if text in Pipeline.preset_names():
        return Pipeline.preset(text)
    if os.path.isfile(text) or text.endswith(".toml"):
        return Pipeline.from_toml(text)
    ready = "`, `".join(Pipeline.preset_names())
    raise MissingFileError(
        f"there is no data set, pipeline file or preset `{text}`\nhint: check the path; presets are `{ready}`",
        path=text,
    )
