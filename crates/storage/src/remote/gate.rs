//! How many requests one store has at a time: as many as it takes without complaint.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most requests at a time. One loader has up to 32 under way, 134 MB where each is 4 MiB: what 10 Gb/s bring in 107 ms. The others are for what
/// runs beside it, and for requests that are sent again.
pub(super) const IN_FLIGHT_MAX: usize = 64;
/// However much a store complains.
const IN_FLIGHT_MIN: f64 = 2.0;
/// Complaints of requests that were under way together count once.
const TOGETHER: Duration = Duration::from_millis(500);

/// Lets requests to one store in. When the store asks for fewer (429, 503), half as many are let in, and with each that succeeds a little
/// more again, as TCP does it.
#[derive(Debug)]
pub(super) struct Gate {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    in_flight: usize,
    limit: f64,
    cut: Option<Instant>,
}

impl Gate {
    pub(super) fn new() -> Self {
        let state = State { in_flight: 0, limit: IN_FLIGHT_MAX as f64, cut: None };
        Self { state: Mutex::new(state), freed: Condvar::new() }
    }

    /// Waits for a slot; `None` if none is free before `deadline`.
    pub(super) fn enter(&self, deadline: Instant) -> Option<Pass<'_>> {
        let mut state = self.lock();
        while state.in_flight as f64 >= state.limit.floor() {
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self.freed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.in_flight += 1;
        Some(Pass { gate: self })
    }

    /// A slot, if one is free now.
    pub(super) fn enter_now(&self) -> Option<Pass<'_>> {
        let mut state = self.lock();
        let is_free = (state.in_flight as f64) < state.limit.floor();
        state.in_flight += usize::from(is_free);
        is_free.then(|| Pass { gate: self })
    }

    /// The store asked for fewer requests.
    pub(super) fn slow_down(&self) {
        let mut state = self.lock();
        if state.cut.is_none_or(|cut| cut.elapsed() > TOGETHER) {
            state.limit = (state.limit / 2.0).max(IN_FLIGHT_MIN);
            state.cut = Some(Instant::now());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot for one request, released when dropped.
pub(super) struct Pass<'a> {
    gate: &'a Gate,
}

impl Pass<'_> {
    /// The request succeeded.
    pub(super) fn succeeded(&self) {
        let mut state = self.gate.lock();
        state.limit = (state.limit + 1.0 / state.limit).min(IN_FLIGHT_MAX as f64);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.gate.lock().in_flight -= 1;
        self.gate.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_halve_and_successes_raise() {
        let gate = Gate::new();
        let now = Instant::now();
        gate.slow_down();
        gate.slow_down();
        let passes: Vec<Pass<'_>> = std::iter::from_fn(|| gate.enter(now)).take(1000).collect();
        assert_eq!(passes.len(), IN_FLIGHT_MAX / 2, "complaints at the same time count once");
        assert!(gate.enter(now).is_none() && gate.enter_now().is_none());
        for _ in 0..=IN_FLIGHT_MAX / 2 {
            passes[0].succeeded();
        }
        let more = gate.enter_now();
        assert!(more.is_some());
        drop((more, passes));
        assert_eq!(gate.lock().in_flight, 0);
    }
}
