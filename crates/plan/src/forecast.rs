//! Forecasts: the expected throughput of each strategy on a machine that was not measured.
//!
//! The cost model gives what storage and CPU allow there. Each is corrected by what the measurement here says of it: the
//! one that bound here by measured over modeled, which is its error; the other only upwards, where
//! the measurement exceeds it and so disproves it. So the same machine gives what was measured, and a lesser one never more.

use forebay_pipeline::Split;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::explain::{ERROR_WORTH_SAYING, binding};
use crate::prediction::{Bound, Prediction, decode_threads, disk_load, memory_load, predict, predict_cached, smallest};
use crate::profile::{Caching, Profile, StrategyProfile};
use crate::summary::{Summary, break_even_epochs, summarize};
use crate::units;
use crate::what_if::{WhatIf, hit_ratio};

/// One strategy on another machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The strategy.
    pub name: String,
    /// Where the pipeline is split.
    pub split: Split,
    /// Throughput as it was measured here.
    pub measured_samples_per_second: f64,
    /// Throughput here by the cost model.
    pub modeled_samples_per_second: Option<f64>,
    /// What the cost model says of it there, the trainer included; `bound_by` is what binds once both rates are corrected.
    pub prediction: Prediction,
    /// The share of its bytes that comes from memory there.
    pub cache_hit_ratio: f64,
    /// Whether it is memory and not storage that gives the bytes too slowly, where reading is what binds.
    pub memory_bound: bool,
    /// By what the model's rate of reading is multiplied because of the measurement here.
    pub load_correction: f64,
    /// By what the model's rate of processing is multiplied because of the measurement here.
    pub decode_correction: f64,
    /// Throughput to be expected there: the smallest of the corrected rates and the trainer's.
    pub expected_samples_per_second: f64,
    /// Bytes on storage of the entire data set there.
    pub storage_bytes_total: u64,
    /// Seconds to prepare the entire data set there.
    pub prep_seconds_total: f64,
    /// Seconds of one epoch over the entire data set there.
    pub epoch_seconds_total: f64,
    /// Throughput over that of the strategy that reads files every epoch, both there.
    pub speedup: Option<f64>,
    /// Epochs after which preparing has paid off there.
    pub break_even_epochs: Option<u64>,
    /// What binds it there, in words.
    pub sentence: String,
}

/// The forecasts of all strategies of `profile`, in its order, on the machine of `what_if` with a trainer that takes
/// `trainer` samples per second.
pub fn forecasts(profile: &Profile, what_if: &WhatIf, trainer: Option<f64>) -> Result<Vec<Forecast>> {
    what_if.check()?;
    let trainer = what_if.trainer_samples_per_second.or(trainer);
    let there = what_if.apply(profile);
    // With the samples there, so that storage and preparation cover all of them.
    let counted = Profile { data: there.data.clone(), ..profile.clone() };
    let mut summaries = summarize(&counted, None)?;
    let mut all = Vec::with_capacity(summaries.len());
    for (index, summary) in summaries.iter_mut().enumerate() {
        let forecast = forecast((profile, &there), index, summary, trainer);
        summary.samples_per_second = forecast.expected_samples_per_second;
        summary.prep_seconds_total = forecast.prep_seconds_total;
        summary.epoch_seconds_total = forecast.epoch_seconds_total;
        all.push(forecast);
    }
    if let Some(baseline) = summaries.iter().find(|summary| summary.split.keeps_files()) {
        for (forecast, summary) in all.iter_mut().zip(&summaries) {
            let speedup = summary.samples_per_second / baseline.samples_per_second;
            forecast.speedup = speedup.is_finite().then_some(speedup);
            forecast.break_even_epochs = break_even_epochs(summary, baseline);
        }
    }
    Ok(all)
}

fn forecast((here, there): (&Profile, &Profile), index: usize, summary: &Summary, trainer: Option<f64>) -> Forecast {
    let (strategy, moved) = (&here.strategies[index], &there.strategies[index]);
    let hits = hit_ratio(there, moved);
    let mut prediction = predict_cached(there, moved, trainer, hits);
    let memory_bound = reads_from_memory(there, moved, hits);
    let modeled = predict(here, strategy, None);
    let measured = summary.samples_per_second;
    let correction = |rate: Option<f64>, bound| match rate {
        Some(rate) if measured > 0.0 && (modeled.bound_by == bound || measured > rate) => measured / rate,
        _ => 1.0,
    };
    // What a disk gave here says nothing of memory there.
    let same_medium = memory_bound == (here.method.caching == Caching::System);
    let load_correction = if same_medium { correction(modeled.load, Bound::Storage) } else { 1.0 };
    let decode_correction = correction(modeled.decode, Bound::Cpu);
    let corrected = smallest(
        trainer,
        prediction.load.map(|rate| rate * load_correction),
        prediction.decode.map(|rate| rate * decode_correction),
    );
    let expected = corrected.map_or(measured, |(rate, _)| rate);
    prediction.bound_by = corrected.map_or(Bound::Unknown, |(_, bound)| bound);
    let error = match prediction.bound_by {
        Bound::Storage => load_correction,
        Bound::Cpu => decode_correction,
        Bound::Trainer | Bound::Unknown => 1.0,
    };
    // The samples that an epoch gives per sample of the data set: a step may make many of one.
    let reached = summary.epoch_seconds_total * measured;
    Forecast {
        name: strategy.name.clone(),
        split: strategy.split.clone(),
        measured_samples_per_second: measured,
        modeled_samples_per_second: modeled.samples_per_second,
        prediction,
        cache_hit_ratio: hits,
        memory_bound,
        load_correction,
        decode_correction,
        expected_samples_per_second: expected,
        storage_bytes_total: summary.storage_bytes_total,
        prep_seconds_total: prep_seconds(here, there, strategy),
        epoch_seconds_total: if expected > 0.0 { (reached / expected).min(f64::MAX) } else { f64::MAX },
        speedup: None,
        break_even_epochs: None,
        sentence: binding(there, moved, &prediction, hits) + &doubt(error),
    }
}

/// Whether memory gives the bytes more slowly than storage gives the rest.
pub(crate) fn reads_from_memory(profile: &Profile, strategy: &StrategyProfile, hits: f64) -> bool {
    match (memory_load(profile, strategy, hits), disk_load(profile, strategy, hits)) {
        (Some(memory), Some(disk)) => memory < disk,
        (memory, _) => memory.is_some(),
    }
}

/// That the model missed the measurement here by much, and that the forecast reckons with it.
fn doubt(correction: f64) -> String {
    if (correction - 1.0).abs() < ERROR_WORTH_SAYING {
        return String::new();
    }
    let side = if correction < 1.0 { "below" } else { "above" };
    format!(
        "; the measurement here was {} {side} the model, and the forecast reckons with that",
        units::percent((correction - 1.0).abs())
    )
}

/// Seconds to prepare everything there: the steps that are done once take less the more cores there are, the rest (reading,
/// encoding, writing) as long as here.
fn prep_seconds(here: &Profile, there: &Profile, strategy: &StrategyProfile) -> f64 {
    let steps = here.steps.get(..strategy.split.position).unwrap_or_default();
    let cpu_seconds: f64 = steps.iter().map(|step| step.cpu_seconds).sum();
    let [before, after] = [here, there].map(|profile| decode_threads(profile) as f64);
    let processing = (cpu_seconds * here.method.sample_count as f64 / before).min(strategy.prep_seconds);
    let seconds = strategy.prep_seconds - processing + processing * before / after;
    seconds * (there.data.samples as f64 / here.method.sample_count as f64)
}
