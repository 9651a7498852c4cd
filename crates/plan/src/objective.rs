//! The objective: weights, limits, prices and the machine in, strategies in order out.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::compression::considered;
use crate::error::{Error, Result};
use crate::explain::sentence;
use crate::forecast::{Forecast, forecasts};
use crate::limits::{Limits, Miss, exclusion, none_left};
use crate::money::{Cost, Prices};
use crate::prediction::{Prediction, decode_threads, predict};
use crate::profile::Profile;
use crate::requests;
use crate::score::{Criteria, Normalized, normalize};
use crate::summary::{Summary, summarize};
use crate::what_if::WhatIf;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Objective {
    /// How much each criterion counts.
    pub weights: Weights,
    /// What rules a strategy out.
    pub limits: Limits,
    /// How many samples per second the trainer takes, where that is known: more throughput than that counts for nothing.
    pub trainer_samples_per_second: Option<f64>,
    /// What things cost; needed where money counts.
    pub prices: Option<Prices>,
    /// Another machine to plan for, instead of the one that was measured.
    pub what_if: Option<WhatIf>,
}

/// How much each criterion counts. Only their ratios matter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weights {
    /// Little time to prepare.
    pub prep: f64,
    /// Little storage.
    pub storage: f64,
    /// Much throughput.
    pub throughput: f64,
    /// Little money, which needs prices.
    pub money: f64,
}

impl Default for Weights {
    /// Throughput alone, as PRESTO recommends.
    fn default() -> Self {
        Self { prep: 0.0, storage: 0.0, throughput: 1.0, money: 0.0 }
    }
}

/// Strategies in order: best first, those that a limit rules out last.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    strategies: Vec<RankedStrategy>,
}

/// One strategy with its score. In JSON, the keys of [`Summary`] are at the same level as the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedStrategy {
    /// Its numbers, as measured.
    #[serde(flatten)]
    pub summary: Summary,
    /// Its score in 0..1; `None` where a limit rules it out.
    pub score: Option<f64>,
    /// Each criterion in 0..1, before weighing; `None` where a limit rules it out.
    #[serde(default)]
    pub normalized: Option<Normalized>,
    /// What it costs, where there are prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Its forecast for the other machine, if there is one. Then the rank, the score, the cost, the
    /// prediction and the sentence are for that machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// What the cost model says of it, the trainer included.
    pub prediction: Prediction,
    /// What binds it, in words.
    pub sentence: String,
    /// Which limits rule it out and by how much; `None` where none does.
    pub excluded: Option<String>,
}

impl RankedStrategy {
    /// Samples per second: expected on the machine that was asked about, else measured.
    pub fn samples_per_second(&self) -> f64 {
        self.forecast.as_ref().map_or(self.summary.samples_per_second, |there| there.expected_samples_per_second)
    }

    /// Bytes on storage of the entire data set, on the other machine if there is one, else here.
    pub fn storage_bytes_total(&self) -> u64 {
        self.forecast.as_ref().map_or(self.summary.storage_bytes_total, |there| there.storage_bytes_total)
    }

    /// Seconds to prepare the entire data set, on the other machine if there is one, else here.
    pub fn prep_seconds_total(&self) -> f64 {
        self.forecast.as_ref().map_or(self.summary.prep_seconds_total, |there| there.prep_seconds_total)
    }

    /// Seconds of one epoch over the entire data set, on the other machine if there is one, else here.
    pub fn epoch_seconds_total(&self) -> f64 {
        self.forecast.as_ref().map_or(self.summary.epoch_seconds_total, |there| there.epoch_seconds_total)
    }

    /// Samples per second as far as a trainer can use them.
    pub(crate) fn useful_samples_per_second(&self, trainer: Option<f64>) -> f64 {
        trainer.map_or(self.samples_per_second(), |trainer| self.samples_per_second().min(trainer))
    }

    fn criteria(&self, trainer: Option<f64>) -> Criteria {
        Criteria {
            prep_seconds: self.prep_seconds_total(),
            storage_bytes: self.storage_bytes_total() as f64,
            samples_per_second: self.useful_samples_per_second(trainer),
            money: self.cost.map_or(0.0, |cost| cost.total),
        }
    }
}

impl Ranking {
    /// The best strategy.
    pub fn best(&self) -> &RankedStrategy {
        // `rank` is the only maker of a ranking and fails where no strategy is left.
        &self.strategies[0]
    }

    /// All strategies, best first. There is at least one, and the first meets all limits.
    pub fn strategies(&self) -> &[RankedStrategy] {
        &self.strategies
    }

    /// The same, to keep.
    pub fn into_strategies(self) -> Vec<RankedStrategy> {
        self.strategies
    }
}

