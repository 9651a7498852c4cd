//! The journal: what is done of a build that is not finished.
//!
//! It is a folder inside the data set's: `build.json` says what is being built, and `shard-N.json` appears when shard N
//! is whole, with its checksums. These files carry checksums of their own. Every file is written under a temporary name and renamed. When the manifest is written, the journal goes.
//! While a build runs it holds a lock in the journal, so that two builds never write into one folder.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use crate::data::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped, seal, unseal};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

const JOURNAL_FOLDER: &str = ".forebay-build";
const BUILD_FILE: &str = "build.json";
const LOCK_FILE: &str = "lock";

/// What to do where something else of ours is in the folder.
const REPLACE: &str = "choose another folder, or pass --overwrite to replace what Forebay built there";

/// A shard that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShardDone {
    pub(super) entry: ShardEntry,
    pub(super) skipped: Vec<Skipped>,
}

pub(super) struct Journal {
    output: PathBuf,
    identity: Identity,
    on_error: OnError,
    /// Held as long as the build runs.
    _lock: fs::File,
}

/// What was found in the folder.
pub(super) enum Opened {
    /// The same data set, whole.
    Finished(Box<Manifest>),
    /// Nothing, or some of it.
    Unfinished(Journal),
}

impl Journal {
    /// Opens the folder `output` for the build of this identity.
    pub(super) fn open(output: &Path, identity: Identity, on_error: OnError, overwrite: bool) -> Result<Opened> {
        let folder = output.join(JOURNAL_FOLDER);
        let ours = is_there(&output.join(MANIFEST_FILE))? || is_there(&folder)?;
        if !ours && holds_other_files(output)? {
            return Err(taken(output, "other files", "choose another folder"));
        }
        fs::create_dir_all(&folder).map_err(Error::io("create the folder", &folder))?;
        let lock = lock(&folder.join(LOCK_FILE))?;
        let journal = Self { output: output.to_owned(), identity, on_error, _lock: lock };
        let opened = journal.look(overwrite);
        if matches!(opened, Ok(Found::Finished(_))) {
            // A build that was killed right after writing the manifest left its journal behind.
            journal.remove()?;
        }
        match opened? {
            Found::Finished(manifest) => Ok(Opened::Finished(manifest)),
            Found::Unfinished => Ok(Opened::Unfinished(journal)),
        }
    }

    /// What is in the folder; something else is refused, or cleared away if `overwrite` says so.
    fn look(&self, overwrite: bool) -> Result<Found> {
        if overwrite {
            return self.start_over().map(|()| Found::Unfinished);
        }
        if is_there(&self.output.join(MANIFEST_FILE))? {
            let manifest = Dataset::open(&self.output).map(|dataset| dataset.manifest().clone());
            return match manifest {
                Ok(found) if found.identity != self.identity.digest => {
                    self.forget_if_unused()?;
                    Err(taken(&self.output, "another data set", REPLACE))
                }
                Ok(found) if self.on_error == OnError::Fail && !found.skipped.is_empty() => {
                    let by = format!("this data set, built with {} samples skipped", Skipped::count(&found.skipped));
                    Err(taken(
                        &self.output,
                        &by,
                        "pass --on-error skip to accept that, or --overwrite to build it again",
                    ))
                }
                Ok(found) => Ok(Found::Finished(Box::new(found))),
                Err(error) => Err(taken(&self.output, &format!("a damaged data set ({error})"), REPLACE)),
            };
        }
        let found = read_sealed::<Identity>(&self.folder().join(BUILD_FILE)).map_err(|error| match error {
            Error::Format { .. } => {
                taken(&self.output, &format!("an unfinished build that is damaged ({error})"), REPLACE)
            }
            error => error,
        });
        match found? {
            None => write_sealed(&self.folder().join(BUILD_FILE), &self.identity).map(|()| Found::Unfinished),
            Some(found) if found == self.identity => Ok(Found::Unfinished),
            Some(found) => {
                let by = format!("an unfinished build of something else: {}", self.identity.differences(&found));
                Err(taken(&self.output, &by, REPLACE))
            }
        }
    }

    /// Clears away what an earlier build left. Our own identity is written before anything that was whole is touched, so
    /// that a kill in between leaves a folder that the next build knows for its own.
    fn start_over(&self) -> Result<()> {
        for path in entries(&self.folder())? {
            if path.file_name().is_some_and(|name| name != LOCK_FILE) {
                remove(&path)?;
            }
        }
        write_sealed(&self.folder().join(BUILD_FILE), &self.identity)?;
        // The manifest goes first: a data set never claims shards that are gone.
        remove(&self.output.join(MANIFEST_FILE))?;
        entries(&self.output)?.iter().filter(|path| is_shard_file(path)).try_for_each(|path| remove(path))
    }

