//! Resumes an interrupted build: shards in the journal are reused if their bytes have the recorded checksums.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_error::ErrorKind;
use forebay_storage::Storage;

use super::journal::{Journal, ShardDone, shard_name};
use crate::data::{ShardEntry, blocks_path, crc_path, file_checksum, index_path, sizes_path};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::sync::Mutex;
use crate::threads::share;

/// The shards, of `shards` in all, that are whole already. One that was compressed with another dictionary than `dictionary`, whose checksum
/// that is, is not: what was trained on has changed since.
pub(super) fn whole_shards(
    journal: &Journal,
    (shards, dictionary): (usize, Option<&str>),
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<Option<ShardDone>>> {
    let noted = |shard| {
        let noted = journal.noted(shard, progress)?;
        Ok(noted.filter(|done| done.dictionary_xxh3.as_deref() == dictionary))
    };
    let noted: Vec<Option<ShardDone>> = (0..shards).map(noted).collect::<Result<_>>()?;
    let count = noted.iter().flatten().count();
    if count == 0 {
        return Ok(noted);
    }
    progress.begin("verify finished shards", noted.iter().flatten().map(|done| done.entry.samples).sum());
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<bool>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let shard = next.fetch_add(1, Ordering::Relaxed);
            let Some(noted) = noted.get(shard) else { return };
            let Some(done) = noted else { continue };
            let output = journal.output();
            let whole = is_whole(&**output.storage(), &output.file(shard_name(shard)), &done.entry, progress);
            progress.advance(done.entry.samples);
            results.lock().push((shard, whole));
        }
    };
    std::thread::scope(|scope| share(scope, threads.min(count), "verify finished shards", &work))?;
    let mut whole = noted;
    for (shard, result) in results.into_inner() {
        if !result? {
            progress.note(&format!("shard {shard} is not what was written: it is built again"));
            whole[shard] = None;
        }
    }
    progress.end();
    Ok(whole)
}

/// Whether a shard and its tables match `entry`.
fn is_whole(storage: &dyn Storage, path: &Path, entry: &ShardEntry, progress: &dyn Progress) -> Result<bool> {
    let tables = [(index_path(path), Some(&entry.index_xxh3)), (crc_path(path), Some(&entry.crc_xxh3))];
    let compressed = [(blocks_path(path), entry.blocks_xxh3.as_ref()), (sizes_path(path), entry.sizes_xxh3.as_ref())];
    // The shard last: it takes the longest.
    let files = tables.into_iter().chain(compressed).chain([(path.to_owned(), Some(&entry.xxh3))]);
    for (path, expected) in files.filter_map(|(path, expected)| Some((path, expected?))) {
        match file_checksum(storage, &path, || progress.is_cancelled()) {
            Ok(Some(found)) if found == *expected => {}
            Ok(Some(_)) => return Ok(false),
            Ok(None) => return Err(Error::Cancelled),
            Err(Error::Storage(error)) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
