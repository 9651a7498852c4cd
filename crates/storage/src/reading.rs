//! Reading small files that another file named.
//!
//! A manifest, a pipeline or a plan may come from somebody else, and so may the paths in it. A pipe would be waited for without end and
//! a device read without end, so only regular files are opened, and never more of them than a stated limit is read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::local::open_regular;
use crate::{Error, Result};

/// Opens a regular file for reading. Anything else is refused, without waiting for it.
pub fn open_file(path: &Path) -> Result<File> {
    open_regular(path).map(|(descriptor, _)| descriptor.into())
}

/// Reads an entire regular file, unless it has more than `limit_bytes`.
pub fn read_file(path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
    let (descriptor, size) = open_regular(path)?;
    let too_large = |found| Error::TooLarge { path: path.to_path_buf(), limit_bytes, found };
    if size > limit_bytes {
        return Err(too_large(size));
    }
    let mut content = Vec::new();
    // It may grow while it is read.
    let read = File::from(descriptor).take(limit_bytes.saturating_add(1)).read_to_end(&mut content);
    read.map_err(|source| Error::Read { path: path.to_path_buf(), offset: content.len() as u64, source })?;
    if content.len() as u64 > limit_bytes { Err(too_large(content.len() as u64)) } else { Ok(content) }
}

/// The same as text.
pub fn read_text(path: &Path, limit_bytes: u64) -> Result<String> {
    String::from_utf8(read_file(path, limit_bytes)?).map_err(|_| Error::NotText { path: path.to_path_buf() })
}
