//! The places that compressed shards are being read at, and the memory that these take together.

use std::collections::VecDeque;
use std::io::{self, Read};

use bytes::Bytes;
use forebay_record::InflateReader;
use forebay_storage::BufferPool;

use super::{FileStream, STEP_BYTES};
use crate::sync::Mutex;

/// What is read at once of a compressed shard: so much, or less where there is little memory.
pub(super) const PIECE_BYTES_MAX: u64 = 1 << 20;
const PIECE_BYTES_MIN: u64 = 64 << 10;
/// So many pieces fit into the memory that there is.
const PIECES: u64 = 64;

/// So many places are read at once in all shards of a source: some for each stream of the sampler, however many shards there are.
pub(super) const CURSORS_MAX: usize = 128;

/// What was passed over is kept for those who come a moment later: readers are several, and do not come in order. So much before what was read last.
const KEPT_BYTES_MAX: u64 = 16 << 20;

/// What a place takes besides the piece that is read at once, before it is known: windows of Zstandard may be larger.
const NEW_BYTES: u64 = 128 << 10;

/// What is kept of the memory that was inflated into, for those who inflate next.
const IDLE_BYTES_MAX: usize = 32 << 20;

/// What all places may hold in memory, unless a budget says something else.
pub(super) const BYTES_MAX: u64 = 64 << 20;

/// What is inflated ahead at once: a reader whose turn comes meanwhile is late by no more.
const AHEAD_STEP_BYTES: u64 = 256 << 10;

/// So much is inflated ahead in all shards, and no more than half of what there is: the other half is for what is read now.
const AHEAD_BYTES_MAX: u64 = 256 << 20;

/// So many shards after the one that is being read are begun. More readers than this seldom wait for one.
const SHARDS_AHEAD: usize = 8;

/// The places that the shards of a source are being read at. What they hold stays within a limit, which is a share of a memory budget: what was
/// passed over goes first, then the places that were not used for the longest time. A shard whose place is gone is inflated from its start again.
pub(in crate::data) struct Cursors {
    pub(super) held: Mutex<Held>,
    /// What is inflated goes there.
    buffers: BufferPool,
}

pub(super) struct Held {
    /// Those that nobody reads at now, each with the number of its shard; the one that was used last is at the end.
    pub(super) idle: VecDeque<(usize, Cursor)>,
    /// How many are being read at, and what those may hold.
    busy: usize,
    busy_bytes: u64,
    bytes_max: u64,
    bytes_peak: u64,
    /// The most that a place took without what was kept there, once it was read at.
    place_bytes: Option<u64>,
    /// Whether shards are read one after the other, so that it is known which comes next.
    in_order: bool,
}

/// A place in a stream.
pub(super) struct Cursor {
    stream: Inflating,
    position: u64,
    /// What is read at once.
    piece_bytes: u64,
    /// What was inflated and not taken: it was passed over, or is ahead.
    kept: VecDeque<PassedBytes>,
    /// Whether the stream ended there.
    ended: bool,
}

/// A part of what a shard inflates to.
struct PassedBytes {
    start: u64,
    bytes: Bytes,
    /// How many of them nobody took yet.
    left: usize,
}

/// What was kept of a read, in parts that follow each other.
pub(super) struct Parts(Vec<Bytes>);

/// A place that is being read at: what it was counted with, and how much of what is passed over may be kept.
pub(super) struct Lease {
    pub(super) cursor: Option<Cursor>,
    pub(super) counted_bytes: u64,
    pub(super) keep_bytes: u64,
}

pub(super) type Inflating = InflateReader<FileStream>;

impl Default for Cursors {
    fn default() -> Self {
        let held = Held {
            idle: VecDeque::new(),
            busy: 0,
            busy_bytes: 0,
            bytes_max: BYTES_MAX,
            bytes_peak: 0,
            place_bytes: None,
            in_order: false,
        };
        Self { held: Mutex::new(held), buffers: BufferPool::with_idle_limit(IDLE_BYTES_MAX) }
    }
}

impl Cursors {
    /// From now on they hold no more than `bytes_max`. Where a place takes more by itself, there are no others than those that are being read at.
    /// Whether shards are read `in_order` says whether there is something to be read ahead.
    pub(in crate::data) fn limit(&self, bytes_max: u64, in_order: bool) {
        let mut held = self.held.lock();
        (held.bytes_max, held.in_order) = (bytes_max, in_order);
        held.shrink();
    }

    /// How many bytes they held at most, and do now.
    pub(in crate::data) fn bytes(&self) -> (u64, u64) {
        let held = self.held.lock();
        (held.bytes_peak, held.bytes())
    }

    /// How many shards after one may be read ahead.
    pub(in crate::data) fn shards_ahead(&self) -> usize {
        if self.held.lock().in_order { SHARDS_AHEAD } else { 0 }
    }

