//! How long an experiment should take.

use std::path::Path;

use forebay_engine::Progress;
use forebay_engine::profile::profile;
use forebay_plan::{Profile, Runs, summarize};

use super::Common;
use super::planned::{MadeFolder, PlannedRun};
use crate::error::{Error, Result};

/// What a profile takes in addition to its strategies: probing the storage, measuring steps.
const OVERHEAD_SECONDS: f64 = 3.0;
/// Building and measuring costs have a fixed overhead per strategy.
const STRATEGY_SECONDS: f64 = 0.2;

/// Seconds that each run should take, by the costs of a few samples. Runs on the same data share what was measured, and so do runs
/// on data that is yet to be made: of that, a few samples of a middling size are made and measured.
pub(super) fn seconds(runs: &[PlannedRun], common: &Common, work: &Path, progress: &dyn Progress) -> Result<Vec<f64>> {
    let measure = |run: &PlannedRun| -> Result<Profile> {
        std::fs::create_dir_all(work).map_err(Error::io("create the folder", work))?;
        let made = run.make_data(progress)?;
        let data = made.as_ref().map_or(&run.data, MadeFolder::data);
        let listing = run.list(data, common)?;
        Ok(profile(&run.pipeline, listing, &common.storage.storage, &run.options(common, Runs::None, work), progress)?)
    };
    let made: Vec<&PlannedRun> = runs.iter().filter(|run| run.order.is_some()).collect();
    let few = made.get(made.len() / 2).map(|run| run.with_samples(few_samples(run)));
    let of_few = few.as_ref().map(measure).transpose()?;
    let mut measured: Vec<(&str, Profile)> = Vec::new();
    let mut all = Vec::new();
    for run in runs {
        if let (Some(few), Some(costs)) = (&few, &of_few)
            && run.order.is_some()
        {
            let factor = run.made_bytes_each() / few.made_bytes_each();
            let made_bytes = run.made_bytes_each() * run.samples as f64;
            all.push(
                made_bytes / MADE_BYTES_PER_SECOND + run_seconds(run, &scaled(costs, factor, run.samples), common)?,
            );
            continue;
        }
        let name = run.pipeline.name();
        if !measured.iter().any(|(known, _)| *known == name) {
            measured.push((name, measure(run)?));
        }
        let found = measured.iter().find(|(known, _)| *known == name).map(|(_, profile)| profile);
        all.push(found.map_or(Ok(0.0), |profile| run_seconds(run, profile, common))?);
    }
    Ok(all)
}

/// How fast random numbers are made and written, about.
const MADE_BYTES_PER_SECOND: f64 = 200e6;

/// Enough to determine their costs, but not so many that generating them takes long.
fn few_samples(run: &PlannedRun) -> u64 {
    ((32e6 / run.made_bytes_each()) as u64).clamp(4, 32).min(run.samples)
}

/// The costs of this many samples that are `factor` times as large.
fn scaled(costs: &Profile, factor: f64, samples: u64) -> Profile {
    let mut costs = costs.clone();
    costs.data.samples = samples;
    for strategy in &mut costs.strategies {
        strategy.storage_bytes = (strategy.storage_bytes as f64 * factor) as u64;
        strategy.bytes_per_sample *= factor;
        strategy.prep_seconds *= factor;
        strategy.deserialize_cpu_seconds *= factor;
        strategy.online_cpu_seconds *= factor;
    }
    costs
}

/// What `run` should take by a profile of costs, which may be of other threads and another cache.
fn run_seconds(run: &PlannedRun, costs: &Profile, common: &Common) -> Result<f64> {
    let mut costs = costs.clone();
    let threads_before = costs.method.threads.min(costs.machine.cores).max(1) as f64;
    costs.method.threads = run.threads;
    costs.method.caching = run.caching;
    let threads = run.threads.min(costs.machine.cores).max(1) as f64;
    let samples = run.samples.min(costs.data.samples) as f64;
    let summaries = summarize(&costs, None).map_err(|source| Error::Plan { about: String::new(), source })?;
    let share = samples / costs.data.samples.max(1) as f64;
    // To prepare anything, the files are read once.
    let files = summaries.iter().find(|summary| summary.split.keeps_files());
    let reading = files.map_or(0.0, |summary| summary.epoch_seconds_total * share);
    let each = summaries.iter().map(|summary| {
        let prepare = summary.prep_seconds_total * share * threads_before / threads;
        let prepare = if summary.split.keeps_files() { 0.0 } else { prepare.max(reading) };
        let once = summary.epoch_seconds_total * share;
        // A run that is too short shows how often samples must come.
        let trial = if once < common.run.seconds { once } else { 0.0 };
        let runs = f64::from(run.runs.get()) * once.max(common.run.seconds);
        STRATEGY_SECONDS + prepare + trial + runs
    });
    Ok(OVERHEAD_SECONDS + each.sum::<f64>())
}
