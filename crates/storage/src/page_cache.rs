//! The system's page cache: dropping it for some files or altogether, and asking what is in it.

use std::io::{self, IoSliceMut, Write};
use std::path::Path;

use rustix::fs::{self, Advice};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};

use crate::local::open_regular;
use crate::{Error, Result};

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// How many pages of a file are looked at to estimate how much of it is cached.
const SAMPLED_PAGES_MAX: u64 = 256;

/// Drops the cached pages of one file and returns its size. Needs no special rights.
pub(crate) fn drop_file_cache(path: &Path) -> Result<u64> {
    let (descriptor, size) = open_regular(path)?;
    let failed = |errno: Errno| Error::DropCache { path: path.to_path_buf(), source: errno.into() };
    // A dirty page is not dropped, so what was just written must reach the device first.
    match retry_on_intr(|| fs::fdatasync(&descriptor)) {
        // File systems without a device have nothing to sync.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => {}
        Err(errno) => return Err(failed(errno)),
    }
    fs::fadvise(&descriptor, 0, None, Advice::DontNeed).map_err(failed)?;
    Ok(size)
}

/// Drops the page cache of the entire machine, including directory entries and inodes. Only root may; see
/// [`Storage::drop_cache`](crate::Storage::drop_cache) for what needs no rights.
pub fn drop_all_caches() -> Result<()> {
    rustix::fs::sync();
    write_drop_request(Path::new(DROP_CACHES))
}

fn write_drop_request(control: &Path) -> Result<()> {
    let write = || -> io::Result<()> { std::fs::OpenOptions::new().write(true).open(control)?.write_all(b"3\n") };
    write().map_err(|source| Error::DropAllCaches { path: control.to_path_buf(), source })
}

/// Estimates which fraction of a file, 0 to 1, is in the page cache, from up to 256 pages spread evenly over it.
///
/// An empty file counts as wholly cached. Looking has a price: a page that was looked at and was not cached is
/// loaded afterwards, so this is for checking, not for use between dropping the cache and a measurement.
pub fn resident_fraction(path: &Path) -> Result<f64> {
    let (descriptor, size) = open_regular(path)?;
    // Without this the first page that is missing would start read-ahead of those that are looked at next.
    let _ = fs::fadvise(&descriptor, 0, None, Advice::Random);
    let page_bytes = rustix::param::page_size() as u64;
    let pages = size.div_ceil(page_bytes);
    let sampled = pages.min(SAMPLED_PAGES_MAX);
    if sampled == 0 {
        return Ok(1.0);
    }
    let mut resident = 0_u64;
    for sample in 0..sampled {
        let offset = (u128::from(sample) * u128::from(pages) / u128::from(sampled)) as u64 * page_bytes;
        let mut byte = [0];
        let mut into = [IoSliceMut::new(&mut byte)];
        match retry_on_intr(|| rustix::io::preadv2(&descriptor, &mut into, offset, ReadWriteFlags::NOWAIT)) {
            Ok(_) => resident += 1,
            Err(Errno::AGAIN) => {}
            Err(errno) => {
                return Err(Error::Read { path: path.to_path_buf(), offset, source: errno.into() });
            }
        }
    }
    Ok(resident as f64 / sampled as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_error::ErrorKind;

    #[test]
    fn the_request_to_drop_all_is_written_and_its_failure_explained() {
        let folder = tempfile::tempdir().unwrap();
        let control = folder.path().join("drop_caches");
        std::fs::write(&control, "").unwrap();
        write_drop_request(&control).unwrap();
        assert_eq!(std::fs::read(&control).unwrap(), b"3\n");

        let error = write_drop_request(&folder.path().join("absent/drop_caches")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let message = error.to_string();
        assert!(message.contains("absent/drop_caches`"), "{message}");
        assert!(message.contains("hint: run as root"), "{message}");
    }
}
