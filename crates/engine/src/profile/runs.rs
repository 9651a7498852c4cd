//! Runs: epochs over the samples, repeated until each lasts long enough to be believed, and again where others disturbed it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_pipeline::{RngKey, Runner, Strategy};
use forebay_plan::{Caching, FirstBatch, Run, Runs, Skipped, SystemSample};

use super::metrics::{self, Machine};
use super::{Profiler, TempDatasets, costs};
use crate::error::{Error, Result};
use crate::load::{LoadOptions, Loader, Next, OnError, Online};
use crate::progress::while_wanted;
use crate::source::{Failed, InMemory, Repeated, Source};

/// While a batch is awaited, the user is asked so often whether it is still wanted.
const LOOK_UP: Duration = Duration::from_millis(100);

/// How often a run is tried with more samples, until it lasts long enough. Each that does not is shorter than what is asked for.
const TRIES: u32 = 8;

/// How much longer than asked for a run is to last by the rate of the one before it, which the next may exceed.
pub(super) const SPARE: f64 = 1.1;

/// A run that is so far from the others shows something that does not come again, though nobody is known to have disturbed it.
const OUTLYING: f64 = 0.1;

/// The number of runs that is enough to identify an outlier.
const OTHERS_MIN: usize = 3;

/// The system counts CPU time in steps that are too coarse for shorter runs.
pub(crate) const OTHERS_SECONDS_MIN: f64 = 0.4;

/// So many of the samples that were left out are listed.
const SKIPPED_NOTED_MAX: usize = 1000;

/// Samples come at most so often in a run.
const TIMES_MAX: u64 = 1 << 16;

/// The runs of a strategy so far.
pub(super) struct Series {
    /// All that were long enough.
    pub(super) runs: Vec<Run>,
    /// The system's metrics during them.
    pub(super) system: Vec<SystemSample>,
    /// How often samples must come in a run for it to be long enough, as far as it is known.
    times: u64,
    /// How many of the first runs do not count: they fill the page cache.
    filling: usize,
}

impl Series {
    pub(super) fn new() -> Self {
        Self { runs: Vec::new(), system: Vec::new(), times: 1, filling: 0 }
    }

    /// How many runs are not to be run again: nobody disturbed them, and they are like the others.
    fn settled(&self) -> u32 {
        let quiet = self.runs[self.filling..].iter().filter(|run| !run.is_disturbed());
        let mut rates: Vec<f64> = quiet.map(Run::samples_per_second).collect();
        rates.sort_by(f64::total_cmp);
        let (count, typical) = (rates.len(), rates.get(rates.len() / 2).copied().unwrap_or(0.0));
        let outlying = |rate: &&f64| (**rate / typical - 1.0).abs() > OUTLYING;
        let again = if count < OTHERS_MIN { 0 } else { rates.iter().filter(outlying).count() };
        (self.filling + count - again) as u32
    }
}

