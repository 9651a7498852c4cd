//! The reserve: a bump allocator over one block.
//!
//! It is for the seconds between the first refusal and the end of the work, so pieces that are freed are only counted. When
//! all of them have been freed, the whole block is available again.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

/// Enough for the small allocations of a few dozen threads. It must fit into half a word, next to a counter.
const RESERVE_BYTES: usize = 16 << 20;

/// Serves small requests that the system refuses.
pub(crate) static RESERVE: Reserve = Reserve::new();

pub(crate) struct Reserve {
    block: UnsafeCell<[MaybeUninit<u8>; RESERVE_BYTES]>,
    /// The pieces in use and the bytes taken from the block, in one word, so that both change atomically.
    state: AtomicU64,
}

// SAFETY: the block is only accessed through pieces, and `take` never hands out a byte twice at the same time.
unsafe impl Sync for Reserve {}

impl Reserve {
    #[expect(clippy::large_stack_arrays, reason = "it is evaluated for statics, when the program is compiled")]
    const fn new() -> Self {
        let block = UnsafeCell::new([const { MaybeUninit::uninit() }; RESERVE_BYTES]);
        Self { block, state: AtomicU64::new(0) }
    }

    /// A piece of this layout, nobody else's until it is given back; null if there is too little left.
    pub(crate) fn take(&self, layout: Layout) -> *mut u8 {
        let start = self.block.get().cast::<u8>();
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            let (pieces, used) = unpack(state);
            // The block itself is aligned to nothing in particular.
            let from = (start.addr() + used).next_multiple_of(layout.align()) - start.addr();
            let Some(to) = from.checked_add(layout.size()).filter(|&to| to <= RESERVE_BYTES) else {
                return std::ptr::null_mut();
            };
            match self.state.compare_exchange_weak(state, pack(pieces + 1, to), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return start.wrapping_add(from),
                Err(changed) => state = changed,
            }
        }
    }

    /// Whether `block` is a piece of this.
    #[inline]
    pub(crate) fn has(&self, block: *mut u8) -> bool {
        block.addr().wrapping_sub(self.block.get().addr()) < RESERVE_BYTES
    }

    /// Takes a piece back.
    pub(crate) fn give_back(&self) {
        let less = |state| {
            let (pieces, used) = unpack(state);
            Some(if pieces <= 1 { 0 } else { pack(pieces - 1, used) })
        };
        // It cannot fail: there is always a next state.
        let _ = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }
}

fn pack(pieces: usize, used: usize) -> u64 {
    (pieces as u64) << 32 | used as u64
}

fn unpack(state: u64) -> (usize, usize) {
    ((state >> 32) as usize, (state & 0xFFFF_FFFF) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_aligned_and_apart_and_come_back() {
        // One of its own: other tests run at the same time.
        static MINE: Reserve = Reserve::new();
        let reserve = &MINE;
        let mut end = 0;
        for (size, align) in [(1, 1), (3, 4096), (100, 16), (1 << 20, 64)] {
            let piece = reserve.take(Layout::from_size_align(size, align).expect("a layout"));
            assert!(reserve.has(piece) && piece.addr().is_multiple_of(align) && piece.addr() >= end);
            end = piece.addr() + size;
        }
        assert!(reserve.take(Layout::new::<[u8; RESERVE_BYTES]>()).is_null(), "there is too little left");
        assert!(!reserve.has((&raw const end).cast_mut().cast()));
        for _ in 0..4 {
            assert_ne!(reserve.state.load(Ordering::Relaxed), 0);
            reserve.give_back();
        }
        assert!(!reserve.take(Layout::new::<[u8; RESERVE_BYTES]>()).is_null(), "all of it is free again");
        assert!(reserve.take(Layout::new::<u8>()).is_null());
    }

    #[test]
    fn no_byte_is_given_to_two_threads() {
        static MINE: Reserve = Reserve::new();
        let reserve = &MINE;
        let layout = Layout::new::<u64>();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for round in 0..300 {
                        #[expect(
                            clippy::cast_ptr_alignment,
                            reason = "it is taken by the layout of what it is cast to"
                        )]
                        let piece = reserve.take(layout).cast::<u64>();
                        assert!(!piece.is_null());
                        let mine = thread << 32 | round;
                        // SAFETY: the piece has this layout, and is this thread's until it is given back below.
                        let found = unsafe {
                            piece.write_volatile(mine);
                            std::thread::yield_now();
                            piece.read_volatile()
                        };
                        assert_eq!(found, mine);
                        reserve.give_back();
                    }
                });
            }
        });
        assert_eq!(reserve.state.load(Ordering::Relaxed), 0);
    }
}
