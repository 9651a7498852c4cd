"""Forebay keeps an accelerator fed.

It finds out what a training input pipeline starves on, works out how far the data should be preprocessed once, rewrites it
that way, and streams batches::

    import forebay

    profile = forebay.profile("imagenet", "train/")          # measure every way to keep the data
    dataset = profile.plan().build("dataset/")               # choose one, and rewrite the data once
    loader = forebay.Loader(dataset, batch_size=256, shuffle=True, seed=7, framework="torch")
    for batch in loader:
        images, labels = batch["image"], batch["label"]      # no copy

Everything else is in docs/python.md.
"""

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
from ._loader import Cached, Loader, Skipped
from ._native import __version__
from ._pipeline import Pipeline
from ._work import Dataset, Plan, Profile, build, plan, profile

__all__ = [
    "AccessError",
    "Cached",
    "DataError",
    "Dataset",
    "Error",
    "InternalError",
    "LimitError",
    "Loader",
    "MissingFileError",
    "Pipeline",
    "PipelineError",
    "Plan",
    "Profile",
    "Skipped",
    "StorageError",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "build",
    "decode",
    "plan",
    "profile",
]
