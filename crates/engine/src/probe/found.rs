//! Existing files to read where nothing can be written: someone else's bucket, a folder of a web server.

use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};

use forebay_error::ErrorKind;
use forebay_plan::units;
use forebay_storage::Storage;
use serde::Deserialize;

use super::{BLOCK_BYTES, ProbeOptions, REMOTE_FILES};
use crate::data::{MANIFEST_BYTES_MAX, MANIFEST_FILE};
use crate::error::Error;

/// Of a folder with more objects than this, the first ones are looked at.
const OBJECTS_MAX: usize = 10_000;

/// Objects that nobody made for this.
#[derive(Debug)]
pub(super) struct Found {
    /// Of at least a block each, the largest first.
    pub(super) large: Vec<PathBuf>,
    /// Smaller ones.
    pub(super) small: Vec<PathBuf>,
    /// What there is to say of them.
    pub(super) notice: String,
}

/// Whether somebody may not write there, who may perhaps read.
pub(super) fn may_only_read(error: &Error) -> bool {
    let is_read_only = matches!(
        error,
        Error::Storage(forebay_storage::Error::Write { source, .. }) if source.kind() == IoKind::ReadOnlyFilesystem
    );
    is_read_only || error.kind() == ErrorKind::PermissionDenied
}

/// Objects in the folder of `options`; `None` where there are none, or nobody can say which.
pub(super) fn find(storage: &dyn Storage, options: &ProbeOptions) -> Option<Found> {
    let folder = &options.folder;
    let mut all =
        of_one(storage, folder).or_else(|| of_manifest(storage, folder)).unwrap_or_else(|| of_folder(storage, folder));
    all.retain(|(_, bytes)| *bytes > 0);
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let first_small = all.partition_point(|(_, bytes)| *bytes >= BLOCK_BYTES as u64);
    let mut small = all.split_off(first_small);
    all.truncate(REMOTE_FILES);
    small.truncate(options.small_files.min(REMOTE_FILES));
    if all.is_empty() && small.is_empty() {
        return None;
    }
    let of = |files: &[(PathBuf, u64)]| {
        let bytes: u64 = files.iter().map(|(_, bytes)| bytes).sum();
        let each = units::bytes(bytes as f64 / files.len().max(1) as f64);
        format!("{} of {each} on average", units::counted(files.len() as u64, "object"))
    };
    let kinds: Vec<String> =
        [&all, &small].into_iter().filter(|files| !files.is_empty()).map(|files| of(files)).collect();
    let notice = format!(
        "nothing can be written to `{}`, so {} that {} there were read; a cache of the store may have served them",
        folder.display(),
        kinds.join(" and "),
        if all.len() + small.len() == 1 { "is" } else { "are" }
    );
    let paths = |files: Vec<(PathBuf, u64)>| files.into_iter().map(|(path, _)| path).collect();
    Some(Found { large: paths(all), small: paths(small), notice })
}

fn size(storage: &dyn Storage, path: PathBuf) -> Option<(PathBuf, u64)> {
    let status = storage.status(&path).ok()??;
    Some((path, status.bytes))
}

/// What is named may be an object itself.
fn of_one(storage: &dyn Storage, path: &Path) -> Option<Vec<(PathBuf, u64)>> {
    Some(vec![size(storage, path.to_owned())?])
}

/// The shards of a data set: a web server cannot say what it has, but the manifest can.
fn of_manifest(storage: &dyn Storage, folder: &Path) -> Option<Vec<(PathBuf, u64)>> {
    #[derive(Deserialize)]
    struct Shards {
        shards: Vec<Shard>,
    }
    #[derive(Deserialize)]
    struct Shard {
        file: String,
    }
    let manifest = storage.read_file(&folder.join(MANIFEST_FILE), MANIFEST_BYTES_MAX).ok()?;
    let Shards { shards } = serde_json::from_slice(&manifest).ok()?;
    // Whoever wrote it says nothing of files elsewhere.
    let is_name = |file: &str| Path::new(file).file_name().is_some_and(|name| name == file);
    let named = shards.iter().map(|shard| shard.file.as_str()).filter(|file| is_name(file)).take(REMOTE_FILES);
    Some(named.filter_map(|file| size(storage, folder.join(file))).collect())
}

fn of_folder(storage: &dyn Storage, folder: &Path) -> Vec<(PathBuf, u64)> {
    let walked = storage.walk(folder, &|_| true).map_while(Result::ok).take(OBJECTS_MAX);
    walked.filter_map(|found| Some((folder.join(found.below), found.status?.bytes))).collect()
}
