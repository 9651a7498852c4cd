"""What the samples of a data set are like, and what is wrong with them."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._arguments import THREADS_MAX, byte_count, cores, integer
from ._document import Document
from ._errors import MissingFileError
from ._files import Data, as_data, files_request
from ._foreign_names import hinted
from ._pipeline import Pipeline
from ._progress import listener
from ._requests import AnalyzeRequest
from ._source import as_pipeline, on_data
from ._table import Column, as_frame, as_html, as_text
from ._work import Dataset, _skips

if TYPE_CHECKING:
    import pandas

__all__ = ["DataAnalysis", "analyze"]

_FIGURES = ("min", "p5", "median", "mean", "p95", "max")


def _columns(unit: str) -> list[Column]:
    titles = ("least", "5 %", "median", "mean", "95 %", "most")
    return [Column("of", "name"), *(Column(title, key, unit) for title, key in zip(titles, _FIGURES, strict=True))]


class DataAnalysis(Document):
    """What the samples of a data set are like. Made by `analyze`; printing it shows the figures and what to do next.

    Attributes
    ----------
    content
        Everything, with the keys of `forebay analyze --json` (docs/json.md).
    next
        What to do: `sentence` and `command` of each step, the most important first.
    """

    _what = "analysis"

    def __init__(self, text: str, data: str, next_steps: str) -> None:
        super().__init__(text)
        self._data = data
        self.next: list[dict[str, str]] = json.loads(next_steps)

    @property
    def mean(self) -> list[float] | None:
        """The means of red, green and blue, from 0 to 1, as `Pipeline.normalize` takes them; None without images."""
        color = self.content["color"]
        return None if color is None else list(color["mean"])

    @property
    def std(self) -> list[float] | None:
        """Their standard deviations."""
        color = self.content["color"]
        return None if color is None else list(color["std"])

    @property
    def duplicates(self) -> list[str]:
        """The samples that have the same bytes as another one, which is kept."""
        return [name for group in self.content["duplicates"]["groups"] for name in group["exact"]]

    @property
    def near_duplicates(self) -> list[str]:
        """The images that look like another one, which is kept."""
        return [name for group in self.content["duplicates"]["groups"] for name in group["near"]]

    @property
    def broken(self) -> dict[str, str]:
        """The samples that cannot be read or decoded, and why."""
        return {broken["key"]: broken["reason"] for broken in self.content["broken_samples"]}

    @property
    def unexamined(self) -> dict[str, str]:
        """The samples that were not looked at because they take more than `memory`, and how much they take."""
        return {sample["key"]: sample["reason"] for sample in self.content["unexamined_samples"]}

    @property
    def classes(self) -> dict[str, int]:
        """How many samples each class has."""
        return {entry["name"]: int(entry["samples"]) for entry in self.content["classes"]}

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML page with plots: sizes, dimensions, qualities, classes."""
        Path(path).write_text(_native.data_page(self.to_json(), self._data, json.dumps(self.next)), encoding="utf-8")

    def to_pandas(self) -> pandas.DataFrame:
        """Return the distributions as a data frame: size, width, height, aspect ratio, quality. Requires pandas."""
        return as_frame([{key: row[key] for key in ("name", *_FIGURES)} for row in self._rows()], "name")

    def _rows(self) -> list[dict[str, Any]]:
        found = {name: self.content[name] for name in ("size", "width", "height", "aspect_ratio")}
        quality = self.content["quality"]
        found["quality"] = None if quality is None else quality["distribution"]
        return [{"name": name, **row} for name, row in found.items() if row is not None]

    def _facts(self) -> list[str]:
        content, found = self.content, self.content["duplicates"]
        formats = ", ".join(f"{entry['samples']:,} {entry['format']}" for entry in content["formats"])
        facts = [
            f"{content['samples']:,} samples of {self._data}: {formats}, {_native.format_quantity(content['bytes'], 'bytes')}",
            f"{content['broken']:,} broken, {found['exact']['samples']:,} duplicates, {found['near']['samples']:,} near duplicates",
        ]
        if content["unexamined"]:
            facts.append(f"{content['unexamined']:,} not examined: they take more memory than there is")
        if self.mean is not None and self.std is not None:
            rounded = [[round(value, 4) for value in values] for values in (self.mean, self.std)]
            facts.append(f"mean {rounded[0]}, std {rounded[1]}, {content['color']['gray']:,} gray")
        return facts

    def __repr__(self) -> str:
        sizes = [row for row in self._rows() if row["name"] == "size"]
        others = [row for row in self._rows() if row["name"] != "size"]
        tables = [as_text(_columns(unit), rows, None) for unit, rows in (("bytes", sizes), ("number", others)) if rows]
        steps = [f"{step['sentence']}\n  {step['command']}" for step in self.next]
        return "\n".join([*self._facts(), *tables, *steps])

    def _repr_html_(self) -> str:
        facts = "".join(f"<p>{html.escape(fact)}</p>" for fact in self._facts())
        rows = [row for row in self._rows() if row["name"] != "size"]
        steps = "".join(f"<p>{html.escape(step['sentence'])} <code>{html.escape(step['command'])}</code></p>" for step in self.next)
        return facts + as_html("Distributions", _columns("number"), rows, None) + steps


