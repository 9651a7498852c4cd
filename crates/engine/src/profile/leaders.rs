//! Checking the cost model where it matters: at the top, and where it cannot tell in which format a split is best kept.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_pipeline::Strategy;
use forebay_plan::{Caching, Profile, Runs, Summary, summarize, unsettled};

use super::runs::Series;
use super::{ProfileOptions, Profiler, TempDatasets};
use crate::data::Listing;
use crate::error::{Error, Result};
use crate::load::Online;
use crate::scratch_folder::ScratchFolder;
use crate::source::Source;

/// How often each strategy is run, and for how long: it is there to check the model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Check {
    runs: NonZeroU32,
    pub(super) seconds_max: f64,
}

/// Of what leads or may lead.
pub(super) const LEADERS: Check = Check { runs: NonZeroU32::new(2).expect("not 0"), seconds_max: 0.5 };

/// Of formats of one split: which is the faster one shows at once, or matters little.
pub(super) const RIVALS: Check = Check { runs: NonZeroU32::new(1).expect("not 0"), seconds_max: 0.4 };

impl Check {
    /// How often each is run. With the page cache, the first run fills it and does not count.
    pub(super) fn runs(self, caching: Caching) -> NonZeroU32 {
        self.runs.saturating_add(u32::from(caching == Caching::System))
    }
}

/// The cost model may be off by a quarter: what it expects below this share of the highest rate does not lead.
pub(super) const NEAR: f64 = 0.75;

/// Rivals are run for no more than this share of the time that everything before them took.
pub(super) const RIVALS_SHARE: f64 = 0.33;

/// What a run takes beside the time that it is to last: its start, and tries that are over too soon.
const RUN_TIMES: f64 = 2.0;

impl Profiler<'_> {
    /// The same on other samples, with runs.
    pub(super) fn on(self, listing: Listing, check: Check) -> Result<Self> {
        Ok(Self {
            scratch: ScratchFolder::new(&self.options.work_folder, "profile")?,
            options: ProfileOptions {
                runs: Runs::Each(check.runs(self.options.caching)),
                run_seconds: self.options.run_seconds.min(check.seconds_max),
                shards: self.options.shards.min(listing.len().max(1)),
                ..self.options
            },
            listing: Arc::new(listing),
            ..self
        })
    }

    /// Runs what leads or may lead, the most promising first: each strategy that the cost model expects near the highest rate.
    pub(super) fn check_leaders(&self, profile: &mut Profile) -> Result<()> {
        // Each is run at most once.
        for _ in 0..profile.strategies.len() {
            let invalid = |error: forebay_plan::Error| Error::internal(&error.to_string());
            let summaries = summarize(profile, None).map_err(invalid)?;
            let rate = |summary: &Summary| summary.samples_per_second;
            let highest = summaries.iter().map(rate).fold(0.0, f64::max);
            let unsure = |summary: &Summary| summary.runs == 0 && rate(summary) >= NEAR * highest;
            let next = (0..summaries.len())
                .filter(|&index| unsure(&summaries[index]))
                .max_by(|&one, &other| rate(&summaries[one]).total_cmp(&rate(&summaries[other])));
            let Some(next) = next else { return Ok(()) };
            self.check(profile, &[next])?;
        }
        Ok(())
    }

    /// Runs the formats of a split beside each other where the cost model cannot tell which is the best, one split after the other, as long as there is
    /// time: a part of what was `spent`. What comes from memory is not faster for being smaller, and nobody asks.
    pub(super) fn check_rivals(&self, profile: &mut Profile, spent: Duration) -> Result<()> {
        if self.options.caching != Caching::None {
            return Ok(());
        }
        let (begun, budget) = (Instant::now(), RIVALS_SHARE * spent.as_secs_f64());
        let samples = self.listing.len() as f64 / profile.method.sample_count.max(1) as f64;
        for names in unsettled(profile) {
            let index = |name: &String| profile.strategies.iter().position(|strategy| strategy.name == *name);
            let rivals: Vec<usize> = names.iter().filter_map(index).collect();
            let run_seconds = RUN_TIMES * self.options.run_seconds * f64::from(RIVALS.runs.get());
            let seconds = |&rival: &usize| profile.strategies[rival].prep_seconds * samples + run_seconds;
            let expected: f64 = rivals.iter().map(seconds).sum();
            // Another split may be prepared sooner.
            if begun.elapsed().as_secs_f64() + expected <= budget {
                self.check(profile, &rivals)?;
            }
        }
        Ok(())
    }

    /// Runs strategies of `profile`, by their numbers, which take turns.
    fn check(&self, profile: &mut Profile, numbers: &[usize]) -> Result<()> {
        let mut all = Vec::new();
        for &number in numbers {
            let strategy = Strategy::parse(self.pipeline, &profile.strategies[number].name)?;
            let folder = self.scratch.path().join(format!("dataset-{number}"));
            let kept: TempDatasets = self.keep(&strategy, &folder)?;
            let loads: (Arc<dyn Source>, Online) = self.loads(&strategy, &kept)?;
            all.push((number, strategy, folder, loads, Series::new()));
        }
        while all.iter().any(|(.., series)| self.wants_more(series)) {
            for (_, strategy, _, loads, series) in all.iter_mut().filter(|(.., series)| self.wants_more(series)) {
                self.run_again(strategy, loads, series)?;
            }
        }
        for (number, strategy, folder, _, series) in all {
            (profile.strategies[number].runs, profile.strategies[number].system) = (series.runs, series.system);
            if !strategy.split.keeps_files() {
                std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
            }
        }
        Ok(())
    }
}
