//! A storage that is as slow as one chooses.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::schedule::{Cost, Schedule, continues};
use crate::simulated_cache::{FileId, SimulatedCache};
use crate::{
    Clock, DroppedCache, Entry, EntryKind, File, Lock, Result, Status, Storage, SystemClock, Throttle, Upload, Walk,
};

/// How much oversleep is made good by the next read. A sleep is typically late by tens of microseconds, which would distort
/// the rate of small reads. More than this is not the timer but a busy processor, which a real device would not make up for.
const OVERSLEEP_MAX: Duration = Duration::from_millis(1);

/// Wraps another storage and makes each read last as long as it would on the storage that a [`Throttle`] describes.
///
/// The bytes come from the wrapped storage; if that is slower than the model, so is this.
#[derive(Debug)]
pub struct ThrottledStorage {
    inner: Arc<dyn Storage>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: u64,
    throttle: Throttle,
    clock: Arc<dyn Clock>,
    schedule: Mutex<Schedule>,
    cache: Option<Mutex<SimulatedCache>>,
    /// Whether files represent longer ones.
    loops: bool,
    /// What was not in the simulated cache.
    bytes_read: AtomicU64,
}

impl ThrottledStorage {
    /// Throttles `inner` in real time, without a simulated page cache.
    pub fn new(inner: Arc<dyn Storage>, throttle: Throttle) -> Result<Self> {
        Self::with_clock(inner, throttle, Arc::new(SystemClock::new()))
    }

    /// Throttles `inner` by the given clock.
    pub fn with_clock(inner: Arc<dyn Storage>, throttle: Throttle, clock: Arc<dyn Clock>) -> Result<Self> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        throttle.check()?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Self { inner, shared: Arc::new(Shared::new(id, throttle, clock, None, false)) })
    }

    /// Adds a simulated page cache of this size, empty; 0 for none.
    ///
    /// What has been read is then served without throttling as long as it is among the most recently used `bytes`, in blocks
    /// of 128 KiB. A block that is missing is charged in full, as read-ahead would. Call this before opening files: those
    /// that are open keep the cache they had.
    #[must_use]
    pub fn with_page_cache(self, bytes: u64) -> Self {
        let cache = (bytes > 0).then(|| Mutex::new(SimulatedCache::new(bytes)));
        self.with(cache, false)
    }

    /// Lets files stand for longer ones: a read where a file was begun, after one that reached as far as any, goes on and is no
    /// seek. For measurements that read a few samples again and again; there is no simulated page cache then.
    #[must_use]
    pub fn with_loops(self) -> Self {
        self.with(None, true)
    }

    fn with(self, cache: Option<Mutex<SimulatedCache>>, loops: bool) -> Self {
        let (throttle, clock) = (self.shared.throttle.clone(), Arc::clone(&self.shared.clock));
        Self { inner: self.inner, shared: Arc::new(Shared::new(self.shared.id, throttle, clock, cache, loops)) }
    }

    /// The figures of this storage.
    pub fn throttle(&self) -> &Throttle {
        &self.shared.throttle
    }
}

impl Shared {
    fn new(
        id: u64,
        throttle: Throttle,
        clock: Arc<dyn Clock>,
        cache: Option<Mutex<SimulatedCache>>,
        loops: bool,
    ) -> Self {
        let schedule = Mutex::new(Schedule::default());
        Self { id, throttle, clock, schedule, cache, loops, bytes_read: AtomicU64::new(0) }
    }
}

impl Storage for ThrottledStorage {
    fn name(&self) -> &str {
        &self.shared.throttle.name
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        let inner = self.inner.open(path)?;
        let id = self.shared.cache.as_ref().map(|cache| lock(cache).file(path, inner.size()));
        Ok(Box::new(ThrottledFile { inner, shared: Arc::clone(&self.shared), id, head: Mutex::new(Head::default()) }))
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        self.inner.status(path)
    }

