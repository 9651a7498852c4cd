//! A window on a stream: what was read ahead and not yet consumed.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};

use crate::error::FormatFault;
use crate::tfrecord::input::{Input, InputFault};

/// Bytes read at once. The window grows by this much at a time, so its size follows what the shard really holds and not
/// what a length in it promises.
const STEP_BYTES: usize = 256 * 1024;

pub(crate) struct Window<R: Read> {
    input: Input<R>,
    step: Box<[u8]>,
    ahead: BytesMut,
    offset: u64,
    ended: bool,
    fault: Option<FormatFault>,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(input: Input<R>) -> Self {
        let step = vec![0; STEP_BYTES].into_boxed_slice();
        Self { input, step, ahead: BytesMut::new(), offset: 0, ended: false, fault: None }
    }

    /// The offset of the window's first byte in the stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.ahead
    }

    pub(crate) fn compression(&self) -> Option<&'static str> {
        self.input.compression()
    }

    /// Why the stream ended before its time, once.
    pub(crate) fn take_fault(&mut self) -> Option<FormatFault> {
        self.fault.take()
    }

    /// Reads until the window holds at least `wanted` bytes or the stream ends, and returns how many it holds.
    ///
    /// A damaged compressed stream ends there: what was inflated before is still good, and the fault is kept.
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        while self.ahead.len() < wanted && !self.ended {
            let count = self.read_step()?;
            self.ahead.extend_from_slice(&self.step[..count]);
        }
        Ok(self.ahead.len())
    }

    /// Takes the first `count` bytes, which must be in the window.
    pub(crate) fn take(&mut self, count: usize) -> Bytes {
        self.offset += count as u64;
        self.ahead.split_to(count).freeze()
    }

    /// Passes over `count` bytes, or as many as there are, without keeping them; returns how many.
    pub(crate) fn discard(&mut self, count: u64) -> io::Result<u64> {
        let held = (self.ahead.len() as u64).min(count);
        drop(self.take(held as usize));
        let mut discarded = held;
        while discarded < count && !self.ended {
            let read = self.read_step()?;
            let used = (read as u64).min(count - discarded);
            self.ahead.extend_from_slice(&self.step[used as usize..read]);
            self.offset += used;
            discarded += used;
        }
        Ok(discarded)
    }

    fn read_step(&mut self) -> io::Result<usize> {
        match self.input.read(&mut self.step) {
            Ok(count) => {
                self.ended = count == 0;
                Ok(count)
            }
            Err(InputFault::Io(error)) => Err(error),
            Err(InputFault::Format(fault)) => {
                self.ended = true;
                self.fault = Some(fault);
                Ok(0)
            }
        }
    }
}
