//! An open file as the standard library's readers want it.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;

use crate::{Error, File};

/// Reads an open file from front to back, or from wherever it is told to go on. Each read is one of the file: wrap it in a [`BufReader`](io::BufReader) where
/// they are small.
pub struct Stream<'a> {
    file: Of<'a>,
    position: u64,
    /// What is read at once, at the least; 0 for what is asked for.
    piece_bytes: usize,
    /// The last piece, and where it begins.
    piece: (u64, Bytes),
}

impl<'a> Stream<'a> {
    /// A stream from the file's first byte on.
    pub fn new(file: &'a dyn File) -> Self {
        Self::of(Of::Borrowed(file))
    }

    fn of(file: Of<'a>) -> Self {
        Self { file, position: 0, piece_bytes: 0, piece: (0, Bytes::new()) }
    }

    /// The same, which reads so many bytes at once and keeps them until it goes elsewhere: where each read takes its time, as of an object in a store.
    #[must_use]
    pub fn in_pieces(self, piece_bytes: usize) -> Self {
        Self { piece_bytes, ..self }
    }

    /// What is kept of the piece at the position; nothing where that lies elsewhere.
    fn kept(&self) -> &[u8] {
        let (start, piece) = &self.piece;
        let within = self.position.checked_sub(*start).and_then(|within| usize::try_from(within).ok());
        within.and_then(|within| piece.get(within..)).unwrap_or_default()
    }
}

impl Stream<'static> {
    /// The same of a file that nobody else needs.
    pub fn owning(file: Box<dyn File>) -> Self {
        Self::of(Of::Owned(file))
    }
}

/// A file of somebody else, or of one's own.
enum Of<'a> {
    Borrowed(&'a dyn File),
    Owned(Box<dyn File>),
}

impl Of<'_> {
    fn get(&self) -> &dyn File {
        match self {
            Self::Borrowed(file) => *file,
            Self::Owned(file) => &**file,
        }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.get().size().saturating_sub(self.position);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if self.piece_bytes > 0 && left > 0 && !buffer.is_empty() {
            if self.kept().is_empty() {
                let piece = self.file.get().read(self.position, left.min(self.piece_bytes)).map_err(into_io)?;
                self.piece = (self.position, piece);
            }
            let kept = self.kept();
            let length = kept.len().min(buffer.len());
            buffer[..length].copy_from_slice(&kept[..length]);
            self.position += length as u64;
            return Ok(length);
        }
        let length = left.min(buffer.len());
        let bytes = self.file.get().read(self.position, length).map_err(into_io)?;
        buffer[..length].copy_from_slice(&bytes);
        self.position += length as u64;
        Ok(length)
    }
}

impl Seek for Stream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let sought = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.file.get().size().checked_add_signed(offset),
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
