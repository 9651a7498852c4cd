//! The checksums of a shard's records, in a file of their own.
//!
//! Beside the shard, named as it with [`CHECKSUMS_SUFFIX`]: four bytes for each record, in order, little endian: the masked
//! CRC-32C that stands in the footer of the record's frame.
//!
//! A frame's footer says that its record is whole, but not that it is the record that belongs at this position: a frame of another
//! shard is whole, too. Whoever trusts this file (because its own checksum is known) can tell, by comparing four bytes.

use crate::error::{Error, ErrorLocation, FormatFault, Result};
use crate::numbers;

/// What the name of a list of checksums adds to its shard's: `shard-0.tfrecord.crc`.
pub const CHECKSUMS_SUFFIX: &str = ".crc";

/// Bytes of one checksum.
const CHECKSUM_BYTES: usize = 4;

/// The masked CRC-32C of each record of a shard, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checksums {
    entries: Vec<u32>,
}

impl Checksums {
    /// The checksums of no records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next record's.
    pub fn push(&mut self, checksum: u32) {
        self.entries.push(checksum);
    }

    /// The checksums in `bytes`; `name` is the file's own name, for errors.
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

    /// The checksum of record `number`.
    pub fn get(&self, number: usize) -> Option<u32> {
        self.entries.get(number).copied()
    }

    /// Checks that `frame`, whose own checksums agree, holds record `number`. `location` is where it was found.
    pub fn check(&self, number: usize, frame: &[u8], location: impl FnOnce() -> ErrorLocation) -> Result<()> {
        let found = frame.last_chunk::<CHECKSUM_BYTES>().map_or(0, |footer| u32::from_le_bytes(*footer));
        match self.get(number) {
            Some(expected) if expected == found => Ok(()),
            expected => Err(Error::Format {
                location: location(),
                fault: FormatFault::OtherRecord { expected: expected.unwrap_or(0), found },
            }),
        }
    }
}
