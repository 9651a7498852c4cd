"""Pipelines: a source and its steps, checked as they are put together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._annotations import AnnotationSteps
from ._arguments import flag
from ._audio import AudioSteps
from ._errors import DataError, MissingFileError, UsageError
from ._function import Parallel, check_named, function_name, given, with_function
from ._pipeline_sources import PipelineSources
from ._steps import ImageSteps
from ._text import TextSteps

__all__ = ["Pipeline"]


class Pipeline(PipelineSources, ImageSteps, AudioSteps, TextSteps, AnnotationSteps):
    """A source and a sequence of steps.

    Start with `files`, `tar`, `tfrecord`, `parquet`, `arrow`, `preset`, `from_toml` or `from_json`, and add steps. Each method returns a new pipeline. A
    step that does not fit the output of the previous one raises `PipelineError` immediately::

        pipeline = (
            forebay.Pipeline.files("**/*.jpg", label="folder")
            .decode()
            .random_resized_crop(224)
            .random_horizontal_flip()
            .normalize()
            .to_chw()
        )
    """

    __slots__ = ("_functions", "_native")

    def __init__(self, native: _native.Pipeline, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._native = native
        self._functions = dict(functions or {})

    @classmethod
    def preset(cls, name: str) -> Pipeline:
        """Return a preset by name (see `preset_names`)."""
        return cls(_native.Pipeline.preset(name))

    @staticmethod
    def preset_names() -> list[str]:
        """Return the names of the presets."""
        return _native.Pipeline.preset_names()

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Pipeline:
        """Read a pipeline from a TOML file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            message = f"cannot read the pipeline `{path}`: it does not exist\nhint: check the path"
            raise MissingFileError(message, path=path, errno=error.errno) from None
        except UnicodeDecodeError:
            message = f"cannot read the pipeline `{path}`: it is not text\nhint: pass a TOML file, the folder of a data set, or a preset"
            raise DataError(message, path=path) from None
        return cls(_native.Pipeline.from_toml(str(path), text))

    @classmethod
    def from_json(cls, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> Pipeline:
        """Read a pipeline from JSON, with the keys of a pipeline file. `functions` are the Python functions of its steps, by name."""
        functions = dict(functions or {})
        native = _native.Pipeline.from_json(text, given(functions))
        check_named(functions, text)
        return cls(native, functions)

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        return self._native.name

    @property
    def steps(self) -> list[str]:
        """The names of the steps."""
        return [name for name, _, _ in self._native.steps]

    @property
    def output(self) -> dict[str, str]:
        """The fields of a sample and their types, e.g. `{"image": "float32[3, 224, 224]", "label": "int"}`."""
        return dict(self._native.output)

    @property
    def splits(self) -> list[str]:
        """The stages that a data set can be built at: after each step before the first random one."""
        return self._native.splits

    def to_toml(self) -> str:
        """Return the pipeline as TOML."""
        return self._native.to_toml()

    def to_json(self) -> str:
        """Return the pipeline as JSON."""
        return self._native.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the pipeline to a TOML file."""
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def set(self, parameters: Mapping[str, Any]) -> Pipeline:
        """Return a copy with other parameters of steps or of the source.

        Steps are addressed by their names (see `steps`)::

            forebay.Pipeline.preset("cv").set({"random_crop.size": 192, "source.files": "**/*.png"})

        Unknown parameters raise `PipelineError`.
        """
        settings = []
        for name, value in parameters.items():
            if value is None:
                raise UsageError(f"`{name}` is None\nhint: omit it to leave it unchanged")
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
        stage: str | None = None,
        fields: Iterable[str] | None = None,
        **parameters: Any,
    ) -> Pipeline:
        """Add a step by its `op`, with the parameters of a pipeline file (docs/steps.md).

        Parameters
        ----------
        name
            Name of the step, if the same `op` occurs more than once.
        stage
            Name of the stage after this step.
        fields
            Fields to apply the step to. A random step makes the same random choice for all of them.
        """
        step: dict[str, Any] = {"op": op}
        for key, value in {"name": name, "stage": stage, **parameters}.items():
            if value is not None:
                step[key] = value
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
        stage: str | None = None,
    ) -> Pipeline:
        """Add a Python function as a step.

        The function is called once per sample with the values of `fields`, as NumPy arrays. It returns the value of the output
        field, or a dictionary if there are several.

        Calls are serialized over the whole process, so that a function may use shared state (buffers, models, random generators).
        Exceptions are raised unchanged where the batch is awaited.

        Parameters
        ----------
        fields
            Input fields, in order. By default the field of the source.
        output
            Type of the output, e.g. `"float32[224, 224, 3]"` (`?` for a variable size), or a dictionary of types by field. By
            default the types of the input.
        random
            The function is random: it is called with `seed=`, derived from the loader's seed, the epoch and the sample, and runs every
            epoch. Other functions must be deterministic.
        parallel
            The function is thread-safe: calls run concurrently wherever it releases the GIL, as much of NumPy and PyTorch does.
        name, stage
            Name of the step and of the stage after it. By default the name of the function.
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
            "function", name=name, stage=stage or name, fields=fields, function=name, output=types, random=random or None
        )

    def decode_mask(self, field: str = "mask", *, keep_depth: bool = False, **options: Any) -> Pipeline:
        """Decode a PNG to a mask `[height, width]` of class indices.

        The type is `uint8`, or `uint16` with `keep_depth`, for masks of 16 bits such as instance ids.
        """
        return self.step("decode_mask", fields=[field], keep_depth=keep_depth, **options)

    def lookup_table(
        self,
        keys: Sequence[int],
        values: Sequence[int],
        default_value: int = 0,
        *,
        field: str = "mask",
        **options: Any,
    ) -> Pipeline:
        """Replace each of `keys` by its counterpart in `values`, and all others by `default_value`: ids of a mask become training classes."""
        return self.step("lookup_table", fields=[field], keys=list(keys), values=list(values), default_value=default_value, **options)

    def take_json(self, field: str, values: Mapping[str, tuple[str, str]], **options: Any) -> Pipeline:
        """Extract values of a JSON document into separate fields.

        `values` maps fields to a JSON pointer and a type: `{"boxes": ("/objects/boxes", "float32[?, 4]")}`.
        """
        taken = {name: {"at": at, "type": kind} for name, (at, kind) in values.items()}
        return self.step("take_json", fields=[field], values=taken, **options)

    def drop(self, *fields: str, **options: Any) -> Pipeline:
        """Remove fields."""
        return self.step("drop", fields=fields, **options)

    def decode(
        self,
        *,
        color: str = "rgb",
        keep_depth: bool = False,
        orientation: bool = True,
        allow_truncated: bool = False,
        fast_dct: bool = False,
        min_shorter_side: int | None = None,
        max_pixels: int | None = None,
        **options: Any,
    ) -> Pipeline:
        """Decode an image file to an array `[height, width, channels]`.

        Parameters
        ----------
        color
            `"rgb"`, `"gray"` or `"stored"`.
        keep_depth
            Keep 16-bit channels (`uint16`).
        orientation
            Rotate the image according to EXIF.
        allow_truncated
            Accept truncated files, and fill the missing part.
        fast_dct
            Use a faster, less exact inverse DCT for JPEG.
        min_shorter_side
            Decode at a half, a quarter or an eighth of the size, as long as the shorter side keeps this length. Faster for large
            JPEGs that are resized afterwards; pixels differ slightly.
        max_pixels
            Maximum number of pixels of an image.
        """
        return self.step(
            "decode",
            color=color,
            keep_depth=keep_depth,
            orientation=orientation,
            allow_truncated=allow_truncated,
            fast_dct=fast_dct,
            min_shorter_side=min_shorter_side,
            max_pixels=max_pixels,
            **options,
        )

    def one_hot(
        self, num_classes: int, label_smoothing: float = 0.0, *, fields: Iterable[str] = ("label",), **options: Any
    ) -> Pipeline:
        """Convert labels to vectors `float32[num_classes]`, smoothed by `label_smoothing`."""
        return self.step(
            "one_hot", num_classes=num_classes, label_smoothing=label_smoothing, fields=fields, **options
        )

    def mixup(
        self, alpha: float = 1.0, p: float = 1.0, *, fields: Iterable[str] = ("image", "label"), **options: Any
    ) -> Pipeline:
        """Mix the images and labels of each batch with probability `p`, by a weight from Beta(`alpha`, `alpha`).

        A step of whole batches, so it comes last. Labels must be vectors: use `one_hot` first.
        """
        return self.step("mixup", alpha=alpha, p=p, fields=fields, **options)

    def cutmix(
        self, alpha: float = 1.0, p: float = 1.0, *, fields: Iterable[str] = ("image", "label"), **options: Any
    ) -> Pipeline:
        """Paste a rectangle of another image into each image of a batch with probability `p`, and mix labels by its area.

        A step of whole batches, so it comes last. Labels must be vectors: use `one_hot` first.
        """
        return self.step("cutmix", alpha=alpha, p=p, fields=fields, **options)

    def mixup_or_cutmix(
        self,
        mixup_alpha: float = 0.2,
        cutmix_alpha: float = 1.0,
        p: float = 1.0,
        cutmix_p: float = 0.5,
        *,
        fields: Iterable[str] = ("image", "label"),
        **options: Any,
    ) -> Pipeline:
        """Do `mixup` or `cutmix` to each batch: with probability `p` one of them, `cutmix` with probability `cutmix_p` then."""
        return self.step(
            "mixup_or_cutmix",
            mixup_alpha=mixup_alpha,
            cutmix_alpha=cutmix_alpha,
            p=p,
            cutmix_p=cutmix_p,
            fields=fields,
            **options,
        )

    def __getattr__(self, name: str) -> Any:
        # Only for unknown names: the name of a step in another library is answered with ours.
        meant = None if name.startswith("_") else _native.meant_step(name)
        if meant == f"did you mean `{name}`?":
            meant = f'it is a step of pipeline files: `.step("{name}", ...)`, with the parameters of docs/steps.md'
        raise AttributeError(f"a pipeline has no step `{name}`" + (f"\nhint: {meant}" if meant else ""))

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


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as JSON knows them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{value!r}` is not a number, string or list")


def _toml(value: Any) -> str:
    """The value as a pipeline file spells it: as JSON, but for tables."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, default=_plain, ensure_ascii=False)
