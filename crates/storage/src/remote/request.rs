//! One request: it waits its turn, and ends in a bounded time.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use object_store::ObjectStore;

use super::failure::{of_store, too_slow};
use super::location::Location;
use super::process::{Process, Store};

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
    run(location, bytes, |store| work(store.objects))
}

/// The same for what may be asked twice, as reading may: `work` is begun once more if it is slow, and whichever is done first counts.
pub(super) fn request_again<T, F>(
    location: &Location,
    bytes: u64,
    work: impl Fn(Arc<dyn ObjectStore>) -> F,
) -> io::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let done = run(location, bytes, |store| hedged(store, bytes, work))?;
    done.map_err(|error| of_store(&error))
}

fn run<T, F>(location: &Location, bytes: u64, work: impl FnOnce(Store) -> F) -> io::Result<object_store::Result<T>>
where
    F: Future<Output = object_store::Result<T>>,
{
    let process = Process::current()?;
    let store = process.store(location)?;
    let time = time_for(bytes);
    let deadline = Instant::now() + time;
    let pass = store.gate.enter(deadline).ok_or_else(|| too_slow(time))?;
    let left = deadline.saturating_duration_since(Instant::now());
    let work = work(store.clone());
    let done = process.runtime.block_on(async { tokio::time::timeout(left, work).await });
    let done = done.map_err(|_| too_slow(time))?;
    if done.is_ok() {
        pass.succeeded();
    }
    Ok(done)
}

async fn hedged<T, F>(store: Store, bytes: u64, work: impl Fn(Arc<dyn ObjectStore>) -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let begun = Instant::now();
    let first = pin!(work(Arc::clone(&store.objects)));
    let done = match store.pace.patience(bytes) {
        None => first.await,
        Some(patience) => match select(first, pin!(tokio::time::sleep(patience))).await {
            Either::Left((done, _)) => done,
            Either::Right(((), first)) => match store.gate.enter_now().filter(|_| store.pace.spend()) {
                Some(_pass) => either(first, pin!(work(Arc::clone(&store.objects)))).await,
                None => first.await,
            },
        },
    };
    if done.is_ok() {
        store.pace.note(bytes, begun.elapsed());
    }
    done
}

/// What is done first; an error only where both fail.
async fn either<T>(
    first: impl Future<Output = object_store::Result<T>> + Unpin,
    second: impl Future<Output = object_store::Result<T>> + Unpin,
) -> object_store::Result<T> {
    match select(first, second).await {
        Either::Left((Ok(done), _)) | Either::Right((Ok(done), _)) => Ok(done),
        Either::Left((Err(_), second)) => second.await,
        Either::Right((Err(_), first)) => first.await,
    }
}
