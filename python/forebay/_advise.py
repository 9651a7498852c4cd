"""What to do about a slow input pipeline, and why."""

from __future__ import annotations

import html
import json
import os
from typing import Any

from . import _native
from ._arguments import byte_count, duration, flag, number
from ._files import files_request
from ._foreign_names import hinted
from ._pipeline import Pipeline
from ._planning import Profile
from ._requests import AdviceRequest
from ._source import as_pipeline
from ._work import profile as measure

__all__ = ["Advice", "advise"]

#: The encoding that is considered where quality may be lost.
LOSSY_ENCODING = "jpeg-85"
#: The quality that files may be recompressed to, and how many of them are, to know what it saves.
LOWER_QUALITY, ENCODED_IMAGES = 75, 32


class Advice:
    """A recommendation with its reasons. Made by `advise`."""

    def __init__(self, content: dict[str, Any], commands: list[str], profile: Profile) -> None:
        #: Everything, with the keys of `forebay advise --json`.
        self.content = content
        #: The commands to run.
        self.commands = commands
        #: The profile that it rests on.
        self.profile = profile

    @property
    def strategy(self) -> str:
        """The strategy to build; `"unprocessed"` reads the source files."""
        return str(self.content["strategy"])

    @property
    def cache(self) -> str:
        """The cache to load with, as `Loader` takes it."""
        return str(self.content["cache"])

    @property
    def answers(self) -> dict[str, str]:
        """The reasons: for each question its answer, with figures."""
        return {answer["about"]: answer["sentence"] for answer in self.content["answers"]}

    def __repr__(self) -> str:
        width = max(map(len, self.answers))
        answers = [f"{about:<{width}}  {sentence}" for about, sentence in self.answers.items()]
        return "\n".join([*answers, "", "Run:", *(f"  {command}" for command in self.commands)])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(about)}</td><td>{html.escape(text)}</td></tr>" for about, text in self.answers.items())
        return f"<table>{rows}</table><pre>{html.escape(chr(10).join(self.commands))}</pre>"


@hinted
def advise(
    data: str | os.PathLike[str],
    pipeline: Pipeline | str | os.PathLike[str] = "imagenet",
    *,
    trainer: float | None = None,
    max_storage: int | str | None = None,
    max_prep_time: float | str | None = None,
    lossy: bool = False,
    memory: int | str | None = None,
    storage: str = "local",
    seconds: float = 1.0,
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Advice:
    """Recommend how to store and load a data set, with the reasons and the commands.

    Runs a fast profile, and answers from its figures: whether the data fits in memory, what is slow, which steps to run once, whether
    compression, a mix of formats or lower quality would help, and which cache to use.

    Parameters
    ----------
    data
        Folder with the source files.
    pipeline
        A `Pipeline`, the path of a TOML file, or the name of a preset.
    trainer
        Samples per second that the trainer consumes when it never waits (`diagnose` measures it).
    max_storage, max_prep_time
        Largest size of the data set, and longest time to run the offline steps, e.g. `"100GB"` and `"2h"`.
    lossy
        Quality may be lost: also consider storing images as JPEG of quality 85, and recompressing the files to quality 75.
    memory
        Memory for data, in bytes or e.g. `"8GB"`. By default half of what the machine and the control group allow.
    storage, seconds, work_dir, progress
        As for `profile`.

    Examples
    --------
    >>> advice = forebay.advise("photos/", "imagenet", trainer=1500)
    >>> print(advice.strategy, advice.cache)
    >>> advice.answers["bottleneck"]
    """
    encodings = [LOSSY_ENCODING] if flag("lossy", lossy) else None
    profile = measure(
        pipeline, data, fast=True, seconds=seconds, storage=storage, encodings=encodings, work_dir=work_dir, progress=progress
    )
    wanted: AdviceRequest = {
        "trainer": None if trainer is None else number("trainer", trainer),
        "memory_bytes": None if memory is None else byte_count("memory", memory),
        "max_storage_bytes": None if max_storage is None else byte_count("max_storage", max_storage),
        "max_prep_seconds": None if max_prep_time is None else duration("max_prep_time", max_prep_time),
        "lossy": lossy,
        "lower_quality": _lower_quality(as_pipeline(pipeline), data) if lossy else None,
        "pipeline": as_pipeline(pipeline).name if isinstance(pipeline, Pipeline) else os.fspath(pipeline),
        "data": os.fspath(data),
    }
    text, commands = _native.advise(profile.to_json(), wanted)
    return Advice(json.loads(text), commands, profile)


def _lower_quality(pipeline: Pipeline, data: str | os.PathLike[str]) -> tuple[int, float, int] | None:
    """What a lower quality makes of the files, where they are images."""
    source = _native.Source.files(pipeline._native, "local", "page", files_request(os.fspath(data), False, False))
    return _native.lower_quality(source, LOWER_QUALITY, ENCODED_IMAGES)
