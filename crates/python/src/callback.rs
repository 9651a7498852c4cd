//! Reports progress to Python.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_engine::sync::Mutex;
use forebay_engine::{Progress, while_looking_up};
use pyo3::prelude::*;

use crate::errors;
use crate::turns::Work;

/// Tells a Python object with the methods `begin`, `advance`, `end` and `note`. An error in one of them is reported as
/// Python reports errors that nobody can catch, and the work continues.
pub(crate) struct Callback {
    listener: Option<Py<PyAny>>,
    pending: Mutex<Pending>,
    cancelled: AtomicBool,
}

/// Samples that Python has not heard of yet.
struct Pending {
    samples: u64,
    told: Instant,
}

/// Python hears of progress at most so often, since each time costs a worker Python's lock.
const TELL_EVERY: Duration = Duration::from_millis(100);

impl Callback {
    pub(crate) fn new(listener: Option<Py<PyAny>>) -> Self {
        let pending = Mutex::new(Pending { samples: 0, told: Instant::now() });
        Self { listener, pending, cancelled: AtomicBool::new(false) }
    }

    /// Does `work`, whose functions are called as `calls`, on another thread, without holding Python's lock, and looks up for
    /// signals meanwhile: Ctrl-C ends the work.
    pub(crate) fn watch<T: Send>(&self, py: Python<'_>, calls: &Work, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        let mut interrupted = Ok(());
        let look_up = || {
            if interrupted.is_ok() {
                interrupted = Python::attach(|py| -> PyResult<()> {
                    py.check_signals()?;
                    Ok(())
                });
                if interrupted.is_err() {
                    self.cancelled.store(true, Ordering::Relaxed);
                    calls.end();
                }
            }
        };
        let done = py.detach(|| calls.await_it(|| while_looking_up(work, LOOK_UP, look_up)));
        interrupted?;
        done.map_err(|error| errors::engine(py, &error, None))
    }

    fn call(&self, tell: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        if let Some(listener) = &self.listener {
            Python::attach(|py| {
                let listener = listener.bind(py);
                if let Err(error) = tell(listener) {
                    error.write_unraisable(py, Some(listener));
                }
            });
        }
    }

    /// What is pending, if it is time (or `now`) to tell.
    fn due(&self, more: u64, now: bool) -> Option<u64> {
        let mut pending = self.pending.lock();
        pending.samples += more;
        if pending.samples == 0 || (!now && pending.told.elapsed() < TELL_EVERY) {
            return None;
        }
        pending.told = Instant::now();
        Some(std::mem::take(&mut pending.samples))
    }
}

/// Python is asked for signals so often: often enough that Ctrl-C seems immediate.
const LOOK_UP: Duration = Duration::from_millis(20);

impl Progress for Callback {
    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    fn begin(&self, what: &str, samples: u64) {
        self.call(|listener| listener.call_method1("begin", (what, samples)).map(drop));
    }

    fn advance(&self, samples: u64) {
        if let Some(samples) = self.due(samples, false) {
            self.call(|listener| listener.call_method1("advance", (samples,)).map(drop));
        }
    }

    fn end(&self) {
        if let Some(samples) = self.due(0, true) {
            self.call(|listener| listener.call_method1("advance", (samples,)).map(drop));
        }
        self.call(|listener| listener.call_method0("end").map(drop));
    }

    fn note(&self, message: &str) {
        self.call(|listener| listener.call_method1("note", (message,)).map(drop));
    }
}
