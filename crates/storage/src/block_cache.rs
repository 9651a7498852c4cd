//! Blocks of objects, cached on a local disk from run to run.
//!
//! ```text
//! folder/GROUP/OBJECT-VERSION-NUMBER.block     a block of 1 MiB (the last of an object is shorter), and the XXH3-64 of its bytes
//!        GROUP    of the folder that contains the object: those of a data set are together
//!        OBJECT   of its URL
//!        VERSION  of its entity tag and size: what was replaced is not found
//! ```
//!
//! A block is written under a temporary name and renamed, so that several processes can share a folder, and a process that is killed leaves nothing
//! that looks like a block. Its leftovers are removed after an hour, when space is needed. Every block is verified by its checksum when it is read; a damaged one is removed and fetched again.
//!
//! If the data is larger than the cache, the first blocks stay: with LRU eviction, an epoch would evict every block
//! before it is read again, and the cache would never hit. Only blocks of other folders, and of outdated versions, are evicted.
//!
//! All caches of a process in one folder know of each other: two loaders that are in use at the same time would otherwise take turns evicting
//! all that the other one has. Other processes are not asked: one that reads other data may evict the blocks of this one. What they add is
//! looked at from time to time, so that each of them may exceed the size by a 64th of it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::local::cannot_write;
use crate::per_process::PerProcess;
use crate::writing::{create_fresh, name_of_its_own};
use crate::{Result, Version};

/// The size of a block.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// What follows the bytes of a block.
const CHECKSUM_BYTES: usize = 8;
const SUFFIX: &str = "block";
/// An incomplete block of this age was left by a process that was killed: writing a block takes less than a second.
const LEFT_AFTER: Duration = Duration::from_hours(1);
/// After at most this many new blocks, the cache checks what other processes added; this many are evicted at once.
const LOOK_EVERY_MAX: u64 = 256;
/// In a small cache, after one in this many of the blocks that it can hold.
const LOOKS: u64 = 64;

/// A folder of blocks.
#[derive(Debug)]
pub(crate) struct BlockCache {
    folder: PathBuf,
    bytes_max: u64,
    /// A process that was forked knows nothing at first.
    known: PerProcess<Known>,
}

/// What a process knows of a cache.
#[derive(Debug)]
struct Known {
    /// What it is called among those of the process.
    number: u64,
    shared: Arc<Mutex<State>>,
}

/// What all caches of a process in one folder know.
#[derive(Debug, Default)]
struct State {
    /// What all blocks take, as far as is known.
    bytes: u64,
    /// What those take that are being written.
    pending: u64,
    /// New blocks since that was looked at.
    since: u64,
    /// Whether nothing could be evicted at that time. Scanning a large cache takes long, and is not done for each block that finds it full.
    full: bool,
    /// The objects that each cache has opened: their blocks stay.
    opened: BTreeMap<u64, Opened>,
    /// The number of the next cache.
    next: u64,
    /// Whether writing failed: the disk is full, or gone.
    broken: bool,
}

/// The version of each object that was opened, by its group and name.
type Opened = HashMap<(String, String), String>;

/// The cache folders of a process.
type Folders = BTreeMap<PathBuf, Weak<Mutex<State>>>;

static FOLDERS: PerProcess<Mutex<Folders>> = PerProcess::new();

/// What is known of `folder` in this process.
fn shared(folder: &Path) -> Arc<Mutex<State>> {
    let mut folders = FOLDERS.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    folders.retain(|_, state| state.strong_count() > 0);
    // However it is named.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let known = folders.entry(folder).or_default();
    known.upgrade().unwrap_or_else(|| {
        let state = Arc::default();
        *known = Arc::downgrade(&state);
        state
    })
}

/// An object in the cache.
#[derive(Debug, Clone)]
pub(crate) struct CachedObject {
    group: String,
    name: String,
    version: String,
}

impl BlockCache {
    pub(crate) fn open(folder: &Path, bytes_max: u64) -> Result<Self> {
        fs::create_dir_all(folder).map_err(cannot_write(folder))?;
        let cache = Self { folder: folder.to_owned(), bytes_max, known: PerProcess::new() };
        cache.known();
        Ok(cache)
    }

    /// What this process knows of it.
    fn known(&self) -> &Known {
        self.known.get(|| {
            let (shared, bytes) = (shared(&self.folder), self.blocks().iter().map(|block| block.bytes).sum());
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.bytes = bytes;
            state.next += 1;
            let number = state.next;
            state.opened.insert(number, Opened::new());
            state.full = false;
            drop(state);
            Known { number, shared }
        })
    }

