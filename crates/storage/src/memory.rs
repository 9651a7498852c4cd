//! A storage in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::{
    DroppedCache, Entry, EntryKind, Error, File, Lock, Result, Status, Storage, Upload, Version, Walk, Walked,
};

/// Files in memory, by their paths. It has no folders: a path is a name, as in an object store.
///
/// Clones share their files.
#[derive(Debug, Clone, Default)]
pub struct MemoryStorage {
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    files: BTreeMap<PathBuf, (Bytes, Version)>,
    locks: BTreeSet<PathBuf>,
    /// The number of files written so far: each gets a distinct version.
    writes: u64,
}

impl MemoryStorage {
    /// An empty storage.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every file, by its path.
    pub fn files(&self) -> BTreeMap<PathBuf, Bytes> {
        self.lock_held().files.iter().map(|(path, (content, _))| (path.clone(), content.clone())).collect()
    }

    /// A copy that shares nothing with this one: its files as they are now, and no locks, as after a restart.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let held = self.lock_held();
        let held = Held { files: held.files.clone(), locks: BTreeSet::new(), writes: held.writes };
        Self { held: Arc::new(Mutex::new(held)) }
    }

    fn lock_held(&self) -> MutexGuard<'_, Held> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for MemoryStorage {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        match self.lock_held().files.get(path) {
            Some((content, _)) => Ok(Box::new(MemoryFile { path: path.to_path_buf(), content: content.clone() })),
            None => Err(Error::Open { path: path.to_path_buf(), source: io::ErrorKind::NotFound.into() }),
        }
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        let held = self.lock_held();
        Ok(held.files.get(path).map(|(content, version)| Status { bytes: content.len() as u64, version: *version }))
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        let held = self.lock_held();
        let mut entries: Vec<Entry> = Vec::new();
        for path in held.files.keys() {
            let Ok(below) = path.strip_prefix(folder) else { continue };
            let mut parts = below.components();
            let Some(name) = parts.next() else { continue };
            let kind = if parts.next().is_some() { EntryKind::Folder } else { EntryKind::File };
            let entry = Entry { path: folder.join(name), kind };
            if entries.last() != Some(&entry) {
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        let held = self.lock_held();
        let below = held.files.iter().filter_map(|(path, (content, version))| {
            let below = path.strip_prefix(root).ok().filter(|below| wanted(below))?;
            let status = Status { bytes: content.len() as u64, version: *version };
            Some(Ok(Walked { below: below.to_path_buf(), status: Some(status) }))
        });
        Box::new(below.collect::<Vec<_>>().into_iter())
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        Ok(Box::new(MemoryUpload { path: path.to_path_buf(), content: Vec::new(), storage: self.clone() }))
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        let mut held = self.lock_held();
        if let Some((found, _)) = held.files.get(path) {
            return Ok(found == content);
        }
        held.writes += 1;
        let version = Version(held.writes);
        held.files.insert(path.to_path_buf(), (Bytes::copy_from_slice(content), version));
        Ok(true)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.lock_held().files.remove(path);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        let taken = self.lock_held().locks.insert(path.to_path_buf());
        Ok(taken.then(|| Lock::new(MemoryLock { path: path.to_path_buf(), storage: self.clone() })))
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        Ok(DroppedCache { files: paths.len() as u64, bytes: 0 })
    }
}

struct MemoryFile {
    path: PathBuf,
    content: Bytes,
}

impl File for MemoryFile {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(length)).filter(|&end| end <= self.content.len());
        match (start, end) {
            (Some(start), Some(end)) => Ok(self.content.slice(start..end)),
            _ => Err(Error::BeyondEnd { path: self.path.clone(), offset, length: length as u64, size: self.size() }),
        }
    }
}

struct MemoryUpload {
    path: PathBuf,
    content: Vec<u8>,
    storage: MemoryStorage,
}

impl io::Write for MemoryUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.content.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for MemoryUpload {
    fn commit(self: Box<Self>) -> Result<()> {
        let Self { path, content, storage } = *self;
        let mut held = storage.lock_held();
        held.writes += 1;
        let version = Version(held.writes);
        held.files.insert(path, (content.into(), version));
        Ok(())
    }
}

struct MemoryLock {
    path: PathBuf,
    storage: MemoryStorage,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.storage.lock_held().locks.remove(&self.path);
    }
}
