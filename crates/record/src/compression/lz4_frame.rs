//! LZ4's frames, as its program reads and writes them.
//!
//! ```text
//! magic 04 22 4D 18   flags 60   block size 40…70   header checksum
//! { length (4 bytes, little endian; the highest bit: not compressed)   block } …   00 00 00 00
//! ```
//!
//! The library that writes frames takes levels but no acceleration, so the frame is written here around the blocks that the
//! library makes. Its blocks do not refer to each other, and there are no checksums of content: records have their own.

use std::io;

use lz4::block::{CompressionMode, compress_bound, compress_to_buffer, decompress_to_buffer};
use xxhash_rust::xxh32::xxh32;

use super::Lz4Mode;

pub(crate) const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Version 1, blocks that are independent, and nothing else.
const FLAGS: u8 = 0b0110_0000;

/// The blocks of a stream: damage to one costs no more than that before what follows is lost, too.
pub(super) const STREAM_BLOCK_BYTES: usize = 256 << 10;

/// The largest block, and the smallest.
const BLOCK_BYTES_MAX: usize = 4 << 20;
const BLOCK_BYTES_MIN: usize = 64 << 10;

/// In a block's length: that it is stored as it is.
const STORED: u32 = 1 << 31;

const HEADER_BYTES: usize = 7;
const LENGTH_BYTES: usize = 4;

fn mode(mode: Lz4Mode) -> CompressionMode {
    match mode {
        Lz4Mode::Fast { acceleration } => CompressionMode::FAST(acceleration as i32),
        Lz4Mode::HighCompression { level } => CompressionMode::HIGHCOMPRESSION(i32::from(level)),
    }
}

/// The header of a frame whose blocks are of up to `block_bytes`.
fn header(block_bytes: usize) -> [u8; HEADER_BYTES] {
    // 4 is 64 KiB, and each one more is four times as much.
    let steps = (0..3).take_while(|&step| BLOCK_BYTES_MIN << (2 * step) < block_bytes).count();
    let descriptor = [FLAGS, (4 + steps as u8) << 4];
    let checksum = (xxh32(&descriptor, 0) >> 8) as u8;
    let [a, b, c, d] = MAGIC;
    [a, b, c, d, descriptor[0], descriptor[1], checksum]
}

/// Appends the beginning of a frame of any length.
pub(super) fn begin(out: &mut Vec<u8>) {
    out.extend_from_slice(&header(STREAM_BLOCK_BYTES));
}

/// Appends the end of a frame.
pub(super) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0; LENGTH_BYTES]);
}

/// Appends `piece` as a frame of its own.
pub(super) fn compress(piece: &[u8], with: Lz4Mode, out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(&header(piece.len()));
    compress_blocks(piece, with, out)?;
    end(out);
    Ok(())
}

/// Appends the blocks that `piece` becomes.
pub(super) fn compress_blocks(piece: &[u8], with: Lz4Mode, out: &mut Vec<u8>) -> io::Result<()> {
    for block in piece.chunks(BLOCK_BYTES_MAX) {
        let start = out.len() + LENGTH_BYTES;
        out.resize(start + compress_bound(block.len())?, 0);
        let length = compress_to_buffer(block, Some(mode(with)), false, &mut out[start..])?;
        out.truncate(start + length);
        let mut stated = length as u32;
        if length >= block.len() {
            out.truncate(start);
            out.extend_from_slice(block);
            stated = block.len() as u32 | STORED;
        }
        out[start - LENGTH_BYTES..start].copy_from_slice(&stated.to_le_bytes());
    }
    Ok(())
}

/// Fills `out` with the content of the frame that `compressed` is, as [`compress`] writes it.
pub(super) fn inflate(compressed: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    let (head, mut rest) = compressed.split_first_chunk::<HEADER_BYTES>().ok_or("it ends within its header")?;
    let is_ours = (0..4).any(|step| header(BLOCK_BYTES_MIN << (2 * step)) == *head);
    if !is_ours {
        return Err("its header is not one that is written here");
    }
    let mut written = 0;
    loop {
        let (length, after) = rest.split_first_chunk::<LENGTH_BYTES>().ok_or("it ends before its end mark")?;
        let length = u32::from_le_bytes(*length);
        if length == 0 {
            return match (after, out.len() - written) {
                ([], 0) => Ok(()),
                ([], _) => Err("it gives fewer bytes than it should"),
                _ => Err("there are bytes after its end mark"),
            };
        }
        let (stored, length) = (length & STORED != 0, (length & !STORED) as usize);
        let (block, after) = after.split_at_checked(length).ok_or("it ends within a block")?;
        let space = &mut out[written..];
        let space_bytes = space.len().min(BLOCK_BYTES_MAX);
        written += if stored {
            space.get_mut(..length).ok_or("it gives more bytes than it should")?.copy_from_slice(block);
            length
        } else {
            decompress_to_buffer(block, Some(space_bytes as i32), space).map_err(|_| "a block of it is corrupt")?
        };
        rest = after;
    }
}
