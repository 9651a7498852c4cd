//! Sampling: which samples an epoch has, where it is not each of them once.

use std::sync::Arc;

use forebay_pipeline::Random;

use crate::error::{Error, Result};

/// Which samples an epoch has. Samples are meant by their numbers in the source, in which order a loader that does not shuffle gives them.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Only these samples, each at most once; all, if there are none.
    pub subset: Option<Arc<[u64]>>,
    /// How probable each sample of the source is, compared with the others; alike, if there are none.
    pub weights: Option<Arc<[f64]>>,
    /// Whether a sample may be drawn again.
    pub replacement: bool,
    /// How many samples an epoch has; as many as there are, unless given.
    pub samples: Option<u64>,
    /// How often each sample comes that is drawn, with other random steps each time (repeated augmentation). The epoch does not become
    /// longer by it.
    pub repeats: u64,
    /// How much of an epoch comes of each of several data sets; as much as there is, if that is not said.
    pub shares: Option<Shares>,
}

/// How much of an epoch comes of each of several data sets, which follow each other in a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares(Arc<[(u64, f64)]>);

impl Shares {
    /// Data sets of so many samples, with these weights compared with each other.
    pub fn new(counts: &[u64], weights: &[f64]) -> Result<Self> {
        let usage = |problem: String, remedy: &str| Err(Error::Usage { problem, remedy: remedy.to_owned() });
        if counts.len() != weights.len() {
            let problem = format!("{} weights for {} data sets", weights.len(), counts.len());
            return usage(problem, "give one weight for each data set");
        }
        let sum: f64 = weights.iter().sum();
        if weights.iter().any(|weight| !(*weight >= 0.0 && weight.is_finite())) || !(sum > 0.0 && sum.is_finite()) {
            return usage(
                "a weight is negative or not finite, or all are 0".to_owned(),
                "weights are numbers from 0 on",
            );
        }
        if let Some(empty) = counts.iter().zip(weights).position(|(count, weight)| *count == 0 && *weight > 0.0) {
            return usage(format!("data set {empty} has no samples"), "leave it out");
        }
        Ok(Self(counts.iter().copied().zip(weights.iter().map(|weight| weight / sum)).collect()))
    }

    /// How many samples each data set gives of `samples`: its share, rounded down, and one more where most was lost by that.
    fn of(&self, samples: u64) -> Vec<u64> {
        let wanted: Vec<f64> = self.0.iter().map(|(_, share)| share * samples as f64).collect();
        let mut given: Vec<u64> = wanted.iter().map(|wanted| wanted.floor() as u64).collect();
        let mut order: Vec<usize> = (0..given.len()).filter(|&index| self.0[index].1 > 0.0).collect();
        order.sort_by(|&one, &other| wanted[other].fract().total_cmp(&wanted[one].fract()).then(one.cmp(&other)));
        let mut left = samples.saturating_sub(given.iter().sum());
        for index in order.into_iter().cycle() {
            if left == 0 {
                break;
            }
            given[index] += 1;
            left -= 1;
        }
        given
    }

    /// The samples of an epoch: each data set as often as it goes into its share, and a part of it for the rest.
    fn draw(&self, samples: u64, random: &mut Random) -> Vec<u64> {
        let mut drawn = Vec::new();
        let mut first = 0;
        for (&(count, _), wanted) in self.0.iter().zip(self.of(samples)) {
            let all = first..first + count;
            for _ in 0..wanted.checked_div(count).unwrap_or(0) {
                drawn.extend(all.clone());
            }
            let rest = wanted.checked_rem(count).unwrap_or(0) as usize;
            if rest > 0 {
                let mut shuffled: Vec<u64> = all.collect();
                random.shuffle(&mut shuffled);
                drawn.extend(&shuffled[..rest]);
            }
            first += count;
        }
        drawn
    }
}

impl Default for Sampling {
    /// Each sample once.
    fn default() -> Self {
        Self { subset: None, weights: None, replacement: false, samples: None, repeats: 1, shares: None }
    }
}

/// What tells the draws of an epoch's samples from all others.
const DRAW: u64 = 0x5A3D_11E5;

