"""Forebay keeps an accelerator fed.

It finds out what a training input pipeline starves on, works out how far the data should be preprocessed once, rewrites it
that way, and streams batches::

    import forebay

    profile = forebay.profile("imagenet", "photos/")         # measure every way to keep the data
    plan = profile.plan(prep_seconds_max=3600)               # choose one
    source = plan if plan.keeps_files else plan.build("dataset/")   # rewrite the data once, if that pays
    loader = forebay.Loader(source, batch_size=256, shuffle=True, seed=7)
    for batch in loader:
        images, labels = batch["image"], batch["label"]      # no copy; framework="torch" gives tensors

Everything else is in docs/python.md.
"""

from ._comparison import Comparison, compare
from ._decode import decode
from ._errors import (
    AccessError,
    DataError,
    Error,
    InternalError,
    LimitError,
    MissingFileError,
    PipelineError,
    StorageError,
    UnsupportedError,
    UsageError,
)
from ._files import FileList
from ._function import Parallel
from ._loader import Cached, Loader, Skipped, Stats
from ._native import __version__
from ._objective import Prices, WhatIf
from ._pipeline import Pipeline
from ._planning import Analysis, Plan, Profile, plan
from ._work import Dataset, build, profile

__all__ = [
    "AccessError",
    "Analysis",
    "Cached",
    "Comparison",
    "DataError",
    "Dataset",
    "Error",
    "FileList",
    "InternalError",
    "LimitError",
    "Loader",
    "MissingFileError",
    "Parallel",
    "Pipeline",
    "PipelineError",
    "Plan",
    "Prices",
    "Profile",
    "Skipped",
    "Stats",
    "StorageError",
    "UnsupportedError",
    "UsageError",
    "WhatIf",
    "__version__",
    "build",
    "compare",
    "decode",
    "plan",
    "profile",
]
