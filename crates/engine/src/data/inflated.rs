//! Shards that are compressed as one stream, by whomever: reading them as if they were not.
//!
//! A stream can only be inflated from its start. What is read in order costs what reading it once costs; whoever asks for what came before
//! waits until it was inflated again. So the blocks of such a shard are one sequence to the sampler, which keeps their order.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use forebay_record::{Compression, InflateReader};
use forebay_storage::{BufferPool, File, Storage};

use crate::error::{Error, Result};
use crate::sync::Mutex;

/// What is read at once of a compressed shard: so much, or less where there is little memory.
const PIECE_BYTES_MAX: u64 = 1 << 20;
const PIECE_BYTES_MIN: u64 = 64 << 10;
/// So many pieces fit into the memory that there is.
const PIECES: u64 = 64;

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

/// What was passed over is kept for those who come a moment later: readers are several, and do not come in order. So much at one place.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// What a place takes besides the piece that is read at once, before it is known: windows of Zstandard may be larger.
const NEW_BYTES: u64 = 128 << 10;

/// What is kept of the memory that was inflated into, for those who inflate next.
const IDLE_BYTES_MAX: usize = 32 << 20;

/// What all places may hold in memory, unless a budget says something else.
const BYTES_MAX: u64 = 64 << 20;

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

/// The places that the shards of a source are being read at. What they hold stays within a limit, which is a share of a memory budget: what was
/// passed over goes first, then the places that were not used for the longest time. A shard whose place is gone is inflated from its start again.
pub(super) struct Cursors {
    held: Mutex<Held>,
    /// What is inflated goes there.
    buffers: BufferPool,
}

struct Held {
    /// Those that nobody reads at now, each with the number of its shard; the one that was used last is at the end.
    idle: VecDeque<(usize, Cursor)>,
    /// How many are being read at, and what those may hold.
    busy: usize,
    busy_bytes: u64,
    bytes_max: u64,
    bytes_peak: u64,
}

/// A place in a stream.
struct Cursor {
    stream: Inflating,
    position: u64,
    /// What is read at once.
    piece_bytes: u64,
    /// What was passed over last: where, and what.
    kept: VecDeque<(u64, Bytes)>,
}

/// A place that is being read at: what it was counted with, and how much of what is passed over may be kept.
struct Lease {
    cursor: Option<Cursor>,
    counted_bytes: u64,
    keep_bytes: u64,
}

type Inflating = InflateReader<FileStream>;

impl Default for Cursors {
    fn default() -> Self {
        let held = Held { idle: VecDeque::new(), busy: 0, busy_bytes: 0, bytes_max: BYTES_MAX, bytes_peak: 0 };
        Self { held: Mutex::new(held), buffers: BufferPool::with_idle_limit(IDLE_BYTES_MAX) }
    }
}

impl Cursors {
    /// From now on they hold no more than `bytes_max`. Where a place takes more by itself, there are no others than those that are being read at.
    pub(super) fn limit(&self, bytes_max: u64) {
        let mut held = self.held.lock();
        held.bytes_max = bytes_max;
        held.shrink();
    }

