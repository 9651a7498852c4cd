//! What was read of far shards while they were listed, for the first epoch: so that no byte of it comes over the network twice.
//!
//! Where the samples of a tar lie is only known once its headers were read, and where samples are small that means all of it. What was read so is kept,
//! as far as there is memory for it, until the loader asks for it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_storage::{File, Version};

use crate::error::Result;
use crate::sync::Mutex;

/// Pieces of shards. May be shared by threads.
///
/// Where there is no memory for all, the first of the listing are kept: whoever reads in order has time to read the others ahead. One who shuffles needs
/// them in an order that nobody knows while they are listed, and any of them are as good.
#[derive(Default)]
pub(crate) struct ReadCache(Mutex<State>);

#[derive(Default)]
struct State {
    /// By the number of the shard in the listing, and where they begin. Those of one shard may overlap where something was read twice.
    pieces: BTreeMap<(usize, u64), Piece>,
    /// Which version of each shard was read.
    versions: BTreeMap<usize, Option<Version>>,
    bytes: u64,
    bytes_max: u64,
    bytes_peak: u64,
}

struct Piece {
    bytes: Bytes,
    /// How much of it was not given yet.
    left: usize,
}

impl State {
    fn remove(&mut self, place: (usize, u64)) {
        if let Some(piece) = self.pieces.remove(&place) {
            self.bytes -= piece.bytes.len() as u64;
        }
    }
}

impl std::fmt::Debug for ReadCache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ReadCache").field("bytes", &self.bytes().1).finish_non_exhaustive()
    }
}

impl ReadCache {
    /// Keeps up to so many bytes.
    pub(super) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { bytes_max, ..State::default() })))
    }

    /// Keeps a piece, in the place of such as are needed later if there is no space for both.
    fn keep(&self, shard: usize, offset: u64, bytes: &Bytes) {
        let (mut state, place, length) = (self.0.lock(), (shard, offset), bytes.len() as u64);
        if length == 0 || length > state.bytes_max {
            return;
        }
        state.remove(place);
        while state.bytes + length > state.bytes_max {
            match state.pieces.last_key_value().map(|(last, _)| *last) {
                Some(last) if last > place => state.remove(last),
                _ => return,
            }
        }
        state.pieces.insert(place, Piece { bytes: bytes.clone(), left: bytes.len() });
        state.bytes += length;
        state.bytes_peak = state.bytes_peak.max(state.bytes);
    }

    /// Whether what was read of a shard is of this version. A block must not be put together of two.
    pub(super) fn is_of(&self, shard: usize, version: Option<Version>) -> bool {
        self.0.lock().versions.get(&shard).is_none_or(|read| *read == version)
    }

    /// The bytes of `range` of a shard: what is kept of its beginning and of its end, and what `read` gives of the rest, if there is any. What was given
    /// once need not be kept.
    pub(super) fn complete(
        &self,
        shard: usize,
        range: Range<u64>,
        read: impl FnOnce(Range<u64>) -> Result<Bytes>,
    ) -> Result<Bytes> {
        let (mut parts, back) = self.take(shard, &range);
        let length = |parts: &[Bytes]| parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let missing = range.start + length(&parts)..range.end - length(&back);
        if !missing.is_empty() {
            parts.push(read(missing)?);
        }
        parts.extend(back);
        if let [part] = &mut parts[..] {
            return Ok(std::mem::take(part));
        }
        let mut all = BytesMut::with_capacity((range.end - range.start) as usize);
        for part in &parts {
            all.extend_from_slice(part);
        }
        Ok(all.freeze())
    }

    /// The parts of `range` that are kept: those from its beginning on up to the first hole, and those from the last hole on to its end.
    fn take(&self, shard: usize, range: &Range<u64>) -> (Vec<Bytes>, Vec<Bytes>) {
        let mut state = self.0.lock();
        let before = state.pieces.range(..=(shard, range.start)).next_back().map(|(place, _)| *place);
        let first = before.filter(|(of, _)| *of == shard).unwrap_or((shard, range.start));
        let (mut front, mut back, mut done) = (Vec::new(), Vec::new(), Vec::new());
        let (mut front_end, mut back_end) = (range.start, range.start);
        for (&(_, start), piece) in state.pieces.range_mut(first..(shard, range.end)) {
            let overlap = range.start.max(start)..range.end.min(start + piece.bytes.len() as u64);
            if overlap.is_empty() {
                continue;
            }
            // What lies between two holes is read with them, and not wanted any more, either.
            piece.left = piece.left.saturating_sub((overlap.end - overlap.start) as usize);
            if piece.left == 0 {
                done.push(start);
            }
            if overlap.end <= front_end || overlap.end <= back_end {
                continue;
            }
            let slice = |from: u64| piece.bytes.slice((from - start) as usize..(overlap.end - start) as usize);
            if back.is_empty() && overlap.start <= front_end {
                front.push(slice(front_end));
                front_end = overlap.end;
            } else if !back.is_empty() && overlap.start <= back_end {
                back.push(slice(back_end));
                back_end = overlap.end;
            } else {
                back = vec![slice(overlap.start)];
                back_end = overlap.end;
            }
        }
        for start in done {
            state.remove((shard, start));
        }
        if back_end < range.end {
            back.clear();
        }
        (front, back)
    }

    /// Forgets what lies behind the last sample of a shard: nobody asks for it.
    pub(super) fn forget_behind(&self, shard: usize, end: u64) {
        let mut state = self.0.lock();
        let mut done = Vec::new();
        for (&(of, start), piece) in state.pieces.range_mut((shard, 0)..(shard + 1, 0)) {
            let behind = (start + piece.bytes.len() as u64).saturating_sub(start.max(end));
            piece.left = piece.left.saturating_sub(behind as usize);
            if piece.left == 0 {
                done.push((of, start));
            }
        }
        for key in done {
            state.remove(key);
        }
    }

    /// Forgets as much as is more than `bytes_max`, what is needed last first; how much is left.
    pub(super) fn limit(&self, bytes_max: u64) -> u64 {
        let mut state = self.0.lock();
        while state.bytes > bytes_max {
            let Some((&last, _)) = state.pieces.last_key_value() else { break };
            state.remove(last);
        }
        state.bytes_max = bytes_max;
        state.bytes_peak = state.bytes;
        state.bytes
    }

    /// How many bytes were kept at most since there was a [limit](Self::limit), and are now.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.bytes_peak, state.bytes)
    }
}

