//! Which requests are slow, and how many of those may be sent a second time.
//!
//! A store answers most requests soon and a few late: the connection is bad, or the machine at its other end. Asked again, on another
//! connection, such a request is answered soon, too. So one that takes several times as long as others of its size did lately is sent once
//! more, and whichever comes first counts. A body of which nothing comes for several times as long as others ever paused is given up at once, and the
//! rest is asked for anew: many bodies that share a line all take long, but none of them pauses for long. Both are done within budgets: if all are slow,
//! the store is, and more requests would make it slower. That of bodies is the larger one, since no byte comes twice of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So many times the median is slow.
const SLOW: u32 = 4;
/// No request is slow before this.
const PATIENCE_MIN: Duration = Duration::from_millis(500);
/// No body is stalled before this: sooner than its request is slow, since less is asked for again.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// How many requests of a size are remembered, and how many it takes to know what is usual.
const REMEMBERED: usize = 32;
const KNOWN: usize = 8;
/// One in this many requests may be sent again, and no more of them in a row than were saved up. The first requests are sent together, and some of them may
/// be slow before any was saved.
const AGAIN: Budget = Budget { one_in: 16.0, saved_max: 8.0, saved: 4.0 };
/// The same of bodies whose rest is asked for.
const REST: Budget = Budget { one_in: 8.0, saved_max: 16.0, saved: 8.0 };

/// How long requests to a store took lately.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By size, each class twice as large as the one before.
    lately: HashMap<u32, VecDeque<Duration>>,
    /// The latencies of responses whose size was not known in advance.
    beginnings: VecDeque<Duration>,
    /// The longest pauses of bodies that arrived completely.
    pauses: VecDeque<Duration>,
    again: Budget,
    rest: Budget,
}

/// How many more requests may be made than are needed.
#[derive(Debug, Clone, Copy)]
struct Budget {
    one_in: f64,
    saved_max: f64,
    saved: f64,
}

impl Budget {
    fn earn(&mut self) {
        self.saved = (self.saved + 1.0 / self.one_in).min(self.saved_max);
    }

    fn spend(&mut self) -> bool {
        let may = self.saved >= 1.0;
        self.saved -= f64::from(u8::from(may));
        may
    }
}

impl Pace {
    pub(super) fn new() -> Self {
        let (lately, beginnings, pauses) = (HashMap::new(), VecDeque::new(), VecDeque::new());
        Self { state: Mutex::new(State { lately, beginnings, pauses, again: AGAIN, rest: REST }) }
    }

    /// The time after which a request of about this many bytes is slow; `None` while that is unknown.
    pub(super) fn patience(&self, bytes: u64) -> Option<Duration> {
        self.lock().lately.get(&class_of(bytes)).and_then(longer_than_usual).map(|slow| slow.max(PATIENCE_MIN))
    }

    /// How long to wait for the beginning of an answer of unknown size before it is slow; `None` while nobody knows.
    pub(super) fn patience_to_begin(&self) -> Option<Duration> {
        longer_than_usual(&self.lock().beginnings).map(|slow| slow.max(PATIENCE_MIN))
    }

    /// How long nothing may come of a body before it is stalled; `None` while nobody knows.
    pub(super) fn pause(&self) -> Option<Duration> {
        longer_than_usual(&self.lock().pauses).map(|stalled| stalled.max(PAUSE_MIN))
    }

    /// A body arrived completely, and never paused for longer than this.
    pub(super) fn note_pause(&self, longest: Duration) {
        let mut state = self.lock();
        state.rest.earn();
        remember(&mut state.pauses, longest);
    }

    /// An answer of unknown size took so long to begin.
    pub(super) fn note_beginning(&self, took: Duration) {
        remember(&mut self.lock().beginnings, took);
    }

    /// A request of about this many bytes took this long.
    pub(super) fn note(&self, bytes: u64, took: Duration) {
        let mut state = self.lock();
        state.again.earn();
        remember(state.lately.entry(class_of(bytes)).or_default(), took);
    }

    /// Whether one more may be sent again; if so, it counts.
    pub(super) fn spend(&self) -> bool {
        self.lock().again.spend()
    }

    /// Whether the rest of one more body may be asked for; if so, it counts.
    pub(super) fn spend_rest(&self) -> bool {
        self.lock().rest.spend()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remember(lately: &mut VecDeque<Duration>, one: Duration) {
    if lately.len() == REMEMBERED {
        lately.pop_front();
    }
    lately.push_back(one);
}

/// What is slow compared with these; `None` if there are too few.
fn longer_than_usual(lately: &VecDeque<Duration>) -> Option<Duration> {
    let mut sorted: Vec<Duration> = lately.iter().copied().collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).filter(|_| sorted.len() >= KNOWN)?;
    Some(*median * SLOW)
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
    fn bodies_are_stalled_that_pause_longer_than_others_did() {
        let pace = Pace::new();
        for number in 0..KNOWN {
            assert_eq!(pace.pause(), None, "{number} are too few to know");
            pace.note_pause(Duration::from_millis(200));
        }
        assert_eq!(pace.pause(), Some(Duration::from_millis(800)));
    }

    #[test]
    fn few_are_sent_again() {
        let pace = Pace::new();
        let spent = |pace: &Pace| std::iter::from_fn(|| pace.spend().then_some(())).count();
        assert_eq!(spent(&pace), AGAIN.saved as usize);
        let mut again = 0;
        for _ in 0..1600 {
            pace.note(1, Duration::from_secs(1));
            again += usize::from(pace.spend());
        }
        assert_eq!(again, 100);
        for _ in 0..1600 {
            pace.note(1, Duration::from_secs(1));
        }
        assert_eq!(spent(&pace), AGAIN.saved_max as usize);
    }
}
