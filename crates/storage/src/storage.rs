//! What every storage can do: open files, read ranges, forget what is cached.

use std::fmt;
use std::iter::FusedIterator;
use std::path::Path;

use bytes::Bytes;

use crate::{Error, Result};

/// A place that holds files.
///
/// Implementations are shared by many threads, so all methods take `&self`.
pub trait Storage: Send + Sync + fmt::Debug {
    /// A short name for reports: `local`, `local-direct`, `ceph-hdd`.
    fn name(&self) -> &str;

    /// Opens a regular file for reading. Its size is taken now.
    fn open(&self, path: &Path) -> Result<Box<dyn File>>;

    /// Reads a whole file in one read, unless it has more than `limit_bytes`.
    fn read_file(&self, path: &Path, limit_bytes: u64) -> Result<Bytes> {
        let file = self.open(path)?;
        let size = file.size();
        match usize::try_from(size) {
            Ok(length) if size <= limit_bytes => file.read(0, length),
            _ => Err(Error::TooLarge { path: path.to_path_buf(), limit_bytes, found: size }),
        }
    }

    /// Forgets the cached pages of these files, so that the next read comes from the device. Needs no special rights.
    ///
    /// What has been written but not yet stored is stored first, since dirty pages cannot be forgotten. Pages that another process
    /// has mapped or is reading at this moment may stay; [`resident_fraction`](crate::resident_fraction) tells.
    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache>;

    /// What the user should know about how this storage reads, for instance that direct reads were refused.
    fn notice(&self) -> Option<String> {
        None
    }
}

/// An open file.
pub trait File: Send + Sync {
    /// The size in bytes when the file was opened.
    fn size(&self) -> u64;

    /// Reads exactly `length` bytes at `offset`, or fails with an error that names the file and the offset.
    ///
    /// The bytes may share a larger reusable buffer: a small slice that is kept for long keeps all of that buffer.
    fn read(&self, offset: u64, length: usize) -> Result<Bytes>;

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
