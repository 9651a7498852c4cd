//! Requests: what an object store is asked for, and how fast it answers.
//!
//! A store answers a request after a while, however small the object is, and bills it. A source file that is a sample is a request of its
//! own; records are read together, a block at a time.

use forebay_pipeline::Format;

use crate::prediction::quotient;
use crate::profile::{Profile, StrategyProfile};

/// So many requests a loader has under way at a time, where each waits long.
const AT_ONCE: f64 = 32.0;
/// So many bytes of a shard it asks for at a time.
pub(crate) const BLOCK_BYTES: f64 = 4_194_304.0;

/// The requests per second at this latency, with a store that accepts at most that many.
pub(crate) fn per_second(latency_seconds: Option<f64>, requests_per_second: Option<f64>) -> Option<f64> {
    let by_latency = latency_seconds.and_then(|seconds| quotient(AT_ONCE, seconds));
    match (by_latency, requests_per_second) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Whether each sample of the source is an object.
pub(crate) fn samples_are_objects(profile: &Profile) -> bool {
    profile.pipeline.source.format == Format::Files
}

/// How many requests an epoch over all `samples` takes, of which `storage_bytes` are kept.
pub(crate) fn of_epoch(profile: &Profile, strategy: &StrategyProfile, samples: u64, storage_bytes: u64) -> f64 {
    if strategy.split.keeps_files() && samples_are_objects(profile) {
        return samples as f64;
    }
    (storage_bytes as f64 / BLOCK_BYTES).ceil()
}
