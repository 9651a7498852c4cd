//! Which compression to keep a split in, or none, and why.
//!
//! A compression pays where reading binds: fewer bytes come in less time, and readers inflate them. It does not where the processor binds,
//! or where inflating takes longer than the bytes that it saves. Both are known before anything is built compressed: the ratio and the
//! rate of inflating are measured on some records of the split, each alone ([`CompressionCost`]), the rest is the cost model's.
//!
//! ```text
//! reader = what a read takes besides its bytes + bytes / ratio / rate of one stream + bytes / rate of inflating
//! load   = min(rate of all streams / (bytes / ratio), readers / reader)
//! ```
//!
//! A reader inflates what it has read before it reads on, and there are [`INFLATING_READERS`] for each worker. So where each stream has a rate of
//! its own, as over a network, inflating takes of its time; where all streams share one disk, another reads meanwhile.

use std::borrow::Cow;
use std::cmp::Ordering;

use forebay_pipeline::StorageFormat;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::objective::Objective;
use crate::prediction::{Bound, decode_threads, predict, predict_cached, quotient, shards_bytes_per_second};
use crate::profile::{Alone, Caching, CompressionCost, Profile, StrategyProfile};
use crate::summary::{Summary, summarize};
use crate::units;
use crate::what_if::{WhatIf, hit_ratio};

/// So many readers there are for each worker where they inflate what they read: while one does, another waits for the storage.
pub const INFLATING_READERS: usize = 2;

/// What a compression promises must be more than the model may be off by.
const GAIN_MIN: f64 = 0.05;

/// Rates that differ by less are alike: what is prepared sooner is taken then.
const ALIKE: f64 = 0.02;

/// How one split is best kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompressionChoice {
    /// The strategy that keeps the split as it is.
    pub strategy: String,
    /// In which format it is better kept; `None` where it is best as it is.
    pub compression: Option<String>,
    /// Throughput of what is chosen: measured, or by the cost model.
    pub samples_per_second: f64,
    /// Throughput of the split as it is.
    pub plain_samples_per_second: f64,
    /// Why, with the figures that decide.
    pub sentence: String,
}

impl Profile {
    /// What was measured of the format of strategy `name`, alone.
    pub fn compression_cost(&self, name: &str) -> Option<&CompressionCost> {
        self.compressions.iter().find(|cost| cost.strategy == name)
    }

    fn strategy(&self, name: &str) -> Option<&StrategyProfile> {
        self.strategies.iter().find(|strategy| strategy.name == name)
    }
}

/// The compressed strategies that were not measured and should be faster than their split as it is, by the cost model: of each split the
/// best one, the most promising first. They have no runs.
pub fn promising(profile: &Profile) -> Vec<StrategyProfile> {
    most_promising(profile, None)
}

/// How every split is best kept of which a compression was measured.
pub fn compression_choices(profile: &Profile) -> Result<Vec<CompressionChoice>> {
    let mut all = profile.clone();
    all.strategies.extend(promising(profile));
    let summaries = summarize(&all, None)?;
    let mut choices: Vec<CompressionChoice> = Vec::new();
    for cost in &profile.compressions {
        let of_this = |choice: &CompressionChoice| choice.strategy == cost.plain;
        if !choices.iter().any(of_this) {
            choices.extend(choice(&all, &summaries, &cost.plain));
        }
    }
    Ok(choices)
}

/// How the split is best kept that `plain` keeps as it is; `None` where that was not measured.
fn choice(profile: &Profile, summaries: &[Summary], plain: &str) -> Option<CompressionChoice> {
    let rate = |name: &str| summaries.iter().find(|summary| summary.name == name).map(|one| one.samples_per_second);
    let plain_rate = rate(plain)?;
    let costs = profile.compressions.iter().filter(|cost| cost.plain == plain);
    let found = costs.filter_map(|cost| Some((cost, rate(&cost.strategy)?)));
    let best = found.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let best = best.filter(|(_, rate)| *rate > plain_rate * (1.0 + ALIKE));
    Some(CompressionChoice {
        strategy: plain.to_owned(),
        compression: best.map(|(cost, _)| cost.compression.clone()),
        samples_per_second: best.map_or(plain_rate, |(_, rate)| rate),
        plain_samples_per_second: plain_rate,
        sentence: match best {
            Some((cost, _)) => format!("`{}` {}", cost.compression, gain(profile, cost)?),
            None => kept(profile, plain)?,
        },
    })
}

/// Why `strategy` is kept as it is kept, where compressions of its split were measured, without a final period.
pub(crate) fn why(profile: &Profile, strategy: &str) -> Option<String> {
    match profile.compression_cost(strategy) {
        Some(cost) => Some(format!("`{}` {}", cost.compression, gain(profile, cost)?)),
        None => kept(profile, strategy).map(|kept| format!("It is {kept}")),
    }
}

