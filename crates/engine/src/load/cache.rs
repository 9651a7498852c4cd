//! The cache: samples kept in memory from one epoch to the next, after the steps that always give the same.
//!
//! It never evicts. An epoch uses every sample once, in another order each time, so whatever was kept last is the least
//! likely to be wanted soon: an LRU cache smaller than the data set hits next to nothing, while one that keeps what it has
//! hits in proportion to its size (`MinIO`, inventory §4).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::RwLock;
use forebay_pipeline::Sample;

/// Samples kept in memory. Shared by the epochs of one loader.
#[derive(Debug)]
pub struct Cache {
    limit_bytes: u64,
    bytes: AtomicU64,
    hits: AtomicU64,
    samples: RwLock<HashMap<u64, Arc<Sample>>>,
}

impl Cache {
    /// A cache of up to `limit_bytes` of samples.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, bytes: AtomicU64::new(0), hits: AtomicU64::new(0), samples: RwLock::new(HashMap::new()) }
    }

    /// Sample number `number` of the source, if it is kept.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Sample>> {
        let found = self.samples.read().get(&number).cloned();
        self.hits.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Whether there is room for another `bytes`, which are then taken.
    pub(super) fn reserve(&self, bytes: u64) -> bool {
        let room = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.limit_bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    /// Keeps sample number `number`, which room was reserved for.
    pub(super) fn keep(&self, number: u64, sample: Sample) {
        let replaced = self.samples.write().insert(number, Arc::new(sample));
        // One that came twice at once, where ranks are made even, is kept once.
        self.bytes.fetch_sub(replaced.map_or(0, |sample| sample.bytes() as u64), Ordering::Relaxed);
    }

    /// How many samples are kept.
    pub fn len(&self) -> usize {
        self.samples.read().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they have.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often a sample was found here.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}
