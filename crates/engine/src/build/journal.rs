//! The journal: what is done of a build that is not finished.
//!
//! It is a folder inside the data set's: `build.json` says what is being built, and `shard-N-IDENTITY.json` appears when shard N
//! is whole, with its checksums. These files carry checksums of their own. Every file is there whole or not at all. When the manifest is written, the journal goes.
//! While a build runs it holds a lock in the journal, so that two builds never write into one folder. A journal that is a
//! symbolic link is refused, and only what a manifest or journal of ours names is ever removed (`claim.rs`).
//!
//! Parts of a build hold no lock, and neither does anybody in a store. One that still runs after another build was prepared in the folder must not
//! leave anything in it: so it looks at `build.json` before files get their names and afterwards, and the names of its notes say what they are of.

use std::collections::HashSet;
use std::path::Path;

use bytes::Bytes;
use forebay_error::ErrorKind;
use forebay_storage::{Folder, Lock, Upload, is_url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::claim::{Claim, check_journal, manifest_names, names_in, remove};
use super::identity::Identity;
use super::unfinished::Resume;
use crate::data::{
    Broken, DICTIONARY_FILE, Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped, blocks_path, crc_path, index_path,
    seal, sizes_path, unseal,
};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

pub(super) const JOURNAL_FOLDER: &str = ".forebay-build";
pub(super) const BUILD_FILE: &str = "build.json";
/// The samples, where many machines build.
pub(super) const LISTING_FILE: &str = "listing.jsonl";
/// What is being replaced, until all of it is gone.
pub(super) const REPLACED_FILE: &str = "replaced.json";
pub(super) const LOCK_FILE: &str = "lock";
/// How to go on.
pub(super) const COMMAND_FILE: &str = "command.json";

/// No note of a journal is near this size.
const NOTE_BYTES_MAX: u64 = 1 << 30;

/// What to do where something else of ours is in the folder.
const REPLACE: &str = "choose another folder, or pass --overwrite to replace what Forebay built there";

/// A finished shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShardDone {
    pub(super) entry: ShardEntry,
    pub(super) skipped: Vec<Skipped>,
    /// The checksum of the dictionary that its records were compressed with, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dictionary_xxh3: Option<String>,
}

pub(super) struct Journal {
    output: Folder,
    folder: Folder,
    identity: Identity,
    on_error: OnError,
    /// Held as long as the build runs, unless it is a part: parts of a build share the folder.
    lock: Option<Lock>,
}

/// What was found in the folder.
pub(super) enum Opened {
    /// The same data set, finished.
    Finished(Box<Manifest>),
    /// Nothing, or some of it.
    Unfinished(Box<Journal>),
}

