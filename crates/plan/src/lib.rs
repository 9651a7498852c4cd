//! Measurements in, plan out.
//!
//! A [`Profile`] holds what was measured of a pipeline: what each step costs, what the storage gives, and what each
//! *strategy* (each way to split the pipeline into *once* and *every epoch*) reached. This crate turns it into a [`Plan`]:
//! which strategy to build, why, and what limits each of them. It is arithmetic only: no clock, no files, no threads,
//! and the same profile always gives the same plan.
//!
//! - [`predict`] is the cost model: the smallest of what storage, CPU and trainer can do. It neglects whatever keeps
//!   them from overlapping perfectly, so a measurement is usually a little lower; each prediction is given with its error.
//! - [`summarize`] turns the runs of each strategy into throughput (samples per second that reach the trainer) and its spread, and
//!   extrapolates storage and preparation to the entire data set, in proportion to the number of samples.
//! - [`rank`] orders the strategies by an [`Objective`]: weights for preparation time, storage and throughput, and hard
//!   [`Limits`].
//! - [`plan`] does all of that and gives the reasons in words. With [`Prices`] in the objective it reckons in money, with a
//!   [`WhatIf`] it plans for another machine.
//! - [`analyze`] adds what the plots and tables of a report show of one profile, such as the Pareto front, and [`compare`]
//!   sets profiles of the same pipeline under different settings side by side: caching, threads, sample count, sample size.
//!   [`table`] has all of it as rows, for other programs.
//! - [`mix()`] finds the shares of several formats that keep storage and CPU busy together: a linear program, and the searches of the
//!   paper that it agrees with.
//! - [`choose_cache`] chooses what to cache in memory from one epoch to the next.
//! - [`advise`] puts all of this into answers and one recommendation.
//! - [`diagnose`] says what a trainer waits for, from what it reaches with and without the input pipeline.
//! - [`notices`] says what a measurement leaves open, such as data that fits in memory and was measured without a cache.
//!
//! The choice rests on measured throughput; predictions only explain it, unless another machine is asked about, which was not
//! measured: then the model decides, corrected by its error here, and every assumption is listed.
//!
//! # Example
//!
//! ```
//! use forebay_plan::{Bound, Limits, Objective, Profile, WhatIf, plan};
//!
//! let profile = Profile::parse(r#"{
//!   "version": 1, "forebay": "0.1.0",
//!   "machine": {"cpu": "an example", "cores": 2, "memory_bytes": 8000000000, "memory_bytes_per_second": 4e9},
//!   "pipeline": {"name": "photos", "step": [{"op": "decode"}]},
//!   "data": {"root": "photos", "samples": 10000, "bytes": 1000000000},
//!   "method": {"sample_count": 100, "runs": 1, "threads": 2, "shards": 2, "caching": "none", "seed": 7},
//!   "storage": {"name": "disk", "sequential_bytes_per_second": 4e8, "files_per_second": 100, "file_bytes": 1e5},
//!   "steps": [
//!     {"name": "read", "cpu_seconds": 0.0001, "bytes_out": 1e5, "random": false},
//!     {"name": "decode", "cpu_seconds": 0.004, "bytes_out": 6e5, "random": false}
//!   ],
//!   "strategies": [
//!     {"name": "unprocessed", "split": {"position": 0, "name": "unprocessed"}, "storage_bytes": 10000000,
//!      "bytes_per_sample": 1e5, "prep_seconds": 0, "deserialize_cpu_seconds": 0, "online_cpu_seconds": 0.0041,
//!      "runs": [{"samples": 100, "skipped": 0, "seconds": 1.02, "bytes_read": 10000000}]},
//!     {"name": "decoded", "split": {"position": 2, "name": "decoded"}, "storage_bytes": 60000000,
//!      "bytes_per_sample": 6e5, "prep_seconds": 1.2, "deserialize_cpu_seconds": 0.0001, "online_cpu_seconds": 0,
//!      "runs": [{"samples": 100, "skipped": 0, "seconds": 0.155, "bytes_read": 60000000}]}
//!   ]
//! }"#)?;
//!
//! let best = plan(&profile, &Objective::default())?;
//! assert_eq!(best.chosen, "decoded");
//! assert_eq!(best.prediction.bound_by, Bound::Storage);
//! assert_eq!(
//!     best.ranking[0].sentence,
//!     "disk-bound: 600 kB per sample at 400 MB/s allows 667 samples/s; the CPU could do 20,000 samples/s"
//! );
//!
//! // The decoded images would need 6 GB; with less, files are read every epoch.
//! let limits = Limits { max_storage_bytes: Some(2_000_000_000), ..Limits::default() };
//! let small = plan(&profile, &Objective { limits, ..Objective::default() })?;
//! assert_eq!(small.chosen, "unprocessed");
//!
//! // With eight times the bandwidth the disk would still bind: 5,333 samples/s by the model, 5,161 with its error here.
//! let what_if = WhatIf { read_bytes_per_second: Some(3.2e9), ..WhatIf::default() };
//! let there = plan(&profile, &Objective { what_if: Some(what_if), ..Objective::default() })?;
//! assert_eq!(there.ranking[0].samples_per_second().round(), 5161.0);
//! # Ok::<(), forebay_plan::Error>(())
//! ```
//!
//! # Limits
//!
//! Another machine is described by a few numbers, and everything else is assumed to be as it is here: the speed of a core,
//! the time to open a file, the rate of memory. Extrapolation is linear: it holds as far as the samples measured are like the rest. Under caching, throughput was measured on
//! what was cached; if the entire data set does not fit in memory, the strategy's sentence says so. A strategy is one
//! container and one encoding; [`mix()`] plans several of them in one data set, from what was measured of each alone.

