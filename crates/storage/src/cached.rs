//! A storage that caches objects on a local disk once they were read.

use std::path::Path;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::block_cache::{BLOCK_BYTES, BlockCache, CachedObject};
use crate::{
    DroppedCache, Entry, EntryKind, Error, File, Lock, Result, Status, Storage, Upload, Version, Walk, is_url,
};

/// Wraps another storage, and caches what is read of objects in stores in a local folder, from run to run.
///
/// Only files that are [opened](Storage::open) are cached, as shards are, and only if the store reports their version.
#[derive(Debug)]
pub struct CachedStorage {
    inner: Arc<dyn Storage>,
    cache: Arc<BlockCache>,
}

impl CachedStorage {
    /// Keeps up to `bytes_max` of what is read from `inner` in `folder`, which is made if it is not there, and may be shared with other processes.
    pub fn new(inner: Arc<dyn Storage>, folder: &Path, bytes_max: u64) -> Result<Self> {
        if is_url(folder) {
            let hint = "name a folder on a disk of this machine";
            return Err(Error::Url { url: folder.to_owned(), problem: "a cache is local".to_owned(), hint });
        }
        Ok(Self { inner, cache: Arc::new(BlockCache::open(folder, bytes_max)?) })
    }
}

impl Storage for CachedStorage {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        let inner = self.inner.open(path)?;
        let Some(version) = inner.version().filter(|_| is_url(path)) else { return Ok(inner) };
        let object = self.cache.object(path, version, inner.size());
        Ok(Box::new(CachedFile { path: path.to_owned(), inner, cache: Arc::clone(&self.cache), object }))
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        self.inner.read_file(path, limit_bytes)
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

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.inner.lock(path)
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        self.inner.drop_cache(paths)
    }

    fn device_bytes_read(&self) -> Option<u64> {
        self.inner.device_bytes_read()
    }

    fn notice(&self) -> Option<String> {
        self.inner.notice()
    }

    fn reads_at_once(&self, path: &Path) -> usize {
        self.inner.reads_at_once(path)
    }
}

struct CachedFile {
    path: std::path::PathBuf,
    inner: Box<dyn File>,
    cache: Arc<BlockCache>,
    object: CachedObject,
}

impl CachedFile {
    fn length_of(&self, block: u64) -> usize {
        (self.size() - block * BLOCK_BYTES).min(BLOCK_BYTES) as usize
    }

    /// Reads the blocks `first` to `last`, none of which is cached, in one read, and caches them.
    fn fetch(&self, first: u64, last: u64) -> Result<Bytes> {
        let start = first * BLOCK_BYTES;
        let length = (last - first) * BLOCK_BYTES + self.length_of(last) as u64;
        let bytes = self.inner.read(start, length as usize)?;
        for block in first..=last {
            let from = ((block - first) * BLOCK_BYTES) as usize;
            self.cache.put(&self.object, block, &bytes[from..from + self.length_of(block)]);
        }
        Ok(bytes)
    }
}

impl File for CachedFile {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn version(&self) -> Option<Version> {
        self.inner.version()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let size = self.size();
        if offset.checked_add(length as u64).is_none_or(|end| end > size) {
            return Err(Error::BeyondEnd { path: self.path.clone(), offset, length: length as u64, size });
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        let (first, last) = (offset / BLOCK_BYTES, (offset + length as u64 - 1) / BLOCK_BYTES);
        let mut all = BytesMut::with_capacity(length + 2 * BLOCK_BYTES as usize);
        // Blocks that are missing one after the other are fetched together.
        let mut missing: Option<u64> = None;
        for block in first..=last {
            match self.cache.get(&self.object, block, self.length_of(block)) {
                Some(bytes) => {
                    if let Some(from) = missing.take() {
                        all.extend_from_slice(&self.fetch(from, block - 1)?);
                    }
                    all.extend_from_slice(&bytes);
                }
                None => _ = missing.get_or_insert(block),
            }
        }
        if let Some(from) = missing {
            all.extend_from_slice(&self.fetch(from, last)?);
        }
        let from = (offset - first * BLOCK_BYTES) as usize;
        Ok(all.freeze().slice(from..from + length))
    }

    fn advise_sequential(&self) {
        self.inner.advise_sequential();
    }
}