@hinted
def analyze(
    data: Data | Dataset,
    pipeline: Pipeline | str | os.PathLike[str] | None = None,
    *,
    distance: int = 4,
    threads: int | None = None,
    memory: int | str | None = None,
    on_error: Literal["fail", "skip"] = "skip",
    progress: bool | None = None,
) -> DataAnalysis:
    """Analyze images: sizes, formats, dimensions, JPEG qualities, colors, duplicates, broken files, and the balance of classes.

    Reads and decodes every image once.

    Parameters
    ----------
    data
        A folder of images, a tar or TFRecord file or a folder of them, or a data set built by Forebay. With a pipeline: the data of its
        source, a folder or a list of files (see `FileList`).
    pipeline
        A `Pipeline`, the path of a TOML file, or the name of a preset, whose source says which files to read. By default everything in the folder.
    distance
        The largest number of bits in which the perceptual hashes (64 bits) of near duplicates differ, up to 16.
    threads
        Number of threads (default: number of cores).
    memory
        Memory budget (see `Loader`). About 150 bytes for each sample come on top.
    on_error
        What happens to a sample that cannot be read: `"skip"` counts and lists it, `"fail"` raises its error.
    progress
        As for `profile`.

    Examples
    --------
    >>> analysis = forebay.analyze("photos/")
    >>> pipeline = forebay.Pipeline.files().decode().normalize(analysis.mean, analysis.std)
    >>> analysis.duplicates, analysis.broken
    >>> analysis.report("analysis.html")
    """
    skips = _skips(on_error)
    request: AnalyzeRequest = {
        "data": "",
        "distance": integer("distance", distance, 0, 16),
        "threads": integer("threads", cores() if threads is None else threads, 1, THREADS_MAX),
        "skip_errors": skips,
        "memory_bytes": None if memory is None else byte_count("memory", memory),
    }
    if pipeline is None and isinstance(data, str | os.PathLike | Dataset):
        request["data"] = data.path if isinstance(data, Dataset) else os.fspath(data)
        if not os.path.exists(request["data"]):
            raise MissingFileError(f"there is no file or folder `{request['data']}`\nhint: check the path", path=request["data"])
        source = _native.Source.data(request["data"], skips)
    else:
        what = as_pipeline(Pipeline.files() if pipeline is None else pipeline)
        what, files = on_data(what, data, None, None)
        request["data"] = files if isinstance(files, str) else files.root
        source = _native.Source.files(what._native, "local", "page", files_request(as_data(files), skips, False))
    text, next_steps = _native.analyze_data(source, request, listener(progress))
    return DataAnalysis(text, request["data"], next_steps)
