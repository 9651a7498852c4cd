//! Which compression to keep a split in, or none, and why.
//!
//! A compression pays where reading binds: fewer bytes come in less time, and readers inflate them. It does not where the CPU binds,
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
//!
//! Readers and workers were timed apart, and are slower beside each other: the more so, the more is inflated. So where the CPU would bind one
//! compression of a split and the disk another, or where two are close, the model does not decide. It names both ([`unsettled`]), and a
//! measurement does.

mod modeled;

use std::borrow::Cow;

use forebay_pipeline::StorageFormat;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::objective::Objective;
use crate::prediction::{Bound, Prediction, predict, predict_cached, quotient};
use crate::profile::{Caching, CompressionCost, Profile, StrategyProfile};
use crate::summary::{Summary, summarize, summarize_one};
use crate::units;
use crate::what_if::{WhatIf, hit_ratio};
use modeled::{modeled, seconds_of};

pub(crate) use modeled::unrun;

/// So many readers there are for each worker where they inflate what they read: while one does, another waits for the storage.
pub const INFLATING_READERS: usize = 2;

/// What a compression promises must be more than the model may be off by.
const GAIN_MIN: f64 = 0.05;

/// Rates that differ by less are alike: what is prepared sooner is taken then.
const ALIKE: f64 = 0.02;

/// Of two that different things bind, the model may be off by so much more for one than for the other: what it expects below this share of the best
/// is not better.
const NEAR: f64 = 0.7;

/// Where a compression should gain less than this, the split as it is may be better yet.
const GAIN_SURE: f64 = 0.25;

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
/// best one, the most promising first; after them those that may be better yet, where the model cannot tell. They have no runs.
pub fn promising(profile: &Profile) -> Vec<StrategyProfile> {
    most_promising(profile, None)
}

/// The strategies to run beside each other, by split, where the cost model cannot tell in which format one is best kept: the two best compressions,
/// and the split as it is if it is close. Those that were run already are left out. Splits come first where what binds the two differs, since
/// they differ by most then, and then the fastest.
pub fn unsettled(profile: &Profile) -> Vec<Vec<String>> {
    let mut all = profile.clone();
    all.strategies.extend(unrun(profile));
    let has_runs = |name: &str| profile.strategy(name).is_some_and(|strategy| !strategy.runs.is_empty());
    let mut splits = rivals(&all, |strategy| predict(&all, strategy, None));
    splits.sort_by_key(|split| {
        !split.second.is_some_and(|second| second.prediction.bound_by != split.first.prediction.bound_by)
    });
    let names = |split: &Rivals<'_>| {
        let plain = (split.first.rate < split.plain_rate * (1.0 + GAIN_SURE)).then(|| split.first.cost.plain.clone());
        let compressed =
            [Some(split.first), split.second].into_iter().flatten().map(|rated| rated.cost.strategy.clone());
        let all: Vec<String> = compressed.chain(plain).collect();
        // Alone one of them settles nothing.
        let wanted = if all.len() > 1 { all } else { Vec::new() };
        wanted.into_iter().filter(|name| !has_runs(name)).collect::<Vec<String>>()
    };
    splits.iter().map(names).filter(|names| !names.is_empty()).collect()
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
    let found: Vec<(&CompressionCost, f64)> = costs
        .filter_map(|cost| Some((cost, rate(&cost.strategy)?)))
        .filter(|(_, rate)| *rate > plain_rate * (1.0 + ALIKE))
        .collect();
    let best = soonest(found.iter().copied());
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
    let best_was = format!("kept as it is: the best compression, `{}`, {}", best.compression, gain(profile, best)?);
    // By the model it may well be faster: a run decided then.
    let measured = |strategy: &StrategyProfile| {
        let summary = summarize_one(profile, strategy, None);
        (summary.runs > 0).then(|| units::samples_per_second(summary.samples_per_second))
    };
    let both = profile.strategy(&best.strategy).and_then(measured).zip(measured(plain));
    let ran = both
        .map_or_else(String::new, |(it, plain)| format!("; it was run, and gave {it}, and the split as it is {plain}"));
    Some(best_was + &ran)
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
    let mut all = profile.clone();
    all.strategies.extend(unrun(profile));
    let there = what_if.map_or_else(|| Cow::Borrowed(&all), |what_if| Cow::Owned(what_if.apply(&all)));
    let expected = |strategy: &StrategyProfile| match what_if {
        Some(_) => predict_cached(&there, strategy, None, hit_ratio(&there, strategy)),
        None => predict(&there, strategy, None),
    };
    let found = rivals(&there, expected);
    // What is not here is not measured either: there the model decides.
    let seconds = found.iter().filter(|_| what_if.is_none()).filter_map(|split| split.second);
    let names = found.iter().map(|split| split.first).chain(seconds).map(|rated| &rated.cost.strategy);
    names.filter(|name| profile.strategy(name).is_none()).filter_map(|name| all.strategy(name).cloned()).collect()
}