impl Profiler<'_> {
    /// Whether to run a strategy again: as often as requested; more often if other programs disturbed it, or if runs differ,
    /// up to twice as often.
    pub(super) fn wants_more(&self, series: &Series) -> bool {
        let Runs::Each(wanted) = self.options.runs else { return false };
        let wanted = wanted.get();
        // Of short runs nobody can say what disturbed them.
        let most = if self.options.run_seconds > 0.0 { wanted.saturating_mul(2) } else { wanted };
        series.settled() < wanted && (series.runs.len() as u32) < most
    }

    /// One more run of a strategy, of that many seconds, or of the requested duration if that is shorter.
    pub(super) fn run_again(
        &self,
        seconds: f64,
        strategy: &Strategy,
        (source, online): &(Arc<dyn Source>, Online),
        series: &mut Series,
    ) -> Result<()> {
        let number = series.runs.len() as u32;
        if number == 0 || self.options.caching == Caching::None {
            self.forget(&**source)?;
        }
        // The first run with a page cache fills it, however long that takes.
        let fills = number == 0 && self.options.caching == Caching::System;
        let seconds = if fills { 0.0 } else { seconds.min(self.options.run_seconds) };
        let (run, samples) = self.run_for(seconds, source, online, (strategy, number), &mut series.times)?;
        series.filling += usize::from(fills);
        series.runs.push(run);
        series.system.extend(samples);
        Ok(())
    }

    /// What runs of a strategy load from, and what they do to it then.
    pub(super) fn loads(&self, strategy: &Strategy, kept: &TempDatasets) -> Result<(Arc<dyn Source>, Online)> {
        if self.options.caching == Caching::Application {
            let online = Online::after_unpacking(self.pipeline, strategy);
            return Ok((Arc::new(self.cache(strategy, &kept.loaded_from)?), online));
        }
        Ok((Arc::clone(&kept.loaded_from), Online::after(self.pipeline, strategy)))
    }

    /// One run that lasts `seconds` after its first batch, if samples may come so often. `times` is how often samples must come for that, as far as
    /// it is known.
    fn run_for(
        &self,
        seconds: f64,
        source: &Arc<dyn Source>,
        online: &Online,
        (strategy, number): (&Strategy, u32),
        times: &mut u64,
    ) -> Result<(Run, Vec<SystemSample>)> {
        let mut tried = 1;
        loop {
            let loader = self.loader(source, *times)?;
            self.progress.begin(&format!("{strategy} run {}", number + 1), loader.source().samples());
            let (run, samples) = metrics::while_sampling(number, || self.run(&loader, online.clone(), number, *times));
            self.progress.end();
            let run = run?;
            let (steady_samples, steady_seconds) = run.steady();
            if steady_seconds >= seconds || tried == TRIES || *times == TIMES_MAX {
                return Ok((run, samples));
            }
            tried += 1;
            let rate = steady_samples / steady_seconds.max(1e-6);
            let each = (run.samples as f64 / *times as f64).max(1.0);
            let started = run.samples as f64 - steady_samples;
            // A rate that was low only while others were busy would bring it there by small steps.
            let least = (1.5 * *times as f64).ceil();
            *times = ((SPARE * rate * seconds + started) / each).ceil().max(least).min(TIMES_MAX as f64) as u64;
        }
    }

    /// A loader of the samples of `source`, `times` times.
    pub(super) fn loader(&self, source: &Arc<dyn Source>, times: u64) -> Result<Loader> {
        let options = LoadOptions {
            batch_size: self.options.batch_size,
            threads: self.options.threads,
            shuffle: self.options.shuffle,
            seed: self.options.seed,
            on_error: self.options.on_error,
            memory_bytes: self.options.memory_bytes,
            ..LoadOptions::default()
        };
        let loader = Loader::new(Arc::new(Repeated { of: Arc::clone(source), times }), options)?;
        // A training has the memory of its batches after the first of them: it is not to be part of each run.
        Ok(loader.with_buffers(self.batch_buffers.clone()))
    }

    fn run(&self, loader: &Loader, online: Online, number: u32, passes: u64) -> Result<Run> {
        let machine = Machine::now();
        let begun = Instant::now();
        let mut epoch = loader.start_with(online, &loader.beginning_of(u64::from(number)))?;
        let (mut samples, mut first) = (0, None);
        loop {
            match epoch.next_timeout(LOOK_UP) {
                Next::Batch(batch) => {
                    let batch = batch?;
                    samples += batch.len() as u64;
                    first.get_or_insert_with(|| {
                        (FirstBatch { samples, seconds: begun.elapsed().as_secs_f64() }, epoch.stats())
                    });
                    self.progress.advance(batch.len() as u64);
                }
                Next::NotYet => {}
                Next::End => break,
            }
            while_wanted(self.progress)?;
        }
        let seconds = begun.elapsed().as_secs_f64();
        self.note_skipped(&epoch.skipped_samples(), passes);
        Ok(Run {
            samples,
            passes,
            skipped: epoch.skipped(),
            seconds,
            bytes_read: epoch.bytes_read(),
            first_batch: first.map(|(batch, _)| batch),
            stats: first.map(|(_, at_first)| epoch.stats().since(&at_first)),
            others: Machine::now().since(&machine, seconds).filter(|_| seconds >= OTHERS_SECONDS_MIN),
        })
    }

    /// Notes what was left out of samples that came `passes` times; what is noted already, once.
    pub(super) fn note_skipped(&self, list: &[Skipped], passes: u64) {
        let mut noted = self.skipped.lock();
        for skipped in list {
            if noted.len() < SKIPPED_NOTED_MAX && noted.iter().all(|other| other.key != skipped.key) {
                let samples = skipped.samples.map(|samples| samples.div_ceil(passes));
                noted.push(Skipped { samples, ..skipped.clone() });
            }
        }
    }

    /// All samples in memory, deserialized: the application-level cache.
    fn cache(&self, strategy: &Strategy, source: &Arc<dyn Source>) -> Result<InMemory> {
        let mut unpacking = Runner::new(&strategy.unpacking(self.pipeline), 0);
        let (mut samples, mut bytes) = (Vec::new(), 0);
        for block in source.blocks()? {
            while_wanted(self.progress)?;
            let contents = source.read(block.samples.clone()).contents;
            for (number, content) in block.samples.zip(contents) {
                let unpacked = content.and_then(|content| source.unpack(number, content)).and_then(|sample| {
                    let mut whole = costs::Collect::default();
                    let done = unpacking.run(&sample, RngKey::default(), &mut (), &mut whole);
                    let done = done.and_then(|()| {
                        whole.refused.take().map_or(Ok(()), |source| {
                            let (key, step) = (sample.key.to_string(), "cache".to_owned());
                            Err(forebay_pipeline::Error::Step { key, step, source: Box::new(source) })
                        })
                    });
                    done.map_err(|error| Failed::new(&*sample.key, error.into()))?;
                    Ok(whole.samples)
                });
                match (unpacked, self.options.on_error) {
                    (Ok(unpacked), _) => {
                        bytes += unpacked.iter().map(|sample| sample.bytes() as u64).sum::<u64>();
                        samples.extend(unpacked);
                    }
                    (Err(failed), on_error) if on_error == OnError::Fail || failed.error.ends() => {
                        return Err(*failed.error);
                    }
                    (Err(failed), _) => self.note_skipped(&[Skipped::one(failed.key, &failed.error)], 1),
                }
            }
            if bytes > self.memory_bytes / 2 {
                return Err(Error::Usage {
                    problem: format!(
                        "the samples do not fit in half of the memory ({} MB)",
                        self.memory_bytes / 2_000_000
                    ),
                    remedy: "profile fewer samples, or without application caching".to_owned(),
                });
            }
        }
        Ok(InMemory { of: Arc::clone(source), samples })
    }
}

