//! A folder of our own for files that are needed for a while.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use forebay_storage::lock_file;

use crate::error::{Error, Result};

/// The file in a scratch folder that its process holds locked.
const LOCK_FILE: &str = "forebay.lock";

/// A folder that nobody else uses and that goes away when dropped.
///
/// A process that is killed cannot remove its folder, so the next one that makes a folder there does: a folder whose lock nobody
/// holds belongs to nobody. (Not by the number of the process: a process of another machine, or of another container, that shares
/// the folder with us has numbers of its own.)
#[derive(Debug)]
pub struct ScratchFolder {
    path: PathBuf,
    /// Held as long as the folder is.
    _lock: File,
}

impl ScratchFolder {
    /// A fresh folder below `parent`, which is made if it is not there. `purpose` becomes a part of its name.
    pub fn new(parent: &Path, purpose: &str) -> Result<Self> {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        fs::create_dir_all(parent).map_err(Error::io("create the folder", parent))?;
        let prefix = format!(".forebay-{purpose}-");
        sweep(parent, &prefix);
        let process = std::process::id();
        for number in 0.. {
            let path = parent.join(format!("{prefix}{process}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let lock = path.join(LOCK_FILE);
                    match lock_file(&lock) {
                        Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                        // Somebody swept it before it was locked.
                        Ok(None) => {}
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        Err(error) => {
                            // Nobody would know whose it is: what is left without a lock is not swept.
                            let _ = fs::remove_dir_all(&path);
                            return Err(Error::io("lock", &lock)(error));
                        }
                    }
                }
                // Of this same process: two profiles at once are fine.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create the folder", &path)(error)),
            }
        }
        unreachable!("a process does not make 2^32 folders")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What cannot be removed is left; it is swept later.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders that processes which are gone have left. A link is none of them, and neither is a folder without a lock.
fn sweep(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let named = entry.file_name().to_str().is_some_and(|name| is_scratch_name(name, prefix));
        if !named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let lock = entry.path().join(LOCK_FILE);
        if fs::symlink_metadata(&lock).is_ok_and(|found| found.is_file())
            && let Ok(Some(_lock)) = lock_file(&lock)
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// `.forebay-probe-4711-0`
fn is_scratch_name(name: &str, prefix: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix(prefix).and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, number)| digits(process) && digits(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_nobody_holds_are_swept_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        let at = |name: &str| parent.path().join(name);
        for name in [".forebay-probe-7-0", ".forebay-probe-x-0", ".forebay-probe-1-0", ".forebay-probe-2-0", "mine"] {
            fs::create_dir(at(name)).expect(name);
            fs::write(at(name).join("content"), "x").expect(name);
        }
        for name in [".forebay-probe-7-0", ".forebay-probe-x-0", ".forebay-probe-1-0", "mine"] {
            fs::write(at(name).join(LOCK_FILE), "").expect(name);
        }
        std::os::unix::fs::symlink(at("mine"), at(".forebay-probe-3-0")).expect("a link");
        let held = lock_file(&at(".forebay-probe-1-0").join(LOCK_FILE)).expect("a lock").expect("nobody holds it");
        let folder = ScratchFolder::new(parent.path(), "probe").expect("a folder of our own");
        let second = ScratchFolder::new(parent.path(), "probe").expect("another");
        assert_ne!(folder.path(), second.path());
        drop((folder, second, held));
        let mut left: Vec<String> = fs::read_dir(parent.path())
            .expect("it is there")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        let expected = [".forebay-probe-1-0", ".forebay-probe-2-0", ".forebay-probe-3-0", ".forebay-probe-x-0", "mine"];
        assert_eq!(left, expected);
        assert!(at("mine").join("content").exists());
    }
}
