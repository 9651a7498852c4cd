//! What is done to a sample every epoch, and what the threads that do it were seen to do with their time.

use crate::prediction::{cpu_seconds, measured_hit_ratio};
use crate::profile::{Caching, Profile, StrategyProfile};
use crate::stats::Stats;
use crate::summary::seen;

/// A part of the work on one sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// What the time goes into.
    pub part: WorkPart,
    /// CPU seconds.
    pub cpu_seconds: f64,
}

/// What CPU time goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkPart {
    /// Deserializing a stored sample, and decoding its images if they are stored encoded.
    Deserialize,
    /// A step: its index in [`Profile::steps`].
    Step(usize),
    /// What is no step's: collating samples to batches.
    Collate,
}

impl WorkPart {
    /// What it is called, in sentences and plots alike.
    pub fn name(self, profile: &Profile) -> &str {
        match self {
            Self::Deserialize => "deserialize",
            Self::Step(index) => &profile.steps[index].name,
            Self::Collate => "collate",
        }
    }
}

/// What each part of the work on a sample takes every epoch. Together they are what the cost model reckons with and sentences say.
///
/// Online steps are measured as they run, several done as one, and one by one. The former is what counts; it is shared out in the
/// proportions of the latter, since the time of a fused loop cannot be attributed to its steps.
pub fn work(profile: &Profile, strategy: &StrategyProfile) -> Vec<Work> {
    let total = cpu_seconds(profile, strategy, measured_hit_ratio(profile));
    // What is cached as samples has been deserialized already.
    let cached = profile.method.caching == Caching::Application;
    let deserialize = if cached { 0.0 } else { strategy.deserialize_cpu_seconds.min(total) };
    // The first step is reading, which readers do and no worker.
    let steps = || profile.steps.iter().enumerate().skip(strategy.split.position.max(1));
    let alone: f64 = steps().map(|(_, step)| step.cpu_seconds).sum();
    let rest = total - deserialize;
    let mut parts = vec![Work { part: WorkPart::Deserialize, cpu_seconds: deserialize }];
    if alone > 0.0 {
        let share = |seconds: f64| rest * (seconds / alone);
        parts.extend(
            steps().map(|(index, step)| Work { part: WorkPart::Step(index), cpu_seconds: share(step.cpu_seconds) }),
        );
    } else {
        parts.push(Work { part: WorkPart::Collate, cpu_seconds: rest });
    }
    parts.retain(|work| work.cpu_seconds > 0.0);
    parts
}

/// What the threads of the run in the middle did with their time, where they were watched: not in a run that was over with its first batch.
pub fn watched(profile: &Profile, strategy: &StrategyProfile) -> Option<Stats> {
    seen(profile, strategy).filter(|stats| stats.read_seconds + stats.work_seconds > 0.0)
}