#[cfg(test)]
mod tests {
    use forebay_plan::Others;

    use super::*;

    fn series(rates: &[u64], filling: usize) -> Series {
        let run = |&samples: &u64| Run {
            samples,
            passes: 1,
            skipped: 0,
            seconds: 1.0,
            bytes_read: 0,
            first_batch: None,
            stats: None,
            others: Some(Others { cores: 0.0, disk_bytes_per_second: 0.0 }),
        };
        Series { runs: rates.iter().map(run).collect(), filling, ..Series::new() }
    }

    #[test]
    fn runs_that_are_unlike_the_others_are_run_again() {
        assert_eq!(series(&[], 0).settled(), 0);
        assert_eq!(series(&[100, 200], 0).settled(), 2, "there is no way to know which one is the outlier");
        assert_eq!(series(&[100, 104, 96], 0).settled(), 3);
        assert_eq!(series(&[100, 104, 60], 0).settled(), 2);
        assert_eq!(series(&[10, 100, 104, 102], 1).settled(), 4, "what fills the page cache is not compared");
        let mut disturbed = series(&[100, 101, 99, 100], 0);
        disturbed.runs[3].others = Some(Others { cores: 1.0, disk_bytes_per_second: 0.0 });
        assert_eq!(disturbed.settled(), 3);
    }
}
