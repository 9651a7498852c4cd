//! Checking the cost model where it matters: at the top.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::Strategy;
use forebay_plan::{Caching, Profile, Run, Summary, summarise};

use super::{ProfileOptions, Profiler};
use crate::data::Listing;
use crate::error::{Error, Result};
use crate::scratch_folder::ScratchFolder;

/// How often each is run.
const RUNS: u32 = 2;

impl Profiler<'_> {
    /// The same on other samples, with runs.
    pub(super) fn on(self, listing: Listing) -> Result<Self> {
        // With the page cache, the first run fills it and does not count.
        let runs_total = RUNS + u32::from(self.options.caching == Caching::System);
        Ok(Self {
            scratch: ScratchFolder::new(&self.options.work_folder, "profile")?,
            options: ProfileOptions {
                runs_total,
                shards: self.options.shards.min(listing.len().max(1)),
                ..self.options
            },
            listing: Arc::new(listing),
            ..self
        })
    }

    /// Runs the strategy that leads, by the cost model or by its runs, until that is one that was run.
    pub(super) fn check_leaders(&self, profile: &mut Profile) -> Result<()> {
        // Each is run at most once.
        for _ in 0..profile.strategies.len() {
            let unsound = |error: forebay_plan::Error| Error::Panicked { message: error.to_string() };
            let summaries = summarise(profile, None).map_err(unsound)?;
            let rate = |(_, summary): &(usize, &Summary)| summary.t4_samples_per_second;
            let leader = summaries.iter().enumerate().max_by(|one, other| rate(one).total_cmp(&rate(other)));
            let Some((leader, _)) = leader.filter(|(_, summary)| summary.runs == 0) else { return Ok(()) };
            profile.strategies[leader].runs = self.check(&self.options.strategies[leader])?;
        }
        Ok(())
    }

    fn check(&self, strategy: &Strategy) -> Result<Vec<Run>> {
        let folder = self.scratch.path().join("dataset");
        let (kept, _, _) = self.keep(strategy, &folder)?;
        let paths = self.readable(kept.paths());
        let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let (runs, _) = self.runs(strategy, &kept, &paths)?;
        if strategy.split.position > 0 {
            std::fs::remove_dir_all(&folder).map_err(Error::io("remove", &folder))?;
        }
        Ok(runs)
    }
}
