//! Shards that are compressed as one stream, by whomever: reading them as if they were not.
//!
//! A stream can only be inflated from its start. What is read in order costs what reading it once costs; whoever asks for what came before
//! waits until it was inflated again. So the blocks of such a shard are one sequence to the sampler, which keeps their order.
//!
//! Only one thread inflates a stream. Where samples come as they lie, others that want what comes later in the same shard inflate meanwhile
//! what the shards after it begin with ([`InflatedShard::read_ahead`]), as far as there is memory for it.

pub(super) mod cursors;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use forebay_record::{Compression, InflateReader};
use forebay_storage::{File, Storage};

use self::cursors::{Cursor, Cursors, Inflating, Lease, PIECE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::sync::Mutex;

/// What is inflated at once.
const STEP_BYTES: usize = 64 << 10;

/// A shard may inflate to so many times its size, and to so many bytes in any case. No sound one does to more: DEFLATE can give 1,032 times as
/// much, of zeros, and Zstandard far more.
const INFLATION_MAX: u64 = 1000;
const INFLATED_BYTES_MIN: u64 = 1 << 30;

/// Records take memory by themselves. So many of a shard are believed in any case, and one for each of its bytes.
const RECORDS_MIN: u64 = 1 << 20;

/// How many records, and how many bytes, a compressed shard of `bytes` may inflate to.
pub(super) fn compressed_limits(bytes: u64) -> (u64, u64) {
    (bytes.max(RECORDS_MIN), bytes.saturating_mul(INFLATION_MAX).max(INFLATED_BYTES_MIN))
}

/// A shard that is compressed as one stream, open. Reads wait for each other.
pub(crate) struct InflatedShard {
    number: usize,
    path: PathBuf,
    file: Arc<dyn File>,
    compression: Compression,
    cursors: Arc<Cursors>,
    /// Where those read, or want to, who do now.
    wanted: Mutex<Vec<u64>>,
    /// Who holds this reads. Where the stream was found to be damaged, and how: it need not be inflated again up to there for each sample that comes after.
    fault: Mutex<Option<(u64, String)>>,
}

impl InflatedShard {
    /// Opens the shard at `path`, number `number` of those that share `cursors`.
    pub(super) fn open(
        storage: &dyn Storage,
        (number, path): (usize, &Path),
        compression: Compression,
        cursors: &Arc<Cursors>,
    ) -> Result<Self> {
        let file = Arc::from(storage.open(path)?);
        let cursors = Arc::clone(cursors);
        Ok(Self {
            number,
            path: path.to_owned(),
            file,
            compression,
            cursors,
            fault: Mutex::new(None),
            wanted: Mutex::default(),
        })
    }

    /// Says that somebody wants to read at `offset`, until that is dropped.
    pub(super) fn wants(&self, offset: u64) -> Wanted<'_> {
        self.wanted.lock().push(offset);
        Wanted { shard: self, offset }
    }

    /// Reads `length` bytes at `offset` of what the shard inflates to.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut fault = self.fault.lock();
        if let Some((_, problem)) = fault.as_ref().filter(|(end, _)| offset.saturating_add(length as u64) > *end) {
            return Err(Error::Format { path: self.path.clone(), problem: problem.clone() });
        }
        let buffers = self.cursors.buffers();
        if let Some(kept) = self.cursors.kept(self.number, offset, length) {
            return kept.joined(length, buffers).map_err(|error| self.failed(error));
        }
        let lease = self.cursors.take(self.number, offset);
        let keep_bytes = lease.keep_bytes;
        self.at_place(lease, &mut fault, |cursor| cursor.read(offset, length, keep_bytes, buffers))
    }

    /// Inflates some more of what comes next, for whoever reads it then; whether that was possible: not where somebody reads the shard now, where it is at its
    /// end, or where there is no memory for more.
    pub(super) fn read_ahead(&self) -> bool {
        let Some(mut fault) = self.fault.try_lock().filter(|fault| fault.is_none()) else { return false };
        let Some(lease) = self.cursors.take_ahead(self.number) else { return false };
        // Whoever comes to the damage reports it.
        self.at_place(lease, &mut fault, |cursor| cursor.read_ahead(self.cursors.buffers())).is_ok()
    }

    /// Reads at a place, and gives it back if it is still good.
    fn at_place<T>(
        &self,
        lease: Lease,
        fault: &mut Option<(u64, String)>,
        read: impl FnOnce(&mut Cursor) -> io::Result<T>,
    ) -> Result<T> {
        let Lease { cursor, counted_bytes, .. } = lease;
        let done = cursor.map_or_else(|| self.cursor(), Ok).and_then(|mut cursor| {
            let read = read(&mut cursor).map_err(|error| {
                let error = self.failed(error);
                if let Error::Format { problem, .. } = &error {
                    *fault = Some((cursor.position(), problem.clone()));
                }
                error
            });
            read.map(|read| (cursor, read))
        });
        let (cursor, read) = match done {
            Ok((cursor, read)) => (Some(cursor), Ok(read)),
            Err(error) => (None, Err(error)),
        };
        self.cursors.put(self.number, counted_bytes, cursor);
        read
    }

    /// A place at the start of the shard.
    fn cursor(&self) -> Result<Cursor> {
        let piece_bytes = self.cursors.piece_bytes();
        let stream = inflating(&self.file, self.compression, piece_bytes).map_err(|error| self.failed(error))?;
        Ok(Cursor::new(stream, piece_bytes))
    }

    fn failed(&self, error: io::Error) -> Error {
        failed(&self.path, error)
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::Format { path: path.to_owned(), problem: format!("cannot be inflated: {error}") }
        }
        _ => Error::io("read the shard", path)(error),
    }
}

