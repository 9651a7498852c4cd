//! Writing a packed shard.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};

use super::{Blocks, PackFormat, PackedBlock, Packing};

/// A block ends at the first end of a record after so many bytes. Small enough that a few blocks keep all threads busy, large
/// enough that emptying DEFLATE's window of 32 KiB at its end costs next to nothing.
const BLOCK_BYTES: u64 = 512 << 10;

/// What GZIP begins with: DEFLATE, no name, no time, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Compressed bytes are handed on in pieces of about this size.
const BUFFER_BYTES: usize = 64 << 10;

/// Packs what is written to it. Give it to a [`crate::Writer`], and call [`Packer::end_record`] between records.
pub struct Packer<W: Write> {
    output: W,
    format: PackFormat,
    stream: Compress,
    checksum: Crc,
    buffer: Vec<u8>,
    /// Where the next byte goes in `output`.
    position: u64,
    /// How many bytes were packed.
    inflated: u64,
    /// Where the block that is being written began, in both.
    begun: (u64, u64),
    blocks: Blocks,
}

impl<W: Write> Packer<W> {
    /// A packer of a new shard.
    pub fn new(output: W, packing: Packing) -> io::Result<Self> {
        let level = Compression::new(u32::from(packing.level));
        let mut packer = Self {
            output,
            format: packing.format,
            stream: Compress::new(level, packing.format == PackFormat::Zlib),
            checksum: Crc::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            position: 0,
            inflated: 0,
            begun: (0, 0),
            blocks: Blocks::default(),
        };
        match packing.format {
            PackFormat::Gzip => {
                packer.buffer.extend_from_slice(&GZIP_HEADER);
                packer.hand_on()?;
            }
            // DEFLATE's own side of the library writes ZLIB's header of two bytes before anything else.
            PackFormat::Zlib => packer.run(&[], FlushCompress::Sync)?,
        }
        packer.begun = (packer.position, 0);
        Ok(packer)
    }

    /// Says that a record ends here, which is where a block may end.
    pub fn end_record(&mut self) -> io::Result<()> {
        if self.inflated - self.begun.1 >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    /// Ends the stream; what was written to, and where its blocks are.
    pub fn finish(mut self) -> io::Result<(W, Blocks)> {
        self.end_block()?;
        self.run(&[], FlushCompress::Finish)?;
        if self.format == PackFormat::Gzip {
            self.buffer.extend_from_slice(&self.checksum.sum().to_le_bytes());
            // GZIP counts bytes modulo 2^32.
            self.buffer.extend_from_slice(&(self.inflated as u32).to_le_bytes());
            self.hand_on()?;
        }
        self.output.flush()?;
        Ok((self.output, self.blocks))
    }

    fn end_block(&mut self) -> io::Result<()> {
        let (offset, inflated_offset) = self.begun;
        if self.inflated > inflated_offset {
            self.run(&[], FlushCompress::Full)?;
            let (length, inflated_length) = (self.position - offset, self.inflated - inflated_offset);
            self.blocks.push(PackedBlock { offset, length, inflated_offset, inflated_length });
            self.begun = (self.position, self.inflated);
        }
        Ok(())
    }

    /// Compresses `input`, and all that is pending if `flush` says so.
    fn run(&mut self, mut input: &[u8], flush: FlushCompress) -> io::Result<()> {
        loop {
            let (read, written) = (self.stream.total_in(), self.stream.total_out());
            self.stream.compress_vec(input, &mut self.buffer, flush).map_err(io::Error::other)?;
            input = &input[(self.stream.total_in() - read) as usize..];
            let idle = self.stream.total_in() == read && self.stream.total_out() == written;
            // With room left there is nothing more to come.
            let done = input.is_empty() && (self.buffer.len() < self.buffer.capacity() || idle);
            if !done || flush != FlushCompress::None || self.buffer.len() >= BUFFER_BYTES {
                self.hand_on()?;
            }
            if done {
                return Ok(());
            }
        }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.run(bytes, FlushCompress::None)?;
        if self.format == PackFormat::Gzip {
            self.checksum.update(bytes);
        }
        self.inflated += bytes.len() as u64;
        Ok(bytes.len())
    }

    /// Nothing: only whole blocks are handed on, so that where they end does not depend on who flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
