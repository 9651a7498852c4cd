//! The progressive records of a chunk, buffered until it is complete, and then written group by group.

use crate::data::ScanLayout;

/// Samples of one chunk.
pub(super) struct Chunk {
    layout: ScanLayout,
    bytes: Vec<u8>,
    /// Where each record ends: all groups of the first sample, of the second, and so on.
    ends: Vec<usize>,
}

impl Chunk {
    pub(super) fn new(layout: ScanLayout) -> Self {
        Self { layout, bytes: Vec::new(), ends: Vec::new() }
    }

    pub(super) fn push(&mut self, record: &[u8]) {
        self.bytes.extend_from_slice(record);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn is_full(&self) -> bool {
        self.ends.len() as u64 >= self.layout.chunk_samples * self.layout.groups
    }

    /// How many bytes it holds.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The records in their order in the shard: the first group of each sample, then the second.
    pub(super) fn records(&self) -> impl Iterator<Item = &[u8]> {
        let groups = self.layout.groups as usize;
        let order = (0..groups).flat_map(move |group| (group..self.ends.len()).step_by(groups));
        order.map(|record| {
            let start = record.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.bytes[start..self.ends[record]]
        })
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
