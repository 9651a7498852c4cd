//! Progress of long work, for the front that shows it. This crate does not print.

use std::thread::Builder;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::threads::{cannot_start, space_for_one};

/// Sees long work go on. Called from several threads.
pub trait Progress: Sync {
    /// A phase of that many samples begins.
    fn begin(&self, what: &str, samples: u64) {
        let _ = (what, samples);
    }

    /// So many more samples are done.
    fn advance(&self, samples: u64) {
        let _ = samples;
    }

    /// The piece of work is over.
    fn end(&self) {}

    /// Whether the work is to end now, with [`Error::Cancelled`](crate::Error::Cancelled). Asked for every sample or batch.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Something worth knowing that is not an error.
    fn note(&self, message: &str) {
        let _ = message;
    }
}

/// An error once the user wants no more, or memory is not there for more.
pub(crate) fn while_wanted(progress: &dyn Progress) -> Result<()> {
    Error::if_memory_was_refused()?;
    if progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// Does `work` on a thread of its own, while this one calls `look_up` every so often: for callers whose thread must see to
/// something else, such as signals. An error if the work panicked.
pub fn while_looking_up<T: Send>(
    work: impl FnOnce() -> T + Send,
    every: Duration,
    mut look_up: impl FnMut(),
) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = space_for_one()
            .and_then(|()| Builder::new().spawn_scoped(scope, work))
            .map_err(|source| cannot_start("the work", source))?;
        while !worker.is_finished() {
            std::thread::sleep(every);
            look_up();
        }
        worker.join().map_err(|panic| Error::panicked(&*panic))
    })
}

/// Shows nothing.
impl Progress for () {}
