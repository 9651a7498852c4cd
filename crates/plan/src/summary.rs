//! What the runs of each strategy come to, and what that means for the whole data set.

use forebay_pipeline::Split;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::neglected::neglected_seconds;
use crate::prediction::{Bound, predict, quotient};
use crate::profile::{Caching, Profile, Run, StrategyProfile};
use crate::stats::Stats;

/// One strategy in numbers. These are also the keys of `strategies` in `profile --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The strategy.
    pub name: String,
    /// Where the pipeline is split.
    pub split: Split,
    /// Throughput: the median of the runs' rates, each taken once its first batch was there, without runs that other programs disturbed. Where all
    /// were, what the cost model expects, which goes by CPU time. Where there were no runs, that too, less what it was off by
    /// where strategies that are bound by the same were run; 0 where it knows no bound.
    pub samples_per_second: f64,
    /// The sample standard deviation of the runs' rates; 0 for a single run, which shows no spread.
    pub samples_per_second_std: f64,
    /// The slowest run; without runs, the least that the cost model expects.
    pub min_samples_per_second: f64,
    /// The fastest run; without runs, or where all were disturbed, the most that the cost model expects.
    pub max_samples_per_second: f64,
    /// How many runs these are of: all, or under system caching all but the first, without those that were disturbed.
    pub runs: usize,
    /// Whether other programs disturbed every run, so that throughput is by the cost model.
    #[serde(default)]
    pub disturbed: bool,
    /// How long the first batch took to come: the median of the runs.
    #[serde(default)]
    pub first_batch_seconds: Option<f64>,
    /// Bytes on storage of the samples measured.
    pub storage_bytes: u64,
    /// Bytes on storage of the whole data set, in proportion to its samples.
    pub storage_bytes_total: u64,
    /// Seconds to prepare the samples measured.
    pub prep_seconds: f64,
    /// Seconds to prepare the whole data set, in proportion to its samples.
    pub prep_seconds_total: f64,
    /// Seconds of one epoch over the whole data set at throughput, or at the trainer's rate where that is less.
    pub epoch_seconds_total: f64,
    /// Throughput by the cost model, without a trainer: there was none in the measurement.
    pub predicted_samples_per_second: Option<f64>,
    /// (predicted - measured) / measured; above 0 where the model promises more than was measured.
    pub prediction_error: Option<f64>,
    /// What limits it: as the runs showed it, where their threads were watched, by the cost model otherwise; the trainer included.
    pub bound_by: Bound,
    /// What limits it by the cost model, without a trainer.
    #[serde(default = "unknown")]
    pub modeled_bound_by: Bound,
    /// Throughput over that of the strategy that reads files every epoch; `None` where that was not measured.
    pub speedup: Option<f64>,
    /// Epochs after which preparing has paid off against reading files every epoch; `None` where it never does or where
    /// that was not measured.
    pub break_even_epochs: Option<u64>,
    /// Whether the stored encoding is lossy.
    pub lossy: bool,
}

/// Summarizes every strategy of `profile`, in its order, with a trainer that takes `trainer` samples per second.
pub fn summarize(profile: &Profile, trainer: Option<f64>) -> Result<Vec<Summary>> {
    profile.check()?;
    let mut summaries: Vec<_> =
        profile.strategies.iter().map(|strategy| summarize_one(profile, strategy, trainer)).collect();
    let Some(baseline) = summaries.iter().find(|summary| summary.split.keeps_files()).cloned() else {
        return Ok(summaries);
    };
    for summary in &mut summaries {
        let speedup = summary.samples_per_second / baseline.samples_per_second;
        summary.speedup = speedup.is_finite().then_some(speedup);
        summary.break_even_epochs = break_even_epochs(summary, &baseline);
    }
    Ok(summaries)
}

