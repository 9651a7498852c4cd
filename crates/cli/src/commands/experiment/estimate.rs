//! How long an experiment should take.

use std::path::Path;

use forebay_engine::Progress;
use forebay_engine::data::Listing;
use forebay_engine::profile::profile;
use forebay_plan::{Profile, summarise};

use super::Common;
use super::planned::PlannedRun;
use crate::error::{Error, Result};

/// What a profile takes besides its strategies: probing the storage, measuring steps.
const OVERHEAD_SECONDS: f64 = 3.0;
/// Building, and looking at costs, has overheads of its own for each strategy.
const STRATEGY_SECONDS: f64 = 0.2;

/// Seconds that each run should take, by the costs of a few samples. Runs on the same data share what was measured.
/// Data that is yet to be made takes what its bytes take at a rate that any machine has.
pub(super) fn seconds(runs: &[PlannedRun], common: &Common, work: &Path, progress: &dyn Progress) -> Result<Vec<f64>> {
    let mut measured: Vec<(String, Profile)> = Vec::new();
    let mut all = Vec::new();
    for run in runs {
        if let Some(order) = &run.order {
            all.push(made_seconds(run, order.samples * order.tensors.spec().bytes() as u64));
            continue;
        }
        let name = run.pipeline.name().to_owned();
        if !measured.iter().any(|(known, _)| *known == name) {
            std::fs::create_dir_all(work).map_err(Error::io("create the folder", work))?;
            let listing = Listing::scan(run.pipeline.source(), &run.data)?;
            let options = run.options(common, 0, work);
            measured
                .push((name.clone(), profile(&run.pipeline, listing, &common.storage.storage, &options, progress)?));
        }
        let found = measured.iter().find(|(known, _)| *known == name).map(|(_, profile)| profile);
        all.push(found.map_or(Ok(0.0), |profile| run_seconds(run, profile))?);
    }
    Ok(all)
}

/// How fast data is made, built and loaded, about: as fast as a slow disk writes.
const MADE_BYTES_PER_SECOND: f64 = 100e6;

fn made_seconds(run: &PlannedRun, bytes: u64) -> f64 {
    // Made once; each strategy is built once and loaded `runs_total` times.
    let passes = 1.0 + run.strategies.len() as f64 * f64::from(1 + run.runs_total);
    OVERHEAD_SECONDS + passes * bytes as f64 / MADE_BYTES_PER_SECOND
}

/// What `run` should take by a profile of costs, which may be of other threads and another cache.
fn run_seconds(run: &PlannedRun, costs: &Profile) -> Result<f64> {
    let mut costs = costs.clone();
    let threads_before = costs.method.threads.min(costs.machine.cores).max(1) as f64;
    costs.method.threads = run.threads;
    costs.method.caching = run.caching;
    let threads = run.threads.min(costs.machine.cores).max(1) as f64;
    let samples = run.samples.min(costs.data.samples) as f64;
    let summaries = summarise(&costs, None).map_err(|source| Error::Plan { about: String::new(), source })?;
    let each = summaries.iter().map(|summary| {
        let share = samples / costs.data.samples.max(1) as f64;
        let prepare = summary.prep_seconds_total * share * threads_before / threads;
        STRATEGY_SECONDS + prepare + f64::from(run.runs_total) * summary.epoch_seconds_total * share
    });
    Ok(OVERHEAD_SECONDS + each.sum::<f64>())
}
