//! What a profile was measured under, in words, and what that leaves open.

use crate::error::Result;
use crate::profile::{Caching, Profile};
use crate::requests::samples_are_objects;
use crate::summary::summarize;
use crate::units;

impl Caching {
    /// What was cached, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "nothing cached",
            Self::System => "page cache kept",
            Self::Application => "samples cached in memory",
        }
    }
}

/// The share of a machine's memory that is assumed to be available for the data: the trainer and the loader need the rest.
const CACHE_SHARE: f64 = 0.5;

/// What to know about how `profile` was measured before relying on it, a paragraph each. Fails if summarizing does.
pub fn notices(profile: &Profile) -> Result<Vec<String>> {
    Ok(uncached(profile)?.into_iter().chain(far(profile)).collect())
}

/// The same for whoever relies on a mix of formats, which is found by the cost model alone: with what others did to the measurement, too.
pub fn mix_notices(profile: &Profile) -> Result<Vec<String>> {
    let summaries = summarize(profile, None)?;
    let disturbed = summaries.iter().filter(|summary| summary.disturbed).count();
    let disturbance = (disturbed > 0).then(|| {
        format!(
            "Other programs disturbed every run of {disturbed} of {} strategies when the profile was measured, so that the model's costs \
             may be off, and with them the shares and the prediction. Measure again on an idle machine before you rely on them.",
            summaries.len()
        )
    });
    Ok(disturbance.into_iter().chain(notices(profile)?).collect())
}

/// That the data lies in a store, but what was built of it for measuring on a disk of this machine: files and shards were not compared on
/// the same storage.
fn far(profile: &Profile) -> Option<String> {
    let root = &profile.data.root;
    if !root.contains("://") || profile.strategies.iter().all(|strategy| strategy.split.keeps_files()) {
        return None;
    }
    let each = if samples_are_objects(profile) { "; each of these is a request" } else { "" };
    Some(format!(
        "The data is in `{root}`, but strategies that build shards were measured on the local disk (`--work-dir`), and only source files \
         were read from the store{each}. For shards that are in the store, too, plan with its latency: `forebay plan --what-if latency=50ms`, \
         say (in Python `what_if={{\"latency\": \"50ms\"}}`); `forebay probe` measures it."
    ))
}

/// That nothing was cached although memory has space for the data: from the second epoch on it would come from there, and then
/// what reads least is no longer what is fastest.
fn uncached(profile: &Profile) -> Result<Option<String>> {
    if profile.method.caching != Caching::None {
        return Ok(None);
    }
    let space = profile.machine.memory_bytes as f64 * CACHE_SHARE;
    let sizes: Vec<f64> = summarize(profile, None)?.iter().map(|summary| summary.storage_bytes_total as f64).collect();
    let fitting: Vec<f64> = sizes.iter().copied().filter(|size| *size <= space).collect();
    let Some(largest) = fitting.iter().copied().reduce(f64::max) else { return Ok(None) };
    let which = if fitting.len() == sizes.len() {
        "in every strategy".to_owned()
    } else {
        format!("in {} of {} strategies", fitting.len(), sizes.len())
    };
    let [largest, memory] = [largest, profile.machine.memory_bytes as f64].map(units::bytes);
    Ok(Some(format!(
        "Measured with nothing cached, but the data fits in memory {which} (up to {largest} of {memory}): from the second epoch on \
         it may come from there, and another strategy may then be fastest. Measure that with `--caching system` (in Python \
         `caching=\"system\"`)."
    )))
}
