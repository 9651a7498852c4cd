//! The samples in shards that others wrote: tar as `WebDataset` has it, TFRecord, Parquet and Arrow.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use forebay_pipeline::{Format, Source, SourceField};
use forebay_record::{
    Compression, Index, OnDamage, Options, Reader, TAR_INDEX_EXTENSION, TarSample, name_text, parse_tar_index,
    salvage_tar, tar_members,
};
use forebay_storage::{File, Folder, Storage, Stream};

use super::Skipped;
use super::ahead::Ahead;
use super::inflated::{InflatedStream, compressed_limits};
use super::kept::{KeepingFile, ReadCache};
use super::listing::{Entry, SampleLocation};
use super::manifest::MANIFEST_BYTES_MAX;
use super::rows::{check_fields, noted_classes, open_rows};
use super::tables::index_path;
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::threads::each;

/// What was found in the shards of a source.
pub(super) struct Shards {
    /// Their full paths.
    pub(super) paths: Vec<PathBuf>,
    /// How each is compressed.
    pub(super) compressions: Vec<Compression>,
    /// Their samples, and where each lies.
    pub(super) entries: Vec<Entry>,
    /// What is damaged.
    pub(super) lost: Vec<Skipped>,
    /// The classes that the first of them names, and all others do not name otherwise.
    pub(super) classes: Vec<String>,
}

/// What was found in one shard: of each sample its key (or none, where samples have no names), offset and length, and the damage.
struct Scan {
    compression: Compression,
    samples: Vec<(Option<String>, u64, u64)>,
    damage: Vec<Damage>,
    classes: Option<Vec<String>>,
}

/// Something that is wrong with a shard, and how many samples that cost, where it is known.
struct Damage {
    error: Error,
    samples: Option<u64>,
}

/// What the names of files end with that are no shards, but lie beside them.
const TABLES: [&str; 5] = ["idx", "index", "crc", "blocks", "sizes"];

