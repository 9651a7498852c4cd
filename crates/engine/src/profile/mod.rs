//! Profiling: measures every legal split of a pipeline.
//!
//! For each strategy the samples are preprocessed and written once (timed), then loaded as often as asked for (timed),
//! with caches dropped or kept as the caching mode says. Before that, each step is timed on one thread, and the storage is
//! measured: from these costs alone the planner predicts what the runs then show. Where few are wanted
//! ([`Runs::Fast`]) a few samples of each strategy are built, and only those strategies are run that may lead by the
//! cost model: that takes a small part of the time.
//!
//! Each split can also be stored compressed. The costs of compressions are measured separately, on a few hundred records in memory; from these costs,
//! the planner says of each split which of them, if any, should be faster, and only that is built and run.

pub(crate) mod alone;
mod compressions;
mod costs;
mod estimate;
mod leaders;
pub(crate) mod metrics;
mod runoff;
pub(crate) mod runs;
mod strategies;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use forebay_pipeline::steps::prepare_files;
use forebay_pipeline::{Pipeline, RngKey, StorageFormat, Strategy};
use forebay_plan::{Caching, Data, Machine, Method, Profile, Runs, StorageRates};
use forebay_record::FRAME_OVERHEAD_BYTES;
use forebay_storage::Storage;

use crate::build::{Build, BuildOptions};
use crate::data::{Dataset, Listing, Skipped, SourceReader};
use crate::error::{Error, Result};
use crate::load::{Idle, OnError, Shuffle};
use crate::probe;
use crate::progress::{Progress, while_wanted};
use crate::scratch_folder::ScratchFolder;
use crate::source::{Files, Shards, Source};
use crate::storage_choice::StorageChoice;
use crate::sync::Mutex;
use crate::threads::cores;
pub use compressions::COMPRESSION_CANDIDATES;
use costs::Effort;
use estimate::Measuring;

/// How long the source's own samples are read, to know how fast they come.
const SOURCE_SECONDS: f64 = 1.0;

/// How to profile.
#[derive(Debug, Clone)]
pub struct ProfileOptions {
    /// Samples in each run.
    pub sample_count: u64,
    /// How long a run lasts at least, after its first batch; 0: as long as its samples take once.
    pub run_seconds: f64,
    /// Which strategies are run, and how often; unless each is, costs of a few samples are measured and the rest is left to the cost model.
    pub runs: Runs,
    /// Workers, and as many readers.
    pub threads: usize,
    /// Shards of each strategy.
    pub shards: usize,
    /// Samples in a batch.
    pub batch_size: usize,
    /// What is cached between runs.
    pub caching: Caching,
    /// In which order samples are loaded.
    pub shuffle: Shuffle,
    /// The seed of random steps.
    pub seed: u64,
    /// What happens to a sample that cannot be read or processed.
    pub on_error: OnError,
    /// The folder in which strategies are built, in a temporary subfolder.
    pub work_folder: PathBuf,
    /// Which strategies.
    pub strategies: Vec<Strategy>,
    /// The formats in which each split may be kept besides: their costs are measured alone, and of those that should be faster by them, the
    /// most promising are measured as strategies are, where nothing is cached. None: none is considered.
    pub compressions: Vec<StorageFormat>,
    /// The memory budget of builds and of loading.
    pub memory_bytes: u64,
}

/// What a strategy stores while it is measured.
struct TempDatasets {
    /// Read as builds read, and as runs do.
    built_from: Arc<dyn Source>,
    loaded_from: Arc<dyn Source>,
    bytes: u64,
    /// What its records are once they are inflated; 0 where more than that was done to them.
    inflated_bytes: u64,
}