impl Sampling {
    /// Whether an epoch has each sample once.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Whether each epoch of a source of `count` has the same samples, each of them once.
    pub(super) fn is_fixed(&self, count: u64) -> bool {
        let Self { subset, weights, replacement, samples, repeats, shares } = self;
        let possible = subset.as_ref().map_or(count, |subset| subset.len() as u64);
        let draws = weights.is_some() || *replacement || *repeats > 1 || shares.is_some();
        !draws && samples.is_none_or(|samples| samples == possible)
    }

    /// How many samples an epoch of a source of `count` has.
    pub(super) fn samples_of(&self, count: u64) -> u64 {
        self.samples.unwrap_or_else(|| self.subset.as_ref().map_or(count, |subset| subset.len() as u64))
    }

    /// How many samples are drawn, before they are repeated.
    fn drawn_of(&self, count: u64) -> u64 {
        self.samples_of(count).div_ceil(self.repeats.max(1))
    }

    /// Refuses what cannot be drawn from a source of `count` samples.
    pub(super) fn check(&self, count: u64) -> Result<()> {
        let usage = |problem: String, remedy: &str| Err(Error::Usage { problem, remedy: remedy.to_owned() });
        if self.repeats == 0 || self.samples == Some(0) {
            return usage("an epoch of no samples".to_owned(), "`repeats` and `num_samples` must be at least 1");
        }
        if let Some(shares) = &self.shares {
            if self.subset.is_some() || self.weights.is_some() || self.replacement || self.repeats > 1 {
                let problem = "data sets that are interleaved by weights, and samples that are drawn otherwise";
                return usage(problem.to_owned(), "leave `subset`, `replacement` and `repeats` out");
            }
            if shares.0.iter().map(|(samples, _)| samples).sum::<u64>() != count {
                return Err(Error::internal("weights of other data sets than there are"));
            }
            return Ok(());
        }
        if let Some(subset) = &self.subset {
            let mut sorted = subset.to_vec();
            sorted.sort_unstable();
            if let Some(&outside) = sorted.last().filter(|&&last| last >= count) {
                return usage(format!("the subset has sample {outside} of {count}"), "samples count from 0");
            }
            if sorted.is_empty() || sorted.windows(2).any(|pair| pair[0] == pair[1]) {
                return usage("the subset is empty, or has a sample twice".to_owned(), "name each sample once");
            }
            if self.weights.is_some() {
                let problem = "a subset, and weights of all samples".to_owned();
                return usage(problem, "leave the subset out, and give other samples the weight 0");
            }
        }
        let possible = match (&self.weights, &self.subset) {
            (Some(weights), _) => {
                if weights.len() as u64 != count {
                    let problem = format!("{} weights for {count} samples", weights.len());
                    return usage(
                        problem,
                        "give one weight for each sample, in the order of a loader without `shuffle`",
                    );
                }
                if weights.iter().any(|weight| !(*weight >= 0.0 && weight.is_finite())) {
                    return usage("a weight is negative, or not finite".to_owned(), "weights are numbers from 0 on");
                }
                weights.iter().filter(|weight| **weight > 0.0).count() as u64
            }
            (None, Some(subset)) => subset.len() as u64,
            (None, None) => count,
        };
        if possible == 0 && count > 0 {
            return usage("all weights are 0".to_owned(), "give some samples a weight above 0");
        }
        let drawn = self.drawn_of(count);
        if !self.replacement && drawn > possible {
            let problem = format!("an epoch draws {drawn} samples of {possible} without replacement");
            return usage(problem, "draw with replacement, or fewer samples");
        }
        Ok(())
    }

