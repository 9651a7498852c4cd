"""Builds on a Ray cluster. Needs Ray.

A build is cut into parts, and each part is a Ray task, wherever Ray has a free CPU::

    import forebay.ray

    dataset = forebay.ray.build("plan.json", "s3://bucket/dataset", parts=64)

A part whose node dies is run again elsewhere, and reuses the shards that were finished; the result is that of `forebay.build`, byte for byte.
Only file names and figures go through Ray: samples are read from `data` and written to `output` by the nodes themselves. So both must be
buckets, or folders that all nodes share, and every node must have the same version of Forebay.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal

import ray

from ._arguments import THREADS_MAX, integer
from ._errors import UsageError
from ._files import Data, FileList, is_url
from ._pipeline import Pipeline
from ._planning import Plan
from ._progress import listener
from ._source import as_pipeline
from ._work import Dataset, build_part

__all__ = ["build"]

#: More parts than this are more tasks than Ray handles well.
_PARTS_MAX = 10_000


def build(
    what: Plan | Pipeline | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    parts: int,
    data: Data | None = None,
    strategy: str | None = None,
    shards: int | None = None,
    num_cpus: int = 1,
    max_retries: int = 5,
    storage: str = "local",
    on_error: Literal["fail", "skip"] = "fail",
    overwrite: bool = False,
    allow_outside: bool = False,
    memory: int | str | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    progress: bool | None = None,
) -> Dataset:
    """Build a data set as Ray tasks: one per part, spread over the nodes, and run again where a node is lost.

    Run it again after a failure, and finished shards are kept. Ray is started if it is not running; call `ray.init` before for a cluster
    of yours, and for the environment of the tasks (`runtime_env={"env_vars": {"AWS_ENDPOINT_URL": ...}}`).

    Parameters
    ----------
    parts
        Number of tasks. A few per node, so that nodes that are faster get more of them.
    shards
        Number of shards. By default enough for all tasks; of 128 MB each, if a plan says how large they get.
    num_cpus
        CPUs, and threads, of each task.
    max_retries
        How often a part is run again if its node or process dies. An error of the build itself is raised at once.
    what, output, data, strategy, storage, on_error, overwrite, allow_outside, memory, functions, progress
        As for `forebay.build`.
    """
    parts = integer("parts", parts, 1, _PARTS_MAX)
    threads = integer("num_cpus", num_cpus, 1, THREADS_MAX)
    if shards is not None and integer("shards", shards, 1, 1_000_000) < parts:
        raise UsageError(f"{parts} parts cannot share {shards} shards\nhint: pass at least as many `shards` as `parts`")
    if isinstance(what, (str, os.PathLike)) and os.fspath(what).endswith(".json"):
        # Read here: nodes may not have the file.
        what = Plan.load(what)
    elif isinstance(what, (str, os.PathLike)):
        what = as_pipeline(what)
    how: dict[str, Any] = {
        "data": _absolute(data),
        "strategy": strategy,
        "threads": threads,
        "storage": storage,
        "on_error": on_error,
        "allow_outside": allow_outside,
        "memory": memory,
        "functions": functions,
        "progress": False,
    }
    where = os.fspath(output) if is_url(output) else os.path.abspath(output)
    if not ray.is_initialized():
        ray.init()
    options: dict[str, Any] = {"num_cpus": threads, "max_retries": max_retries, "retry_exceptions": False, "scheduling_strategy": "SPREAD"}
    task: Any = ray.remote(**options)(_run_part)
    # So many threads there are in all, which the default number of shards follows from.
    prepare = {**how, "overwrite": overwrite, "shards": shards, "threads": min(parts * threads, THREADS_MAX)}
    prepared = ray.get(task.remote(what, where, "prepare", prepare))
    _run_all(task, what, where, parts, how, prepared["samples"], progress)
    ray.get(task.remote(what, where, "finish", how))
    return Dataset(where)


def _run_part(what: Any, output: str, part: str, how: dict[str, Any]) -> dict[str, int]:
    return build_part(what, output, part, **how)


def _run_all(task: Any, what: Any, output: str, parts: int, how: dict[str, Any], samples: int, progress: bool | None) -> None:
    """Runs all parts, and gives up the others when one fails."""
    waiting = [task.options(name=f"forebay.build {part}/{parts}").remote(what, output, f"{part}/{parts}", how) for part in range(1, parts + 1)]
    shown = listener(progress)
    if shown is not None:
        shown.begin("build", samples)
    try:
        while waiting:
            done, waiting = ray.wait(waiting)
            for figures in ray.get(done):
                if shown is not None:
                    shown.advance(figures["samples"])
    except BaseException:
        for part in waiting:
            ray.cancel(part, force=True)
        raise
    finally:
        if shown is not None:
            shown.end()


def _absolute(data: Data | None) -> Data | None:
    """Where the data is, for processes with another current folder."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data) if is_url(data) else os.path.abspath(data)
    if data is None or isinstance(data, FileList):
        return data
    return FileList(data)
