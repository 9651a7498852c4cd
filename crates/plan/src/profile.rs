//! The profile: what was measured. Written by the engine as `profile.json`, read by the planner.
//!
//! Every number here was measured or counted; predictions live in [`crate::predict`] and in the plan.

use std::num::NonZeroU32;

use forebay_pipeline::{PipelineSpec, Split};
use serde::{Deserialize, Serialize};

use crate::skipped::Skipped;
use crate::stats::Stats;

/// Everything that was measured of one pipeline on one machine and storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The version of this file's layout: [`Profile::VERSION`].
    pub version: u32,
    /// The version of Forebay that measured.
    pub forebay: String,
    /// The machine.
    pub machine: Machine,
    /// The pipeline.
    pub pipeline: PipelineSpec,
    /// The data it was measured on.
    pub data: Data,
    /// How it was measured.
    pub method: Method,
    /// What the storage gave, as many streams at once as there were threads.
    pub storage: StorageRates,
    /// What each step costs, reading included, in the order of the pipeline.
    pub steps: Vec<StepCost>,
    /// What each strategy gave.
    pub strategies: Vec<StrategyProfile>,
    /// The cost by itself of each format in which splits can be, or were, stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressions: Vec<CompressionCost>,
    /// What could not be read or processed and was left out, by any strategy: each once, the first thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped_samples: Vec<Skipped>,
}

impl Profile {
    /// The layout that this version writes.
    pub const VERSION: u32 = 1;

    /// How many samples were left out: those of the list, or more where a run left out more than are listed.
    pub fn skipped(&self) -> u64 {
        let runs = self.strategies.iter().flat_map(|strategy| &strategy.runs);
        let most = runs.map(|run| run.skipped / run.passes.max(1)).max();
        Skipped::count(&self.skipped_samples).max(most.unwrap_or(0))
    }
}

/// The machine that was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its CPU, as it names itself; `processor` in profiles of earlier versions.
    #[serde(alias = "processor")]
    pub cpu: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// Its memory.
    pub memory_bytes: u64,
    /// How fast one thread copies memory.
    pub memory_bytes_per_second: f64,
}

/// The data that was measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// The folder.
    pub root: String,
    /// How many samples it has.
    pub samples: u64,
    /// How many bytes its files have.
    pub bytes: u64,
}

/// How a profile was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// How many samples each run took; without runs, how many samples costs were measured on.
    pub sample_count: u64,
    /// Which strategies were run, and how often.
    pub runs: Runs,
    /// How many decode workers, and as many readers, or more, as a loader has.
    pub threads: usize,
    /// The number of shards of a strategy.
    pub shards: usize,
    /// What was cached between runs.
    pub caching: Caching,
    /// The bytes of the windows in which samples were shuffled; `None` where they came in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shuffle_window_bytes: Option<u64>,
    /// The seed of random steps.
    pub seed: u64,
    /// How long it took to measure all of it.
    #[serde(default)]
    pub seconds: f64,
}

/// Which strategies are run, and how often. Of one that is not, nothing but costs is measured, and its throughput is what the cost model expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// None.
    None,
    /// A few of those that lead by the cost model, to check it.
    Fast,
    /// Each, so often: in JSON this number.
    #[serde(untagged)]
    Each(NonZeroU32),
}

/// What is cached between the first and the following epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caching {
    /// Nothing: the page cache is dropped before each run.
    #[default]
    None,
    /// The page cache: dropped before the first run only.
    System,
    /// Deserialized samples in memory: a first pass fills the cache, the measured runs read from it.
    Application,
}

