//! The objective: weights and limits in, strategies in order out.
//!
//! Preparation time, storage and throughput are each brought to 0..1 over the strategies that meet the limits, so that 1 is
//! the best: time and storage are inverted, since less is better. PRESTO's formula leaves that out and its code sorts the
//! best last (inventory P27, P28, T1); here the best comes first. Where all strategies are equal in a criterion, each
//! gets 1 in it, and it decides nothing (PRESTO divides by zero: P29). The score is the mean of the three by weight, so
//! it is in 0..1 as well; the order is the same as by PRESTO's sum.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::explain::sentence;
use crate::limits::{Limits, Miss, exclusion, none_left};
use crate::prediction::{Prediction, predict};
use crate::profile::Profile;
use crate::summary::{Summary, summarise};

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
}

impl Default for Weights {
    /// Throughput alone, as PRESTO recommends (inventory P28).
    fn default() -> Self {
        Self { prep: 0.0, storage: 0.0, throughput: 1.0 }
    }
}

/// Strategies in order: best first, those that a limit rules out last.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    strategies: Vec<RankedStrategy>,
}

/// One strategy with its place. In JSON the keys of [`Summary`] stand beside the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedStrategy {
    /// Its numbers.
    #[serde(flatten)]
    pub summary: Summary,
    /// Its score in 0..1; `None` where a limit rules it out.
    pub score: Option<f64>,
    /// What the cost model says of it, the trainer included.
    pub prediction: Prediction,
    /// What binds it, in words.
    pub sentence: String,
    /// Which limits rule it out and by how much; `None` where none does.
    pub excluded: Option<String>,
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
    let trainer = objective.trainer_samples_per_second;
    let summaries = summarise(profile, trainer)?;
    let misses: Vec<Vec<Miss>> = summaries.iter().map(|summary| objective.limits.misses(summary)).collect();
    let allowed: Vec<&Summary> =
        summaries.iter().zip(&misses).filter(|(_, misses)| misses.is_empty()).map(|(summary, _)| summary).collect();
    if allowed.is_empty() {
        let names_and_misses: Vec<_> = summaries.iter().map(|summary| summary.name.as_str()).zip(misses).collect();
        return Err(none_left(&names_and_misses));
    }
    let mut scores = objective.weights.scores(&allowed, trainer).into_iter();
    let mut strategies: Vec<_> = profile
        .strategies
        .iter()
        .zip(summaries.iter().zip(&misses))
        .map(|(strategy, (summary, misses))| RankedStrategy {
            summary: summary.clone(),
            score: if misses.is_empty() { scores.next() } else { None },
            prediction: predict(profile, strategy, trainer),
            sentence: sentence(profile, strategy, summary, trainer),
            excluded: exclusion(misses),
        })
        .collect();
    strategies.sort_by(|one, other| order(one, other, trainer));
    Ok(Ranking { strategies })
}

impl Objective {
    fn check(&self) -> Result<()> {
        self.weights.check()?;
        self.limits.check()?;
        match self.trainer_samples_per_second {
            Some(rate) if !(rate > 0.0 && rate.is_finite()) => Err(Error::Argument {
                name: "trainer_samples_per_second",
                found: rate.to_string(),
                expected: "a finite number above 0",
            }),
            _ => Ok(()),
        }
    }
}

impl Weights {
    /// Whether throughput alone counts.
    pub(crate) fn only_throughput(&self) -> bool {
        self.prep == 0.0 && self.storage == 0.0
    }

    fn check(&self) -> Result<()> {
        for (name, weight) in [("prep", self.prep), ("storage", self.storage), ("throughput", self.throughput)] {
            if !(weight >= 0.0 && weight.is_finite()) {
                let expected = "a finite weight, 0 or more";
                return Err(Error::Argument { name, found: weight.to_string(), expected });
            }
        }
        if self.largest() == 0.0 {
            let expected = "three weights of which at least one is above 0";
            return Err(Error::Argument { name: "weights", found: "0, 0, 0".to_owned(), expected });
        }
        Ok(())
    }

    fn largest(&self) -> f64 {
        self.prep.max(self.storage).max(self.throughput)
    }

    fn scores(&self, allowed: &[&Summary], trainer: Option<f64>) -> Vec<f64> {
        let column = |value: &dyn Fn(&Summary) -> f64| allowed.iter().map(|summary| value(summary)).collect::<Vec<_>>();
        let prep = normalised(&column(&|summary| summary.prep_seconds_total), Better::Less);
        let storage = normalised(&column(&|summary| summary.storage_bytes_total as f64), Better::Less);
        let throughput = normalised(&column(&|summary| summary.useful_samples_per_second(trainer)), Better::More);
        // Divided by the largest first, so that the sum of huge weights stays finite.
        let [prep_weight, storage_weight, throughput_weight] =
            [self.prep, self.storage, self.throughput].map(|weight| weight / self.largest());
        let sum = prep_weight + storage_weight + throughput_weight;
        (0..allowed.len())
            .map(|at| {
                let score = prep_weight * prep[at] + storage_weight * storage[at] + throughput_weight * throughput[at];
                (score / sum).clamp(0.0, 1.0)
            })
            .collect()
    }
}

/// Which end of a criterion is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Less,
    More,
}

/// Values brought to 0..1, 1 for the best; all 1 where all are equal. Values are finite and not negative.
fn normalised(values: &[f64], better: Better) -> Vec<f64> {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(0.0, f64::max);
    let range = largest - smallest;
    let share = |value: f64| match better {
        _ if range <= 0.0 => 1.0,
        Better::Less => (largest - value) / range,
        Better::More => (value - smallest) / range,
    };
    values.iter().map(|value| share(*value)).collect()
}

/// Best first. A strategy without a score comes after those with one.
fn order(one: &RankedStrategy, other: &RankedStrategy, trainer: Option<f64>) -> Ordering {
    let score = |ranked: &RankedStrategy| ranked.score.unwrap_or(-1.0);
    let throughput = |ranked: &RankedStrategy| ranked.summary.useful_samples_per_second(trainer);
    score(other)
        .total_cmp(&score(one))
        .then_with(|| throughput(other).total_cmp(&throughput(one)))
        .then_with(|| one.summary.storage_bytes_total.cmp(&other.summary.storage_bytes_total))
        .then_with(|| one.summary.name.cmp(&other.summary.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_inverted_and_more_is_not() {
        assert_eq!(normalised(&[10.0, 20.0, 30.0], Better::More), [0.0, 0.5, 1.0]);
        assert_eq!(normalised(&[10.0, 20.0, 30.0], Better::Less), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn equal_values_are_all_the_best() {
        for better in [Better::Less, Better::More] {
            assert_eq!(normalised(&[0.0, 0.0], better), [1.0, 1.0]);
            assert_eq!(normalised(&[7.5], better), [1.0]);
        }
    }
}
