//! The buffers of batches, which are used again and again: their pages are there already, from batch to batch and from epoch to
//! epoch.
//!
//! Idle buffers have a share of the memory budget of their own, and as long as an epoch runs also what batches could take and do
//! not: what is ready and waits, what is made and what is idle are never more together than the shares of all three. Buffers are
//! rounded up by a sixteenth at most, so that one of about the same size fits the next time, and what a batch takes is about
//! what was charged for it. The one that was used last is taken first: what it held may still be in the processor's cache.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use forebay_codec::memory;

use crate::sync::Mutex;

/// Buffers that nobody uses now. A loader has them, and lends them to the pool of each of its epochs.
#[derive(Clone, Default)]
pub(crate) struct Idle(Arc<Mutex<Free>>);

#[derive(Default)]
struct Free {
    /// The one that was used last comes last.
    buffers: Vec<BytesMut>,
    /// What they take together.
    bytes: usize,
    /// What they may take beyond their own share, because batches do not.
    spare_bytes: usize,
    /// What the batch took that was handed over last, and of that, what came back. It is charged until the next one is asked for, but no
    /// longer taken by it.
    in_hand_bytes: usize,
    returned_bytes: usize,
}

/// Buffers that are used again and again.
pub(crate) struct Pool {
    idle: Idle,
    /// The share of idle buffers.
    bytes_max: usize,
    /// The share of batches.
    batches_bytes_max: usize,
    /// The most bytes that a padded batch may have.
    pub(super) padded_bytes_max: usize,
}

/// What numeric libraries like their arrays aligned to.
const ALIGN_BYTES: usize = 64;

/// The most buffers that are kept.
const BUFFERS_MAX: usize = 4096;

/// The most bytes that they may keep as their own share, however large the memory budget is.
const BYTES_MAX: usize = 1 << 30;

/// From so many bytes on a buffer is worth huge pages: it has one or two of the usual size within.
const HUGE_BYTES_MIN: usize = 4 << 20;

impl Pool {
    /// A pool that begins with what is idle. Idle buffers have a share of `bytes_max`, batches one of `batches_bytes_max`.
    pub(super) fn new(idle: Idle, bytes_max: usize, batches_bytes_max: usize, padded_bytes_max: usize) -> Self {
        Self { idle, bytes_max: bytes_max.min(BYTES_MAX), batches_bytes_max, padded_bytes_max }
    }

    /// A buffer of so many bytes, aligned; what it holds is unspecified.
    pub(super) fn take(&self, bytes: usize) -> Result<BytesMut, forebay_codec::Error> {
        let reused = self.idle.0.lock().take(bytes);
        if let Some(mut buffer) = reused {
            buffer.resize(bytes, 0);
            return Ok(buffer);
        }
        let bytes_wanted = rounded(bytes) + ALIGN_BYTES;
        let again = |error| if self.forget() { memory::zeroed(bytes_wanted) } else { Err(error) };
        let mut zeroed: Vec<u8> = memory::zeroed(bytes_wanted).or_else(again)?;
        if zeroed.len() >= HUGE_BYTES_MIN {
            forebay_allocator::advise_huge_pages(&mut zeroed);
        }
        let mut buffer = Bytes::from(zeroed).try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let skip = buffer.as_ptr().align_offset(ALIGN_BYTES).min(ALIGN_BYTES);
        drop(buffer.split_to(skip));
        buffer.truncate(bytes);
        Ok(buffer)
    }

    /// Gives all idle buffers back to the system; whether there were any.
    fn forget(&self) -> bool {
        let mut free = self.idle.0.lock();
        free.bytes = 0;
        let all = std::mem::take(&mut free.buffers);
        drop(free);
        !all.is_empty()
    }

    /// Takes a buffer back, if there is space for it.
    pub(super) fn give(&self, buffer: BytesMut) {
        let mut free = self.idle.0.lock();
        let in_hand = buffer.capacity().min(free.in_hand_bytes);
        let bytes_max = self.bytes_max.saturating_add(free.spare_bytes + free.returned_bytes + in_hand);
        if free.buffers.len() >= BUFFERS_MAX || free.bytes + buffer.capacity() > bytes_max {
            // Unmapping takes long; others need not wait for it.
            drop(free);
            return drop(buffer);
        }
        free.in_hand_bytes -= in_hand;
        free.returned_bytes += in_hand;
        free.bytes += buffer.capacity();
        free.buffers.push(buffer);
    }

