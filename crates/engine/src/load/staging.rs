//! The staging area between readers and workers: payloads wait here for their turn.
//!
//! Readers put blocks in as they arrive, in any order; workers take samples out strictly in the order of the epoch. At
//! most two windows are held: the one that workers are in, and the next. That bounds memory, and since a read of the
//! window that workers are in is never held back, nobody waits for ever.

use std::collections::{BTreeMap, HashMap};

use crate::sync::{Condvar, Mutex};

use super::schedule::Read;
use super::supply::Payload;

/// A payload and its place in the epoch.
pub(super) type Staged = (u64, Payload);

pub(super) struct Staging {
    state: Mutex<State>,
    arrived: Condvar,
    room: Condvar,
    start: u64,
    samples: u64,
}

struct State {
    waiting: HashMap<u64, Payload>,
    next: u64,
    /// The window that the next sample is in.
    window: u64,
    /// Where each window that was asked for ends.
    window_ends: BTreeMap<u64, u64>,
    stopped: bool,
}

impl Staging {
    /// For the places `start` to `samples` of an epoch.
    pub(super) fn new(start: u64, samples: u64) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: HashMap::new(),
                next: start,
                window: 0,
                window_ends: BTreeMap::new(),
                stopped: false,
            }),
            arrived: Condvar::new(),
            room: Condvar::new(),
            start,
            samples,
        }
    }

    /// Waits until there is room for the window of `read`; `false` if everything was stopped.
    pub(super) fn wait_for_room(&self, read: &Read) -> bool {
        let mut state = self.state.lock();
        state.window_ends.insert(read.window, read.window_end);
        state.pass_windows();
        while read.window > state.window + 1 && !state.stopped {
            self.room.wait(&mut state);
        }
        !state.stopped
    }

    /// Puts the payloads of `read` in; those before the start of a resumed epoch were read with their neighbours only.
    pub(super) fn put(&self, read: &Read, payloads: Vec<Payload>) {
        let mut state = self.state.lock();
        let wanted = read.places.iter().copied().zip(payloads).filter(|(place, _)| *place >= self.start);
        state.waiting.extend(wanted);
        drop(state);
        self.arrived.notify_all();
    }

    /// Takes the next samples in order, at least one and up to `most`; `None` at the end or when stopped.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Staged>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped || state.next >= self.samples {
                return None;
            }
            let mut taken = Vec::with_capacity(most);
            while taken.len() < most {
                let place = state.next;
                let Some(payload) = state.waiting.remove(&place) else { break };
                taken.push((place, payload));
                state.next += 1;
            }
            if !taken.is_empty() {
                if state.pass_windows() {
                    self.room.notify_all();
                }
                if state.next >= self.samples {
                    self.arrived.notify_all();
                }
                return Some(taken);
            }
            self.arrived.wait(&mut state);
        }
    }

    /// Lets everybody who waits go home.
    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.waiting.clear();
        drop(state);
        self.arrived.notify_all();
        self.room.notify_all();
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
