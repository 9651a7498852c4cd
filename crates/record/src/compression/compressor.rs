//! Writing a compressed shard.

use std::io::{self, Write};

use forebay_deflate::{Flush, Wrapper};
use libdeflater::Crc;

use super::encoder::{BUFFER_BYTES, DeflateStream, Encoder, GZIP_HEADER, gzip_trailer};
use super::stream::StreamEncoder;
use super::{Algorithm, Blocks, CompressedBlock, Scope, ShardCompression};

/// A block ends at the first end of a record after so many bytes. Small enough that a few blocks keep all threads busy, large
/// enough that emptying DEFLATE's window of 32 KiB at its end costs next to nothing.
const BLOCK_BYTES: u64 = 512 << 10;

/// The header of RFC 1950.
const ZLIB_HEADER_BYTES: u64 = 2;

/// Compresses what is written to it. Give it to a [`crate::Writer`], and call [`ShardCompressor::end_record`] between records.
///
/// What it makes is one stream of its format. DEFLATE is one from beginning to end, which is flushed completely where a block ends; of the
/// other formats a block is one frame, and a stream is frames one after the other.
pub struct ShardCompressor<W: Write> {
    output: W,
    engine: Engine,
    scope: Scope,
    /// What is compressed already and not yet written.
    buffer: Vec<u8>,
    /// Where the next byte goes in `output`.
    position: u64,
    /// How many bytes were compressed.
    inflated: u64,
    /// Where the block that is being written began, in both.
    begun: (u64, u64),
    blocks: Blocks,
}

enum Engine {
    /// A stream, and the checksum of what went into it where that is GZIP's.
    Deflate(DeflateStream, Option<Crc>),
    /// Blocks that are gathered first.
    Pieces(Encoder, Vec<u8>),
    /// A stream of one frame.
    Stream(StreamEncoder),
}

impl<W: Write> ShardCompressor<W> {
    /// A compressor of a new shard, of blocks or as a stream.
    pub fn new(output: W, compression: ShardCompression) -> io::Result<Self> {
        let mut buffer = Vec::new();
        let engine = match compression.algorithm {
            Algorithm::Gzip(options) => {
                buffer.extend_from_slice(&GZIP_HEADER);
                Engine::Deflate(DeflateStream::new(options, Wrapper::Raw)?, Some(Crc::new()))
            }
            Algorithm::Zlib(options) => Engine::Deflate(DeflateStream::new(options, Wrapper::Zlib)?, None),
            _ if compression.scope != Scope::Stream => Engine::Pieces(Encoder::new(compression, None)?, Vec::new()),
            Algorithm::Zstd(options) => Engine::Stream(StreamEncoder::zstd(options)?),
            Algorithm::Lz4(mode) => Engine::Stream(StreamEncoder::lz4(mode)),
            Algorithm::Snappy => Engine::Stream(StreamEncoder::snappy()),
        };
        let mut compressor = Self {
            output,
            engine,
            scope: compression.scope,
            buffer,
            position: 0,
            inflated: 0,
            begun: (0, 0),
            blocks: Blocks::default(),
        };
        compressor.hand_on()?;
        let header = if matches!(compression.algorithm, Algorithm::Zlib(_)) { ZLIB_HEADER_BYTES } else { 0 };
        compressor.begun = (compressor.position + header, 0);
        Ok(compressor)
    }

    /// Says that a record ends here, which is where a block may end.
    pub fn end_record(&mut self) -> io::Result<()> {
        let full = self.scope != Scope::Stream && self.inflated - self.begun.1 >= BLOCK_BYTES;
        if full { self.end_block() } else { Ok(()) }
    }

    /// Ends the stream; what was written to, and where its blocks are.
    pub fn finish(mut self) -> io::Result<(W, Blocks)> {
        self.end_block()?;
        if let Engine::Deflate(stream, checksum) = &mut self.engine {
            stream.append(&[], Flush::Finish, &mut self.buffer);
            if let Some(checksum) = checksum {
                self.buffer.extend_from_slice(&gzip_trailer(checksum.sum(), self.inflated));
            }
        }
        self.hand_on()?;
        self.output.flush()?;
        Ok((self.output, self.blocks))
    }

    fn end_block(&mut self) -> io::Result<()> {
        let (offset, inflated_offset) = self.begun;
        if self.inflated == inflated_offset {
            return Ok(());
        }
        match &mut self.engine {
            Engine::Deflate(stream, _) => stream.append(&[], Flush::Full, &mut self.buffer),
            Engine::Pieces(encoder, pending) => {
                encoder.append(pending, &mut self.buffer)?;
                pending.clear();
            }
            Engine::Stream(encoder) => encoder.finish(&mut self.buffer)?,
        }
        self.hand_on()?;
        let (length, inflated_length) = (self.position - offset, self.inflated - inflated_offset);
        self.blocks.push(CompressedBlock { offset, length, inflated_offset, inflated_length });
        self.begun = (self.position, self.inflated);
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for ShardCompressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.engine {
            Engine::Deflate(stream, checksum) => {
                stream.append(bytes, Flush::None, &mut self.buffer);
                if let Some(checksum) = checksum {
                    checksum.update(bytes);
                }
            }
            Engine::Pieces(_, pending) => {
                pending.try_reserve(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
                pending.extend_from_slice(bytes);
            }
            Engine::Stream(encoder) => encoder.append(bytes, &mut self.buffer)?,
        }
        self.inflated += bytes.len() as u64;
        if self.buffer.len() >= BUFFER_BYTES {
            self.hand_on()?;
        }
        Ok(bytes.len())
    }

    /// Nothing: only whole blocks are handed on, so that where they end does not depend on who flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
