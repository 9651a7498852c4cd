//! Snappy's framing format, a block at once and straight into its place. Streams are read by the library.
//!
//! ```text
//! FF 06 00 00 sNaPpY   { kind (1 byte)   length (3 bytes, little endian)   content } …
//! kind 00   masked CRC-32C of what it gives (4 bytes)   raw Snappy
//! kind 01   masked CRC-32C (4 bytes)   the bytes themselves
//! ```
//!
//! A chunk gives at most 64 KiB. Kinds from 80 on may be passed over; others may not.

use crate::tfrecord::masked_crc32c;

const IDENTIFIER: [u8; 10] = *b"\xff\x06\x00\x00sNaPpY";

/// What a chunk gives at most.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Fills `out` with the content of the chunks that `compressed` is; how many bytes they give.
pub(super) fn inflate(compressed: &[u8], out: &mut [u8]) -> Result<usize, &'static str> {
    if !compressed.starts_with(&IDENTIFIER) {
        return Err("it does not begin as Snappy's frames do");
    }
    let (mut rest, mut written, mut decoder) = (compressed, 0, snap::raw::Decoder::new());
    while let Some((head, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes([head[1], head[2], head[3], 0]) as usize;
        let (chunk, after) = after.split_at_checked(length).ok_or("it ends within a chunk")?;
        rest = after;
        match head[0] {
            kind @ (0 | 1) => {
                let (checksum, content) = chunk.split_first_chunk::<4>().ok_or("a chunk has no checksum")?;
                let length = if kind == 0 { snap::raw::decompress_len(content) } else { Ok(content.len()) };
                let length = length.ok().filter(|&length| length <= CHUNK_BYTES_MAX).ok_or("a chunk is too long")?;
                let space = out.get_mut(written..written + length).ok_or("it gives more bytes than it should")?;
                if kind == 1 {
                    space.copy_from_slice(content);
                } else if decoder.decompress(content, space) != Ok(length) {
                    return Err("a chunk is corrupt");
                }
                if masked_crc32c(space) != u32::from_le_bytes(*checksum) {
                    return Err("a chunk has another checksum than it should");
                }
                written += length;
            }
            0xff if chunk == &IDENTIFIER[4..] => {}
            0x80..=0xfe => {}
            _ => return Err("a chunk is of a kind that nobody knows"),
        }
    }
    if rest.is_empty() { Ok(written) } else { Err("it ends within a chunk") }
}
