"""Find and fix bottlenecks in training input pipelines.

Forebay profiles a pipeline, chooses which steps to run once and which to run every epoch, builds the data set accordingly,
and streams batches::

    import forebay

    profile = forebay.profile("imagenet", "photos/")         # measure every strategy
    plan = profile.plan(max_prep_time="1h")                  # choose the best one
    source = plan if plan.reads_files else plan.build("dataset/")   # run the offline steps once, if that pays off
    loader = forebay.Loader(source, batch_size=256, shuffle=True, seed=7)
    for batch in loader:
        images, labels = batch["image"], batch["label"]      # zero-copy; framework="torch" returns tensors

The manual is docs/python.md.
"""

from ._advise import Advice, advise
from ._analyze import DataAnalysis, analyze
from ._budget import Budget, Variant, budget
from ._codec import AppliedCodec, apply_codec
from ._comparison import Comparison, compare
from ._decode import decode
from ._demo import DemoData, demo_data
from ._diagnose import Diagnosis, diagnose
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
from ._recompress import Recompressed, recompress
from ._regimen import Phase, Regimen, SuccessiveHalving, Trial
from ._sampling import balanced_weights, stratified_subset
from ._stats import Cached, Skipped, Stats
from ._steps import Steps
from ._study import Run, Study, study
from ._watch import Watch, watch
from ._work import Dataset, build, build_part, profile

__all__ = [
    "AccessError",
    "Advice",
    "Analysis",
    "AppliedCodec",
    "Budget",
    "Cached",
    "Comparison",
    "DataAnalysis",
    "DataError",
    "Dataset",
    "DemoData",
    "Diagnosis",
    "Error",
    "FileList",
    "InternalError",
    "LimitError",
    "Loader",
    "MissingFileError",
    "Parallel",
    "Phase",
    "Pipeline",
    "PipelineError",
    "Plan",
    "Prices",
    "Profile",
    "Recompressed",
    "Regimen",
    "Run",
    "Skipped",
    "Stats",
    "Steps",
    "StorageError",
    "Study",
    "SuccessiveHalving",
    "Trial",
    "UnsupportedError",
    "UsageError",
    "Variant",
    "Watch",
    "WhatIf",
    "__version__",
    "advise",
    "analyze",
    "apply_codec",
    "balanced_weights",
    "budget",
    "build",
    "build_part",
    "compare",
    "decode",
    "demo_data",
    "diagnose",
    "plan",
    "profile",
    "recompress",
    "stratified_subset",
    "study",
    "watch",
]
