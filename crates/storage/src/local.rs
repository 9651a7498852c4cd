//! Files of this machine, read through the page cache, past it, or as memory.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use forebay_allocator::MappedFile;
use rustix::fs::{self, Advice, AtFlags, FileType, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

use crate::buffer::BufferPool;
use crate::descriptor::{Descriptor, open_descriptor};
use crate::page_cache::drop_file_cache;
use crate::writing::{self, PartialUpload};
use crate::{DroppedCache, Entry, EntryKind, Error, File, Lock, Result, Status, Storage, Upload, Walk, tree};

/// What direct reads are aligned to where the system does not say (before Linux 6.1): the largest block of common devices.
const ALIGNMENT_FALLBACK: usize = 4096;

/// A larger reported alignment is considered invalid, and the file is read through the page cache.
const ALIGNMENT_MAX: usize = 1 << 20;

/// A file below this is read sooner than it is mapped and let go of again.
const MAPPED_BYTES_MIN: u64 = 256 << 10;

/// Files of this machine.
///
/// Clones share their pool of buffers.
#[derive(Debug, Clone)]
pub struct LocalStorage {
    way: Way,
    shared: Arc<Shared>,
}

/// How files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Buffered,
    Uncached,
    Direct,
    Mapped,
}

#[derive(Debug)]
struct Shared {
    pool: BufferPool,
    /// Why direct reads or mappings were given up, the first time that they were.
    fallback: OnceLock<String>,
    /// The files that are mapped.
    mappings: Mutex<Vec<(PathBuf, Weak<MappedFile>)>>,
}

impl LocalStorage {
    /// Reads through the page cache, as most programs do.
    pub fn buffered() -> Self {
        Self::new(Way::Buffered)
    }

    /// Reads through the page cache and takes what was read out of it again, so that repeated reads are as slow as the first: for
    /// measurements. What the system reads ahead is left there for the next read.
    pub fn uncached() -> Self {
        Self::new(Way::Uncached)
    }

    /// Reads past the page cache (`O_DIRECT`), so that repeated reads show what the device can do.
    ///
    /// A file whose file system refuses is read through the page cache instead, and [`Storage::notice`] then says so.
    pub fn direct() -> Self {
        Self::new(Way::Direct)
    }

    /// Reads the page cache's own memory (`mmap`), which saves a copy: for large files that nobody changes meanwhile. A read waits for its
    /// bytes as others do, and a file that was cut short is an error; but one that is cut short while its bytes are in use ends the process.
    ///
    /// A file that cannot be mapped is read through the page cache instead, and [`Storage::notice`] then says so.
    pub fn mapped() -> Self {
        Self::new(Way::Mapped)
    }

    fn new(way: Way) -> Self {
        let shared = Shared { pool: BufferPool::new(), fallback: OnceLock::new(), mappings: Mutex::default() };
        Self { way, shared: Arc::new(shared) }
    }

    /// Whether direct reads were asked for; see [`Storage::notice`] for whether they were possible.
    pub fn is_direct(&self) -> bool {
        self.way == Way::Direct
    }

    /// Opens past the page cache; `None` where the file system refuses.
    fn open_direct(&self, path: &Path) -> Result<Option<LocalFile>> {
        match open_descriptor(path, OFlags::DIRECT) {
            Ok(descriptor) => {
                let status = regular_file_status(&descriptor, path)?;
                let Some(alignment) = direct_alignment(&status) else { return Ok(None) };
                Ok(Some(self.file(descriptor, path, &status, Some(alignment))))
            }
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(Error::Open { path: path.to_path_buf(), source: errno.into() }),
        }
    }