    /// The object at `path`, of this version and size.
    pub(crate) fn object(&self, path: &Path, version: Version, size: u64) -> CachedObject {
        let hash = |text: &[u8]| format!("{:016x}", xxh3_64(text));
        let group = path.parent().unwrap_or(Path::new(""));
        let object = CachedObject {
            group: hash(group.as_os_str().as_encoded_bytes()),
            name: hash(path.as_os_str().as_encoded_bytes()),
            version: hash(format!("{} {size}", version.0).as_bytes()),
        };
        let known = (object.group.clone(), object.name.clone());
        let number = self.known().number;
        let mut state = self.lock();
        let before = state.opened.entry(number).or_default().insert(known, object.version.clone());
        // Blocks of an outdated version can be evicted.
        state.full &= before.is_none_or(|before| before == object.version);
        drop(state);
        object
    }

    /// Block number `number` of an object, with that many bytes, if it is cached and intact.
    pub(crate) fn get(&self, object: &CachedObject, number: u64, length: usize) -> Option<Bytes> {
        let path = self.path(object, number);
        let file = fs::File::open(&path).ok()?;
        let mut content = Vec::with_capacity(length + CHECKSUM_BYTES);
        let read = file.take((length + CHECKSUM_BYTES + 1) as u64).read_to_end(&mut content);
        let whole = read.is_ok() && content.len() == length + CHECKSUM_BYTES && {
            let (bytes, checksum) = content.split_at(length);
            xxh3_64(bytes).to_le_bytes() == checksum
        };
        if !whole {
            let _ = fs::remove_file(&path);
            return None;
        }
        Some(Bytes::from(content).slice(..length))
    }

    /// Caches a block if there is space for it. Failing to do so is not an error.
    pub(crate) fn put(&self, object: &CachedObject, number: u64, bytes: &[u8]) {
        let taken = (bytes.len() + CHECKSUM_BYTES) as u64;
        {
            let mut state = self.lock();
            state.since += 1;
            let is_short = state.bytes + taken > self.bytes_max && !state.full;
            if !state.broken && (is_short || state.since >= self.look_every()) {
                state.since = 0;
                state.bytes = self.make_room(&state, taken);
                state.full = state.bytes + taken > self.bytes_max;
            }
            if state.broken || state.bytes + taken > self.bytes_max {
                return;
            }
            state.bytes += taken;
            state.pending += taken;
        }
        let written = self.write(object, number, bytes);
        let mut state = self.lock();
        state.pending -= taken;
        if let Err(error) = written {
            state.bytes = state.bytes.saturating_sub(taken);
            // What is not there was removed by somebody who clears the folder away, and can be written again.
            state.broken |= error.kind() != ErrorKind::NotFound;
        }
    }

    fn look_every(&self) -> u64 {
        (self.bytes_max / BLOCK_BYTES / LOOKS).clamp(1, LOOK_EVERY_MAX)
    }

    fn write(&self, object: &CachedObject, number: u64, bytes: &[u8]) -> std::io::Result<()> {
        use std::io::Write;
        let path = self.path(object, number);
        fs::create_dir_all(self.folder.join(&object.group))?;
        let temporary = name_of_its_own(&path);
        let write = || {
            let mut file = create_fresh(&temporary)?;
            file.write_all(bytes)?;
            file.write_all(&xxh3_64(bytes).to_le_bytes())?;
            // Not synced: after a crash of the machine, the checksum detects damage.
            fs::rename(&temporary, &path)
        };
        write().inspect_err(|_| _ = fs::remove_file(&temporary))
    }

