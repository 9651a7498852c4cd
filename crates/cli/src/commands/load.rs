//! `forebay load`: stream batches, as a benchmark.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use forebay_engine::data::Skipped;
use forebay_engine::load::{
    Batch, CachePolicy, Cached, Column, Epoch, Even, LoadOptions, Loader, Next, STREAMS, Sampling, Shuffle, State,
    Stats, WINDOW_BYTES,
};
use forebay_engine::{Progress, cores};
use forebay_plan::{Bound, LoaderStats, Profile};
use forebay_storage::{CachedStorage, Storage, parse_bytes, read_text};
use serde::Serialize;

use super::plan::read_profile;
use crate::arguments::{self, ErrorArguments, INPUT, MemoryArguments, RESOURCES, Settings, StorageArguments, Threads};
use crate::error::{Error, Result};
use crate::file_list::{ListArguments, warn_of_one_class};
use crate::output::{Output, write_file};
use crate::sampling::SamplingArguments;

mod open;
mod show;

pub(super) use open::open_dataset;
use open::{interleaved, open};
pub(super) use show::show;

/// Headings of the help.
const SHUFFLING: &str = "Shuffling options";
const DISTRIBUTED: &str = "Distributed options";

const EXAMPLES: &str = "\
Examples:
  forebay load dataset/
  forebay load dataset/ --shuffle --batch-size 256 --epochs 3
  forebay load dataset/ --storage ceph-hdd --cold
  forebay load s3://bucket/dataset --cache-dir /scratch --cache-size 500GB
  forebay load dataset/ --epochs 3 --cache decoded:4GB
  forebay load dataset/ --epochs 3 --cache liquid:4GB --shuffle
  forebay load dataset/ --shuffle --cache auto:4GB --profile profile.json
  forebay load dataset/ --set random_crop.size=192
  forebay load dataset/ --shuffle --rank 1 --world-size 4
  forebay load dataset/ --shuffle --epochs 10 --state state.json
  forebay load dataset/ --subset validation.txt
  forebay load dataset/ --where \"label in (3, 7)\"
  forebay load dataset/ --where \"split == 'train'\" --table splits.csv
  forebay load dataset/ --weights weights.txt --replacement --num-samples 10000
  forebay load dataset/ --weights balanced --num-samples 10000
  forebay load dataset/ --shuffle --interleave other/=0.5
  forebay load dataset/ --scans 2         progressive records, at a lower quality
  forebay load cv --data photos/          all steps online, from the files
  forebay load cv --data photos/ --files-from train.txt
  forebay load imagenet --data parquet/ --set source.format=parquet

Shuffling reads blocks of neighboring samples in random order and mixes the
samples of each window. Two windows are held in memory. The order depends only
on --seed and the epoch.

A step of an epoch is one batch of every rank. Its samples do not depend on the
number of ranks, so a --state can be resumed with another --world-size,
--batch-size or --threads.

--memory bounds the data in flight: when the budget is used up, reading waits.
A sample or batch that could never fit is an error. The --cache budget is
additional.

--cache says what stays in memory between epochs:
  none     nothing, and the page cache is bypassed
  page     what is in the system's page cache (the default)
  minio    samples as they are stored: a fixed random set, never evicted
  decoded  samples after as many deterministic steps as possible while all fit
  liquid   samples as they are stored: different ones every epoch, and the same
           share of every batch; needs --shuffle, and is shared by all ranks
  auto     chooses one of these and says why: by the rates of a --profile of the
           data, otherwise by sizes";

