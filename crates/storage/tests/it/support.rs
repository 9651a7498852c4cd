//! A clock that a test moves, and files that exist only as sizes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use forebay_storage::{Clock, DroppedCache, Entry, File, Result, Status, Storage, Version, Walk};

/// A clock on which sleeping takes no time: it jumps to the deadline, or past it by `oversleep`.
#[derive(Debug, Default)]
pub(crate) struct ManualClock {
    pub(crate) now: Mutex<Duration>,
    pub(crate) oversleep: Duration,
}

impl ManualClock {
    pub(crate) fn set(&self, now: Duration) {
        *self.now.lock().unwrap() = now;
    }

    pub(crate) fn seconds_since(&self, earlier: Duration) -> f64 {
        self.now().saturating_sub(earlier).as_secs_f64()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn sleep_until(&self, deadline: Duration) {
        let mut now = self.now.lock().unwrap();
        if deadline > *now {
            *now = deadline + self.oversleep;
        }
    }
}

/// Files of zeros of given sizes, in no time at all.
#[derive(Debug, Default)]
pub(crate) struct ZeroStorage {
    pub(crate) sizes: HashMap<PathBuf, u64>,
}

impl ZeroStorage {
    pub(crate) fn new(files: &[(&str, u64)]) -> Self {
        Self { sizes: files.iter().map(|&(path, size)| (PathBuf::from(path), size)).collect() }
    }
}

impl Storage for ZeroStorage {
    fn name(&self) -> &'static str {
        "zero"
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(Box::new(ZeroFile { size: self.sizes[path] }))
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        Ok(self.sizes.get(path).map(|&bytes| Status { bytes, version: Version(0) }))
    }

    fn entries(&self, _folder: &Path) -> Result<Vec<Entry>> {
        Ok(Vec::new())
    }

    fn walk<'a>(&'a self, _root: &Path, _wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        Box::new(std::iter::empty())
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        Ok(DroppedCache { files: paths.len() as u64, bytes: 0 })
    }
}

struct ZeroFile {
    size: u64,
}

impl File for ZeroFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        static ZEROS: [u8; 4 << 20] = [0; 4 << 20];
        assert!(offset + length as u64 <= self.size);
        Ok(Bytes::from_static(&ZEROS[..length]))
    }
}

/// Bytes that differ from place to place, so that a read from the wrong offset shows.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| ((index * 31) ^ (index >> 8) ^ (index >> 16)) as u8).collect()
}
