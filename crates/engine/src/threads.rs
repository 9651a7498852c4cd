//! Starting threads that share work.

use std::thread::{Builder, Scope};

use crate::error::{Error, Result};

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
    for started in 0..count {
        match Builder::new().spawn_scoped(scope, work) {
            Ok(_) => {}
            Err(source) if started == 0 => return Err(cannot_start(doing, source)),
            Err(_) => break,
        }
    }
    Ok(())
}

/// The error of a thread that could not be started.
pub(crate) fn cannot_start(doing: &'static str, source: std::io::Error) -> Error {
    Error::Io { doing: "start a thread for", path: doing.into(), source }
}