/// Stream batches from a data set or a pipeline, and measure the throughput
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Data set built by `forebay build`, or a pipeline: a TOML file, a preset, or a plan that chose `unprocessed`
    #[arg(value_name = "DATASET|PIPELINE")]
    pub(crate) what: String,
    /// Folder with the source files of a pipeline
    #[arg(long, value_name = "FOLDER", help_heading = INPUT)]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) list: ListArguments,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Number of samples per batch
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) batch_size: u64,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Shuffle the samples, in a different order every epoch
    #[arg(long, help_heading = SHUFFLING)]
    pub(crate) shuffle: bool,
    /// Size of the shuffle window; a window as large as the data set shuffles it fully [default: 64MB]
    #[arg(long, value_name = "SIZE", help_heading = SHUFFLING, value_parser = parse_bytes, requires = "shuffle")]
    pub(crate) shuffle_window: Option<u64>,
    /// Number of streams in which a shuffled epoch is read; with a multiple of the world size, each rank reads its own streams
    #[arg(long, value_name = "N", help_heading = SHUFFLING, default_value_t = STREAMS, value_parser = clap::value_parser!(u64).range(1..=65_536), requires = "shuffle")]
    pub(crate) streams: u64,
    #[command(flatten)]
    pub(crate) sampling: SamplingArguments,
    /// Rank of this process
    #[arg(long, value_name = "N", help_heading = DISTRIBUTED, default_value_t = 0, requires = "world_size")]
    pub(crate) rank: u64,
    /// Number of ranks that share each epoch
    #[arg(long, value_name = "N", help_heading = DISTRIBUTED, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_073_741_824))]
    pub(crate) world_size: u64,
    /// What to do with the last samples if they cannot be shared equally
    #[arg(long, value_enum, value_name = "ACTION", help_heading = DISTRIBUTED, default_value_t = EvenChoice::None, requires = "world_size")]
    pub(crate) even: EvenChoice,
    /// Resume from FILE if it exists; write it at the end, on Ctrl-C and on errors
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Seed of shuffling and random steps
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of epochs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// Stop each epoch after the batch with the N-th sample [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: Option<u64>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Bypass the page cache: drop the data from it before each epoch and after each read, as if the data were larger than memory
    #[arg(long, help_heading = RESOURCES)]
    pub(crate) cold: bool,
    #[command(flatten)]
    pub(crate) on_error: ErrorArguments,
    /// For progressive records (`concatenated+pcr`): read only the first N of 10 groups of scans, for fewer bytes and lower quality [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10))]
    pub(crate) scans: Option<u64>,
    /// What stays in memory between epochs: `none`, `page`, `minio:SIZE`, `decoded:SIZE`, `liquid:SIZE` or `auto:SIZE`; a size alone means `decoded`
    #[arg(long, value_name = "CACHE", help_heading = RESOURCES, default_value_t = CachePolicy::default())]
    pub(crate) cache: CachePolicy,
    /// Cache shards that are read from a bucket in this folder, across runs
    #[arg(long, value_name = "FOLDER", help_heading = RESOURCES)]
    pub(crate) cache_dir: Option<PathBuf>,
    /// Size of `--cache-dir` [default: 100GB]
    #[arg(long, value_name = "SIZE", help_heading = RESOURCES, requires = "cache_dir", value_parser = parse_bytes)]
    #[arg(default_value_t = CACHE_BYTES, hide_default_value = true)]
    pub(crate) cache_size: u64,
    /// Profile of the data, whose rates `--cache auto` uses to choose; without it, only sizes count
    #[arg(long, value_name = "FILE", help_heading = RESOURCES)]
    pub(crate) profile: Option<PathBuf>,
    /// Drop the last batch if it is incomplete
    #[arg(long)]
    pub(crate) drop_last: bool,
    /// Number of batches to prefetch
    #[arg(long, value_name = "N", help_heading = RESOURCES, default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=1024))]
    pub(crate) prefetch: u64,
}

impl Arguments {
    /// What it reads.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        arguments::named_file(&self.what)
            .into_iter()
            .chain(self.data.as_deref())
            .chain(self.list.file())
            .chain(self.sampling.files())
            .chain(self.profile.as_deref())
            .collect()
    }
}

