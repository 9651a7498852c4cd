//! The cache: samples kept in memory from one epoch to the next.
//!
//! It never evicts. An epoch uses every sample once, in another order each time, so whatever was kept last is the least
//! likely to be wanted soon: an LRU cache smaller than the data set hits next to nothing, while one that keeps what it has
//! hits in proportion to its size (`MinIO`).
//!
//! **What is kept.** The steps that always give the same can be done before a sample is kept, which saves their work too, or when it comes
//! back. But floats take four times what pixels do, and those ten times what a file does: a cache full of them would lack most samples. So the first
//! samples are tried out: how large they are as they are stored, and after each of these steps. Kept is the furthest state in which all
//! samples fit; where they fit in none, the smallest.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use forebay_pipeline::Sample;
use forebay_plan::{DECODED_ENTRY_BYTES, cached_stage};
use serde::Serialize;

use crate::sync::{Mutex, RwLock};

/// Samples kept in memory. Shared by the epochs of one loader.
#[derive(Debug)]
pub struct Cache {
    limit_bytes: u64,
    /// How many samples may come, in all epochs together.
    samples_total: u64,
    bytes: AtomicU64,
    hits: AtomicU64,
    choice: OnceLock<Choice>,
    trial: Mutex<Trial>,
    samples: RwLock<HashMap<u64, Arc<Sample>>>,
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// How many steps are done to a sample before.
    pub(super) steps: usize,
    /// What all samples take after none of the steps that always give the same, after the first, and so on; empty where nothing was tried out.
    pub(super) bytes: Vec<u64>,
}

/// What a cache holds, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cached {
    /// Which kind of cache this is.
    pub policy: String,
    /// Why that one, where it was left to the loader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How much it may hold.
    pub limit_bytes: u64,
    /// The stage that samples are kept in: the strategy's name where they are kept as they are stored; `None` before that is known.
    pub stage: Option<String>,
    /// How many samples it holds.
    pub samples: usize,
    /// How many bytes they have.
    pub bytes: u64,
    /// How often a sample was found.
    pub hits: u64,
    /// The stages that there were to choose from, and what all samples take in each, about.
    pub stages: Vec<CachedStage>,
}

/// A stage that samples can be kept in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CachedStage {
    /// What it is called.
    pub stage: String,
    /// What all samples take in it, by those that were tried out.
    pub bytes: u64,
}

/// What was learned of the first samples.
#[derive(Debug, Default)]
struct Trial {
    /// How many could be tried out, and how many could not.
    tried: u64,
    failed: u64,
    /// What those that could have together, after none of the steps, after the first, and so on.
    sums: Vec<u64>,
    /// Those for which there was space, by their numbers: as they are stored, and after all of the steps.
    kept: Vec<(u64, Sample, Sample)>,
}

/// What `sample` takes here.
pub(super) fn footprint(sample: &Sample) -> u64 {
    sample.bytes() as u64 + DECODED_ENTRY_BYTES
}

/// So many samples are tried out.
const TRIED_MAX: u64 = 32;

impl Cache {
    /// A cache of up to `limit_bytes`, of the `samples_total` samples that may come.
    pub(super) fn new(limit_bytes: u64, samples_total: u64) -> Self {
        Self {
            limit_bytes,
            samples_total,
            bytes: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            choice: OnceLock::new(),
            trial: Mutex::new(Trial::default()),
            samples: RwLock::new(HashMap::new()),
        }
    }

    /// What is kept, once that is known.
    pub(super) fn choice(&self) -> Option<&Choice> {
        self.choice.get()
    }

    /// Keeps samples as they are stored: there is nothing to try out.
    pub(super) fn keep_as_stored(&self) {
        let _ = self.choice.set(Choice { steps: 0, bytes: Vec::new() });
    }

    /// Notes what sample number `number` is as it is stored and after all of the steps, and how many bytes it has after each.
    pub(super) fn note_tried(&self, number: u64, sizes: &[usize], stored: Sample, processed: Sample) {
        let mut trial = self.trial.lock();
        if let Some(choice) = self.choice.get() {
            // Others decided while it was worked on.
            return self.keep_tried(choice, number, stored, processed);
        }
        trial.tried += 1;
        trial.sums.resize(sizes.len(), 0);
        trial.sums.iter_mut().zip(sizes).for_each(|(sum, &bytes)| *sum += bytes as u64);
        if !self.reserve(footprint(&stored) + footprint(&processed)) {
            let choice = self.choose(&mut trial);
            return self.keep_tried(choice, number, stored, processed);
        }
        trial.kept.push((number, stored, processed));
        if trial.tried + trial.failed >= TRIED_MAX.min(self.samples_total) {
            self.choose(&mut trial);
        }
    }

    /// Notes that a sample could not be tried out.
    pub(super) fn note_failed(&self) {
        let mut trial = self.trial.lock();
        trial.failed += 1;
        if self.choice.get().is_none() && trial.tried + trial.failed >= TRIED_MAX.min(self.samples_total) {
            self.choose(&mut trial);
        }
    }