    /// How many bytes they held at most, and do now.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let held = self.held.lock();
        (held.bytes_peak, held.bytes())
    }

    /// What is read at once of a shard.
    fn piece_bytes(&self) -> u64 {
        self.held.lock().piece_bytes()
    }

    /// What was passed over in a shard, if it is wanted now.
    fn kept(&self, shard: usize, offset: u64, length: usize) -> Option<Bytes> {
        let held = self.held.lock();
        held.idle.iter().filter(|(of, _)| *of == shard).find_map(|(_, cursor)| cursor.kept(offset, length))
    }

    /// The place nearest before `offset` of a shard, if there is one.
    fn take(&self, shard: usize, offset: u64) -> Lease {
        let mut held = self.held.lock();
        let before = held.idle.iter().enumerate().filter(|(_, (of, cursor))| *of == shard && cursor.position <= offset);
        let nearest = before.max_by_key(|(_, (_, cursor))| cursor.position).map(|(number, _)| number);
        let cursor = nearest.and_then(|number| held.idle.remove(number)).map(|(_, cursor)| cursor);
        let own_bytes = cursor.as_ref().map_or(held.piece_bytes() + NEW_BYTES, Cursor::bytes);
        let passed = offset - cursor.as_ref().map_or(0, |cursor| cursor.position);
        let wanted = if passed <= KEPT_BYTES_MAX { passed } else { 0 };
        held.forget_kept(own_bytes + wanted);
        let keep_bytes = if held.bytes() + own_bytes + wanted <= held.bytes_max { wanted } else { 0 };
        let counted_bytes = own_bytes + keep_bytes;
        held.busy += 1;
        held.busy_bytes += counted_bytes;
        held.shrink();
        Lease { cursor, counted_bytes, keep_bytes }
    }

    /// Gives back what was counted, and the place if it is still good.
    fn put(&self, shard: usize, counted_bytes: u64, cursor: Option<Cursor>) {
        let mut held = self.held.lock();
        held.busy -= 1;
        held.busy_bytes -= counted_bytes;
        held.idle.extend(cursor.map(|cursor| (shard, cursor)));
        held.shrink();
    }
}

