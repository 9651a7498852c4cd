//! Which requests are slow, and how many of those may be sent a second time.
//!
//! A store answers most requests soon and a few late: the connection is bad, or the machine at its other end. Asked again, on another
//! connection, such a request is answered soon, too. So one that takes several times as long as others of its size did lately is sent once
//! more, and whichever comes first counts. That is done within a budget: if all are slow, the store is, and more requests would make it slower.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many times the median is slow.
const SLOW: u32 = 4;
/// Nothing is slow before this.
const PATIENCE_MIN: Duration = Duration::from_millis(250);
/// How many requests of a size are remembered, and how many it takes to know what is usual.
const REMEMBERED: usize = 32;
const KNOWN: usize = 8;
/// One in so many requests may be sent again, and not more of them in a row than were saved up.
const ONE_IN: f64 = 16.0;
const SAVED_MAX: f64 = 8.0;

/// How long requests to a store took lately.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By size, each class twice as large as the one before.
    lately: HashMap<u32, VecDeque<Duration>>,
    /// How many may be sent again now.
    saved: f64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { lately: HashMap::new(), saved: 1.0 }) }
    }

    /// How long to wait for a request of about so many bytes before it is slow; `None` while nobody knows.
    pub(super) fn patience(&self, bytes: u64) -> Option<Duration> {
        let state = self.lock();
        let lately = state.lately.get(&class_of(bytes)).filter(|lately| lately.len() >= KNOWN)?;
        let mut sorted: Vec<Duration> = lately.iter().copied().collect();
        sorted.sort_unstable();
        Some((sorted[sorted.len() / 2] * SLOW).max(PATIENCE_MIN))
    }

    /// A request of about so many bytes took so long.
    pub(super) fn note(&self, bytes: u64, took: Duration) {
        let mut state = self.lock();
        state.saved = (state.saved + 1.0 / ONE_IN).min(SAVED_MAX);
        let lately = state.lately.entry(class_of(bytes)).or_default();
        if lately.len() == REMEMBERED {
            lately.pop_front();
        }
        lately.push_back(took);
    }

    /// Whether one more may be sent again; if so, it counts.
    pub(super) fn spend(&self) -> bool {
        let mut state = self.lock();
        let may = state.saved >= 1.0;
        state.saved -= f64::from(u8::from(may));
        may
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sizes that are alike.
fn class_of(bytes: u64) -> u32 {
    bytes.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_is_what_takes_longer_than_others_of_its_size() {
        let pace = Pace::new();
        for number in 0..KNOWN as u32 {
            assert_eq!(pace.patience(5000), None, "{number} are too few to know");
            pace.note(4096 + u64::from(number), Duration::from_secs(1));
        }
        assert_eq!(pace.patience(5000), Some(Duration::from_secs(4)));
        assert_eq!(pace.patience(10_000), None, "of another size");
        for _ in 0..=KNOWN {
            pace.note(5000, Duration::from_mins(1));
        }
        assert_eq!(pace.patience(5000), Some(Duration::from_mins(4)), "more than half");
        // What was before is forgotten, and a few that are slow count for nothing.
        for number in 0..REMEMBERED {
            let took = if number % 8 == 0 { Duration::from_mins(1) } else { Duration::from_micros(10) };
            pace.note(5000, took);
        }
        assert_eq!(pace.patience(5000), Some(PATIENCE_MIN));
    }

    #[test]
    fn few_are_sent_again() {
        let pace = Pace::new();
        assert!(pace.spend() && !pace.spend());
        let mut again = 0;
        for _ in 0..1600 {
            pace.note(1, Duration::from_secs(1));
            again += usize::from(pace.spend());
        }
        assert_eq!(again, 100);
        for _ in 0..1600 {
            pace.note(1, Duration::from_secs(1));
        }
        assert_eq!(std::iter::from_fn(|| pace.spend().then_some(())).count(), SAVED_MAX as usize);
    }
}