    fn is_taken(&self, path: &Path) -> Result<bool> {
        self.inner.is_taken(path)
    }

    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        self.inner.kind(path)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.inner.entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.inner.walk(root, wanted)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.inner.create(path)
    }

    fn create_shared(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.inner.create_shared(path)
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.inner.write_new(path, content)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        self.inner.make_folder(path)
    }

    fn own_folder(&self, path: &Path) -> Result<()> {
        self.inner.own_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        self.inner.remove_folder(path)
    }

    fn reads_at_once(&self, path: &Path) -> usize {
        self.inner.reads_at_once(path)
    }

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.inner.lock(path)
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        if let Some(cache) = &self.shared.cache {
            lock(cache).forget(paths);
        }
        self.inner.drop_cache(paths)
    }

    fn device_bytes_read(&self) -> Option<u64> {
        Some(self.shared.bytes_read.load(Ordering::Relaxed))
    }

    fn notice(&self) -> Option<String> {
        self.inner.notice()
    }
}

struct ThrottledFile {
    inner: Box<dyn File>,
    shared: Arc<Shared>,
    /// What the simulated cache knows this file as, if there is one.
    id: Option<FileId>,
    head: Mutex<Head>,
}

/// Where the reads of an open file were.
#[derive(Debug, Default)]
struct Head {
    /// Where the last one left the device; `None` before the first.
    position: Option<u64>,
    /// Where the first began.
    begin: u64,
    /// How far any of them reached.
    furthest: u64,
}

impl Head {
    /// Whether a read at `offset` begins the file again after it was read to its end.
    fn begins_again(&self, offset: u64) -> bool {
        self.position == Some(self.furthest) && offset == self.begin
    }

    fn moved(&mut self, offset: u64, end: u64) {
        if self.position.replace(end).is_none() {
            self.begin = offset;
        }
        self.furthest = self.furthest.max(end);
    }
}

impl File for ThrottledFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let cost = self.cost(offset, length as u64);
        if cost == Cost::default() {
            return self.inner.read(offset, length);
        }
        self.shared.bytes_read.fetch_add(cost.bytes, Ordering::Relaxed);
        let pace = Pace::start(&self.shared, cost);
        // The real read happens within the simulated time, not after it.
        let bytes = self.inner.read(offset, length)?;
        pace.finish();
        Ok(bytes)
    }

    fn advise_sequential(&self) {
        self.inner.advise_sequential();
    }
}

impl ThrottledFile {
    fn cost(&self, offset: u64, length: u64) -> Cost {
        // Nothing costs nothing, and neither does a range beyond the end, which the wrapped storage refuses.
        let end = offset.saturating_add(length);
        if length == 0 || end > self.size() {
            return Cost::default();
        }
        let mut head = lock(&self.head);
        if let (Some(cache), Some(id)) = (&self.shared.cache, self.id) {
            return lock(cache).read(id, self.size(), offset, length, &mut head.position);
        }
        let goes_on = continues(head.position, offset, length) || self.shared.loops && head.begins_again(offset);
        head.moved(offset, end);
        Cost { bytes: length, seeks: u32::from(!goes_on) }
    }
}

thread_local! {
    /// By how much the last read of this thread was late, and on which storage.
    static LATENESS: Cell<(u64, Duration)> = const { Cell::new((u64::MAX, Duration::ZERO)) };
}

/// One read that is being slowed down.
struct Pace<'a> {
    shared: &'a Shared,
    deadline: Duration,
}

impl<'a> Pace<'a> {
    /// Reserves the read's share of the device. Only this is done under the lock; the waiting is not.
    fn start(shared: &'a Shared, cost: Cost) -> Self {
        let (id, lateness) = LATENESS.get();
        let credit = if id == shared.id { lateness } else { Duration::ZERO };
        // Counting from when the previous read should have ended keeps oversleep from adding up over many reads.
        let start = shared.clock.now().saturating_sub(credit);
        let deadline = lock(&shared.schedule).reserve(&shared.throttle, start, cost);
        Self { shared, deadline }
    }

    fn finish(self) {
        self.shared.clock.sleep_until(self.deadline);
        let lateness = self.shared.clock.now().saturating_sub(self.deadline);
        LATENESS.set((self.shared.id, lateness.min(OVERSLEEP_MAX)));
    }
}

/// Locks data that stays consistent even if another thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