    /// Leaves to idle buffers what batches do not take, which take `charged_bytes` now. To be said whenever that has grown; where it
    /// has shrunk, it does no harm to be late.
    pub(super) fn settle(&self, charged_bytes: u64) {
        let mut free = self.idle.0.lock();
        free.spare_bytes = self.spare_bytes(charged_bytes);
        drop(free.surplus(self.bytes_max));
    }

    /// The same, when a batch was handed over that takes `in_hand_bytes` of them. The one before it is not charged any more.
    pub(super) fn hand_over(&self, charged_bytes: u64, in_hand_bytes: u64) {
        let mut free = self.idle.0.lock();
        free.spare_bytes = self.spare_bytes(charged_bytes);
        free.in_hand_bytes = usize::try_from(in_hand_bytes).unwrap_or(usize::MAX);
        free.returned_bytes = 0;
        drop(free.surplus(self.bytes_max));
    }

    /// After an epoch, idle buffers have their own share.
    pub(super) fn end(&self) {
        let mut free = self.idle.0.lock();
        (free.spare_bytes, free.in_hand_bytes, free.returned_bytes) = (0, 0, 0);
        let surplus = free.surplus(self.bytes_max);
        drop(free);
        drop(surplus);
    }

    fn spare_bytes(&self, charged_bytes: u64) -> usize {
        self.batches_bytes_max.saturating_sub(usize::try_from(charged_bytes).unwrap_or(usize::MAX))
    }
}

impl Free {
    /// The buffer of about so many bytes that was used last.
    fn take(&mut self, bytes: usize) -> Option<BytesMut> {
        let fitting = bytes..=rounded(bytes) + step(bytes);
        let index = self.buffers.iter().rposition(|buffer| fitting.contains(&buffer.capacity()))?;
        let buffer = self.buffers.remove(index);
        self.bytes -= buffer.capacity();
        Some(buffer)
    }

    /// The buffers that are more than may be idle, those that were not used for longest, taken out.
    fn surplus(&mut self, bytes_max: usize) -> Vec<BytesMut> {
        let bytes_max = bytes_max.saturating_add(self.spare_bytes + self.returned_bytes);
        let mut count = 0;
        while self.bytes > bytes_max {
            self.bytes -= self.buffers[count].capacity();
            count += 1;
        }
        self.buffers.drain(..count).collect()
    }
}

/// What buffers of about `bytes` may differ by.
fn step(bytes: usize) -> usize {
    (bytes.checked_next_power_of_two().unwrap_or(bytes) / 32).max(ALIGN_BYTES)
}

/// How large a buffer for `bytes` is made.
fn rounded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(step(bytes)).unwrap_or(bytes)
}