/// The compressions of a split that may be the best.
struct Rivals<'p> {
    /// What the split gives as it is.
    plain_rate: f64,
    /// By the cost model the best; of those that are alike the one that is prepared soonest.
    first: Rated<'p>,
    /// One that may be better, for all that the model knows.
    second: Option<Rated<'p>>,
}

/// A compression, and what the cost model says of it.
#[derive(Clone, Copy)]
struct Rated<'p> {
    cost: &'p CompressionCost,
    rate: f64,
    prediction: Prediction,
}

/// Of each split of `profile` the compressions that should be faster than it as it is, and may be the best: the most promising split first.
fn rivals(profile: &Profile, expected: impl Fn(&StrategyProfile) -> Prediction) -> Vec<Rivals<'_>> {
    let mut found = Vec::new();
    for plain in &profile.strategies {
        let Some(plain_rate) = expected(plain).samples_per_second else { continue };
        let costs = profile.compressions.iter().filter(|cost| cost.plain == plain.name);
        let rated = costs.filter_map(|cost| {
            let prediction = expected(profile.strategy(&cost.strategy)?);
            let rate = prediction.samples_per_second.filter(|rate| *rate >= plain_rate * (1.0 + GAIN_MIN))?;
            Some(Rated { cost, rate, prediction })
        });
        let rated: Vec<Rated<'_>> = rated.collect();
        let Some((best, _)) = soonest(rated.iter().map(|rated| (rated.cost, rated.rate))) else { continue };
        let (first, others): (Vec<_>, Vec<_>) = rated.into_iter().partition(|rated| std::ptr::eq(rated.cost, best));
        found.extend(first.first().map(|&first| Rivals { plain_rate, first, second: rival(first, &others) }));
    }
    found.sort_by(|one, other| other.first.rate.total_cmp(&one.first.rate));
    found
}

/// Which of `others` may be better than `first`: the best of those that something else binds, if it is near, since the model is wrong about
/// different things in different ways; or else the best whose interval overlaps.
fn rival<'p>(first: Rated<'p>, others: &[Rated<'p>]) -> Option<Rated<'p>> {
    let best_of = |may_be: &dyn Fn(&Rated<'p>) -> bool| {
        others.iter().copied().filter(|other| may_be(other)).max_by(|one, other| one.rate.total_cmp(&other.rate))
    };
    let (bound, least) = (first.prediction.bound_by, first.prediction.min_samples_per_second);
    best_of(&|other| other.prediction.bound_by != bound && other.rate >= NEAR * first.rate)
        .or_else(|| best_of(&|other| other.prediction.max_samples_per_second >= least))
}

/// The one with the highest rate; of those that are alike the one that is prepared soonest.
fn soonest<'p>(rated: impl Iterator<Item = (&'p CompressionCost, f64)> + Clone) -> Option<(&'p CompressionCost, f64)> {
    let highest = rated.clone().map(|(_, rate)| rate).fold(0.0, f64::max);
    let alike = rated.filter(|(_, rate)| *rate >= highest * (1.0 - ALIKE));
    alike.max_by(|(one, _), (other, _)| one.compress_bytes_per_second.total_cmp(&other.compress_bytes_per_second))
}
