//! Measuring the strategies: each is built and its costs are measured; then their runs take turns.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use forebay_pipeline::{RngKey, Strategy};
use forebay_plan::{Alone, Caching, Run, Runs, StorageRates, StrategyProfile};

use super::Profiler;
use super::alone::Halves;
use super::costs::{self, OnlineCosts};
use super::runs::Series;
use crate::error::{Error, Result};
use crate::load::Online;
use crate::source::Source;

/// What strategies keep while their runs take turns, at the most.
const KEPT_BYTES_MAX: u64 = 4 << 30;

/// What was measured of a strategy so far.
struct Measured<'s> {
    strategy: &'s Strategy,
    /// Where it keeps what it has built for this, and how large that is.
    folder: Option<PathBuf>,
    kept_bytes: u64,
    storage_bytes: u64,
    /// How many samples are stored.
    stored: f64,
    prep_seconds: f64,
    costs: OnlineCosts,
    halves: Halves,
    /// What runs load from, and what they do to it; `None` once there are enough of them.
    loads: Option<(Arc<dyn Source>, Online)>,
    series: Series,
}

impl Measured<'_> {
    fn run_again(&mut self, profiler: &Profiler<'_>) -> Result<()> {
        match &self.loads {
            Some(loads) => profiler.run_again(self.strategy, loads, &mut self.series),
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
    /// Measures each strategy. Their runs take turns: a processor or a storage that is slower for a while is so for all of them, and not
    /// for the one that was being measured just then.
    pub(super) fn strategies(&self, strategies: &[Strategy], rates: &StorageRates) -> Result<Vec<StrategyProfile>> {
        let bytes_max = KEPT_BYTES_MAX.min(self.memory_bytes / 4);
        let (mut all, mut bytes) = (Vec::new(), 0);
        for (number, strategy) in strategies.iter().enumerate() {
            let mut measured = self.prepare(strategy, number, rates)?;
            // What is too large to be kept until the others have had their turn is run now.
            if self.options.caching == Caching::Application || bytes + measured.kept_bytes > bytes_max {
                while self.wants_more(&measured.series) {
                    measured.run_again(self)?;
                }
                measured.let_go()?;
            } else {
                bytes += measured.kept_bytes;
            }
            all.push(measured);
        }
        while all.iter().any(|measured| self.wants_more(&measured.series)) {
            for measured in all.iter_mut().filter(|measured| self.wants_more(&measured.series)) {
                measured.run_again(self)?;
            }
        }
        all.into_iter().map(|measured| self.finish(measured)).collect()
    }

    /// Builds what a strategy keeps, and measures everything but its runs.
    fn prepare<'s>(&self, strategy: &'s Strategy, number: usize, rates: &StorageRates) -> Result<Measured<'s>> {
        let keeps_files = strategy.split.keeps_files();
        // Not by name: a pipeline file chooses names, and must not choose folders.
        let folder = self.scratch.path().join(format!("dataset-{number}"));
        let begun = Instant::now();
        let kept = self.keep(strategy, &folder)?;
        let prep_seconds = match self.options.runs {
            _ if keeps_files => 0.0,
            Runs::Each(_) => begun.elapsed().as_secs_f64(),
            // It was read from a faster storage than the one that is asked about.
            Runs::None | Runs::Fast => {
                begun.elapsed().as_secs_f64().max(self.listing.len() as f64 / rates.files_per_second)
            }
        };
        let rng_key = RngKey { seed: self.options.seed, epoch: 0 };
        let (shuffle, source) = (self.options.shuffle, &*kept.built_from);
        let costs = costs::online_costs(source, self.pipeline, shuffle, rng_key, self.effort, self.progress)?;
        // What the build and the costs above left in the page cache must not help.
        self.forget(&*kept.loaded_from)?;
        let loads = self.loads(strategy, &kept)?;
        let halves = self.halves(&loads.0, &loads.1, costs.deserialize + costs.steps)?;
        Ok(Measured {
            strategy,
            kept_bytes: if keeps_files { 0 } else { kept.bytes },
            folder: (!keeps_files).then_some(folder),
            storage_bytes: kept.bytes,
            stored: kept.loaded_from.samples() as f64,
            prep_seconds,
            costs,
            halves,
            loads: Some(loads),
            series: Series::new(),
        })
    }

    fn finish(&self, mut measured: Measured<'_>) -> Result<StrategyProfile> {
        measured.let_go()?;
        let Measured { strategy, storage_bytes, stored, prep_seconds, costs, series, .. } = measured;
        let Halves { reading, working } = measured.halves;
        // Costs count per sample that reaches the trainer: a step may make many of one, and damaged ones are left out.
        let reached = series.runs.first().map_or(stored * costs.given, Run::samples_each_pass).max(1.0);
        let unpacked = self.options.caching == Caching::Application;
        let costs = costs.scaled_to(working.as_ref(), stored / reached, unpacked);
        let reading = reading.map(|reading| of_reached(reading, stored / reached));
        Ok(StrategyProfile {
            name: strategy.to_string(),
            storage_bytes,
            bytes_per_sample: storage_bytes as f64 / reached,
            prep_seconds,
            deserialize_cpu_seconds: costs.deserialize,
            online_cpu_seconds: costs.steps,
            reading,
            working,
            split: strategy.split.clone(),
            runs: series.runs,
            system: series.system,
            lossy: strategy.is_lossy(),
        })
    }
}

/// The same per sample that reaches the trainer, where `per_reached` samples are read for one.
fn of_reached(reading: Alone, per_reached: f64) -> Alone {
    Alone {
        samples_per_second: reading.samples_per_second / per_reached,
        samples_per_second_min: reading.samples_per_second_min / per_reached,
        samples_per_second_max: reading.samples_per_second_max / per_reached,
        cpu_seconds: reading.cpu_seconds * per_reached,
        ..reading
    }
}
