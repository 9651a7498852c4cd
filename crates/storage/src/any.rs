//! Routes each path to its storage: on this machine, or in an object store.

use std::path::Path;

use bytes::Bytes;

#[cfg(feature = "remote")]
use crate::RemoteStorage;
use crate::{DroppedCache, Entry, EntryKind, File, LocalStorage, Lock, Result, Status, Storage, Upload, Walk, is_url};

/// Files of this machine by their paths, and objects in stores by their URLs: `photos/1.jpg`, `s3://bucket/photos/1.jpg`. Without the feature `remote`
/// there are no stores, and a URL is a path like any other.
#[derive(Debug)]
pub struct AnyStorage {
    local: LocalStorage,
    #[cfg(feature = "remote")]
    remote: RemoteStorage,
}

impl AnyStorage {
    /// A storage that reads files of this machine as `local` does.
    pub fn new(local: LocalStorage) -> Self {
        Self {
            local,
            #[cfg(feature = "remote")]
            remote: RemoteStorage::new(),
        }
    }

    #[cfg(feature = "remote")]
    fn of(&self, path: &Path) -> &dyn Storage {
        if is_url(path) { &self.remote } else { &self.local }
    }

    #[cfg(not(feature = "remote"))]
    fn of(&self, _path: &Path) -> &dyn Storage {
        &self.local
    }
}

impl Storage for AnyStorage {
    fn name(&self) -> &str {
        self.local.name()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        self.of(path).open(path)
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        self.of(path).read_file(path, limit_bytes)
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        self.of(path).status(path)
    }

    fn is_taken(&self, path: &Path) -> Result<bool> {
        self.of(path).is_taken(path)
    }

    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        self.of(path).kind(path)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.of(folder).entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        self.of(root).walk(root, wanted)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.of(path).create(path)
    }

    fn create_shared(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.of(path).create_shared(path)
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        self.of(path).write_new(path, content)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.of(path).remove(path)
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        self.of(path).make_folder(path)
    }

    fn own_folder(&self, path: &Path) -> Result<()> {
        self.of(path).own_folder(path)
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        self.of(path).remove_folder(path)
    }

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.of(path).lock(path)
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        let local: Vec<&Path> = paths.iter().copied().filter(|path| !is_url(path)).collect();
        let dropped = self.local.drop_cache(&local)?;
        // Objects in a store are not in this machine's page cache.
        Ok(DroppedCache { files: dropped.files + (paths.len() - local.len()) as u64, ..dropped })
    }

    fn device_bytes_read(&self) -> Option<u64> {
        self.local.device_bytes_read()
    }

    fn notice(&self) -> Option<String> {
        self.local.notice()
    }

    fn reads_at_once(&self, path: &Path) -> usize {
        self.of(path).reads_at_once(path)
    }
}
