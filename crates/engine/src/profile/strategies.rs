//! Measuring the strategies: each is built and its costs are measured; then their runs take turns.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use forebay_pipeline::{RngKey, Strategy};
use forebay_plan::{Alone, Caching, CompressionCost, Profile, Run, Runs, StorageRates, StrategyProfile, promising};

use super::Profiler;
use super::alone::Halves;
use super::compressions::{Records, formats_of};
use super::costs::{self, OnlineCosts};
use super::leaders::BuildSeconds;
use super::runs::Series;
use crate::error::{Error, Result};
use crate::load::Online;
use crate::source::Source;
use crate::threads::cores;

/// The maximum size of stored strategies while their runs take turns.
const KEPT_BYTES_MAX: u64 = 4 << 30;

/// For this many requested strategies, one compressed strategy is measured in addition, and at least one: this takes about a quarter longer.
pub(super) const COMPRESSED_SHARE: usize = 4;

/// What was measured of a strategy so far.
struct Measured {
    strategy: Strategy,
    /// Where its data set is stored, and the size of it.
    folder: Option<PathBuf>,
    kept_bytes: u64,
    storage_bytes: u64,
    /// How many samples are stored.
    stored: f64,
    build_seconds: f64,
    prep_seconds: f64,
    costs: OnlineCosts,
    halves: Halves,
    /// What runs load from, and what they do to it; `None` once there are enough of them.
    loads: Option<(Arc<dyn Source>, Online)>,
    series: Series,
}

impl Measured {
    fn run_again(&mut self, profiler: &Profiler<'_>) -> Result<()> {
        match &self.loads {
            Some(loads) => profiler.run_again(f64::INFINITY, &self.strategy, loads, &mut self.series),
            None => Err(Error::internal("a strategy is run that was let go")),
        }
    }

    /// Gives back what runs need.
    fn let_go(&mut self) -> Result<()> {
        self.loads = None;
        match self.folder.take() {
            Some(folder) => std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder)),
            None => Ok(()),
        }
    }
}

