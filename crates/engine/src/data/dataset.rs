//! The data set on disk: a manifest, shards, and tables beside each shard.
//!
//! The manifest carries its own checksum and those of the tables; one of the tables has a checksum of each record. So whatever
//! is read is known for what was built, up to the bytes of a sample.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_error::ErrorKind;
use forebay_pipeline::{Pipeline, Schema, Strategy};
use forebay_record::{
    Blocks, Dictionary, ErrorLocation, Index, Origin, ShardCompression, inflate_record, parse_indexed,
};
use forebay_storage::{BufferPool, Folder, PooledBuffer, Storage};

use super::Skipped;
use super::manifest::{DICTIONARY_FILE, MANIFEST_BYTES_MAX, MANIFEST_FILE, Manifest};
use super::mix::MIX_FILE;
use super::sealed::checksum;
use super::tables::Tables;
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::sync::Mutex;
use crate::threads::share;

/// A data set that was built, opened for reading.
#[derive(Debug)]
pub struct Dataset {
    root: Folder,
    manifest: Manifest,
    pipeline: Pipeline,
    on_error: OnError,
    /// `first[s]` is the number of the first sample of shard `s`.
    first: Vec<u64>,
    tables: Vec<OnceLock<Found>>,
    /// What records are inflated with, where they are compressed so; or why it is not there.
    dictionary: Option<std::result::Result<Dictionary, String>>,
    /// What is inflated goes there.
    buffers: BufferPool,
}

/// What is kept of the memory that was inflated into, for those who inflate next.
const IDLE_BYTES_MAX: usize = 32 << 20;

/// What was found beside a shard.
#[derive(Debug)]
enum Found {
    /// Its tables, as they were built.
    Whole(Tables),
    /// The same, made from the shard again, because of this.
    Rebuilt(Tables, String),
    /// Nothing that helps, because of this.
    Lost(String),
}

impl Dataset {
    /// Opens the data set in the folder `root` and checks that every shard is there with its right size.
    pub fn open(root: impl Into<Folder>) -> Result<Self> {
        Self::open_on_error(root, OnError::Fail)
    }

