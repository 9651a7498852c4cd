//! Shards that are compressed as one stream, by whomever: reading them as if they were not.
//!
//! A stream can only be inflated from its start. What is read in order costs what reading it once costs; whoever asks for what came before
//! waits until it was inflated again. So the blocks of such a shard are one sequence to the sampler, which keeps their order.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use forebay_record::{Compression, InflateReader};
use forebay_storage::{File, Storage};

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// What is read at once of a compressed shard.
const PIECE_BYTES: usize = 1 << 20;

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

/// So many places are read at once in all shards of a source: some for each stream of the sampler, however many shards there are.
const CURSORS_MAX: usize = 128;

/// What was passed over is kept for those who come a moment later: readers are several, and do not come in order. So much at one place, and in
/// all.
const KEPT_BYTES_MAX: u64 = 16 << 20;
const KEPT_BYTES_TOTAL_MAX: u64 = 64 << 20;

/// A shard that is compressed as one stream, open. Reads wait for each other.
pub(crate) struct InflatedShard {
    number: usize,
    path: PathBuf,
    file: Arc<dyn File>,
    compression: Compression,
    cursors: Arc<Cursors>,
    /// Where the stream was found to be damaged, and how: it need not be inflated again up to there for each sample that comes after.
    fault: Mutex<Option<(u64, String)>>,
}

/// The places that the shards of a source are being read at, each with the number of its shard; the one that was used last is at the end.
#[derive(Default)]
pub(super) struct Cursors(Mutex<VecDeque<(usize, Cursor)>>);

/// A place in a stream.
struct Cursor {
    stream: Inflating,
    position: u64,
    /// What was passed over last: where, and what.
    kept: VecDeque<(u64, Bytes)>,
}

type Inflating = InflateReader<BufReader<FileStream>>;

impl Cursors {
    /// What was passed over in a shard, if it is wanted now.
    fn kept(&self, shard: usize, offset: u64, length: usize) -> Option<Bytes> {
        let cursors = self.0.lock();
        cursors.iter().filter(|(of, _)| *of == shard).find_map(|(_, cursor)| cursor.kept(offset, length))
    }

    /// The place nearest before `offset` of a shard.
    fn take(&self, shard: usize, offset: u64) -> Option<Cursor> {
        let mut cursors = self.0.lock();
        let before = cursors.iter().enumerate().filter(|(_, (of, cursor))| *of == shard && cursor.position <= offset);
        let nearest = before.max_by_key(|(_, (_, cursor))| cursor.position).map(|(number, _)| number);
        nearest.and_then(|number| cursors.remove(number)).map(|(_, cursor)| cursor)
    }

