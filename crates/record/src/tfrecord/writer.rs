//! Writing frames.

use std::io::{self, Write};

use crate::error::{Error, ErrorLocation, Result, UsageFault};
use crate::tfrecord::{FRAME_OVERHEAD_BYTES, Location, header, mask};

/// Writes records as TFRecord frames.
///
/// Each record is three small writes around its bytes, so give it a [`std::io::BufWriter`] where the writer underneath is a
/// file. For a compressed shard give it an encoder: the locations are then those in the uncompressed stream.
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: W,
    name: Option<Box<str>>,
    records: u64,
    offset: u64,
    checksum: u32,
    failed: bool,
}

impl<W: Write> Writer<W> {
    /// A writer of a new shard.
    pub fn new(output: W) -> Self {
        Self { output, name: None, records: 0, offset: 0, checksum: 0, failed: false }
    }

    /// The shard's name in errors.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Records written.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes written: where the next frame begins.
    pub fn position(&self) -> u64 {
        self.offset
    }

    /// The masked checksum of the record that was written last, as it stands in its frame; 0 before the first.
    pub fn last_checksum(&self) -> u32 {
        self.checksum
    }

    /// What is written to.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// Writes one record and returns where its frame is.
    pub fn write(&mut self, record: &[u8]) -> Result<Location> {
        self.write_parts(&[record])
    }

    /// Writes one record that lies in several pieces, without joining them in memory.
    pub fn write_parts(&mut self, parts: &[&[u8]]) -> Result<Location> {
        if self.failed {
            return Err(Error::Usage { location: self.location(), fault: UsageFault::WriteAfterFailure });
        }
        let length: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if let Err(source) = self.write_frame(length, parts) {
            self.failed = true;
            return Err(self.write_error(source));
        }
        let location = Location { offset: self.offset, length: length + FRAME_OVERHEAD_BYTES };
        self.offset += location.length;
        self.records += 1;
        Ok(location)
    }

    /// Flushes and hands back what was written to.
    pub fn finish(mut self) -> Result<W> {
        if self.failed {
            return Err(Error::Usage { location: self.location(), fault: UsageFault::WriteAfterFailure });
        }
        match self.output.flush() {
            Ok(()) => Ok(self.output),
            Err(source) => Err(self.write_error(source)),
        }
    }

    fn write_frame(&mut self, length: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.output.write_all(&header(length))?;
        let mut checksum = 0;
        for part in parts {
            checksum = crc32c::crc32c_append(checksum, part);
            self.output.write_all(part)?;
        }
        self.checksum = mask(checksum);
        self.output.write_all(&self.checksum.to_le_bytes())
    }

    fn location(&self) -> ErrorLocation {
        ErrorLocation { shard: self.name.clone(), record: Some(self.records), offset: Some(self.offset) }
    }

    fn write_error(&self, source: io::Error) -> Error {
        Error::Io { location: self.location(), action: "write", source }
    }
}
