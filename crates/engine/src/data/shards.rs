//! The samples in shards that others wrote: tar as `WebDataset` has it, and TFRecord.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::Format;
use forebay_record::{Index, scan_tar};

use super::dataset::index_path;
use super::listing::{Entry, Place};
use crate::error::{Error, Result};

/// Lists the samples of `files`: the shards' full paths, and where each sample lies in them.
pub(super) fn list_shards(format: Format, root: &Path, files: &[Entry]) -> Result<(Vec<PathBuf>, Vec<Entry>)> {
    let (mut shards, mut entries) = (Vec::new(), Vec::new());
    for file in files {
        let Place::File(below) = &file.place else { continue };
        let path = root.join(below);
        // An index lies beside its shard, and a pattern like `train*` means both.
        if path.extension().is_some_and(|extension| extension == "idx" || extension == "index") {
            continue;
        }
        let shard = shards.len();
        let entry = |key: String, record: usize, offset: u64, bytes: u64| Entry {
            key: key.into(),
            bytes,
            modified: file.modified,
            label: None,
            place: Place::Shard { shard, record: record as u64, offset },
        };
        if format == Format::Tar {
            let mut input = open(&path)?;
            refuse_gzip(&mut input, &path)?;
            for (record, sample) in scan_tar(BufReader::new(input), &file.key)?.into_iter().enumerate() {
                let bytes = sample.range.end - sample.range.start;
                entries.push(entry(sample.key, record, sample.range.start, bytes));
            }
        } else {
            for (record, location) in index_of(&path, &file.key)?.entries().iter().enumerate() {
                entries.push(entry(format!("{}:{record}", file.key), record, location.offset, location.length));
            }
        }
        shards.push(path);
    }
    if entries.is_empty() {
        return Err(Error::Usage {
            problem: format!("the {} shards below `{}` have no sample", shards.len(), root.display()),
            remedy: "check the folder, and `format` in the pipeline's [source]".to_owned(),
        });
    }
    Ok((shards, entries))
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::io("open the shard", path))
}

/// The index beside a shard, or one made from its frames.
fn index_of(path: &Path, name: &str) -> Result<Index> {
    let mut input = open(path)?;
    let length = input.metadata().map_err(Error::io("open the shard", path))?.len();
    refuse_gzip(&mut input, path)?;
    let beside = index_path(path);
    if beside.is_file() {
        let text = std::fs::read(&beside).map_err(Error::io("read the index", &beside))?;
        let index = Index::parse(&text, &beside.display().to_string())?;
        index.check_within(length, name)?;
        return Ok(index);
    }
    Ok(Index::scan_headers(input, name)?)
}

/// Samples of a compressed shard cannot be reached one by one.
fn refuse_gzip(input: &mut File, path: &Path) -> Result<()> {
    let mut start = [0; 2];
    let failed = Error::io("read the shard", path);
    let read = input.read(&mut start).and_then(|read| input.rewind().map(|()| read)).map_err(failed)?;
    if read == 2 && start == [0x1F, 0x8B] {
        return Err(Error::Usage {
            problem: format!("`{}` is compressed, so that its samples cannot be reached one by one", path.display()),
            remedy: "decompress it first (`gunzip`)".to_owned(),
        });
    }
    Ok(())
}

/// The name of a shard in messages: without the folder that all of them are in.
pub(super) fn shard_name(path: &Path) -> Arc<str> {
    path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default().into()
}
