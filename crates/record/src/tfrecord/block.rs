//! Records as slices of a block that is in memory already.

use bytes::Bytes;

use crate::error::{Error, ErrorLocation, FormatFault, FramePart, Result, UsageFault};
use crate::tfrecord::{FOOTER_BYTES, HEADER_BYTES, Location, check_header, check_payload};

/// Where a block of a shard comes from, for errors.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The shard's name, usually its path.
    pub shard: &'a str,
    /// The number of the record that is asked for (of the first one, where several are).
    pub record: u64,
    /// The offset of the block in the shard.
    pub offset: u64,
}

impl Origin<'_> {
    fn location(&self, offset: u64) -> ErrorLocation {
        ErrorLocation { shard: Some(self.shard.into()), record: Some(self.record), offset: Some(offset) }
    }

    fn format(&self, offset: u64, fault: FormatFault) -> Error {
        Error::Format { location: self.location(offset), fault }
    }
}

/// The record whose frame begins at `position` of `block`, and the position after the frame; `None` where the block ends.
///
/// Both checksums are verified. The record is a slice of the block: it is not copied, and keeps the block alive.
pub fn parse_frame(block: &Bytes, position: usize, base: Origin<'_>) -> Result<Option<(Bytes, usize)>> {
    let offset = base.offset.saturating_add(position as u64);
    let rest = block.get(position..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let (length, payload) = split_header(rest).map_err(|fault| base.format(offset, fault))?;
    let length = split_payload(length, payload, true).map_err(|fault| base.format(offset, fault))?;
    let start = position + HEADER_BYTES;
    Ok(Some((block.slice(start..start + length), start + length + FOOTER_BYTES)))
}

/// The record at `location` of the shard, out of a block of it that begins at `base.offset`.
///
/// The length checksum is always verified, the payload's where `verify_checksums` says so. As every record is found through
/// the index, damage to one never hides another. The record is a slice of the block.
pub fn parse_indexed(block: &Bytes, location: Location, base: Origin<'_>, verify_checksums: bool) -> Result<Bytes> {
    let block_end = base.offset.saturating_add(block.len() as u64);
    let frame = location
        .offset
        .checked_sub(base.offset)
        .filter(|_| location.end() <= block_end)
        // Within the block, so both fit a `usize`.
        .map(|start| start as usize..(location.end() - base.offset) as usize)
        .ok_or_else(|| Error::Usage {
            location: base.location(location.offset),
            fault: UsageFault::NotInBlock { length: location.length, block_start: base.offset, block_end },
        })?;
    let format = |fault| base.format(location.offset, fault);
    let (length, payload) = split_header(&block[frame.clone()]).map_err(format)?;
    if length != location.payload_length() {
        let found = length.saturating_add(crate::tfrecord::FRAME_OVERHEAD_BYTES);
        return Err(format(FormatFault::IndexDisagrees { expected: location.length, found }));
    }
    let length = split_payload(length, payload, verify_checksums).map_err(format)?;
    let start = frame.start + HEADER_BYTES;
    Ok(block.slice(start..start + length))
}

/// The records at `locations`, in order, out of a block that begins at `base.offset`; `base.record` is the number of the first.
///
/// A damaged record is an `Err` in its place, and the ones after it follow.
pub fn records_in_block<'a>(
    block: &'a Bytes,
    locations: impl ExactSizeIterator<Item = Location> + 'a,
    base: Origin<'a>,
    verify_checksums: bool,
) -> impl ExactSizeIterator<Item = Result<Bytes>> + 'a {
    locations.enumerate().map(move |(index, location)| {
        let origin = Origin { record: base.record + index as u64, ..base };
        parse_indexed(block, location, origin, verify_checksums)
    })
}

/// The payload's length, and what follows the header.
pub(crate) fn split_header(frame: &[u8]) -> std::result::Result<(u64, &[u8]), FormatFault> {
    let Some((header, rest)) = frame.split_first_chunk::<HEADER_BYTES>() else {
        return Err(FormatFault::Truncated {
            part: FramePart::Header,
            expected: HEADER_BYTES as u64,
            found: frame.len() as u64,
        });
    };
    Ok((check_header(header)?, rest))
}

/// Checks that `rest` begins with a payload of `length` and its footer, and returns the length as one of a slice.
fn split_payload(length: u64, rest: &[u8], verify_checksum: bool) -> std::result::Result<usize, FormatFault> {
    if length > rest.len() as u64 {
        let found = rest.len() as u64;
        return Err(FormatFault::Truncated { part: FramePart::Payload, expected: length, found });
    }
    let (payload, after) = rest.split_at(length as usize);
    let Some(footer) = after.first_chunk::<FOOTER_BYTES>() else {
        let found = after.len() as u64;
        return Err(FormatFault::Truncated { part: FramePart::Footer, expected: FOOTER_BYTES as u64, found });
    };
    if verify_checksum {
        check_payload(payload, *footer)?;
    }
    Ok(payload.len())
}
