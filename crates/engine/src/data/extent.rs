//! Reading neighboring records of a data set in one piece.

use std::ops::Range;

use bytes::Bytes;
use forebay_record::{Location, inflate_block};
use forebay_storage::File;

use super::Dataset;
use super::inflated::InflatedShard;
use super::open_shards::OpenShard;
use crate::error::{Error, Result};

/// The frames of neighboring records.
pub struct Extent {
    /// Their bytes, inflated where the shard is compressed by blocks or as a stream.
    pub frames: Bytes,
    /// Where these begin in the shard, or in what it inflates to.
    pub offset: u64,
    /// How many bytes were read for them.
    pub bytes_read: u64,
}

impl Extent {
    const EMPTY: Self = Self { frames: Bytes::new(), offset: 0, bytes_read: 0 };
}

impl Dataset {
    /// Reads the frames of `records` of shard number `shard`.
    pub(crate) fn read_open(&self, open: &OpenShard, shard: usize, records: Range<usize>) -> Result<Extent> {
        match open {
            OpenShard::Plain(file) => self.read_extent(&**file, shard, records),
            OpenShard::Inflated(stream) => self.read_stream(stream, shard, records),
        }
    }

    /// The first and the last of `records`; `None` where there are none.
    fn ends(&self, shard: usize, records: Range<usize>) -> Result<Option<(Location, Location)>> {
        let index = self.index(shard)?;
        let last = records.end.checked_sub(1).filter(|_| !records.is_empty());
        Ok(index.get(records.start).zip(last.and_then(|last| index.get(last))))
    }

    fn read_stream(&self, stream: &InflatedShard, shard: usize, records: Range<usize>) -> Result<Extent> {
        let Some((first, last)) = self.ends(shard, records)? else { return Ok(Extent::EMPTY) };
        let length = last.end() - first.offset;
        let frames = stream.read(first.offset, length as usize)?;
        // Their part of what was read: where a stream's bytes end up cannot be told apart.
        let (bytes, inflated) = (self.manifest().shards[shard].bytes, self.index(shard)?.end().max(1));
        let bytes_read = (u128::from(length) * u128::from(bytes) / u128::from(inflated)) as u64;
        Ok(Extent { frames, offset: first.offset, bytes_read })
    }

    /// Reads the frames of `records` of shard number `shard`, which is open as `file`.
    pub fn read_extent(&self, file: &dyn File, shard: usize, records: Range<usize>) -> Result<Extent> {
        let Some((first, last)) = self.ends(shard, records)? else { return Ok(Extent::EMPTY) };
        let (Some(blocks), Some(compression)) = (self.blocks(shard)?, self.compression()) else {
            let length = last.end() - first.offset;
            let frames = file.read(first.offset, length as usize)?;
            return Ok(Extent { frames, offset: first.offset, bytes_read: length });
        };
        let blocks = blocks.covering(first.offset..last.end());
        let (Some(front), Some(back)) = (blocks.first(), blocks.last()) else {
            unreachable!("an index is checked to lie within its blocks")
        };
        let bytes_read = back.end() - front.offset;
        let compressed = file.read(front.offset, bytes_read as usize)?;
        let length = (back.inflated_end() - front.inflated_offset) as usize;
        let mut frames = self.buffer(length).map_err(Error::io("inflate the shard", &self.shard_path(shard)))?;
        for block in blocks {
            let from = (block.inflated_offset - front.inflated_offset) as usize;
            let space = &mut frames.as_mut_slice()[from..from + block.inflated_length as usize];
            let within = (block.offset - front.offset) as usize..(block.end() - front.offset) as usize;
            inflate_block(&compressed[within], block, compression, &self.manifest().shards[shard].file, space)?;
        }
        Ok(Extent { frames: frames.into_bytes(0..length), offset: front.inflated_offset, bytes_read })
    }
}
