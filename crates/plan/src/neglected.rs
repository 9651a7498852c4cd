//! What the cost model neglects, by what it was off by where strategies were run.
//!
//! What it neglects is time for each sample (see [`crate::prediction`]): 50 µs are half of a sample of a light strategy, and nothing of a heavy
//! one's. Where samples are inflated, there is more of it, and the more, the more bytes are inflated: readers and workers were timed apart,
//! and share caches and memory beside each other.

use crate::compression::{Family, family};
use crate::prediction::{Bound, decode_threads, predict, quotient};
use crate::profile::{Profile, StrategyProfile};
use crate::summary::{counted_runs, median};

/// How many seconds longer a sample of `strategy` should take than the model says; `None` where nothing was run that shows it. What was run
/// shows it where the same binds it.
pub(crate) fn neglected_seconds(profile: &Profile, strategy: &StrategyProfile) -> Option<f64> {
    let bound = predict(profile, strategy, None).bound_by;
    let seen: Vec<Seen> = profile.strategies.iter().filter_map(|other| seen(profile, other)).collect();
    let median_of = |which: &dyn Fn(&&Seen) -> bool| {
        median(&seen.iter().filter(which).map(|seen| seen.seconds).collect::<Vec<f64>>())
    };
    let of_all = || median_of(&|seen| seen.bound == bound);
    let of_plain = median_of(&|seen| seen.bound == bound && seen.inflated_bytes.is_none());
    let Some(inflated_bytes) = inflated_bytes(profile, strategy) else { return of_plain.or_else(of_all) };
    // What each sample takes, whatever is inflated, shows elsewhere if not here.
    let of_sample = of_plain.or_else(|| median_of(&|seen| seen.inflated_bytes.is_none())).unwrap_or(0.0);
    // By the same algorithm where one of those was run: how far each reaches back decides what it takes of the shared cache.
    let its = family_of(profile, strategy);
    let per_byte = |of_its: bool| {
        let here = seen.iter().filter(|seen| seen.bound == bound && (!of_its || seen.family == its));
        let each = here.filter_map(|seen| Some((seen.seconds - of_sample).max(0.0) / seen.inflated_bytes?));
        median(&each.collect::<Vec<f64>>())
    };
    match per_byte(true).or_else(|| per_byte(false)) {
        Some(per_byte) => Some(of_sample + (per_byte * inflated_bytes).min(beside_max(profile, strategy)?)),
        None => of_all(),
    }
}

/// What was seen of a strategy that was run.
struct Seen {
    bound: Bound,
    /// How many seconds longer a sample took than the model says.
    seconds: f64,
    inflated_bytes: Option<f64>,
    family: Option<Family>,
}

/// What was seen of `strategy` once its first batch was there, if it was run and nobody disturbed it.
fn seen(profile: &Profile, strategy: &StrategyProfile) -> Option<Seen> {
    let runs = counted_runs(profile, strategy);
    let rates = runs.iter().filter_map(|run| run.after_start()).map(|(samples, seconds)| samples / seconds);
    let rate = median(&rates.collect::<Vec<f64>>()).filter(|rate| *rate > 0.0)?;
    if runs.iter().any(|run| run.is_disturbed()) {
        return None;
    }
    let prediction = predict(profile, strategy, None);
    let seconds = (rate.recip() - prediction.samples_per_second?.recip()).max(0.0);
    let (inflated_bytes, family) = (inflated_bytes(profile, strategy), family_of(profile, strategy));
    Some(Seen { bound: prediction.bound_by, seconds, inflated_bytes, family })
}

/// What inflates `strategy`; `None` where nothing does.
fn family_of(profile: &Profile, strategy: &StrategyProfile) -> Option<Family> {
    profile.compression_cost(&strategy.name).and_then(family)
}

/// How many bytes a sample of `strategy` is inflated to; `None` where it is not.
fn inflated_bytes(profile: &Profile, strategy: &StrategyProfile) -> Option<f64> {
    let cost = profile.compression_cost(&strategy.name)?;
    quotient(strategy.bytes_per_sample * cost.ratio, 1.0)
}

/// How many seconds longer a sample may take because it is inflated beside workers: as long again as it takes alone, and no more. A small sample may
/// have shown more for each of its bytes, for other reasons.
fn beside_max(profile: &Profile, strategy: &StrategyProfile) -> Option<f64> {
    let cost = profile.compression_cost(&strategy.name)?;
    let alone = quotient(inflated_bytes(profile, strategy)?, cost.decompress_bytes_per_second)?;
    Some(alone / decode_threads(profile) as f64)
}
