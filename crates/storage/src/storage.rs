//! What every storage can do: list files, read ranges of them, write files, drop caches.

use std::fmt;
use std::io;
use std::iter::FusedIterator;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::{Error, Result};

/// A storage of files: the only interface between Forebay and the location of data.
///
/// A new kind of storage implements this, and nothing else in Forebay changes. What only reads leaves the methods that write as they
/// are: they say so. Where there are no folders, as in an object store, the methods for them have nothing to do.
///
/// Implementations are shared by many threads, so all methods take `&self`.
pub trait Storage: Send + Sync + fmt::Debug {
    /// A short name for reports: `local`, `local-direct`, `ceph-hdd`.
    fn name(&self) -> &str;

    /// Opens a regular file for reading. Its size is determined now.
    fn open(&self, path: &Path) -> Result<Box<dyn File>>;

    /// Reads a file in one read, unless it has more than `limit_bytes`.
    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        let file = self.open(path)?;
        let size = file.size();
        match usize::try_from(size) {
            Ok(length) if size <= limit_bytes => file.read(0, length),
            _ => Err(Error::TooLarge { path: path.to_path_buf(), limit_bytes, found: size }),
        }
    }

    /// The same as text.
    fn read_text(&self, path: &Path, limit_bytes: u64) -> Result<String> {
        let content = self.read_file(path, limit_bytes)?;
        let text = std::str::from_utf8(&content).map_err(|_| Error::NotText { path: path.to_path_buf() })?;
        Ok(text.to_owned())
    }

    /// The size and version of a file; `None` where there is nothing. Links are followed, where there are any.
    fn status(&self, path: &Path) -> Result<Option<Status>>;

    /// Whether anything has this name, be it a folder or a link that leads nowhere: writing there would replace it.
    fn is_taken(&self, path: &Path) -> Result<bool> {
        Ok(self.status(path)?.is_some())
    }

    /// What `path` leads to: a file, a folder, something else, or nothing. A store has no folders; what has something in it counts as one.
    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        if self.status(path)?.is_some() {
            return Ok(Some(EntryKind::File));
        }
        Ok((!self.entries(path)?.is_empty()).then_some(EntryKind::Folder))
    }

    /// The direct entries of a folder, in any order. Links are not followed. A folder that does not exist is empty.
    fn entries(&self, folder: &Path) -> Result<Vec<Entry>>;

    /// Every file below `root` that is `wanted` by its path from there, in any order. Links are followed, wherever they lead. An error names
    /// what cannot be listed, and does not end it.
    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a>;

    /// Begins to write a file. It becomes visible, complete and durable when it is [committed](Upload::commit), replacing what was there before;
    /// until then nothing has changed. Links are replaced, never followed.
    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        Err(self.read_only(path))
    }

    /// The same where others may write the same file at the same time: none disturbs another, and the last to commit counts.
    fn create_shared(&self, path: &Path) -> Result<Box<dyn Upload>> {
        self.create(path)
    }

    /// Writes a file atomically: afterwards it is complete, or nothing has changed.
    fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut upload = self.create(path)?;
        upload.write_all(content).map_err(|source| Error::Write { path: path.to_path_buf(), source })?;
        upload.commit()
    }

    /// Writes a file unless one of this name exists. Returns whether it has this content now: of several writers of different contents,
    /// one is told so.
    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        if self.is_taken(path)? {
            return self.holds(path, content);
        }
        self.write_file(path, content).map(|()| true)
    }

    /// Whether a file has just this content.
    fn holds(&self, path: &Path, content: &[u8]) -> Result<bool> {
        match self.read_file(path, content.len() as u64) {
            Ok(found) => Ok(found == content),
            Err(Error::TooLarge { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a file or a link, if it exists. The target of a link stays.
    fn remove(&self, path: &Path) -> Result<()> {
        Err(self.read_only(path))
    }

    /// Creates a folder and its parents.
    fn make_folder(&self, path: &Path) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Creates a folder for Forebay alone, or uses the existing one. A link is refused, even to a folder.
    fn own_folder(&self, path: &Path) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> Result<()> {
        let _ = path;
        Ok(())
    }

    /// Locks a name for this process; `None` where another has it. It is free again when the lock is dropped, or its process ends.
    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        Err(self.read_only(path))
    }

    /// The error of a storage that cannot be written to.
    fn read_only(&self, path: &Path) -> Error {
        let source =
            io::Error::new(io::ErrorKind::ReadOnlyFilesystem, format!("storage `{}` is only read", self.name()));
        Error::Write { path: path.to_path_buf(), source }
    }

    /// Forgets the cached pages of these files, so that the next read comes from the device. Needs no special rights.
    ///
    /// What has been written but not yet stored is stored first, since dirty pages cannot be forgotten. Pages that another process
    /// has mapped or is reading at this moment may stay; see [`resident_fraction`](crate::resident_fraction).
    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache>;

    /// The number of concurrent reads that hides the latency of the storage of `path`; 0 if the number of workers is enough.
    fn reads_at_once(&self, path: &Path) -> usize {
        let _ = path;
        0
    }

    /// How many bytes the device has given so far: not those that a page cache had. `None` where nobody counts them.
    fn device_bytes_read(&self) -> Option<u64> {
        None
    }

    /// What the user should know about how this storage reads, for instance that direct reads were refused.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// Its size.
    pub bytes: u64,
    /// Which version of it this is.
    pub version: Version,
}

/// The version of a file, as an opaque tag. A file with the same size and tag is considered unchanged. For a local file it is
/// the time of its last change; elsewhere it may come of an entity tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version(pub u64);

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its full path.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
}

/// An entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A link, a pipe, a device.
    Other,
}