impl Journal {
    /// Opens the folder `output` for the build of this identity.
    pub(super) fn open(output: Folder, identity: Identity, on_error: OnError, overwrite: bool) -> Result<Opened> {
        let folder = output.folder(JOURNAL_FOLDER);
        let storage = output.storage();
        let found = names_in(&output)?;
        if manifest_names(&output)?.is_none() && !found.is_empty() && !found.iter().any(|name| name == JOURNAL_FOLDER) {
            return Err(taken(
                &output,
                "other files, and no `dataset.json` that says whose they are",
                "choose another folder",
            ));
        }
        storage.make_folder(output.path())?;
        storage.own_folder(folder.path())?;
        check_journal(&folder)?;
        let lock = storage.lock(&folder.file(LOCK_FILE))?.ok_or_else(|| Error::Usage {
            problem: format!("another build is running in `{}`", output.path().display()),
            remedy: "wait for it, or choose another folder".to_owned(),
        })?;
        let journal = Self { output, folder, identity, on_error, lock: Some(lock) };
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
            Found::Unfinished => Ok(Opened::Unfinished(Box::new(journal))),
        }
    }

    /// Joins the build of this identity that was prepared in the folder `output`, possibly along with others.
    pub(super) fn join(output: Folder, identity: Identity, on_error: OnError) -> Result<Self> {
        let folder = output.folder(JOURNAL_FOLDER);
        match read_sealed::<Identity>(&folder, BUILD_FILE)? {
            Some(found) if found == identity => Ok(Self { output, folder, identity, on_error, lock: None }),
            Some(found) => {
                let by = format!("a build of something else: {}", identity.differences(&found));
                Err(taken(&output, &by, "pass the same options as to `--prepare`"))
            }
            None => {
                Err(taken(&output, "no build that was prepared", "run the same command with `--prepare` first, once"))
            }
        }
    }

    /// Writes down the samples of the build.
    pub(super) fn write_listing(&self, frozen: &[u8]) -> Result<()> {
        Ok(self.folder.storage().write_file(&self.folder.file(LISTING_FILE), frozen)?)
    }

    /// What is in the folder; something else is refused, or cleared away if `overwrite` says so.
    fn look(&self, overwrite: bool) -> Result<Found> {
        if overwrite {
            return self.start_over().map(|()| Found::Unfinished);
        }
        if self.output.storage().is_taken(&self.output.file(MANIFEST_FILE))? {
            let manifest = Dataset::open(self.output.clone()).map(|dataset| dataset.manifest().clone());
            return match manifest {
                Ok(found) if found.identity != self.identity.digest => {
                    Err(taken(&self.output, "another data set", REPLACE))
                }
                Ok(found) if self.on_error == OnError::Fail && !found.skipped_samples.is_empty() => {
                    let by =
                        format!("this data set, built with {} samples skipped", Skipped::count(&found.skipped_samples));
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
        let found = read_sealed::<Identity>(&self.folder, BUILD_FILE).map_err(|error| match error {
            Error::Format { .. } => {
                taken(&self.output, &format!("an unfinished build that is damaged ({error})"), REPLACE)
            }
            error => error,
        });
        match found? {
            None => {
                Claim::default().refuse_others(&self.output, self.identity.shards())?;
                // Of two builds of different data sets that find the folder empty at the same time, one continues.
                let path = self.folder.file(BUILD_FILE);
                if self.folder.storage().write_new(&path, &seal(&self.identity))? {
                    return Ok(Found::Unfinished);
                }
                Err(taken(&self.output, "a build of something else that has just begun", REPLACE))
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
        let claim = Claim::of(&self.output, &self.folder)?;
        claim.refuse_others(&self.output, self.identity.shards())?;
        write_json(&self.folder, REPLACED_FILE, &claim.files(&self.output)?)?;
        for name in names_in(&self.folder)? {
            if name != LOCK_FILE && name != REPLACED_FILE {
                remove(&self.folder, &name)?;
            }
        }
        write_sealed(&self.folder, BUILD_FILE, &self.identity)?;
        // The manifest goes first: a data set never claims shards that are gone.
        remove(&self.output, MANIFEST_FILE)?;
        self.remove_replaced()
    }

    /// Removes what is being replaced, including what a killed process left of it.
    fn remove_replaced(&self) -> Result<()> {
        let named: HashSet<String> = read_json(&self.folder, REPLACED_FILE)?.unwrap_or_default();
        let claimed = Claim::of(&self.output, &self.folder)?.files(&self.output)?;
        claimed.iter().filter(|name| named.contains(*name)).try_for_each(|name| remove(&self.output, name))?;
        remove(&self.folder, REPLACED_FILE)
    }

    /// Removes a journal that holds nothing but the lock: one that was only made to look.
    fn forget_if_unused(&self) -> Result<()> {
        let used = names_in(&self.folder)?.iter().any(|name| name != LOCK_FILE);
        if used { Ok(()) } else { self.remove() }
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity.digest
    }

    /// Where the data set goes.
    pub(super) fn output(&self) -> &Folder {
        &self.output
    }

    /// That the folder is still that of this build: somebody may have prepared another one in it meanwhile, or finished this one.
    pub(super) fn check_ours(&self) -> Result<()> {
        // Nobody else writes where a file is locked. Stores have no locks.
        if self.lock.is_some() && !is_url(self.output.path()) {
            return Ok(());
        }
        let path = self.output.path().display();
        match read_sealed::<Identity>(&self.folder, BUILD_FILE)? {
            Some(found) if found == self.identity => Ok(()),
            Some(found) => Err(Error::Usage {
                problem: format!(
                    "another build was prepared in `{path}` meanwhile: {}",
                    self.identity.differences(&found)
                ),
                remedy: "run the parts of that build; this one does not count any more".to_owned(),
            }),
            // Another machine may have finished the same build.
            None if self.lock.is_some() => Ok(()),
            None => Err(Error::Usage {
                problem: format!("the build that was prepared in `{path}` is not there any more"),
                remedy: "look whether somebody replaced it; if not, begin again with `--prepare`".to_owned(),
            }),
        }
    }

    /// The same, once files of shard number `shard` have their names: in another build they may have replaced those of its shard, which has to be
    /// built again then.
    pub(super) fn check_still_ours(&self, shard: usize) -> Result<()> {
        self.check_ours().inspect_err(|_| {
            if let Ok(Some(other)) = read_sealed::<Identity>(&self.folder, BUILD_FILE)
                && other != self.identity
            {
                let _ = remove(&self.folder, &note_name(shard, &other));
            }
        })
    }

    /// Why something failed: `error`, unless that only comes of what somebody else did with the folder.
    pub(super) fn explain(&self, error: Error) -> Error {
        match self.check_ours() {
            Err(other @ Error::Usage { .. }) if !error.ends() => other,
            _ => error,
        }
    }

    /// What is noted of shard number `shard`. One in which samples were skipped does not count, if they are not to be now, nor
    /// does a note that is damaged: such a shard is built again.
    pub(super) fn noted(&self, shard: usize, progress: &dyn Progress) -> Result<Option<ShardDone>> {
        match read_sealed::<ShardDone>(&self.folder, &note_name(shard, &self.identity)) {
            Ok(done) => Ok(done.filter(|done| self.on_error == OnError::Skip || done.skipped.is_empty())),
            Err(Error::Format { path, problem }) => {
                progress.note(&format!("`{}` {problem}; the shard is built again", path.display()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Records that shard number `shard` is finished.
    pub(super) fn note(&self, shard: usize, done: &ShardDone) -> Result<()> {
        let name = note_name(shard, &self.identity);
        if self.lock.is_some() {
            return write_sealed(&self.folder, &name, done);
        }
        self.note_once(shard, &name, done)?;
        // Whoever finished the build before this note was there did not see it.
        self.check_ours().inspect_err(|_| _ = remove(&self.folder, &name))
    }

    /// Writes a note, unless there is another one: that is an error. One that is damaged is replaced.
    fn note_once(&self, shard: usize, name: &str, done: &ShardDone) -> Result<()> {
        let (path, note) = (self.folder.file(name), seal(done));
        if self.folder.storage().write_new(&path, &note)? {
            return Ok(());
        }
        if let Err(Error::Format { .. }) = read_sealed::<ShardDone>(&self.folder, name) {
            remove(&self.folder, name)?;
            if self.folder.storage().write_new(&path, &note)? {
                return Ok(());
            }
        }
        Err(Error::Usage {
            problem: format!(
                "shard {shard} was built before with other bytes: `{}` does not say what came out now",
                path.display()
            ),
            remedy: "look whether all machines have the same version of Forebay and the same files; then remove that note, and run the \
                     part again"
                .to_owned(),
        })
    }

    /// Begins to write a file of the data set.
    pub(super) fn create(&self, path: &Path) -> Result<Box<dyn Upload>> {
        let storage = self.output.storage();
        Ok(if self.lock.is_some() { storage.create(path)? } else { storage.create_shared(path)? })
    }

    /// Writes a file of the data set.
    pub(super) fn write(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut upload = self.create(path)?;
        upload.write_all(content).map_err(Error::io("write", path))?;
        Ok(upload.commit()?)
    }

    /// Notes how to go on with the build.
    pub(super) fn note_command(&self, resume: &Resume) -> Result<()> {
        write_json(&self.folder, COMMAND_FILE, resume)
    }

    /// Writes the manifest: from now on the data set is complete. Files that the storage accepted and lost are detected before that, so that the next
    /// run writes it again.
    pub(super) fn finish(&self, manifest: &Manifest) -> Result<()> {
        for shard in &manifest.shards {
            let path = self.output.file(&shard.file);
            self.check_there(&path, Some(shard.bytes))?;
            self.check_there(&index_path(&path), None)?;
            self.check_there(&crc_path(&path), None)?;
            shard.blocks_xxh3.as_ref().map_or(Ok(()), |_| self.check_there(&blocks_path(&path), None))?;
            shard.sizes_xxh3.as_ref().map_or(Ok(()), |_| self.check_there(&sizes_path(&path), None))?;
        }
        let dictionary = self.output.file(DICTIONARY_FILE);
        manifest.dictionary_xxh3.as_ref().map_or(Ok(()), |_| self.check_there(&dictionary, None))?;
        self.check_ours()?;
        write_sealed(&self.output, MANIFEST_FILE, manifest)?;
        self.check_there(&self.output.file(MANIFEST_FILE), None)?;
        self.check_ours()?;
        self.remove()
    }

    /// Checks that a file exists with as many bytes as were written.
    fn check_there(&self, path: &Path, bytes: Option<u64>) -> Result<()> {
        let problem = match self.output.storage().status(path)? {
            None => "was written, but is not there",
            Some(found) if bytes.is_some_and(|bytes| bytes != found.bytes) => "has another size than was written",
            Some(_) => return Ok(()),
        };
        let problem = format!("{problem}\nhint: run the same command again: finished shards are kept");
        Err(Error::Format { path: path.to_owned(), problem })
    }

    /// Removes the journal.
    pub(super) fn remove(&self) -> Result<()> {
        check_journal(&self.folder)?;
        // A part that leaves a note from now on sees that nobody waits for it; one that did before is found by what follows.
        remove(&self.folder, BUILD_FILE)?;
        // The lock goes last: until then nobody else takes the folder for free.
        let (locks, notes): (Vec<_>, Vec<_>) = names_in(&self.folder)?.into_iter().partition(|name| name == LOCK_FILE);
        notes.iter().chain(&locks).try_for_each(|name| remove(&self.folder, name))?;
        Ok(self.folder.storage().remove_folder(self.folder.path())?)
    }
}

/// What shard number `shard` is called.
pub(super) fn shard_name(shard: usize) -> String {
    format!("shard-{shard:05}.tfrecord")
}

/// The note of shard number `shard` in the build of this identity.
fn note_name(shard: usize, identity: &Identity) -> String {
    format!("shard-{shard:05}-{}.json", identity.digest)
}

/// Whether this is the note of a shard in the build of this identity.
pub(super) fn is_note(name: &str, identity: &Identity) -> bool {
    noted_shard(name).is_some() && name.ends_with(&format!("-{}.json", identity.digest))
}

/// The shard that a note is about, if this is the name of one: `shard-00003.tfrecord` of `shard-00003-0123456789abcdef.json`. Those of earlier
/// versions lack the identity.
pub(super) fn noted_shard(name: &str) -> Option<String> {
    let note = name.strip_prefix("shard-")?.strip_suffix(".json")?;
    let (number, identity) = note.split_once('-').unwrap_or((note, ""));
    identity.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| format!("shard-{number}.tfrecord"))
}

/// What a look into the folder found.
enum Found {
    Finished(Box<Manifest>),
    Unfinished,
}

fn taken(output: &Folder, by: &str, remedy: &str) -> Error {
    let problem = format!("the folder `{}` holds {by}", output.path().display());
    Error::Usage { problem, remedy: remedy.to_owned() }
}

/// What is in the file `name`, if there is one.
fn read_note(folder: &Folder, name: &str) -> Result<Option<Bytes>> {
    match folder.storage().read_file(&folder.file(name), NOTE_BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
        Ok(text) => Ok(Some(text)),
    }
}

/// A note without a checksum: one that decides nothing about the data set.
pub(super) fn read_json<T: DeserializeOwned>(folder: &Folder, name: &str) -> Result<Option<T>> {
    let parse = |text: Bytes| serde_json::from_slice(&text);
    let problem = |error| Error::Format { path: folder.file(name), problem: format!("is damaged: {error}") };
    read_note(folder, name)?.map(parse).transpose().map_err(problem)
}

fn write_json<T: Serialize>(folder: &Folder, name: &str, value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value).expect("these types have text keys and plain values");
    text.push(b'\n');
    Ok(folder.storage().write_file(&folder.file(name), &text)?)
}

pub(super) fn read_sealed<T: DeserializeOwned>(folder: &Folder, name: &str) -> Result<Option<T>> {
    let problem = |broken: Broken| Error::Format { path: folder.file(name), problem: broken.to_string() };
    read_note(folder, name)?.map(|text| unseal(&text)).transpose().map_err(problem)
}

fn write_sealed<T: Serialize>(folder: &Folder, name: &str, value: &T) -> Result<()> {
    Ok(folder.storage().write_file(&folder.file(name), &seal(value))?)
}