/// What the storage gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StorageRates {
    /// What it is called: `local`, `ceph-hdd`.
    pub name: String,
    /// Bytes per second when large blocks are read in order.
    pub sequential_bytes_per_second: f64,
    /// Bytes per second of one stream alone; 0 where it was not measured.
    #[serde(default)]
    pub stream_bytes_per_second: f64,
    /// CPU seconds, the kernel's included, that reading a byte took then.
    #[serde(default)]
    pub cpu_seconds_per_byte: f64,
    /// Samples of the source per second, read in place: files, or pieces of tar and TFRecord shards. `file_bytes` is their mean size.
    pub files_per_second: f64,
    /// The mean size of a sample of the source.
    pub file_bytes: f64,
}

/// What one step costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepCost {
    /// The step.
    pub name: String,
    /// CPU seconds per sample that enters the pipeline.
    pub cpu_seconds: f64,
    /// Bytes it gives per sample that enters the pipeline.
    pub bytes_out: f64,
    /// Whether it runs every epoch whatever the strategy.
    pub random: bool,
}

/// What one strategy gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyProfile {
    /// Its name: that of its split, and of the encoding of its images if they are stored encoded.
    pub name: String,
    /// Where the pipeline is split.
    pub split: Split,
    /// Whether what is stored differs from what the pipeline computes up to the split, because of a lossy encoding.
    #[serde(default)]
    pub lossy: bool,
    /// Bytes on storage of the samples that were measured.
    pub storage_bytes: u64,
    /// Bytes on storage per sample.
    pub bytes_per_sample: f64,
    /// Seconds to preprocess and write them once; 0 where nothing is done once.
    pub prep_seconds: f64,
    /// CPU seconds to deserialize a stored sample, and to decode its images if they are stored encoded.
    pub deserialize_cpu_seconds: f64,
    /// CPU seconds of all online steps, per sample, and of collating them to batches.
    pub online_cpu_seconds: f64,
    /// Reading alone: what the storage gives as many readers as a loader has, while nobody works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Alone>,
    /// The rate of the loader for samples that are in memory in their stored form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working: Option<Alone>,
    /// The measured runs, in order; none where throughput is left to the cost model.
    pub runs: Vec<Run>,
    /// System metrics during the measured runs, ten times a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<SystemSample>,
}

/// What keeping a split in another format costs: each measured alone, on some of its records and in memory, by one thread; in a fast profile by all at the
/// same time. Once it was built to be run, records, bytes and ratio are of what was built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompressionCost {
    /// The strategy that stores the split in this way: `resized+zstd-3`.
    pub strategy: String,
    /// The one that stores it as it is: `resized`.
    pub plain: String,
    /// The format: `zstd-3`.
    pub compression: String,
    /// How many records it was measured on.
    pub records: u64,
    /// How many bytes these have as they are.
    pub bytes: u64,
    /// Bytes as they are over bytes in this format.
    pub ratio: f64,
    /// How fast they are put into this format: bytes as they are, per second of one core.
    pub compress_bytes_per_second: f64,
    /// How fast they are made of it again: bytes as they are, per second of one core.
    pub decompress_bytes_per_second: f64,
    /// The share of the latter that readers do, 0 to 1; workers do the rest.
    pub reader_share: f64,
    /// Whether the format is a lossy one.
    #[serde(default)]
    pub lossy: bool,
}

/// One half of loading, measured without the other. Samples are those that reach the trainer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// The median of its parts; 0, as the next two, where too little was measured to know more than the CPU time.
    pub samples_per_second: f64,
    /// The slowest part.
    pub min_samples_per_second: f64,
    /// The fastest part.
    pub max_samples_per_second: f64,
    /// CPU seconds for each sample, in user code and in the kernel.
    pub cpu_seconds: f64,
    /// How many threads there were that had a core each.
    pub threads: usize,
    /// Whether other programs took so much of the machine that only the CPU time counts.
    #[serde(default)]
    pub disturbed: bool,
}

/// One measured run: the samples once or several times, as one epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// How many samples reached the trainer.
    pub samples: u64,
    /// How often each of the samples came.
    #[serde(default = "once")]
    pub passes: u64,
    /// How many were skipped because they were damaged.
    pub skipped: u64,
    /// How long it took.
    pub seconds: f64,
    /// How many bytes were read from storage.
    pub bytes_read: u64,
    /// The first batch: how many samples, and when it was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_batch: Option<FirstBatch>,
    /// What the loader's threads did with their time after the first batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<Stats>,
    /// What other programs did meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Others>,
}