/// `reads 3.1× fewer bytes; inflating costs 0.4 ms of the 2.1 ms that the disk took`.
fn gain(profile: &Profile, cost: &CompressionCost) -> Option<String> {
    let plain = profile.strategy(&cost.plain)?;
    let disk_seconds = quotient(1.0, predict(profile, plain, None).load?)?;
    let bytes = match profile.strategy(&cost.strategy) {
        Some(measured) => measured.bytes_per_sample,
        None => plain.bytes_per_sample / cost.ratio,
    };
    let times = units::number(plain.bytes_per_sample / bytes);
    let inflating_seconds = seconds_of(plain.bytes_per_sample, cost.decompress_bytes_per_second);
    let what = if cost.compression.parse::<StorageFormat>().is_ok_and(|format| !format.has_plain_fields()) {
        "decoding"
    } else {
        "inflating"
    };
    let medium = if profile.method.caching == Caching::None { "the disk" } else { "memory" };
    let [inflating, disk] = [inflating_seconds, disk_seconds].map(units::seconds);
    let but = if inflating_seconds < disk_seconds { " of" } else { ", more than" };
    Some(format!("reads {times}× fewer bytes; {what} costs {inflating}{but} the {disk} that {medium} took"))
}

/// Why nothing that was measured would make the split faster.
fn kept(profile: &Profile, name: &str) -> Option<String> {
    let plain = profile.strategy(name)?;
    let costs = profile.compressions.iter().filter(|cost| cost.plain == name);
    let rate = |cost: &CompressionCost| match profile.strategy(&cost.strategy) {
        Some(strategy) => predict(profile, strategy, None).samples_per_second,
        None => predict(profile, &modeled(profile, plain, cost), None).samples_per_second,
    };
    let best = costs.max_by(|one, other| rate(one).unwrap_or(0.0).total_cmp(&rate(other).unwrap_or(0.0)))?;
    let prediction = predict(profile, plain, None);
    let seconds = |rate: Option<f64>| rate.and_then(|rate| quotient(1.0, rate)).map(units::seconds);
    if prediction.bound_by == Bound::Cpu
        && let (Some(disk), Some(work)) = (seconds(prediction.load), seconds(prediction.decode))
    {
        let nothing = "so that fewer bytes gain nothing";
        return Some(format!("kept as it is: reading takes {disk} a sample and work {work}, {nothing}"));
    }
    Some(format!("kept as it is: the best compression, `{}`, {}", best.compression, gain(profile, best)?))
}

/// `profile`, and of a machine that was not measured what is promising there.
pub(crate) fn considered<'p>(profile: &'p Profile, objective: &Objective) -> Cow<'p, Profile> {
    let Some(what_if) = &objective.what_if else { return Cow::Borrowed(profile) };
    let more = most_promising(profile, Some(what_if));
    if more.is_empty() {
        return Cow::Borrowed(profile);
    }
    let mut all = profile.clone();
    all.strategies.extend(more);
    Cow::Owned(all)
}

fn most_promising(profile: &Profile, what_if: Option<&WhatIf>) -> Vec<StrategyProfile> {
    let new = |cost: &&CompressionCost| profile.strategy(&cost.strategy).is_none();
    let mut all = profile.clone();
    all.strategies.extend(unrun(profile));
    let there = what_if.map_or_else(|| Cow::Borrowed(&all), |what_if| Cow::Owned(what_if.apply(&all)));
    let rate = |name: &str| {
        let strategy = there.strategy(name)?;
        let expected = match what_if {
            Some(_) => predict_cached(&there, strategy, None, hit_ratio(&there, strategy)),
            None => predict(&there, strategy, None),
        };
        expected.samples_per_second
    };
    let mut found: Vec<(f64, &CompressionCost)> = Vec::new();
    for plain in &profile.strategies {
        let Some(plain_rate) = rate(&plain.name) else { continue };
        let costs = || profile.compressions.iter().filter(|cost| cost.plain == plain.name);
        let rated = || costs().filter_map(|cost| Some((rate(&cost.strategy)?, cost)));
        let highest = rated().map(|(rate, _)| rate).fold(0.0, f64::max);
        let sooner = |one: &CompressionCost, other: &CompressionCost| {
            one.compress_bytes_per_second.total_cmp(&other.compress_bytes_per_second)
        };
        let alike = rated().filter(|(rate, _)| *rate >= highest * (1.0 - ALIKE));
        let best = alike.max_by(|(_, one), (_, other)| sooner(one, other));
        found.extend(best.filter(|(rate, cost)| *rate >= plain_rate * (1.0 + GAIN_MIN) && new(cost)));
    }
    found.sort_by(|(one, _), (other, _)| other.partial_cmp(one).unwrap_or(Ordering::Equal));
    found.iter().filter_map(|(_, cost)| all.strategy(&cost.strategy).cloned()).collect()
}

