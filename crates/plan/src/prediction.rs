//! The cost model: samples per second from measured costs.
//!
//! ```text
//! load   = what readers reach alone, or bandwidth / (bytes (1 - hits))
//! decode = min(threads efficiency / work, cores efficiency / (work + reading))      in CPU seconds per sample
//! rate   = min(load, decode, trainer)
//! ```
//!
//! Each term is measured as it will be used: reading by as many readers at once as there will be, in the pattern of the strategy (files,
//! or blocks of shards); work by the loader itself, on samples that are in memory, so that steps are fused, memory is shared by
//! threads, and batches, page faults and copies are part of it; both by CPU time, the kernel's included. `efficiency` is the share of
//! their time that workers were on a CPU at all. `hits` is the share of bytes that comes from memory instead; memory has a bandwidth of
//! its own, which bounds that share.
//!
//! It assumes that reading, processing and training overlap perfectly, and neglects the start of an epoch, before the first
//! batch is there, and that readers and workers together use caches and memory that each had alone. What the measurement says
//! wins, unless other programs disturbed it; the prediction explains it.

use serde::{Deserialize, Serialize};

use crate::profile::{Alone, Caching, Profile, StorageRates, StrategyProfile};

/// What the cost model says of one strategy. All rates are samples per second that reach the trainer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Throughput, the smallest of the three below; `None` where none of them bounds it.
    pub samples_per_second: Option<f64>,
    /// The lower bound, from how far the parts of each measurement differ.
    #[serde(default)]
    pub min_samples_per_second: Option<f64>,
    /// The upper bound.
    #[serde(default)]
    pub max_samples_per_second: Option<f64>,
    /// What storage (or the page cache) can deliver; `None` where it is no bound.
    pub load: Option<f64>,
    /// What the CPU can get through; `None` where it has nothing to do.
    pub decode: Option<f64>,
    /// What the trainer takes; `None` where it is not known.
    pub trainer: Option<f64>,
    /// Which of them is the smallest.
    pub bound_by: Bound,
}

/// What limits a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Reading: the disk or network, or memory where the page cache holds the data.
    Storage,
    /// The CPU: deserializing records and the online steps.
    Cpu,
    /// The trainer takes no more: the input pipeline is fast enough.
    Trainer,
    /// None of the costs in the model is known.
    Unknown,
}

/// Predicts throughput of `strategy` from the costs in `profile`, with a trainer that takes `trainer` samples per second.
///
/// A cost or rate that is zero, negative or not finite counts as not measured and bounds nothing: a sample of 0 bytes needs no
/// reading, a strategy without online work no CPU, and an unmeasured storage says nothing. Where two bounds
/// are equal the trainer is named before storage, and storage before the CPU.
///
/// Under system caching every byte comes from memory, copied by one thread; under application caching samples are already
/// deserialized in memory, so that only the online steps cost anything. Both describe the epochs after the first.
pub fn predict(profile: &Profile, strategy: &StrategyProfile, trainer: Option<f64>) -> Prediction {
    predict_cached(profile, strategy, trainer, measured_hit_ratio(profile))
}

/// The same where only `hit_ratio` of the bytes, 0 to 1, comes from memory.
pub(crate) fn predict_cached(
    profile: &Profile,
    strategy: &StrategyProfile,
    trainer: Option<f64>,
    hit_ratio: f64,
) -> Prediction {
    let (load, load_spread) = load(profile, strategy, hit_ratio);
    let decode = decode(profile, strategy, hit_ratio);
    let trainer = trainer.and_then(positive);
    let rates = |load_factor: f64, decode_factor: f64| {
        smallest(trainer, load.map(|rate| rate * load_factor), decode.map(|rate| rate * decode_factor))
    };
    let decode_spread = strategy.working.as_ref().map_or(Spread::UNKNOWN, Spread::of);
    let expected = rates(1.0, 1.0);
    Prediction {
        samples_per_second: expected.map(|(rate, _)| rate),
        min_samples_per_second: rates(load_spread.below, decode_spread.below).map(|(rate, _)| rate),
        max_samples_per_second: rates(load_spread.above, decode_spread.above).map(|(rate, _)| rate),
        load,
        decode,
        trainer,
        bound_by: expected.map_or(Bound::Unknown, |(_, bound)| bound),
    }
}

/// How far a rate may be from its estimate: factors, at most and at least 1.
#[derive(Debug, Clone, Copy)]
struct Spread {
    below: f64,
    above: f64,
}

