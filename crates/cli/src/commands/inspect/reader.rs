//! What is looked at, opened: a file of this machine, which may be a pipe, or an object in a store.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;

use forebay_engine::StorageChoice;
use forebay_storage::{Stream, is_url};

use crate::error::{Error, Result};

/// What is asked of a store at once.
const PIECE_BYTES: usize = 4 << 20;

/// What can be read from front to back, or from elsewhere.
pub(super) trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

/// The file at `path`, from its first byte on.
pub(super) fn open(path: &Path) -> Result<Box<dyn Input>> {
    if !is_url(path) {
        return Ok(Box::new(File::open(path).map_err(Error::io("open", path))?));
    }
    let storage = StorageChoice::Local.open(0)?;
    let file = storage.open(path).map_err(forebay_engine::Error::from)?;
    Ok(Box::new(Stream::owning(file).in_pieces(PIECE_BYTES)))
}

/// How many bytes it has.
pub(super) fn size(path: &Path) -> Result<u64> {
    if !is_url(path) {
        return Ok(fs::metadata(path).map_err(Error::io("look at", path))?.len());
    }
    let found = StorageChoice::Local.open(0)?.status(path).map_err(forebay_engine::Error::from)?;
    found.map(|found| found.bytes).ok_or_else(|| Error::io("look at", path)(io::ErrorKind::NotFound.into()))
}