    pub(super) fn buffers(&self) -> &BufferPool {
        &self.buffers
    }

    /// What is read at once of a shard.
    pub(super) fn piece_bytes(&self) -> u64 {
        self.held.lock().piece_bytes()
    }

    /// What was kept of a shard, if all that is wanted was.
    pub(super) fn kept(&self, shard: usize, offset: u64, length: usize) -> Option<Parts> {
        let mut held = self.held.lock();
        let of_shard = held.idle.iter_mut().filter(|(of, _)| *of == shard);
        let end = offset + length as u64;
        let cursor = of_shard.map(|(_, cursor)| cursor).find(|cursor| cursor.kept_until(offset) >= Some(end))?;
        let parts = cursor.take_kept(offset, end);
        held.forget_ended();
        Some(parts)
    }

    /// The place from which `offset` of a shard is nearest, if there is one.
    pub(super) fn take(&self, shard: usize, offset: u64) -> Lease {
        let mut held = self.held.lock();
        let reaches = |cursor: &Cursor| cursor.position <= offset || cursor.kept_until(offset) == Some(cursor.position);
        let reaching = held.idle.iter().enumerate().filter(|(_, (of, cursor))| *of == shard && reaches(cursor));
        let nearest = reaching.max_by_key(|(_, (_, cursor))| cursor.position).map(|(number, _)| number);
        let cursor = nearest.and_then(|number| held.idle.remove(number)).map(|(_, cursor)| cursor);
        let own_bytes = held.own_bytes(cursor.as_ref());
        let passed = offset.saturating_sub(cursor.as_ref().map_or(0, |cursor| cursor.position));
        let wanted = if passed <= KEPT_BYTES_MAX { passed } else { 0 };
        held.forget_kept(own_bytes + wanted);
        let keep_bytes = if held.bytes() + own_bytes + wanted <= held.bytes_max { wanted } else { 0 };
        held.lease(cursor, own_bytes + keep_bytes, keep_bytes)
    }

    /// The place at which a shard is to be read ahead, new where there is none; `None` where there is no memory, or nothing ahead. What a place takes
    /// is known once there was one.
    pub(super) fn take_ahead(&self, shard: usize) -> Option<Lease> {
        let mut held = self.held.lock();
        let of_shard = || held.idle.iter().enumerate().filter(|(_, (of, _))| *of == shard);
        if of_shard().any(|(_, (_, cursor))| cursor.ended) {
            return None;
        }
        let furthest = of_shard().max_by_key(|(_, (_, cursor))| cursor.position).map(|(number, _)| number);
        let taken = furthest.map_or(0, |number| held.idle[number].1.bytes());
        let own_bytes = if furthest.is_some() { taken } else { held.place_bytes? };
        let (all, limit) = (held.bytes() - taken + own_bytes + AHEAD_STEP_BYTES, held.bytes_max / 2);
        if all > limit.min(AHEAD_BYTES_MAX) || held.idle.len() + held.busy >= CURSORS_MAX {
            return None;
        }
        let cursor = furthest.and_then(|number| held.idle.remove(number)).map(|(_, cursor)| cursor);
        Some(held.lease(cursor, own_bytes + AHEAD_STEP_BYTES, AHEAD_STEP_BYTES))
    }

