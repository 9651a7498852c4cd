//! Starting threads that share work.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, Scope};

use crate::error::{Error, Result};
use crate::sync::{Condvar, Mutex};

/// What a thread takes before it does anything: two megabytes of stack, and what the standard library and the C library take where
/// it begins (a stack for signals, a handle, a heap), generously. Those cannot refuse; they end the process.
const THREAD_BYTES: usize = 3 << 20;

/// How many cores this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Starts `count` threads that all do `work` until there is no more. Where the system refuses some of them, the others do it all;
/// it is an error if it refuses every one.
pub(crate) fn share<'scope>(
    scope: &'scope Scope<'scope, '_>,
    count: usize,
    doing: &'static str,
    work: &'scope (impl Fn() + Sync),
) -> Result<()> {
    let gate = Arc::new(Gate::default());
    let _opens = gate.opens();
    for started in 0..count {
        let theirs = Arc::clone(&gate);
        let enter_and_work = move || {
            theirs.enter();
            work();
        };
        match space_for_one().and_then(|()| Builder::new().spawn_scoped(scope, enter_and_work)) {
            Ok(_) => gate.wait_for(started + 1),
            Err(source) if started == 0 => return Err(cannot_start(doing, source)),
            Err(_) => break,
        }
    }
    Ok(())
}

/// What `work` makes of each number below `count`, in order, on up to so many threads (this one, if that is one). No further one is begun
/// after one that `ends` it; all before it are there.
pub(crate) fn each<T: Send>(
    count: usize,
    threads: usize,
    doing: &'static str,
    work: impl Fn(usize) -> T + Sync,
    ends: impl Fn(&T) -> bool + Sync,
) -> Result<Vec<T>> {
    // The number of the next, and what was made.
    let made = Mutex::new((0, Vec::new()));
    let all = || {
        loop {
            let number = {
                let mut made = made.lock();
                made.0 += 1;
                made.0 - 1
            };
            if number >= count {
                return;
            }
            let result = work(number);
            let mut made = made.lock();
            if ends(&result) {
                made.0 = count;
            }
            made.1.push((number, result));
        }
    };
    if threads.min(count) > 1 {
        std::thread::scope(|scope| share(scope, threads.min(count), doing, &all))?;
    } else {
        all();
    }
    let (_, mut made) = made.into_inner();
    made.sort_unstable_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, result)| result).collect())
}

/// Where threads wait until all of them have begun. What one works with must not be the memory that another needs to begin, which
/// it cannot be refused.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// How many threads have begun, and whether they may go on.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

/// Opens a gate when it is dropped, whatever happened.
pub(crate) struct Opens<'g>(&'g Gate);

impl Drop for Opens<'_> {
    fn drop(&mut self) {
        self.0.state.lock().1 = true;
        self.0.changed.notify_all();
    }
}

impl Gate {
    pub(crate) fn opens(&self) -> Opens<'_> {
        Opens(self)
    }

    /// A thread that has begun waits here.
    pub(crate) fn enter(&self) {
        let mut state = self.state.lock();
        state.0 += 1;
        self.changed.notify_all();
        while !state.1 {
            self.changed.wait(&mut state);
        }
    }

    /// Waits until so many have begun.
    pub(crate) fn wait_for(&self, begun: usize) {
        let mut state = self.state.lock();
        while state.0 < begun {
            self.changed.wait(&mut state);
        }
    }
}

/// An error where the system has no space for another thread: asked before each one is started.
pub(crate) fn space_for_one() -> io::Result<()> {
    if forebay_allocator::can_map(THREAD_BYTES) { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) }
}

/// The error of a thread that could not be started.
pub(crate) fn cannot_start(doing: &'static str, source: io::Error) -> Error {
    Error::Io { doing: "start a thread for", path: doing.into(), source }
}