/// Lists the samples of `files`. Damage ends it, or is added to what is lost. What was read of far shards goes into `kept`.
pub(super) fn list_shards(
    source: &Source,
    root: &Folder,
    files: &[Entry],
    on_error: OnError,
    kept: Option<&Arc<ReadCache>>,
) -> Result<Shards> {
    let (paths, compressions, entries, lost) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut found = Shards { paths, compressions, entries, lost, classes: Vec::new() };
    check_fields(source)?;
    let files: Vec<(&Entry, PathBuf)> = files.iter().filter_map(|file| Some((file, shard_path(root, file)?))).collect();
    let mut noted: Vec<Option<Vec<String>>> = Vec::new();
    for ((file, path), scan) in files.iter().zip(scan_all(source, root, &files, on_error, kept)?) {
        let scan = match (scan, on_error) {
            (Ok(scan), _) => scan,
            (Err(error), OnError::Fail) => return Err(error),
            (Err(error), OnError::Skip) if error.ends() => return Err(error),
            (Err(error), OnError::Skip) => Scan {
                compression: Compression::None,
                samples: Vec::new(),
                damage: vec![Damage { error, samples: None }],
                classes: None,
            },
        };
        if !scan.samples.is_empty() {
            noted.push(scan.classes);
        }
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
            location: SampleLocation::Shard { shard, record: record as u64, offset },
        }));
        found.paths.push(path.clone());
        found.compressions.push(scan.compression);
    }
    if noted.windows(2).all(|pair| pair[0] == pair[1]) {
        found.classes = noted.pop().flatten().unwrap_or_default();
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

/// Where a shard lies; `None` for a table, which lies beside its shard, and a pattern like `train*` means both.
fn shard_path(root: &Folder, file: &Entry) -> Option<PathBuf> {
    let SampleLocation::File(below) = &file.location else { return None };
    let path = root.file(below);
    let is_table = |extension: &OsStr| TABLES.iter().any(|table| extension == *table);
    (!path.extension().is_some_and(is_table)).then_some(path)
}

/// What is in each of `files`, in their order; of far ones several are looked through together. Nothing comes behind an error that ends it.
fn scan_all(
    source: &Source,
    root: &Folder,
    files: &[(&Entry, PathBuf)],
    on_error: OnError,
    kept: Option<&Arc<ReadCache>>,
) -> Result<Vec<Result<Scan>>> {
    let (storage, fields) = (&**root.storage(), source.read_fields());
    let at_once = storage.reads_at_once(root.path());
    // Of many shards, as many are read at once as may be.
    let reads_ahead = files.len() * 2 <= at_once;
    let scan = |number: usize| {
        let (file, path) = &files[number];
        let open = || open(storage, path, number, kept);
        let scan = match source.format {
            Format::Tar => scan_tar(storage, open()?, path, &file.key, reads_ahead),
            Format::Parquet | Format::Arrow => scan_rows(storage, path, &fields, source),
            Format::Tfrecord | Format::Files => scan_records(storage, open()?, path, &file.key),
        };
        if let (Ok(scan), Some(kept)) = (&scan, kept) {
            // What is compressed is read as a stream, by other ways.
            let last = scan.samples.last().filter(|_| scan.compression == Compression::None);
            kept.forget_behind(number, last.map_or(0, |(_, offset, bytes)| offset + bytes));
        }
        scan
    };
    let ends =
        |scan: &Result<Scan>| on_error == OnError::Fail && scan.as_ref().map_or(true, |scan| !scan.damage.is_empty());
    each(files.len(), at_once, "look through the shards", scan, ends)
}

/// Opens a shard, and its number, to be looked through. What is read of a far one is kept.
fn open(storage: &dyn Storage, path: &Path, shard: usize, kept: Option<&Arc<ReadCache>>) -> Result<Box<dyn File>> {
    let file = storage.open(path)?;
    Ok(match kept {
        Some(kept) => Box::new(KeepingFile::new(file, shard, Arc::clone(kept))),
        None => file,
    })
}

/// By the index beside a tar, or by its headers; whether pieces of it are read ahead for these.
fn scan_tar(storage: &dyn Storage, file: Box<dyn File>, path: &Path, name: &str, reads_ahead: bool) -> Result<Scan> {
    if let Some(samples) = by_index(storage, &*file, path, name) {
        let samples = samples.into_iter().map(tar_sample).collect();
        return Ok(Scan { compression: Compression::None, samples, damage: Vec::new(), classes: None });
    }
    let (compression, scanned) = std::thread::scope(|scope| {
        let ahead = Ahead::new(&*file, scope);
        // What is compressed shows in the first piece, which is wanted anyway.
        let pieces: &dyn File = if reads_ahead { &ahead } else { &*file };
        let mut input = BufReader::new(stream(pieces, storage, path));
        let compression = tar_compression(input.fill_buf().map_err(Error::io("read the shard", path))?);
        let scanned = (compression == Compression::None).then(|| salvage_tar(input, name)).transpose()?;
        Ok::<_, Error>((compression, scanned))
    })?;
    if let Some((samples, damage)) = scanned {
        // How many there were after the damage, nobody knows.
        let damage = damage.into_iter().map(|error| Damage { error: error.into(), samples: None });
        let samples = samples.into_iter().map(tar_sample).collect();
        return Ok(Scan { compression, samples, damage: damage.collect(), classes: None });
    }
    let mut stream = InflatedStream::open(file, compression, path)?;
    let (samples, damage) = salvage_tar(&mut stream, name)?;
    // Where the stream is damaged, that is why the tar is cut.
    let damage = match stream.fault() {
        Some(error) => Some(error),
        None => damage.map(Error::from),
    };
    let damage = damage.map(|error| Damage { error, samples: None });
    let samples = samples.into_iter().map(tar_sample).collect();
    Ok(Scan { compression, samples, damage: damage.into_iter().collect(), classes: None })
}

/// By its first bytes.
fn tar_compression(head: &[u8]) -> Compression {
    match Compression::of(&head[..head.len().min(HEAD_BYTES as usize)]) {
        // The first name in a tar may begin as ZLIB does, which nobody compresses tars by.
        Compression::Zlib => Compression::None,
        compression => compression,
    }
}

/// The samples of a tar by the index beside it, if there is one that fits: its first sample and its last are there, and nothing but zeros comes after.
/// Whatever is wrong with an index, the tar serves as well; and where it is wrong about a sample in between, reading that one finds it.
fn by_index(storage: &dyn Storage, file: &dyn File, path: &Path, name: &str) -> Option<Vec<TarSample>> {
    let index =
        storage.read_file(&path.with_extension(TAR_INDEX_EXTENSION), TAR_INDEX_BYTES_MAX.min(file.size())).ok()?;
    let samples = parse_tar_index(&index, file.size())?;
    let (first, last) = (samples.first()?, samples.last()?);
    let is_small = |sample: &TarSample| sample.range.end - sample.range.start <= REMOTE_PIECE_BYTES as u64;
    let is_there = |sample: &TarSample, bytes: &Bytes| tar_members(bytes, &sample.key, name, 0, 0).is_ok();
    let head_bytes = if is_small(first) { first.range.end } else { HEAD_BYTES };
    let head = file.read(0, head_bytes as usize).ok()?;
    if tar_compression(&head) != Compression::None || is_small(first) && !is_there(first, &head) {
        return None;
    }
    let start = if is_small(last) { last.range.start } else { last.range.end };
    let tail = file.read(start, (file.size() - start) as usize).ok()?;
    let end = (last.range.end - start) as usize;
    let fits = (end == 0 || is_there(last, &tail.slice(..end))) && tail[end..].iter().all(|byte| *byte == 0);
    fits.then_some(samples)
}

/// A stream of a file of which little is read between places that are passed over; of an object, where each read takes its time, in large pieces.
fn stream<'a>(file: &'a dyn File, storage: &dyn Storage, path: &Path) -> Stream<'a> {
    Stream::new(file).in_pieces(if storage.reads_at_once(path) > 0 { REMOTE_PIECE_BYTES } else { 0 })
}

