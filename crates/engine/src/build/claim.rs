//! What in a folder is ours. Only that is ever replaced or removed: the folder may hold, or lead to, what somebody else needs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use forebay_storage::{ErrorClass, read_file, unlink};
use serde::Deserialize;

use super::identity::Identity;
use super::journal::{BUILD_FILE, COMMAND_FILE, LOCK_FILE, REPLACED_FILE, read_json, read_sealed};
use crate::data::{BESIDE_SHARD, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
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
    pub(super) fn of(output: &Path, journal: &Path) -> Result<Self> {
        let mut names: HashSet<String> = manifest_names(output)?.unwrap_or_default().into_iter().collect();
        names.extend(entries(journal)?.iter().filter_map(|path| {
            let note = path.file_name()?.to_str()?.strip_suffix(".json")?;
            Some(format!("{note}.tfrecord"))
        }));
        names.extend(sound(read_json::<Vec<String>>(&journal.join(REPLACED_FILE)))?.unwrap_or_default());
        names.retain(|name| shard_number(name).is_some());
        let unfinished = sound(read_sealed::<Identity>(&journal.join(BUILD_FILE)))?;
        Ok(Self { names, below: unfinished.map_or(0, |identity| identity.shards() as u64) })
    }

    /// The names of those that are there: shards, and what lies beside them.
    pub(super) fn files(&self, output: &Path) -> Result<Vec<String>> {
        let name = |path: PathBuf| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
        Ok(entries(output)?.into_iter().filter_map(name).filter(|name| self.holds(name)).collect())
    }

    /// An error if anything that is not ours lies where a build of so many shards would write.
    pub(super) fn refuse_others(&self, output: &Path, shards: usize) -> Result<()> {
        let wanted = Self { below: shards as u64, ..Self::default() };
        let others = wanted.files(output)?.into_iter().find(|name| !self.holds(name));
        others.map_or(Ok(()), |name| {
            Err(Error::Usage {
                problem: format!(
                    "`{}` is in the way, and no build of Forebay here names it",
                    output.join(name).display()
                ),
                remedy: "choose another folder, or move that file away".to_owned(),
            })
        })
    }

    fn holds(&self, file: &str) -> bool {
        let shard = shard_of(file);
        shard_number(shard).is_some_and(|number| number < self.below || self.names.contains(shard))
    }
}

/// The shard that a file belongs to, if it is called like one: itself, or what it lies beside.
fn shard_of(file: &str) -> &str {
    let whole = file.strip_suffix(".partial").unwrap_or(file);
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
pub(super) fn manifest_names(output: &Path) -> Result<Option<Vec<String>>> {
    let path = output.join(MANIFEST_FILE);
    if !is_there(&path)? {
        return Ok(None);
    }
    let names = match read_file(&path, MANIFEST_BYTES_MAX) {
        Ok(text) => names_of(&text),
        // Something else, and not a disk that fails.
        Err(error) if error.class() == ErrorClass::Usage || path.is_symlink() => None,
        Err(error) => return Err(error.into()),
    };
    names.map(Some).ok_or_else(|| Error::Usage {
        problem: format!("the folder `{}` holds a `{MANIFEST_FILE}` that no build of Forebay wrote", output.display()),
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
    let ours = quoted.nth(1) == Some(Manifest::FORMAT) && text.find("\"format\"").is_some_and(|place| place < 64);
    ours.then(|| text.split('"').map(str::to_owned).collect())
}

/// An error if the journal holds anything that no build put there.
pub(super) fn check_journal(journal: &Path) -> Result<()> {
    for path in entries(journal)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let note = name.strip_suffix(".partial").unwrap_or(&name);
        let shard = note.strip_suffix(".json").is_some_and(|note| shard_number(&format!("{note}.tfrecord")).is_some());
        let known = name == LOCK_FILE || shard || [BUILD_FILE, REPLACED_FILE, COMMAND_FILE].contains(&note);
        if !known || fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file()) {
            return Err(Error::Usage {
                problem: format!("`{}` is no part of a build, but lies in its journal", path.display()),
                remedy: "look what it is, then remove it or choose another folder".to_owned(),
            });
        }
    }
    Ok(())
}

/// What a note says; nothing where it is damaged. That it cannot be read is an error all the same.
fn sound<T>(note: Result<Option<T>>) -> Result<Option<T>> {
    match note {
        Err(Error::Format { .. }) => Ok(None),
        other => other,
    }
}

/// Whether there is anything at `path`, be it a link that leads nowhere. That it cannot be looked at does not mean that nothing is there:
/// what is would be written over.
pub(super) fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("look at", path)(error)),
    }
}

pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let all = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        all => all.map_err(Error::io("list", folder))?,
    };
    all.map(|entry| Ok(entry.map_err(Error::io("list", folder))?.path())).collect()
}

pub(super) fn remove(path: &Path) -> Result<()> {
    unlink(path).map_err(Error::io("remove", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shards_that_are_named_are_claimed() {
        let claim = Claim { names: HashSet::from(["shard-00007.tfrecord".to_owned()]), below: 2 };
        for ours in ["shard-00000.tfrecord", "shard-00001.tfrecord.idx", "shard-00007.tfrecord.idx.partial"] {
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
