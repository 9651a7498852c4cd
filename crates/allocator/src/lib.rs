//! The system's allocator with a reserve, so that running out of memory can be an error.
//!
//! Buffers whose size depends on a file are allocated with `try_reserve`, and a failure there is an error. All other allocations (names,
//! messages, the internals of libraries) cannot fail gracefully: Rust ends the process. [`Allocator`] bridges this gap: a
//! small request that the system refuses is served from a reserve, and [`take_refused`] reports that this happened.
//! The engine checks this between samples, and ends the work with an error.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: forebay_allocator::Allocator = forebay_allocator::Allocator;
//! # fn main() {
//! assert_eq!(forebay_allocator::take_refused(), None);
//! # }
//! ```
//!
//! The reserve is in the zero-initialized part of the program's image, so it takes address space, but no memory until it is
//! used. It becomes available again once everything taken from it has been freed. Large requests are not served from it.
//!
//! In addition, [`advise_huge_pages`] is for large blocks that are reused many times, and [`MappedFile`] for files in the page cache.
//!
//! # Limits
//!
//! A system that overcommits memory (Linux, by default) only refuses what exceeds `ulimit -v`; otherwise it kills a process
//! when memory runs out. C libraries do not use this allocator: they return errors of their own.

#[cfg(target_os = "linux")]
mod mapped;
mod reserve;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(target_os = "linux")]
pub use mapped::MappedFile;
use reserve::RESERVE;

/// A larger request than this is refused when the system refuses it.
const SMALL_BYTES_MAX: usize = 1 << 20;

/// The size of the last request that the system refused and the reserve served; 0 for none.
static REFUSED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The size of a request that the system refused and the reserve served, if there was one since the last call. The caller
/// must then end its work with an error.
pub fn take_refused() -> Option<usize> {
    // There is almost never one, and a load is cheaper than a swap.
    if REFUSED_BYTES.load(Ordering::Relaxed) == 0 {
        return None;
    }
    Some(REFUSED_BYTES.swap(0, Ordering::Relaxed)).filter(|&bytes| bytes > 0)
}

/// Whether the system would provide `bytes` more now. For operations that cannot fail gracefully once started, such as spawning a
/// thread. Other processes may take the memory in the meantime, so this is no guarantee.
pub fn can_map(bytes: usize) -> bool {
    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    // SAFETY: the system chooses the address, so the mapping overlaps nothing. It is never accessed, and is unmapped completely.
    unsafe {
        mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
            .and_then(|mapping| munmap(mapping, bytes))
            .is_ok()
    }
}