/// What becomes of the last samples, where ranks cannot share them equally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EvenChoice {
    /// Keep them: some ranks get one more sample
    None,
    /// Drop them
    Drop,
    /// Pad them with the first samples of the epoch
    Pad,
}

/// What `load --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// The data set's folder, or the pipeline's name.
    source: String,
    strategy: String,
    storage: String,
    threads: usize,
    samples: u64,
    skipped: u64,
    batches: u64,
    seconds: f64,
    samples_per_second: f64,
    bytes_read: u64,
    bytes_per_second: f64,
    /// The memory budget, and the peak of its use.
    memory_bytes: u64,
    memory_bytes_peak: u64,
    /// What is cached from one epoch to the next, and at which stage; `None` without `--cache`.
    cache: Option<Cached>,
    /// What the threads did with their time, and what bound them after the first batch of each epoch.
    stats: LoaderStats,
    bound_by: Bound,
    /// What the first batch is made of.
    batch: Vec<FieldShape>,
    epochs: Vec<Streamed>,
    /// What the user should know about how it was read.
    notices: Vec<String>,
    skipped_samples: Vec<Skipped>,
    /// What is probably not meant of the data.
    warnings: Vec<String>,
    /// Whether it was interrupted, so that this is what there was until then.
    pub(super) interrupted: bool,
}

/// The size of a folder of blocks that were read from a bucket.
pub(super) const CACHE_BYTES: u64 = 100_000_000_000;

/// What came of one epoch.
#[derive(Debug, Serialize)]
struct Streamed {
    /// Its number, counted from 0.
    #[serde(skip)]
    epoch: u64,
    samples: u64,
    skipped: u64,
    batches: u64,
    seconds: f64,
    /// When the first batch was there, and what the threads had done by then.
    first_batch_seconds: Option<f64>,
    #[serde(skip)]
    stats_at_first_batch: Option<Stats>,
    samples_per_second: f64,
    bytes_read: u64,
    bytes_per_second: f64,
    /// What of it a page cache did not have, where the storage counts that.
    device_bytes_read: Option<u64>,
}

/// One field of a batch.
#[derive(Debug, Serialize)]
struct FieldShape {
    field: String,
    /// `float32`, `int64`, `text` or `bytes`.
    dtype: String,
    /// The dimensions, the batch first; `null` where they differ from sample to sample.
    shape: Vec<Option<usize>>,
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let outcome = execute(arguments, output)?;
    output.present(&outcome, show)?;
    if outcome.interrupted { Err(Error::Interrupted("")) } else { Ok(()) }
}

