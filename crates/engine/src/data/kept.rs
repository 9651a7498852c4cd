//! What was read of far shards while they were listed, for the first epoch: so that no byte of it comes over the network twice.
//!
//! Where the samples of a tar lie is only known once its headers were read, and where samples are small that means all of it. What was read so is kept,
//! as far as there is memory for it, until the loader asks for it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_storage::{File, Version};

use crate::sync::Mutex;

/// Pieces of shards. May be shared by threads.
#[derive(Default)]
pub(crate) struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    shards: HashMap<PathBuf, BTreeMap<u64, Piece>>,
    bytes: u64,
    bytes_max: u64,
    bytes_peak: u64,
}

struct Piece {
    bytes: Bytes,
    /// How much of it was not given yet.
    left: usize,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Kept").field("bytes", &self.bytes().1).finish_non_exhaustive()
    }
}

impl Kept {
    /// Keeps up to so many bytes.
    pub(super) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { bytes_max, ..State::default() })))
    }

    fn keep(&self, shard: &Path, offset: u64, bytes: &Bytes) {
        let mut state = self.0.lock();
        if state.bytes + bytes.len() as u64 > state.bytes_max {
            return;
        }
        let pieces = state.shards.entry(shard.to_owned()).or_default();
        let before = pieces.insert(offset, Piece { bytes: bytes.clone(), left: bytes.len() });
        state.bytes = state.bytes + bytes.len() as u64 - before.map_or(0, |piece| piece.bytes.len() as u64);
        state.bytes_peak = state.bytes_peak.max(state.bytes);
    }

    /// What is kept of `range` of a shard; nothing unless all of it is. What was given once need not be kept.
    pub(super) fn take(&self, shard: &Path, range: Range<u64>) -> Option<Bytes> {
        let mut state = self.0.lock();
        let pieces = state.shards.get_mut(shard)?;
        let first = pieces.range(..=range.start).next_back().map_or(range.start, |(start, _)| *start);
        let (mut parts, mut reached, mut done) = (Vec::new(), range.start, Vec::new());
        for (&start, piece) in pieces.range_mut(first..range.end) {
            let end = start + piece.bytes.len() as u64;
            let overlap = range.start.max(start)..range.end.min(end);
            if overlap.is_empty() {
                continue;
            }
            let part = piece.bytes.slice((overlap.start - start) as usize..(overlap.end - start) as usize);
            piece.left = piece.left.saturating_sub(part.len());
            if piece.left == 0 {
                done.push(start);
            }
            if overlap.start == reached {
                reached = overlap.end;
                parts.push(part);
            }
        }
        let freed: u64 =
            done.iter().filter_map(|start| pieces.remove(start)).map(|piece| piece.bytes.len() as u64).sum();
        state.bytes -= freed;
        drop(state);
        if reached < range.end {
            return None;
        }
        if let [part] = &mut parts[..] {
            return Some(std::mem::take(part));
        }
        let mut all = BytesMut::with_capacity((range.end - range.start) as usize);
        for part in &parts {
            all.extend_from_slice(part);
        }
        Some(all.freeze())
    }

    /// Forgets as much as is more than `bytes_max`; whether anything is left.
    pub(super) fn limit(&self, bytes_max: u64) -> bool {
        let mut state = self.0.lock();
        while state.bytes > bytes_max {
            let Some(shard) = state.shards.keys().next().cloned() else { break };
            let last = state.shards.get_mut(&shard).and_then(BTreeMap::pop_last);
            match last {
                Some((_, piece)) => state.bytes -= piece.bytes.len() as u64,
                None => _ = state.shards.remove(&shard),
            }
        }
        state.bytes_max = bytes_max;
        state.bytes > 0
    }

    /// How many bytes were kept at most, and are now.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.bytes_peak, state.bytes)
    }
}

/// A file of which everything that is read is kept.
pub(super) struct KeepingFile {
    file: Box<dyn File>,
    path: PathBuf,
    kept: Arc<Kept>,
}

impl KeepingFile {
    pub(super) fn new(file: Box<dyn File>, path: &Path, kept: Arc<Kept>) -> Self {
        Self { file, path: path.to_owned(), kept }
    }
}

impl File for KeepingFile {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> forebay_storage::Result<Bytes> {
        let bytes = self.file.read(offset, length)?;
        self.kept.keep(&self.path, offset, &bytes);
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

    fn kept(bytes_max: u64, pieces: &[(u64, &'static [u8])]) -> Arc<Kept> {
        let kept = Kept::new(bytes_max);
        for (offset, bytes) in pieces {
            kept.keep(Path::new("a"), *offset, &Bytes::from_static(bytes));
        }
        kept
    }

    #[test]
    fn what_is_whole_is_given_once() {
        modeled(|| {
            let kept = kept(100, &[(0, b"0123"), (4, b"4567"), (12, b"cdef")]);
            let take = |range| kept.take(Path::new("a"), range);
            assert_eq!(take(2..6).as_deref(), Some(&b"2345"[..]));
            assert_eq!(take(6..14), None, "there is a hole");
            assert_eq!(kept.take(Path::new("b"), 0..1), None);
            assert_eq!(take(0..2).as_deref(), Some(&b"01"[..]));
            // Of the second nothing is left to be given, of the third half.
            assert_eq!(kept.bytes(), (12, 4));
            assert_eq!(take(14..16).as_deref(), Some(&b"ef"[..]));
            assert_eq!((kept.bytes().1, take(14..16)), (0, None));
        });
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        modeled(|| {
            let kept = kept(9, &[(0, b"0123"), (4, b"4567"), (8, b"89ab")]);
            assert_eq!(kept.bytes(), (8, 8));
            assert!(kept.limit(5));
            assert_eq!(kept.bytes().1, 4);
            assert!(!kept.limit(0));
        });
    }
}
