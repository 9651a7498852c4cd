//! Diagnosing: measures what [`forebay_plan::diagnose`] makes a verdict of.
//!
//! The same loader runs three times: on samples that are in memory, from storage, and as readers alone; the first two also with a trainer
//! that takes a known number of samples per second and nothing of the processor, as an accelerator does. The first runs once more with
//! another number of threads, to see what more of them give.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_plan::{Measured, Others, Rate, Scaling, units};
use forebay_storage::Storage;

use crate::error::{Error, Result};
use crate::load::{CachePolicy, LoadOptions, Loader, Next, OnError, Sampling, in_order};
use crate::memory::default_memory_bytes;
use crate::profile::alone::read_for;
use crate::profile::metrics::Machine;
use crate::profile::runs::OTHERS_SECONDS_MIN;
use crate::progress::{Progress, while_wanted};
use crate::source::{Held, Repeated, Source};

/// How to diagnose.
#[derive(Debug, Clone)]
pub struct DiagnoseOptions {
    /// How samples are loaded.
    pub load: LoadOptions,
    /// How many samples per second the trainer takes.
    pub trainer_samples_per_second: f64,
    /// How long each rate is measured, after its first batch; longer where fewer than a few batches come.
    pub seconds: f64,
}

/// A rate is measured in this many parts, to see how far they differ.
const PARTS: usize = 5;

/// The minimum number of batches for a rate.
const BATCHES_MIN: usize = 10;

/// Other programs can make a measurement at most this many times as long.
const DISTURBED_MAX: f64 = 3.0;

/// However few batches there are, a rate is measured for at most this many times its duration.
const PATIENCE: f64 = 10.0;

/// While a batch is awaited, the user is asked so often whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// The minimum number of samples of an epoch: fewer are repeated, so that the start of an epoch carries no weight.
const SAMPLES_MIN: u64 = 100_000;

/// The size of the data in memory for measuring preparation without storage: more than any CPU cache.
const HELD_BYTES_MAX: u64 = 64 << 20;

/// A trainer that asks so little late for its next batch did not wait: it only slept too long.
const OVERSLEPT: Duration = Duration::from_millis(1);

/// Measures loading `cold`, whose bytes come from `storage`; `warm` is the same data on a storage that is quickly read once.
pub fn diagnose(
    cold: &Arc<dyn Source>,
    storage: &dyn Storage,
    warm: &Arc<dyn Source>,
    options: &DiagnoseOptions,
    progress: &dyn Progress,
) -> Result<Measured> {
    let DiagnoseOptions { load, trainer_samples_per_second: trainer, seconds } = options;
    let kept = held(warm)?;
    let held = repeated(&kept, load)?;
    let cores = crate::threads::cores() as u64;
    let other = Scaling::threads_to_compare(load.threads as u64, cores);
    let rates = if other.is_some() { "six" } else { "five" };
    progress.note(&format!("measuring {rates} rates, {seconds} s each or more"));
    let prep = rate(&measure(&held, None, *seconds, "preparation", progress)?)?;
    let mut scaling = None;
    if let Some(threads) = other {
        let loader = repeated(&kept, &LoadOptions { threads: threads as usize, ..load.clone() })?;
        let what = format!("preparation on {}", units::counted(threads, "thread"));
        scaling = Some(Scaling { threads, prep: rate(&measure(&loader, None, *seconds, &what, progress)?)? });
    }
    // Half of it before the measurement that it is compared with, and half after, so that a machine that slows down affects both.
    let half_of_warm = || measure(&held, Some(*trainer), seconds / 2.0, "preparation and trainer", progress);
    let mut warm = half_of_warm()?;
    let paths = cold.paths();
    let dropped = storage.drop_cache(&paths.iter().map(PathBuf::as_path).collect::<Vec<&Path>>());
    // A file that cannot be opened is skipped by the runs, where that is wanted.
    if load.on_error == OnError::Fail {
        dropped?;
    }
    let fetch = reading(cold, load, *seconds, progress)?;
    let loader = repeated(cold, load)?;
    let cold_rate = rate(&measure(&loader, Some(*trainer), *seconds, "storage, preparation and trainer", progress)?)?;
    warm.extend(half_of_warm()?);
    Ok(Measured {
        trainer: Rate::exactly(*trainer),
        warm: Some(rate(&warm)?),
        cold: cold_rate,
        prep: Some(prep),
        scaling,
        fetch: Some(fetch),
        threads: Some(load.threads as u64),
        data_bytes: Some(cold.blocks()?.iter().map(|block| block.bytes).sum()),
        memory_bytes: Some(default_memory_bytes()),
    })
}

/// A loader like one with these options, of the first samples of `source`, which are in memory; its epochs are long.
pub fn in_memory(source: &Arc<dyn Source>, load: &LoadOptions) -> Result<Loader> {
    repeated(&held(source)?, load)
}

fn held(source: &Arc<dyn Source>) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(Held::of(Arc::clone(source), HELD_BYTES_MAX)?))
}

