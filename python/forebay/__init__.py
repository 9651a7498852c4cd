"""Find and fix bottlenecks in training input pipelines.

Forebay profiles a pipeline, chooses which steps to run once and which to run every epoch, builds the data set accordingly,
and streams batches::

    import forebay

    profile = forebay.profile("imagenet", "photos/")         # measure every strategy
    plan = profile.plan(max_prep_time="1h")                  # choose the best one
    source = plan if plan.keeps_files else plan.build("dataset/")   # run the offline steps once, if that pays off
    loader = forebay.Loader(source, batch_size=256, shuffle=True, seed=7)
    for batch in loader:
        images, labels = batch["image"], batch["label"]      # zero-copy; framework="torch" returns tensors

The manual is docs/python.md.
"""

from ._comparison import Comparison, compare
from ._decode import decode
from ._demo import DemoData, demo_data
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
from ._loader import Loader
from ._native import __version__
from ._objective import Prices, WhatIf
from ._pipeline import Pipeline
from ._planning import Analysis, Plan, Profile, plan
from ._sampling import balanced_weights
from ._stats import Cached, Skipped, Stats
from ._steps import Steps
from ._work import Dataset, build, profile

__all__ = [
    "AccessError",
    "Analysis",
    "Cached",
    "Comparison",
    "DataError",
    "Dataset",
    "DemoData",
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
    "Steps",
    "StorageError",
    "UnsupportedError",
    "UsageError",
    "WhatIf",
    "__version__",
    "balanced_weights",
    "build",
    "compare",
    "decode",
    "demo_data",
    "plan",
    "profile",
]
