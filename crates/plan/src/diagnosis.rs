//! Differential analysis: what a trainer waits for, by its rates on batches that are ready, on data in memory, and on
//! data from storage.
//!
//! ```text
//! trainer >= warm >= cold                                  samples per second, each with the trainer running
//! fetch stall = 1 - cold / warm                            shares of the time of training from storage
//! prep stall  = cold / warm - cold / trainer
//! wait        = fetch stall + prep stall = 1 - cold / trainer
//! ```
//!
//! This is DS-Analyzer's division: what data in memory would leave of the waiting is preparation's, and the rest is storage's. With another
//! machine, each half of loading scales by itself, and the slower one decides:
//!
//! ```text
//! cold' = min(trainer, error × min(prep × cores, fetch × disk / (1 - hits)))
//! cores = n / (1 + serial × (n - 1)), relative to the same for the threads here
//! ```
//!
//! `prep` and `fetch` are what each half reaches alone, and `error` is what the formula gets wrong here. `serial` is Amdahl's: threads
//! share memory's bandwidth, caches and clocks, and hand batches over in order. It follows from preparing with another number of threads.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prediction::Bound;
use crate::stats::Stats;
use crate::units;

/// A measured rate, and how far the parts of its measurement differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Over the whole measurement.
    pub samples_per_second: f64,
    /// Its slowest part.
    pub min_samples_per_second: f64,
    /// Its fastest part.
    pub max_samples_per_second: f64,
}

impl Rate {
    /// A rate that is known.
    pub fn exactly(samples_per_second: f64) -> Self {
        Self {
            samples_per_second,
            min_samples_per_second: samples_per_second,
            max_samples_per_second: samples_per_second,
        }
    }

    /// From the parts of a measurement, each with its samples and seconds; `None` if there were no samples.
    pub fn of_parts(parts: &[(f64, f64)]) -> Option<Self> {
        let (samples, seconds) = parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let rates = || parts.iter().filter(|part| part.1 > 0.0).map(|part| part.0 / part.1);
        (samples > 0.0 && seconds > 0.0).then(|| Self {
            samples_per_second: samples / seconds,
            min_samples_per_second: rates().fold(f64::INFINITY, f64::min),
            max_samples_per_second: rates().fold(0.0, f64::max),
        })
    }

    fn times(self, factor: f64) -> Self {
        Self {
            samples_per_second: self.samples_per_second * factor,
            min_samples_per_second: self.min_samples_per_second * factor,
            max_samples_per_second: self.max_samples_per_second * factor,
        }
    }

    fn min(self, other: Self) -> Self {
        Self {
            samples_per_second: self.samples_per_second.min(other.samples_per_second),
            min_samples_per_second: self.min_samples_per_second.min(other.min_samples_per_second),
            max_samples_per_second: self.max_samples_per_second.min(other.max_samples_per_second),
        }
    }

    fn is_valid(&self) -> bool {
        let rates = [self.samples_per_second, self.min_samples_per_second, self.max_samples_per_second];
        rates.iter().all(|rate| *rate > 0.0 && *rate <= 1e30)
    }
}

/// What was measured. What a loader cannot be asked for is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The trainer on batches that are ready.
    pub trainer: Rate,
    /// The trainer with a loader whose data is in memory.
    pub warm: Option<Rate>,
    /// The trainer with the loader.
    pub cold: Rate,
    /// The loader without a trainer, its data in memory.
    pub prep: Option<Rate>,
    /// The same with another number of threads, to see what more of them give.
    #[serde(default)]
    pub scaling: Option<Scaling>,
    /// Readers alone; or the loader without a trainer, where storage bounds it.
    pub fetch: Option<Rate>,
    /// How many threads or processes prepare.
    pub threads: Option<u64>,
    /// How many bytes an epoch reads.
    pub data_bytes: Option<u64>,
    /// The memory that is available for data.
    pub memory_bytes: Option<u64>,
}

/// Preparation with this many threads.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// How many threads prepare.
    pub threads: u64,
    /// What they reach without a trainer, the data in memory.
    #[serde(flatten)]
    pub prep: Rate,
}

impl Scaling {
    /// The number of threads to compare with `threads`: more, if there are `cores` for them, or else fewer.
    pub fn threads_to_compare(threads: u64, cores: u64) -> Option<u64> {
        let other = if threads < cores { cores.min(2 * threads) } else { threads / 2 };
        (other > 0).then_some(other)
    }
}

