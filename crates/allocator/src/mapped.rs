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
/// It shows the pages that the system keeps of the file, so that what others write there appears in it, and touching what lies beyond the end of a file
/// that was cut short meanwhile ends the process. It is for files that stay as they are: whoever maps one promises that.
#[derive(Debug)]
pub struct MappedFile {
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is only read, by whichever thread, and belongs to this value alone.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the first `bytes` of `file`, of which there must be as many, and at least one.
    pub fn new(file: impl AsFd, bytes: usize) -> io::Result<Self> {
        // SAFETY: where the mapping lies is left to the system, so it is in nobody's way.
        let address = unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        let address = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { address, bytes })
    }

    /// Waits until the pages behind `range` are there, so that nobody who touches them waits. Of pages that cannot be had, because the
    /// device fails or the file ends before them, it is an error: touching them would end the process.
    ///
    /// # Panics
    ///
    /// If the range is not within the mapping.
    pub fn load(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {} bytes", self.bytes);
        match self.advise(range.clone(), Advice::LinuxPopulateRead) {
            // Linux before 5.14 does not know it: those who touch the pages wait.
            Err(Errno::INVAL) => self.advise(range, Advice::WillNeed).map_err(io::Error::from),
            // So it says that a touch would end the process.
            Err(Errno::FAULT | Errno::HWPOISON) => Err(Errno::IO.into()),
            done => done.map_err(io::Error::from),
        }
    }

    /// Lets go of all pages: they can be dropped from the page cache, and come back when they are touched.
    pub fn forget(&self) -> io::Result<()> {
        Ok(self.advise(0..self.bytes, Advice::LinuxDontNeed)?)
    }

    fn advise(&self, range: Range<usize>, advice: Advice) -> rustix::io::Result<()> {
        let first = range.start / rustix::param::page_size() * rustix::param::page_size();
        // SAFETY: the range is within the mapping, which is private and never written to: each page shows what the file has, before and after.
        retry_on_intr(|| unsafe { madvise(self.address.as_ptr().add(first).cast(), range.end - first, advice) })
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped there for as long as this lives. That they stay as they are is what its maker promised.
        unsafe { slice::from_raw_parts(self.address.as_ptr(), self.bytes) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has a part of it any longer.
        let _ = unsafe { munmap(self.address.as_ptr().cast(), self.bytes) };
    }
}