#![forbid(unsafe_code)]

mod advice;
mod analysis;
mod cache;
mod check;
mod comparison;
mod compression;
mod data_analysis;
mod diagnosis;
mod distribution;
mod error;
mod explain;
mod export;
mod forecast;
mod limits;
pub mod mix;
mod money;
mod neglected;
mod notices;
mod objective;
mod pareto;
mod parquet;
mod plan;
mod prediction;
mod profile;
mod reason;
mod requests;
mod score;
mod skipped;
mod stats;
mod summary;
pub mod units;
mod what_if;
mod words;
mod work;

pub use advice::{Advice, AdviceOptions, Answer, LowerQuality, advise};
pub use analysis::{Analysis, Analyzed, analyze};
pub use cache::{CacheChoice, CacheSubject, DECODED_ENTRY_BYTES, STORED_ENTRY_BYTES, cached_stage, choose_cache};
pub use comparison::{CachingGroup, CachingRow, Comparison, Line, LineGroup, Point, ShuffleGroup, ShuffleRow, compare};
pub use compression::{
    CompressionChoice, INFLATING_READERS, NEAR, compressed, compression_choices, promising, unsettled,
};
pub use data_analysis::{
    ClassCount, Colors, DataAnalysis, DataKind, DuplicateCount, DuplicateGroup, Duplicates, FormatCount, NextStep,
    Qualities, Recompression,
};
pub use diagnosis::{Diagnosis, Measured, Outlook, Rate, Resource, Scaling, Stalls, diagnose, what_if};
pub use distribution::{BINS, Bin, Distribution};
pub use error::{Error, Result};
pub use explain::SHORT_RUN_SECONDS;
pub use export::{Cell, Column, Table, table};
pub use forecast::{Forecast, forecasts};
pub use limits::Limits;
pub use mix::{
    Mix, MixBound, MixFormat, MixLimits, MixMode, MixRates, MixShare, mix, mix_by, mix_formats, mix_limits, mix_of,
    mix_unknown,
};
pub use money::{Cost, Prices};
pub use notices::{mix_notices, notices};
pub use objective::{Objective, RankedStrategy, Ranking, Weights, rank};
pub use pareto::pareto_front;
pub use plan::{Plan, plan};
pub use prediction::{Bound, Prediction, predict};
pub use profile::{
    Alone, Caching, CompressionCost, Data, FirstBatch, Machine, Method, Others, Profile, Run, Runs, StepCost,
    StorageRates, StrategyProfile, SystemSample,
};
pub use score::Normalized;
pub use skipped::Skipped;
pub use stats::{LoaderStats, Stats};
pub use summary::{Summary, break_even_epochs, summarize};
pub use what_if::{OtherMachine, WhatIf};
pub use words::{bound_there, bound_word, describe_machine, first_batches, rate_with_spread, step_cells};
pub use work::{Work, WorkPart, watched, work};
