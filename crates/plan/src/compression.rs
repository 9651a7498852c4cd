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
//! Readers and workers were timed apart, and are slower beside each other: the more so, the more is inflated. So the model only says which
//! formats may be the best ([`promising`]). Where there are several, `--fast` runs them beside each other ([`unsettled`]), and the runs decide.

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

/// So many readers there are for each worker where they inflate what they read: while one does, another waits for the storage.
pub const INFLATING_READERS: usize = 2;

/// What a compression promises must be more than the model may be off by.
const GAIN_MIN: f64 = 0.05;

/// Rates that differ by less are alike: what is prepared sooner is taken then.
const ALIKE: f64 = 0.02;

/// What was not run must promise so much more than what was.
const UNRUN: f64 = 0.1;

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
