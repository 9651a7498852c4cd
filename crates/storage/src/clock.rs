//! Time as a value, so that a test can run hours of a slow disk in a moment.

use std::fmt;
use std::time::{Duration, Instant};

/// Tells the time and waits. Times count from an origin of the clock's own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now.
    fn now(&self) -> Duration;

    /// Returns at `deadline` or later; at once if it has passed.
    fn sleep_until(&self, deadline: Duration);
}

/// The real clock.
///
/// It sleeps and never spins: spinning would be more punctual, but would take processor time from the very work
/// whose speed is measured. Whoever needs exact rates accounts for the oversleep.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep_until(&self, deadline: Duration) {
        let left = deadline.saturating_sub(self.now());
        if !left.is_zero() {
            std::thread::sleep(left);
        }
    }
}
