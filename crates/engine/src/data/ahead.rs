//! A file that is read in pieces from front to back, of which the next is under way while one is waited for.

use std::ops::Range;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use bytes::Bytes;
use forebay_storage::{File, Result, Version};

use crate::sync::Mutex;
use crate::threads::space_for_one;

/// Reads the next piece ahead, on a thread of its own, when two followed each other: it is taken to be as long as the second. Where the system has no space
/// for a thread, nothing is read ahead.
pub(super) struct Ahead<'scope, 'env> {
    file: &'env dyn File,
    scope: &'scope Scope<'scope, 'env>,
    state: Mutex<State<'scope>>,
}

#[derive(Default)]
struct State<'scope> {
    /// Where the last piece ended.
    end: u64,
    next: Option<(Range<u64>, ScopedJoinHandle<'scope, Result<Bytes>>)>,
}

impl<'scope, 'env> Ahead<'scope, 'env> {
    pub(super) fn new(file: &'env dyn File, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { file, scope, state: Mutex::default() }
    }

    /// Begins to read `length` bytes at `offset`, as far as there are so many.
    fn begin(&self, offset: u64, length: usize) -> Option<(Range<u64>, ScopedJoinHandle<'scope, Result<Bytes>>)> {
        let range = offset..offset.saturating_add(length as u64).min(self.file.size());
        if range.is_empty() || space_for_one().is_err() {
            return None;
        }
        let (file, length) = (self.file, (range.end - range.start) as usize);
        let started = Builder::new().spawn_scoped(self.scope, move || file.read(offset, length));
        Some((range, started.ok()?))
    }
}

impl File for Ahead<'_, '_> {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let end = offset.saturating_add(length as u64);
        let mut state = self.state.lock();
        let follows = offset > 0 && offset == state.end;
        let begun = state.next.take().filter(|(range, _)| range.start == offset && range.end >= end);
        (state.end, state.next) = (end, if follows { self.begin(end, length) } else { None });
        drop(state);
        let Some((_, reading)) = begun else { return self.file.read(offset, length) };
        let read = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map(|bytes| bytes.slice(..length))
    }

    fn version(&self) -> Option<Version> {
        self.file.version()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sync::modeled;

    /// A file of 1000 bytes; counts its reads, and has the one at 200 wait for another to be under way.
    #[derive(Default)]
    struct Slow {
        reads: AtomicUsize,
        under_way: AtomicUsize,
        together: AtomicUsize,
    }

    impl File for Slow {
        fn size(&self) -> u64 {
            1000
        }

        fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
            self.reads.fetch_add(1, Ordering::SeqCst);
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.together.fetch_max(now, Ordering::SeqCst);
            let deadline = Instant::now() + Duration::from_secs(5);
            // The first of each two waits for the second, so that this does not depend on how fast threads start.
            while self.together.load(Ordering::SeqCst) < 2 && offset == 200 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            Ok((offset..offset + length as u64).map(|at| at as u8).collect::<Vec<_>>().into())
        }
    }

    fn check(read: Result<Bytes>, range: Range<u64>) {
        assert_eq!(read.unwrap(), range.map(|at| at as u8).collect::<Vec<_>>());
    }

    #[test]
    fn two_pieces_are_under_way_where_all_is_read() {
        modeled(|| {
            let file = Slow::default();
            std::thread::scope(|scope| {
                let ahead = Ahead::new(&file, scope);
                for start in (0..1000).step_by(200) {
                    check(ahead.read(start, 200), start..start + 200);
                }
            });
            assert_eq!(file.reads.into_inner(), 5, "nothing is read twice, or beyond the end");
            assert_eq!(file.together.into_inner(), 2);
        });
    }

    #[test]
    fn whoever_goes_elsewhere_gets_what_lies_there() {
        modeled(|| {
            let file = Slow::default();
            std::thread::scope(|scope| {
                let ahead = Ahead::new(&file, scope);
                for (start, length) in
                    [(0, 100), (100, 50), (150, 80), (230, 20), (250, 10), (700, 50), (10, 5), (15, 985)]
                {
                    check(ahead.read(start, length), start..start + length as u64);
                }
            });
        });
    }
}
