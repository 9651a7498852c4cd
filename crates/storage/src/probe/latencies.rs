//! How long single operations took, in a histogram of bounded size.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Each power of two of nanoseconds is cut into this many equal parts, so a percentile is at most 1/32 too high.
const PARTS: u64 = 32;
const PARTS_BITS: u32 = PARTS.trailing_zeros();

/// Enough for every `u64` of nanoseconds.
const BUCKETS: usize = ((64 - PARTS_BITS as usize) + 1) * PARTS as usize;

/// The latencies of any number of operations. Those of several threads can be [merged](Self::merge).
///
/// ```
/// use std::time::Duration;
/// let mut latencies = forebay_storage::probe::Latencies::new();
/// for milliseconds in 1..=100 {
///     latencies.record(Duration::from_millis(milliseconds));
/// }
/// let median_seconds = latencies.percentile_seconds(50.0);
/// assert!((0.050..0.052).contains(&median_seconds));
/// assert_eq!(latencies.summary().max_seconds, 0.1);
/// ```
#[derive(Debug, Clone)]
pub struct Latencies {
    counts: Vec<u64>,
    operations: u64,
    max_nanoseconds: u64,
}

/// The percentiles of [`Latencies`]; all zero if there was no operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Half of the operations were at most this slow.
    pub p50_seconds: f64,
    /// 95 of 100 operations were at most this slow.
    pub p95_seconds: f64,
    /// 99 of 100 operations were at most this slow.
    pub p99_seconds: f64,
    /// The slowest operation.
    pub max_seconds: f64,
}

impl Latencies {
    /// No latencies yet.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], operations: 0, max_nanoseconds: 0 }
    }

    /// Adds one operation.
    pub fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanoseconds)] += 1;
        self.operations += 1;
        self.max_nanoseconds = self.max_nanoseconds.max(nanoseconds);
    }

    /// Adds all operations of another thread.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.operations += other.operations;
        self.max_nanoseconds = self.max_nanoseconds.max(other.max_nanoseconds);
    }

    /// How many operations there are.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// The latency that `percent` of the operations did not exceed, at most 1/32 too high; 0 if there are none.
    pub fn percentile_seconds(&self, percent: f64) -> f64 {
        let rank = ((percent / 100.0 * self.operations as f64).ceil() as u64).clamp(1, self.operations.max(1));
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of(bucket).min(self.max_nanoseconds) as f64 / 1e9;
            }
        }
        0.0
    }

    /// The usual percentiles.
    pub fn summary(&self) -> LatencySummary {
        LatencySummary {
            p50_seconds: self.percentile_seconds(50.0),
            p95_seconds: self.percentile_seconds(95.0),
            p99_seconds: self.percentile_seconds(99.0),
            max_seconds: self.max_nanoseconds as f64 / 1e9,
        }
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

/// Values below `PARTS` have a bucket each; above, the bucket is the exponent and the next `PARTS_BITS` bits.
fn bucket_of(nanoseconds: u64) -> usize {
    if nanoseconds < PARTS {
        return nanoseconds as usize;
    }
    let shift = nanoseconds.ilog2() - PARTS_BITS;
    ((u64::from(shift) + 1) * PARTS + (nanoseconds >> shift) - PARTS) as usize
}

/// The largest value in a bucket.
fn last_of(bucket: usize) -> u64 {
    let (octave, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    if octave == 0 {
        return part;
    }
    let shift = octave - 1;
    ((PARTS + part) << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_tightly(bits in 0_u32..64, value in any::<u64>()) {
            let value = value >> bits;
            let bucket = bucket_of(value);
            prop_assert!(bucket < BUCKETS);
            prop_assert!(last_of(bucket) >= value);
            prop_assert!(last_of(bucket) - value <= value / PARTS);
            prop_assert_eq!(bucket_of(last_of(bucket)), bucket);
        }

        #[test]
        fn percentiles_match_a_sorted_list(mut values in prop::collection::vec(0_u64..10_000_000_000, 1..300), split in 0_usize..300) {
            let split = split.min(values.len());
            let mut latencies = [Latencies::new(), Latencies::new()];
            for (index, &value) in values.iter().enumerate() {
                latencies[usize::from(index >= split)].record(Duration::from_nanos(value));
            }
            let [mut merged, other] = latencies;
            merged.merge(&other);
            values.sort_unstable();
            for percent in [1.0, 50.0, 95.0, 99.0, 100.0] {
                let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1);
                let exact = values[rank - 1] as f64 / 1e9;
                let found = merged.percentile_seconds(percent);
                prop_assert!(found >= exact && found <= exact * (1.0 + 1.0 / 32.0) + 1e-15, "{percent}: {found} for {exact}");
            }
        }
    }

    #[test]
    fn the_extremes_have_a_bucket() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        assert_eq!(last_of(BUCKETS - 1), u64::MAX);
        assert_eq!(Latencies::new().summary(), LatencySummary::default());
    }
}