impl Measured {
    /// The share of preparing that threads do one after another, 0 to 1: 0 where only one number of threads was measured.
    fn serial_share(&self) -> f64 {
        let (Some(prep), Some(here), Some(scaling)) = (self.prep, self.threads, self.scaling) else { return 0.0 };
        let mut counts = [(here as f64, prep), (scaling.threads as f64, scaling.prep)];
        counts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let [(few, slow), (many, fast)] = counts;
        let times = many / few;
        if times <= 1.0 {
            return 0.0;
        }
        // More threads that give less than a few do, or more than their share, are noise.
        let gain = (fast.samples_per_second / slow.samples_per_second).clamp(1.0, times);
        (times - gain) / (gain * (many - 1.0) - (many - times))
    }

    /// How many cores would prepare as fast as the trainer takes; `None` where that is not known, or no number of them would.
    fn cores_needed(&self) -> Option<u64> {
        let (prep, threads, serial) = (self.prep?, self.threads? as f64, self.serial_share());
        let one = prep.samples_per_second * (1.0 + serial * (threads - 1.0)) / threads;
        let trainer = self.trainer.samples_per_second;
        let cores = trainer * (1.0 - serial) / (one - trainer * serial);
        // Rounding does not make it one more.
        (one > trainer * serial && cores <= CORES_MAX).then(|| (cores - 1e-6).ceil().max(1.0) as u64)
    }
}

/// A need of more cores than this is a need of none.
const CORES_MAX: f64 = 10_000.0;

/// The effective number of cores.
fn worth(cores: f64, serial: f64) -> f64 {
    cores / (1.0 + serial * (cores - 1.0))
}

/// Which parts of the time a trainer waits for what: shares of the time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// Waiting at all.
    pub wait_share: f64,
    /// Of that, for preparation; `None` if the two cannot be separated.
    pub prep_stall_share: Option<f64>,
    /// Of that, for storage.
    pub fetch_stall_share: Option<f64>,
}

impl Stalls {
    /// The shares of training at `cold` samples per second, where the trainer could take `trainer`, and would get `warm` from memory.
    pub fn of(trainer: f64, warm: Option<f64>, cold: f64) -> Self {
        let ratio = |part: f64, whole: f64| if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 1.0 };
        let wait_share = 1.0 - ratio(cold, trainer);
        let fetch = warm.map(|warm| (1.0 - ratio(cold, warm.min(trainer))).min(wait_share));
        Self { wait_share, prep_stall_share: fetch.map(|fetch| wait_share - fetch), fetch_stall_share: fetch }
    }

    /// The same of a loader that runs, by what its threads and its consumer waited for: workers that are busy `u` of their time would
    /// prepare `1 / u` as much if storage never kept them waiting.
    pub fn live(stats: &Stats) -> Self {
        if stats.seconds <= 0.0 || stats.samples == 0 {
            return Self::default();
        }
        let rate = stats.samples as f64 / stats.seconds;
        let step_seconds = stats.seconds - stats.consumer_wait_seconds;
        let trainer = if step_seconds > 0.0 { stats.samples as f64 / step_seconds } else { f64::INFINITY };
        let busy = stats.share(stats.work_seconds);
        let prepare = if busy > 0.0 { rate / busy } else { f64::INFINITY };
        Self::of(trainer.min(1e30), Some(prepare.min(1e30)), rate)
    }

    /// What training is bound by: the trainer, where it hardly waits.
    pub fn bound_by(&self) -> Bound {
        match (self.prep_stall_share, self.fetch_stall_share) {
            _ if self.wait_share < WAITS => Bound::Trainer,
            (Some(prep), Some(fetch)) if prep >= fetch => Bound::Cpu,
            (Some(_), Some(_)) => Bound::Storage,
            _ => Bound::Unknown,
        }
    }

    /// `waits 41 % of the time: 33 % for preparation, 8 % for storage`.
    pub fn sentence(&self) -> String {
        let waits = format!("waits {} of the time", whole_percent(self.wait_share));
        match (self.prep_stall_share, self.fetch_stall_share) {
            (Some(prep), Some(fetch)) => {
                let (prep, fetch) = (whole_percent(prep), whole_percent(fetch));
                format!("{waits}: {prep} for preparation, {fetch} for storage")
            }
            _ => format!("{waits} for data"),
        }
    }
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A trainer that waits for less than this share of the time is what binds.
const WAITS: f64 = 0.05;

