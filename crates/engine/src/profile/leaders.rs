//! Checking the cost model where it matters: at the top.

use std::num::NonZeroU32;
use std::sync::Arc;

use forebay_pipeline::Strategy;
use forebay_plan::{Caching, Profile, Runs, Summary, summarize};

use super::runs::Series;
use super::{ProfileOptions, Profiler};
use crate::data::Listing;
use crate::error::{Error, Result};
use crate::scratch_folder::ScratchFolder;

/// How often each is run.
const RUNS: NonZeroU32 = NonZeroU32::new(2).expect("not 0");

/// Runs of leaders need not be longer: they are there to check the model.
const RUN_SECONDS_MAX: f64 = 0.5;

/// The cost model may be off by a quarter: what it expects below this share of the highest rate does not lead.
const NEAR: f64 = 0.75;

impl Profiler<'_> {
    /// The same on other samples, with runs.
    pub(super) fn on(self, listing: Listing) -> Result<Self> {
        // With the page cache, the first run fills it and does not count.
        let runs = RUNS.saturating_add(u32::from(self.options.caching == Caching::System));
        Ok(Self {
            scratch: ScratchFolder::new(&self.options.work_folder, "profile")?,
            options: ProfileOptions {
                runs: Runs::Each(runs),
                run_seconds: self.options.run_seconds.min(RUN_SECONDS_MAX),
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
            let strategy = Strategy::parse(self.pipeline, &profile.strategies[next].name)?;
            let checked = self.check(&strategy)?;
            (profile.strategies[next].runs, profile.strategies[next].system) = (checked.runs, checked.system);
        }
        Ok(())
    }

    fn check(&self, strategy: &Strategy) -> Result<Series> {
        let folder = self.scratch.path().join("dataset");
        let kept = self.keep(strategy, &folder)?;
        let (loads, mut series) = (self.loads(strategy, &kept)?, Series::new());
        while self.wants_more(&series) {
            self.run_again(strategy, &loads, &mut series)?;
        }
        if !strategy.split.keeps_files() {
            std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
        }
        Ok(series)
    }
}
