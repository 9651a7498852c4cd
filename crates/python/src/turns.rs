//! Whose turn it is to call a Python function: one call at a time in the whole process, unless a function is said to be
//! thread-safe.
//!
//! Python's own lock does not see to that. It goes from thread to thread between two bytecodes, and extensions let go of it
//! in the middle of a call, so that two calls of one function mix: what one wrote into an array that they share, or into a
//! generator of random numbers (NumPy's and PyTorch's are of the whole process), the other reads.
//!
//! - No thread waits for a turn while holding the GIL, and a thread that has a turn may wait for the GIL: so there is no deadlock.
//! - A function may itself load, build or profile with functions. While it waits for that work, the work (and what that waits
//!   for in turn) calls its functions on the waiting function's turn.
//! - Who waits for a turn of work that is ended meanwhile gives up, so that Ctrl-C waits for one call, not for one of each
//!   thread.
//! - A child process begins without turns: the threads that had them are not there (`before_fork` and what follows it).

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_engine::sync::{Condvar, Guard, Mutex};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::raised::Raised;

/// Work that calls functions: an epoch, a build, a profile.
#[derive(Debug, Clone)]
pub(crate) struct Work(Arc<Identity>);

#[derive(Debug)]
struct Identity {
    number: u64,
    ended: AtomicBool,
    raised: Mutex<FirstRaised>,
}

/// What its functions raised: how often, and the first of it.
#[derive(Debug, Default)]
struct FirstRaised {
    count: u64,
    first: Option<Raised>,
}

/// A call of a function that is under way on this thread. Nobody else has a turn until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    number: Option<u64>,
    /// The call that this thread was in before.
    outer: Option<Waiter>,
}

struct Turns {
    /// The calls that have a turn, the innermost last: each of the others waits for work that the one after it is part of.
    calls: Vec<u64>,
    /// Who waits for which work, of the calls that are under way.
    waiting: Vec<(Waiter, u64)>,
}

/// A call that waits for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// It has this turn.
    Turn(u64),
    /// It is of a thread-safe function, which this work calls.
    Work(u64),
}

static TURNS: Mutex<Turns> = Mutex::new(Turns { calls: Vec::new(), waiting: Vec::new() });
static CHANGED: Condvar = Condvar::new();
/// Numbers turns and work.
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The call that this thread is in.
    static INSIDE: Cell<Option<Waiter>> = const { Cell::new(None) };
    /// Keeps others from the turns while this thread forks.
    static FORKING: RefCell<Option<Guard<'static, Turns>>> = const { RefCell::new(None) };
}

impl Turns {
    /// Whether `work` may call a function: nobody does, or the call that does waits for it.
    fn may_call(&self, work: u64) -> bool {
        let Some(&innermost) = self.calls.last() else { return true };
        let mut awaited = Vec::new();
        let mut next = vec![Waiter::Turn(innermost)];
        while let Some(waiter) = next.pop() {
            for (_, other) in self.waiting.iter().filter(|(found, _)| *found == waiter) {
                if !awaited.contains(other) {
                    awaited.push(*other);
                    next.push(Waiter::Work(*other));
                }
            }
        }
        awaited.contains(&work)
    }
}

impl Work {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Identity {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            ended: AtomicBool::new(false),
            raised: Mutex::new(FirstRaised { count: 0, first: None }),
        }))
    }

    pub(crate) fn note_raised(&self, py: Python<'_>, raised: &Raised) {
        let mut noted = self.0.raised.lock();
        noted.count += 1;
        noted.first.get_or_insert_with(|| raised.clone_ref(py));
    }

    /// What a function raised first, if functions raised something on at least `samples` samples.
    pub(crate) fn raised_on(&self, py: Python<'_>, samples: u64) -> Option<Raised> {
        let noted = self.0.raised.lock();
        noted.first.as_ref().filter(|_| noted.count >= samples).map(|raised| raised.clone_ref(py))
    }

    /// Waits until this work may call a function that is not thread-safe; `None` if the work was ended. Python's lock must
    /// not be held.
    pub(crate) fn turn(&self) -> Option<Turn> {
        let mut turns = TURNS.lock();
        loop {
            if self.is_ended() {
                // What woke this thread up may have been meant for another.
                CHANGED.notify_all();
                return None;
            }
            if turns.may_call(self.0.number) {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                turns.calls.push(number);
                let outer = INSIDE.replace(Some(Waiter::Turn(number)));
                return Some(Turn { number: Some(number), outer });
            }
            CHANGED.wait(&mut turns);
        }
    }

    /// The same for a function that is thread-safe, and waits for nobody.
    pub(crate) fn parallel(&self) -> Turn {
        let outer = INSIDE.replace(Some(Waiter::Work(self.0.number)));
        Turn { number: None, outer }
    }

    /// Does `wait`, which waits for this work. Where a function does that, the work's functions are called on its turn.
    pub(crate) fn await_it<T>(&self, wait: impl FnOnce() -> T) -> T {
        let Some(waiter) = INSIDE.get() else { return wait() };
        let waiting = (waiter, self.0.number);
        TURNS.lock().waiting.push(waiting);
        CHANGED.notify_all();
        let done = wait();
        let mut turns = TURNS.lock();
        if let Some(index) = turns.waiting.iter().position(|found| *found == waiting) {
            turns.waiting.swap_remove(index);
        }
        if let Waiter::Turn(number) = waiter {
            // A call on this turn may be under way still.
            while turns.calls.contains(&number) && turns.calls.last() != Some(&number) {
                CHANGED.wait(&mut turns);
            }
        }
        done
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Nobody waits for a turn of this work any more.
    pub(crate) fn end(&self) {
        // With the lock held, or a thread that is about to wait would not hear of it.
        let _turns = TURNS.lock();
        self.0.ended.store(true, Ordering::Relaxed);
        CHANGED.notify_all();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        INSIDE.set(self.outer);
        let Some(number) = self.number else { return };
        let mut turns = TURNS.lock();
        turns.calls.retain(|call| *call != number);
        // Where no call is under way, all that wait may go on alike, and one of them can. Otherwise it must be the right one.
        if turns.calls.is_empty() && turns.waiting.is_empty() { CHANGED.notify_one() } else { CHANGED.notify_all() }
    }
}

/// Has Python keep the turns in order when a process forks.
pub(crate) fn register_at_fork(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    // Not every system can fork.
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    register.call((), Some(&hooks)).map(drop)
}

/// The turns are held for moments only, and never while anything is waited for.
#[pyfunction]
fn before_fork() {
    let turns = TURNS.lock();
    FORKING.set(Some(turns));
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKING.set(None);
}

#[pyfunction]
fn after_fork_in_child() {
    if let Some(mut turns) = FORKING.take() {
        turns.calls.clear();
        turns.waiting.clear();
    }
}
