//! One request: it waits its turn, and ends in a bounded time.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::ObjectStore;

use super::failure::{of_store, too_slow};
use super::location::Location;
use super::process::Process;

/// How long anything may take, retries and all.
const TIME_MAX: Duration = Duration::from_mins(4);
/// And besides, for its bytes: a store that is slower than this is as good as gone.
const BYTES_PER_SECOND_MIN: u64 = 100_000;

/// How long moving so many bytes may take.
pub(super) fn time_for(bytes: u64) -> Duration {
    TIME_MAX + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN)
}

/// Has the store of `location` do `work`, which moves about so many bytes. The thread that asks waits for it.
pub(super) fn request<T, F>(
    location: &Location,
    bytes: u64,
    work: impl FnOnce(Arc<dyn ObjectStore>) -> F,
) -> io::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let done = request_or(location, bytes, work)?;
    done.map_err(|error| of_store(&error))
}

/// The same, where an error of the store may be what was hoped for.
pub(super) fn request_or<T, F>(
    location: &Location,
    bytes: u64,
    work: impl FnOnce(Arc<dyn ObjectStore>) -> F,
) -> io::Result<object_store::Result<T>>
where
    F: Future<Output = object_store::Result<T>>,
{
    let process = Process::current()?;
    let store = process.store(location)?;
    let time = time_for(bytes);
    let deadline = Instant::now() + time;
    let pass = store.gate.enter(deadline).ok_or_else(|| too_slow(time))?;
    let left = deadline.saturating_duration_since(Instant::now());
    let work = work(store.objects);
    let done = process.runtime.block_on(async { tokio::time::timeout(left, work).await });
    let done = done.map_err(|_| too_slow(time))?;
    if done.is_ok() {
        pass.succeeded();
    }
    Ok(done)
}
