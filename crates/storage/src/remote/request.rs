//! One request: it waits its turn, and ends in a bounded time.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use object_store::ObjectStore;

use super::failure::{of_store, too_slow};
use super::location::Location;
use super::pace::Pace;
use super::process::{Process, Store};

/// How long anything may take, retries and all.
const TIME_MAX: Duration = Duration::from_mins(4);
/// In addition, for its bytes: a store that is slower than this counts as unreachable.
const BYTES_PER_SECOND_MIN: u64 = 100_000;
/// How often it is looked whether a request has become slow that was not, or may now be sent again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long transferring this many bytes may take.
pub(super) fn time_for(bytes: u64) -> Duration {
    TIME_MAX + Duration::from_secs(bytes / BYTES_PER_SECOND_MIN)
}

/// Runs `work`, which transfers about this many bytes, with the store of `location`. The calling thread waits for it.
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
    run(location, &Cell::new(Some(bytes)), |store| work(store.objects))
}

/// The same for work that looks at the store's pace itself.
pub(super) fn request_paced<T, F>(location: &Location, bytes: u64, work: impl FnOnce(Store) -> F) -> io::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    run(location, &Cell::new(Some(bytes)), work)?.map_err(|error| of_store(&error))
}

/// The same for what may be asked twice, as reading may: `work` is begun once more if it is slow, and whichever is done first counts. Where nobody
/// knows how many bytes it moves, it sets `bytes` once it does.
pub(super) fn request_again<T, F>(
    location: &Location,
    bytes: &Cell<Option<u64>>,
    work: impl Fn(Store) -> F,
) -> io::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let done = run(location, bytes, |store| hedged(store, bytes, work))?;
    done.map_err(|error| of_store(&error))
}

fn run<T, F>(
    location: &Location,
    bytes: &Cell<Option<u64>>,
    work: impl FnOnce(Store) -> F,
) -> io::Result<object_store::Result<T>>
where
    F: Future<Output = object_store::Result<T>>,
{
    let process = Process::current()?;
    let store = process.store(location)?;
    let begun = Instant::now();
    let time = || time_for(bytes.get().unwrap_or(0));
    let pass = store.gate.enter(begun + time()).ok_or_else(|| too_slow(time()))?;
    let done = process.runtime.block_on(async {
        let mut work = pin!(work(store.clone()));
        loop {
            // There is more time once there are known to be more bytes.
            let left = time().saturating_sub(begun.elapsed());
            match tokio::time::timeout(left, work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_) if begun.elapsed() < time() => {}
                Err(_) => return Err(too_slow(time())),
            }
        }
    })?;
    if done.is_ok() {
        pass.succeeded();
    }
    Ok(done)
}

async fn hedged<T, F>(store: Store, bytes: &Cell<Option<u64>>, work: impl Fn(Store) -> F) -> object_store::Result<T>
where
    F: Future<Output = object_store::Result<T>>,
{
    let begun = Instant::now();
    let patience = || match bytes.get() {
        Some(bytes) => store.pace.patience(bytes),
        None => store.pace.patience_to_begin(),
    };
    let mut first = pin!(work(store.clone()));
    let done = loop {
        let mut wait = time_left(patience(), begun);
        if wait.is_zero() {
            if let Some(_pass) = store.gate.enter_now().filter(|_| store.pace.spend()) {
                break either(first, pin!(work(store.clone()))).await;
            }
            wait = LOOK_AGAIN;
        }
        if let Either::Left((done, _)) = select(first.as_mut(), pin!(tokio::time::sleep(wait))).await {
            break done;
        }
    };
    if let (Ok(_), Some(bytes)) = (&done, bytes.get()) {
        store.pace.note(bytes, begun.elapsed());
    }
    done
}

/// How long to wait before looking again whether it is over.
fn time_left(patience: Option<Duration>, begun: Instant) -> Duration {
    patience.map_or(LOOK_AGAIN, |patience| patience.saturating_sub(begun.elapsed()))
}

/// What `next` gives; `None` where it pauses for longer than is usual, and may be asked for anew.
pub(super) async fn unless_stalled<T>(pace: &Pace, next: impl Future<Output = T>) -> Option<T> {
    let begun = Instant::now();
    let mut next = pin!(next);
    loop {
        let mut wait = time_left(pace.pause(), begun);
        if wait.is_zero() {
            if pace.spend_rest() {
                return None;
            }
            wait = LOOK_AGAIN;
        }
        if let Ok(next) = tokio::time::timeout(wait, next.as_mut()).await {
            return Some(next);
        }
    }
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