    /// The same, where `on_error` says what happens to shards that are damaged or not there: with [`OnError::Skip`] the data
    /// set is opened, tables that are damaged are made again if their shard is whole, and the rest is lost.
    pub fn open_on_error(root: impl Into<Folder>, on_error: OnError) -> Result<Self> {
        let root = root.into();
        let path = root.file(MANIFEST_FILE);
        let text = root.storage().read_file(&path, MANIFEST_BYTES_MAX).map_err(|error| {
            // Where the folder itself is not there, that is what is wrong.
            if error.kind() == ErrorKind::NotFound && matches!(root.storage().is_taken(root.path()), Ok(true)) {
                let folder = root.path().display();
                if matches!(root.storage().is_taken(&root.file(MIX_FILE)), Ok(true)) {
                    let problem =
                        format!("`{folder}` is a data set in several formats, and one in one format is needed here");
                    let remedy = format!("name the folder of one of them, such as `{folder}/format-00`");
                    return Error::Usage { problem, remedy };
                }
                let problem = format!("`{folder}` is not a data set: it has no `{MANIFEST_FILE}`");
                let remedy = "build one with `forebay build`; an interrupted build resumes when it is run again";
                return Error::Usage { problem, remedy: remedy.to_owned() };
            }
            error.into()
        })?;
        let manifest = Manifest::parse(&text, &path)?;
        let pipeline = Pipeline::from_spec(&manifest.pipeline)?;
        let strategy = &manifest.strategy;
        if Strategy::parse(&pipeline, &strategy.to_string())? != *strategy {
            let problem = format!("names a strategy `{strategy}` that its pipeline does not have");
            return Err(Error::Format { path, problem });
        }
        if strategy.field_encodings(&pipeline) != manifest.encodings {
            let problem = format!("has other encodings of fields than its strategy `{strategy}` gives them");
            return Err(Error::Format { path, problem });
        }
        let first = manifest.shards.iter().scan(0, |sum, shard| {
            let first = *sum;
            *sum += shard.samples;
            Some(first)
        });
        let first: Vec<u64> = first.collect();
        let tables = manifest.shards.iter().map(|_| OnceLock::new()).collect();
        let dictionary = match read_dictionary(&root, &manifest) {
            Err(error) if on_error == OnError::Fail || error.ends() => return Err(error),
            found => found.map_err(|error| first_line(&error)).transpose(),
        };
        let buffers = BufferPool::with_idle_limit(IDLE_BYTES_MAX);
        let dataset = Self { root, manifest, pipeline, on_error, first, tables, dictionary, buffers };
        if on_error == OnError::Fail {
            dataset.check_sizes()?;
        }
        Ok(dataset)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// What its manifest and tables are read from.
    pub(super) fn storage(&self) -> &dyn Storage {
        &**self.root.storage()
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The pipeline.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// What happens to shards that are damaged.
    pub fn on_error(&self) -> OnError {
        self.on_error
    }

    /// The fields of a stored record.
    pub fn stored_schema(&self) -> Schema {
        self.manifest.strategy.stored_schema(&self.pipeline)
    }

    /// The path of shard number `shard`.
    pub fn shard_path(&self, shard: usize) -> PathBuf {
        self.root.file(&self.manifest.shards[shard].file)
    }

    /// The number of the first sample of shard number `shard`.
    pub fn first_sample(&self, shard: usize) -> u64 {
        self.first[shard]
    }

    /// Where sample number `sample` lies: the number of its shard, and of its record there.
    pub fn locate(&self, sample: u64) -> (usize, usize) {
        // Of shards that begin with the same sample, all but the last have none.
        let shard = self.first.partition_point(|&first| first <= sample).saturating_sub(1);
        (shard, (sample - self.first[shard]) as usize)
    }

    /// The number of the record that has sample number `sample` of shard number `shard`; of a progressive one its first group of scans.
    pub fn record_of(&self, shard: usize, sample: usize) -> usize {
        let entry = &self.manifest.shards[shard];
        entry.scans.map_or(sample, |scans| scans.record(entry.samples, sample as u64, 0) as usize)
    }

    /// How the shards are compressed.
    pub fn compression(&self) -> Option<ShardCompression> {
        self.manifest.strategy.format.compression
    }

    /// Where the records of shard number `shard` lie; in what it inflates to, if it is compressed by blocks or as a stream.
    pub fn index(&self, shard: usize) -> Result<&Index> {
        Ok(&self.tables(shard)?.index)
    }

    /// Where the blocks of shard number `shard` lie, if it is compressed by blocks or as a stream.
    pub fn blocks(&self, shard: usize) -> Result<Option<&Blocks>> {
        Ok(self.tables(shard)?.blocks.as_ref())
    }

    /// The payload of record number `record` of shard number `shard`, whose frame is `frame`, if it is the one that was built.
    pub fn payload(&self, shard: usize, record: usize, frame: &Bytes) -> Result<Bytes> {
        let tables = self.tables(shard)?;
        let name = &self.manifest.shards[shard].file;
        let location =
            tables.index.get(record).ok_or_else(|| Error::internal("a record that its index does not have"))?;
        let origin = Origin { shard: name, record: record as u64, offset: location.offset };
        let payload = parse_indexed(frame, location, origin, true)?;
        let error_location = || ErrorLocation {
            shard: Some(name.as_str().into()),
            record: Some(record as u64),
            offset: Some(location.offset),
        };
        tables.checksums.check(record, frame, error_location)?;
        self.inflated(tables, record, payload, error_location)
    }

    /// What `payload`, that of record number `record`, inflates to where records are compressed each by itself; itself otherwise.
    pub(super) fn inflated(
        &self,
        tables: &Tables,
        record: usize,
        payload: Bytes,
        error_location: impl Fn() -> ErrorLocation,
    ) -> Result<Bytes> {
        let (Some(sizes), Some(compression)) = (&tables.sizes, self.compression()) else { return Ok(payload) };
        let dictionary = match &self.dictionary {
            Some(Err(problem)) => {
                let path = self.root.file(DICTIONARY_FILE);
                let problem = format!("is needed to read any record, but cannot be read: {problem}");
                return Err(Error::Format { path, problem });
            }
            Some(Ok(dictionary)) => Some(dictionary),
            None => None,
        };
        let length = sizes.get(record).unwrap_or(0);
        let buffer = |length| self.buffer(length);
        let inflated = inflate_record(&payload, length, compression, dictionary, error_location, buffer)?;
        Ok(inflated.into_bytes(0..length as usize))
    }

    /// Memory for so many bytes, which goes back when nobody looks at it any more.
    pub(super) fn buffer(&self, bytes: usize) -> std::io::Result<PooledBuffer> {
        self.buffers.take(bytes, 1).map_err(|_| std::io::ErrorKind::OutOfMemory.into())
    }

    /// How many bytes of memory the payload of record number `record` of shard number `shard` takes besides its frame.
    pub fn payload_bytes(&self, shard: usize, record: usize) -> u64 {
        let sizes = self.tables(shard).ok().and_then(|tables| tables.sizes.as_ref());
        sizes.and_then(|sizes| sizes.get(record)).unwrap_or(0)
    }

    /// What was damaged and could be read in another way, so that no sample is lost for it. All that was looked at so far.
    pub fn rebuilt_tables(&self) -> Vec<Skipped> {
        let rebuilt = |(shard, found): (usize, &OnceLock<Found>)| match found.get() {
            Some(Found::Rebuilt(_, why)) => Some(Skipped {
                key: self.manifest.shards[shard].file.clone(),
                reason: format!("{why}; the shard itself is whole, and was read instead"),
                samples: Some(0),
            }),
            _ => None,
        };
        self.tables.iter().enumerate().filter_map(rebuilt).collect()
    }

    /// The tables beside shard number `shard`, read once.
    pub(super) fn tables(&self, shard: usize) -> Result<&Tables> {
        let found = if let Some(found) = self.tables[shard].get() {
            found
        } else {
            let found = self.find_tables(shard)?;
            self.tables[shard].get_or_init(|| found)
        };
        match found {
            Found::Whole(tables) | Found::Rebuilt(tables, _) => Ok(tables),
            Found::Lost(why) => {
                Err(Error::Format { path: self.shard_path(shard), problem: format!("cannot be read: {why}") })
            }
        }
    }

    fn find_tables(&self, shard: usize) -> Result<Found> {
        let entry = &self.manifest.shards[shard];
        let path = self.shard_path(shard);
        let error = match Tables::read(self.storage(), &path, entry, self.compression()) {
            Ok(tables) => return Ok(Found::Whole(tables)),
            Err(error) if self.on_error == OnError::Fail || error.ends() => return Err(error),
            Err(error) => first_line(&error),
        };
        Ok(match Tables::rebuild(self.storage(), &path, entry, self.compression()) {
            Ok(tables) => Found::Rebuilt(tables, error),
            Err(second) if second.ends() => return Err(second),
            Err(second) => Found::Lost(format!("{error}, and the shard does not help: {}", first_line(&second))),
        })
    }

    /// That every shard is there with its right size: several are looked at together, where each look takes its time.
    fn check_sizes(&self) -> Result<()> {
        let shards = self.manifest.shards.len();
        let together = self.storage().reads_at_once(self.root()).min(shards);
        if together <= 1 {
            return (0..shards).try_for_each(|shard| self.check_size(shard));
        }
        let next = AtomicUsize::new(0);
        let failed: Mutex<Option<Error>> = Mutex::new(None);
        let work = || {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                if shard >= shards || failed.lock().is_some() {
                    return;
                }
                if let Err(error) = self.check_size(shard) {
                    failed.lock().get_or_insert(error);
                }
            }
        };
        std::thread::scope(|scope| share(scope, together, "look at the shards", &work))?;
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// That shard number `shard` is there with its right size.
    pub(super) fn check_size(&self, shard: usize) -> Result<()> {
        let entry = &self.manifest.shards[shard];
        let path = self.shard_path(shard);
        let status = self.storage().status(&path)?;
        let missing = || Error::io("open the shard", &path)(std::io::ErrorKind::NotFound.into());
        let found = status.ok_or_else(missing)?.bytes;
        if found == entry.bytes {
            return Ok(());
        }
        let problem = format!("has {found} bytes, but the manifest says {}: it was damaged or replaced", entry.bytes);
        Err(Error::Format { path, problem })
    }
}

/// The dictionary that the manifest names.
fn read_dictionary(root: &Folder, manifest: &Manifest) -> Result<Option<Dictionary>> {
    let Some(expected) = &manifest.dictionary_xxh3 else { return Ok(None) };
    let path = root.file(DICTIONARY_FILE);
    let bytes = root.storage().read_file(&path, Dictionary::BYTES_MAX)?;
    let found = checksum(&bytes);
    if found != *expected {
        let problem = format!("has checksum `{found}`, but the manifest says `{expected}`: it was damaged or replaced");
        return Err(Error::Format { path, problem });
    }
    Ok(Some(Dictionary::parse(bytes, &path.display().to_string())?))
}

/// What an error says, without its hints.
fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