/// What the formula neglects moves it by so much.
const MODEL_SPREAD: f64 = 0.05;

/// How far the formula may be corrected by its error here.
const ERRORS: std::ops::RangeInclusive<f64> = 0.5..=1.1;

/// Which resource is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// Cores that prepare, per accelerator.
    Cores,
    /// Memory that caches a part of the data from epoch to epoch.
    Memory,
    /// The storage's bandwidth, and its operations per second.
    Disk,
}

/// What another resource would give.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outlook {
    /// Which resource.
    pub resource: Resource,
    /// How much of it: cores, the share of the data that memory holds, or times the disk.
    pub amount: f64,
    /// The same in words: `4 cores`, `66 MB of memory for data`, `twice the disk`.
    pub change: String,
    /// What training reaches then: expected, at least and at most.
    #[serde(flatten)]
    pub rate: Rate,
    /// What the trainer waits for then.
    #[serde(flatten)]
    pub stalls: Stalls,
}

/// What training waits for, and what would change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// What was measured.
    pub measured: Measured,
    /// What the trainer waits for.
    #[serde(flatten)]
    pub stalls: Stalls,
    /// What binds.
    pub bound_by: Bound,
    /// So many cores would prepare as fast as the trainer takes; `None` where that is not known.
    pub cores_needed: Option<u64>,
    /// Other resources.
    pub what_ifs: Vec<Outlook>,
    /// The verdict, a sentence each.
    pub sentences: Vec<String>,
}

/// What `measured` says.
pub fn diagnose(measured: &Measured) -> Result<Diagnosis> {
    let Measured { trainer, warm, cold, prep, fetch, .. } = measured;
    let rates = [
        ("trainer", Some(*trainer)),
        ("warm", *warm),
        ("cold", Some(*cold)),
        ("prep", *prep),
        ("scaling", measured.scaling.map(|scaling| scaling.prep)),
        ("fetch", *fetch),
    ];
    for (name, rate) in rates {
        if let Some(rate) = rate.filter(|rate| !rate.is_valid()) {
            let found = rate.samples_per_second.to_string();
            return Err(Error::Argument { name, found, expected: "a finite number of samples per second above 0" });
        }
    }
    let stalls =
        Stalls::of(trainer.samples_per_second, warm.map(|warm| warm.samples_per_second), cold.samples_per_second);
    let needed = measured.cores_needed();
    let mut diagnosis = Diagnosis {
        measured: *measured,
        stalls,
        bound_by: stalls.bound_by(),
        cores_needed: needed,
        what_ifs: outlooks(measured, needed),
        sentences: Vec::new(),
    };
    diagnosis.sentences = sentences(&diagnosis);
    Ok(diagnosis)
}

/// The resources that are asked about: twice the cores and as many as are needed, half and all of the data in memory, twice the disk.
fn outlooks(measured: &Measured, cores_needed: Option<u64>) -> Vec<Outlook> {
    let mut changes = Vec::new();
    if let Some(threads) = measured.threads {
        changes.push((Resource::Cores, 2.0 * threads as f64));
        if let Some(needed) = cores_needed.filter(|needed| *needed > threads && *needed != 2 * threads) {
            changes.push((Resource::Cores, needed as f64));
        }
    }
    changes.extend([(Resource::Memory, 0.5), (Resource::Memory, 1.0), (Resource::Disk, 2.0)]);
    changes.into_iter().filter_map(|(resource, amount)| what_if(measured, resource, amount)).collect()
}