/// Measures every legal split of `pipeline` on the samples of `listing`.
pub fn profile(
    pipeline: &Pipeline,
    listing: Listing,
    storage_choice: &StorageChoice,
    options: &ProfileOptions,
    progress: &dyn Progress,
) -> Result<Profile> {
    // A vocabulary that is missing is reported now, and read once for all strategies.
    let _files = prepare_files(pipeline.steps())?;
    let begun = Instant::now();
    let machine = machine()?;
    let spec = pipeline.to_spec().ok_or_else(|| Error::Usage {
        problem: format!("pipeline `{}` has a step that was made in code", pipeline.name()),
        remedy: "profile a pipeline whose steps all have a name".to_owned(),
    })?;
    let data = Data {
        root: listing.named_root().display().to_string(),
        samples: listing.len() as u64,
        bytes: listing.bytes(),
    };
    let listing = listing.sample(options.sample_count);
    let rng_key = RngKey { seed: options.seed, epoch: 0 };
    let runs_each = matches!(options.runs, Runs::Each(_));
    let effort = if runs_each { Effort::THOROUGH } else { Effort::FAST };
    let source = SourceReader::new(Arc::new(listing.clone().sample(effort.most())), StorageChoice::Local.open(0)?);
    let steps = costs::step_costs(pipeline, &source, rng_key, effort, progress)?;
    let cost =
        (steps.iter().map(|step| step.cpu_seconds).sum(), steps.iter().map(|step| step.bytes_out).fold(0.0, f64::max));
    let all = listing.clone();
    let listing = if runs_each { listing } else { listing.sample(effort.samples(cost)) };
    let sample_count = listing.len() as u64;
    let check_samples = Effort::CHECK.samples(cost);
    let measuring = Measuring {
        options,
        storage: storage_choice,
        steps: &steps,
        effort,
        samples: sample_count,
        check_samples: check_samples.min(all.len() as u64),
    };
    let estimate = measuring.estimate().and(begun.elapsed().as_secs_f64());
    progress.note(&estimate.announcement(options.strategies.len()));
    let page_cache_bytes = if options.caching == Caching::System { machine.memory_bytes } else { 0 };
    let profiler = Profiler {
        pipeline,
        samples_total: data.samples,
        listing: Arc::new(listing),
        records_from: SourceReader::new(Arc::new(compressions::from_everywhere(&all)), StorageChoice::Local.open(0)?),
        storage: match options.caching {
            Caching::None => storage_choice.open_looping()?,
            Caching::System | Caching::Application => storage_choice.open(page_cache_bytes)?,
        },
        builds_from: if runs_each { storage_choice.clone() } else { StorageChoice::Local }.open(0)?,
        options: ProfileOptions { shards: options.shards.clamp(1, sample_count.max(1) as usize), ..options.clone() },
        memory_bytes: machine.memory_bytes,
        batch_buffers: Idle::default(),
        skipped: Mutex::default(),
        scratch: ScratchFolder::new(&options.work_folder, "profile")?,
        effort,
        progress,
    };
    let storage = profiler.storage_rates(&all)?;
    let mut profile = Profile {
        version: Profile::VERSION,
        forebay: env!("CARGO_PKG_VERSION").to_owned(),
        machine,
        pipeline: spec,
        data,
        method: Method {
            sample_count,
            runs: options.runs,
            threads: options.threads,
            shards: profiler.options.shards,
            caching: options.caching,
            shuffle_window_bytes: match options.shuffle {
                Shuffle::No => None,
                Shuffle::Window { bytes } => Some(bytes),
            },
            seed: options.seed,
            seconds: 0.0,
        },
        storage,
        steps,
        strategies: Vec::new(),
        compressions: Vec::new(),
        skipped_samples: Vec::new(),
    };
    let built = profiler.strategies(&mut profile)?;
    profiler.note_skipped(all.lost(), 1);
    let profiler = if options.runs == Runs::Fast {
        let profiler = profiler.on(all.clone().sample(check_samples))?;
        let mut rivals = profiler.rivals(&profile);
        profiler.check_leaders(&mut profile, &mut rivals)?;
        let profiler = profiler.on(all.sample(Effort::RIVALS.samples(cost)))?;
        profiler.check_rivals(&mut profile, &rivals, begun.elapsed(), &built)?;
        profiler
    } else {
        profiler
    };
    profile.skipped_samples = profiler.skipped.into_inner();
    profile.method.seconds = begun.elapsed().as_secs_f64();
    Ok(profile)
}

struct Profiler<'a> {
    pipeline: &'a Pipeline,
    /// The samples that are measured, and how many they represent.
    listing: Arc<Listing>,
    samples_total: u64,
    /// What records are made of whose compression is measured: some of all samples, as they lie.
    records_from: SourceReader,
    storage: Arc<dyn Storage>,
    /// The storage that builds read from. Without runs there is no point in waiting for a slow one.
    builds_from: Arc<dyn Storage>,
    options: ProfileOptions,
    memory_bytes: u64,
    /// The buffers of batches, of all runs.
    batch_buffers: Idle,
    /// What was left out so far.
    skipped: Mutex<Vec<Skipped>>,
    scratch: ScratchFolder,
    effort: Effort,
    progress: &'a dyn Progress,
}

