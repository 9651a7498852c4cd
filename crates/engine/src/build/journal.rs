//! The journal: what is done of a build that is not finished.
//!
//! It is a folder inside the data set's: `build.json` says what is being built, and `shard-N.json` appears when shard N
//! is whole. Every file is written under a temporary name and renamed. When the manifest is written, the journal goes.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::data::{Dataset, MANIFEST_FILE, Manifest, ShardEntry, Skipped};
use crate::error::{Error, Result};

const JOURNAL_FOLDER: &str = ".forebay-build";
const BUILD_FILE: &str = "build.json";

/// A shard that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShardDone {
    pub(super) entry: ShardEntry,
    pub(super) skipped: Vec<Skipped>,
}

/// What is being built.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BuildFile {
    identity: String,
}

pub(super) struct Journal {
    output: PathBuf,
    identity: String,
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
    pub(super) fn open(output: &Path, identity: String, overwrite: bool) -> Result<Opened> {
        let journal = Self { output: output.to_owned(), identity };
        let manifest = output.join(MANIFEST_FILE);
        if manifest.exists() {
            let found = Dataset::open(output).map(|dataset| dataset.manifest().clone());
            match found {
                Ok(found) if found.identity == journal.identity && !overwrite => {
                    // A build that was killed right after writing the manifest left its journal behind.
                    journal.remove()?;
                    return Ok(Opened::Finished(Box::new(found)));
                }
                _ if overwrite => journal.clear()?,
                _ => return Err(taken(output, "another data set, or a damaged one")),
            }
        }
        let build: Option<BuildFile> = read_json(&journal.folder().join(BUILD_FILE))?;
        match build {
            Some(build) if build.identity == journal.identity && !overwrite => return Ok(Opened::Unfinished(journal)),
            Some(_) if !overwrite => return Err(taken(output, "an unfinished build of something else")),
            Some(_) => journal.clear()?,
            None if output.is_dir() && !is_empty(output)? && !journal.folder().exists() => {
                return Err(taken(output, "other files"));
            }
            None => {}
        }
        fs::create_dir_all(journal.folder()).map_err(Error::io("create the folder", &journal.folder()))?;
        let build = BuildFile { identity: journal.identity.clone() };
        write_json(&journal.folder().join(BUILD_FILE), &build)?;
        Ok(Opened::Unfinished(journal))
    }

    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Where shard number `shard` goes.
    pub(super) fn shard_path(&self, shard: usize) -> PathBuf {
        self.output.join(format!("shard-{shard:05}.tfrecord"))
    }

    /// The shards that are whole already.
    pub(super) fn finished_shards(&self, shards: usize) -> Result<Vec<Option<ShardDone>>> {
        let finished = |shard: usize| {
            let done: Option<ShardDone> = read_json(&self.note_path(shard))?;
            // A note without its shard means that somebody removed the shard: it is built again.
            let whole = |done: &ShardDone| {
                fs::metadata(self.shard_path(shard)).is_ok_and(|found| found.len() == done.entry.bytes)
            };
            Ok(done.filter(whole))
        };
        (0..shards).map(finished).collect()
    }

    /// Notes that shard number `shard` is whole.
    pub(super) fn note(&self, shard: usize, done: &ShardDone) -> Result<()> {
        write_json(&self.note_path(shard), done)
    }

    /// Writes the manifest: from now on the data set is whole.
    pub(super) fn finish(&self, manifest: &Manifest) -> Result<()> {
        write_json(&self.output.join(MANIFEST_FILE), manifest)?;
        self.remove()
    }

    /// Removes the journal, if there is one.
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

    /// Removes what an earlier build left: its manifest first, so that a data set never claims shards that are gone.
    fn clear(&self) -> Result<()> {
        remove(&self.output.join(MANIFEST_FILE))?;
        for entry in fs::read_dir(&self.output).map_err(Error::io("list", &self.output))? {
            let path = entry.map_err(Error::io("list", &self.output))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with("shard-") && name.contains(".tfrecord") {
                remove(&path)?;
            }
        }
        self.remove()
    }
}

fn taken(output: &Path, by: &str) -> Error {
    Error::Usage {
        problem: format!("the folder `{}` holds {by}", output.display()),
        remedy: "choose another folder, or pass --overwrite to replace what Forebay built there".to_owned(),
    }
}

fn is_empty(folder: &Path) -> Result<bool> {
    Ok(fs::read_dir(folder).map_err(Error::io("list", folder))?.next().is_none())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
        Ok(text) => serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| Error::Format { path: path.to_owned(), problem: format!("is damaged: {error}") }),
    }
}

/// Writes a file so that it is there whole or not at all.
fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let temporary = path.with_extension("partial");
    let mut text = serde_json::to_vec_pretty(value).expect("these types have text keys and plain values");
    text.push(b'\n');
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&temporary);
        Error::io("write", path)(source)
    })
}
