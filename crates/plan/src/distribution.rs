//! How the values of many samples are distributed: a few figures and a histogram.

use serde::{Deserialize, Serialize};

/// How some values are distributed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The least.
    pub min: f64,
    /// Five in a hundred are at most this.
    pub p5: f64,
    /// Half are at most this.
    pub median: f64,
    /// The mean.
    pub mean: f64,
    /// Ninety-five in a hundred are at most this.
    pub p95: f64,
    /// The most.
    pub max: f64,
    /// How many are in each of up to [`BINS`] ranges, which follow each other.
    pub histogram: Vec<Bin>,
}

/// A range of values, and how many there are in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The least value in it.
    pub from: f64,
    /// The least value that is above it; of the last one, the most in it.
    pub to: f64,
    /// How many.
    pub count: u64,
}

/// The number of ranges that fits well into a plot.
pub const BINS: usize = 24;

impl Distribution {
    /// The distribution of `values`, in ranges of a round width of at least `step_min`; `None` of no values.
    pub fn of(mut values: Vec<f64>, step_min: f64) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        // The nearest rank: one of the values.
        let part = |share: f64| values[((share * values.len() as f64).ceil() as usize).clamp(1, values.len()) - 1];
        Some(Self {
            min,
            p5: part(0.05),
            median: part(0.5),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            p95: part(0.95),
            max,
            histogram: histogram(&values, part(0.99), step_min),
        })
    }
}

/// Ranges of equal width up to `most` of them, and beyond that the last one: a few values that are far away would hide all others.
fn histogram(sorted: &[f64], most: f64, step_min: f64) -> Vec<Bin> {
    let (min, max) = (sorted[0], sorted[sorted.len() - 1]);
    let step = round_step(((most - min) / BINS as f64).max(step_min));
    let (first, last) = ((min / step).floor(), (most / step).floor());
    let bins = ((last - first) as usize + 1).min(2 * BINS);
    let mut histogram = Vec::with_capacity(bins);
    let mut below = 0;
    for bin in 0..bins {
        let (from, to) = ((first + bin as f64) * step, (first + bin as f64 + 1.0) * step);
        let is_last = bin + 1 == bins;
        let up_to = if is_last { sorted.len() } else { sorted.partition_point(|&value| value < to) };
        histogram.push(Bin { from, to: if is_last { to.max(max) } else { to }, count: (up_to - below) as u64 });
        below = up_to;
    }
    histogram
}

/// The number of 1, 2 or 5 times a power of ten at or above `value`.
fn round_step(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.log10().floor());
    let found = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|step| *step >= value * 0.999_999);
    found.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn figures_are_those_of_the_values() {
        let found = Distribution::of((1..=100).map(f64::from).collect(), 1.0).unwrap();
        assert_eq!((found.min, found.p5, found.median, found.p95, found.max), (1.0, 5.0, 50.0, 95.0, 100.0));
        assert!((found.mean - 50.5).abs() < 1e-9);
        assert_eq!(found.histogram[0], Bin { from: 0.0, to: 5.0, count: 4 });
        let same = Distribution::of(vec![7.0; 9], 1.0).unwrap();
        assert_eq!(same.histogram, [Bin { from: 7.0, to: 8.0, count: 9 }]);
        assert_eq!(Distribution::of(Vec::new(), 1.0), None);
        assert_eq!(Distribution::of(vec![f64::NAN], 1.0), None);
    }

    #[test]
    fn what_is_far_away_is_in_the_last_range() {
        let mut values: Vec<f64> = (0..1000).map(|value| f64::from(value % 100)).collect();
        values.push(1e9);
        let found = Distribution::of(values, 1.0).unwrap();
        assert!(found.histogram.len() > 10, "{:?}", found.histogram);
        assert!(found.histogram.last().unwrap().to >= 1e9);
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_range(values in prop::collection::vec(0.0_f64..1e12, 1..300), step in 1e-3_f64..1e3) {
            let found = Distribution::of(values.clone(), step).unwrap();
            prop_assert_eq!(found.histogram.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            prop_assert!(found.histogram.len() <= 2 * BINS);
            for bin in &found.histogram {
                let within = values.iter().filter(|&&value| bin.from <= value && value < bin.to).count() as u64;
                // The most of all is in the last range, which ends with it.
                prop_assert!(bin.count - within <= values.iter().filter(|&&value| value >= bin.to).count() as u64);
            }
            prop_assert!(found.min <= found.median && found.median <= found.p95 && found.p95 <= found.max);
        }
    }
}
