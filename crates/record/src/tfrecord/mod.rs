//! The TFRecord frame.
//!
//! ```text
//! offset  bytes  what
//!      0      8  length n of the payload, little endian
//!      8      4  masked CRC-32C of those 8 bytes, little endian
//!     12      n  payload: the record
//! 12 + n      4  masked CRC-32C of the payload, little endian
//! ```
//!
//! A shard is frames one after the other and nothing else; a compressed shard is that, compressed as one stream.

mod block;
mod damage;
mod input;
mod reader;
mod window;
mod writer;

pub(crate) use block::split_header;
pub use block::{Origin, parse_frame, parse_indexed, records_in_block};
pub use damage::{Damage, DamageReport};
pub use input::{Compression, InflateReader};
pub use reader::{OnDamage, Options, Reader, Record};
pub use writer::Writer;

use crate::error::FormatFault;

/// Bytes of the length and its checksum.
pub(crate) const HEADER_BYTES: usize = 12;
/// Bytes of the payload's checksum.
pub(crate) const FOOTER_BYTES: usize = 4;
/// What a frame adds to its record: 16 bytes.
pub const FRAME_OVERHEAD_BYTES: u64 = (HEADER_BYTES + FOOTER_BYTES) as u64;

/// Where a record's frame is in its shard, as the index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The offset of the frame in the shard.
    pub offset: u64,
    /// The length of the whole frame: [`FRAME_OVERHEAD_BYTES`] more than the record.
    pub length: u64,
}

impl Location {
    /// Where the frame ends.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// The length of the record in the frame.
    pub const fn payload_length(self) -> u64 {
        self.length.saturating_sub(FRAME_OVERHEAD_BYTES)
    }
}

/// The checksum of `bytes` as TensorFlow stores it: CRC-32C, rotated and offset, so that the checksum of data that contains
/// its own checksum is not degenerate.
pub fn masked_crc32c(bytes: &[u8]) -> u32 {
    mask(checksum(bytes))
}

/// From so many bytes on wide multiplication is worth its beginning.
const LONG_BYTES_MIN: usize = 4096;

/// CRC-32C. The processor's instruction takes eight bytes at a time; carry-less multiplication of whole vectors is several times as fast,
/// which shows where records are large and decoded fast.
fn checksum(bytes: &[u8]) -> u32 {
    if bytes.len() < LONG_BYTES_MIN { crc32c::crc32c(bytes) } else { crc_fast::crc32_iscsi(bytes) }
}

/// The constant and the rotation are part of the format.
pub(crate) const fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The header of a frame whose payload is `length` bytes.
pub(crate) fn header(length: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let (length_bytes, checksum) = header.split_at_mut(8);
    length_bytes.copy_from_slice(&length.to_le_bytes());
    checksum.copy_from_slice(&masked_crc32c(length_bytes).to_le_bytes());
    header
}

/// The length that a header states, whether or not its checksum agrees.
pub(crate) fn stated_length(header: &[u8; HEADER_BYTES]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| header[index]))
}

/// The length that a header states, once its checksum agrees.
pub(crate) fn check_header(header: &[u8; HEADER_BYTES]) -> Result<u64, FormatFault> {
    let [.., a, b, c, d] = *header;
    let expected = u32::from_le_bytes([a, b, c, d]);
    let found = masked_crc32c(&header[..8]);
    if expected == found { Ok(stated_length(header)) } else { Err(FormatFault::LengthChecksum { expected, found }) }
}

/// Whether the footer's checksum is the payload's.
pub(crate) fn check_payload(payload: &[u8], footer: [u8; FOOTER_BYTES]) -> Result<(), FormatFault> {
    let expected = u32::from_le_bytes(footer);
    let found = masked_crc32c(payload);
    if expected == found { Ok(()) } else { Err(FormatFault::PayloadChecksum { expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::{LONG_BYTES_MIN, checksum};

    #[test]
    fn both_ways_give_the_same_checksum() {
        let bytes: Vec<u8> = (0..3 * LONG_BYTES_MIN).map(|index| ((index * 7919) >> 3) as u8).collect();
        assert_eq!(checksum(b"123456789"), 0xE306_9283, "the check value of CRC-32C");
        for length in [LONG_BYTES_MIN - 1, LONG_BYTES_MIN, LONG_BYTES_MIN + 1, LONG_BYTES_MIN + 63, bytes.len() - 7] {
            for start in [0, 1, 7] {
                let part = &bytes[start..(start + length).min(bytes.len())];
                assert_eq!(checksum(part), crc32c::crc32c(part), "{length} bytes from {start}");
            }
        }
    }
}