/// The files that [`Storage::walk`] finds.
pub type Walk<'a> = Box<dyn Iterator<Item = Result<Walked>> + 'a>;

/// A file that [`Storage::walk`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Its path below the root.
    pub below: PathBuf,
    /// Its size and version; `None` for a link whose target is missing or not accessible, which reading it will report.
    pub status: Option<Status>,
}

/// A file that is being written. Dropped before it is committed, it leaves nothing behind.
pub trait Upload: io::Write + Send {
    /// Gives the file its name, replacing what had it before. The file is complete and durable when this returns.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A name that this process has locked, until this is dropped.
pub struct Lock {
    /// Whatever holds it: an open file, a lease.
    _held: Box<dyn Send + Sync>,
}

impl Lock {
    /// A lock that is held as long as `held` exists.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Lock")
    }
}

/// An open file.
pub trait File: Send + Sync {
    /// The size in bytes when the file was opened.
    fn size(&self) -> u64;

    /// Reads exactly `length` bytes at `offset`, or fails with an error that names the file and the offset.
    ///
    /// The bytes may share a larger reusable buffer: retaining a small slice retains the entire buffer.
    fn read(&self, offset: u64, length: usize) -> Result<Bytes>;

    /// Which version of the file this is; `None` where the storage does not say, or it may change while it is read.
    fn version(&self) -> Option<Version> {
        None
    }

    /// Tells the system that the file will be read from front to back, so that it reads ahead further. Only a hint.
    fn advise_sequential(&self) {}
}

/// What [`Storage::drop_cache`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DroppedCache {
    /// How many files were treated.
    pub files: u64,
    /// The sum of their sizes: the most that can have been cached.
    pub bytes: u64,
}

/// Reads a file from front to back in large blocks; the last may be shorter.
///
/// The iterator ends after the first error. A `block_bytes` of zero is such an error.
pub fn sequential(file: &dyn File, block_bytes: usize) -> Sequential<'_> {
    file.advise_sequential();
    Sequential { file, block_bytes, offset: 0, ended: false }
}

/// The blocks of a file in order, made by [`sequential`].
pub struct Sequential<'a> {
    file: &'a dyn File,
    block_bytes: usize,
    offset: u64,
    ended: bool,
}

impl fmt::Debug for Sequential<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Sequential")
            .field("block_bytes", &self.block_bytes)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl Iterator for Sequential<'_> {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.block_bytes == 0 {
            self.ended = true;
            return Some(Err(Error::Argument { name: "block_bytes", found: "0".to_owned(), expected: "at least 1" }));
        }
        let left = self.file.size().saturating_sub(self.offset);
        if left == 0 {
            self.ended = true;
            return None;
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.block_bytes);
        let block = self.file.read(self.offset, length);
        self.offset += length as u64;
        self.ended = block.is_err();
        Some(block)
    }
}

impl FusedIterator for Sequential<'_> {}