/// More than the indexes of tars have: some hundred bytes for each member.
const TAR_INDEX_BYTES_MAX: u64 = 256 << 20;

/// What is asked of a store at once.
const REMOTE_PIECE_BYTES: usize = 4 << 20;

fn tar_sample(sample: TarSample) -> (Option<String>, u64, u64) {
    let bytes = sample.range.end - sample.range.start;
    (Some(sample.key), sample.range.start, bytes)
}

/// By the footer of a Parquet file or the messages of an Arrow one. A row's offset is that of its group, and its bytes are its share of what that
/// inflates to.
fn scan_rows(storage: &dyn Storage, path: &Path, fields: &[SourceField], source: &Source) -> Result<Scan> {
    let file = open_rows(source.format, storage, path, fields)?;
    let (records_max, _) = compressed_limits(storage.status(path)?.map_or(0, |status| status.bytes));
    let rows = file.groups().iter().map(|group| group.rows).fold(0, u64::saturating_add);
    if rows > records_max {
        return Err(Error::Limit {
            problem: format!("`{}` has {rows} rows, more than {records_max}", path.display()),
            remedy: "no valid file of its size has so many samples; use it as a table, or write it again".to_owned(),
        });
    }
    let mut samples = Vec::with_capacity(rows as usize);
    for group in file.groups() {
        let share = group.bytes / group.rows.max(1) + 1;
        samples.extend((0..group.rows).map(|_| (None, group.offset, share)));
    }
    let classes = noted_classes(file.notes(), source);
    Ok(Scan { compression: file.compression(), samples, damage: Vec::new(), classes })
}

/// By the index beside a shard, or by one made from its frames.
fn scan_records(storage: &dyn Storage, file: Box<dyn File>, path: &Path, name: &str) -> Result<Scan> {
    let length = file.size();
    let compression = compression_of(&*file)?;
    if compression != Compression::None {
        return scan_compressed_records(file, compression, path, name);
    }
    let mut input = stream(&*file, storage, path);
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
    Ok(Scan { compression, samples, damage, classes: None })
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
                    "leaves out bytes {} to {} of its shard\nhint: make it again, or remove it: the shard can be read without",
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

/// By reading all of it: a compressed shard says nothing about its records without being inflated.
fn scan_compressed_records(file: Box<dyn File>, compression: Compression, path: &Path, name: &str) -> Result<Scan> {
    let (records_max, _) = compressed_limits(file.size());
    let mut stream = InflatedStream::open(file, compression, path)?;
    // The records' own checksums are looked at when they are read.
    let options = Options {
        verify_checksums: false,
        on_damage: OnDamage::Skip,
        compression: Compression::None,
        ..Options::default()
    };
    let mut reader = Reader::new(&mut stream, name, options)?;
    let mut samples = Vec::new();
    while let Some(record) = reader.next_record()? {
        if samples.len() as u64 == records_max {
            return Err(Error::Limit {
                problem: format!("`{}` inflates to more than {records_max} records", path.display()),
                remedy: "no valid shard of its size does; decompress it first if it is meant to".to_owned(),
            });
        }
        samples.push((None, record.location.offset, record.location.length));
    }
    let damage = reader.into_report().into_entries().into_iter().map(|damage| Damage {
        samples: matches!(damage.error, forebay_record::Error::Limit { .. }).then_some(damage.records),
        error: damage.error.into(),
    });
    let mut damage: Vec<Damage> = damage.collect();
    if let Some(error) = stream.fault() {
        // Where the stream is damaged, that is why the last record is cut.
        damage.pop();
        damage.push(Damage { error, samples: None });
    }
    Ok(Scan { compression, samples, damage, classes: None })
}

/// By its first bytes.
fn compression_of(file: &dyn File) -> Result<Compression> {
    let head = file.read(0, file.size().min(HEAD_BYTES) as usize)?;
    Ok(Compression::of(&head))
}

/// So many bytes are enough to tell.
const HEAD_BYTES: u64 = 12;

/// The name of a shard in messages: without the folder that all of them are in.
pub(super) fn shard_name(path: &Path) -> Arc<str> {
    path.file_name().map(|name| name_text(name.as_bytes())).unwrap_or_default().into()
}
