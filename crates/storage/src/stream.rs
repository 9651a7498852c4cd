//! An open file as the standard library's readers want it.

use std::io::{self, Read, Seek, SeekFrom};

use crate::{Error, File};

/// Reads an open file from front to back, or from wherever it is told to go on. Each read is one of the file: wrap it in a [`BufReader`](io::BufReader) where
/// they are small.
pub struct Stream<'a> {
    file: &'a dyn File,
    position: u64,
}

impl<'a> Stream<'a> {
    /// A stream from the file's first byte on.
    pub fn new(file: &'a dyn File) -> Self {
        Self { file, position: 0 }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.size().saturating_sub(self.position);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.file.read(self.position, length).map_err(into_io)?;
        buffer[..length].copy_from_slice(&bytes);
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Stream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let sought = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.file.size().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = sought.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

/// What the system said; whoever reads a stream knows the file's name.
fn into_io(error: Error) -> io::Error {
    match error {
        Error::Open { source, .. } | Error::Read { source, .. } => source,
        other => io::Error::other(other),
    }
}