/// What the model neglects moves it by so much, however alike the parts of a measurement are.
const MODEL_SPREAD: f64 = 0.05;

impl Spread {
    /// Of a rate that was measured once, or elsewhere.
    const UNKNOWN: Self = Self { below: 0.8, above: 1.2 };

    fn of(alone: &Alone) -> Self {
        let Some(middle) = positive(alone.samples_per_second) else { return Self::UNKNOWN };
        Self {
            below: (alone.min_samples_per_second / middle).clamp(0.0, 1.0) * (1.0 - MODEL_SPREAD),
            above: (alone.max_samples_per_second / middle).max(1.0) * (1.0 + MODEL_SPREAD),
        }
    }
}

/// What storage and memory can deliver. What was measured of reading holds as long as as much comes from memory as did then.
fn load(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> (Option<f64>, Spread) {
    let as_measured = (hit_ratio - measured_hit_ratio(profile)).abs() < f64::EPSILON;
    let reading = strategy.reading.filter(|reading| as_measured && positive(reading.samples_per_second).is_some());
    if let Some(reading) = reading {
        return (Some(reading.samples_per_second), Spread::of(&reading));
    }
    // Reading from storage and from memory overlap, as everything does in this model.
    let slower = smaller(disk_load(profile, strategy, hit_ratio), memory_load(profile, strategy, hit_ratio));
    let readers = decode_threads(profile) as f64;
    let busy = slower.and_then(|_| quotient(readers, reading_cpu_seconds(profile, strategy, hit_ratio)));
    (smaller(slower, busy), Spread::UNKNOWN)
}

/// What the CPU can get through: as fast as workers work, and as its cores have time for readers and workers.
pub(crate) fn decode(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> Option<f64> {
    let work = cpu_seconds(profile, strategy, hit_ratio);
    let efficiency = efficiency(strategy);
    let workers = quotient(decode_threads(profile) as f64 * efficiency, work);
    let all = work + reading_cpu_seconds(profile, strategy, hit_ratio);
    smaller(workers, workers.and_then(|_| quotient(profile.machine.cores as f64 * efficiency, all)))
}

/// The share of their time that workers are on a CPU while there is enough to do. Where others took the CPU away, nobody
/// knows, and it is taken for all of it.
fn efficiency(strategy: &StrategyProfile) -> f64 {
    let working = strategy.working.filter(|working| !working.disturbed && working.threads > 0);
    let share = |working: Alone| working.samples_per_second * working.cpu_seconds / working.threads as f64;
    working.map_or(1.0, |working| share(working).clamp(EFFICIENCY_MIN, 1.0))
}

/// Less than this is a measurement that went wrong.
const EFFICIENCY_MIN: f64 = 0.05;

/// CPU seconds of readers per sample, where `hit_ratio` of the samples comes from memory.
pub(crate) fn reading_cpu_seconds(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> f64 {
    let all = strategy.reading.map_or_else(
        || strategy.bytes_per_sample * profile.storage.cpu_seconds_per_byte,
        |reading| reading.cpu_seconds,
    );
    match profile.method.caching {
        Caching::None | Caching::System => all,
        // What is cached is not read again.
        Caching::Application => all * (1.0 - hit_ratio),
    }
}

/// The share of bytes that came from memory in the measurement.
pub(crate) fn measured_hit_ratio(profile: &Profile) -> f64 {
    match profile.method.caching {
        Caching::None => 0.0,
        Caching::System | Caching::Application => 1.0,
    }
}

/// The smallest rate and its kind: of equal ones the trainer's, then storage's.
pub(crate) fn smallest(trainer: Option<f64>, load: Option<f64>, decode: Option<f64>) -> Option<(f64, Bound)> {
    let bounds = [(trainer, Bound::Trainer), (load, Bound::Storage), (decode, Bound::Cpu)];
    bounds
        .into_iter()
        .filter_map(|(rate, bound)| rate.map(|rate| (rate, bound)))
        // `min_by` keeps the first of equal ones.
        .min_by(|(one, _), (other, _)| one.total_cmp(other))
}

/// How many threads can decode at the same time.
pub(crate) fn decode_threads(profile: &Profile) -> usize {
    profile.method.threads.min(profile.machine.cores).max(1)
}

/// CPU seconds per sample that `strategy` spends every epoch, where `hit_ratio` of the samples comes from memory.
pub(crate) fn cpu_seconds(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> f64 {
    match profile.method.caching {
        Caching::None | Caching::System => strategy.deserialize_cpu_seconds + strategy.online_cpu_seconds,
        // What is cached has been deserialized already.
        Caching::Application => strategy.deserialize_cpu_seconds * (1.0 - hit_ratio) + strategy.online_cpu_seconds,
    }
}

/// The share of the time to read a source file of `file_bytes` that goes into everything but its bytes: finding, opening,
/// seeking. 0 where the sequential rate accounts for all of it.
pub(crate) fn opening_share(storage: &StorageRates, file_bytes: f64) -> f64 {
    match files_per_second(storage, file_bytes) {
        Some(files) => (1.0 - transfer_seconds(storage, file_bytes) * files).max(0.0),
        None => 0.0,
    }
}

/// What storage can deliver of the samples that are not in memory.
pub(crate) fn disk_load(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> Option<f64> {
    let bytes = strategy.bytes_per_sample;
    let all = if strategy.split.keeps_files() {
        let samples = samples_per_file(profile, strategy);
        files_per_second(&profile.storage, bytes * samples).map(|files| files * samples)
    } else {
        quotient(shards_bytes_per_second(profile), bytes)
    };
    all.and_then(|rate| quotient(rate, 1.0 - hit_ratio))
}

/// What storage gives of shards: as much as readers got of any of them, since all lie on the same storage, and no less than reading one file after the
/// other gave: small shards are over before they are read at that rate. Of what readers inflate, the rate is theirs, or only modeled.
pub(crate) fn shards_bytes_per_second(profile: &Profile) -> f64 {
    let is_read = |strategy: &&StrategyProfile| {
        !strategy.split.keeps_files() && profile.compression_cost(&strategy.name).is_none()
    };
    let rate = |strategy: &StrategyProfile| Some(strategy.reading?.samples_per_second * strategy.bytes_per_sample);
    let read = profile.strategies.iter().filter(is_read).filter_map(rate).filter(|rate| rate.is_finite());
    let from_storage = profile.method.caching == Caching::None;
    read.filter(|_| from_storage).fold(profile.storage.sequential_bytes_per_second, f64::max)
}

/// How many samples a file becomes that reach the trainer: one, unless a step makes several.
pub(crate) fn samples_per_file(profile: &Profile, strategy: &StrategyProfile) -> f64 {
    let reached = quotient(strategy.storage_bytes as f64, strategy.bytes_per_sample);
    let per_file = reached.and_then(|reached| quotient(reached, profile.method.sample_count as f64));
    // Fewer than one is a sample that was skipped, and its file was read all the same.
    per_file.unwrap_or(1.0).max(1.0)
}

/// What memory can deliver of the samples that are in it. Those that are deserialized already are not copied.
pub(crate) fn memory_load(profile: &Profile, strategy: &StrategyProfile, hit_ratio: f64) -> Option<f64> {
    match profile.method.caching {
        Caching::None | Caching::System => {
            quotient(profile.machine.memory_bytes_per_second, strategy.bytes_per_sample * hit_ratio)
        }
        Caching::Application => None,
    }
}

fn smaller(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// How many files of `file_bytes` the storage reads per second, when it was measured with files of another mean size.
///
/// A file takes the time for its bytes at the sequential rate and a fixed time on top; only the first changes with its size.
/// Where files were measured faster than the sequential rate allows, there is no fixed time to be found and all of
/// it is taken to change with the size.
fn files_per_second(storage: &StorageRates, file_bytes: f64) -> Option<f64> {
    let measured_seconds = quotient(1.0, storage.files_per_second)?;
    let (Some(bytes), Some(measured_bytes)) = (positive(file_bytes), positive(storage.file_bytes)) else {
        return positive(storage.files_per_second);
    };
    let fixed_seconds = measured_seconds - transfer_seconds(storage, measured_bytes);
    let seconds = if fixed_seconds >= 0.0 {
        fixed_seconds + transfer_seconds(storage, bytes)
    } else {
        measured_seconds * bytes / measured_bytes
    };
    quotient(1.0, seconds)
}

pub(crate) fn transfer_seconds(storage: &StorageRates, bytes: f64) -> f64 {
    positive(storage.sequential_bytes_per_second).map_or(0.0, |rate| bytes.max(0.0) / rate)
}

/// `amount / cost`, if both are known and the result is a rate.
pub(crate) fn quotient(amount: f64, cost: f64) -> Option<f64> {
    positive(positive(amount)? / positive(cost)?)
}

fn positive(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then_some(value)
}