impl Profiler<'_> {
    /// Measures each strategy of the options, and of what these do not have the compressions that promise most. Their runs take turns: a
    /// processor or a storage that is slower for a while is so for all of them, and not for the one that was being measured just then. How long each build
    /// took.
    pub(super) fn strategies(&self, profile: &mut Profile) -> Result<BuildSeconds> {
        let mut all = Vec::new();
        for strategy in &self.options.strategies {
            self.prepare_and_keep(strategy, &profile.storage, &mut all)?;
        }
        profile.compressions = self.compression_costs()?;
        profile.strategies = all.iter().map(|measured| self.described(measured)).collect();
        // What promises most comes first.
        let mut expected = if self.considers_compressions() { promising(profile) } else { Vec::new() };
        if matches!(self.options.runs, Runs::Each(_)) {
            expected.truncate((self.options.strategies.len() / COMPRESSED_SHARE).max(1));
            for strategy in expected.drain(..) {
                let strategy = Strategy::parse(self.pipeline, &strategy.name)?;
                self.prepare_and_keep(&strategy, &profile.storage, &mut all)?;
            }
        }
        while all.iter().any(|measured| self.wants_more(&measured.series)) {
            for measured in all.iter_mut().filter(|measured| self.wants_more(&measured.series)) {
                measured.run_again(self)?;
            }
        }
        let built = all.iter().map(|measured| (measured.strategy.to_string(), measured.build_seconds)).collect();
        profile.strategies.clear();
        for (number, mut measured) in all.into_iter().enumerate() {
            measured.let_go()?;
            let described = self.described(&measured);
            // In the order in which they were asked for, or after those of its split.
            if number < self.options.strategies.len() {
                profile.strategies.push(described);
            } else {
                insert(&mut profile.strategies, described);
            }
        }
        // Of those that are not run, the cost model speaks.
        for strategy in expected {
            insert(&mut profile.strategies, strategy);
        }
        Ok(built)
    }

    /// Whether compressions may be chosen that nobody asked for: what comes from memory is not faster for being smaller.
    fn considers_compressions(&self) -> bool {
        !self.options.compressions.is_empty() && self.options.caching == Caching::None
    }

    /// What each compression costs alone, at each split.
    fn compression_costs(&self) -> Result<Vec<CompressionCost>> {
        let candidates = if self.considers_compressions() { &self.options.compressions[..] } else { &[] };
        let asked = &self.options.strategies;
        let mut costs = Vec::new();
        // Who asks how long it would take does not want to wait for it.
        for plain in asked.iter().filter(|_| self.options.runs != Runs::None) {
            let formats = formats_of(self.pipeline, plain, asked, candidates);
            if formats.is_empty() {
                continue;
            }
            self.progress.note(&format!("compressing {plain} in memory"));
            // A study says what each compression does alone; what loads best is what threads do well at the same time.
            let is_study = matches!(self.options.runs, Runs::Each(_));
            let threads = if is_study { 1 } else { self.options.threads.min(cores()) };
            let records = Records::of(self.pipeline, plain, &self.records_from, threads, self.progress)?;
            costs.extend(records.costs(&formats, self.progress)?);
        }
        Ok(costs)
    }

    /// Prepares a strategy and adds it to `all`. A strategy that is too large to be stored until the others have been built is run now.
    fn prepare_and_keep(&self, strategy: &Strategy, rates: &StorageRates, all: &mut Vec<Measured>) -> Result<()> {
        let bytes_max = KEPT_BYTES_MAX.min(self.memory_bytes / 4);
        let mut measured = self.prepare(strategy, all.len(), rates)?;
        let kept = |measured: &Measured| if measured.folder.is_some() { measured.kept_bytes } else { 0 };
        let bytes: u64 = all.iter().map(kept).sum();
        if self.options.caching == Caching::Application || bytes + measured.kept_bytes > bytes_max {
            while self.wants_more(&measured.series) {
                measured.run_again(self)?;
            }
            measured.let_go()?;
        }
        all.push(measured);
        Ok(())
    }

    /// Builds what a strategy stores, and measures everything but its runs.
    fn prepare(&self, strategy: &Strategy, number: usize, rates: &StorageRates) -> Result<Measured> {
        let keeps_files = strategy.split.keeps_files();
        // Not by name: a pipeline file chooses names, and must not choose folders.
        let folder = self.scratch.path().join(format!("dataset-{number}"));
        let begun = Instant::now();
        let kept = self.keep(strategy, &folder)?;
        let build_seconds = if keeps_files { 0.0 } else { begun.elapsed().as_secs_f64() };
        let prep_seconds = match self.options.runs {
            _ if keeps_files => 0.0,
            Runs::Each(_) => build_seconds,
            // It was read from a faster storage than the one that is asked about.
            Runs::None | Runs::Fast => build_seconds.max(self.listing.len() as f64 / rates.files_per_second),
        };
        let rng_key = RngKey { seed: self.options.seed, epoch: 0 };
        let (shuffle, source) = (self.options.shuffle, &*kept.built_from);
        let costs = costs::online_costs(source, self.pipeline, shuffle, rng_key, self.effort, self.progress)?;
        // What the build and the costs above left in the page cache must not help.
        self.forget(&*kept.loaded_from)?;
        let loads = self.loads(strategy, &kept)?;
        let halves = self.halves(&loads.0, &loads.1, costs.deserialize + costs.steps)?;
        Ok(Measured {
            strategy: strategy.clone(),
            kept_bytes: if keeps_files { 0 } else { kept.bytes },
            folder: (!keeps_files).then_some(folder),
            storage_bytes: kept.bytes,
            stored: kept.loaded_from.samples() as f64,
            build_seconds,
            prep_seconds,
            costs,
            halves,
            loads: Some(loads),
            series: Series::new(),
        })
    }

    /// What was measured of a strategy so far.
    fn described(&self, measured: &Measured) -> StrategyProfile {
        let Measured { strategy, storage_bytes, stored, prep_seconds, costs, halves, series, .. } = measured;
        let Halves { reading, working } = *halves;
        // Costs count per sample that reaches the trainer: a step may make many of one, and damaged ones are left out.
        let reached = series.runs.first().map_or(stored * costs.given, Run::samples_each_pass).max(1.0);
        let unpacked = self.options.caching == Caching::Application;
        let costs = costs.scaled_to(working.as_ref(), stored / reached, unpacked);
        let reading = reading.map(|reading| of_reached(reading, stored / reached));
        StrategyProfile {
            name: strategy.to_string(),
            storage_bytes: *storage_bytes,
            bytes_per_sample: *storage_bytes as f64 / reached,
            prep_seconds: *prep_seconds,
            deserialize_cpu_seconds: costs.deserialize,
            online_cpu_seconds: costs.steps,
            reading,
            working,
            split: strategy.split.clone(),
            runs: series.runs.clone(),
            system: series.system.clone(),
            lossy: strategy.is_lossy(),
        }
    }
}

/// Adds a strategy after those of its split.
fn insert(strategies: &mut Vec<StrategyProfile>, strategy: StrategyProfile) {
    let last = strategies.iter().rposition(|other| other.split == strategy.split);
    strategies.insert(last.map_or(strategies.len(), |last| last + 1), strategy);
}

/// The same per sample that reaches the trainer, where `per_reached` samples are read for one.
fn of_reached(reading: Alone, per_reached: f64) -> Alone {
    Alone {
        samples_per_second: reading.samples_per_second / per_reached,
        min_samples_per_second: reading.min_samples_per_second / per_reached,
        max_samples_per_second: reading.max_samples_per_second / per_reached,
        cpu_seconds: reading.cpu_seconds * per_reached,
        ..reading
    }
}
