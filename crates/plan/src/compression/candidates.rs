//! Which ways to keep a split may be the best, for all that the cost model knows.

use forebay_pipeline::StorageFormat;

use super::{ALIKE, GAIN_MIN};
use crate::prediction::Prediction;
use crate::profile::{CompressionCost, Profile, StrategyProfile};

/// So many ways to keep a split are compared at the most.
const CANDIDATES_MAX: usize = 4;

/// The cost model may be off by a quarter: what it expects below this share of the highest rate is not the best.
pub const NEAR: f64 = 0.75;

/// The second of a family may be better than its first where it is no further behind: the model is off by the same for both.
const SECOND: f64 = 0.05;

/// Where a compression should gain less than this, the split as it is may be better yet.
const GAIN_SURE: f64 = 0.25;

/// What is compared of one split; never without a compression.
pub(super) struct Candidates<'p> {
    pub(super) compressed: Vec<Rated<'p>>,
    /// All of their names, the split as it is among them where it may be better: what matters most comes first.
    names: Vec<&'p str>,
}

/// A compression, and what the cost model says of it.
#[derive(Clone, Copy)]
pub(super) struct Rated<'p> {
    pub(super) cost: &'p CompressionCost,
    rate: f64,
    prediction: Prediction,
}

impl Candidates<'_> {
    /// Their names, where there is something to compare.
    pub(super) fn to_compare(&self) -> Option<Vec<String>> {
        (self.names.len() > 1).then(|| self.names.iter().map(|&name| name.to_owned()).collect())
    }

    /// Whether they are bound by different things: the model is wrong about these in different ways, and so the candidates differ by most.
    pub(super) fn differ(&self) -> bool {
        let bound = |rated: &Rated<'_>| rated.prediction.bound_by;
        self.compressed.iter().any(|rated| bound(rated) != bound(&self.compressed[0]))
    }
}

/// The candidates of each split of `profile` of which a compression should be faster than it as it is: the most promising split first.
pub(super) fn candidates(profile: &Profile, expected: impl Fn(&StrategyProfile) -> Prediction) -> Vec<Candidates<'_>> {
    let mut found: Vec<_> = profile.strategies.iter().filter_map(|plain| of_split(profile, plain, &expected)).collect();
    found.sort_by(|one, other| other.compressed[0].rate.total_cmp(&one.compressed[0].rate));
    found
}

/// By the model the best one, the best ones of the other families that may be better, the split as it is, and the seconds of families.
fn of_split<'p>(
    profile: &'p Profile,
    plain: &'p StrategyProfile,
    expected: &impl Fn(&StrategyProfile) -> Prediction,
) -> Option<Candidates<'p>> {
    let plain_rate = expected(plain).samples_per_second?;
    let least = plain_rate * (1.0 + GAIN_MIN);
    let costs = profile.compressions.iter().filter(|cost| cost.plain == plain.name);
    let mut rated: Vec<Rated<'_>> = costs
        .filter_map(|cost| {
            let prediction = expected(profile.strategy(&cost.strategy)?);
            Some(Rated { cost, rate: prediction.samples_per_second?, prediction })
        })
        .collect();
    rated.sort_by(|one, other| other.rate.total_cmp(&one.rate));
    let highest = rated.first()?.rate;
    let gains = rated.iter().filter(|rated| rated.rate >= least);
    let (Some(best), _) = soonest(gains.map(|rated| (Some(rated.cost), rated.rate)))? else { return None };
    let first = *rated.iter().find(|rated| std::ptr::eq(rated.cost, best))?;
    let may_be_best = |rated: &Rated<'_>| {
        let most = rated.prediction.max_samples_per_second.unwrap_or(rated.rate);
        // Nobody gains more than is read less, whatever the storage gives.
        let gains = rated.cost.ratio >= 1.0 + GAIN_MIN && most >= least;
        !std::ptr::eq(rated.cost, best) && gains && most >= NEAR * highest
    };
    // How many of each family there are so far, and the rate of its best.
    let mut families = vec![(family(first.cost), 1, first.rate)];
    let (mut bests, mut seconds) = (vec![first], Vec::new());
    for other in rated.into_iter().filter(may_be_best) {
        let its = family(other.cost);
        match families.iter_mut().find(|(family, ..)| *family == its) {
            None => {
                families.push((its, 1, other.rate));
                bests.push(other);
            }
            Some((_, count, rate)) if *count == 1 && other.rate >= *rate * (1.0 - SECOND) => {
                *count += 1;
                seconds.push(other);
            }
            Some(_) => {}
        }
    }
    let as_it_is = (first.rate < plain_rate * (1.0 + GAIN_SURE)).then_some(&*plain.name);
    let compressed_max = CANDIDATES_MAX - usize::from(as_it_is.is_some());
    bests.truncate(compressed_max);
    seconds.truncate(compressed_max - bests.len());
    let name = |rated: &Rated<'p>| &*rated.cost.strategy;
    let names = bests.iter().map(name).chain(as_it_is).chain(seconds.iter().map(name)).collect();
    Some(Candidates { compressed: [bests, seconds].concat(), names })
}

/// What formats have in common of which the model is off by the same: how fields are encoded, and how the algorithm of their compression works.
pub(crate) type Family = (StorageFormat, Option<&'static str>);

pub(crate) fn family(cost: &CompressionCost) -> Option<Family> {
    let format: StorageFormat = cost.compression.parse().ok()?;
    let algorithm = format.compression.map(|compression| compression.algorithm.family());
    Some((StorageFormat { compression: None, ..format }, algorithm))
}

/// The one with the highest rate; of those that are alike the one that is prepared soonest: that without a compression at once.
pub(super) fn soonest<'p>(
    rated: impl Iterator<Item = (Option<&'p CompressionCost>, f64)> + Clone,
) -> Option<(Option<&'p CompressionCost>, f64)> {
    let highest = rated.clone().map(|(_, rate)| rate).fold(0.0, f64::max);
    let alike = rated.filter(|(_, rate)| *rate >= highest * (1.0 - ALIKE));
    let speed = |cost: Option<&CompressionCost>| cost.map_or(f64::INFINITY, |cost| cost.compress_bytes_per_second);
    alike.max_by(|(one, _), (other, _)| speed(*one).total_cmp(&speed(*other)))
}
