//! Scores: several criteria brought to the same scale and weighed.
//!
//! Preparation time, storage, throughput and money are each brought to 0..1 over the strategies that meet the limits, so that 1
//! is the best: all but throughput are inverted, since less is better. PRESTO's formula leaves that out and its code sorts the
//! best last; here the best comes first. Where all strategies are equal in a criterion, each
//! gets 1 in it, and it decides nothing (PRESTO divides by zero). The score is the mean by weight, so it is in 0..1
//! as well; the order is the same as by PRESTO's sum.

use serde::{Deserialize, Serialize};

use crate::objective::Weights;

/// What one strategy is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Criteria {
    pub(crate) prep_seconds: f64,
    pub(crate) storage_bytes: f64,
    /// As far as the trainer can use it.
    pub(crate) samples_per_second: f64,
    /// 0 where there are no prices.
    pub(crate) money: f64,
}

/// The criteria of one strategy, each from 0 for the worst to 1 for the best of those that meet the limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Normalized {
    /// Little time to prepare.
    pub prep: f64,
    /// Little storage.
    pub storage: f64,
    /// Much throughput.
    pub throughput: f64,
    /// Little money; 1 for all where there are no prices.
    pub money: f64,
}

/// Brings the criteria of all strategies to 0..1.
pub(crate) fn normalize(all: &[Criteria]) -> Vec<Normalized> {
    let column = |value: fn(&Criteria) -> f64, better| normalized(&all.iter().map(value).collect::<Vec<_>>(), better);
    let prep = column(|criteria| criteria.prep_seconds, Better::Less);
    let storage = column(|criteria| criteria.storage_bytes, Better::Less);
    let throughput = column(|criteria| criteria.samples_per_second, Better::More);
    let money = column(|criteria| criteria.money, Better::Less);
    let one =
        |at: usize| Normalized { prep: prep[at], storage: storage[at], throughput: throughput[at], money: money[at] };
    (0..all.len()).map(one).collect()
}

impl Weights {
    /// The mean of the criteria by weight.
    pub(crate) fn score(&self, normalized: &Normalized) -> f64 {
        // Divided by the largest first, so that the sum of huge weights stays finite.
        let weights = [self.prep, self.storage, self.throughput, self.money].map(|weight| weight / self.largest());
        let values = [normalized.prep, normalized.storage, normalized.throughput, normalized.money];
        let sum: f64 = weights.iter().sum();
        let score: f64 = weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
        (score / sum).clamp(0.0, 1.0)
    }
}

/// Which end of a criterion is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    Less,
    More,
}

/// Values brought to 0..1, 1 for the best; all 1 where all are equal. Values are finite and not negative.
fn normalized(values: &[f64], better: Better) -> Vec<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_inverted_and_more_is_not() {
        assert_eq!(normalized(&[10.0, 20.0, 30.0], Better::More), [0.0, 0.5, 1.0]);
        assert_eq!(normalized(&[10.0, 20.0, 30.0], Better::Less), [1.0, 0.5, 0.0]);
    }

    #[test]
    fn equal_values_are_all_the_best() {
        for better in [Better::Less, Better::More] {
            assert_eq!(normalized(&[0.0, 0.0], better), [1.0, 1.0]);
            assert_eq!(normalized(&[7.5], better), [1.0]);
        }
    }
}
