//! The plan: what was chosen, with its prediction and its reasons. Kept as `plan.json`, and built by `forebay build`.

use forebay_pipeline::{PipelineSpec, Split};
use serde::{Deserialize, Serialize};

use crate::check;
use crate::compression::{CompressionChoice, compression_choices, considered};
use crate::error::Result;
use crate::limits::Limits;
use crate::money::Prices;
use crate::notices::notices;
use crate::objective::{Objective, RankedStrategy, Weights, rank};
use crate::prediction::Prediction;
use crate::profile::{Caching, Data, Profile};
use crate::reason::{reason, unsure_about};
use crate::what_if::OtherMachine;

/// What was chosen, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this file's layout: [`Plan::VERSION`].
    pub version: u32,
    /// The version of Forebay that planned.
    pub forebay: String,
    /// The strategy that was chosen, by name.
    pub chosen: String,
    /// Where it splits the pipeline.
    pub split: Split,
    /// Why, in a few sentences.
    pub reason: String,
    /// What to know before relying on it, a paragraph each; of another machine, its assumptions say that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Strategies that may be faster than the chosen one: other programs disturbed the measurement too much to be sure.
    #[serde(default)]
    pub unsure_about: Vec<String>,
    /// For each split with measured compressions: the best one, or none, and why. For another machine, the ranking
    /// says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compressions: Vec<CompressionChoice>,
    /// What the cost model says of it, the trainer included.
    pub prediction: Prediction,
    /// All strategies, best first; those that a limit rules out come last.
    pub ranking: Vec<RankedStrategy>,
    /// The pipeline.
    pub pipeline: PipelineSpec,
    /// The data it was measured on.
    pub data: Data,
    /// The storage it was measured on.
    pub storage: String,
    /// What was cached between runs.
    pub caching: Caching,
    /// How many decode workers it was measured with.
    pub threads: usize,
    /// The number of shards to build.
    pub shards: usize,
    /// The seed of random steps.
    pub seed: u64,
    /// The weights that it was chosen by.
    pub weights: Weights,
    /// The limits that it was chosen under.
    pub limits: Limits,
    /// How many samples per second the trainer takes, where that was given.
    pub trainer_samples_per_second: Option<f64>,
    /// The prices that it was chosen by, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// The machine that was planned for, where it is not the one that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_machine: Option<OtherMachine>,
}

impl Plan {
    /// The layout that this version writes.
    pub const VERSION: u32 = 1;

    /// A plan from the text of `plan.json`. A layout of another version is refused.
    pub fn parse(text: &str) -> Result<Self> {
        check::parse("plan", Self::VERSION, text)
    }

    /// The text of `plan.json`.
    pub fn to_json(&self) -> Result<String> {
        check::to_json("plan", self)
    }
}

/// Chooses the best strategy of `profile` by `objective`. Fails where the profile holds what no measurement can give, where
/// the weights make no sense, or where no strategy meets the limits.
pub fn plan(profile: &Profile, objective: &Objective) -> Result<Plan> {
    let profile = &*considered(profile, objective);
    let ranking = rank(profile, objective)?;
    let best = ranking.best();
    Ok(Plan {
        version: Plan::VERSION,
        forebay: env!("CARGO_PKG_VERSION").to_owned(),
        chosen: best.summary.name.clone(),
        split: best.summary.split.clone(),
        reason: reason(profile, objective, &ranking),
        notices: if objective.what_if.is_none() { notices(profile)? } else { Vec::new() },
        unsure_about: unsure_about(&ranking).map(|ranked| ranked.summary.name.clone()).collect(),
        compressions: if objective.what_if.is_none() { compression_choices(profile)? } else { Vec::new() },
        prediction: best.prediction,
        ranking: ranking.into_strategies(),
        pipeline: profile.pipeline.clone(),
        data: profile.data.clone(),
        storage: profile.storage.name.clone(),
        caching: profile.method.caching,
        threads: profile.method.threads,
        shards: profile.method.shards,
        seed: profile.method.seed,
        weights: objective.weights,
        limits: objective.limits,
        trainer_samples_per_second: objective.trainer(),
        prices: objective.prices,
        other_machine: objective.what_if.map(|what_if| {
            let trainer = objective.trainer();
            OtherMachine { trainer_samples_per_second: trainer, ..what_if.machine(profile) }
        }),
    })
}
