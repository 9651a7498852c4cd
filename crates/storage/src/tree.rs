//! The files below a folder of this machine.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;
use walkdir::WalkDir;

use crate::{Entry, EntryKind, Error, Result, Status, Version, Walk, Walked};

/// Everything right in `folder`.
pub(crate) fn entries(folder: &Path) -> Result<Vec<Entry>> {
    let failed = |source| Error::List { path: folder.to_path_buf(), source };
    let all = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        all => all.map_err(failed)?,
    };
    let entry = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|source| Error::List { path: path.clone(), source })?;
        let kind = match (kind.is_file(), kind.is_dir()) {
            (true, _) => EntryKind::File,
            (_, true) => EntryKind::Folder,
            _ => EntryKind::Other,
        };
        Ok(Entry { path, kind })
    };
    all.map(entry).collect()
}

/// The size and version of what `path` leads to.
pub(crate) fn status(path: &Path) -> Result<Option<Status>> {
    match std::fs::metadata(path) {
        Ok(found) => Ok(Some(status_of(&found))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Open { path: path.to_path_buf(), source }),
    }
}

/// What `path` leads to.
pub(crate) fn kind(path: &Path) -> Result<Option<EntryKind>> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(Some(EntryKind::Folder)),
        Ok(found) if found.is_file() => Ok(Some(EntryKind::File)),
        Ok(_) => Ok(Some(EntryKind::Other)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(source) => Err(Error::Open { path: path.to_path_buf(), source }),
    }
}

fn status_of(found: &std::fs::Metadata) -> Status {
    let time = found.modified().ok().and_then(|time: SystemTime| time.duration_since(UNIX_EPOCH).ok());
    // Nanoseconds, of which 64 bits last for five centuries.
    Status { bytes: found.len(), version: Version(time.map_or(0, |time| time.as_nanos() as u64)) }
}

/// The files below `root` that are `wanted`.
pub(crate) fn walk<'a>(root: &Path, wanted: &'a dyn Fn(&Path) -> bool) -> Walk<'a> {
    let root = root.to_path_buf();
    let mut last = root.clone();
    Box::new(WalkDir::new(&root).follow_links(true).into_iter().filter_map(move |entry| match entry {
        Ok(entry) => {
            entry.path().clone_into(&mut last);
            let below = last.strip_prefix(&root).unwrap_or(&last);
            // Anything but a folder may be one of the files; its type, size and version are only looked up if it is wanted.
            if entry.file_type().is_dir() || !wanted(below) {
                return None;
            }
            match entry.metadata() {
                Ok(found) if !found.is_file() => None,
                Ok(found) => Some(Ok(Walked { below: below.to_owned(), status: Some(status_of(&found)) })),
                Err(error) => Some(Err(cannot_list(error, &last, &root))),
            }
        }
        // A link to one of its own parents leads nowhere new.
        Err(error) if error.loop_ancestor().is_some() => None,
        Err(error) if leads_nowhere(&error) => {
            let path = error.path().unwrap_or(&root);
            let below = path.strip_prefix(&root).unwrap_or(path);
            wanted(below).then(|| Ok(Walked { below: below.to_owned(), status: None }))
        }
        Err(error) => Some(Err(cannot_list(error, &last, &root))),
    }))
}

/// Whether this is about a link whose target is not there or out of reach, and not about a disk that fails.
fn leads_nowhere(error: &walkdir::Error) -> bool {
    let said = error.io_error().and_then(Errno::from_io_error);
    matches!(said, Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP))
        && error.path().is_some_and(Path::is_symlink)
}

/// An error that names what could not be listed. Where reading on in a folder failed it is not said in which: it is the one of its
/// depth that `last`, the entry before, lies in.
fn cannot_list(error: walkdir::Error, last: &Path, root: &Path) -> Error {
    let below = last.strip_prefix(root).unwrap_or(Path::new(""));
    let folder = || root.components().chain(below.components().take(error.depth().saturating_sub(1))).collect();
    let path = error.path().map_or_else(folder, Path::to_owned);
    Error::List { path, source: error.into_io_error().unwrap_or_else(|| io::Error::other("cannot be listed")) }
}