/// After how many epochs preparing `strategy` has paid off against `baseline`: the smallest integer for which its
/// preparation and epochs together take no longer. `None` where that never happens.
pub fn break_even_epochs(strategy: &Summary, baseline: &Summary) -> Option<u64> {
    let extra_seconds = strategy.prep_seconds_total - baseline.prep_seconds_total;
    let saved_seconds = baseline.epoch_seconds_total - strategy.epoch_seconds_total;
    if extra_seconds <= 0.0 && saved_seconds >= 0.0 {
        return Some(0);
    }
    // What two divisions round differently is nothing saved.
    if saved_seconds <= 1e-12 * baseline.epoch_seconds_total {
        return None;
    }
    let epochs = extra_seconds / saved_seconds;
    // A rounding error above an integer does not count as another epoch. `u64::MAX` epochs are never.
    let whole = (epochs * (1.0 - f64::EPSILON)).ceil();
    (saved_seconds > 0.0 && extra_seconds > 0.0 && whole < u64::MAX as f64).then_some(whole as u64)
}

fn unknown() -> Bound {
    Bound::Unknown
}

/// The runs that determine throughput: with system caching those after the first, which fills the page cache; without those
/// that were disturbed, if any was not.
pub(crate) fn counted_runs<'a>(profile: &Profile, strategy: &'a StrategyProfile) -> Vec<&'a Run> {
    let runs = match (profile.method.caching, strategy.runs.as_slice()) {
        (Caching::System, [_, steady @ ..]) => steady,
        (_, runs) => runs,
    };
    let quiet: Vec<&Run> = runs.iter().filter(|run| !run.is_disturbed()).collect();
    if quiet.is_empty() { runs.iter().collect() } else { quiet }
}

/// How the threads of the median run spent their time, if it was observed for long enough.
pub(crate) fn seen(profile: &Profile, strategy: &StrategyProfile) -> Option<Stats> {
    let mut runs = counted_runs(profile, strategy);
    runs.sort_by(|one, other| one.samples_per_second().total_cmp(&other.samples_per_second()));
    // A run that ended with its first batch, or soon after it, shows nothing.
    runs.get(runs.len() / 2).and_then(|run| run.stats).filter(Stats::tells)
}

pub(crate) fn summarize_one(profile: &Profile, strategy: &StrategyProfile, trainer: Option<f64>) -> Summary {
    let runs = counted_runs(profile, strategy);
    let rates: Vec<f64> = runs.iter().map(|run| run.samples_per_second()).collect();
    let modeled = predict(profile, strategy, None);
    let predicted = modeled.samples_per_second;
    let disturbed = runs.iter().any(|run| run.is_disturbed());
    let measured = median(&rates);
    let throughput = match (measured, predicted) {
        // What others left of the machine is less than what it can do.
        (Some(measured), Some(predicted)) if disturbed => predicted.max(measured),
        (Some(measured), _) => measured,
        (None, predicted) => {
            let expected = corrected(profile, strategy, predicted.unwrap_or(0.0));
            compressed_limit(profile, strategy).map_or(expected, |limit| expected.min(limit))
        }
    };
    // If the model replaces a measurement, so does its interval.
    let expected = |bound: Option<f64>| match (bound, predicted) {
        (Some(bound), Some(predicted)) if predicted > 0.0 => throughput * bound / predicted,
        _ => throughput,
    };
    let first_batches: Vec<f64> = runs.iter().filter_map(|run| run.first_batch).map(|first| first.seconds).collect();
    let samples = samples_reached(strategy);
    let whole = profile.data.samples as f64 / profile.method.sample_count as f64;
    let epoch_seconds = samples * whole / throughput;
    let trainer_seconds = trainer.map_or(0.0, |trainer| samples * whole / trainer);
    Summary {
        name: strategy.name.clone(),
        split: strategy.split.clone(),
        samples_per_second: throughput,
        samples_per_second_std: deviation(&rates),
        min_samples_per_second: rates
            .iter()
            .copied()
            .reduce(f64::min)
            .unwrap_or_else(|| expected(modeled.min_samples_per_second)),
        max_samples_per_second: match rates.iter().copied().reduce(f64::max) {
            Some(highest) if disturbed => highest.max(expected(modeled.max_samples_per_second)),
            Some(highest) => highest,
            None => expected(modeled.max_samples_per_second),
        },
        runs: runs.len(),
        disturbed,
        first_batch_seconds: median(&first_batches),
        storage_bytes: strategy.storage_bytes,
        storage_bytes_total: (strategy.storage_bytes as f64 * whole).round() as u64,
        prep_seconds: strategy.prep_seconds,
        prep_seconds_total: strategy.prep_seconds * whole,
        // A trainer that takes next to nothing must not make it infinite, which JSON cannot hold.
        epoch_seconds_total: epoch_seconds.max(trainer_seconds).min(f64::MAX),
        predicted_samples_per_second: predicted,
        prediction_error: predicted
            .filter(|_| !runs.is_empty() && !disturbed)
            .map(|predicted| predicted / throughput - 1.0)
            .filter(|error| error.is_finite()),
        bound_by: bound_by(profile, strategy, trainer, throughput),
        modeled_bound_by: modeled.bound_by,
        speedup: None,
        break_even_epochs: None,
        lossy: strategy.lossy,
    }
}