impl Held {
    fn piece_bytes(&self) -> u64 {
        (self.bytes_max / PIECES).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX)
    }

    fn bytes(&self) -> u64 {
        self.busy_bytes + self.idle.iter().map(|(_, cursor)| cursor.bytes()).sum::<u64>()
    }

    /// Drops what was passed over, of those places first that were not used for the longest time, until there is space for `wanted`.
    fn forget_kept(&mut self, wanted: u64) {
        let mut bytes = self.bytes() + wanted;
        for (_, cursor) in &mut self.idle {
            if bytes <= self.bytes_max {
                return;
            }
            bytes -= cursor.kept_bytes();
            cursor.kept.clear();
        }
    }

    fn shrink(&mut self) {
        self.forget_kept(0);
        let are_many = |held: &Self| held.idle.len() + held.busy > 1 && held.bytes() > held.bytes_max;
        while self.idle.len() > CURSORS_MAX || !self.idle.is_empty() && are_many(self) {
            self.idle.pop_front();
        }
        self.bytes_peak = self.bytes_peak.max(self.bytes());
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
        let Lease { cursor, counted_bytes, keep_bytes } = self.cursors.take(self.number, offset);
        let read = cursor.map_or_else(|| self.cursor(), Ok).and_then(|mut cursor| {
            let read = cursor.read(offset, length, keep_bytes, &self.cursors.buffers).map_err(|error| {
                let error = self.failed(error);
                if let Error::Format { problem, .. } = &error {
                    *fault = Some((cursor.position, problem.clone()));
                }
                error
            });
            read.map(|bytes| (cursor, bytes))
        });
        let (cursor, bytes) = match read {
            Ok((cursor, bytes)) => (Some(cursor), Ok(bytes)),
            Err(error) => (None, Err(error)),
        };
        self.cursors.put(self.number, counted_bytes, cursor);
        bytes
    }

    /// A place at the start of the shard.
    fn cursor(&self) -> Result<Cursor> {
        let piece_bytes = self.cursors.piece_bytes();
        let stream = inflating(&self.file, self.compression, piece_bytes).map_err(|error| self.failed(error))?;
        Ok(Cursor { stream, position: 0, piece_bytes, kept: VecDeque::new() })
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

    /// What it holds in memory.
    fn bytes(&self) -> u64 {
        self.piece_bytes + self.stream.memory_bytes() + self.kept_bytes()
    }

    /// Reads on to `offset`, and what is wanted there. What is passed over on the way is kept, if it has no more than `keep_bytes`.
    fn read(&mut self, offset: u64, length: usize, keep_bytes: u64, buffers: &BufferPool) -> io::Result<Bytes> {
        let passed = offset - self.position;
        if passed > keep_bytes {
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
            let kept = (self.position, self.take(passed as usize, buffers)?);
            self.kept.push_back(kept);
        }
        while self.kept_bytes() > KEPT_BYTES_MAX {
            self.kept.pop_front();
        }
        self.take(length, buffers)
    }

    /// The next bytes, in memory of `buffers`.
    fn take(&mut self, length: usize, buffers: &BufferPool) -> io::Result<Bytes> {
        let mut bytes = buffers.take(length, 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut filled = 0;
        while filled < length {
            match self.stream.read(&mut bytes.as_mut_slice()[filled..length])? {
                0 => return Err(ended()),
                count => {
                    filled += count;
                    self.position += count as u64;
                }
            }
        }
        Ok(bytes.into_bytes(0..length))
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use forebay_record::ShardCompressor;
    use forebay_storage::MemoryStorage;

    use super::*;
    use crate::sync::modeled;

    fn stored(content: &[u8], name: &str) -> MemoryStorage {
        let mut compressor = ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap();
        compressor.write_all(content).unwrap();
        let (shard, _) = compressor.finish().unwrap();
        let storage = MemoryStorage::new();
        let mut upload = storage.create(Path::new("shard")).unwrap();
        upload.write_all(&shard).unwrap();
        upload.commit().unwrap();
        storage
    }

    fn opened(storage: &MemoryStorage, count: usize, compression: Compression) -> (Vec<InflatedShard>, Arc<Cursors>) {
        let cursors = Arc::new(Cursors::default());
        let path = Path::new("shard");
        let open = |number| InflatedShard::open(storage, (number, path), compression, &cursors).unwrap();
        ((0..count).map(open).collect(), cursors)
    }

    /// More shards than there are cursors: all are read right, also from the start again, and what they hold stays bounded.
    #[test]
    fn many_shards_hold_no_more_than_few() {
        modeled(|| {
            let content: Vec<u8> = (0..100_000_u32).map(|number| (number / 7) as u8).collect();
            let storage = stored(&content, "gzip-1-stream");
            let (shards, cursors) = opened(&storage, 2 * CURSORS_MAX, Compression::Gzip);
            for offset in [90_000, 0, 50_000] {
                for shard in &shards {
                    assert_eq!(shard.read(offset, 10_000).unwrap(), content[offset as usize..][..10_000]);
                }
                assert!(cursors.held.lock().idle.len() <= CURSORS_MAX);
                assert!(cursors.bytes().0 <= BYTES_MAX, "{:?}", cursors.bytes());
            }
        });
    }

    /// However little memory there is, what is read is right, and no more is held than there is, but for the place that is being read at.
    #[test]
    fn places_stay_within_their_share_of_the_memory() {
        modeled(|| {
            let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number / 5) as u8).collect();
            for (name, compression) in [
                ("gzip-1-stream", Compression::Gzip),
                ("zstd-1-stream", Compression::Zstd),
                ("lz4-stream", Compression::Lz4),
                ("snappy-stream", Compression::Snappy),
            ] {
                let storage = stored(&content, name);
                for bytes_max in [1, 1 << 20, 6 << 20, 64 << 20] {
                    let (shards, cursors) = opened(&storage, 6, compression);
                    cursors.limit(bytes_max);
                    // One place by itself.
                    shards[0].read(0, 1000).unwrap();
                    let one = cursors.bytes().1;
                    for offset in [500_000, 200_000, 2_900_000] {
                        for shard in &shards {
                            assert_eq!(shard.read(offset, 70_000).unwrap(), content[offset as usize..][..70_000]);
                        }
                    }
                    let (peak, now) = cursors.bytes();
                    assert!(peak <= bytes_max.max(one) && now <= peak, "{name}: {peak} of {bytes_max}, one has {one}");
                    let all = cursors.held.lock().idle.len();
                    assert!(bytes_max < 64 << 20 || all >= 6, "{name}: with memory for all, all are kept: {all}");
                }
            }
        });
    }
}