    /// Decides what is kept, and keeps what there is of it.
    fn choose(&self, trial: &mut Trial) -> &Choice {
        let all = |sum: u64| u128::from(sum) * u128::from(self.samples_total) / u128::from(trial.tried.max(1));
        let bytes: Vec<u64> = trial.sums.iter().map(|&sum| u64::try_from(all(sum)).unwrap_or(u64::MAX)).collect();
        let space = self.limit_bytes.saturating_sub(self.samples_total.saturating_mul(DECODED_ENTRY_BYTES));
        let choice = Choice { steps: cached_stage(&bytes, space), bytes };
        for (number, stored, processed) in trial.kept.drain(..) {
            self.bytes.fetch_sub(footprint(&stored) + footprint(&processed), Ordering::Relaxed);
            self.keep_tried(&choice, number, stored, processed);
        }
        self.choice.get_or_init(|| choice)
    }

    /// Keeps a sample that was tried out, if it is at the stage that is kept: in one in between it is when it comes again.
    fn keep_tried(&self, choice: &Choice, number: u64, stored: Sample, processed: Sample) {
        let is_last = choice.steps + 1 == choice.bytes.len();
        let kept = if choice.steps == 0 { Some(stored) } else { is_last.then_some(processed) };
        if let Some(sample) = kept.filter(|sample| self.reserve(footprint(sample))) {
            self.keep(number, sample);
        }
    }

    /// Sample number `number` of the source, if it is kept.
    pub(super) fn get(&self, number: u64) -> Option<Arc<Sample>> {
        if self.choice.get().is_none() {
            let mut trial = self.trial.lock();
            // It comes again: whatever is known by now must do.
            if self.choice.get().is_none() && trial.kept.iter().any(|(kept, ..)| *kept == number) {
                self.choose(&mut trial);
            }
        }
        let found = self.samples.read().get(&number).cloned();
        self.hits.fetch_add(u64::from(found.is_some()), Ordering::Relaxed);
        found
    }

    /// Whether there is space for another `bytes`, which are then taken.
    pub(super) fn reserve(&self, bytes: u64) -> bool {
        let space = |taken: u64| taken.checked_add(bytes).filter(|&sum| sum <= self.limit_bytes);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, space).is_ok()
    }

    /// Keeps sample number `number`, which space was reserved for.
    pub(super) fn keep(&self, number: u64, sample: Sample) {
        let replaced = self.samples.write().insert(number, Arc::new(sample));
        // One that came twice at once, where ranks are made even, is kept once.
        self.bytes.fetch_sub(replaced.map_or(0, |sample| footprint(&sample)), Ordering::Relaxed);
    }

    /// How many bytes it may hold.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// How many samples are kept.
    pub fn len(&self) -> usize {
        self.samples.read().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes they have themselves.
    pub fn bytes(&self) -> u64 {
        let entries = self.samples.read().len() + 2 * self.trial.lock().kept.len();
        self.bytes.load(Ordering::Relaxed).saturating_sub(entries as u64 * DECODED_ENTRY_BYTES)
    }

    /// How often a sample was found here.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use forebay_pipeline::{Field, Value};

    use super::*;
    use crate::sync::modeled;

    fn sample(bytes: usize) -> Sample {
        let value = Value::Bytes(vec![0; bytes].into());
        Sample { key: "a".into(), index: 0, fields: vec![Field { name: "image".into(), value }] }
    }

    #[test]
    fn what_was_tried_out_is_kept_as_chosen() {
        modeled(|| {
            // In the last there is no room to try any out: what comes is kept at once.
            for (limit, steps, kept) in [(100_000, 1, 40), (30_000, 0, 10), (800, 0, 10)] {
                let cache = Cache::new(limit, 200);
                for number in 0..TRIED_MAX {
                    assert!(cache.choice().is_none() || limit < 1000, "after {number}");
                    cache.note_tried(number, &[10, 40], sample(10), sample(40));
                }
                let choice = cache.choice().unwrap();
                assert_eq!((choice.steps, &choice.bytes[..]), (steps, &[2000, 8000][..]));
                let expected = if limit < 1000 { 2 } else { TRIED_MAX };
                assert_eq!((cache.len() as u64, cache.bytes()), (expected, expected * kept), "{limit}");
                assert!(cache.get(1).is_some() && cache.get(TRIED_MAX).is_none());
            }
        });
    }

    #[test]
    fn a_choice_is_made_when_a_sample_comes_again() {
        modeled(|| {
            let cache = Cache::new(10_000, 20);
            cache.note_tried(7, &[10, 40], sample(10), sample(40));
            assert!(cache.get(8).is_none() && cache.choice().is_none());
            assert_eq!(cache.get(7).unwrap().bytes(), 40);
            assert_eq!((cache.hits(), cache.bytes()), (1, 40));
            let failing = Cache::new(1000, 20);
            (0..20).for_each(|_| failing.note_failed());
            assert_eq!(failing.choice().unwrap().steps, 0);
        });
    }
}
