//! One profile analyzed: what its plots and tables show.

use serde::Serialize;

use crate::compression::considered;
use crate::error::Result;
use crate::objective::{Objective, RankedStrategy, rank};
use crate::pareto::pareto_front;
use crate::prediction::quotient;
use crate::profile::{Profile, StrategyProfile};

/// Every strategy of a profile, analyzed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The name of the pipeline.
    pub pipeline: String,
    /// The strategies, in the order of the pipeline.
    pub strategies: Vec<Analyzed>,
}

/// One strategy, analyzed. In JSON, the keys of [`RankedStrategy`] are at the same level as the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analyzed {
    /// Its numbers and its score.
    #[serde(flatten)]
    pub ranked: RankedStrategy,
    /// Its rank by the objective, 1 for the best.
    pub rank: usize,
    /// Whether no other strategy is at least as good in storage, throughput and preparation time, and better in one.
    pub pareto: bool,
    /// The same of storage and throughput alone.
    pub pareto_storage_throughput: bool,
    /// Bytes on storage per sample.
    pub bytes_per_sample: f64,
    /// What the storage's bandwidth alone would allow: bandwidth over bytes per sample.
    pub storage_samples_per_second: Option<f64>,
    /// The share of the online CPU time that goes into deserializing stored samples.
    pub deserialize_share: Option<f64>,
    /// The strategy that stores the same split as it is, if this one encodes or compresses it.
    pub plain: Option<String>,
    /// The share of storage saved against that one: 1 - encoded / plain.
    pub space_saving: Option<f64>,
    /// Throughput over that of the plain one.
    pub throughput_factor: Option<f64>,
    /// Preparation time over that of the plain one.
    pub prep_factor: Option<f64>,
    /// How many times smaller its records became, in memory, where that was measured alone.
    pub compression_ratio: Option<f64>,
    /// How many bytes of its records as they are one core compresses per second, alone.
    pub compress_bytes_per_second: Option<f64>,
    /// How many of these it decompresses per second, alone.
    pub decompress_bytes_per_second: Option<f64>,
}

/// Analyzes `profile` by `objective`; fails where planning does.
pub fn analyze(profile: &Profile, objective: &Objective) -> Result<Analysis> {
    let profile = &*considered(profile, objective);
    let ranking = rank(profile, objective)?.into_strategies();
    let trainer = objective.trainer();
    let index = |name: &str| ranking.iter().position(|ranked| ranked.summary.name == name);
    // In the order of the profile; `rank` gives each of its strategies once.
    let ordered: Vec<(usize, &RankedStrategy)> = profile
        .strategies
        .iter()
        .filter_map(|strategy| index(&strategy.name).map(|index| (index, &ranking[index])))
        .collect();
    let costs = |ranked: &RankedStrategy| {
        [ranked.storage_bytes_total() as f64, -ranked.useful_samples_per_second(trainer), ranked.prep_seconds_total()]
    };
    let costs: Vec<[f64; 3]> = ordered.iter().map(|(_, ranked)| costs(ranked)).collect();
    let front = pareto_front(&costs);
    let flat_front = pareto_front(&costs.iter().map(|&[storage, rate, _]| [storage, rate]).collect::<Vec<_>>());
    let strategies = ordered.iter().zip(&profile.strategies).enumerate().map(|(at, (&(index, ranked), strategy))| {
        let plain = plain(profile, strategy).and_then(|plain| {
            let ranked = ordered.iter().map(|(_, ranked)| *ranked).find(|ranked| ranked.summary.name == plain.name)?;
            Some((plain, ranked))
        });
        let alone = profile.compression_cost(&strategy.name);
        Analyzed {
            compression_ratio: alone.map(|cost| cost.ratio),
            compress_bytes_per_second: alone.map(|cost| cost.compress_bytes_per_second),
            decompress_bytes_per_second: alone.map(|cost| cost.decompress_bytes_per_second),
            ranked: ranked.clone(),
            rank: index + 1,
            pareto: front[at],
            pareto_storage_throughput: flat_front[at],
            bytes_per_sample: strategy.bytes_per_sample,
            storage_samples_per_second: quotient(
                profile.storage.sequential_bytes_per_second,
                strategy.bytes_per_sample,
            ),
            deserialize_share: deserialize_share(strategy),
            plain: plain.map(|(plain, _)| plain.name.clone()),
            space_saving: plain.and_then(|(plain, _)| {
                ratio(strategy.storage_bytes as f64, plain.storage_bytes as f64).map(|ratio| 1.0 - ratio)
            }),
            throughput_factor: plain
                .and_then(|(_, plain)| ratio(ranked.samples_per_second(), plain.samples_per_second())),
            prep_factor: plain.and_then(|(plain, _)| ratio(strategy.prep_seconds, plain.prep_seconds)),
        }
    });
    Ok(Analysis { pipeline: profile.pipeline.name.clone(), strategies: strategies.collect() })
}

/// The strategy that stores the same split as it is, if `strategy` is another one: its name is that of the split alone.
fn plain<'p>(profile: &'p Profile, strategy: &StrategyProfile) -> Option<&'p StrategyProfile> {
    let same = |other: &&StrategyProfile| other.split == strategy.split && other.name == other.split.name;
    profile.strategies.iter().find(same).filter(|plain| plain.name != strategy.name)
}

fn deserialize_share(strategy: &StrategyProfile) -> Option<f64> {
    let all = strategy.deserialize_cpu_seconds + strategy.online_cpu_seconds;
    (all > 0.0).then(|| strategy.deserialize_cpu_seconds / all)
}

fn ratio(one: f64, other: f64) -> Option<f64> {
    let ratio = one / other;
    ratio.is_finite().then_some(ratio)
}