    fn put(&self, shard: usize, cursor: Cursor) {
        let mut cursors = self.0.lock();
        cursors.push_back((shard, cursor));
        while cursors.len() > CURSORS_MAX {
            cursors.pop_front();
        }
        let mut bytes: u64 = cursors.iter().map(|(_, cursor)| cursor.kept_bytes()).sum();
        for (_, cursor) in cursors.iter_mut() {
            if bytes <= KEPT_BYTES_TOTAL_MAX {
                break;
            }
            bytes -= cursor.kept_bytes();
            cursor.kept.clear();
        }
    }
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
        Ok(Self { number, path: path.to_owned(), file, compression, cursors, fault: Mutex::new(None) })
    }

    /// Reads `length` bytes at `offset` of what the shard inflates to.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut fault = self.fault.lock();
        if let Some((_, problem)) = fault.as_ref().filter(|(end, _)| offset.saturating_add(length as u64) > *end) {
            return Err(Error::Format { path: self.path.clone(), problem: problem.clone() });
        }
        if let Some(bytes) = self.cursors.kept(self.number, offset, length) {
            return Ok(bytes);
        }
        let mut cursor = match self.cursors.take(self.number, offset) {
            Some(cursor) => cursor,
            None => Cursor { stream: self.stream()?, position: 0, kept: VecDeque::new() },
        };
        let bytes = cursor.read(offset, length).map_err(|error| {
            let error = self.failed(error);
            if let Error::Format { problem, .. } = &error {
                *fault = Some((cursor.position, problem.clone()));
            }
            error
        })?;
        self.cursors.put(self.number, cursor);
        Ok(bytes)
    }

    fn stream(&self) -> Result<Inflating> {
        inflating(&self.file, self.compression).map_err(|error| self.failed(error))
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

fn inflating(file: &Arc<dyn File>, compression: Compression) -> io::Result<Inflating> {
    let stream = FileStream { file: Arc::clone(file), position: 0 };
    InflateReader::new(BufReader::with_capacity(PIECE_BYTES, stream), compression)
}

impl Cursor {
    /// What was passed over, if it is wanted now.
    fn kept(&self, offset: u64, length: usize) -> Option<Bytes> {
        let holds =
            |(start, bytes): &(u64, Bytes)| *start <= offset && offset + length as u64 <= start + bytes.len() as u64;
        let (start, bytes) = self.kept.iter().find(|kept| holds(kept))?;
        let from = (offset - start) as usize;
        Some(bytes.slice(from..from + length))
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    fn read(&mut self, offset: u64, length: usize) -> io::Result<Bytes> {
        let passed = offset - self.position;
        if passed > KEPT_BYTES_MAX {
            let mut step = vec![0; STEP_BYTES];
            while self.position < offset {
                let wanted = (offset - self.position).min(STEP_BYTES as u64) as usize;
                let read = self.stream.read(&mut step[..wanted])?;
                self.position += read as u64;
                if read == 0 {
                    return Err(ended());
                }
            }
            self.kept.clear();
        } else if passed > 0 {
            let kept = (self.position, self.take(passed as usize)?);
            self.kept.push_back(kept);
        }
        while self.kept_bytes() > KEPT_BYTES_MAX {
            self.kept.pop_front();
        }
        self.take(length)
    }

    /// The next bytes. Memory follows what is there.
    fn take(&mut self, length: usize) -> io::Result<Bytes> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let read = self.stream.by_ref().take(length as u64).read_to_end(&mut bytes);
        self.position += bytes.len() as u64;
        read?;
        if bytes.len() == length { Ok(bytes.into()) } else { Err(ended()) }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before its samples do")
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
        let stream = inflating(&file, compression).map_err(|error| failed(path, error))?;
        Ok(Self { path: path.to_owned(), file, compression, stream, position: 0, end: None, fault: None })
    }

    /// What ended it before its time.
    pub(super) fn fault(self) -> Option<Error> {
        self.fault.map(|error| failed(&self.path, error))
    }

    fn go_to(&mut self, position: u64) -> io::Result<u64> {
        if position < self.position {
            self.stream = inflating(&self.file, self.compression)?;
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
                    let problem = format!("it inflates to more than {bytes_max} bytes, which no sound shard does");
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

/// A file that is read from front to back, and belongs to whoever reads it.
pub(super) struct FileStream {
    pub(super) file: Arc<dyn File>,
    pub(super) position: u64,
}

impl Read for FileStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.file.size().saturating_sub(self.position);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let bytes = self.file.read(self.position, length).map_err(|error| match error {
            forebay_storage::Error::Open { source, .. } | forebay_storage::Error::Read { source, .. } => source,
            other => io::Error::other(other),
        })?;
        buffer[..length].copy_from_slice(&bytes);
        self.position += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use forebay_record::ShardCompressor;
    use forebay_storage::MemoryStorage;

    use super::*;
    use crate::sync::modeled;

    /// More shards than there are cursors: all are read right, also from the start again, and what they hold stays bounded.
    #[test]
    fn many_shards_hold_no_more_than_few() {
        modeled(|| {
            let content: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
            let mut compressor = ShardCompressor::new(Vec::new(), "gzip-1-stream".parse().unwrap()).unwrap();
            compressor.write_all(&content).unwrap();
            let (shard, _) = compressor.finish().unwrap();
            let storage = MemoryStorage::new();
            let path = Path::new("shard");
            let mut upload = storage.create(path).unwrap();
            upload.write_all(&shard).unwrap();
            upload.commit().unwrap();
            let cursors = Arc::new(Cursors::default());
            let open = |number| InflatedShard::open(&storage, (number, path), Compression::Gzip, &cursors).unwrap();
            let shards: Vec<InflatedShard> = (0..2 * CURSORS_MAX).map(open).collect();
            for offset in [90_000, 0, 50_000] {
                for shard in &shards {
                    assert_eq!(shard.read(offset, 10_000).unwrap(), content[offset as usize..][..10_000]);
                }
                let held = cursors.0.lock();
                assert_eq!(held.len(), CURSORS_MAX);
                assert!(held.iter().map(|(_, cursor)| cursor.kept_bytes()).sum::<u64>() <= KEPT_BYTES_TOTAL_MAX);
            }
        });
    }
}
