//! A build that is not finished, for whoever finds it.

use std::fs;
use std::path::Path;

use forebay_storage::lock_file;
use serde::{Deserialize, Serialize};

use super::claim::entries;
use super::identity::Identity;
use super::journal::{BUILD_FILE, COMMAND_FILE, JOURNAL_FOLDER, LOCK_FILE, ShardDone, read_json, read_sealed};
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
    /// What it keeps.
    pub strategy: String,
    /// How many shards there will be.
    pub shards: usize,
    /// How many are whole.
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
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        let journal = folder.join(JOURNAL_FOLDER);
        let is_journal = fs::symlink_metadata(&journal).is_ok_and(|found| found.is_dir());
        if !is_journal || fs::symlink_metadata(folder.join(MANIFEST_FILE)).is_ok() {
            return Ok(None);
        }
        let Some(identity) = read_sealed::<Identity>(&journal.join(BUILD_FILE))? else { return Ok(None) };
        let is_note = |path: &Path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.strip_prefix("shard-").and_then(|rest| rest.strip_suffix(".json")).is_some()
        };
        let (mut shards_done, mut samples_done, mut bytes_done) = (0, 0, 0);
        for path in entries(&journal)?.iter().filter(|path| is_note(path)) {
            if let Some(done) = read_sealed::<ShardDone>(path)? {
                shards_done += 1;
                samples_done += done.entry.samples;
                bytes_done += done.entry.bytes;
            }
        }
        let lock = journal.join(LOCK_FILE);
        Ok(Some(Self {
            strategy: identity.strategy().to_owned(),
            shards: identity.shards(),
            shards_done,
            samples_done,
            bytes_done,
            running: lock.exists() && matches!(lock_file(&lock), Ok(None)),
            resume: read_json(&journal.join(COMMAND_FILE))?,
        }))
    }
}