    fn file(&self, descriptor: OwnedFd, path: &Path, status: &Statx, alignment: Option<usize>) -> LocalFile {
        LocalFile {
            descriptor: Descriptor::new(path, descriptor, status),
            path: path.to_path_buf(),
            size: status.stx_size,
            alignment: alignment.unwrap_or(1),
            direct: AtomicBool::new(alignment.is_some()),
            uncached: self.way == Way::Uncached,
            mapping: None,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Storage for LocalStorage {
    fn name(&self) -> &str {
        match self.way {
            Way::Buffered | Way::Uncached => "local",
            Way::Direct => "local-direct",
            Way::Mapped => "local-mmap",
        }
    }

    fn open(&self, path: &Path) -> Result<Box<dyn File>> {
        if self.is_direct() {
            if let Some(file) = self.open_direct(path)? {
                return Ok(Box::new(file));
            }
            self.shared.note_fallback(path, "refuses direct reads");
        }
        let descriptor = open_descriptor(path, OFlags::empty())
            .map_err(|errno| Error::Open { path: path.to_path_buf(), source: errno.into() })?;
        let status = regular_file_status(&descriptor, path)?;
        let mut file = self.file(descriptor, path, &status, None);
        if self.way == Way::Mapped && file.size >= MAPPED_BYTES_MIN {
            file.mapping = self.shared.map(&file);
        }
        Ok(Box::new(file))
    }

    fn status(&self, path: &Path) -> Result<Option<Status>> {
        tree::status(path)
    }

    fn is_taken(&self, path: &Path) -> Result<bool> {
        match std::fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::Open { path: path.to_path_buf(), source }),
        }
    }

    fn kind(&self, path: &Path) -> Result<Option<EntryKind>> {
        tree::kind(path)
    }

    fn entries(&self, folder: &Path) -> Result<Vec<Entry>> {
        tree::entries(folder)
    }

    fn walk<'a>(&'a self, root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
        tree::walk(root, wanted)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        Ok(Box::new(PartialUpload::create(path)?))
    }

    fn create_shared(&self, path: &Path) -> Result<Box<dyn Upload>> {
        Ok(Box::new(PartialUpload::create_shared(path)?))
    }

    fn write_new(&self, path: &Path, content: &[u8]) -> Result<bool> {
        if writing::write_once(path, content)? { Ok(true) } else { self.holds(path, content) }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        writing::unlink(path).map_err(cannot_write(path))
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        std::fs::create_dir_all(path).map_err(cannot_write(path))
    }

    fn own_folder(&self, path: &Path) -> Result<()> {
        writing::own_folder(path).map_err(cannot_write(path))
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir(path).map_err(cannot_write(path))
    }

    fn lock(&self, path: &Path) -> Result<Option<Lock>> {
        Ok(writing::lock_file(path).map_err(cannot_write(path))?.map(Lock::new))
    }

    fn drop_cache(&self, paths: &[&Path]) -> Result<DroppedCache> {
        let mut dropped = DroppedCache::default();
        for path in paths {
            // Mapped pages stay in the page cache.
            self.shared.forget(path);
            dropped.bytes += drop_file_cache(path)?;
            dropped.files += 1;
        }
        Ok(dropped)
    }

    /// As the system counts it for the entire process. A process that has not read a byte from any device, its own program included, is not counted.
    fn device_bytes_read(&self) -> Option<u64> {
        let counts = std::fs::read_to_string("/proc/self/io").ok()?;
        let read = counts.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
        read.trim().parse().ok().filter(|bytes| *bytes > 0)
    }

    fn notice(&self) -> Option<String> {
        self.shared.fallback.get().cloned()
    }
}

/// Names the file that could not be written.
pub(crate) fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_path_buf();
    move |source| Error::Write { path, source }
}

impl Shared {
    fn note_fallback(&self, path: &Path, why: &str) {
        self.fallback.get_or_init(|| {
            format!("the file system of `{}` {why}: files there are read through the page cache", path.display())
        });
    }

    /// The entire file as memory; `None` where that is impossible.
    fn map(&self, file: &LocalFile) -> Option<Mapping> {
        let descriptor = file.descriptor.get(OFlags::empty()).ok();
        let mapped = usize::try_from(file.size).ok().zip(descriptor);
        let mapped = mapped.and_then(|(size, descriptor)| MappedFile::new(&descriptor, size).ok());
        let Some(mapped) = mapped.map(Arc::new) else {
            self.note_fallback(&file.path, "maps no files");
            return None;
        };
        let mut mappings = self.mappings.lock().unwrap_or_else(PoisonError::into_inner);
        mappings.retain(|(_, mapped)| mapped.strong_count() > 0);
        mappings.push((file.path.clone(), Arc::downgrade(&mapped)));
        Some(Mapping { bytes: Bytes::from_owner(Owner(Arc::clone(&mapped))), file: mapped })
    }

    /// Lets go of the pages of a file that is mapped.
    fn forget(&self, path: &Path) {
        for (of, mapped) in &*self.mappings.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Some(mapped) = mapped.upgrade().filter(|_| of == path) {
                // Only a hint: where it is refused, a measurement is too good.
                let _ = mapped.forget();
            }
        }
    }
}

