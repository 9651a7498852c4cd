//! Verifies the cost model where it matters: at the top, and where it cannot determine the best format of a split.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_pipeline::Strategy;
use forebay_plan::{Caching, CompressionCost, NEAR, Profile, Run, Runs, Summary, compressed, summarize, unsettled};

use super::runoff::{ROUNDS_MIN, next_round};
use super::runs::Series;
use super::{ProfileOptions, Profiler};
use crate::data::Listing;
use crate::error::{Error, Result};
use crate::load::Online;
use crate::scratch_folder::ScratchFolder;
use crate::source::Source;

/// How often the leader is run if it has no rival, and for how long, to verify the model.
const LEADER_RUNS: NonZeroU32 = NonZeroU32::new(2).expect("not 0");
pub(super) const LEADER_SECONDS: f64 = 0.5;

/// The duration of each run when formats of one split take turns.
pub(super) const RIVAL_SECONDS: f64 = 0.3;

/// Rivals are run for this share of the time of everything before them, or for this many seconds for each split that has some, whichever is longer.
pub(super) const RIVALS_SHARE: f64 = 0.33;
pub(super) const SPLIT_SECONDS: f64 = 4.0;

/// The overhead of a run: its startup, and attempts that were too short.
const RUN_TIMES: f64 = 1.5;

/// How often each leader is run. With the page cache, the first run fills it and does not count.
pub(super) fn leader_runs(caching: Caching) -> NonZeroU32 {
    LEADER_RUNS.saturating_add(u32::from(caching == Caching::System))
}

/// How many seconds building a strategy took, for the samples that were measured: those of them that were built.
pub(super) type BuildSeconds = BTreeMap<String, f64>;

/// The formats of a split that take turns, by name, the most important one first.
type Rivals = Vec<String>;

/// What a strategy needs to be run.
struct Ready {
    number: usize,
    strategy: Strategy,
    folder: PathBuf,
    loads: (Arc<dyn Source>, Online),
    series: Series,
    /// What its compression makes of the bytes that it was built of.
    cost: Option<CompressionCost>,
}