fn once() -> u64 {
    1
}

/// The start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FirstBatch {
    /// How many samples it had.
    pub samples: u64,
    /// How long it took to come.
    pub seconds: f64,
}

/// What other programs did during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// The number of cores they kept busy, including steal time of a hypervisor.
    pub cores: f64,
    /// How many bytes per second they read from and wrote to disks.
    pub disk_bytes_per_second: f64,
}

impl Others {
    /// Up to this many cores, other work is assumed to be the system's own.
    pub const CORES_MAX: f64 = 0.15;

    /// So much traffic of others on the disks takes nothing away that shows.
    pub const DISK_BYTES_PER_SECOND_MAX: f64 = 100e6;
}

/// The least time after the first batch that says anything about a rate.
const STEADY_SECONDS_MIN: f64 = 0.02;

impl Run {
    /// Throughput: samples per second that reached the trainer once the first batch was there. Of a run that was over too soon after it, all
    /// of it counts.
    pub fn samples_per_second(&self) -> f64 {
        let (samples, seconds) = self.steady();
        samples / seconds
    }

    /// What reached the trainer after the first batch, and in how many seconds; all of it where there is next to nothing after it.
    pub fn steady(&self) -> (f64, f64) {
        self.after_start().unwrap_or((self.samples as f64, self.seconds))
    }

    /// How many samples reached the trainer when each came once.
    pub fn samples_each_pass(&self) -> f64 {
        self.samples as f64 / self.passes.max(1) as f64
    }

    /// Whether other programs took so much of the machine that this run shows less than it can do.
    pub fn is_disturbed(&self) -> bool {
        let own = self.bytes_read as f64 / self.seconds;
        self.others.is_some_and(|others| {
            let disk = others.disk_bytes_per_second;
            others.cores > Others::CORES_MAX || disk > Others::DISK_BYTES_PER_SECOND_MAX && disk > own / 2.0
        })
    }

    /// What reached the trainer after the first batch, and in how many seconds; `None` where that says nothing.
    pub(crate) fn after_start(&self) -> Option<(f64, f64)> {
        let first = self.first_batch.filter(|first| first.samples < self.samples)?;
        let seconds = self.seconds - first.seconds;
        (seconds >= STEADY_SECONDS_MIN).then(|| ((self.samples - first.samples) as f64, seconds))
    }
}

/// The state of the system at one moment; rates are over the time since the one before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SystemSample {
    /// Which run.
    pub run: u32,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Disk reads.
    pub disk_read_bytes_per_second: f64,
    /// Disk writes.
    pub disk_write_bytes_per_second: f64,
    /// Network, received.
    pub network_read_bytes_per_second: f64,
    /// Network, sent.
    pub network_write_bytes_per_second: f64,
    /// Share of all cores in user code, 0 to 1.
    pub cpu_user: f64,
    /// Share of all cores in the kernel.
    pub cpu_system: f64,
    /// Share of all cores idle.
    pub cpu_idle: f64,
    /// Share of all cores waiting for storage.
    pub cpu_wait: f64,
    /// Interrupts per second.
    pub interrupts_per_second: f64,
    /// Context switches per second.
    pub context_switches_per_second: f64,
    /// Memory in use by programs.
    pub memory_used_bytes: u64,
    /// Memory that is free.
    pub memory_free_bytes: u64,
    /// Memory in the page cache.
    pub memory_cached_bytes: u64,
    /// Memory in buffers.
    pub memory_buffered_bytes: u64,
    /// Page faults that needed storage, per second.
    pub major_faults_per_second: f64,
    /// Page faults that did not, per second.
    pub minor_faults_per_second: f64,
}