/// A file of which everything that is read is kept.
pub(super) struct KeepingFile {
    file: Box<dyn File>,
    shard: usize,
    kept: Arc<ReadCache>,
}

impl KeepingFile {
    /// Of shard number `shard`.
    pub(super) fn new(file: Box<dyn File>, shard: usize, kept: Arc<ReadCache>) -> Self {
        kept.0.lock().versions.insert(shard, file.version());
        Self { file, shard, kept }
    }
}

impl File for KeepingFile {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> forebay_storage::Result<Bytes> {
        let bytes = self.file.read(offset, length)?;
        self.kept.keep(self.shard, offset, &bytes);
        Ok(bytes)
    }

    fn version(&self) -> Option<Version> {
        self.file.version()
    }

    fn advise_sequential(&self) {
        self.file.advise_sequential();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::modeled;

    /// Of shard 1: its byte number `n` is `n`.
    fn kept(bytes_max: u64, pieces: &[Range<u64>]) -> Arc<ReadCache> {
        let kept = ReadCache::new(bytes_max);
        for piece in pieces {
            kept.keep(1, piece.start, &bytes_of(piece.clone()));
        }
        kept
    }

    fn bytes_of(range: Range<u64>) -> Bytes {
        range.map(|at| at as u8).collect::<Vec<_>>().into()
    }

    /// What is read beside what is kept of a range of which the bytes must come out right.
    fn read(kept: &ReadCache, range: Range<u64>) -> Option<Range<u64>> {
        let mut asked = None;
        let given = kept.complete(1, range.clone(), |missing| {
            asked = Some(missing.clone());
            Ok(bytes_of(missing))
        });
        assert_eq!(given.unwrap(), bytes_of(range));
        asked
    }

    #[test]
    fn what_is_whole_is_given_once() {
        modeled(|| {
            let kept = kept(100, &[0..4, 4..8, 12..16]);
            assert_eq!(read(&kept, 2..6), None);
            let other = kept.complete(0, 0..1, |missing| Ok(bytes_of(missing)));
            assert_eq!(other.unwrap(), bytes_of(0..1), "of another shard nothing is kept");
            assert_eq!(kept.bytes(), (12, 12));
            assert_eq!(read(&kept, 0..2), None);
            assert_eq!(kept.bytes().1, 8);
            assert_eq!(read(&kept, 0..4), Some(0..4));
        });
    }

    /// A hole costs what is missing, and what was not given is still there.
    #[test]
    fn holes_are_read_and_nothing_else() {
        modeled(|| {
            let pieces = kept(100, &[0..4, 4..8, 12..16]);
            assert_eq!(read(&pieces, 6..14), Some(8..12));
            // Of each of the two half was given.
            assert_eq!(pieces.bytes().1, 12);
            assert_eq!(read(&pieces, 14..16), None);
            assert_eq!((pieces.bytes().1, read(&pieces, 4..6), pieces.bytes().1), (8, None, 4));
            let holes = kept(100, &[0..4, 6..8, 10..16]);
            assert_eq!(read(&holes, 0..16), Some(4..10), "one request for both");
            assert_eq!(holes.bytes().1, 0);
            let within = kept(100, &[2..4, 20..24]);
            assert_eq!(read(&within, 0..8), Some(0..8));
        });
    }

    #[test]
    fn what_was_read_twice_is_given_once() {
        modeled(|| {
            let kept = kept(100, &[0..6, 0..4, 2..10, 8..12, 20..26, 24..30]);
            assert_eq!(read(&kept, 0..11), None);
            assert_eq!(read(&kept, 11..30), Some(12..20));
            assert_eq!(kept.bytes().1, 0);
        });
    }

    #[test]
    fn what_lies_behind_the_last_sample_is_forgotten() {
        modeled(|| {
            let kept = kept(100, &[0..4, 4..8, 8..12]);
            kept.keep(2, 0, &bytes_of(0..4));
            kept.forget_behind(1, 6);
            assert_eq!(kept.bytes().1, 12);
            assert_eq!(read(&kept, 0..6), None);
            assert_eq!(kept.bytes().1, 4, "another shard's");
        });
    }

    #[test]
    fn what_is_needed_last_makes_room() {
        modeled(|| {
            let kept = kept(9, &[0..4, 4..8, 8..12]);
            assert_eq!(kept.bytes(), (8, 8), "no space for the last");
            kept.keep(0, 0, &bytes_of(0..4));
            assert_eq!(kept.bytes(), (8, 8), "an earlier shard's is kept instead");
            assert_eq!(read(&kept, 0..8), Some(4..8));
            kept.keep(3, 0, &bytes_of(0..4));
            assert_eq!(kept.limit(7), 4);
            let earlier = kept.complete(0, 0..4, |_| unreachable!("the first is kept"));
            assert_eq!(earlier.unwrap(), bytes_of(0..4));
            kept.keep(1, 0, &bytes_of(0..7));
            assert_eq!((kept.limit(0), kept.bytes()), (0, (0, 0)));
        });
    }
}
