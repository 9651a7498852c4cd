//! A folder of our own for files that are needed for a while.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A folder that nobody else uses and that goes away when dropped.
///
/// A process that is killed cannot remove its folder, so the next one that makes a folder there does: the name holds the
/// process, and folders of processes that are gone are removed.
#[derive(Debug)]
pub(crate) struct ScratchFolder {
    path: PathBuf,
}

impl ScratchFolder {
    /// A fresh folder below `parent`, which is made if it is not there.
    pub(crate) fn new(parent: &Path, purpose: &str) -> Result<Self> {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        std::fs::create_dir_all(parent).map_err(Error::io("create the folder", parent))?;
        let prefix = format!(".forebay-{purpose}-");
        sweep(parent, &prefix);
        let process = std::process::id();
        for number in 0.. {
            let path = parent.join(format!("{prefix}{process}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                // Of this same process: two profiles at once are fine.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("create the folder", &path)(error)),
            }
        }
        unreachable!("a process does not make 2^32 folders")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What cannot be removed is left; it is swept later.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn sweep(parent: &Path, prefix: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(prefix)?.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_swept_and_nothing_else() {
        let parent = tempfile::tempdir().expect("a folder");
        // Process numbers end well below this one.
        for name in [".forebay-probe-4294967295-0", ".forebay-probe-x-0", ".forebay-probe-1-0", "mine"] {
            std::fs::create_dir(parent.path().join(name)).expect(name);
        }
        let folder = ScratchFolder::new(parent.path(), "probe").expect("a folder of our own");
        let second = ScratchFolder::new(parent.path(), "probe").expect("another");
        assert_ne!(folder.path(), second.path());
        drop((folder, second));
        let mut left: Vec<String> = std::fs::read_dir(parent.path())
            .expect("it is there")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, [".forebay-probe-1-0", ".forebay-probe-x-0", "mine"]);
    }
}