    /// The samples of an epoch, in the order in which they lie, and of each how often it is there already.
    pub(super) fn draw(&self, count: u64, seed: u64, epoch: u64) -> Vec<(u64, u32)> {
        let mut random = Random::from_parts(&[seed, epoch, DRAW]);
        let samples = self.samples_of(count);
        let mut drawn = match &self.shares {
            Some(shares) => shares.draw(samples, &mut random),
            None => self.draw_once(count, &mut random),
        };
        if self.repeats > 1 {
            let repeated = drawn.iter().flat_map(|&sample| std::iter::repeat_n(sample, self.repeats as usize));
            drawn = repeated.take(samples as usize).collect();
        }
        drawn.sort_unstable();
        let mut before = None;
        let mut copies = 0;
        let numbered = drawn.into_iter().map(|sample| {
            copies = if before == Some(sample) { copies + 1 } else { 0 };
            before = Some(sample);
            (sample, copies)
        });
        numbered.collect()
    }

    fn draw_once(&self, count: u64, random: &mut Random) -> Vec<u64> {
        let drawn = self.drawn_of(count);
        let candidates: Vec<u64> = self.subset.as_ref().map_or_else(|| (0..count).collect(), |subset| subset.to_vec());
        match &self.weights {
            Some(weights) if self.replacement => {
                let mut sum = 0.0;
                let sums: Vec<f64> = weights
                    .iter()
                    .map(|weight| {
                        sum += weight;
                        sum
                    })
                    .collect();
                // The last sample that can be drawn, where rounding reaches the sum itself.
                let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
                let one = |at: f64| sums.partition_point(|sum| *sum <= at).min(last) as u64;
                (0..drawn).map(|_| one(random.unit() * sum)).collect()
            }
            // The smallest of exponential times are a draw without replacement (Efraimidis and Spirakis, 2006).
            Some(weights) => {
                let time = |weight: f64, random: &mut Random| -(1.0 - random.unit()).ln() / weight;
                let mut timed: Vec<(f64, u64)> = candidates
                    .into_iter()
                    .filter(|&sample| weights[sample as usize] > 0.0)
                    .map(|sample| (time(weights[sample as usize], random), sample))
                    .collect();
                timed.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
                timed.into_iter().take(drawn as usize).map(|(_, sample)| sample).collect()
            }
            None if self.replacement => (0..drawn).map(|_| candidates[random.below(candidates.len())]).collect(),
            None => {
                let mut candidates = candidates;
                if (drawn as usize) < candidates.len() {
                    random.shuffle(&mut candidates);
                    candidates.truncate(drawn as usize);
                }
                candidates
            }
        }
    }

