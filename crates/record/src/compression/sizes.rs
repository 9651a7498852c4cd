//! How long the records of a shard are that were compressed each by itself.
//!
//! Beside the shard, named as it with [`SIZES_SUFFIX`]: four bytes for each record, in order, little endian: its length before
//! it was compressed. Whoever trusts this file (because its own checksum is known) asks for the right memory before it inflates
//! anything, and for no more.

use crate::error::{Error, Result, UsageFault};
use crate::numbers;

/// What the name of a list of sizes adds to its shard's: `shard-0.tfrecord.sizes`.
pub const SIZES_SUFFIX: &str = ".sizes";

/// The length of each record of a shard before it was compressed, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    entries: Vec<u32>,
}

impl Sizes {
    /// The sizes of no records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next record's.
    pub fn push(&mut self, length: usize) -> Result<()> {
        let length =
            u32::try_from(length).map_err(|_| Error::usage(UsageFault::RecordTooLong { found: length as u64 }))?;
        self.entries.push(length);
        Ok(())
    }

    /// The sizes in `bytes`; `name` is the file's own name, for errors.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Self> {
        Ok(Self { entries: numbers::parse(bytes, name)? })
    }

    /// The file's content.
    pub fn to_bytes(&self) -> Vec<u8> {
        numbers::to_bytes(&self.entries)
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of record `number`.
    pub fn get(&self, number: usize) -> Option<u64> {
        self.entries.get(number).copied().map(u64::from)
    }
}
