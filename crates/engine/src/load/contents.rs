//! The cache of samples as they are stored: bytes that were read, kept for the epochs that follow.
//!
//! It decides nothing. Which samples are kept, and until when, is said by the order of the epoch ([`super::liquid`]) or by a set that never
//! changes ([`super::sampler::Fixed`]); here they are counted, and no more is held than may be. What finds no space is read again when it is wanted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_plan::STORED_ENTRY_BYTES;

use crate::source::Content;
use crate::sync::RwLock;

/// Samples as they are stored. Shared by the epochs of one loader.
#[derive(Debug)]
pub(super) struct Contents {
    limit_bytes: u64,
    bytes: AtomicU64,
    bytes_peak: AtomicU64,
    hits: AtomicU64,
    kept: RwLock<HashMap<u64, Content>>,
}

impl Contents {
    pub(super) fn new(limit_bytes: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self { limit_bytes, bytes: zero(), bytes_peak: zero(), hits: zero(), kept: RwLock::new(HashMap::new()) }
    }

    /// Sample number `number` of the source, if it is kept.
    pub(super) fn get(&self, number: u64) -> Option<Content> {
        let found = self.kept.read().get(&number).cloned();
        self.hits.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Says what becomes of sample number `number` once it was used: it stays or comes here, or it goes.
    pub(super) fn settle(&self, number: u64, content: &Content, keep: bool) {
        if !keep {
            let removed = self.kept.write().remove(&number);
            self.bytes.fetch_sub(removed.as_ref().map_or(0, footprint), Ordering::Relaxed);
            return;
        }
        if self.kept.read().contains_key(&number) || !self.reserve(footprint(content)) {
            return;
        }
        // A copy: what was read is a part of its block, which would stay in memory with it. Without memory for it there is no space.
        let replaced = match content.copied() {
            Ok(copy) => self.kept.write().insert(number, copy).as_ref().map_or(0, footprint),
            Err(_) => footprint(content),
        };
        self.bytes.fetch_sub(replaced, Ordering::Relaxed);
    }

    /// Whether there is space for another `bytes`, which are then taken.
    fn reserve(&self, bytes: u64) -> bool {
        let space = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.limit_bytes);
        let before = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, space);
        before.is_ok_and(|before| {
            self.bytes_peak.fetch_max(before + bytes, Ordering::Relaxed);
            true
        })
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    pub(super) fn len(&self) -> usize {
        self.kept.read().len()
    }

    /// How many bytes these have themselves.
    pub(super) fn bytes(&self) -> u64 {
        let kept = self.kept.read();
        self.bytes.load(Ordering::Relaxed).saturating_sub(kept.len() as u64 * STORED_ENTRY_BYTES)
    }

    /// The most that it took.
    #[cfg(test)]
    pub(super) fn bytes_peak(&self) -> u64 {
        self.bytes_peak.load(Ordering::Relaxed)
    }

    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

/// What a sample takes here.
fn footprint(content: &Content) -> u64 {
    content.bytes() + STORED_ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::modeled;

    #[test]
    fn no_more_is_held_than_may_be() {
        modeled(|| {
            let content = |bytes: usize| Content::from(bytes::Bytes::from(vec![7; bytes]));
            let limit = 100 + 2 * STORED_ENTRY_BYTES;
            let contents = Contents::new(limit);
            contents.settle(1, &content(60), true);
            contents.settle(1, &content(60), true);
            contents.settle(2, &content(60), true);
            contents.settle(3, &content(40), true);
            assert_eq!((contents.len(), contents.bytes(), contents.limit_bytes()), (2, 100, limit));
            assert!(contents.get(1).is_some() && contents.get(2).is_none());
            contents.settle(1, &content(60), false);
            contents.settle(2, &content(60), false);
            assert_eq!((contents.len(), contents.bytes(), contents.bytes_peak(), contents.hits()), (1, 40, limit, 1));
        });
    }
}
