//! Writing what others must not redirect.
//!
//! A folder that Forebay writes to may have come from somebody else: unpacked from an archive, say, with a symbolic link where Forebay
//! will put a file. Opening such a name for writing would write to wherever the link leads. So files are made here, and nowhere
//! else: what has the name already is unlinked, never opened, and the new file is made with `O_EXCL`, which follows no link. Folders and
//! locks of Forebay's own are refused where they are links.
//!
//! The folder that the user named may itself be a link: that is the user's word. And this is no defense against somebody who
//! changes the folder while Forebay works in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use crate::local::cannot_write;
use crate::{Result, Upload};

/// Creates a new file. An existing file or link of this name is unlinked first; the target of a link is not changed.
pub fn create_fresh(path: &Path) -> io::Result<File> {
    unlink(path)?;
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Removes a file or link, if it exists. The target of a link stays.
pub fn unlink(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Writes a file atomically and durably. Until it is complete it has the name
/// `temporary`, in the same folder.
pub fn write_whole(path: &Path, temporary: &Path, content: &[u8]) -> io::Result<()> {
    let write = || -> io::Result<()> {
        let mut file = create_fresh(temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        drop(file);
        rename_durably(temporary, path)
    };
    write().inspect_err(|_| _ = fs::remove_file(temporary))
}

/// Writes a file unless one of this name exists; returns whether it did. Of several concurrent writers, one succeeds.
pub(crate) fn write_once(path: &Path, content: &[u8]) -> Result<bool> {
    let temporary = name_of_its_own(path);
    let write = || -> io::Result<()> {
        let mut file = create_fresh(&temporary)?;
        file.write_all(content)?;
        file.sync_all()
    };
    // Unlike renaming, linking fails if the name exists.
    let link = || match fs::hard_link(&temporary, path) {
        Ok(()) => sync_folder(path).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        // A file system without links: the best that is left.
        Err(_) if fs::symlink_metadata(path).is_ok() => Ok(false),
        Err(_) => rename_durably(&temporary, path).map(|()| true),
    };
    let written = write().map_err(cannot_write(&temporary)).and_then(|()| link().map_err(cannot_write(path)));
    let _ = fs::remove_file(&temporary);
    written
}

/// What a file is called until it has its name, where others may write it at the same time, on other machines too: the process's number, that of the
/// write, and the time.
pub(crate) fn name_of_its_own(path: &Path) -> PathBuf {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let number = WRITES.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    path.with_added_extension(format!("{}-{number}-{time}.partial", std::process::id()))
}

/// A file of this machine that is being written, under its name with `.partial` behind it.
#[derive(Debug)]
pub(crate) struct PartialUpload {
    path: PathBuf,
    temporary: PathBuf,
    /// `None` once it has its name.
    file: Option<File>,
}

impl PartialUpload {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::under(path, path.with_added_extension("partial"))
    }

    /// The same under a name that nobody else uses.
    pub(crate) fn create_shared(path: &Path) -> Result<Self> {
        Self::under(path, name_of_its_own(path))
    }

    fn under(path: &Path, temporary: PathBuf) -> Result<Self> {
        let file = create_fresh(&temporary).map_err(cannot_write(&temporary))?;
        Ok(Self { path: path.to_owned(), temporary, file: Some(file) })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| ErrorKind::NotFound.into())
    }
}

impl Write for PartialUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file()?.flush()
    }
}

impl Upload for PartialUpload {
    fn commit(mut self: Box<Self>) -> Result<()> {
        let synced = self.file().and_then(|file| file.sync_all());
        let renamed = synced.and_then(|()| rename_durably(&self.temporary, &self.path));
        renamed.map_err(cannot_write(&self.path))?;
        self.file = None;
        Ok(())
    }
}

impl Drop for PartialUpload {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // If it cannot be removed, the next writer of this file overwrites it.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Renames a file and makes the new name durable. Where the new name is a link, the link is replaced, not what it leads to.
pub fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(to)
}

/// Makes the name of a file durable.
fn sync_folder(of: &Path) -> io::Result<()> {
    let folder = of.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Creates a folder for Forebay alone, or uses the existing one. A link is refused, even to a folder.
pub fn own_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path)?;
            if found.is_symlink() {
                return Err(redirected());
            }
            if found.is_dir() { Ok(()) } else { Err(error) }
        }
        made => made,
    }
}

/// Makes the folder `below` of the folder `root`, which is made as well. Links between the two are refused: they would lead out.
pub fn create_folders_below(root: &Path, below: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let mut folder = root.to_owned();
    for part in below.components() {
        let Component::Normal(name) = part else {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is not below the folder"));
        };
        folder.push(name);
        own_folder(&folder)?;
    }
    Ok(())
}

/// Opens or makes a file and locks it for this process; `None` where another holds it. A link is refused, and nothing is written.
pub fn lock_file(path: &Path) -> io::Result<Option<File>> {
    loop {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened =
            OpenOptions::new().write(true).create(true).truncate(false).custom_flags(flags.cast_signed()).open(path);
        let file = opened.map_err(|error| if path.is_symlink() { redirected() } else { error })?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
            // Whoever held it may have removed it meanwhile: then this is a lock on nothing.
            Ok(()) if is_at(&file, path)? => return Ok(Some(file)),
            Ok(()) => {}
        }
    }
}

/// Whether the open file is still the one called `path`.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn redirected() -> io::Error {
    io::Error::other(
        "it is a symbolic link, which would lead elsewhere\nhint: look where it leads, then remove it or choose another folder",
    )
}
