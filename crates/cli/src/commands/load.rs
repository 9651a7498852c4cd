//! `forebay load`: stream batches, as a benchmark.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use forebay_engine::Progress;
use forebay_engine::data::{Dataset, Listing, MANIFEST_FILE, Reach, Skipped};
use forebay_engine::load::{
    Batch, Cache, Column, FromStorage, LoadOptions, Loader, Next, Online, Schedule, Shuffle, Supply,
};
use forebay_pipeline::{Draw, Pipeline, Strategy};
use forebay_plan::units;
use forebay_storage::Storage;
use serde::Serialize;

use super::plan::read_plan;
use super::profile::counted;
use super::show_skipped;
use crate::arguments::{self, ErrorArguments, MemoryArguments, Settings, StorageArguments, Threads, size_bytes};
use crate::error::{Error, Result};
use crate::output::{Align, Output, Page, Table};

const EXAMPLES: &str = "\
Examples:
  forebay load dataset/
  forebay load dataset/ --shuffle --batch 256 --epochs 3
  forebay load dataset/ --storage ceph-hdd --cold
  forebay load dataset/ --epochs 3 --cache 4GB
  forebay load cv --data photos/          reads the files, does every step

Shuffling reads blocks of neighbouring samples in random order, a window at a
time, and mixes the samples of each window; the order follows from --seed and
the epoch alone. Two windows are held in memory.

A picture of a few KB may decode to a GB: --memory bounds what is taken at once,
and what must wait waits. A sample or a batch that never fits is an error. What
--cache keeps is not part of it.";

/// Stream batches from a data set (or from a folder, through a whole pipeline), and say how fast
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A folder that `forebay build` made, or a pipeline (a TOML file, a ready name, or a plan that keeps files as they are)
    #[arg(value_name = "DATASET|PIPELINE")]
    pub(crate) what: String,
    /// The folder with the data, where a pipeline is given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    pub(crate) batch: u64,
    #[command(flatten)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) memory: MemoryArguments,
    /// Put samples in random order, another one each epoch
    #[arg(long)]
    pub(crate) shuffle: bool,
    /// How much is shuffled at a time; as large as the data set for a full shuffle
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = size_bytes, requires = "shuffle")]
    pub(crate) window: u64,
    /// The seed of random steps and of shuffling
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Epochs, one after another
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: u64,
    /// Stop each epoch after the batch with the Nth sample [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples: Option<u64>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Drop what the page cache holds of the data before each epoch
    #[arg(long)]
    pub(crate) cold: bool,
    #[command(flatten)]
    pub(crate) on_error: ErrorArguments,
    /// Keep so much of the samples in memory from one epoch to the next, after the steps that always give the same
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) cache: Option<u64>,
    /// Leave the last batch out if it is not full
    #[arg(long)]
    pub(crate) drop_last: bool,
    /// Batches that are kept ready
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(0..=1024))]
    pub(crate) prefetch: u64,
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
    /// The memory budget, and how much of it was taken at most.
    memory_bytes: u64,
    memory_bytes_peak: u64,
    /// What the first batch is made of.
    batch: Vec<FieldShape>,
    epochs: Vec<Epoch>,
    /// What the user should know about how it was read.
    notice: Option<String>,
    skipped_samples: Vec<Skipped>,
    /// Whether it was interrupted, so that this is what there was until then.
    pub(super) interrupted: bool,
}