    /// Gives back what was counted, and the place if it is still good.
    pub(super) fn put(&self, shard: usize, counted_bytes: u64, cursor: Option<Cursor>) {
        let mut held = self.held.lock();
        held.busy -= 1;
        held.busy_bytes -= counted_bytes;
        let own_bytes = cursor.as_ref().map(|cursor| cursor.bytes() - cursor.kept_bytes());
        held.place_bytes = held.place_bytes.max(own_bytes);
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

    /// What a place holds, or a new one should.
    fn own_bytes(&self, cursor: Option<&Cursor>) -> u64 {
        cursor.map_or(self.piece_bytes() + NEW_BYTES, Cursor::bytes)
    }

    fn lease(&mut self, cursor: Option<Cursor>, counted_bytes: u64, keep_bytes: u64) -> Lease {
        self.busy += 1;
        self.busy_bytes += counted_bytes;
        self.shrink();
        Lease { cursor, counted_bytes, keep_bytes }
    }

    /// Drops what was kept, at those places first that were not used for the longest time, until there is space for `wanted`.
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

    /// Drops the places from which nothing more comes.
    fn forget_ended(&mut self) {
        self.idle.retain(|(_, cursor)| !cursor.ended || !cursor.kept.is_empty());
    }

    fn shrink(&mut self) {
        self.forget_kept(0);
        self.forget_ended();
        let are_many = |held: &Self| held.idle.len() + held.busy > 1 && held.bytes() > held.bytes_max;
        while self.idle.len() > CURSORS_MAX || !self.idle.is_empty() && are_many(self) {
            self.idle.pop_front();
        }
        self.bytes_peak = self.bytes_peak.max(self.bytes());
    }
}

impl Cursor {
    /// A place at the start of a stream that is read in such pieces.
    pub(super) fn new(stream: Inflating, piece_bytes: u64) -> Self {
        Self { stream, position: 0, piece_bytes, kept: VecDeque::new(), ended: false }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Up to where everything was kept from `offset` on; `None` if not even that was.
    fn kept_until(&self, offset: u64) -> Option<u64> {
        let mut end = None;
        for kept in &self.kept {
            let is_next = end.map_or(kept.start <= offset && offset < kept.end(), |end| end == kept.start);
            end = if is_next { Some(kept.end()) } else { end };
        }
        end
    }

    /// Takes what was kept from `offset` to `end`. What all was taken of is let go, and what lies far before it.
    fn take_kept(&mut self, offset: u64, end: u64) -> Parts {
        let mut parts = Vec::new();
        for kept in &mut self.kept {
            let (from, to) = (offset.max(kept.start), end.min(kept.end()));
            if from < to {
                parts.push(kept.bytes.slice((from - kept.start) as usize..(to - kept.start) as usize));
                kept.left = kept.left.saturating_sub((to - from) as usize);
            }
        }
        self.kept.retain(|kept| kept.left > 0 && kept.end().saturating_add(KEPT_BYTES_MAX) > offset);
        Parts(parts)
    }

    fn kept_bytes(&self) -> u64 {
        self.kept.iter().map(|kept| kept.bytes.len() as u64).sum()
    }

    fn keep(&mut self, start: u64, bytes: Bytes) {
        self.kept.push_back(PassedBytes { start, left: bytes.len(), bytes });
    }

    /// What it holds in memory.
    fn bytes(&self) -> u64 {
        self.piece_bytes + self.stream.memory_bytes() + self.kept_bytes()
    }

    /// Reads on to `offset`, and what is wanted there, whose first part may have been kept. What is passed over on the way is kept, if it has no more
    /// than `keep_bytes`.
    pub(super) fn read(
        &mut self,
        offset: u64,
        length: usize,
        keep_bytes: u64,
        buffers: &BufferPool,
    ) -> io::Result<Bytes> {
        let passed = offset.saturating_sub(self.position);
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
            let (start, bytes) = (self.position, self.inflate(&Parts(Vec::new()), passed as usize, buffers)?);
            self.keep(start, bytes);
        }
        let end = self.position.min(offset + length as u64);
        let head = self.take_kept(offset, end);
        self.inflate(&head, length, buffers)
    }

    /// Inflates some more, and keeps it.
    pub(super) fn read_ahead(&mut self, buffers: &BufferPool) -> io::Result<()> {
        let mut bytes = buffers.take(AHEAD_STEP_BYTES as usize, 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let filled = self.fill(&mut bytes.as_mut_slice()[..AHEAD_STEP_BYTES as usize])?;
        self.ended = filled < AHEAD_STEP_BYTES as usize;
        if filled > 0 {
            self.keep(self.position - filled as u64, bytes.into_bytes(0..filled));
        }
        Ok(())
    }

    /// `length` bytes in memory of `buffers`: `head`, and what the stream gives next.
    fn inflate(&mut self, head: &Parts, length: usize, buffers: &BufferPool) -> io::Result<Bytes> {
        let mut bytes = buffers.take(length, 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let rest = head.copy(&mut bytes.as_mut_slice()[..length]);
        if self.fill(&mut bytes.as_mut_slice()[rest..length])? < length - rest {
            return Err(ended());
        }
        Ok(bytes.into_bytes(0..length))
    }

    /// Reads on until `into` is full or the stream ends; how many bytes came.
    fn fill(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            match self.stream.read(&mut into[filled..])? {
                0 => break,
                count => {
                    filled += count;
                    self.position += count as u64;
                }
            }
        }
        Ok(filled)
    }
}

impl PassedBytes {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl Parts {
    /// All of them together, `length` bytes: in memory of `buffers`, where they are several.
    pub(super) fn joined(self, length: usize, buffers: &BufferPool) -> io::Result<Bytes> {
        if let [whole] = &self.0[..] {
            return Ok(whole.clone());
        }
        let mut bytes = buffers.take(length, 1).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.copy(&mut bytes.as_mut_slice()[..length]);
        Ok(bytes.into_bytes(0..length))
    }

    /// Copies them; how many bytes these are.
    fn copy(&self, into: &mut [u8]) -> usize {
        let mut copied = 0;
        for part in &self.0 {
            into[copied..copied + part.len()].copy_from_slice(part);
            copied += part.len();
        }
        copied
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before its samples do")
}