/// What bounds a strategy that gives `throughput` samples per second: the trainer if that takes no more, otherwise what was seen.
fn bound_by(profile: &Profile, strategy: &StrategyProfile, trainer: Option<f64>, throughput: f64) -> Bound {
    // In disturbed runs the CPU seems to be the bottleneck, whatever it is on a quiet machine.
    let quiet = counted_runs(profile, strategy).iter().all(|run| !run.is_disturbed());
    match seen(profile, strategy).filter(|_| quiet) {
        Some(_) if trainer.is_some_and(|trainer| trainer <= throughput) => Bound::Trainer,
        Some(stats) => stats.bound_by(profile.machine.cores),
        None => predict(profile, strategy, trainer).bound_by,
    }
}

/// What is expected of a strategy that was not run and that the cost model gives `predicted` samples per second: as much as others took
/// longer for a sample than the model says, it will take longer, too; see [`neglected_seconds`].
fn corrected(profile: &Profile, strategy: &StrategyProfile, predicted: f64) -> f64 {
    match neglected_seconds(profile, strategy) {
        // Where nothing was neglected, rounding twice must not make it faster than predicted.
        Some(neglected) if predicted > 0.0 => (predicted.recip() + neglected).recip().min(predicted),
        _ => predicted,
    }
}

/// What a compressed strategy gives at the most: as many times what its split gives as it is, as it reads fewer bytes. The two may be
/// corrected by the runs of others, which may have been slower or faster than the model says.
fn compressed_limit(profile: &Profile, strategy: &StrategyProfile) -> Option<f64> {
    let cost = profile.compression_cost(&strategy.name)?;
    let plain = profile.strategies.iter().find(|plain| plain.name == cost.plain)?;
    let limit = summarize_one(profile, plain, None).samples_per_second * plain.bytes_per_sample;
    quotient(limit, strategy.bytes_per_sample)
}

/// How many samples reach the trainer per measured one.
fn samples_reached(strategy: &StrategyProfile) -> f64 {
    let samples = strategy.storage_bytes as f64 / strategy.bytes_per_sample;
    // Samples of no bytes are counted by a run.
    let run = || strategy.runs.first().map_or(0.0, Run::samples_each_pass);
    if samples.is_finite() { samples } else { run() }
}

/// The value in the middle, or between the two that are; `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(upper) if sorted.len().is_multiple_of(2) => Some(f64::midpoint(sorted[middle - 1], *upper)),
        found => found.copied(),
    }
}

/// The sample standard deviation (over n - 1); 0 for fewer than two values.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}
