//! When a throttled read may finish: the arithmetic of the model, without clock and without waiting.

use std::time::Duration;

use crate::Throttle;

/// What one read costs the simulated device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) bytes: u64,
    pub(crate) seeks: u32,
}

/// Reads of at least this size that are close together count as one stream: see [`continues`].
const LARGE_READ_BYTES: u64 = 192 << 10;
/// How many such reads a device takes together.
const QUEUED_READS: u64 = 8;

/// Whether a read of `length` at `start` continues at the device's position, so that it costs no seek.
///
/// Several threads that share a file and take its large blocks in turn ask for them nearly in order. A device or file system
/// sorts the requests in its queue, so a large read a few blocks ahead of or behind the last one is no seek either.
pub(crate) fn continues(position: Option<u64>, start: u64, length: u64) -> bool {
    position.is_some_and(|position| {
        position == start || (length >= LARGE_READ_BYTES && position.abs_diff(start) <= QUEUED_READS * length)
    })
}

/// What the reads so far have reserved of what all streams share.
///
/// Both shared resources are queues of reserved time, represented by the moment from which they are free. A reservation starts
/// when the read was asked for, not when its seek is over: otherwise one stream that seeks would hold the transfer of all
/// others back for the length of its seek.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    transfers_free: Duration,
    seeks_free: Duration,
}

impl Schedule {
    /// Reserves what a read that was asked for at `start` needs, and says when it is done.
    pub(crate) fn reserve(&mut self, throttle: &Throttle, start: Duration, cost: Cost) -> Duration {
        let mut ready = start;
        for _ in 0..cost.seeks {
            let mut begin = ready;
            if let Some(rate) = throttle.seeks_per_second {
                let slot = self.seeks_free.max(start);
                self.seeks_free = slot.saturating_add(seconds(1.0 / rate));
                begin = begin.max(slot);
            }
            ready = begin.saturating_add(seconds(throttle.seek_seconds));
        }
        let transfer = seconds(cost.bytes as f64 / throttle.total_bytes_per_second);
        self.transfers_free = self.transfers_free.max(start).saturating_add(transfer);
        let streamed = ready.saturating_add(seconds(cost.bytes as f64 / throttle.stream_bytes_per_second));
        streamed.max(self.transfers_free)
    }
}

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)
}