fn inflating(file: &Arc<dyn File>, compression: Compression, piece_bytes: u64) -> io::Result<Inflating> {
    let file = Arc::clone(file);
    let stream = FileStream { file, position: 0, piece_bytes: piece_bytes as usize, piece: Bytes::new() };
    InflateReader::new(stream, compression)
}

/// Somebody reads a shard, or waits to.
pub(crate) struct Wanted<'a> {
    shard: &'a InflatedShard,
    offset: u64,
}

impl Wanted<'_> {
    /// Whether others read before that place, or want to: one after the other they come to it.
    pub(super) fn must_wait(&self) -> bool {
        self.shard.wanted.lock().iter().any(|offset| *offset < self.offset)
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let mut wanted = self.shard.wanted.lock();
        if let Some(number) = wanted.iter().position(|offset| *offset == self.offset) {
            wanted.swap_remove(number);
        }
    }
}

/// What a shard inflates to, for whoever lists its samples: read forward it is inflated once, and from the start again where it is
/// read backward. A damaged one ends there; [`InflatedStream::fault`] says so.
pub(super) struct InflatedStream {
    path: PathBuf,
    file: Arc<dyn File>,
    compression: Compression,
    stream: Inflating,
    position: u64,
    /// Where the stream ends, once that is known.
    end: Option<u64>,
    fault: Option<io::Error>,
}

impl InflatedStream {
    /// What `file`, the shard at `path`, inflates to.
    pub(super) fn open(file: Box<dyn File>, compression: Compression, path: &Path) -> Result<Self> {
        let file = Arc::from(file);
        let stream = inflating(&file, compression, PIECE_BYTES_MAX).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), file, compression, stream, position: 0, end: None, fault: None })
    }

    /// What ended it before its time.
    pub(super) fn fault(self) -> Option<Error> {
        self.fault.map(|error| failed(&self.path, error))
    }

    fn go_to(&mut self, position: u64) -> io::Result<u64> {
        if position < self.position {
            self.stream = inflating(&self.file, self.compression, PIECE_BYTES_MAX)?;
            self.position = 0;
        }
        let mut step = vec![0; STEP_BYTES];
        while self.position < position {
            let wanted = (position - self.position).min(STEP_BYTES as u64) as usize;
            if self.read(&mut step[..wanted])? == 0 {
                break;
            }
        }
        Ok(self.position)
    }
}

impl Read for InflatedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.end.is_some_and(|end| self.position >= end) {
            return Ok(0);
        }
        match self.stream.read(buffer) {
            Ok(0) if !buffer.is_empty() => self.end = Some(self.position),
            Ok(count) => {
                self.position += count as u64;
                let (_, bytes_max) = compressed_limits(self.file.size());
                if self.position > bytes_max {
                    let problem = format!("it inflates to more than {bytes_max} bytes, which no valid shard does");
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
                }
                return Ok(count);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) => {
                self.end = Some(self.position);
                self.fault = Some(error);
            }
            Err(error) => return Err(error),
        }
        Ok(0)
    }
}

impl Seek for InflatedStream {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
            SeekFrom::End(distance) => {
                let end = if let Some(end) = self.end { end } else { self.go_to(u64::MAX)? };
                end.checked_add_signed(distance)
            }
        };
        self.go_to(position.ok_or(io::ErrorKind::InvalidInput)?)
    }
}

/// A file that is read from front to back in large pieces, and belongs to whoever reads it.
struct FileStream {
    file: Arc<dyn File>,
    /// Where the next piece begins.
    position: u64,
    piece_bytes: usize,
    /// What is left of the last one.
    piece: Bytes,
}

impl Read for FileStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() {
            let left = self.file.size().saturating_sub(self.position);
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.piece_bytes);
            self.piece = self.file.read(self.position, length).map_err(|error| match error {
                forebay_storage::Error::Open { source, .. } | forebay_storage::Error::Read { source, .. } => source,
                other => io::Error::other(other),
            })?;
            self.position += length as u64;
        }
        let length = self.piece.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.piece[..length]);
        self.piece.advance(length);
        Ok(length)
    }
}
