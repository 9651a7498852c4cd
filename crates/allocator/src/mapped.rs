//! Files as memory: what the page cache holds, without a copy.

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::io::{Errno, retry_on_intr};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// The first bytes of a file as memory, for reading.
///
/// It shows the file's pages in the page cache: what others write to the file appears here, and reading past the end of a file that was truncated
/// in the meantime ends the process. So it is only for files that do not change, which the caller guarantees.
#[derive(Debug)]
pub struct MappedFile {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is only read, on any thread, and owned by this value alone.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the first `bytes` of `file`, which must have that many, and at least one.
    pub fn new(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: the system chooses the address, so the mapping overlaps nothing.
        let address = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, bytes })
    }

    /// Waits until the pages of `range` are in memory, so that later accesses do not wait. If pages are unavailable, because the
    /// device fails or the file ends before them, that is an error: accessing them would end the process.
    ///
    /// # Panics
    ///
    /// If the range is not within the mapping.
    pub fn load(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {} bytes", self.bytes);
        match self.advise(range.clone(), Advice::LinuxPopulateRead) {
            // Linux before 5.14 does not support it: the first access to a page waits.
            Err(Errno::INVAL) => self.advise(range, Advice::WillNeed).map_err(io::Error::from),
            // An access would end the process.
            Err(Errno::FAULT | Errno::HWPOISON) => Err(Errno::IO.into()),
            done => done.map_err(io::Error::from),
        }
    }

    /// Releases all pages: they can be dropped from the page cache, and are read again when they are accessed.
    pub fn forget(&self) -> io::Result<()> {
        Ok(self.advise(0..self.bytes, Advice::LinuxDontNeed)?)
    }

    fn advise(&self, range: Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        let first = range.start / rustix::param::page_size() * rustix::param::page_size();
        // SAFETY: the range is within the mapping, which is private and never written to: each page shows the file's content, before and after.
        retry_on_intr(|| unsafe { madvise(self.address.as_ptr().add(first).cast(), range.end - first, advice) })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: that many bytes are mapped there for as long as this value lives, and its creator guarantees that they do not change.
        unsafe { slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: this is the address and size of the mapping, and no borrow of it is left.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}
