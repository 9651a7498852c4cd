//! Objects in stores: S3 and what speaks its language, Google Cloud, Azure; and files of web servers, which are only read.
//!
//! The `object_store` crate talks to them. It is asynchronous, and everything here is not: a thread that wants bytes waits for them, as
//! it waits for a disk, and two threads of one runtime move them (`process.rs`). How many requests are under way at once so follows from how
//! many threads ask, and [`Storage::reads_at_once`] says how many it takes to hide the time that each request takes.
//!
//! ```text
//! location.rs     parses s3://bucket/photos/1.jpg; refuses what may be a secret
//! connect.rs      the environment (AWS_*, GOOGLE_*, AZURE_*), time limits, retries
//! aws_profile.rs  ~/.aws
//! aws_process.rs  keys that a program prints, which a profile there names
//! keys.rs         keys that are replaced during a run
//! process.rs      the runtime and the clients, made anew after a fork
//! gate.rs         how many requests a store has at a time: fewer when it complains
//! pace.rs         which requests are slow, and may be sent again
//! request.rs      one request, in bounded time
//! file.rs         reading: ranges, resumed where a body breaks off, of one version of the object
//! upload.rs       writing: one put, or parts and a commit
//! failure.rs      what went wrong, without credentials
//! ```

mod aws_process;
mod aws_profile;
mod connect;
mod failure;
mod file;
mod gate;
mod keys;
mod location;
mod pace;
mod process;
mod request;
mod upload;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStoreExt};

use file::{RemoteFile, head, status_of};
use location::{Location, Settings};
use process::Process;
use request::{request, request_or};
use upload::RemoteUpload;

use crate::per_process::PerProcess;
use crate::{
    BufferPool, DroppedCache, Entry, EntryKind, Error, File, Lock, Result, Status, Storage, Upload, Walk, Walked,
};

/// So many reads at once hide the time to the first byte of each: of 4 MiB they are 134 MB, more than 10 Gb/s bring in 100 ms (125 MB).
const READS_AT_ONCE: usize = 32;
/// The number of objects that are taken from a listing at once.
const PAGE_OBJECTS: usize = 1000;

/// Objects in stores, by their URLs: `s3://bucket/folder/object`.
///
/// Credentials, endpoints and regions come from the environment, as other tools read them. A store has no folders: one exists as long as
/// there is something in it.
#[derive(Debug, Clone)]
pub struct RemoteStorage {
    buffers: BufferPool,
    settings: Settings,
}

impl RemoteStorage {
    /// A storage of all stores that the environment gives access to, as it is now. Nothing is connected to before it is used.
    pub fn new() -> Self {
        Self { buffers: BufferPool::new(), settings: Settings(Arc::new(connect::environment())) }
    }

    /// The same with settings that count before those of the environment, by the names of its variables: `("AWS_ENDPOINT_URL", "http://…")`.
    #[must_use]
    pub fn with_settings<'a>(self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let lower = |(name, value): (&str, &str)| (name.to_ascii_lowercase(), value.to_owned());
        let all = self.settings.0.iter().cloned().chain(settings.into_iter().map(lower)).collect();
        Self { settings: Settings(Arc::new(all)), ..self }
    }

    fn locate(&self, path: &Path) -> Result<Location> {
        Ok(Location { settings: self.settings.clone(), ..Location::parse(path)? })
    }
}