    /// Removes a journal that holds nothing but the lock: one that was only made to look.
    fn forget_if_unused(&self) -> Result<()> {
        let used = entries(&self.folder())?.iter().any(|path| path.file_name().is_some_and(|name| name != LOCK_FILE));
        if used { Ok(()) } else { self.remove() }
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity.digest
    }

    /// Where shard number `shard` goes.
    pub(super) fn shard_path(&self, shard: usize) -> PathBuf {
        self.output.join(format!("shard-{shard:05}.tfrecord"))
    }

    /// What is noted of shard number `shard`. One in which samples were skipped does not count, if they are not to be now, nor
    /// does a note that is damaged: such a shard is built again.
    pub(super) fn noted(&self, shard: usize, progress: &dyn Progress) -> Result<Option<ShardDone>> {
        match read_sealed::<ShardDone>(&self.note_path(shard)) {
            Ok(done) => Ok(done.filter(|done| self.on_error == OnError::Skip || done.skipped.is_empty())),
            Err(Error::Format { path, problem }) => {
                progress.note(&format!("`{}` {problem}; the shard is built again", path.display()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Notes that shard number `shard` is whole.
    pub(super) fn note(&self, shard: usize, done: &ShardDone) -> Result<()> {
        write_sealed(&self.note_path(shard), done)
    }

    /// Writes the manifest: from now on the data set is whole.
    pub(super) fn finish(&self, manifest: &Manifest) -> Result<()> {
        write_sealed(&self.output.join(MANIFEST_FILE), manifest)?;
        self.remove()
    }

    /// Removes the journal.
    fn remove(&self) -> Result<()> {
        match fs::remove_dir_all(self.folder()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(Error::io("remove the build's journal", &self.folder())(error))
            }
            _ => Ok(()),
        }
    }

    fn folder(&self) -> PathBuf {
        self.output.join(JOURNAL_FOLDER)
    }

    fn note_path(&self, shard: usize) -> PathBuf {
        self.folder().join(format!("shard-{shard:05}.json"))
    }
}

/// What a look into the folder found.
enum Found {
    Finished(Box<Manifest>),
    Unfinished,
}

fn lock(path: &Path) -> Result<fs::File> {
    let file = fs::File::create(path).map_err(Error::io("create the lock", path))?;
    match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(file),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Err(Error::Usage {
            problem: format!(
                "another build is running in `{}`",
                path.parent().and_then(Path::parent).unwrap_or(path).display()
            ),
            remedy: "wait for it, or choose another folder".to_owned(),
        }),
        Err(error) => Err(Error::io("lock", path)(error.into())),
    }
}

fn taken(output: &Path, by: &str, remedy: &str) -> Error {
    Error::Usage { problem: format!("the folder `{}` holds {by}", output.display()), remedy: remedy.to_owned() }
}

/// Whether there is anything at `path`. That it cannot be looked at does not mean that nothing is there: what is would be
/// written over.
fn is_there(path: &Path) -> Result<bool> {
    fs::exists(path).map_err(Error::io("look at", path))
}

/// Whether there is anything in `folder` that no build of ours left.
fn holds_other_files(folder: &Path) -> Result<bool> {
    Ok(is_there(folder)? && entries(folder)?.iter().any(|path| !is_shard_file(path)))
}

/// Whether a file is named like a shard, its index, or one of them half-written.
fn is_shard_file(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rest = name.strip_prefix("shard-").and_then(|rest| rest.split_once(".tfrecord"));
    rest.is_some_and(|(number, _)| number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = fs::read_dir(folder).map_err(Error::io("list", folder))?;
    all.map(|entry| Ok(entry.map_err(Error::io("list", folder))?.path())).collect()
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
        Ok(text) => unseal(&text)
            .map(Some)
            .map_err(|broken| Error::Format { path: path.to_owned(), problem: broken.to_string() }),
    }
}

fn write_sealed<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    write_whole(path, &seal(value))
}

/// Writes a file so that it is there whole or not at all, and stays there when the machine stops.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = path.with_added_extension("partial");
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()
    };
    let written = write().map_err(Error::io("write", path)).and_then(|()| rename(&temporary, path));
    written.inspect_err(|_| _ = fs::remove_file(&temporary))
}

/// Renames a file and makes the new name durable.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    let durable = || -> std::io::Result<()> {
        fs::rename(from, to)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(folder)?.sync_all()
    };
    durable().map_err(Error::io("rename to", to))
}