/// Requests huge pages for `memory`, which should be used entirely and, ideally, has not been touched yet: a few page faults instead of
/// hundreds, and fewer TLB misses. The system honors it if it is set to `madvise` or `always`; otherwise nothing changes.
pub fn advise_huge_pages(memory: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let page_bytes = rustix::param::page_size();
        let (block, bytes) = (memory.as_mut_ptr(), memory.len());
        let skipped = block.align_offset(page_bytes);
        let whole_bytes = bytes.saturating_sub(skipped) / page_bytes * page_bytes;
        if whole_bytes > 0 {
            // SAFETY: the pages are within `memory`, and the advice does not change their content.
            let _ = unsafe { madvise(block.wrapping_add(skipped).cast(), whole_bytes, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// The system's allocator, with a reserve for small requests that it refuses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

impl Allocator {
    /// The block that the system returned, or a piece of the reserve for a small request that it refused; null otherwise.
    #[inline]
    fn or_reserve(given: *mut u8, layout: Layout) -> *mut u8 {
        if given.is_null() { Self::from_reserve(layout) } else { given }
    }

    #[cold]
    fn from_reserve(layout: Layout) -> *mut u8 {
        if layout.size() > SMALL_BYTES_MAX {
            return std::ptr::null_mut();
        }
        let piece = RESERVE.take(layout);
        if !piece.is_null() {
            REFUSED_BYTES.store(layout.size().max(1), Ordering::Relaxed);
        }
        piece
    }
}

// SAFETY: Every block is the system's, with its guarantees, or a piece of the reserve, which `Reserve::take` guarantees to have
// the layout and to be exclusive until it is freed. Each block is freed where it came from, which its address shows. Nothing
// here unwinds or allocates.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        Self::or_reserve(unsafe { System.alloc(layout) }, layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout is passed on.
        let given = unsafe { System.alloc_zeroed(layout) };
        if !given.is_null() {
            return given;
        }
        let piece = Self::from_reserve(layout);
        if !piece.is_null() {
            // SAFETY: the piece has the layout's size, and is ours alone. It may have been used before.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.has(block) {
            RESERVE.give_back();
        } else {
            // SAFETY: a block that is not of the reserve came from the system, by the same layout.
            unsafe { System.dealloc(block, layout) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !RESERVE.has(block) {
            // SAFETY: a block that is not of the reserve came from the system, by the same layout, and the caller
            // promises about the new size what the system asks for.
            let given = unsafe { System.realloc(block, layout, new_size) };
            if !given.is_null() {
                return given;
            }
        }
        // SAFETY: the block is one of ours, and the caller's promises are passed on.
        unsafe { self.move_block(block, layout, new_size) }
    }
}

impl Allocator {
    /// What `realloc` does if a block cannot grow in place.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::realloc`].
    #[cold]
    unsafe fn move_block(self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the new size, rounded up to the alignment, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the new size is not zero, by the caller's promise.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            // SAFETY: both blocks are at least that long, and they are different blocks. The old one is not used again.
            unsafe {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// A size that no system gives.
    const TOO_MUCH: usize = 1 << 60;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("a layout")
    }

    #[test]
    fn what_the_system_gives_is_the_systems() {
        // SAFETY: the layout is not empty, and the block is used within it and given back once.
        unsafe {
            let block = Allocator.alloc(layout(100, 8));
            assert!(!block.is_null() && !RESERVE.has(block));
            let grown = Allocator.realloc(block, layout(100, 8), 5000);
            assert!(!grown.is_null() && !RESERVE.has(grown));
            Allocator.dealloc(grown, layout(5000, 8));
        }
    }

    #[test]
    fn what_the_system_has_it_would_give() {
        assert!(can_map(3 << 20));
        assert!(!can_map(TOO_MUCH));
    }

    #[test]
    fn a_large_request_is_refused_and_its_block_stays() {
        // SAFETY: the layouts are not empty; a block whose growth was refused is as it was.
        unsafe {
            // A block that nobody looks at the compiler takes for given.
            assert!(black_box(Allocator.alloc(layout(TOO_MUCH, 8))).is_null());
            assert!(black_box(Allocator.alloc_zeroed(layout(TOO_MUCH, 8))).is_null());
            let block = Allocator.alloc_zeroed(layout(100, 8));
            block.write(7);
            assert!(black_box(Allocator.realloc(block, layout(100, 8), TOO_MUCH)).is_null());
            assert_eq!((block.read(), block.add(99).read()), (7, 0));
            Allocator.dealloc(block, layout(100, 8));
        }
    }

    #[test]
    fn a_small_one_comes_from_the_reserve_and_is_told_once() {
        let piece = Allocator::or_reserve(std::ptr::null_mut(), layout(300, 64));
        assert!(RESERVE.has(piece) && piece.addr().is_multiple_of(64));
        assert_eq!(take_refused(), Some(300));
        assert_eq!(take_refused(), None);
        // SAFETY: the piece is of this layout. It is used within it, moved, and given back once.
        unsafe {
            piece.write_bytes(9, 300);
            let moved = Allocator.realloc(piece, layout(300, 64), 600);
            assert!(!RESERVE.has(moved), "the system gives again");
            assert_eq!((moved.read(), moved.add(299).read()), (9, 9));
            Allocator.dealloc(moved, layout(600, 64));
        }
        assert!(Allocator::or_reserve(std::ptr::null_mut(), layout(SMALL_BYTES_MAX + 1, 8)).is_null());
        assert_eq!(take_refused(), None, "an error says so already");
    }
}