/// Every strategy that `profile` does not have, but the costs of whose compression it has.
pub(crate) fn unrun(profile: &Profile) -> Vec<StrategyProfile> {
    let new = |cost: &&CompressionCost| profile.strategy(&cost.strategy).is_none();
    let strategy = |cost: &CompressionCost| Some(modeled(profile, profile.strategy(&cost.plain)?, cost));
    profile.compressions.iter().filter(new).filter_map(strategy).collect()
}

/// What the cost model knows of `plain` kept in the format of `cost`: no runs.
fn modeled(profile: &Profile, plain: &StrategyProfile, cost: &CompressionCost) -> StrategyProfile {
    let bytes = plain.bytes_per_sample / cost.ratio;
    let inflating = seconds_of(plain.bytes_per_sample, cost.decompress_bytes_per_second);
    let (by_readers, by_workers) = (inflating * cost.reader_share, inflating * (1.0 - cost.reader_share));
    let compressing = seconds_of(plain.storage_bytes as f64, cost.compress_bytes_per_second);
    // As much slower as there is more to do: the share of their time that workers are on a processor stays.
    let working = plain.working.map(|working| {
        let slower = working.cpu_seconds / (working.cpu_seconds + by_workers).max(f64::MIN_POSITIVE);
        Alone {
            samples_per_second: working.samples_per_second * slower,
            samples_per_second_min: working.samples_per_second_min * slower,
            samples_per_second_max: working.samples_per_second_max * slower,
            cpu_seconds: working.cpu_seconds + by_workers,
            ..working
        }
    });
    let copying = plain
        .reading
        .map_or_else(|| bytes * profile.storage.cpu_seconds_per_byte, |reading| reading.cpu_seconds / cost.ratio);
    let rate = reading_rate(profile, plain, bytes, by_readers).unwrap_or(0.0);
    let reading = Alone {
        samples_per_second: rate,
        samples_per_second_min: 0.8 * rate,
        samples_per_second_max: 1.2 * rate,
        cpu_seconds: copying + by_readers,
        threads: decode_threads(profile),
        disturbed: false,
    };
    StrategyProfile {
        name: cost.strategy.clone(),
        split: plain.split.clone(),
        lossy: plain.lossy || cost.lossy,
        storage_bytes: (plain.storage_bytes as f64 / cost.ratio).round() as u64,
        bytes_per_sample: bytes,
        prep_seconds: plain.prep_seconds + compressing / decode_threads(profile) as f64,
        deserialize_cpu_seconds: plain.deserialize_cpu_seconds + by_workers,
        online_cpu_seconds: plain.online_cpu_seconds,
        reading: (profile.method.caching != Caching::Application).then_some(reading),
        working,
        runs: Vec::new(),
        system: Vec::new(),
    }
}

/// How many samples of `bytes` readers get per second that inflate each for so long.
fn reading_rate(profile: &Profile, plain: &StrategyProfile, bytes: f64, inflating: f64) -> Option<f64> {
    let plain_readers = profile.method.threads.max(1) as f64;
    let readers = if inflating > 0.0 { plain_readers * INFLATING_READERS as f64 } else { plain_readers };
    let (all, stream) = match profile.method.caching {
        Caching::None => {
            let all = shards_bytes_per_second(profile);
            (all, quotient(profile.storage.stream_bytes_per_second, 1.0).unwrap_or(all / plain_readers).min(all))
        }
        Caching::System | Caching::Application => {
            (profile.machine.memory_bytes_per_second * plain_readers, profile.machine.memory_bytes_per_second)
        }
    };
    let bandwidth = quotient(all, bytes)?;
    // What a read takes besides its bytes, as far as reading the split as it is shows it.
    let measured = plain.reading.and_then(|reading| quotient(plain_readers, reading.samples_per_second));
    let fixed = measured.map_or(0.0, |seconds| (seconds - plain_readers * plain.bytes_per_sample / all).max(0.0));
    quotient(readers, fixed + bytes / stream + inflating).map(|rate| rate.min(bandwidth))
}

/// How long so many bytes take; nothing where the rate is not known.
fn seconds_of(bytes: f64, bytes_per_second: f64) -> f64 {
    quotient(bytes, bytes_per_second).unwrap_or(0.0)
}