/// A file as memory: to wait for its pages, and to hand them out.
#[derive(Debug)]
struct Mapping {
    file: Arc<MappedFile>,
    bytes: Bytes,
}

/// Keeps a file mapped for as long as somebody has bytes of it.
struct Owner(Arc<MappedFile>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().as_ref()
    }
}

/// An open file of this machine.
#[derive(Debug)]
struct LocalFile {
    descriptor: Descriptor,
    path: PathBuf,
    size: u64,
    /// What direct reads are aligned to; 1 for a file that was opened through the page cache.
    alignment: usize,
    direct: AtomicBool,
    /// Whether what was read is dropped from the page cache.
    uncached: bool,
    mapping: Option<Mapping>,
    shared: Arc<Shared>,
}

impl File for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size) {
            let path = self.path.clone();
            return Err(Error::BeyondEnd { path, offset, length: length as u64, size: self.size });
        }
        if length == 0 {
            return Ok(Bytes::new());
        }
        if let Some(mapping) = &self.mapping {
            return self.read_mapped(mapping, offset, length);
        }
        if self.direct.load(Ordering::Relaxed)
            && let Some(bytes) = self.read_direct(offset, length)?
        {
            return Ok(bytes);
        }
        self.read_buffered(offset, length)
    }

    fn advise_sequential(&self) {
        if !self.direct.load(Ordering::Relaxed)
            && let Ok(descriptor) = self.descriptor.get(OFlags::empty())
        {
            // Only a hint: where it is refused, the same bytes come a little later.
            let _ = fs::fadvise(&*descriptor, 0, None, Advice::Sequential);
        }
    }
}

impl LocalFile {
    fn read_buffered(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut buffer = self.shared.pool.take(length, 1).map_err(|_| self.no_memory(offset))?;
        let descriptor = self.open(offset)?;
        let filled = self
            .fill(&descriptor, &mut buffer.as_mut_slice()[..length], offset, length)
            .map_err(|errno| self.read_error(offset, errno))?;
        self.check_filled(offset, length, filled)?;
        if self.uncached {
            // Pages that are also part of the next range stay. This is only a hint: if it is refused, a measurement is too optimistic.
            let _ = fs::fadvise(&*descriptor, offset, NonZeroU64::new(length as u64), Advice::DontNeed);
        }
        Ok(buffer.into_bytes(0..length))
    }

    /// Waits for the pages of a range. The file's size is known by now: an access to a page beyond its end would kill the process.
    fn read_mapped(&self, mapping: &Mapping, offset: u64, length: usize) -> Result<Bytes> {
        let status = fs::fstat(&*self.open(offset)?).map_err(|errno| self.read_error(offset, errno))?;
        let size = u64::try_from(status.st_size).unwrap_or(0);
        let left = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.check_filled(offset, length, left)?;
        let range = offset as usize..offset as usize + length;
        let failed = |source| Error::Read { path: self.path.clone(), offset, source };
        mapping.file.load(range.clone()).map_err(failed)?;
        Ok(mapping.bytes.slice(range))
    }

