//! What in a folder is ours. Only that is ever replaced or removed: the folder may hold, or lead to, what somebody else needs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;

use forebay_error::ErrorKind;
use forebay_storage::{EntryKind, Folder};
use serde::Deserialize;

use super::identity::Identity;
use super::journal::{
    BUILD_FILE, COMMAND_FILE, LISTING_FILE, LOCK_FILE, REPLACED_FILE, noted_shard, read_json, read_sealed,
};
use crate::data::{BESIDE_SHARD, DICTIONARY_FILE, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
use crate::error::{Error, Result};

/// The shards that a manifest or a journal of ours names.
#[derive(Debug, Default)]
pub(super) struct Claim {
    names: HashSet<String>,
    /// Of an unfinished build, all shards below this number.
    below: u64,
}

impl Claim {
    /// What is ours in the folder `output`, whose journal is `journal`. A manifest that is not ours is refused.
    pub(super) fn of(output: &Folder, journal: &Folder) -> Result<Self> {
        let mut names: HashSet<String> = manifest_names(output)?.unwrap_or_default().into_iter().collect();
        let notes = names_in(journal)?;
        names.extend(notes.iter().filter_map(|note| noted_shard(note)));
        names.extend(intact(read_json::<Vec<String>>(journal, REPLACED_FILE))?.unwrap_or_default());
        names.retain(|name| shard_number(name).is_some());
        let unfinished = intact(read_sealed::<Identity>(journal, BUILD_FILE))?;
        Ok(Self { names, below: unfinished.map_or(0, |identity| identity.shards() as u64) })
    }

    /// The names of existing files: shards, and their tables.
    pub(super) fn files(&self, output: &Folder) -> Result<Vec<String>> {
        let mut names = names_in(output)?;
        names.retain(|name| self.holds(name));
        Ok(names)
    }

    /// An error if there is anything of someone else's where a build of that many shards would write.
    pub(super) fn refuse_others(&self, output: &Folder, shards: usize) -> Result<()> {
        let wanted = Self { below: shards as u64, ..Self::default() };
        let others = wanted.files(output)?.into_iter().find(|name| !self.holds(name));
        others.map_or(Ok(()), |name| {
            Err(Error::Usage {
                problem: format!(
                    "`{}` is in the way, and no build of Forebay here names it",
                    output.file(name).display()
                ),
                remedy: "choose another folder, or move that file away".to_owned(),
            })
        })
    }

    fn holds(&self, file: &str) -> bool {
        if whole_name(file) == DICTIONARY_FILE {
            return self.below > 0 || !self.names.is_empty();
        }
        let shard = shard_of(file);
        shard_number(shard).is_some_and(|number| number < self.below || self.names.contains(shard))
    }
}

/// The shard that a file with such a name belongs to: itself, or the one that it is next to.
fn shard_of(file: &str) -> &str {
    let whole = whole_name(file);
    BESIDE_SHARD.iter().find_map(|suffix| whole.strip_suffix(suffix)).unwrap_or(whole)
}

/// The number of a shard by its file's name, if it has a shard's name.
fn shard_number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("shard-")?.strip_suffix(".tfrecord")?;
    if digits.len() >= 5 && digits.bytes().all(|digit| digit.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// As much of a manifest as says whose it is.
#[derive(Deserialize)]
struct Mark {
    format: String,
    shards: Vec<Shard>,
}

#[derive(Deserialize)]
struct Shard {
    file: String,
}

/// The shards that the manifest in `output` names, if there is one. An error if it is not ours.
pub(super) fn manifest_names(output: &Folder) -> Result<Option<Vec<String>>> {
    let path = output.file(MANIFEST_FILE);
    if !output.storage().is_taken(&path)? {
        return Ok(None);
    }
    let names = match output.storage().read_file(&path, MANIFEST_BYTES_MAX) {
        Ok(text) => names_of(&text),
        // Something else, such as a link that leads nowhere, and not a disk that fails.
        Err(error) if matches!(error.kind(), ErrorKind::Usage | ErrorKind::NotFound) => None,
        Err(error) => return Err(error.into()),
    };
    names.map(Some).ok_or_else(|| Error::Usage {
        problem: format!(
            "the folder `{}` holds a `{MANIFEST_FILE}` that no build of Forebay wrote",
            output.path().display()
        ),
        remedy: "choose another folder, or move that file away".to_owned(),
    })
}

/// The shards that the manifest `text` names; `None` if it is none of ours. One of ours that is damaged still begins with its mark.
fn names_of(text: &[u8]) -> Option<Vec<String>> {
    if let Ok(mark) = serde_json::from_slice::<Mark>(text) {
        return (mark.format == Manifest::FORMAT).then(|| mark.shards.into_iter().map(|shard| shard.file).collect());
    }
    let text = String::from_utf8_lossy(text);
    // After its checksum.
    let mut quoted = text.split('"').skip(1).step_by(2).skip_while(|word| *word != "format").take(2);
    let ours = quoted.nth(1) == Some(Manifest::FORMAT) && text.find("\"format\"").is_some_and(|offset| offset < 64);
    ours.then(|| text.split('"').map(str::to_owned).collect())
}

/// An error if the journal holds anything that no build put there.
pub(super) fn check_journal(journal: &Folder) -> Result<()> {
    for entry in journal.storage().entries(journal.path())? {
        let name = name_of(&entry.path);
        let note = whole_name(&name);
        let shard = noted_shard(note).is_some_and(|shard| shard_number(&shard).is_some());
        let known =
            name == LOCK_FILE || shard || [BUILD_FILE, LISTING_FILE, REPLACED_FILE, COMMAND_FILE].contains(&note);
        if !known || entry.kind != EntryKind::File {
            return Err(Error::Usage {
                problem: format!("`{}` is not part of a build, but is in its journal", entry.path.display()),
                remedy: "remove it, or choose another folder".to_owned(),
            });
        }
    }
    Ok(())
}

/// What a note will be called that is being written under this name: `build.json` for `build.json.partial` and `build.json.812-3.partial`.
pub(super) fn whole_name(name: &str) -> &str {
    let Some(partial) = name.strip_suffix(".partial") else { return name };
    let numbers = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    partial.rsplit_once('.').filter(|(_, writer)| numbers(writer)).map_or(partial, |(whole, _)| whole)
}

/// What a note says; nothing where it is damaged. That it cannot be read is an error all the same.
fn intact<T>(note: Result<Option<T>>) -> Result<Option<T>> {
    match note {
        Err(Error::Format { .. }) => Ok(None),
        other => other,
    }
}

/// The names in a folder; a name that is not valid text is not ours, and is listed in an escaped form.
pub(super) fn names_in(folder: &Folder) -> Result<Vec<String>> {
    Ok(folder.storage().entries(folder.path())?.iter().map(|entry| name_of(&entry.path)).collect())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(OsStr::new("")).to_string_lossy().into_owned()
}

/// Removes `name` from a folder, if it exists.
pub(super) fn remove(folder: &Folder, name: &str) -> Result<()> {
    Ok(folder.storage().remove(&folder.file(name))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_that_are_named_are_claimed() {
        let claim = Claim { names: HashSet::from(["shard-00007.tfrecord".to_owned()]), below: 2 };
        let partial = "shard-00001.tfrecord.idx.812-3-1763.partial";
        for ours in ["shard-00000.tfrecord", "shard-00001.tfrecord.idx", "shard-00007.tfrecord.idx.partial", partial] {
            assert!(claim.holds(ours), "{ours}");
        }
        for other in ["shard-00002.tfrecord", "shard-00007.tfrecord.bak", "shard-0.tfrecord", "shard-00000.tar", "x"] {
            assert!(!claim.holds(other), "{other}");
        }
    }

    #[test]
    fn a_manifest_is_known_by_its_mark() {
        let ours = br#"{"format": "forebay-dataset", "shards": [{"file": "shard-00000.tfrecord", "bytes": 3}]}"#;
        assert_eq!(names_of(ours).unwrap(), ["shard-00000.tfrecord"]);
        assert!(names_of(&ours[..60]).is_some(), "one that was cut off");
        for other in [&b"{}"[..], b"", br#"{"format": "else", "shards": []}"#, br#"{"name": "forebay-dataset""#] {
            assert!(names_of(other).is_none(), "{other:?}");
        }
    }
}