    /// Removes blocks that nobody in this process needs, the oldest first, until there is space for `bytes` and some more; what the others take.
    fn make_room(&self, state: &State, bytes: u64) -> u64 {
        let mut blocks = self.blocks();
        // Of what is being written, some may be counted twice.
        let mut taken = blocks.iter().map(|block| block.bytes).sum::<u64>() + state.pending;
        if taken + bytes <= self.bytes_max {
            return taken;
        }
        let groups: Vec<&str> = state.opened.values().flat_map(Opened::keys).map(|(group, _)| group.as_str()).collect();
        let is_needed = |block: &Block| {
            let known = (block.group.clone(), block.name.clone());
            let mut versions = state.opened.values().filter_map(|opened| opened.get(&known)).peekable();
            match versions.peek() {
                Some(_) => versions.any(|version| *version == block.version),
                None => groups.contains(&block.group.as_str()),
            }
        };
        blocks.retain(|block| !is_needed(block));
        blocks.sort_by_key(|block| block.written);
        let wanted = bytes.max(self.look_every() * BLOCK_BYTES);
        for block in blocks {
            if taken + wanted <= self.bytes_max {
                break;
            }
            if fs::remove_file(&block.path).is_ok() {
                taken -= block.bytes;
            }
        }
        taken
    }

    /// All blocks, including half-written files of processes that were killed, but not what is being written now.
    fn blocks(&self) -> Vec<Block> {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().collect::<Vec<_>>();
        let mut found = Vec::new();
        for group in below(&self.folder) {
            for entry in below(&group.path()) {
                let (Ok(status), Ok(file)) = (entry.metadata(), entry.file_name().into_string()) else { continue };
                let written = status.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let is_whole = file.ends_with(SUFFIX);
                let is_left = || written.elapsed().is_ok_and(|age| age >= LEFT_AFTER);
                if !is_whole && !is_left() {
                    continue;
                }
                let mut parts = file.split(['-', '.']);
                let mut part = || parts.next().unwrap_or_default().to_owned();
                let (name, version) = (part(), part());
                found.push(Block {
                    group: group.file_name().to_string_lossy().into_owned(),
                    name,
                    // An incomplete block belongs to no version that is in use.
                    version: if is_whole { version } else { String::new() },
                    bytes: status.len(),
                    written,
                    path: entry.path(),
                });
            }
        }
        found
    }

    fn path(&self, object: &CachedObject, number: u64) -> PathBuf {
        let CachedObject { group, name, version } = object;
        self.folder.join(group).join(format!("{name}-{version}-{number}.{SUFFIX}"))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.known().shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        let Some(Known { number, shared }) = self.known.made() else { return };
        let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.opened.remove(number);
        state.full = false;
    }
}

/// A file of the cache.
struct Block {
    group: String,
    name: String,
    version: String,
    bytes: u64,
    written: SystemTime,
    path: PathBuf,
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    /// Keeps a block of an object in `group`, if there is space for it.
    fn put(cache: &BlockCache, group: &str, number: u64) {
        let object = cache.object(Path::new(&format!("s3://bucket/{group}/shard-{number}")), Version(1), 1 << 20);
        cache.put(&object, 0, &vec![number as u8; 100_000]);
    }

    fn is_there(cache: &BlockCache, group: &str, number: u64) -> bool {
        let object = cache.object(Path::new(&format!("s3://bucket/{group}/shard-{number}")), Version(1), 1 << 20);
        cache.get(&object, 0, 100_000).is_some()
    }

    #[test]
    fn what_others_write_now_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BlockCache::open(folder.path(), 1_000_000).unwrap();
        let group = folder.path().join("0123456789abcdef");
        fs::create_dir(&group).unwrap();
        let partial = |name: &str| group.join(format!("{name}-0-0.block.812-3-1763.partial"));
        for name in ["now", "left"] {
            fs::write(partial(name), vec![0; 300_000]).unwrap();
        }
        let long_ago = SystemTime::now() - 2 * LEFT_AFTER;
        File::options().write(true).open(partial("left")).unwrap().set_modified(long_ago).unwrap();
        (0..12).for_each(|number| put(&cache, "data", number));
        assert!(partial("now").exists() && !partial("left").exists());
        assert_eq!((0..12).filter(|&number| is_there(&cache, "data", number)).count(), 9);
    }

    /// Threads that evict while others write.
    #[test]
    fn a_cache_that_is_full_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..8 {
            let cache = BlockCache::open(folder.path(), 3_000_000).unwrap();
            let group = format!("data-{round}");
            std::thread::scope(|scope| {
                for thread in 0..16 {
                    let (cache, group) = (&cache, &group);
                    scope.spawn(move || (0..8).for_each(|number| put(cache, group, thread * 8 + number)));
                }
            });
            let kept = (0..128).filter(|&number| is_there(&cache, &group, number)).count();
            assert!(!cache.lock().broken, "round {round}");
            assert!((25..=29).contains(&kept), "round {round}: {kept} blocks of 29 that fit");
        }
    }
}