/// Ranks the strategies of `profile`. Equal scores are ordered by throughput that the trainer can use, then by less storage,
/// then by name. Fails where the weights make no sense or no strategy meets the limits.
pub fn rank(profile: &Profile, objective: &Objective) -> Result<Ranking> {
    objective.check()?;
    let profile = &*considered(profile, objective);
    let trainer = objective.trainer();
    let mut strategies = candidates(profile, objective)?;
    let misses: Vec<Vec<Miss>> = strategies
        .iter()
        .map(|one| objective.limits.misses(one.storage_bytes_total(), one.prep_seconds_total(), one.summary.lossy))
        .collect();
    let meets = |misses: &&Vec<Miss>| misses.is_empty();
    if !misses.iter().any(|misses| meets(&misses)) {
        let names_and_misses: Vec<_> = strategies.iter().map(|one| one.summary.name.as_str()).zip(misses).collect();
        return Err(none_left(&names_and_misses));
    }
    let allowed = strategies.iter().zip(&misses).filter(|(_, misses)| meets(misses));
    let mut normalized = normalize(&allowed.map(|(one, _)| one.criteria(trainer)).collect::<Vec<_>>()).into_iter();
    for (strategy, misses) in strategies.iter_mut().zip(&misses) {
        strategy.excluded = exclusion(misses);
        if misses.is_empty() {
            strategy.normalized = normalized.next();
            strategy.score = strategy.normalized.map(|normalized| objective.weights.score(&normalized));
        }
    }
    strategies.sort_by(|one, other| order(one, other, trainer));
    Ok(Ranking { strategies })
}

/// Every strategy with its numbers and its cost, in the order of the profile and not ranked yet.
fn candidates(profile: &Profile, objective: &Objective) -> Result<Vec<RankedStrategy>> {
    let trainer = objective.trainer();
    // Measurements are of this machine, and so is their trainer.
    let summaries = summarize(profile, objective.trainer_samples_per_second)?;
    let elsewhere = objective.what_if.map(|what_if| forecasts(profile, &what_if, trainer)).transpose()?;
    let mut elsewhere = elsewhere.map(Vec::into_iter);
    let cores = objective.what_if.map_or_else(|| decode_threads(profile), |what_if| what_if.threads(profile));
    let mut all = Vec::with_capacity(summaries.len());
    for (strategy, summary) in profile.strategies.iter().zip(summaries) {
        let forecast = elsewhere.as_mut().and_then(Iterator::next);
        let (prediction, sentence) = forecast.as_ref().map_or_else(
            || (predict(profile, strategy, trainer), sentence(profile, strategy, &summary, trainer)),
            |there| (there.prediction, there.sentence.clone()),
        );
        let mut candidate = RankedStrategy {
            summary,
            score: None,
            normalized: None,
            cost: None,
            forecast,
            prediction,
            sentence,
            excluded: None,
        };
        let one = &candidate;
        candidate.cost = objective.prices.map(|prices| {
            let samples = objective.what_if.and_then(|what_if| what_if.samples).unwrap_or(profile.data.samples);
            let requests = requests::of_epoch(profile, strategy, samples, one.storage_bytes_total());
            let epoch = (one.epoch_seconds_total(), requests);
            prices.cost(one.prep_seconds_total(), cores, one.storage_bytes_total(), epoch)
        });
        all.push(candidate);
    }
    Ok(all)
}

impl Objective {
    /// How many samples per second the trainer takes: that of the machine asked about comes first.
    pub(crate) fn trainer(&self) -> Option<f64> {
        let there = self.what_if.and_then(|what_if| what_if.trainer_samples_per_second);
        there.or(self.trainer_samples_per_second)
    }

    fn check(&self) -> Result<()> {
        self.weights.check()?;
        self.limits.check()?;
        if let Some(prices) = &self.prices {
            prices.check()?;
        } else if self.weights.money > 0.0 {
            let expected = "0 unless there are prices";
            return Err(Error::Argument { name: "money", found: self.weights.money.to_string(), expected });
        }
        if let Some(what_if) = &self.what_if {
            what_if.check()?;
        }
        match self.trainer_samples_per_second {
            Some(rate) if !(rate > 0.0 && rate.is_finite()) => {
                Err(Error::Argument { name: "trainer", found: rate.to_string(), expected: "a finite number above 0" })
            }
            _ => Ok(()),
        }
    }
}

impl Weights {
    /// Whether throughput alone counts.
    pub(crate) fn only_throughput(&self) -> bool {
        self.prep == 0.0 && self.storage == 0.0 && self.money == 0.0
    }

    fn check(&self) -> Result<()> {
        let weights =
            [("prep", self.prep), ("storage", self.storage), ("throughput", self.throughput), ("money", self.money)];
        for (name, weight) in weights {
            if !(weight >= 0.0 && weight.is_finite()) {
                let expected = "a finite weight, 0 or more";
                return Err(Error::Argument { name, found: weight.to_string(), expected });
            }
        }
        if self.largest() == 0.0 {
            let expected = "weights of which at least one is above 0";
            return Err(Error::Argument { name: "weights", found: "0, 0, 0, 0".to_owned(), expected });
        }
        Ok(())
    }

    pub(crate) fn largest(&self) -> f64 {
        self.prep.max(self.storage).max(self.throughput).max(self.money)
    }
}

/// Best first. A strategy without a score comes after those with one.
fn order(one: &RankedStrategy, other: &RankedStrategy, trainer: Option<f64>) -> Ordering {
    let score = |ranked: &RankedStrategy| ranked.score.unwrap_or(-1.0);
    let throughput = |ranked: &RankedStrategy| ranked.useful_samples_per_second(trainer);
    score(other)
        .total_cmp(&score(one))
        .then_with(|| throughput(other).total_cmp(&throughput(one)))
        .then_with(|| one.storage_bytes_total().cmp(&other.storage_bytes_total()))
        .then_with(|| one.summary.name.cmp(&other.summary.name))
}