    /// Reads the aligned range around the one that is wanted. `None` if the file system refuses after all; from then on
    /// this file is read through the page cache.
    fn read_direct(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let skipped = (offset % self.alignment as u64) as usize;
        let wanted = skipped + length;
        let aligned_length = wanted.next_multiple_of(self.alignment);
        let mut buffer = self.shared.pool.take(aligned_length, self.alignment).map_err(|_| self.no_memory(offset))?;
        let descriptor = self.open(offset)?;
        let target = &mut buffer.as_mut_slice()[..aligned_length];
        let filled = match self.fill(&descriptor, target, offset - skipped as u64, wanted) {
            Ok(filled) => filled,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                self.leave_direct(&descriptor).map_err(|errno| self.read_error(offset, errno))?;
                return Ok(None);
            }
            Err(errno) => return Err(self.read_error(offset, errno)),
        };
        self.check_filled(offset, length, filled.saturating_sub(skipped))?;
        Ok(Some(buffer.into_bytes(skipped..wanted)))
    }

    /// The file, open: opened again where it was closed for others.
    fn open(&self, offset: u64) -> Result<Arc<OwnedFd>> {
        let flags = if self.direct.load(Ordering::Relaxed) { OFlags::DIRECT } else { OFlags::empty() };
        self.descriptor.get(flags).map_err(|source| Error::Read { path: self.path.clone(), offset, source })
    }

    /// Reads into `target` until it has `wanted` bytes or the file ends, and returns how many it has.
    fn fill(&self, descriptor: &OwnedFd, target: &mut [u8], offset: u64, wanted: usize) -> rustix::io::Result<usize> {
        let mut filled = 0;
        while filled < wanted {
            match rustix::io::pread(descriptor, &mut target[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                // A direct read that stops between two blocks has met the end of the file, and cannot go on from there.
                Err(Errno::INVAL) if !filled.is_multiple_of(self.alignment) => break,
                Err(errno) => return Err(errno),
            }
        }
        Ok(filled)
    }

    fn leave_direct(&self, descriptor: &OwnedFd) -> rustix::io::Result<()> {
        let flags = fs::fcntl_getfl(descriptor)?;
        fs::fcntl_setfl(descriptor, flags - OFlags::DIRECT)?;
        self.direct.store(false, Ordering::Relaxed);
        self.shared.note_fallback(&self.path, "refuses direct reads");
        Ok(())
    }

    fn check_filled(&self, offset: u64, expected: usize, filled: usize) -> Result<()> {
        if filled >= expected {
            return Ok(());
        }
        Err(Error::ShortRead { path: self.path.clone(), offset, expected: expected as u64, found: filled as u64 })
    }

    fn no_memory(&self, offset: u64) -> Error {
        Error::Read { path: self.path.clone(), offset, source: std::io::ErrorKind::OutOfMemory.into() }
    }

    fn read_error(&self, offset: u64, errno: Errno) -> Error {
        Error::Read { path: self.path.clone(), offset, source: errno.into() }
    }
}

fn regular_file_status(descriptor: &OwnedFd, path: &Path) -> Result<Statx> {
    let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::MTIME | StatxFlags::DIOALIGN;
    let status = fs::statx(descriptor, c"", AtFlags::EMPTY_PATH, wanted)
        .map_err(|errno| Error::Open { path: path.to_path_buf(), source: io::Error::from(errno) })?;
    let found = match FileType::from_raw_mode(status.stx_mode.into()) {
        FileType::RegularFile => return Ok(status),
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        _ => "something unknown",
    };
    Err(Error::NotAFile { path: path.to_path_buf(), found })
}

/// What offsets, lengths and addresses of direct reads must be multiples of; `None` if the file cannot be read so.
fn direct_alignment(status: &Statx) -> Option<usize> {
    if status.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Some(ALIGNMENT_FALLBACK);
    }
    // Both are zero where direct reads are impossible, for instance for an encrypted file.
    let alignment = status.stx_dio_mem_align.max(status.stx_dio_offset_align) as usize;
    (alignment.is_power_of_two() && alignment <= ALIGNMENT_MAX).then_some(alignment)
}

/// Opens a regular file through the page cache and returns its size: for the functions that manage the cache.
pub(crate) fn open_regular(path: &Path) -> Result<(OwnedFd, u64)> {
    let descriptor = open_descriptor(path, OFlags::empty())
        .map_err(|errno| Error::Open { path: path.to_path_buf(), source: errno.into() })?;
    let size = regular_file_status(&descriptor, path)?.stx_size;
    Ok((descriptor, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direct_read_that_is_refused_late_falls_back_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let expected: Vec<u8> = (0..10_000).map(|index| (index % 251) as u8).collect();
        std::fs::write(&path, &expected).unwrap();
        let storage = LocalStorage::direct();
        let Ok(descriptor) = open_descriptor(&path, OFlags::DIRECT) else {
            eprintln!("skipped: no direct reads in {}", folder.path().display());
            return;
        };
        let status = regular_file_status(&descriptor, &path).unwrap();
        // A wrong alignment makes reads at odd offsets fail, as they do on a file system that misreports its own.
        let file = storage.file(descriptor, &path, &status, Some(1));
        assert_eq!(file.read(333, 4000).unwrap(), expected[333..4333]);
        assert_eq!(file.read(1, 9999).unwrap(), expected[1..]);
        if storage.notice().is_none() {
            eprintln!("skipped: the file system of {} takes direct reads at any offset", folder.path().display());
            return;
        }
        assert!(!file.direct.load(Ordering::Relaxed), "it stays with the page cache");
    }
}
