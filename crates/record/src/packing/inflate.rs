//! Inflating one block.

use flate2::{Decompress, FlushDecompress, Status};

use super::PackedBlock;
use crate::error::{Error, FormatFault, Place, Result};

/// Appends what `packed`, the bytes of `block`, inflates to; `shard` is the shard's name, for errors.
///
/// It gives exactly the length that the list of blocks says, or an error: nothing that the bytes say makes it allocate more.
/// Whether the bytes are the right ones is for the records' checksums to say.
pub fn inflate_block(packed: &[u8], block: &PackedBlock, shard: &str, out: &mut Vec<u8>) -> Result<()> {
    let damaged = |detail: String| Error::Format {
        place: Place { shard: Some(shard.into()), record: None, offset: Some(block.offset) },
        fault: FormatFault::PackedBlock { detail: detail.into() },
    };
    let start = out.len();
    let length = block.inflated_length as usize;
    out.try_reserve(length).map_err(|_| Error::Io {
        place: Place { shard: Some(shard.into()), record: None, offset: Some(block.offset) },
        action: "inflate",
        source: std::io::ErrorKind::OutOfMemory.into(),
    })?;
    out.resize(start + length, 0);
    let (mut read, mut written) = (0, 0);
    // Raw DEFLATE: the header and the checksums of the stream are before the first block and after the last.
    let mut stream = Decompress::new(false);
    while written < length {
        let (read_before, written_before) = (stream.total_in(), stream.total_out());
        let status = stream
            .decompress(&packed[read..], &mut out[start + written..], FlushDecompress::None)
            .map_err(|error| damaged(error.to_string()))?;
        let (more_read, more_written) = (stream.total_in() - read_before, stream.total_out() - written_before);
        read += more_read as usize;
        written += more_written as usize;
        if status == Status::StreamEnd || (more_read == 0 && more_written == 0) {
            break;
        }
    }
    if written == length { Ok(()) } else { Err(damaged(format!("it gives {written} bytes, not {length}"))) }
}