/// What as many readers as a loader would have get of `source`, when nobody waits for anything else.
pub fn reading(source: &Arc<dyn Source>, load: &LoadOptions, seconds: f64, progress: &dyn Progress) -> Result<Rate> {
    let blocks: Vec<_> = in_order(source.blocks()?, load.shuffle, load.seed).collect();
    progress.begin("storage", 0);
    let (mut next, mut parts) = (0, Vec::new());
    for _ in 0..PARTS {
        let part = read_for(&**source, &blocks, &mut next, (seconds / PARTS as f64, load.threads), progress)?;
        parts.push((part.samples, part.seconds));
    }
    progress.end();
    rate(&parts)
}

/// A loader like one with these options of all samples of `source`, as often as makes an epoch long.
pub fn repeated(source: &Arc<dyn Source>, load: &LoadOptions) -> Result<Loader> {
    let times = SAMPLES_MIN.div_ceil(source.samples().max(1));
    // Memory across epochs is a what-if, not measured.
    let load = LoadOptions { cache: CachePolicy::default(), sampling: Sampling::default(), ..load.clone() };
    Loader::new(Arc::new(Repeated { of: Arc::clone(source), times }), load)
}

fn rate(parts: &[(f64, f64)]) -> Result<Rate> {
    Rate::of_parts(parts).ok_or_else(nothing)
}

/// What comes out of `loader` in so many seconds, with a trainer that takes so many samples per second, if there is one: in parts, each so
/// many samples in so many seconds.
fn measure(
    loader: &Loader,
    trainer: Option<f64>,
    seconds: f64,
    what: &str,
    progress: &dyn Progress,
) -> Result<Vec<(f64, f64)>> {
    let (mut parts, mut batches, mut number) = (Parts::of(seconds), 0, 0);
    progress.begin(what, 0);
    while !parts.suffice(batches) {
        let mut epoch = loader.start(&loader.beginning_of(number))?;
        number += 1;
        // The first batch starts the clock: everything before it is startup.
        let (mut begun, mut samples, mut free) = (None, 0, Instant::now());
        loop {
            let batch = match epoch.next_timeout(LOOK_UP) {
                Next::Batch(batch) => batch?,
                Next::NotYet => {
                    while_wanted(progress)?;
                    continue;
                }
                Next::End => break,
            };
            while_wanted(progress)?;
            let now = Instant::now();
            if let Some(trainer) = trainer {
                let start = if now < free + OVERSLEPT { free } else { now };
                free = start + Duration::from_secs_f64(batch.len() as f64 / trainer);
            }
            match &begun {
                None => begun = Some((now, Machine::now())),
                Some((since, machine)) => {
                    samples += batch.len();
                    batches += 1;
                    let part = (now - *since).as_secs_f64();
                    if part >= parts.part_seconds {
                        parts.push((samples as f64, part), machine);
                        (samples, begun) = (0, Some((now, Machine::now())));
                    }
                }
            }
            progress.advance(batch.len() as u64);
            if parts.suffice(batches) {
                break;
            }
            std::thread::sleep(free.saturating_duration_since(Instant::now()));
        }
        if batches == 0 && number > 1 {
            break;
        }
    }
    progress.end();
    Ok(parts.believed())
}

/// A measurement in parts, each so many samples in so many seconds. Those that other programs disturbed are measured again, within limits.
struct Parts {
    seconds: f64,
    part_seconds: f64,
    all: Vec<(f64, f64)>,
    quiet: Vec<(f64, f64)>,
}

impl Parts {
    fn of(seconds: f64) -> Self {
        let part_seconds = (seconds / PARTS as f64).max(OTHERS_SECONDS_MIN.min(seconds));
        Self { seconds, part_seconds, all: Vec::new(), quiet: Vec::new() }
    }

    /// Adds a part that began when the machine was at `before`.
    fn push(&mut self, part: (f64, f64), before: &Machine) {
        let others = Machine::now().since(before, part.1);
        if part.1 < OTHERS_SECONDS_MIN || others.is_none_or(|others| others.cores <= Others::CORES_MAX) {
            self.quiet.push(part);
        }
        self.all.push(part);
    }

    /// Whether it lasted long enough, or others will not stop, or batches come too seldom to wait for more of them.
    fn suffice(&self, batches: usize) -> bool {
        let (all, quiet) = (total(&self.all), total(&self.quiet));
        (quiet >= self.seconds || all >= DISTURBED_MAX * self.seconds)
            && (batches >= BATCHES_MIN || all >= PATIENCE * self.seconds)
    }

    /// The quiet parts, if they are half of what was asked for; else all of them.
    fn believed(self) -> Vec<(f64, f64)> {
        if total(&self.quiet) >= self.seconds / 2.0 { self.quiet } else { self.all }
    }
}

fn total(parts: &[(f64, f64)]) -> f64 {
    parts.iter().map(|part| part.1).sum()
}

fn nothing() -> Error {
    Error::Usage {
        problem: "too few batches came to measure a rate".to_owned(),
        remedy: "make batches smaller, or measure longer".to_owned(),
    }
}
