//! The prefetch area between readers and workers: payloads wait here for their turn.
//!
//! Readers put blocks in as they arrive, in any order; workers take samples out strictly in the order of the rank. No more bytes
//! are held than are for it, from before a block is read until the last of its samples is done.
//!
//! Of that, only as much is used as workers need: as long as none waits, readers keep a little ahead, and the more the more often one
//! had to. Where files are in the page cache, which is most often so, what is read so is in the processor's cache until it is worked on.
//!
//! Nobody waits for ever: while a worker waits, readers may take all that is for it. Reads are admitted in their order, and windows come in the order of their first samples, counted in
//! their streams ([`super::order`]). Say that the next sample is not admitted yet. Then its window begins where the window of
//! the read that waits does, or later; and so every stream is through with its windows but the last that was admitted, whose
//! samples come before that. What is admitted and not done is one window of each stream at most, the one that waits included,
//! and those fit together (see [`crate::memory`]).

use std::collections::HashMap;
use std::sync::Arc;

use forebay_pipeline::Sample;

use super::activity::Activity;
use super::ids::Turn;
use super::sampler::{Read, Wanted};
use crate::source::{Content, Failed};
use crate::sync::{Condvar, Mutex};

/// What a sample is made of.
pub(super) enum Payload {
    /// What was read of it.
    Content(Content),
    /// The sample out of the cache: the steps that always give the same are done.
    Cached(Arc<Sample>),
    /// It could not be read. Reported as an error of this one sample, so that the others of its block live on.
    Failed(Failed),
}

/// A payload, the number of its sample, when the rank takes it, and the memory of the block that it is part of.
pub(super) struct Staged {
    pub(super) sample: u64,
    pub(super) turn: Turn,
    /// Whether it stays in memory, as it was read, for the next epoch.
    pub(super) keep: bool,
    pub(super) payload: Payload,
    /// Given back when the last sample of the block is done.
    pub(super) _block: Arc<Space>,
}

pub(super) struct PrefetchBuffer {
    inner: Arc<Inner>,
    samples: u64,
    activity: Arc<Activity>,
}

struct Inner {
    state: Mutex<State>,
    arrived: Condvar,
    space: Condvar,
    bytes_max: u64,
}

struct State {
    waiting: HashMap<Turn, Staged>,
    /// The next one to take.
    next: Turn,
    /// The number of the read that is admitted next.
    next_read: u64,
    /// What the blocks take that are staged, or at work.
    bytes: u64,
    bytes_peak: u64,
    /// What they may take as long as no worker waits.
    bytes_ahead: u64,
    /// The next sample when that was last raised.
    raised_at: Turn,
    /// How many workers wait for a sample.
    workers_waiting: usize,
    /// How many readers wait for their turn or for space.
    readers_waiting: usize,
    stopped: bool,
}

/// At most once in so many samples readers are let further ahead: at its beginning everybody waits.
const RAISE_SAMPLES: u64 = 32;

/// Space for a block, given back when dropped.
pub(super) struct Space {
    inner: Arc<Inner>,
    bytes: u64,
}

impl Drop for Space {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut state = self.inner.state.lock();
            state.bytes -= self.bytes;
            if state.readers_waiting > 0 {
                self.inner.space.notify_all();
            }
        }
    }
}

impl PrefetchBuffer {
    /// For `samples` samples, in up to `bytes_max` of memory, and in `bytes_first` as long as that is enough. Who waits is noted in
    /// `activity`.
    pub(super) fn new(samples: u64, bytes_max: u64, bytes_first: u64, activity: Arc<Activity>) -> Self {
        let state = State {
            waiting: HashMap::new(),
            next: Turn::default(),
            next_read: 0,
            bytes: 0,
            bytes_peak: 0,
            bytes_ahead: bytes_first.min(bytes_max),
            raised_at: Turn::default(),
            workers_waiting: 0,
            readers_waiting: 0,
            stopped: false,
        };
        let inner = Inner { state: Mutex::new(state), arrived: Condvar::new(), space: Condvar::new(), bytes_max };
        Self { inner: Arc::new(inner), samples, activity }
    }

    /// Waits until it is the turn of `read` and there is space for it; `None` if everything was stopped. The
    /// block takes `bytes`, which are no more than `bytes_max`.
    pub(super) fn wait_for_space(&self, read: &Read, bytes: u64) -> Option<Space> {
        debug_assert!(bytes <= self.inner.bytes_max, "a block that never fits is refused before");
        let mut state = self.inner.state.lock();
        let may_go = |state: &State| {
            let is_needed = state.workers_waiting > 0 || state.bytes == 0;
            let bytes_max = if is_needed { self.inner.bytes_max } else { state.bytes_ahead };
            read.number == state.next_read && state.bytes + bytes <= bytes_max
        };
        while !state.stopped && !may_go(&state) {
            state.readers_waiting += 1;
            self.activity.read_wait.timed(|| self.inner.space.wait(&mut state));
            state.readers_waiting -= 1;
        }
        if state.stopped {
            return None;
        }
        state.next_read += 1;
        state.bytes += bytes;
        state.bytes_peak = state.bytes_peak.max(state.bytes);
        if state.readers_waiting > 0 {
            self.inner.space.notify_all();
        }
        drop(state);
        Some(Space { inner: Arc::clone(&self.inner), bytes })
    }

    /// Puts the payloads of what is wanted of `read` in.
    pub(super) fn put(&self, read: &Read, payloads: Vec<Payload>, space: Space) {
        let block = Arc::new(space);
        let mut state = self.inner.state.lock();
        if state.stopped {
            // What nobody will take is given back; the space takes the lock for that.
            drop(state);
            return;
        }
        for (&Wanted { sample, turn, keep }, payload) in read.wanted.iter().zip(payloads) {
            state.waiting.insert(turn, Staged { sample, turn, keep, payload, _block: Arc::clone(&block) });
        }
        drop(state);
        self.inner.arrived.notify_all();
    }

    /// Takes the next samples in order, at least one and up to `most`; `None` at the end or when stopped.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Staged>> {
        let mut state = self.inner.state.lock();
        loop {
            if state.stopped || state.next.0 >= self.samples {
                return None;
            }
            let mut taken = Vec::with_capacity(most);
            while taken.len() < most {
                let next = state.next;
                let Some(staged) = state.waiting.remove(&next) else { break };
                taken.push(staged);
                state.next = next.next();
            }
            if !taken.is_empty() {
                if state.next.0 >= self.samples {
                    self.inner.arrived.notify_all();
                }
                return Some(taken);
            }
            if state.next.0 >= state.raised_at.0 + RAISE_SAMPLES {
                state.bytes_ahead = state.bytes_ahead.saturating_mul(2).min(self.inner.bytes_max);
                state.raised_at = state.next;
            }
            state.workers_waiting += 1;
            if state.readers_waiting > 0 {
                self.inner.space.notify_all();
            }
            self.activity.data_wait.timed(|| self.inner.arrived.wait(&mut state));
            state.workers_waiting -= 1;
        }
    }

    /// Lets everybody who waits go home.
    pub(super) fn stop(&self) {
        let mut state = self.inner.state.lock();
        state.stopped = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        // Only now: their space takes the lock when it is given back.
        drop(dropped);
        self.inner.arrived.notify_all();
        self.inner.space.notify_all();
    }

    /// How many bytes were staged at most, and are now.
    pub(super) fn memory_bytes(&self) -> (u64, u64) {
        let state = self.inner.state.lock();
        (state.bytes_peak, state.bytes)
    }
}
