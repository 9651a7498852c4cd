//! What a reader passed over.

use crate::error::Error;

/// One extent of a shard that was passed over.
#[derive(Debug)]
pub struct Damage {
    /// What was wrong where it began.
    pub error: Error,
    /// The records that were lost; where that cannot be known (a damaged length, and no index), 1.
    pub records: u64,
    /// The bytes that were passed over.
    pub bytes: u64,
}

/// Everything that was passed over: counted in full, listed up to [`DamageReport::ENTRIES_MAX`].
#[derive(Debug, Default)]
pub struct DamageReport {
    records: u64,
    bytes: u64,
    entries: Vec<Damage>,
}

impl DamageReport {
    /// The most entries that are kept.
    pub const ENTRIES_MAX: usize = 100;

    /// Adds one extent.
    pub fn add(&mut self, damage: Damage) {
        self.records = self.records.saturating_add(damage.records);
        self.bytes = self.bytes.saturating_add(damage.bytes);
        if self.entries.len() < Self::ENTRIES_MAX {
            self.entries.push(damage);
        }
    }

    /// Records passed over.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes passed over.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first extents, at most [`DamageReport::ENTRIES_MAX`], in order.
    pub fn entries(&self) -> &[Damage] {
        &self.entries
    }

    /// The same, to keep.
    pub fn into_entries(self) -> Vec<Damage> {
        self.entries
    }

    /// Whether nothing was passed over.
    pub fn is_empty(&self) -> bool {
        self.records == 0 && self.bytes == 0
    }
}