    /// What tells one sampling from another in a state; nothing of a plain one.
    pub(super) fn identity(&self) -> String {
        if self.is_plain() {
            return String::new();
        }
        let weights = self.weights.iter().flat_map(|weights| weights.iter().map(|weight| weight.to_bits()));
        let subset = self.subset.iter().flat_map(|subset| subset.iter().copied());
        let shares =
            self.shares.iter().flat_map(|shares| shares.0.iter().flat_map(|(count, share)| [*count, share.to_bits()]));
        let parts: Vec<u64> = [self.repeats, u64::from(self.replacement), self.samples.unwrap_or(0)]
            .into_iter()
            .chain(subset)
            .chain(std::iter::once(u64::MAX))
            .chain(weights)
            .chain(shares)
            .collect();
        format!("-sampled-{:016x}", Random::from_parts(&parts).bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(sampling: &Sampling, count: u64, epochs: u64) -> Vec<u64> {
        let mut counts = vec![0; count as usize];
        for epoch in 0..epochs {
            sampling.check(count).unwrap();
            let drawn = sampling.draw(count, 7, epoch);
            assert_eq!(drawn.len() as u64, sampling.samples_of(count));
            assert!(drawn.is_sorted());
            assert_eq!(drawn, sampling.draw(count, 7, epoch), "the same again");
            for (sample, _) in drawn {
                counts[sample as usize] += 1;
            }
        }
        counts
    }

    #[test]
    fn weights_are_how_often_samples_come() {
        let weights: Arc<[f64]> = [1.0, 0.0, 3.0, 4.0].into();
        let with = Sampling { weights: Some(weights.clone()), replacement: true, ..Sampling::default() };
        let found = counts(&with, 4, 4000);
        for (found, expected) in found.iter().zip([2000.0, 0.0, 6000.0, 8000.0]) {
            assert!((*found as f64 - expected).abs() < 250.0, "{found} {expected}");
        }
        // Without replacement, one of each: the first draw has the probabilities of the weights.
        let without = Sampling { weights: Some(weights.clone()), samples: Some(1), ..Sampling::default() };
        let found = counts(&without, 4, 8000);
        for (found, expected) in found.iter().zip([1000.0, 0.0, 3000.0, 4000.0]) {
            assert!((*found as f64 - expected).abs() < 200.0, "{found} {expected}");
        }
        let three = Sampling { samples: Some(3), ..without };
        assert_eq!(counts(&three, 4, 5), [5, 0, 5, 5]);
        assert!(Sampling { samples: Some(4), ..three }.check(4).is_err());
    }

    #[test]
    fn shares_are_how_much_comes_of_each_data_set() {
        let shares = Shares::new(&[10, 4, 5], &[2.0, 6.0, 0.0]).unwrap();
        let sampling = Sampling { shares: Some(shares), samples: Some(16), ..Sampling::default() };
        let found = counts(&sampling, 19, 500);
        assert_eq!(found[10..14], [1500; 4], "three times in each epoch");
        assert_eq!(found[14..], [0; 5]);
        assert_eq!(found[..10].iter().sum::<u64>(), 2000);
        assert!(found[..10].iter().all(|found| (120..280).contains(found)), "{found:?}");
        let thirds = Shares::new(&[1, 1, 1], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(thirds.of(5), [2, 2, 1]);
        for (counts, weights) in
            [(&[1, 1][..], &[1.0][..]), (&[1], &[-1.0]), (&[1], &[0.0]), (&[0], &[1.0]), (&[1], &[f64::NAN])]
        {
            assert!(Shares::new(counts, weights).is_err(), "{counts:?} {weights:?}");
        }
    }

    #[test]
    fn a_subset_is_the_same_in_each_epoch_unless_it_is_drawn_from() {
        let plain = Sampling::default();
        let subset = Sampling { subset: Some([3, 1].into()), ..plain.clone() };
        let whole = Sampling { samples: Some(2), ..subset.clone() };
        for fixed in [&plain, &subset, &whole] {
            assert!(fixed.is_fixed(5) && fixed.draw(5, 1, 0) == fixed.draw(5, 2, 9), "{fixed:?}");
        }
        for drawn in [
            Sampling { samples: Some(1), ..subset.clone() },
            Sampling { samples: Some(4), ..plain.clone() },
            Sampling { replacement: true, ..subset },
            Sampling { repeats: 2, ..plain.clone() },
            Sampling { weights: Some([1.0; 5].into()), ..plain.clone() },
            Sampling { shares: Some(Shares::new(&[5], &[1.0]).unwrap()), ..plain },
        ] {
            assert!(!drawn.is_fixed(5), "{drawn:?}");
        }
    }

    #[test]
    fn subsets_and_repeats() {
        let subset = Sampling { subset: Some([3, 1].into()), ..Sampling::default() };
        assert_eq!(subset.draw(5, 1, 0), [(1, 0), (3, 0)]);
        let repeats = Sampling { repeats: 3, ..Sampling::default() };
        let drawn = repeats.draw(7, 1, 0);
        assert_eq!(drawn.len(), 7);
        let again = drawn.iter().filter(|(_, copies)| *copies > 0).count();
        assert_eq!(again, 4, "{drawn:?}");
        assert_ne!(drawn, repeats.draw(7, 1, 1));
        for wrong in [
            Sampling { subset: Some([1, 1].into()), ..Sampling::default() },
            Sampling { subset: Some([9].into()), ..Sampling::default() },
            Sampling { weights: Some([1.0].into()), ..Sampling::default() },
            Sampling { weights: Some([1.0, f64::NAN].into()), ..Sampling::default() },
            Sampling { weights: Some([0.0, 0.0].into()), ..Sampling::default() },
            Sampling { samples: Some(3), ..Sampling::default() },
            Sampling { repeats: 0, ..Sampling::default() },
        ] {
            assert!(wrong.check(2).is_err(), "{wrong:?}");
            assert_ne!(wrong.identity(), "");
        }
    }
}