impl Profiler<'_> {
    /// The same on other samples, with runs.
    pub(super) fn on(self, listing: Listing) -> Result<Self> {
        Ok(Self {
            scratch: ScratchFolder::new(&self.options.work_folder, "profile")?,
            options: ProfileOptions {
                runs: Runs::Each(leader_runs(self.options.caching)),
                shards: self.options.shards.min(listing.len().max(1)),
                ..self.options
            },
            listing: Arc::new(listing),
            ..self
        })
    }

    /// The splits with several candidates for the best format. None if everything comes from memory, which smaller data does not speed up.
    pub(super) fn rivals(&self, profile: &Profile) -> Vec<Rivals> {
        if self.options.caching == Caching::None { unsettled(profile) } else { Vec::new() }
    }

    /// Runs what leads or may lead, the most promising first: each strategy that the cost model expects near the highest rate, and with it its `rivals`,
    /// which have been run then.
    pub(super) fn check_leaders(&self, profile: &mut Profile, rivals: &mut Vec<Rivals>) -> Result<()> {
        // Each is run at most once.
        for _ in 0..profile.strategies.len() {
            let invalid = |error: forebay_plan::Error| Error::internal(&error.to_string());
            let summaries = summarize(profile, None).map_err(invalid)?;
            let rate = |summary: &Summary| summary.samples_per_second;
            let highest = summaries.iter().map(rate).fold(0.0, f64::max);
            let unsure = |summary: &&Summary| summary.runs == 0 && rate(summary) >= NEAR * highest;
            let next = summaries.iter().filter(unsure).max_by(|one, other| rate(one).total_cmp(&rate(other)));
            let Some(next) = next.map(|next| next.name.clone()) else { return Ok(()) };
            match rivals.iter().position(|names| names.contains(&next)) {
                Some(split) => self.run_off(profile, &rivals.remove(split))?,
                None => self.run_alone(profile, &next)?,
            }
        }
        Ok(())
    }

    /// Runs the `rivals` of each split in turns, as long as there is time: a part of what was `spent`, or what a run-off takes, for each split.
    pub(super) fn check_rivals(
        &self,
        profile: &mut Profile,
        rivals: &[Rivals],
        spent: Duration,
        built: &BuildSeconds,
    ) -> Result<()> {
        let begun = Instant::now();
        let budget = (RIVALS_SHARE * spent.as_secs_f64()).max(SPLIT_SECONDS * rivals.len() as f64);
        for names in rivals {
            let each: Vec<f64> = names.iter().map(|name| self.run_off_seconds(profile, name, built)).collect();
            // Those that matter least are left to the model where there is no time for all; another split may be prepared sooner.
            let count = affordable(&each, budget - begun.elapsed().as_secs_f64());
            if count > 1 {
                self.run_off(profile, &names[..count])?;
            }
        }
        Ok(())
    }

    /// How long building and running one of several rivals should take.
    fn run_off_seconds(&self, profile: &Profile, name: &str, built: &BuildSeconds) -> f64 {
        let prepared = |name: &str| {
            let strategy = profile.strategies.iter().find(|strategy| strategy.name == name);
            strategy.map_or(0.0, |strategy| strategy.prep_seconds)
        };
        let plain = profile.compression_cost(name).map_or(name, |cost| &cost.plain);
        // What was built is built again from this machine; the time to prepare it is that of the storage that is asked about.
        let building = match (built.get(name), built.get(plain)) {
            (Some(seconds), _) => *seconds,
            (None, Some(seconds)) => seconds + (prepared(name) - prepared(plain)).max(0.0),
            (None, None) => prepared(name),
        };
        let samples = self.listing.len() as f64 / profile.method.sample_count.max(1) as f64;
        building * samples + RUN_TIMES * RIVAL_SECONDS.min(self.options.run_seconds) * ROUNDS_MIN as f64
    }

    /// Runs a strategy as often as leaders are.
    fn run_alone(&self, profile: &mut Profile, name: &str) -> Result<()> {
        let mut ready = self.ready(profile, name)?;
        while self.wants_more(&ready.series) {
            self.run_again(LEADER_SECONDS, &ready.strategy, &ready.loads, &mut ready.series)?;
        }
        self.done(profile, ready)
    }

    /// Runs formats of one split on the same samples, in turns, until it is clear which is the fastest.
    fn run_off(&self, profile: &mut Profile, names: &[String]) -> Result<()> {
        let mut all = names.iter().map(|name| self.ready(profile, name)).collect::<Result<Vec<Ready>>>()?;
        loop {
            let rates = |ready: &Ready| ready.series.runs.iter().map(Run::samples_per_second).collect();
            let next = next_round(&all.iter().map(rates).collect::<Vec<Vec<f64>>>());
            if next.is_empty() {
                break;
            }
            for number in next {
                let ready = &mut all[number];
                self.run_again(RIVAL_SECONDS, &ready.strategy, &ready.loads, &mut ready.series)?;
            }
        }
        all.into_iter().try_for_each(|ready| self.done(profile, ready))
    }

    /// Builds what strategy `name` stores.
    fn ready(&self, profile: &Profile, name: &str) -> Result<Ready> {
        let number = profile.strategies.iter().position(|strategy| strategy.name == name);
        let number = number.ok_or_else(|| Error::internal("a strategy is checked that the profile does not have"))?;
        let strategy = Strategy::parse(self.pipeline, name)?;
        let folder = self.scratch.path().join(format!("dataset-{number}"));
        let kept = self.keep(&strategy, &folder)?;
        let loads = self.loads(&strategy, &kept)?;
        let cost = profile.compression_cost(name).filter(|_| kept.inflated_bytes > 0).map(|cost| CompressionCost {
            records: kept.loaded_from.samples(),
            bytes: kept.inflated_bytes,
            ratio: kept.inflated_bytes as f64 / kept.bytes.max(1) as f64,
            ..cost.clone()
        });
        Ok(Ready { number, strategy, folder, loads, series: Series::new(), cost })
    }

    /// Records the measurements of a strategy, and returns what it stored.
    fn done(&self, profile: &mut Profile, ready: Ready) -> Result<()> {
        let name = &profile.strategies[ready.number].name;
        // What is only modeled yet has the size now that it was built with. What was asked for was built on the samples that were measured.
        let asked = self.options.strategies.contains(&ready.strategy);
        if let Some(cost) = ready.cost.filter(|_| !asked)
            && let Some(known) = profile.compressions.iter().position(|known| known.strategy == *name)
            && let Some(strategy) = compressed(profile, &cost)
        {
            profile.compressions[known] = cost;
            profile.strategies[ready.number] = strategy;
        }
        let strategy = &mut profile.strategies[ready.number];
        (strategy.runs, strategy.system) = (ready.series.runs, ready.series.system);
        if !ready.strategy.split.keeps_files() {
            std::fs::remove_dir_all(&ready.folder).map_err(Error::io("remove", &ready.folder))?;
        }
        Ok(())
    }
}

/// How many of these, each with its duration in seconds, there is time for.
fn affordable(each: &[f64], seconds: f64) -> usize {
    let sums = each.iter().scan(0.0, |sum, one| {
        *sum += one;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= seconds).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_time_for_is_left_out() {
        assert_eq!(affordable(&[1.0, 2.0, 3.0], 6.0), 3);
        assert_eq!(affordable(&[1.0, 2.0, 3.0, 0.5], 5.9), 2);
        assert_eq!(affordable(&[1.0], 0.5), 0);
        assert_eq!(affordable(&[], 1.0), 0);
    }
}
