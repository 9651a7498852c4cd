//! Reading ahead of a shard that is written, where each read waits long: from a store, whose answers take longer than the work on a sample.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::data::{Content, SourceReader};
use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex};

/// Reads the samples of one shard ahead of processing. Samples are consumed in order.
pub(super) struct ReadAhead {
    reader: Arc<SourceReader>,
    /// No more bytes than this are read ahead of the sample that is wanted next.
    bytes_max: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// What is not begun yet.
    left: Range<usize>,
    /// The next sample: it is read regardless of its memory.
    wanted: usize,
    ready: BTreeMap<usize, Result<Content>>,
    /// What samples take that are ready or being read.
    bytes: u64,
    stopped: bool,
}

/// Ends the reading when it is dropped, also after an error.
pub(super) struct Stops<'a>(&'a ReadAhead);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.state.lock().stopped = true;
        self.0.changed.notify_all();
    }
}

impl ReadAhead {
    pub(super) fn new(reader: Arc<SourceReader>, samples: Range<usize>, bytes_max: u64) -> Self {
        let wanted = samples.start;
        let state = State { left: samples, wanted, ready: BTreeMap::new(), bytes: 0, stopped: false };
        Self { reader, bytes_max, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn stops(&self) -> Stops<'_> {
        Stops(self)
    }

    /// A reader: reads until there is no more.
    pub(super) fn read_all(&self) {
        while let Some(number) = self.next() {
            // The consumer waits for it in any case.
            let content = catch_unwind(AssertUnwindSafe(|| self.reader.read(number)));
            let content = content.unwrap_or_else(|panic| Err(Error::panicked(&*panic)));
            self.state.lock().ready.insert(number, content);
            self.changed.notify_all();
        }
    }

    /// The next sample to read, once there is space for it.
    fn next(&self) -> Option<usize> {
        let mut state = self.state.lock();
        loop {
            if state.stopped || state.left.is_empty() {
                return None;
            }
            let number = state.left.start;
            let bytes = self.bytes_of(number);
            if number == state.wanted || state.bytes.saturating_add(bytes) <= self.bytes_max {
                state.left.start += 1;
                state.bytes = state.bytes.saturating_add(bytes);
                return Some(number);
            }
            self.changed.wait(&mut state);
        }
    }

    /// What was read of sample number `number`, the one after the last that was consumed.
    pub(super) fn take(&self, number: usize) -> Result<Content> {
        let mut state = self.state.lock();
        state.wanted = number;
        self.changed.notify_all();
        loop {
            if let Some(content) = state.ready.remove(&number) {
                state.bytes = state.bytes.saturating_sub(self.bytes_of(number));
                state.wanted = number + 1;
                self.changed.notify_all();
                return content;
            }
            if state.stopped {
                return Err(Error::internal("reading ahead was ended"));
            }
            self.changed.wait(&mut state);
        }
    }

    fn bytes_of(&self, number: usize) -> u64 {
        self.reader.listing().entries()[number].bytes
    }
}
