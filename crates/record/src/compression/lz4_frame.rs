//! LZ4's frames, as its program reads and writes them.
//!
//! ```text
//! magic 04 22 4D 18   flags 60   block size 40…70   header checksum
//! { length (4 bytes, little endian; the highest bit: not compressed)   block } …   00 00 00 00
//! ```
//!
//! The library that writes frames takes levels but no acceleration, so the frame is written here around the blocks that the
//! library makes. Its blocks do not refer to each other, and there are no checksums of content: records have their own.
//! Frames of others, which may be otherwise, are read by the library; those that are like ours are read here, a block at a time, straight into
//! their place.

use std::io::{self, BufRead, Read};
use std::ops::Range;

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

/// The largest block of a frame of ours, by its header; `None` where it is not such a frame.
fn block_bytes(head: &[u8]) -> Option<usize> {
    let head = head.first_chunk::<HEADER_BYTES>()?;
    (0..4).map(|step| BLOCK_BYTES_MIN << (2 * step)).find(|&bytes| header(bytes) == *head)
}

/// Whether a stream that begins so is one for [`Lz4Reader`].
pub(crate) fn is_ours(head: &[u8]) -> bool {
    block_bytes(head).is_some()
}

/// What one frame like ours inflates to, in order. Of a damaged one, every block before the damage.
pub(crate) struct Lz4Reader<R> {
    input: R,
    /// The largest block.
    block_bytes: usize,
    ended: bool,
    /// A block as it came: space for the largest, of which the first so many bytes are one.
    compressed: Vec<u8>,
    /// One that did not fit into its place: where in this space the rest of it lies.
    inflated: Vec<u8>,
    left: Range<usize>,
}

impl<R: BufRead> Lz4Reader<R> {
    /// Reads the header.
    pub(crate) fn new(mut input: R) -> io::Result<Self> {
        let mut head = [0; HEADER_BYTES];
        input.read_exact(&mut head)?;
        let block_bytes = block_bytes(&head).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { input, block_bytes, ended: false, compressed: Vec::new(), inflated: Vec::new(), left: 0..0 })
    }

    pub(crate) fn get_ref(&self) -> &R {
        &self.input
    }

    pub(crate) fn into_inner(self) -> R {
        self.input
    }

    /// How many bytes it holds.
    pub(crate) fn memory_bytes(&self) -> u64 {
        2 * self.block_bytes as u64
    }

    /// Inflates the next block into `out`, which has space for the largest; how many bytes it gives, or `None` at the end.
    fn next_block(
        input: &mut R,
        compressed: &mut Vec<u8>,
        block_bytes: usize,
        out: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut length = [0; LENGTH_BYTES];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        let (stored, length) = (length & STORED != 0, (length & !STORED) as usize);
        let invalid = |problem| io::Error::new(io::ErrorKind::InvalidData, problem);
        match length {
            0 => Ok(None),
            _ if length > block_bytes => Err(invalid("a block is longer than its frame allows")),
            _ if stored => input.read_exact(&mut out[..length]).map(|()| Some(length)),
            _ => {
                compressed.resize(block_bytes, 0);
                let block = &mut compressed[..length];
                input.read_exact(block)?;
                let given = decompress_to_buffer(block, Some(block_bytes as i32), out);
                given.map(Some).map_err(|_| invalid("a block of it is corrupt"))
            }
        }
    }
}

impl<R: BufRead> Read for Lz4Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !self.ended && !out.is_empty() {
            if !self.left.is_empty() {
                let count = out.len().min(self.left.len());
                out[..count].copy_from_slice(&self.inflated[self.left.start..self.left.start + count]);
                self.left.start += count;
                return Ok(count);
            }
            let Self { input, compressed, inflated, block_bytes, .. } = self;
            if out.len() >= *block_bytes {
                match Self::next_block(input, compressed, *block_bytes, out)? {
                    None => self.ended = true,
                    Some(0) => {}
                    Some(given) => return Ok(given),
                }
            } else {
                inflated.resize(*block_bytes, 0);
                match Self::next_block(input, compressed, *block_bytes, inflated)? {
                    None => self.ended = true,
                    Some(given) => self.left = 0..given,
                }
            }
        }
        Ok(0)
    }
}