/// The training rate with `amount` of a resource: the number of cores, the share of the data in memory, or the factor
/// the disk. `None` where too little was measured to say.
pub fn what_if(measured: &Measured, resource: Resource, amount: f64) -> Option<Outlook> {
    let (prep, fetch) = (measured.prep?, measured.fetch?);
    let threads = measured.threads.map(|threads| threads as f64);
    let (mut cores, mut storage) = (1.0, 1.0);
    match resource {
        Resource::Cores => {
            let serial = measured.serial_share();
            cores = worth(amount, serial) / worth(threads?, serial);
        }
        Resource::Memory => storage = 1.0 / (1.0 - amount).max(1e-9),
        Resource::Disk => storage = amount,
    }
    if !(cores > 0.0 && storage > 0.0 && cores.is_finite() && storage.is_finite()) {
        return None;
    }
    let here = measured.trainer.min(prep).min(fetch).samples_per_second;
    let error = (measured.cold.samples_per_second / here).clamp(*ERRORS.start(), *ERRORS.end());
    let warm = prep.times(cores * error).min(measured.trainer);
    let rate = fetch.times(storage * error).min(warm);
    let stalls =
        Stalls::of(measured.trainer.samples_per_second, Some(warm.samples_per_second), rate.samples_per_second);
    // A trainer that is given as a rate has no spread, but what it gets has.
    let rate = Rate {
        min_samples_per_second: rate.min_samples_per_second * (1.0 - MODEL_SPREAD),
        max_samples_per_second: (rate.max_samples_per_second * (1.0 + MODEL_SPREAD))
            .min(measured.trainer.max_samples_per_second)
            .max(rate.samples_per_second),
        ..rate
    };
    Some(Outlook { resource, amount, change: change(measured, resource, amount), rate, stalls })
}

fn change(measured: &Measured, resource: Resource, amount: f64) -> String {
    match (resource, measured.data_bytes) {
        (Resource::Cores, _) => units::counted(amount as u64, "core"),
        (Resource::Memory, Some(bytes)) => format!("{} of memory for data", units::bytes(bytes as f64 * amount)),
        (Resource::Memory, None) => format!("{} of the data in memory", whole_percent(amount)),
        (Resource::Disk, _) if (amount - 2.0).abs() < f64::EPSILON => "twice the disk".to_owned(),
        (Resource::Disk, _) => format!("{} × the disk", units::number(amount)),
    }
}

/// What a share of the time must change by to be worth a sentence.
const MATTERS: f64 = 0.02;

fn sentences(diagnosis: &Diagnosis) -> Vec<String> {
    let Diagnosis { measured, stalls, .. } = diagnosis;
    let rate = |rate: &Rate| units::samples_per_second(rate.samples_per_second);
    let mut all = vec![format!("your accelerator {}", stalls.sentence())];
    all.push(match diagnosis.bound_by {
        Bound::Trainer => format!(
            "training is bound by the trainer: it takes {} and gets {}; a faster input pipeline would change little",
            rate(&measured.trainer),
            rate(&measured.cold)
        ),
        _ => format!("the trainer could take {} and gets {}", rate(&measured.trainer), rate(&measured.cold)),
    });
    let fits = measured.data_bytes.zip(measured.memory_bytes).filter(|(data, memory)| data <= memory);
    if let (Some((data, memory)), Some(fetch)) = (fits, stalls.fetch_stall_share)
        && fetch >= MATTERS
    {
        let warm = measured.warm.map_or(measured.trainer, |warm| warm.min(measured.trainer));
        let later = Stalls::of(measured.trainer.samples_per_second, None, warm.samples_per_second);
        all.push(format!(
            "the data ({}) fits in memory ({}): once it is in the page cache, after the first epoch, the accelerator waits {} of the \
             time",
            units::bytes(data as f64),
            units::bytes(memory as f64),
            whole_percent(later.wait_share)
        ));
    }
    if stalls.wait_share >= WAITS
        && let Some(best) = best(diagnosis)
    {
        all.push(format!(
            "{} would give {} ({} to {}), and leave {} of the time waiting",
            best.change,
            rate(&best.rate),
            units::number(best.rate.min_samples_per_second),
            units::number(best.rate.max_samples_per_second),
            whole_percent(best.stalls.wait_share)
        ));
    }
    all
}

/// The what-if that gives the most; among equals the first.
fn best(diagnosis: &Diagnosis) -> Option<&Outlook> {
    let mut best: Option<&Outlook> = None;
    for outlook in &diagnosis.what_ifs {
        let gain = best.map_or(f64::INFINITY, |best| best.stalls.wait_share - outlook.stalls.wait_share);
        if gain > MATTERS && diagnosis.stalls.wait_share - outlook.stalls.wait_share > MATTERS {
            best = Some(outlook);
        }
    }
    best
}