impl Profiler<'_> {
    /// What the storage gives; `listing` are the source's samples.
    fn storage_rates(&self, listing: &Listing) -> Result<StorageRates> {
        while_wanted(self.progress)?;
        let threads = self.options.threads;
        let streams = probe::sequential(&*self.storage, self.scratch.path(), threads, self.progress)?;
        let source = Files::new(self.pipeline.clone(), Arc::new(listing.clone()), Arc::clone(&self.storage))?;
        let source: Arc<dyn Source> = Arc::new(source);
        self.forget(&*source)?;
        let reading = self.reading_alone(&source, SOURCE_SECONDS.min(self.options.run_seconds))?;
        Ok(StorageRates {
            name: self.storage.name().to_owned(),
            sequential_bytes_per_second: streams.bytes_per_second,
            stream_bytes_per_second: streams.stream_bytes_per_second,
            cpu_seconds_per_byte: streams.cpu_seconds_per_byte,
            files_per_second: reading.map_or(0.0, |reading| reading.samples_per_second),
            file_bytes: listing.bytes() as f64 / listing.len().max(1) as f64,
        })
    }

    /// Takes what `source` reads out of the page cache.
    fn forget(&self, source: &dyn Source) -> Result<()> {
        let paths = self.readable(source.paths());
        self.storage.drop_cache(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        Ok(())
    }

    /// Without the files that cannot be opened, if damaged samples are to be skipped (the runs will report them) or files may be missing.
    fn readable(&self, mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let may_lack = self.pipeline.source().fields.iter().any(|field| field.optional);
        if self.options.on_error == OnError::Skip || may_lack {
            paths.retain(|path| self.storage.open(path).is_ok());
        }
        paths
    }

    /// Builds what the strategy stores.
    fn keep(&self, strategy: &Strategy, folder: &Path) -> Result<TempDatasets> {
        let listing = Arc::clone(&self.listing);
        if strategy.split.keeps_files() {
            let files = |storage| Files::new(self.pipeline.clone(), Arc::clone(&listing), Arc::clone(storage));
            let built_from = Arc::new(files(&self.builds_from)?);
            let bytes = listing.bytes();
            return Ok(TempDatasets {
                built_from,
                loaded_from: Arc::new(files(&self.storage)?),
                bytes,
                inflated_bytes: bytes,
            });
        }
        let build = Build {
            pipeline: self.pipeline.clone(),
            strategy: strategy.clone(),
            listing,
            storage: Arc::clone(&self.builds_from),
        };
        let options = BuildOptions {
            threads: self.options.threads,
            shards: self.options.shards,
            on_error: self.options.on_error,
            overwrite: true,
            resume: None,
            memory_bytes: self.options.memory_bytes,
        };
        self.progress.note(&format!("building {strategy}"));
        let report = build.run(folder, &options, self.progress)?;
        self.note_skipped(&report.manifest.skipped_samples, 1);
        let dataset = Arc::new(Dataset::open(folder)?);
        // A few samples are read like the entire data set: in blocks of the same size.
        let times = self.samples_total as f64 / self.listing.len().max(1) as f64;
        let shards = |storage| Arc::new(Shards::new(Arc::clone(&dataset), Arc::clone(storage)).standing_for(times));
        let (built_from, loaded_from) = (shards(&self.builds_from), shards(&self.storage));
        let inflated_bytes = if strategy.format.has_plain_fields() { inflated_bytes(&dataset)? } else { 0 };
        Ok(TempDatasets { built_from, loaded_from, bytes: report.manifest.bytes, inflated_bytes })
    }
}

/// How many bytes the shards of `dataset` have without their compression.
fn inflated_bytes(dataset: &Dataset) -> Result<u64> {
    let mut bytes = 0;
    for (shard, entry) in dataset.manifest().shards.iter().enumerate() {
        bytes += match (dataset.compression().map(|compression| compression.scope), dataset.blocks(shard)?) {
            (None, _) => entry.bytes,
            (Some(_), Some(blocks)) => blocks.inflated_bytes(),
            // Each record has its size.
            (Some(_), None) => {
                let records = 0..dataset.index(shard)?.len();
                records.map(|record| dataset.payload_bytes(shard, record) + FRAME_OVERHEAD_BYTES).sum()
            }
        };
    }
    Ok(bytes)
}

fn machine() -> Result<Machine> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let memory = rustix::system::sysinfo();
    Ok(Machine {
        cpu: named.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
        cores: cores(),
        memory_bytes: memory.totalram as u64 * u64::from(memory.mem_unit),
        memory_bytes_per_second: forebay_storage::probe::memory_bandwidth(64 << 20, 3)?,
    })
}