/// Streams every epoch.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let choice = &arguments.storage.storage;
    let storage = if arguments.cold { choice.open_uncached()? } else { arguments.cache.open(choice)? };
    let storage: Arc<dyn Storage> = match &arguments.cache_dir {
        Some(folder) => {
            let cached = CachedStorage::new(storage, folder, arguments.cache_size);
            Arc::new(cached.map_err(forebay_engine::Error::from)?)
        }
        None => storage,
    };
    let (source, counts) = interleaved(arguments, open(arguments, &storage)?, &storage)?;
    let sampling = Sampling { shares: arguments.sampling.shares(&counts)?, ..arguments.sampling.read(&*source)? };
    let loader =
        Loader::new(source, LoadOptions { sampling, profile: arguments.read_profile()?, ..arguments.options() })?;
    let source = loader.source();
    let mut warnings = Vec::new();
    // A data set was warned of when it was built.
    if source.folder().is_some() {
        warnings = warn_of_one_class(source.pipeline().source(), source.classes(), source.samples(), output);
    }
    let mut state = match &arguments.state {
        Some(path) => read_state(path, &loader, arguments.epochs)?,
        None => loader.beginning_of(0),
    };
    let progress = output.progress();
    let (mut epochs, mut batch, mut skipped_samples) = (Vec::new(), Vec::new(), Vec::new());
    let (mut memory_bytes_peak, mut all_stats) = (0, LoaderStats::default());
    while state.epoch < arguments.epochs && !progress.is_cancelled() {
        if arguments.cold {
            let paths = source.paths();
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            storage.drop_cache(&paths).map_err(forebay_engine::Error::from)?;
        }
        let wanted = arguments.samples.unwrap_or(u64::MAX);
        let samples = loader.samples_from(state.samples_seen).min(wanted);
        progress.begin(&format!("epoch {}", state.epoch + 1), samples);
        let device_bytes_before = storage.device_bytes_read();
        let begun = Instant::now();
        let mut epoch = loader.start(&state)?;
        let streamed = stream(&mut epoch, &mut state, begun, wanted, &progress, &mut batch);
        memory_bytes_peak = epoch.memory_bytes_peak().max(memory_bytes_peak);
        progress.end();
        if skipped_samples.is_empty() {
            skipped_samples = epoch.skipped_samples();
        }
        if let (Err(_), Some(path)) = (&streamed, &arguments.state) {
            // What came before the error need not come again.
            write_state(path, &state)?;
        }
        let device_bytes_read = storage.device_bytes_read().zip(device_bytes_before).map(|(now, before)| now - before);
        let streamed = streamed?;
        all_stats = all_stats.and_epoch(&epoch.stats(), streamed.stats_at_first_batch.as_ref());
        epochs.push(Streamed { device_bytes_read, ..streamed });
        if !progress.is_cancelled() {
            state = loader.beginning_of(state.epoch + 1);
        }
    }
    if let Some(path) = &arguments.state {
        write_state(path, &state)?;
    }
    let sum = |value: fn(&Streamed) -> u64| epochs.iter().map(value).sum::<u64>();
    let seconds: f64 = epochs.iter().map(|epoch| epoch.seconds).sum();
    let (samples, bytes_read) = (sum(|epoch| epoch.samples), sum(|epoch| epoch.bytes_read));
    Ok(Outcome {
        source: arguments.what.clone(),
        strategy: source.formats(),
        storage: arguments.storage.storage.to_string(),
        threads: arguments.threads.count(),
        samples,
        skipped: sum(|epoch| epoch.skipped),
        batches: sum(|epoch| epoch.batches),
        seconds,
        samples_per_second: per_second(samples, seconds),
        bytes_read,
        bytes_per_second: per_second(bytes_read, seconds),
        memory_bytes: loader.options().memory_bytes,
        memory_bytes_peak,
        cache: loader.cached(),
        stats: all_stats,
        bound_by: all_stats.bound_by(cores()),
        batch,
        epochs,
        notices: storage.notice().into_iter().collect(),
        skipped_samples,
        warnings,
        interrupted: progress.is_cancelled(),
    })
}

