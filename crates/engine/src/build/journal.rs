//! The journal: what is done of a build that is not finished.
//!
//! It is a folder inside the data set's: `build.json` says what is being built, and `shard-N.json` appears when shard N
//! is whole, with its checksums. These files carry checksums of their own. Every file is written under a temporary name and renamed. When the manifest is written, the journal goes.
//! While a build runs it holds a lock in the journal, so that two builds never write into one folder. A journal that is a
//! symbolic link is refused, and only what a manifest or journal of ours names is ever removed (`claim.rs`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_storage::{lock_file, own_folder, read_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::claim::{Claim, check_journal, entries, is_there, manifest_names, remove};
use super::identity::Identity;
use super::unfinished::Resume;
use crate::data::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped, seal, unseal};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

pub(super) const JOURNAL_FOLDER: &str = ".forebay-build";
pub(super) const BUILD_FILE: &str = "build.json";
/// What is being replaced, until all of it is gone.
pub(super) const REPLACED_FILE: &str = "replaced.json";
pub(super) const LOCK_FILE: &str = "lock";
/// How to go on.
pub(super) const COMMAND_FILE: &str = "command.json";

/// No note of a journal is near this size.
const NOTE_BYTES_MAX: u64 = 1 << 30;

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
        let ours = manifest_names(output)?.is_some() || is_there(&folder)?;
        if !ours && !entries(output)?.is_empty() {
            return Err(taken(output, "other files", "choose another folder"));
        }
        fs::create_dir_all(output).map_err(Error::io("create the folder", output))?;
        own_folder(&folder).map_err(Error::io("use the folder", &folder))?;
        check_journal(&folder)?;
        let lock = lock(&folder.join(LOCK_FILE))?;
        let journal = Self { output: output.to_owned(), identity, on_error, _lock: lock };
        let opened = journal.look(overwrite);
        if opened.is_err() {
            journal.forget_if_unused()?;
        }
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
            None => {
                Claim::default().refuse_others(&self.output, self.identity.shards())?;
                write_sealed(&self.folder().join(BUILD_FILE), &self.identity).map(|()| Found::Unfinished)
            }
            Some(found) if found == self.identity => self.remove_replaced().map(|()| Found::Unfinished),
            Some(found) => {
                let by = format!("an unfinished build of something else: {}", self.identity.differences(&found));
                Err(taken(&self.output, &by, REPLACE))
            }
        }
    }

    /// Clears away what an earlier build left, and nothing else. What that is and our own identity are written down before
    /// anything that was whole is touched, so that a kill in between leaves a folder that the next build knows for its own.
    fn start_over(&self) -> Result<()> {
        let claim = Claim::of(&self.output, &self.folder())?;
        claim.refuse_others(&self.output, self.identity.shards())?;
        write_json(&self.folder().join(REPLACED_FILE), &claim.files(&self.output)?)?;
        for path in entries(&self.folder())? {
            if path.file_name().is_some_and(|name| name != LOCK_FILE && name != REPLACED_FILE) {
                remove(&path)?;
            }
        }
        write_sealed(&self.folder().join(BUILD_FILE), &self.identity)?;
        // The manifest goes first: a data set never claims shards that are gone.
        remove(&self.output.join(MANIFEST_FILE))?;
        self.remove_replaced()
    }

    /// Removes what is being replaced; whoever was killed while doing so left the rest to us.
    fn remove_replaced(&self) -> Result<()> {
        let list = self.folder().join(REPLACED_FILE);
        let named: HashSet<String> = read_json(&list)?.unwrap_or_default();
        let claimed = Claim::of(&self.output, &self.folder())?.files(&self.output)?;
        claimed.iter().filter(|name| named.contains(*name)).try_for_each(|name| remove(&self.output.join(name)))?;
        remove(&list)
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

    /// Notes how to go on with the build.
    pub(super) fn note_command(&self, resume: &Resume) -> Result<()> {
        write_json(&self.folder().join(COMMAND_FILE), resume)
    }

    /// Writes the manifest: from now on the data set is whole.
    pub(super) fn finish(&self, manifest: &Manifest) -> Result<()> {
        write_sealed(&self.output.join(MANIFEST_FILE), manifest)?;
        self.remove()
    }

    /// Removes the journal.
    fn remove(&self) -> Result<()> {
        let folder = self.folder();
        check_journal(&folder)?;
        // The lock goes last: until then nobody else takes the folder for free.
        let (locks, notes): (Vec<_>, Vec<_>) =
            entries(&folder)?.into_iter().partition(|path| path.file_name().is_some_and(|name| name == LOCK_FILE));
        notes.iter().chain(&locks).try_for_each(|path| remove(path))?;
        fs::remove_dir(&folder).map_err(Error::io("remove the build's journal", &folder))
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
    lock_file(path).map_err(Error::io("lock", path))?.ok_or_else(|| Error::Usage {
        problem: format!(
            "another build is running in `{}`",
            path.parent().and_then(Path::parent).unwrap_or(path).display()
        ),
        remedy: "wait for it, or choose another folder".to_owned(),
    })
}

fn taken(output: &Path, by: &str, remedy: &str) -> Error {
    Error::Usage { problem: format!("the folder `{}` holds {by}", output.display()), remedy: remedy.to_owned() }
}

/// What is in the file `path`, if there is one.
fn read_note(path: &Path) -> Result<Option<Vec<u8>>> {
    match read_file(path, NOTE_BYTES_MAX) {
        Err(forebay_storage::Error::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
        Ok(text) => Ok(Some(text)),
    }
}

/// A note without a checksum: one that decides nothing about the data set.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let parse = |text: Vec<u8>| serde_json::from_slice(&text);
    let problem = |error| Error::Format { path: path.to_owned(), problem: format!("is damaged: {error}") };
    read_note(path)?.map(parse).transpose().map_err(problem)
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).expect("these types have text keys and plain values");
    text.push(b'\n');
    write_whole(path, &text)
}

pub(super) fn read_sealed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match read_note(path)? {
        None => Ok(None),
        Some(text) => unseal(&text)
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
    forebay_storage::write_whole(path, &temporary, content).map_err(Error::io("write", path))
}

/// Renames a file and makes the new name durable.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    forebay_storage::rename_durably(from, to).map_err(Error::io("rename to", to))
}
