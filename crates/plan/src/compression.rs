//! Chooses the compression of a split, or none, and says why.
//!
//! A compression pays off if reading is the bottleneck: fewer bytes take less time, and readers decompress them. It does not if the CPU is the
//! bottleneck, or if decompressing takes longer than reading the bytes that it saves. Both are known before anything is built compressed: the ratio and the
//! rate of decompression are measured on some records of the split, each format by itself ([`CompressionCost`]); the rest comes from the cost model.
//!
//! ```text
//! reader = latency of a read + bytes / ratio / rate of one stream + bytes / rate of decompression
//! load   = min(rate of all streams / (bytes / ratio), readers / reader)
//! ```
//!
//! A reader decompresses what it has read before its next read, and there are [`INFLATING_READERS`] per worker. So if each stream has a rate of
//! its own, as over a network, decompression takes time from reading; if all streams share one disk, another reader uses it in the meantime.
//!
//! Readers and workers were timed separately, and slow each other down: the more so, the more is decompressed. So the model only determines which
//! formats may be the best ([`promising`]). If there are several, `--fast` runs them in turns ([`unsettled`]), and the runs decide.

mod candidates;
mod modeled;
mod words;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::objective::Objective;
use crate::prediction::{predict, predict_cached};
use crate::profile::{CompressionCost, Profile, StrategyProfile};
use crate::summary::{Summary, summarize};
use crate::what_if::{WhatIf, hit_ratio};
use candidates::{Candidates, candidates, soonest};
use modeled::modeled;
use words::{gain, kept};

pub use candidates::NEAR;
pub(crate) use candidates::{Family, family};
pub(crate) use modeled::unrun;
pub(crate) use words::why;

/// The readers per worker if they decompress what they read: while one does, another waits for the storage.
pub const INFLATING_READERS: usize = 2;

/// The predicted gain of a compression must exceed the error of the model.
const GAIN_MIN: f64 = 0.05;

/// Rates that differ by less are considered equal: then the one that is prepared sooner is chosen.
const ALIKE: f64 = 0.02;

/// A format that was not run must promise this much more than one that was.
const UNRUN: f64 = 0.1;

/// The best format of one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompressionChoice {
    /// The strategy that stores the split as it is.
    pub strategy: String,
    /// The better format; `None` if it is best as it is.
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
/// best one, the most promising first; after them those that may be better yet, for all that the model knows. They have no runs.
pub fn promising(profile: &Profile) -> Vec<StrategyProfile> {
    most_promising(profile, None)
}

/// The strategies to run beside each other, by split, where the cost model cannot tell in which format one is best kept; of a split all, even if
/// some were run before: runs on other samples, or at another time, do not compare. What matters most comes first: within a split the most promising of
/// each algorithm, then the split as it is if little is to be gained; of the splits those whose candidates are bound by different things, since they differ
/// by most, and then the fastest.
pub fn unsettled(profile: &Profile) -> Vec<Vec<String>> {
    let mut all = profile.clone();
    all.strategies.extend(unrun(profile));
    let was_run = |name: &String| profile.strategy(name).is_some_and(|strategy| !strategy.runs.is_empty());
    let mut splits = candidates(&all, |strategy| predict(&all, strategy, None));
    splits.sort_by_key(|split| !split.differ());
    let names = splits.iter().filter_map(Candidates::to_compare);
    names.filter(|names| !names.iter().all(was_run)).collect()
}

/// What the cost model expects of the split of `cost` in its format: no runs. `None` where the split as it is was not measured.
pub fn compressed(profile: &Profile, cost: &CompressionCost) -> Option<StrategyProfile> {
    Some(modeled(profile, profile.strategy(&cost.plain)?, cost))
}

/// The best format of every split of which a compression was measured.
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

/// The best format of the split that `plain` stores as it is; `None` if that was not measured.
fn choice(profile: &Profile, summaries: &[Summary], plain: &str) -> Option<CompressionChoice> {
    let summary = |name: &str| summaries.iter().find(|summary| summary.name == name);
    let plain_rate = summary(plain)?.samples_per_second;
    let costs = profile.compressions.iter().filter(|cost| cost.plain == plain);
    let forms = costs.filter_map(|cost| Some((Some(cost), summary(&cost.strategy)?)));
    let forms: Vec<(Option<&CompressionCost>, &Summary)> = [(None, summary(plain)?)].into_iter().chain(forms).collect();
    let best = |was_run: bool| {
        let these = forms.iter().filter(|(_, summary)| (summary.runs > 0) == was_run);
        soonest(these.map(|(cost, summary)| (*cost, summary.samples_per_second)))
    };
    let (cost, rate) = match (best(true), best(false)) {
        (Some((_, run)), Some(other)) if other.1 > run * (1.0 + UNRUN) => other,
        (Some(run), _) => run,
        (None, other) => other?,
    };
    Some(CompressionChoice {
        strategy: plain.to_owned(),
        compression: cost.map(|cost| cost.compression.clone()),
        samples_per_second: rate,
        plain_samples_per_second: plain_rate,
        sentence: match cost {
            Some(cost) => format!("`{}` {}", cost.compression, gain(profile, cost)?),
            None => kept(profile, plain)?,
        },
    })
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
    let found = candidates(&there, expected);
    // What is not here is not measured either: there the model decides.
    let others = found.iter().filter(|_| what_if.is_none()).flat_map(|split| &split.compressed[1..]);
    let firsts = found.iter().map(|split| &split.compressed[0]);
    let names = firsts.chain(others).map(|rated| &rated.cost.strategy);
    names.filter(|name| profile.strategy(name).is_none()).filter_map(|name| all.strategy(name).cloned()).collect()
}
