//! How long a profile should take: stated once the costs of its steps are known, before anything is built or run.
//!
//! Everything that takes time is reckoned as it is measured later: probing the storage, and for each strategy its build, its costs, its two
//! halves and its runs; then compressions. What nobody knows yet makes the most differ from the least: which runs others disturb, which
//! compressions pay, and of `--fast` which strategies lead.

use std::num::NonZeroU32;

use forebay_pipeline::{StorageFormat, Strategy};
use forebay_plan::{Caching, NEAR, Runs, StepCost, units};

use super::alone::{FAST_SECONDS, PARTS, SURPLUS};
use super::compressions::{BYTES_MAX, COMPRESSING_SECONDS, INFLATING_SECONDS, MAKING_SECONDS, RECORDS_MIN};
use super::costs::Effort;
use super::leaders::{LEADER_SECONDS, RIVALS_SHARE, SPLIT_SECONDS, leader_runs};
use super::runs::SPARE;
use super::strategies::COMPRESSED_SHARE;
use super::{ProfileOptions, SOURCE_SECONDS};
use crate::storage_choice::StorageChoice;
use crate::threads::cores;

/// Probing the storage, and writing what is read for it.
const PROBE_SECONDS: f64 = 1.2;

/// Each build and each run begins and ends.
const BUILD_SECONDS: f64 = 0.1;
const RUN_SECONDS: f64 = 0.03;

/// Neither disks nor caches of this machine are known yet. What comes from memory, and small data does, comes as fast as this, about.
const LOCAL: Reading = Reading { stream: 2e9, total: 4e9, seek: 50e-6, seeks: f64::INFINITY };

/// How fast one core makes records smaller, or tensors into images, in the middle of all formats.
const ENCODED_BYTES_PER_SECOND: f64 = 60e6;

/// From how many seconds to how many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) least_seconds: f64,
    pub(super) most_seconds: f64,
}

impl Estimate {
    /// The same with what took so long already.
    pub(super) fn and(self, seconds: f64) -> Self {
        Self { least_seconds: self.least_seconds + seconds, most_seconds: self.most_seconds + seconds }
    }

    /// What will be measured, and how long all of it takes.
    pub(super) fn announcement(&self, strategies: usize) -> String {
        let [least, most] = [self.least_seconds, self.most_seconds]
            .map(|seconds| units::seconds(if seconds < 10.0 { seconds } else { seconds.round() }));
        let strategies = if strategies == 1 {
            "1 strategy".to_owned()
        } else {
            format!("{} strategies", units::count(strategies as u64))
        };
        let time = if least == most { least } else { format!("{least} to {most}") };
        format!("measuring {strategies} takes {time}, builds included: longer if other programs disturb runs")
    }
}

/// What reading takes of a storage: bytes per second of a stream and of all, seconds of a seek, and seeks per second.
#[derive(Debug, Clone, Copy)]
struct Reading {
    stream: f64,
    total: f64,
    seek: f64,
    seeks: f64,
}

impl Reading {
    fn of(storage: &StorageChoice) -> Self {
        match storage {
            StorageChoice::Local | StorageChoice::Direct | StorageChoice::Mapped => LOCAL,
            StorageChoice::Throttled(throttle) => Self {
                stream: throttle.stream_bytes_per_second,
                total: throttle.total_bytes_per_second,
                seek: throttle.seek_seconds,
                seeks: throttle.seeks_per_second.unwrap_or(f64::INFINITY),
            },
        }
    }

    /// How many files of `bytes` bytes `threads` threads read per second.
    fn files_per_second(&self, bytes: f64, threads: f64) -> f64 {
        (threads / (self.seek + bytes / self.stream)).min(self.seeks).min(self.total / bytes)
    }

    /// How many records of `bytes` bytes are read per second, one after the other.
    fn records_per_second(&self, bytes: f64, threads: f64) -> f64 {
        (threads * self.stream).min(self.total) / bytes
    }
}

/// What all strategies have in common.
pub(super) struct Measuring<'a> {
    pub(super) options: &'a ProfileOptions,
    pub(super) storage: &'a StorageChoice,
    /// What each step costs, reading first.
    pub(super) steps: &'a [StepCost],
    pub(super) effort: Effort,
    /// How many samples each strategy is measured on, and those that lead where few are run.
    pub(super) samples: u64,
    pub(super) check_samples: u64,
}