#[cfg(test)]
impl Pool {
    /// A pool without an epoch, which keeps `bytes_max`.
    pub(super) fn alone(bytes_max: usize, padded_bytes_max: usize) -> Self {
        Self::new(Idle::default(), bytes_max, 0, padded_bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many buffers are idle. Looks at whether their bytes are counted right.
    fn idle(pool: &Pool) -> usize {
        let free = pool.idle.0.lock();
        assert_eq!(free.bytes, free.buffers.iter().map(BytesMut::capacity).sum::<usize>());
        free.buffers.len()
    }

    fn give_all(pool: &Pool, buffers: impl IntoIterator<Item = BytesMut>) {
        buffers.into_iter().for_each(|buffer| pool.give(buffer));
    }

    #[test]
    fn buffers_are_aligned_and_come_back() {
        crate::sync::modeled(|| {
            let pool = Pool::alone(2000, 0);
            let buffer = pool.take(1000).unwrap();
            let address = buffer.as_ptr();
            assert_eq!(address.align_offset(ALIGN_BYTES), 0);
            pool.give(buffer);
            assert_eq!(pool.take(1000).unwrap().as_ptr(), address);
            pool.give(pool.take(3000).unwrap());
            assert_eq!(idle(&pool), 0, "more than it may keep");
        });
    }

    #[test]
    fn pieces_join_without_a_copy() {
        crate::sync::modeled(|| {
            let pool = Pool::alone(100, 0);
            let mut rest = pool.take(30).unwrap();
            let address = rest.as_ptr();
            let mut first = rest.split_to(10);
            let second = rest.split_to(10);
            first.unsplit(second);
            first.unsplit(rest);
            assert_eq!((first.len(), first.as_ptr()), (30, address));
        });
    }

    /// The next epoch's pool has what the last one's left.
    #[test]
    fn buffers_stay_from_pool_to_pool() {
        crate::sync::modeled(|| {
            let idle = Idle::default();
            let first = Pool::new(idle.clone(), 20_000, 0, 0);
            let buffer = first.take(10_000).unwrap();
            let address = buffer.as_ptr();
            first.give(buffer);
            first.end();
            assert_eq!(Pool::new(idle, 20_000, 0, 0).take(9900).unwrap().as_ptr(), address);
        });
    }

    #[test]
    fn a_buffer_serves_sizes_like_its_own_and_the_last_is_taken_first() {
        crate::sync::modeled(|| {
            let pool = Pool::alone(1 << 20, 0);
            let buffers = [20_000, 10_000, 9_990, 10_010].map(|bytes| pool.take(bytes).unwrap());
            let addresses = buffers.each_ref().map(|buffer| buffer.as_ptr());
            give_all(&pool, buffers);
            let taken = [9_980, 10_020, 10_000].map(|bytes| pool.take(bytes).unwrap());
            assert_eq!(taken.each_ref().map(|buffer| buffer.as_ptr()), [addresses[3], addresses[2], addresses[1]]);
            assert_eq!(taken.each_ref().map(BytesMut::len), [9_980, 10_020, 10_000]);
            assert_ne!(pool.take(10_000).unwrap().as_ptr(), addresses[0], "what is mostly empty is not charged for");
            assert_eq!(idle(&pool), 1);
        });
    }

    #[test]
    fn buffers_are_hardly_larger_than_what_is_charged_for_them() {
        for bytes in (0..2000).chain([10_000, 1 << 20, (1 << 20) + 1, 6_291_456, 403_000_001, 1 << 40]) {
            assert!(rounded(bytes) >= bytes);
            assert!(rounded(bytes) + step(bytes) <= bytes + bytes / 8 + 2 * ALIGN_BYTES, "{bytes}");
        }
    }

    /// Idle buffers take what batches do not, and give it back when they do.
    #[test]
    fn what_is_spare_is_used_and_given_back() {
        crate::sync::modeled(|| {
            let pool = Pool::new(Idle::default(), 2500, 5000, 0);
            pool.settle(0);
            give_all(&pool, [1000; 5].map(|bytes| pool.take(bytes).unwrap()));
            assert_eq!(idle(&pool), 5);
            pool.settle(2500);
            assert_eq!(idle(&pool), 4);
            pool.settle(99_999);
            assert_eq!(idle(&pool), 2);
            pool.settle(0);
            pool.end();
            give_all(&pool, [1000; 5].map(|bytes| pool.take(bytes).unwrap()));
            assert_eq!(idle(&pool), 2);
        });
    }

    /// What a batch took that was handed over is charged until the next one is asked for: its buffers come back before that.
    #[test]
    fn what_was_handed_over_comes_back() {
        crate::sync::modeled(|| {
            let pool = Pool::new(Idle::default(), 0, 5000, 0);
            let buffers = [1000; 4].map(|bytes| pool.take(bytes).unwrap());
            let capacity: usize = buffers.iter().map(BytesMut::capacity).sum();
            pool.hand_over(5000, capacity as u64);
            give_all(&pool, buffers);
            assert_eq!(idle(&pool), 4);
            pool.give(pool.take(2000).unwrap());
            assert_eq!(idle(&pool), 4, "no more than it took");
            pool.hand_over(5000 - capacity as u64, 0);
            assert_eq!(idle(&pool), 4);
            pool.settle(5000);
            assert_eq!(idle(&pool), 0);
        });
    }
}
