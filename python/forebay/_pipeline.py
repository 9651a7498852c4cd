"""Pipelines: a source and its steps, checked as they are put together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal

from . import _native
from ._arguments import flag, needs
from ._errors import MissingFileError, UsageError
from ._function import Parallel, check_named, function_name, given, with_function

__all__ = ["Pipeline", "class_names"]


class Pipeline:
    """What is done to a sample, from its file to the trainer.

    Begin with `files`, `ready`, `from_toml` or `from_json`, and add steps. Each step gives a new pipeline and is checked
    at once: where it cannot take what the step before gives, `PipelineError` says so here and not an hour later::

        pipeline = (
            forebay.Pipeline.files("**/*.jpg", label="folder")
            .decode()
            .random_resized_crop(224)
            .horizontal_flip()
            .normalise()
            .to_chw()
        )
    """

    __slots__ = ("_functions", "_native")

    def __init__(self, native: _native.Pipeline, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._native = native
        self._functions = dict(functions or {})

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
        beside: Mapping[str, str | tuple[str, str]] | None = None,
        order: str | None = None,
        seed: int | None = None,
        field: str = "image",
        name: str = "pipeline",
    ) -> Pipeline:
        """Files below a folder, one sample each.

        `pattern` says which (`**/*.{jpg,png}`; all pictures unless given). The label of a sample is the name of the folder
        that its file is in (`label="folder"`) or of the first folder of its path (`"top-folder"`), an entry of a table
        (`"table"`, with `table` the name of a CSV or TSV file of path and label; `table_columns=("id", "breed")` names these
        columns where it has more), what a function of its path returns, or none. Names are classes: the label is a place in `classes`, which are those that the files have, by name, unless
        given. Numbers of a table or a function stay what they are; `label_type="float"` makes them `float32`, `"class"`
        names of classes. A function is called once for each file, whenever the files are listed.

        A build writes samples at random by `seed`, or by name (`order="sorted"`); a loader of the files themselves gives
        them by name.

        `beside` names more files of a sample, and the fields that they go to: `{"mask": "masks/{stem}.png"}`, with
        `{folder}`, `{stem}` and `{name}` of the sample's file. `{stem:_image=_mask}` is the stem with every `_image` replaced
        by `_mask`, and so for the others. A pair gives the type too: `("meta/{stem}.json", "json")`.
        """
        needs("table", table, label == "table", 'label="table"')
        needs("table_columns", table_columns, table is not None, "table")
        source: dict[str, Any] = {"field": field, **_order(order or "shuffled", seed)}
        functions: dict[str, Callable[..., Any]] = {}
        if label is None or isinstance(label, str):
            source["label"] = label or "none"
        else:
            source |= {"label": "function", "function": function_name(label)}
            functions = with_function({}, source["function"], label)
        if label_type is not None:
            source["label-type"] = label_type
        if classes is not None:
            source["classes"] = class_names(classes)
        if pattern is not None:
            source["files"] = pattern
        if table is not None:
            source["table"] = table
        if table_columns is not None:
            if isinstance(table_columns, str) or len(table_columns) != 2:
                raise UsageError(f"`table_columns` is `{table_columns!r}`, but must be two names: of the paths' column and the labels'")
            source["table-columns"] = list(table_columns)
        if beside:
            source["fields"] = _source_fields(beside)
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
    ) -> Pipeline:
        """Tar shards below a folder, as WebDataset writes them.

        `fields` are the members to read, and the fields that they go to: `{"image": "jpg;png", "label": ("cls", "int"),
        "meta": ("json", "json")}`. A picture and its `cls` unless given.
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
    ) -> Pipeline:
        """TFRecord shards of `tf.train.Example`s below a folder; an index beside a shard (`.idx`) is used.

        `fields` are the features to read: `{"image": "image/encoded", "label": ("image/class/label", "int"), "boxes":
        ("boxes", "float32[?]")}`. The first two unless given.
        """
        return cls._shards("tfrecord", pattern, fields, field, order, seed, name)

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
    ) -> Pipeline:
        source: dict[str, Any] = {"format": format, "field": field, **_order(order or "sorted", seed)}
        if pattern is not None:
            source["files"] = pattern
        if fields:
            source["fields"] = _source_fields(fields)
        return cls.from_json(json.dumps({"name": name, "source": source}))

    @classmethod
    def ready(cls, name: str) -> Pipeline:
        """A ready pipeline; `Pipeline.ready_names()` lists them."""
        return cls(_native.Pipeline.ready(name))

    @staticmethod
    def ready_names() -> list[str]:
        """The names of the ready pipelines."""
        return _native.Pipeline.ready_names()

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Pipeline:
        """The pipeline in a TOML file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            message = f"cannot read the pipeline `{path}`: it does not exist\nhint: check the path"
            raise MissingFileError(message, path=path, errno=error.errno) from None
        return cls(_native.Pipeline.from_toml(str(path), text))

    @classmethod
    def from_json(cls, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> Pipeline:
        """The pipeline in a JSON text, with the keys of a pipeline file; `functions` are those that its steps name."""
        functions = dict(functions or {})
        native = _native.Pipeline.from_json(text, given(functions))
        check_named(functions, text)
        return cls(native, functions)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._native.name

    @property
    def steps(self) -> list[str]:
        """The names of its steps."""
        return [name for name, _, _ in self._native.steps]

    @property
    def output(self) -> dict[str, str]:
        """What a batch has: the type of each field of a sample."""
        return dict(self._native.output)

    @property
    def splits(self) -> list[str]:
        """The states that a data set can be kept in: after every step up to the first random one."""
        return self._native.splits

    def to_toml(self) -> str:
        """The text of a pipeline file."""
        return self._native.to_toml()

    def to_json(self) -> str:
        """The same as JSON."""
        return self._native.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a pipeline file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def set(self, parameters: Mapping[str, Any]) -> Pipeline:
        """The same with other parameters, of steps and of the source::

            forebay.Pipeline.ready("cv").set({"random-crop.size": 192, "source.files": "**/*.png"})

        Steps go by their names, as `steps` lists them. What the step does not know is a `PipelineError`.
        """
        settings = []
        for name, value in parameters.items():
            if value is None:
                raise UsageError(f"`{name}` is None\nhint: leave it out, and it stays as it is")
            try:
                settings.append(f"{name}={_toml(value)}")
            except TypeError as error:
                raise UsageError(f"`{name}`: {error}") from None
        return Pipeline(self._native.set(settings), self._functions)

    def step(
        self,
        op: str,
        *,
        name: str | None = None,
        state: str | None = None,
        fields: Iterable[str] | None = None,
        **parameters: Any,
    ) -> Pipeline:
        """Adds the step `op` with its parameters, by the names that a pipeline file has (with `_` for `-`).

        `name` tells two steps of one kind apart, `state` is what a data set is called that is kept after it, and `fields`
        are the fields that it works on; a random step does the same to all of them.
        """
        step: dict[str, Any] = {"op": op}
        for key, value in {"name": name, "state": state, **parameters}.items():
            if value is not None:
                step[key.replace("_", "-")] = value
        if fields is not None:
            step["fields"] = list(fields)
        spec = json.loads(self.to_json())
        spec.setdefault("step", []).append(step)
        try:
            text = json.dumps(spec, default=_plain)
        except TypeError as error:
            raise UsageError(f"step `{op}`: {error}") from None
        return type(self).from_json(text, self._functions)

    def map(
        self,
        function: Callable[..., Any],
        *,
        fields: Iterable[str] | str | None = None,
        output: Mapping[str, str] | str | None = None,
        random: bool = False,
        parallel: bool = False,
        name: str | None = None,
        state: str | None = None,
    ) -> Pipeline:
        """A Python function as a step: NumPy arrays in and out.

        It is called for each sample with the values of `fields` (the source's field unless given), in order. It returns the
        value of the one field that it gives, or a dictionary of several. `output` says what they are: a type, such as
        `"float32[224, 224, 3]"` (with `?` for a size that differs), or a dictionary of types; what came in, unless given.
        A `random` function gets a `seed=` that follows from the loader's seed, the epoch and the sample, and runs every
        epoch; others must give the same each time.

        One call is made at a time in the whole process, whatever the number of threads, loaders and functions: a function may
        use arrays, models and generators of random numbers that its calls share. `parallel=True` says that this function is
        thread-safe: its calls then run at the same time wherever it lets go of Python's lock, as much of NumPy and PyTorch
        does. What it raises is raised where the batch is awaited, as it is.
        """
        fields = [fields] if isinstance(fields, str) else fields
        fields = list(fields) if fields is not None else [json.loads(self.to_json())["source"]["field"]]
        kinds = self.output
        if output is None:
            types = {field: kinds[field] for field in fields if field in kinds}
        elif isinstance(output, str):
            types = {fields[0]: output}
        else:
            types = dict(output)
        name = name or function_name(function)
        if flag("parallel", parallel) and not isinstance(function, Parallel):
            function = Parallel(function)
        random = flag("random", random)
        step = type(self)(self._native, with_function(self._functions, name, function))
        return step.step(
            "function", name=name, state=state or name, fields=fields, function=name, output=types, random=random or None
        )

    def decode_mask(self, field: str = "mask", *, keep_depth: bool = False, **options: Any) -> Pipeline:
        """The bytes of a PNG become a mask `[height, width]` of the classes that it stores: `uint8`, or with `keep_depth` `uint16`,
        which holds values of 16 bits too (ids of instances)."""
        return self.step("decode-mask", fields=[field], keep_depth=keep_depth, **options)

    def take_json(self, field: str, values: Mapping[str, tuple[str, str]], **options: Any) -> Pipeline:
        """Takes values out of a JSON document into fields of their own.

        `values` says where each is and what it is: `{"boxes": ("/objects/boxes", "float32[?, 4]")}`.
        """
        taken = {name: {"at": at, "type": kind} for name, (at, kind) in values.items()}
        return self.step("take-json", fields=[field], values=taken, **options)

    def drop(self, *fields: str, **options: Any) -> Pipeline:
        """Takes fields away."""
        return self.step("drop", fields=fields, **options)

    def decode(
        self,
        *,
        colour: str = "rgb",
        keep_depth: bool = False,
        orientation: bool = True,
        partial: bool = False,
        fast_dct: bool = False,
        shorter_side_min: int | None = None,
        pixels_max: int | None = None,
        **options: Any,
    ) -> Pipeline:
        """The bytes of an image file become a picture `[height, width, channels]`.

        With `shorter_side_min` it is decoded at a half, a quarter or an eighth of its size as long as its shorter side stays
        that long: less work of a large JPEG that is resized anyway, and slightly other pixels.
        """
        return self.step(
            "decode",
            colour=colour,
            keep_depth=keep_depth,
            orientation=orientation,
            partial=partial,
            fast_dct=fast_dct,
            shorter_side_min=shorter_side_min,
            pixels_max=pixels_max,
            **options,
        )

    def resize(
        self,
        shorter_side: int | None = None,
        *,
        width: int | None = None,
        height: int | None = None,
        filter: str = "bilinear",
        variant: str = "antialias",
        **options: Any,
    ) -> Pipeline:
        """Resizes to a shorter side, or to an exact width and height."""
        return self.step(
            "resize",
            shorter_side=shorter_side,
            width=width,
            height=height,
            filter=filter,
            variant=variant,
            **options,
        )

    def centre_crop(self, size: int, **options: Any) -> Pipeline:
        """Cuts the middle out."""
        return self.step("centre-crop", size=size, **options)

    def random_crop(self, size: int, **options: Any) -> Pipeline:
        """Cuts out a random place."""
        return self.step("random-crop", size=size, **options)

    def random_resized_crop(
        self,
        size: int,
        *,
        area: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        filter: str = "bilinear",
        **options: Any,
    ) -> Pipeline:
        """Cuts a random rectangle and resizes it to a square."""
        return self.step(
            "random-resized-crop", size=size, area=list(area), ratio=list(ratio), filter=filter, **options
        )

    def horizontal_flip(self, probability: float = 0.5, **options: Any) -> Pipeline:
        """Mirrors left and right, at random."""
        return self.step("horizontal-flip", probability=probability, **options)

    def greyscale(self, **options: Any) -> Pipeline:
        """Red, green and blue become one channel."""
        return self.step("greyscale", **options)

    def centre_pixels(self, **options: Any) -> Pipeline:
        """8-bit values are centred around zero: x / 127.5 - 1."""
        return self.step("centre-pixels", **options)

    def normalise(
        self,
        mean: Sequence[float] | None = None,
        deviation: Sequence[float] | None = None,
        *,
        scale: float | None = None,
        **options: Any,
    ) -> Pipeline:
        """Each channel becomes (x · scale - mean) / deviation, ImageNet's unless given."""
        return self.step("normalise", mean=mean, deviation=deviation, scale=scale, **options)

    def to_chw(self, **options: Any) -> Pipeline:
        """Puts the channels first."""
        return self.step("to-chw", **options)

    def tiles(self, size: int, **options: Any) -> Pipeline:
        """Cuts a picture into square tiles: one sample becomes many."""
        return self.step("tiles", size=size, **options)

    def __repr__(self) -> str:
        steps = self._native.steps
        width = max(len(name) for name in ["read", *(name for name, _, _ in steps)])
        lines = [f"Pipeline `{self.name}`", f"  {'read':{width}}  {self._native.input}"]
        for name, schema, random in steps:
            lines.append(f"  {name:{width}}  {schema}{'  (random)' if random else ''}")
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return bool(json.loads(self.to_json()) == json.loads(other.to_json()))

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(), self._functions)


def class_names(classes: Iterable[str]) -> list[str]:
    # Of a set or a dictionary such as torchvision's `class_to_idx` the order is not the labels'.
    ordered = isinstance(classes, Iterable) and not isinstance(classes, str | Set | Mapping)
    names = list(classes) if ordered else []
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(f"`classes` is `{classes!r}`, but must be a list of names\nhint: leave it out where labels are numbers")
    return [str(name) for name in names]


def _order(order: str, seed: int | None) -> dict[str, Any]:
    needs("seed", seed, order == "shuffled", 'order="shuffled"')
    return {"order": order} if seed is None else {"order": order, "seed": seed}


def _source_fields(fields: Mapping[str, str | tuple[str, str]]) -> list[dict[str, str]]:
    """What a source reads, as a pipeline file spells it."""
    pairs = ((name, (found, "bytes") if isinstance(found, str) else found) for name, found in fields.items())
    return [{"field": name, "from": found, "type": kind} for name, (found, kind) in pairs]


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{value!r}` is no number, text or list")


def _toml(value: Any) -> str:
    """The value as a pipeline file spells it: as JSON, but for tables."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, default=_plain, ensure_ascii=False)