impl Default for RemoteStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for RemoteStorage {
    fn name(&self) -> &'static str {
        "remote"
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        let location = self.locate(path)?;
        let opened = |source| Error::Open { path: path.to_path_buf(), source };
        let meta = find(&location).map_err(opened)?.ok_or_else(|| opened(missing()))?;
        Ok(Box::new(RemoteFile::new(path, location, &meta, self.buffers.clone())))
    }

    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        RemoteFile::read_whole(path, &self.locate(path)?, limit_bytes, &self.buffers)
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        let location = self.locate(path)?;
        if location.key.as_ref().is_empty() {
            return Ok(None);
        }
        let found = find(&location).map_err(|source| Error::Open { path: path.to_path_buf(), source })?;
        Ok(found.as_ref().map(status_of))
    }

    fn is_taken(&self, path: &Path) -> Result<bool> {
        Ok(self.kind(path)?.is_some())
    }

    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        if self.status(path)?.is_some() {
            return Ok(Some(EntryKind::File));
        }
        let location = self.locate(path)?;
        if !location.can_be_listed() {
            return Ok(None);
        }
        let mut pages = Pages::new(path, &location, 1)?;
        Ok(pages.next().transpose()?.map(|_| EntryKind::Folder))
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        let location = self.locate(folder)?;
        let listed = request(&location, 0, |store| {
            let key = location.key.clone();
            async move { store.list_with_delimiter(Some(&key)).await }
        });
        let listed = listed.map_err(|source| Error::List { path: folder.to_path_buf(), source })?;
        let files = listed.objects.iter().map(|meta| (&meta.location, EntryKind::File));
        let folders = listed.common_prefixes.iter().map(|prefix| (prefix, EntryKind::Folder));
        let entry = |(key, kind): (&Key, EntryKind)| {
            let name = key.filename().filter(|_| *key != location.key)?;
            Some(Entry { path: folder.join(name), kind })
        };
        Ok(folders.chain(files).filter_map(entry).collect())
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        let pages = self.locate(root).and_then(|location| Ok((Pages::new(root, &location, PAGE_OBJECTS)?, location)));
        let (pages, location) = match pages {
            Ok(pages) => pages,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        Box::new(pages.filter_map(move |meta| match meta {
            Ok(meta) => {
                let below = below(&location.key, &meta.location)?;
                let found = Walked { below, status: Some(status_of(&meta)) };
                wanted(&found.below).then_some(Ok(found))
            }
            Err(error) => Some(Err(error)),
        }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        let location = self.locate(path)?;
        if !location.can_be_listed() {
            return Err(self.read_only(path));
        }
        Ok(Box::new(RemoteUpload::new(path, location)))
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        upload::write_new(path, &self.locate(path)?, content, || self.holds(path, content))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let location = self.locate(path)?;
        let removed = request_or(&location, 0, |store| {
            let key = location.key.clone();
            async move { store.delete(&key).await }
        });
        let failed = |source| Error::Write { path: path.to_path_buf(), source };
        match removed.map_err(failed)? {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed(failure::of_store(&error))),
        }
    }

    /// Stores have no locks. This excludes threads of one process; processes are safe because of what they write: the same bytes, or notes
    /// that only the first can leave.
    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.locate(path)?;
        let taken = locks().insert(path.to_path_buf());
        Ok(taken.then(|| Lock::new(HeldName { name: path.to_path_buf(), process: std::process::id() })))
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        Ok(DroppedCache { files: paths.len() as u64, bytes: 0 })
    }

    fn reads_at_once(&self, _path: &Path) -> usize {
        READS_AT_ONCE
    }
}

/// The names that this process has locked.
static LOCKS: PerProcess<Mutex<BTreeSet<PathBuf>>> = PerProcess::new();

fn locks() -> std::sync::MutexGuard<'static, BTreeSet<PathBuf>> {
    LOCKS.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

struct HeldName {
    name: PathBuf,
    /// A child that was forked has no part in it.
    process: u32,
}

impl Drop for HeldName {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            locks().remove(&self.name);
        }
    }
}

fn missing() -> io::Error {
    failure::of_store(&object_store::Error::NotFound { path: String::new(), source: "".into() })
}

/// What the store says of an object; `None` where there is none.
fn find(location: &Location) -> io::Result<Option<ObjectMeta>> {
    request(location, 0, |store| async move { head(&*store, location).await })
}

/// The name of an object relative to a folder; `None` for an object that represents the folder itself.
fn below(folder: &Key, object: &Key) -> Option<PathBuf> {
    let below = object.as_ref().strip_prefix(folder.as_ref())?.trim_start_matches('/');
    (!below.is_empty()).then(|| below.into())
}

/// The objects below a folder, fetched from the store in batches.
struct Pages {
    root: PathBuf,
    process: &'static Process,
    listing: BoxStream<'static, Vec<object_store::Result<ObjectMeta>>>,
    page: VecDeque<object_store::Result<ObjectMeta>>,
    ended: bool,
}

impl Pages {
    fn new(root: &Path, location: &Location, objects: usize) -> Result<Self> {
        let failed = |source| Error::List { path: root.to_path_buf(), source };
        let process = Process::current().map_err(failed)?;
        let store = process.store(location).map_err(failed)?;
        let listing = store.objects.list(Some(&location.key)).ready_chunks(objects).boxed();
        Ok(Self { root: root.to_path_buf(), process, listing, page: VecDeque::new(), ended: false })
    }

    fn take_page(&mut self, time: Duration) -> io::Result<()> {
        let next = self.listing.next();
        let page = self.process.runtime.block_on(async { tokio::time::timeout(time, next).await });
        let page = page.map_err(|_| failure::too_slow(time))?;
        self.ended = page.is_none();
        self.page = page.unwrap_or_default().into();
        Ok(())
    }
}

impl Iterator for Pages {
    type Item = Result<ObjectMeta>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.page.is_empty() && !self.ended {
            if let Err(source) = self.take_page(request::time_for(0)) {
                self.ended = true;
                return Some(Err(Error::List { path: self.root.clone(), source }));
            }
        }
        let next = self.page.pop_front()?;
        Some(next.map_err(|error| {
            // A listing does not go on behind an error.
            self.ended = true;
            self.page.clear();
            Error::List { path: self.root.clone(), source: failure::of_store(&error) }
        }))
    }
}
