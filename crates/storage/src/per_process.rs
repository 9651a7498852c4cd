//! What each process has for itself, also where it was forked of another one.
//!
//! A child has a copy of all its parent's memory, but none of its other threads. A lock that one of these held at that moment is locked in the child
//! for ever, and what it was about to change may be half changed. So what such locks are around is made anew by each process that asks for it. Which
//! is whose is found without a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// That many processes, each forked from the one before, have one of their own; those after them share the last.
const GENERATIONS: usize = 32;

#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    slots: [Slot<T>; GENERATIONS],
}

#[derive(Debug)]
struct Slot<T> {
    /// The number of the process that it belongs to; 0 while it belongs to none.
    process: AtomicU32,
    /// Only its own process ever makes it.
    value: OnceLock<T>,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: [const { Slot { process: AtomicU32::new(0), value: OnceLock::new() } }; GENERATIONS] }
    }

    /// That of this process, made if it is not there yet.
    pub(crate) fn get(&self, make: impl FnOnce() -> T) -> &T {
        self.get_in(std::process::id(), make)
    }

    /// That of this process, if it was made.
    pub(crate) fn made(&self) -> Option<&T> {
        let own = std::process::id();
        self.slots.iter().find(|slot| slot.process.load(Ordering::Acquire) == own)?.value.get()
    }

    fn get_in(&self, process: u32, make: impl FnOnce() -> T) -> &T {
        let is_own = |slot: &&Slot<T>| {
            let taken = slot.process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire);
            taken.is_ok() || taken == Err(process)
        };
        let slot = self.slots.iter().find(is_own).unwrap_or(&self.slots[GENERATIONS - 1]);
        slot.value.get_or_init(make)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_lock_of_the_parent_holds_up_no_child() {
        let each = PerProcess::new();
        let parent = each.get_in(7, || Mutex::new(7)).lock().unwrap();
        let child = each.get_in(8, || Mutex::new(8)).lock().unwrap();
        assert_eq!((*parent, *child), (7, 8));
        drop((parent, child));
        for process in [8, 7] {
            assert_eq!(*each.get_in(process, || unreachable!()).lock().unwrap(), process);
        }
        assert!(each.made().is_none());
        assert_eq!(*each.get(|| Mutex::new(1)).lock().unwrap(), 1);
        assert!(each.made().is_some());
    }

    #[test]
    fn many_generations_have_one_too() {
        let each = PerProcess::new();
        let all: Vec<u32> = (1..100).map(|process| *each.get_in(process, || process)).collect();
        assert!(all.iter().zip(1..).all(|(found, process)| *found == process.min(GENERATIONS as u32)));
    }

    #[test]
    fn threads_of_a_process_share_one() {
        let each = &PerProcess::new();
        std::thread::scope(|scope| {
            let asked: Vec<_> =
                (0..8).map(|number| scope.spawn(move || std::ptr::from_ref(each.get(|| number)).addr())).collect();
            let found: Vec<usize> = asked.into_iter().map(|asked| asked.join().unwrap()).collect();
            assert!(found.iter().all(|one| *one == found[0]));
        });
    }
}
