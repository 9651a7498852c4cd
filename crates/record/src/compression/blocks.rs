//! Where the blocks of a compressed shard lie.
//!
//! A text file named as the shard with [`BLOCKS_SUFFIX`], one line per block, in order:
//!
//! ```text
//! 10 18223 0 65618
//! 18233 17990 65618 66102
//! ```
//!
//! Offset and length of the block in the shard, then offset and length of what it inflates to. The index beside it
//! ([`crate::Index`]) gives the locations of records in what the shard inflates to; no record lies in two blocks.

use std::fmt::Write as _;
use std::ops::Range;

use super::Algorithm;
use crate::error::{Error, ErrorLocation, FormatFault, IndexFault, Result};

/// What the name of a list of blocks adds to its shard's: `shard-0.tfrecord.blocks`.
pub const BLOCKS_SUFFIX: &str = ".blocks";

/// A block ends with the record that fills it, and a record stays below protobuf's 2 GiB: no list can ask for more at once.
const INFLATED_BYTES_MAX: u64 = (2 << 30) + (1 << 20);

/// A block of a compressed shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedBlock {
    /// Its offset in the shard.
    pub offset: u64,
    /// Its length there.
    pub length: u64,
    /// The offset in what the shard inflates to.
    pub inflated_offset: u64,
    /// The length there.
    pub inflated_length: u64,
}

impl CompressedBlock {
    /// Where it ends in the shard.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Where it ends in what the shard inflates to.
    pub const fn inflated_end(&self) -> u64 {
        self.inflated_offset.saturating_add(self.inflated_length)
    }
}

/// The blocks of a compressed shard: in order, and without a gap in what they inflate to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocks {
    entries: Vec<CompressedBlock>,
}

impl Blocks {
    pub(super) fn push(&mut self, block: CompressedBlock) {
        self.entries.push(block);
    }

    /// The blocks in `text`, of a shard that was compressed by `algorithm`; `name` is the list's own name, for errors.
    pub fn parse(text: &[u8], algorithm: Algorithm, name: &str) -> Result<Self> {
        let mut blocks = Self::default();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let block =
                parse_line(line).and_then(|block| blocks.check_next(&block, algorithm.inflation_max()).map(|()| block));
            let block = block.map_err(|fault| Error::Format {
                location: ErrorLocation { shard: Some(name.into()), ..ErrorLocation::default() },
                fault: FormatFault::Index { line: number as u64 + 1, fault },
            })?;
            blocks.entries.push(block);
        }
        Ok(blocks)
    }

    /// The list as text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for CompressedBlock { offset, length, inflated_offset, inflated_length } in &self.entries {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "{offset} {length} {inflated_offset} {inflated_length}");
        }
        text
    }

    /// The blocks, in order.
    pub fn entries(&self) -> &[CompressedBlock] {
        &self.entries
    }

    /// How many bytes the shard inflates to.
    pub fn inflated_bytes(&self) -> u64 {
        self.entries.last().map_or(0, CompressedBlock::inflated_end)
    }

    /// Whether a block begins at `inflated`, an offset in what the shard inflates to.
    pub fn begins_at(&self, inflated: u64) -> bool {
        self.entries.binary_search_by_key(&inflated, |block| block.inflated_offset).is_ok()
    }

    /// The blocks that hold the bytes `inflated` of what the shard inflates to.
    pub fn covering(&self, inflated: Range<u64>) -> &[CompressedBlock] {
        let first = self.entries.partition_point(|block| block.inflated_end() <= inflated.start);
        let last = self.entries.partition_point(|block| block.inflated_offset < inflated.end);
        &self.entries[first.min(last)..last]
    }

    /// Checks that a shard of `shard_bytes` can hold every block.
    pub fn check_within(&self, shard_bytes: u64, shard: &str) -> Result<()> {
        match self.entries.last() {
            Some(last) if last.end() > shard_bytes => Err(Error::Format {
                location: ErrorLocation { shard: Some(shard.into()), offset: Some(last.offset), record: None },
                fault: FormatFault::IndexBeyondShard { expected: last.end(), found: shard_bytes },
            }),
            _ => Ok(()),
        }
    }

    fn check_next(&self, block: &CompressedBlock, inflation_max: u64) -> std::result::Result<(), IndexFault> {
        let (end, inflated_end) = self.entries.last().map_or((0, 0), |last| (last.end(), last.inflated_end()));
        let sums = block.offset.checked_add(block.length).zip(block.inflated_offset.checked_add(block.inflated_length));
        if sums.is_none() {
            return Err(IndexFault::TooLarge);
        }
        if block.offset < end {
            return Err(IndexFault::Overlap { expected: end, found: block.offset });
        }
        if block.inflated_offset != inflated_end {
            return Err(IndexFault::Gap { expected: inflated_end, found: block.inflated_offset });
        }
        if block.inflated_length > block.length.saturating_mul(inflation_max).min(INFLATED_BYTES_MAX) {
            return Err(IndexFault::Inflation { length: block.length, inflated: block.inflated_length });
        }
        Ok(())
    }
}

fn parse_line(line: &[u8]) -> std::result::Result<CompressedBlock, IndexFault> {
    let numbers = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(parse_number);
    let numbers: Vec<u64> = numbers.take(5).collect::<std::result::Result<_, _>>()?;
    match numbers[..] {
        [offset, length, inflated_offset, inflated_length] => {
            Ok(CompressedBlock { offset, length, inflated_offset, inflated_length })
        }
        _ => Err(IndexFault::NotFourNumbers),
    }
}

fn parse_number(word: &[u8]) -> std::result::Result<u64, IndexFault> {
    if !word.iter().all(u8::is_ascii_digit) {
        return Err(IndexFault::NotFourNumbers);
    }
    std::str::from_utf8(word).ok().and_then(|digits| digits.parse().ok()).ok_or(IndexFault::TooLarge)
}