/// One epoch.
#[derive(Debug, Serialize)]
struct Epoch {
    samples: u64,
    skipped: u64,
    batches: u64,
    seconds: f64,
    samples_per_second: f64,
    bytes_read: u64,
    bytes_per_second: f64,
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

/// Where samples come from.
enum Origin {
    Shards(Arc<Dataset>),
    Files(Arc<Listing>, Box<Pipeline>),
}

pub(super) fn run(arguments: &Arguments, output: &Output) -> Result<()> {
    let outcome = execute(arguments, output)?;
    output.present(&outcome, show)?;
    if outcome.interrupted { Err(Error::Interrupted("")) } else { Ok(()) }
}

/// Streams every epoch.
pub(super) fn execute(arguments: &Arguments, output: &Output) -> Result<Outcome> {
    let origin = Origin::open(arguments)?;
    let storage = arguments.storage.storage.open(0)?;
    let progress = output.progress();
    let cache = arguments.cache.map(|bytes| Arc::new(Cache::new(bytes)));
    let (mut epochs, mut batch, mut skipped_samples) = (Vec::new(), Vec::new(), Vec::new());
    let (memory_bytes, mut memory_bytes_peak) = (arguments.memory.bytes(), 0);
    for number in 0..arguments.epochs {
        if arguments.cold {
            let paths = origin.paths();
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            storage.drop_cache(&paths).map_err(forebay_engine::Error::from)?;
        }
        let wanted = arguments.samples.unwrap_or(u64::MAX);
        progress.begin(&format!("epoch {}", number + 1), origin.samples().min(wanted));
        let begun = Instant::now();
        let mut loader = origin.start(arguments, &storage, cache.as_ref(), number, memory_bytes)?;
        epochs.push(stream(&mut loader, begun, wanted, &progress, &mut batch)?);
        memory_bytes_peak = loader.memory_bytes_peak().max(memory_bytes_peak);
        progress.end();
        if skipped_samples.is_empty() {
            skipped_samples = loader.skipped_list();
        }
        if progress.is_cancelled() {
            break;
        }
    }
    let sum = |value: fn(&Epoch) -> u64| epochs.iter().map(value).sum::<u64>();
    let seconds: f64 = epochs.iter().map(|epoch| epoch.seconds).sum();
    let (samples, bytes_read) = (sum(|epoch| epoch.samples), sum(|epoch| epoch.bytes_read));
    Ok(Outcome {
        source: arguments.what.clone(),
        strategy: origin.strategy(),
        storage: arguments.storage.storage.to_string(),
        threads: arguments.threads.count(),
        samples,
        skipped: sum(|epoch| epoch.skipped),
        batches: sum(|epoch| epoch.batches),
        seconds,
        samples_per_second: per_second(samples, seconds),
        bytes_read,
        bytes_per_second: per_second(bytes_read, seconds),
        memory_bytes,
        memory_bytes_peak,
        batch,
        epochs,
        notice: storage.notice(),
        skipped_samples,
        interrupted: progress.is_cancelled(),
    })
}

/// While a batch is awaited, the user is asked so often whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Takes the batches of one epoch, as a trainer would; fewer where that was interrupted.
fn stream(
    loader: &mut Loader,
    begun: Instant,
    wanted: u64,
    progress: &dyn Progress,
    first_batch: &mut Vec<FieldShape>,
) -> Result<Epoch> {
    let (mut samples, mut batches) = (0, 0);
    while samples < wanted && !progress.is_cancelled() {
        let batch = match loader.next_timeout(LOOK_UP) {
            Next::Batch(batch) => batch?,
            Next::NotYet => continue,
            Next::End => break,
        };
        samples += batch.len() as u64;
        batches += 1;
        progress.advance(batch.len() as u64);
        if first_batch.is_empty() {
            *first_batch = shapes(&batch);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let bytes_read = loader.bytes_read();
    Ok(Epoch {
        samples,
        skipped: loader.skipped(),
        batches,
        seconds,
        samples_per_second: per_second(samples, seconds),
        bytes_read,
        bytes_per_second: per_second(bytes_read, seconds),
    })
}

fn per_second(amount: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount as f64 / seconds } else { 0.0 }
}

impl Origin {
    fn open(arguments: &Arguments) -> Result<Self> {
        let path = Path::new(&arguments.what);
        let no_data = |what: &str| match &arguments.data {
            None => Ok(()),
            Some(_) => Err(Error::usage(format!("`--data` makes no sense with {what}"), "leave it out")),
        };
        let is_folder = arguments::look_at(path)?.is_some_and(|found| found.is_dir());
        if is_folder || path.file_name().is_some_and(|name| name == MANIFEST_FILE) {
            no_data("a data set")?;
            arguments.settings.none_with("a data set")?;
            if arguments.settings.reach() != Reach::Root {
                let problem = "`--allow-outside` makes no sense with a data set: it names no files outside its folder";
                return Err(Error::usage(problem, "leave it out"));
            }
            let folder = if is_folder { path } else { path.parent().unwrap_or(Path::new(".")) };
            let dataset = Dataset::open_on_error(folder, arguments.on_error.choice())?;
            return Ok(Self::Shards(Arc::new(dataset)));
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            arguments.settings.none_with("a plan")?;
            return Self::of_plan(path, arguments);
        }
        let pipeline = arguments::pipeline(&arguments.what, &arguments.settings)?;
        let data = arguments::data_folder(arguments.data.as_ref(), "load")?;
        Self::files(pipeline, &data, arguments)
    }

    /// A plan can be loaded where it chose to keep the files as they are.
    fn of_plan(path: &Path, arguments: &Arguments) -> Result<Self> {
        let plan = read_plan(path)?;
        if plan.split.position > 0 {
            return Err(Error::usage(
                format!(
                    "the plan `{}` keeps `{}`, which must be built before it can be loaded",
                    path.display(),
                    plan.chosen
                ),
                format!("run `forebay build {} -o dataset/`, then `forebay load dataset/`", path.display()),
            ));
        }
        let data = arguments.data.as_deref().unwrap_or(Path::new(&plan.data.root));
        Self::files(Pipeline::from_spec(&plan.pipeline)?, data, arguments)
    }

    fn files(pipeline: Pipeline, data: &Path, arguments: &Arguments) -> Result<Self> {
        let listing =
            Listing::scan_with(pipeline.source(), data, arguments.on_error.choice(), arguments.settings.reach())?;
        Ok(Self::Files(Arc::new(listing), Box::new(pipeline)))
    }

    fn strategy(&self) -> String {
        match self {
            Self::Shards(dataset) => dataset.manifest().strategy.to_string(),
            Self::Files(_, pipeline) => pipeline.splits()[0].name.clone(),
        }
    }

    /// How many samples an epoch has.
    fn samples(&self) -> u64 {
        match self {
            Self::Shards(dataset) => dataset.manifest().samples,
            Self::Files(listing, _) => listing.len() as u64,
        }
    }

    fn paths(&self) -> Vec<PathBuf> {
        match self {
            Self::Shards(dataset) => {
                (0..dataset.manifest().shards.len()).map(|shard| dataset.shard_path(shard)).collect()
            }
            Self::Files(listing, _) => listing.paths(),
        }
    }

    fn start(
        &self,
        arguments: &Arguments,
        storage: &Arc<dyn Storage>,
        cache: Option<&Arc<Cache>>,
        epoch: u64,
        memory_bytes: u64,
    ) -> Result<Loader> {
        let shuffle = if arguments.shuffle { Shuffle::Window { bytes: arguments.window } } else { Shuffle::No };
        let order = |blocks| Schedule::new(blocks, shuffle, arguments.seed, epoch);
        let storage = Arc::clone(storage);
        let (supply, online) = match self {
            Self::Shards(dataset) => {
                let online = Online::after(dataset.pipeline(), &dataset.manifest().strategy);
                (FromStorage::shards(Arc::clone(dataset), storage, order)?, online)
            }
            Self::Files(listing, pipeline) => {
                let strategy = Strategy::parse(pipeline, &pipeline.splits()[0].name)?;
                let online = Online::after(pipeline, &strategy);
                (FromStorage::source(Arc::clone(listing), storage, order), online)
            }
        };
        let supply: Arc<dyn Supply> = Arc::new(match cache {
            Some(cache) => supply.cached(Arc::clone(cache)),
            None => supply,
        });
        let options = LoadOptions {
            batch_size: arguments.batch as usize,
            threads: arguments.threads.count(),
            prefetch: arguments.prefetch as usize,
            cache: cache.cloned(),
            drop_last: arguments.drop_last,
            on_error: arguments.on_error.choice(),
            draw: Draw { seed: arguments.seed, epoch },
            memory_bytes,
        };
        Ok(Loader::start(supply, online, options)?)
    }
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

/// The figures, per epoch where there are several.
pub(super) fn show(outcome: &Outcome, page: &mut Page) {
    page.paragraph(&format!(
        "{} `{}` from {} on storage `{}` with {}:",
        if outcome.interrupted { "Interrupted while loading" } else { "Loaded" },
        outcome.strategy,
        outcome.source,
        outcome.storage,
        counted(outcome.threads as u64, "thread"),
    ));
    let batch: Vec<String> = outcome.batch.iter().map(FieldShape::describe).collect();
    page.facts(&[
        ("samples", units::count(outcome.samples)),
        ("time", units::seconds(outcome.seconds)),
        ("throughput", units::samples_per_second(outcome.samples_per_second)),
        (
            "read",
            format!(
                "{}, {}",
                units::bytes(outcome.bytes_read as f64),
                units::bytes_per_second(outcome.bytes_per_second)
            ),
        ),
        (
            "memory",
            format!(
                "{} at most, of {}",
                units::bytes(outcome.memory_bytes_peak as f64),
                units::bytes(outcome.memory_bytes as f64)
            ),
        ),
        ("batches", units::count(outcome.batches)),
        ("a batch", batch.join(", ")),
    ]);
    if let Some(notice) = &outcome.notice {
        page.hanging("note: ", notice);
    }
    if outcome.samples == 0 && outcome.skipped == 0 && !outcome.interrupted {
        let why = "the steps made no sample of what was read; a window longer than a recording gives none";
        page.hanging("note: ", why);
    }
    if outcome.epochs.len() > 1 {
        page.gap();
        page.table(&epochs_table(&outcome.epochs));
    }
    show_skipped(page, outcome.skipped, &outcome.skipped_samples);
}

fn epochs_table(epochs: &[Epoch]) -> Table {
    let columns = ["epoch", "samples", "skipped", "time", "samples/s", "read", "per second"];
    let mut table = Table::new(&columns.map(|column| (column, Align::Right)));
    for (number, epoch) in epochs.iter().enumerate() {
        table.row(
            [
                (number + 1).to_string(),
                units::count(epoch.samples),
                units::count(epoch.skipped),
                units::seconds(epoch.seconds),
                units::number(epoch.samples_per_second),
                units::bytes(epoch.bytes_read as f64),
                units::bytes_per_second(epoch.bytes_per_second),
            ],
            false,
        );
    }
    table
}

impl FieldShape {
    /// `image float32[64, 224, 224, 3]`.
    fn describe(&self) -> String {
        let dims = self.shape.iter().map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string()));
        format!("{} {}[{}]", self.field, self.dtype, dims.collect::<Vec<_>>().join(", "))
    }
}
