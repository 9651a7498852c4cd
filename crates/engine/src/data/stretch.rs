//! Reading neighbouring records of a data set in one piece.

use std::ops::Range;

use bytes::Bytes;
use forebay_record::inflate_block;
use forebay_storage::File;

use super::Dataset;
use crate::error::Result;

/// The frames of neighbouring records.
pub struct Stretch {
    /// Their bytes, inflated where the shard is packed.
    pub frames: Bytes,
    /// Where these begin in the shard, or in what it inflates to.
    pub offset: u64,
    /// How many bytes were read for them.
    pub bytes_read: u64,
}

impl Dataset {
    /// Reads the frames of `records` of shard number `shard`, which is open as `file`.
    pub fn read_stretch(&self, file: &dyn File, shard: usize, records: Range<usize>) -> Result<Stretch> {
        let index = self.index(shard)?;
        let last = records.end.checked_sub(1).filter(|_| !records.is_empty());
        let (Some(first), Some(last)) = (index.get(records.start), last.and_then(|last| index.get(last))) else {
            return Ok(Stretch { frames: Bytes::new(), offset: 0, bytes_read: 0 });
        };
        let Some(blocks) = self.blocks(shard)? else {
            let length = last.end() - first.offset;
            let frames = file.read(first.offset, length as usize)?;
            return Ok(Stretch { frames, offset: first.offset, bytes_read: length });
        };
        let blocks = blocks.covering(first.offset..last.end());
        let (Some(front), Some(back)) = (blocks.first(), blocks.last()) else {
            unreachable!("an index is checked to lie within its blocks")
        };
        let bytes_read = back.end() - front.offset;
        let packed = file.read(front.offset, bytes_read as usize)?;
        let mut frames = Vec::new();
        // Where there is not so much memory, inflating the first block that does not fit says so.
        let _ = frames.try_reserve_exact((back.inflated_end() - front.inflated_offset) as usize);
        for block in blocks {
            let within = (block.offset - front.offset) as usize..(block.end() - front.offset) as usize;
            inflate_block(&packed[within], block, &self.manifest().shards[shard].file, &mut frames)?;
        }
        Ok(Stretch { frames: frames.into(), offset: front.inflated_offset, bytes_read })
    }
}