/// What a strategy should take of each sample.
#[derive(Debug, Clone, Copy)]
struct Each {
    /// To read it as it is kept, and how many a single thread and all threads get in a second.
    bytes: f64,
    alone_per_second: f64,
    loaded_per_second: f64,
    /// CPU seconds once, and every epoch.
    offline: f64,
    online: f64,
    /// How many come in a second.
    rate: f64,
}

impl Measuring<'_> {
    /// How long all of it should take.
    pub(super) fn estimate(&self) -> Estimate {
        let each: Vec<Each> = self.options.strategies.iter().map(|strategy| self.each(strategy)).collect();
        let prepared: f64 = self.options.strategies.iter().zip(&each).map(|(one, each)| self.prepared(one, each)).sum();
        let all = PROBE_SECONDS + SOURCE_SECONDS.min(self.options.run_seconds) + prepared + self.compressions();
        match self.options.runs {
            Runs::None => Estimate { least_seconds: all, most_seconds: all },
            Runs::Each(runs) => {
                let of_runs: f64 =
                    each.iter().map(|each| self.runs(each, (runs, self.options.run_seconds), self.samples)).sum();
                // Runs that are repeated, and a compression for some strategies that takes as long as they do, are not sure.
                let repeated = if self.options.run_seconds > 0.0 { of_runs } else { 0.0 };
                let compressed = if self.considers_compressions() {
                    (each.len() / COMPRESSED_SHARE).max(1) as f64 / each.len().max(1) as f64 * (prepared + of_runs)
                } else {
                    0.0
                };
                Estimate { least_seconds: all + of_runs, most_seconds: all + of_runs + repeated + compressed }
            }
            Runs::Fast => {
                let highest = each.iter().map(|each| each.rate).fold(0.0, f64::max);
                let leading = || each.iter().filter(|each| each.rate >= NEAR * highest).map(|each| self.checked(each));
                let longest = each.iter().map(|each| self.checked(each)).fold(0.0, f64::max);
                let fewest = leading().fold(f64::INFINITY, f64::min);
                // Compressions lead where reading binds, and formats of a split may be rivals then.
                let most = all + leading().sum::<f64>() + longest;
                let rivals = if self.considers_compressions() {
                    (RIVALS_SHARE * most).max(SPLIT_SECONDS * self.may_be_compressed().count() as f64)
                } else {
                    0.0
                };
                Estimate {
                    least_seconds: all + if fewest.is_finite() { fewest } else { 0.0 },
                    most_seconds: most + rivals,
                }
            }
        }
    }

    fn threads(&self) -> f64 {
        self.options.threads.min(cores()).max(1) as f64
    }

    /// The cost of the data that `strategy` stores, and the resulting rate.
    fn each(&self, strategy: &Strategy) -> Each {
        let kept_after = strategy.split.offline_steps();
        let bytes = self.steps.get(kept_after).or(self.steps.last()).map_or(1.0, |step| step.bytes_out).max(1.0);
        let cpu = |steps: &[StepCost]| steps.iter().map(|step| step.cpu_seconds).sum::<f64>();
        let (before, after) = self.steps.split_at((kept_after + 1).min(self.steps.len()));
        let keeps_files = strategy.split.keeps_files();
        let is_encoded = strategy.format != StorageFormat::default();
        let encoding = if is_encoded { bytes / ENCODED_BYTES_PER_SECOND } else { 0.0 };
        let (offline, online) = if keeps_files { (0.0, cpu(after)) } else { (cpu(before) + encoding, cpu(after)) };
        let (reading, threads) = (Reading::of(self.storage), self.threads());
        let per_second = |threads: f64| {
            if keeps_files {
                reading.files_per_second(bytes, threads)
            } else {
                reading.records_per_second(bytes, threads)
            }
        };
        let (alone, together) = (per_second(1.0), per_second(threads));
        let loaded_per_second = if self.options.caching == Caching::None { together } else { f64::INFINITY };
        let rate = loaded_per_second.min(threads / online.max(1e-6));
        Each { bytes, alone_per_second: alone, loaded_per_second: together, offline, online, rate }
    }

    /// Building what a strategy stores, and measuring everything but its runs.
    fn prepared(&self, strategy: &Strategy, each: &Each) -> f64 {
        let samples = self.samples as f64;
        let runs_each = matches!(self.options.runs, Runs::Each(_));
        let source = self.steps.first().map_or(1.0, |step| step.bytes_out).max(1.0);
        // Without runs builds read from this machine.
        let built_from = if runs_each { Reading::of(self.storage) } else { LOCAL };
        let built = if strategy.split.keeps_files() {
            0.0
        } else {
            BUILD_SECONDS + self.built(samples, source, each.offline, built_from)
        };
        let costed = self.effort.samples((each.online, 0.0)).min(self.samples) as f64;
        let alone = if runs_each { each.alone_per_second } else { f64::INFINITY };
        let costs = 2.0 * costed * (each.online + 1.0 / alone);
        let seconds = self.options.run_seconds.min(if runs_each { f64::INFINITY } else { FAST_SECONDS });
        let held = samples / each.alone_per_second;
        let working = self.working(each, seconds);
        let reading = match self.options.caching {
            // It takes what the steps before it give, one after the other.
            Caching::Application => samples * each.online,
            _ if seconds == 0.0 => samples / each.loaded_per_second,
            _ => seconds + PARTS as f64 / each.alone_per_second,
        };
        built + costs + held + working + reading
    }

    fn built(&self, samples: f64, bytes: f64, offline: f64, from: Reading) -> f64 {
        let threads = self.threads();
        samples / from.files_per_second(bytes, threads).min(threads / offline.max(1e-6))
    }

    /// The loader on samples in memory, for about `seconds`: it is looked at when a batch is there.
    fn working(&self, each: &Each, seconds: f64) -> f64 {
        let (samples, rate) = (self.samples.max(1) as f64, self.threads() / each.online.max(1e-6));
        let passes = (SURPLUS * seconds * rate / samples).ceil().max(1.0) + f64::from(u8::from(seconds > 0.0));
        let batch = self.options.batch_size as f64 / rate;
        let part = (seconds / PARTS as f64 / batch).ceil().max(1.0) * batch;
        (passes * samples / rate).min(batch + (PARTS + 1) as f64 * part)
    }

    /// The runs of `seconds` each, and what precedes them.
    fn runs(&self, each: &Each, (runs, seconds): (NonZeroU32, f64), samples: u64) -> f64 {
        let (samples, first) = (samples.max(1) as f64, (self.options.batch_size as f64).min(samples as f64));
        let once = samples / each.rate;
        // The first run shows how often samples must come.
        let (is_short, started) = ((samples - first) / each.rate < seconds, first / each.rate);
        let passes = if is_short { ((SPARE * seconds + started) / once).ceil() } else { 1.0 };
        let tried = if is_short { once } else { 0.0 };
        let (filling, counted) = match self.options.caching {
            Caching::System => (samples / each.loaded_per_second.min(each.rate), runs.get() - 1),
            Caching::None | Caching::Application => (0.0, runs.get()),
        };
        filling + tried + f64::from(counted) * (passes * once + RUN_SECONDS)
    }

    /// Building and running a strategy that may lead.
    fn checked(&self, each: &Each) -> f64 {
        let source = self.steps.first().map_or(1.0, |step| step.bytes_out).max(1.0);
        let runs = (leader_runs(self.options.caching), self.options.run_seconds.min(LEADER_SECONDS));
        BUILD_SECONDS
            + self.built(self.check_samples as f64, source, each.offline, LOCAL)
            + self.runs(each, runs, self.check_samples)
    }

    fn considers_compressions(&self) -> bool {
        !self.options.compressions.is_empty()
            && self.options.caching == Caching::None
            && self.options.runs != Runs::None
    }

    /// What compressions cost alone: each format of each split.
    fn compressions(&self) -> f64 {
        if !self.considers_compressions() {
            return 0.0;
        }
        let formats = self.options.compressions.len() as f64;
        let threads = if matches!(self.options.runs, Runs::Each(_)) { 1.0 } else { self.threads() };
        let of_split = |strategy: &Strategy| {
            let each = self.each(strategy);
            let enough = (BYTES_MAX as f64).max(each.bytes * RECORDS_MIN as f64);
            let records = (each.bytes * self.samples as f64).min(enough);
            let compressing = (records / ENCODED_BYTES_PER_SECOND / threads).min(COMPRESSING_SECONDS);
            let each_format = compressing + 2.0 * INFLATING_SECONDS;
            (each.offline * records / each.bytes).min(MAKING_SECONDS) + formats * each_format
        };
        self.may_be_compressed().map(of_split).sum()
    }

    /// The strategies that can be stored in another format.
    fn may_be_compressed(&self) -> impl Iterator<Item = &Strategy> {
        self.options.strategies.iter().filter(|one| !one.split.keeps_files() && one.format.is_plain())
    }
}
