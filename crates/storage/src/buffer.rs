//! Reusable buffers, so that reading large blocks does not fault in new pages every time.
//!
//! A buffer is a plain `Vec<u8>` whose bytes are initialized on first use and stay initialized, which keeps this module free
//! of unsafe code: nothing is zeroed again when a buffer is used again. Alignment comes from allocating a little more and starting
//! at the first aligned byte.

use std::collections::TryReserveError;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// The alignment that every buffer has space for. Direct reads need at most this on all common file systems; a request for
/// more is served by a larger buffer.
const PADDING_BYTES: usize = 4096;

/// Below this a fresh allocation is no dearer than the pool: the allocator serves it from pages that are already mapped.
const POOLED_BYTES_MIN: usize = 16 << 10;

/// The maximum idle memory of a pool.
const IDLE_BYTES_MAX: usize = 128 << 20;

/// Buffers that are returned when the last [`Bytes`] that refers to them is dropped: their pages are mapped already, and are not zeroed again.
#[derive(Clone)]
pub struct BufferPool {
    idle: Arc<Mutex<Idle>>,
}

/// The buffers that nobody uses now, by size: class `n` holds buffers with space for `2^n` bytes at any common alignment.
struct Idle {
    classes: [Vec<Vec<u8>>; usize::BITS as usize],
    /// What was used of them. What was not takes no memory.
    bytes: usize,
    bytes_max: usize,
}

impl BufferPool {
    pub(crate) fn new() -> Self {
        Self::with_idle_limit(IDLE_BYTES_MAX)
    }

    /// A pool of at most that many bytes of idle buffers.
    pub fn with_idle_limit(bytes_max: usize) -> Self {
        let classes = std::array::from_fn(|_| Vec::new());
        Self { idle: Arc::new(Mutex::new(Idle { classes, bytes: 0, bytes_max })) }
    }

    /// A buffer of at least `length` initialized bytes, the first at an address that `alignment` (a power of two) divides.
    /// An error where there is no memory for it: a file may be as large as it likes.
    pub fn take(&self, length: usize, alignment: usize) -> Result<PooledBuffer, TryReserveError> {
        if length < POOLED_BYTES_MIN && alignment == 1 {
            return Ok(PooledBuffer { bytes: vec![0; length], start: 0, pool: None });
        }
        // A request for more than the usual padding counts its alignment as length.
        let extra = if alignment > PADDING_BYTES { alignment } else { 0 };
        let class = class_of(length + extra);
        let reused = self.lock().take(class);
        let mut bytes = reused.unwrap_or_default();
        bytes.try_reserve_exact(((1 << class) + PADDING_BYTES).saturating_sub(bytes.len()))?;
        let address = bytes.as_ptr().addr();
        let start = address.next_multiple_of(alignment) - address;
        // Pages behind what is read into are never touched, and cost nothing.
        if bytes.len() < start + length {
            bytes.resize(start + length, 0);
        }
        Ok(PooledBuffer { bytes, start, pool: Some(self.clone()) })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        // The pool is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BufferPool").field("idle_bytes", &self.lock().bytes).finish_non_exhaustive()
    }
}

/// The exponent of the smallest power of two that is at least `length`.
fn class_of(length: usize) -> usize {
    length.max(POOLED_BYTES_MIN).next_power_of_two().trailing_zeros() as usize
}

impl Idle {
    fn take(&mut self, class: usize) -> Option<Vec<u8>> {
        let bytes = self.classes[class].pop()?;
        self.bytes -= bytes.len();
        Some(bytes)
    }

    fn put(&mut self, bytes: Vec<u8>) {
        if self.bytes + bytes.len() <= self.bytes_max {
            self.bytes += bytes.len();
            let class = class_of(bytes.capacity() - PADDING_BYTES);
            self.classes[class].push(bytes);
        }
    }
}

/// A buffer that goes back to its pool when dropped.
pub struct PooledBuffer {
    bytes: Vec<u8>,
    start: usize,
    pool: Option<BufferPool>,
}

impl PooledBuffer {
    /// The aligned bytes: at least as many as were asked for.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    /// Shows a range of the aligned bytes without copying them.
    pub fn into_bytes(mut self, range: Range<usize>) -> Bytes {
        // What need not come back can go without the owner that would bring it back.
        let bytes = if self.pool.is_none() { std::mem::take(&mut self.bytes).into() } else { Bytes::from_owner(self) };
        bytes.slice(range)
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl AsMut<[u8]> for PooledBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        self.as_mut_slice()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            pool.lock().put(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_used_again() {
        let pool = BufferPool::new();
        let mut buffer = pool.take(1 << 20, 512).unwrap();
        buffer.as_mut_slice()[7] = 9;
        let address = buffer.as_mut_slice().as_ptr().addr();
        let bytes = buffer.into_bytes(5..10);
        assert_eq!(&bytes[..], [0, 0, 9, 0, 0]);
        let clone = bytes.clone();
        drop(bytes);
        assert_eq!(pool.lock().bytes, 0, "a clone still shows the buffer");
        drop(clone);
        assert!((1 << 20..(1 << 20) + 512).contains(&pool.lock().bytes));
        assert_eq!(pool.take((1 << 20) - 100, 512).unwrap().as_mut_slice().as_ptr().addr(), address);
    }

    #[test]
    fn buffers_are_aligned_and_long_enough() {
        let pool = BufferPool::new();
        for alignment in [1, 512, 4096, 65_536] {
            for length in [1, 4096, 16_384, 16_385, 100_000, 1 << 20] {
                let mut buffer = pool.take(length, alignment).unwrap();
                let slice = buffer.as_mut_slice();
                assert!(slice.len() >= length, "{length} bytes at {alignment}");
                assert_eq!(slice.as_ptr().addr() % alignment, 0, "{length} bytes at {alignment}");
            }
        }
    }

    #[test]
    fn idle_memory_is_bounded() {
        let pool = BufferPool::with_idle_limit(100_000);
        let buffers: Vec<_> = (0..10).map(|_| pool.take(30_000, 1).unwrap()).collect();
        drop(buffers);
        let idle = pool.lock().bytes;
        assert_eq!(idle, 3 * 30_000);
    }
}
