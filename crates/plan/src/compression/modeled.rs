//! What the cost model predicts for a compressed split that was not measured in that form.

use super::INFLATING_READERS;
use crate::prediction::{decode_threads, quotient, shards_bytes_per_second};
use crate::profile::{Alone, Caching, CompressionCost, Profile, StrategyProfile};

/// Every strategy that `profile` does not have, but the costs of whose compression it has.
pub(crate) fn unrun(profile: &Profile) -> Vec<StrategyProfile> {
    let new = |cost: &&CompressionCost| profile.strategy(&cost.strategy).is_none();
    let strategy = |cost: &CompressionCost| Some(modeled(profile, profile.strategy(&cost.plain)?, cost));
    profile.compressions.iter().filter(new).filter_map(strategy).collect()
}

/// The prediction for `plain` stored in the format of `cost`, without runs.
pub(super) fn modeled(profile: &Profile, plain: &StrategyProfile, cost: &CompressionCost) -> StrategyProfile {
    let bytes = plain.bytes_per_sample / cost.ratio;
    let inflating = seconds_of(plain.bytes_per_sample, cost.decompress_bytes_per_second);
    let (by_readers, by_workers) = (inflating * cost.reader_share, inflating * (1.0 - cost.reader_share));
    let compressing = seconds_of(plain.storage_bytes as f64, cost.compress_bytes_per_second);
    // Slower in proportion to the additional work: the share of their time that workers are on a CPU stays.
    let working = plain.working.map(|working| {
        let slower = working.cpu_seconds / (working.cpu_seconds + by_workers).max(f64::MIN_POSITIVE);
        Alone {
            samples_per_second: working.samples_per_second * slower,
            min_samples_per_second: working.min_samples_per_second * slower,
            max_samples_per_second: working.max_samples_per_second * slower,
            cpu_seconds: working.cpu_seconds + by_workers,
            ..working
        }
    });
    let copying = plain
        .reading
        .map_or_else(|| bytes * profile.storage.cpu_seconds_per_byte, |reading| reading.cpu_seconds / cost.ratio);
    let rate = reading_rate(profile, plain, bytes, by_readers).unwrap_or(0.0);
    let reading = Alone {
        samples_per_second: rate,
        min_samples_per_second: 0.8 * rate,
        max_samples_per_second: 1.2 * rate,
        cpu_seconds: copying + by_readers,
        threads: decode_threads(profile),
        disturbed: false,
    };
    StrategyProfile {
        name: cost.strategy.clone(),
        split: plain.split.clone(),
        lossy: plain.lossy || cost.lossy,
        storage_bytes: (plain.storage_bytes as f64 / cost.ratio).round() as u64,
        bytes_per_sample: bytes,
        prep_seconds: plain.prep_seconds + compressing / decode_threads(profile) as f64,
        deserialize_cpu_seconds: plain.deserialize_cpu_seconds + by_workers,
        online_cpu_seconds: plain.online_cpu_seconds,
        reading: (profile.method.caching != Caching::Application).then_some(reading),
        working,
        runs: Vec::new(),
        system: Vec::new(),
    }
}

/// How many samples of `bytes` readers get per second that inflate each for so long.
fn reading_rate(profile: &Profile, plain: &StrategyProfile, bytes: f64, inflating: f64) -> Option<f64> {
    let plain_readers = profile.method.threads.max(1) as f64;
    let readers = if inflating > 0.0 { plain_readers * INFLATING_READERS as f64 } else { plain_readers };
    let (all, stream) = match profile.method.caching {
        Caching::None => {
            let all = shards_bytes_per_second(profile);
            (all, quotient(profile.storage.stream_bytes_per_second, 1.0).unwrap_or(all / plain_readers).min(all))
        }
        // Memory gives all threads together little more than one of them, but no less than readers got of it.
        Caching::System | Caching::Application => {
            let stream = profile.machine.memory_bytes_per_second;
            let seen = plain.reading.map_or(0.0, |reading| reading.samples_per_second * plain.bytes_per_sample);
            (stream.max(seen), stream)
        }
    };
    let bandwidth = quotient(all, bytes)?;
    // The latency of a read, as far as reading the split as it is shows it.
    let measured = plain.reading.and_then(|reading| quotient(plain_readers, reading.samples_per_second));
    let fixed = measured.map_or(0.0, |seconds| (seconds - plain_readers * plain.bytes_per_sample / all).max(0.0));
    quotient(readers, fixed + bytes / stream + inflating).map(|rate| rate.min(bandwidth))
}

/// How long this many bytes take; nothing if the rate is not known.
pub(super) fn seconds_of(bytes: f64, bytes_per_second: f64) -> f64 {
    quotient(bytes, bytes_per_second).unwrap_or(0.0)
}
