//! The staging area between readers and workers: payloads wait here for their turn.
//!
//! Readers put blocks in as they arrive, in any order; workers take samples out strictly in the order of the epoch. At
//! most two windows are held: the one that workers are in, and the next; and no more bytes than the share of the memory
//! budget that is for it, from before a block is read until the last of its samples is done.
//!
//! Reads are admitted in their order. So what is admitted and not done is older than a read that waits, or of its window,
//! which fits as a whole: it gets its turn (see [`crate::memory`]).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::sync::{Condvar, Mutex};

use super::schedule::Read;
use super::supply::Payload;

/// A payload, its place in the epoch, and the memory of the block that it is part of.
pub(super) struct Staged {
    pub(super) place: u64,
    pub(super) payload: Payload,
    /// Given back when the last sample of the block is done.
    pub(super) _block: Arc<Room>,
}

pub(super) struct Staging {
    inner: Arc<Inner>,
    start: u64,
    samples: u64,
}

struct Inner {
    state: Mutex<State>,
    arrived: Condvar,
    room: Condvar,
    bytes_max: u64,
}

struct State {
    waiting: HashMap<u64, Staged>,
    next: u64,
    /// The window that the next sample is in.
    window: u64,
    /// Where each window that was asked for ends.
    window_ends: BTreeMap<u64, u64>,
    /// The number of the read that is admitted next.
    next_read: u64,
    /// What the blocks take that are staged, or at work.
    bytes: u64,
    bytes_peak: u64,
    /// How many readers wait for their turn or for room.
    readers_waiting: usize,
    stopped: bool,
}

/// Room for a block, given back when dropped.
pub(super) struct Room {
    inner: Arc<Inner>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let mut state = self.inner.state.lock();
            state.bytes -= self.bytes;
            if state.readers_waiting > 0 {
                self.inner.room.notify_all();
            }
        }
    }
}

impl Staging {
    /// For the places `start` to `samples` of an epoch, in up to `bytes_max` of memory.
    pub(super) fn new(start: u64, samples: u64, bytes_max: u64) -> Self {
        let state = State {
            waiting: HashMap::new(),
            next: start,
            window: 0,
            window_ends: BTreeMap::new(),
            next_read: 0,
            bytes: 0,
            bytes_peak: 0,
            readers_waiting: 0,
            stopped: false,
        };
        let inner = Inner { state: Mutex::new(state), arrived: Condvar::new(), room: Condvar::new(), bytes_max };
        Self { inner: Arc::new(inner), start, samples }
    }

    /// Waits until it is the turn of `read` and there is room for it and its window; `None` if everything was stopped. The
    /// block takes `bytes`, which are no more than `bytes_max`.
    pub(super) fn wait_for_room(&self, read: &Read, bytes: u64) -> Option<Room> {
        debug_assert!(bytes <= self.inner.bytes_max, "a block that never fits is refused before");
        let mut state = self.inner.state.lock();
        state.window_ends.insert(read.window, read.window_end);
        state.pass_windows();
        let may_go = |state: &State| {
            read.number == state.next_read
                && read.window <= state.window + 1
                && state.bytes + bytes <= self.inner.bytes_max
        };
        while !state.stopped && !may_go(&state) {
            state.readers_waiting += 1;
            self.inner.room.wait(&mut state);
            state.readers_waiting -= 1;
        }
        if state.stopped {
            return None;
        }
        state.next_read += 1;
        state.bytes += bytes;
        state.bytes_peak = state.bytes_peak.max(state.bytes);
        if state.readers_waiting > 0 {
            self.inner.room.notify_all();
        }
        drop(state);
        Some(Room { inner: Arc::clone(&self.inner), bytes })
    }

    /// Puts the payloads of `read` in; those before the start of a resumed epoch were read with their neighbours only.
    pub(super) fn put(&self, read: &Read, payloads: Vec<Payload>, room: Room) {
        let block = Arc::new(room);
        let mut state = self.inner.state.lock();
        if state.stopped {
            // What nobody will take is given back; the room takes the lock for that.
            drop(state);
            return;
        }
        for (&place, payload) in read.places.iter().zip(payloads).filter(|(place, _)| **place >= self.start) {
            state.waiting.insert(place, Staged { place, payload, _block: Arc::clone(&block) });
        }
        drop(state);
        self.inner.arrived.notify_all();
    }

    /// Takes the next samples in order, at least one and up to `most`; `None` at the end or when stopped.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Staged>> {
        let mut state = self.inner.state.lock();
        loop {
            if state.stopped || state.next >= self.samples {
                return None;
            }
            let mut taken = Vec::with_capacity(most);
            while taken.len() < most {
                let place = state.next;
                let Some(staged) = state.waiting.remove(&place) else { break };
                taken.push(staged);
                state.next += 1;
            }
            if !taken.is_empty() {
                if state.pass_windows() {
                    self.inner.room.notify_all();
                }
                if state.next >= self.samples {
                    self.inner.arrived.notify_all();
                }
                return Some(taken);
            }
            self.inner.arrived.wait(&mut state);
        }
    }

    /// Lets everybody who waits go home.
    pub(super) fn stop(&self) {
        let mut state = self.inner.state.lock();
        state.stopped = true;
        let dropped = std::mem::take(&mut state.waiting);
        drop(state);
        // Only now: their room takes the lock when it is given back.
        drop(dropped);
        self.inner.arrived.notify_all();
        self.inner.room.notify_all();
    }

    /// How many bytes were staged at most, and are now.
    pub(super) fn memory_bytes(&self) -> (u64, u64) {
        let state = self.inner.state.lock();
        (state.bytes_peak, state.bytes)
    }
}

impl State {
    /// Moves on to the window that the next sample is in; whether it moved.
    fn pass_windows(&mut self) -> bool {
        let before = self.window;
        while let Some(&end) = self.window_ends.get(&self.window)
            && self.next >= end
        {
            self.window_ends.remove(&self.window);
            self.window += 1;
        }
        self.window != before
    }
}
