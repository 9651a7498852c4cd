//! Describes an unfinished build.

use forebay_storage::{EntryKind, Folder};
use serde::{Deserialize, Serialize};

use super::claim::names_in;
use super::identity::Identity;
use super::journal::{BUILD_FILE, COMMAND_FILE, JOURNAL_FOLDER, LOCK_FILE, ShardDone, is_note, read_json, read_sealed};
use crate::data::MANIFEST_FILE;
use crate::error::Result;

/// How to go on with a build: its command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The folder in which it was called.
    pub folder: String,
    /// What followed the program's name.
    pub arguments: Vec<String>,
}

/// What there is of a build that is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// What it stores.
    pub strategy: String,
    /// How many shards there will be.
    pub shards: usize,
    /// The number of finished ones.
    pub shards_done: usize,
    /// How many samples those have.
    pub samples_done: u64,
    /// How many bytes.
    pub bytes_done: u64,
    /// Whether it is running now.
    pub running: bool,
    /// How to go on with it, where that is known.
    pub resume: Option<Resume>,
}

impl Unfinished {
    /// The build in `folder`, if there is one that is not finished.
    pub fn find(folder: impl Into<Folder>) -> Result<Option<Self>> {
        let folder = folder.into();
        let (storage, journal) = (folder.storage(), folder.folder(JOURNAL_FOLDER));
        let found = storage.entries(folder.path())?;
        let is_journal = found.iter().any(|entry| entry.path == journal.path() && entry.kind == EntryKind::Folder);
        if !is_journal || storage.is_taken(&folder.file(MANIFEST_FILE))? {
            return Ok(None);
        }
        let Some(identity) = read_sealed::<Identity>(&journal, BUILD_FILE)? else { return Ok(None) };
        let (mut shards_done, mut samples_done, mut bytes_done) = (0, 0, 0);
        for name in names_in(&journal)?.iter().filter(|name| is_note(name, &identity)) {
            if let Some(done) = read_sealed::<ShardDone>(&journal, name)? {
                shards_done += 1;
                samples_done += done.entry.samples;
                bytes_done += done.entry.bytes;
            }
        }
        let lock = journal.file(LOCK_FILE);
        Ok(Some(Self {
            strategy: identity.strategy().to_owned(),
            shards: identity.shards(),
            shards_done,
            samples_done,
            bytes_done,
            running: storage.is_taken(&lock)? && matches!(storage.lock(&lock), Ok(None)),
            resume: read_json(&journal, COMMAND_FILE)?,
        }))
    }
}