/// While a batch is awaited, the user is asked so often whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Takes the batches of one epoch, as a trainer would; fewer where that was interrupted. `state` says where it is.
fn stream(
    epoch: &mut Epoch,
    state: &mut State,
    begun: Instant,
    wanted: u64,
    progress: &dyn Progress,
    first_batch: &mut Vec<FieldShape>,
) -> Result<Streamed> {
    let (mut samples, mut batches, mut first) = (0, 0, None);
    while samples < wanted && !progress.is_cancelled() {
        let batch = match epoch.next_timeout(LOOK_UP) {
            Next::Batch(batch) => batch?,
            Next::NotYet => continue,
            Next::End => break,
        };
        samples += batch.len() as u64;
        batches += 1;
        first.get_or_insert_with(|| (begun.elapsed().as_secs_f64(), epoch.stats()));
        progress.advance(batch.len() as u64);
        if first_batch.is_empty() {
            *first_batch = shapes(&batch);
        }
        *state = epoch.state_after(&batch);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let bytes_read = epoch.bytes_read();
    Ok(Streamed {
        epoch: state.epoch,
        samples,
        skipped: epoch.skipped(),
        batches,
        seconds,
        first_batch_seconds: first.map(|(seconds, _)| seconds),
        stats_at_first_batch: first.map(|(_, stats)| stats),
        samples_per_second: per_second(samples, seconds),
        bytes_read,
        bytes_per_second: per_second(bytes_read, seconds),
        device_bytes_read: None,
    })
}

fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

impl Arguments {
    /// The profile that a cache is chosen by.
    fn read_profile(&self) -> Result<Option<Arc<Profile>>> {
        let Some(path) = &self.profile else { return Ok(None) };
        if !matches!(self.cache, CachePolicy::Auto { .. }) {
            let problem = format!("`--profile` has no effect with `--cache {}`", self.cache);
            return Err(Error::usage(problem, "pass `--cache auto:SIZE`, or omit it"));
        }
        Ok(Some(Arc::new(read_profile(path)?)))
    }

    fn options(&self) -> LoadOptions {
        LoadOptions {
            batch_size: self.batch_size as usize,
            threads: self.threads.count(),
            prefetch: self.prefetch as usize,
            shuffle: if self.shuffle {
                Shuffle::Window { bytes: self.shuffle_window.unwrap_or(WINDOW_BYTES) }
            } else {
                Shuffle::No
            },
            streams: self.streams,
            seed: self.seed,
            rank: self.rank,
            world_size: self.world_size,
            drop_last: self.drop_last,
            even: match self.even {
                EvenChoice::None => Even::None,
                EvenChoice::Drop => Even::Drop,
                EvenChoice::Pad => Even::Pad,
            },
            on_error: self.on_error.choice(),
            cache: self.cache,
            memory_bytes: self.memory.bytes(),
            ..LoadOptions::default()
        }
    }
}

/// A state is a handful of numbers.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// The state in `path`; the beginning where there is no such file.
fn read_state(path: &Path, loader: &Loader, epochs: u64) -> Result<State> {
    if arguments::look_at(path)?.is_none() {
        return Ok(loader.beginning_of(0));
    }
    let text = read_text(path, STATE_BYTES_MAX).map_err(forebay_engine::Error::from)?;
    let state: State = serde_json::from_str(&text).map_err(|error| {
        Error::usage(
            format!("`{}` is not the state of a loader: {error}", path.display()),
            "pass another file to `--state`",
        )
    })?;
    state.check(loader)?;
    if state.epoch >= epochs {
        let problem = format!("all {epochs} epochs of `{}` have been loaded", path.display());
        return Err(Error::usage(problem, "raise `--epochs`, or remove the file to start over"));
    }
    Ok(state)
}

fn write_state(path: &Path, state: &State) -> Result<()> {
    let text = serde_json::to_string_pretty(state).expect("a state has text keys and plain values");
    write_file(path, format!("{text}\n").as_bytes())
}

fn shapes(batch: &Batch) -> Vec<FieldShape> {
    let shape = |(name, column): &(Arc<str>, Column)| {
        let count = Some(batch.len());
        let (dtype, shape) = match column {
            Column::Dense { spec, .. } => {
                let dims = spec.shape.dims().iter().map(|&dim| Some(dim));
                (spec.dtype.name(), std::iter::once(count).chain(dims).collect())
            }
            Column::Ragged(tensors) => {
                let spec = tensors.first().map(forebay_codec::Tensor::spec);
                let dims = spec.map_or(0, |spec| spec.shape.dims().len());
                (
                    spec.map_or("tensor", |spec| spec.dtype.name()),
                    std::iter::once(count).chain(vec![None; dims]).collect(),
                )
            }
            Column::Ints(_) => ("int64", vec![count]),
            Column::Texts(_) => ("text", vec![count]),
            Column::Bytes(_) => ("bytes", vec![count]),
        };
        FieldShape { field: name.to_string(), dtype: dtype.to_owned(), shape }
    };
    batch.columns.iter().map(shape).collect()
}
