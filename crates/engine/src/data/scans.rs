//! Where the groups of progressive scans lie in a shard: the layout of progressive records.
//!
//! ```text
//! shard = chunk, chunk, …        chunk of n samples = group 1 of each, group 2 of each, … group 10 of each
//! ```
//!
//! A chunk is about as large as what is read at once. So whoever wants few groups reads the beginning of each chunk in one piece and leaves the
//! rest alone: fewer bytes, and no more seeks. Which record holds what follows from the two numbers in the manifest.

use std::ops::Range;

use forebay_codec::image::SCAN_GROUPS;
use serde::{Deserialize, Serialize};

/// How the progressive records of a shard lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanLayout {
    /// How many groups of scans a sample has, a record each.
    pub groups: u64,
    /// How many samples a chunk has; the last one may have fewer.
    pub chunk_samples: u64,
}

/// A chunk is to have about so many bytes; of a small shard fewer, so that there are some to be read in any order.
const CHUNK_BYTES: u64 = 4 << 20;
const CHUNK_BYTES_MIN: u64 = 256 << 10;
const CHUNKS_MIN: u64 = 8;
const CHUNK_SAMPLES_MAX: u64 = 1024;

impl ScanLayout {
    /// The layout of a shard of so many samples, whose files have so many bytes in all.
    pub(crate) fn of(samples: u64, bytes: u64) -> Self {
        let chunk_bytes = (bytes / CHUNKS_MIN).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES);
        let chunk_samples = chunk_bytes.saturating_mul(samples) / bytes.max(1);
        Self { groups: SCAN_GROUPS as u64, chunk_samples: chunk_samples.clamp(1, CHUNK_SAMPLES_MAX) }
    }

    /// Whether it is one that can be.
    pub(super) fn is_valid(&self) -> bool {
        self.groups == SCAN_GROUPS as u64 && (1..=CHUNK_SAMPLES_MAX).contains(&self.chunk_samples)
    }

    /// The number of the record that has group number `group` of sample number `sample`, in a shard of `samples`. Groups count from 0.
    pub(crate) fn record(&self, samples: u64, sample: u64, group: u64) -> u64 {
        let first = sample - sample % self.chunk_samples;
        let here = self.chunk_samples.min(samples - first);
        first * self.groups + group * here + (sample - first)
    }

    /// The chunk that sample number `sample` of `samples` is in: its samples.
    pub(crate) fn chunk(&self, samples: u64, sample: u64) -> Range<u64> {
        let first = sample - sample % self.chunk_samples;
        first..samples.min(first + self.chunk_samples)
    }

    /// The records of the first `groups` groups of `wanted`, in pieces that lie together, in order.
    pub(crate) fn pieces(&self, samples: u64, wanted: Range<u64>, groups: u64) -> Vec<Range<u64>> {
        let mut pieces: Vec<Range<u64>> = Vec::new();
        let mut at = wanted.start;
        while at < wanted.end {
            let end = self.chunk(samples, at).end.min(wanted.end);
            for group in 0..groups {
                let first = self.record(samples, at, group);
                let piece = first..first + (end - at);
                match pieces.last_mut() {
                    Some(last) if last.end == piece.start => last.end = piece.end,
                    _ => pieces.push(piece),
                }
            }
            at = end;
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_has_one_place() {
        let layout = ScanLayout { groups: 10, chunk_samples: 4 };
        for samples in [1, 3, 4, 5, 8, 11] {
            let places = (0..samples).flat_map(|sample| (0..10).map(move |group| (sample, group)));
            let mut records: Vec<u64> = places.map(|(sample, group)| layout.record(samples, sample, group)).collect();
            records.sort_unstable();
            assert_eq!(records, (0..samples * 10).collect::<Vec<_>>());
        }
    }

    #[test]
    fn few_groups_of_a_chunk_are_one_piece() {
        let layout = ScanLayout { groups: 10, chunk_samples: 4 };
        assert_eq!(layout.pieces(11, 0..4, 2), vec![0..8]);
        assert_eq!(layout.pieces(11, 4..11, 10), vec![40..110]);
        assert_eq!(layout.pieces(11, 4..11, 1), vec![40..44, 80..83]);
        // A part of a chunk is a piece of each group.
        assert_eq!(layout.pieces(11, 1..3, 2), vec![1..3, 5..7]);
    }

    #[test]
    fn chunks_have_about_what_is_read_at_once() {
        let photos = ScanLayout::of(1000, 100_000_000);
        assert_eq!(photos.chunk_samples, 41);
        assert_eq!(ScanLayout::of(3, 30_000_000).chunk_samples, 1);
        assert_eq!(ScanLayout::of(0, 0).chunk_samples, 1);
        assert!([photos, ScanLayout::of(1 << 40, 1 << 41)].iter().all(ScanLayout::is_valid));
    }
}
