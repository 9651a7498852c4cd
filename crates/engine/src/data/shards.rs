//! The samples in shards that others wrote: tar as `WebDataset` has it, and TFRecord.

use std::ffi::OsStr;
use std::io::{BufReader, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use forebay_pipeline::Format;
use forebay_record::{Index, name_text, salvage_tar};
use forebay_storage::{Folder, Storage, Stream};

use super::Skipped;
use super::listing::{Entry, Place};
use super::manifest::MANIFEST_BYTES_MAX;
use super::tables::index_path;
use crate::error::{Error, Result};
use crate::load::OnError;

/// What was found in the shards of a source.
pub(super) struct Shards {
    /// Their full paths.
    pub(super) paths: Vec<PathBuf>,
    /// Their samples, and where each lies.
    pub(super) entries: Vec<Entry>,
    /// What is damaged.
    pub(super) lost: Vec<Skipped>,
}

/// What was found in one shard: of each sample its key (or none, where samples have no names), offset and length, and the damage.
#[derive(Default)]
struct Scan {
    samples: Vec<(Option<String>, u64, u64)>,
    damage: Vec<Damage>,
}

/// Something that is wrong with a shard, and how many samples that cost, where it is known.
struct Damage {
    error: Error,
    samples: Option<u64>,
}

/// What the names of files end with that are no shards, but lie beside them.
const TABLES: [&str; 4] = ["idx", "index", "crc", "blocks"];

/// Lists the samples of `files`. Damage ends it, or is added to what is lost.
pub(super) fn list_shards(format: Format, root: &Folder, files: &[Entry], on_error: OnError) -> Result<Shards> {
    let mut found = Shards { paths: Vec::new(), entries: Vec::new(), lost: Vec::new() };
    for file in files {
        let Place::File(below) = &file.place else { continue };
        let path = root.file(below);
        // Tables lie beside their shard, and a pattern like `train*` means both.
        let is_table = |extension: &OsStr| TABLES.iter().any(|table| extension == *table);
        if path.extension().is_some_and(is_table) {
            continue;
        }
        let storage = &**root.storage();
        let scan = match format {
            Format::Tar => scan_tar(storage, &path, &file.key),
            Format::Tfrecord | Format::Files => scan_records(storage, &path, &file.key),
        };
        let scan = match (scan, on_error) {
            (Ok(scan), _) => scan,
            (Err(error), OnError::Fail) => return Err(error),
            (Err(error), OnError::Skip) => Scan { samples: Vec::new(), damage: vec![Damage { error, samples: None }] },
        };
        for Damage { error, samples } in scan.damage {
            if on_error == OnError::Fail {
                return Err(error);
            }
            found.lost.push(Skipped { key: file.key.to_string(), reason: error.to_string(), samples });
        }
        let shard = found.paths.len();
        found.entries.extend(scan.samples.into_iter().enumerate().map(|(record, (key, offset, bytes))| Entry {
            key: key.unwrap_or_else(|| format!("{}:{record}", file.key)).into(),
            bytes,
            version: file.version,
            label: None,
            place: Place::Shard { shard, record: record as u64, offset },
        }));
        found.paths.push(path);
    }
    match found.lost.first() {
        _ if !found.entries.is_empty() => Ok(found),
        Some(first) => Err(Error::AllSkipped { samples: Skipped::count(&found.lost), first: Box::new(first.clone()) }),
        None => Err(Error::Usage {
            problem: format!("the {} shards below `{}` have no sample", found.paths.len(), root.path().display()),
            remedy: "check the folder, and `format` in the pipeline's [source]".to_owned(),
        }),
    }
}

fn scan_tar(storage: &dyn Storage, path: &Path, name: &str) -> Result<Scan> {
    let file = storage.open(path)?;
    let mut input = BufReader::new(Stream::new(&*file));
    refuse_gzip(&mut input, path)?;
    let (samples, damage) = salvage_tar(input, name)?;
    let sample = |sample: forebay_record::TarSample| {
        let bytes = sample.range.end - sample.range.start;
        (Some(sample.key), sample.range.start, bytes)
    };
    // How many there were after the damage, nobody knows.
    let damage = damage.into_iter().map(|error| Damage { error: error.into(), samples: None });
    Ok(Scan { samples: samples.into_iter().map(sample).collect(), damage: damage.collect() })
}

/// By the index beside a shard, or by one made from its frames.
fn scan_records(storage: &dyn Storage, path: &Path, name: &str) -> Result<Scan> {
    let file = storage.open(path)?;
    let length = file.size();
    let mut input = Stream::new(&*file);
    refuse_gzip(&mut input, path)?;
    let mut damage = Vec::new();
    let index = match index_beside(storage, path, length) {
        Some(Ok(mut index)) => {
            if let Err(error) = index.check_within(length, name) {
                damage.push(Damage { error: error.into(), samples: Some(index.cut_to(length)) });
            }
            index
        }
        other => {
            // The shard serves as well as its index, if it is whole: a broken index costs nothing by itself.
            damage.extend(other.and_then(Result::err).map(|error| Damage { error, samples: Some(0) }));
            Index::scan_headers(&mut input, name).or_else(|_| {
                input.rewind().map_err(Error::io("read the shard", path))?;
                let (index, report) = Index::salvage(&mut input, name)?;
                // A damaged length says nothing about how many records are passed over with it.
                damage.extend(report.into_entries().into_iter().map(|damage| Damage {
                    samples: matches!(damage.error, forebay_record::Error::Limit { .. }).then_some(damage.records),
                    error: damage.error.into(),
                }));
                Ok::<_, Error>(index)
            })?
        }
    };
    let samples = index.iter().map(|location| (None, location.offset, location.length)).collect();
    Ok(Scan { samples, damage })
}

/// The index beside a shard, if there is one.
/// An index that leaves out a part of its shard of `length` bytes, as one does that was cut, would lose samples in silence, and is
/// an error.
fn index_beside(storage: &dyn Storage, path: &Path, length: u64) -> Option<Result<Index>> {
    let path = index_path(path);
    let parse = |text: Bytes| {
        let index = Index::parse(&text, &path.display().to_string())?;
        let gap = index.gaps(length).next();
        match gap {
            Some(gap) if index.end() <= length => Err(Error::Format {
                path: path.clone(),
                problem: format!(
                    "leaves out bytes {} to {} of its shard\nhint: make it anew, or remove it: the shard serves as well",
                    gap.start, gap.end
                ),
            }),
            _ => Ok(index),
        }
    };
    match storage.status(&path) {
        Ok(None) => None,
        Ok(Some(_)) => Some(storage.read_file(&path, MANIFEST_BYTES_MAX).map_err(Error::from).and_then(parse)),
        Err(error) => Some(Err(error.into())),
    }
}

/// Samples of a compressed shard cannot be reached one by one.
fn refuse_gzip(input: &mut (impl Read + Seek), path: &Path) -> Result<()> {
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
    path.file_name().map(|name| name_text(name.as_bytes())).unwrap_or_default().into()
}
