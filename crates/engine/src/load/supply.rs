//! The seam: which sample comes next, and where its bytes come from.
//!
//! Everything below it (staging, workers, batches) only knows a [`Supply`]. Shuffled windows from storage stand behind it
//! now, and decoded samples from memory; format mixes, ranks and resuming have their place here and nowhere else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::sync::Mutex;
use bytes::Bytes;
use forebay_pipeline::{Sample, Schema, decode_sample};
use forebay_storage::{File, Storage};

use super::cache::Cache;
use super::schedule::{Block, Read, Schedule};
use crate::data::{Content, Dataset, Listing, Skipped, SourceReader};
use crate::error::{Error, Result};
use crate::load::OnError;

/// Which sample comes next, and where its bytes come from.
pub trait Supply: Send + Sync {
    /// What to read next, in the order of the epoch; `None` at its end.
    fn next(&self) -> Option<Read>;

    /// The place in the epoch of the first sample that comes: 0, unless an interrupted epoch is resumed.
    fn start(&self) -> u64 {
        0
    }

    /// How many samples the whole epoch has: the place after the last.
    fn samples(&self) -> u64;

    /// How many bytes of a window must be in memory at once, if blocks of more than `block_bytes_max` are left out.
    fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        let _ = block_bytes_max;
        0
    }

    /// How many bytes of memory a read takes.
    fn read_bytes(&self, read: &Read) -> u64 {
        read.block.bytes
    }

    /// What the sample at number `place` of a read's places is called, where it was not read.
    fn key(&self, read: &Read, place: usize) -> String {
        format!("{}:{}", read.block.shard, read.block.records.start + place)
    }

    /// Gets the bytes of a read: one payload for each of its places, in order. Runs on reader threads, and does no work
    /// but reading (and inflating, which gives the samples of a packed block at once).
    fn read(&self, read: &Read) -> Result<Vec<Payload>>;

    /// Takes a payload apart into a sample. Runs on workers.
    fn unpack(&self, payload: Payload) -> Result<Sample, Failed>;

    /// How many bytes were read so far.
    fn bytes_read(&self) -> u64;

    /// What is known to be lost before anything is read, and has no place in the epoch; and what was damaged and could be read in
    /// another way.
    fn lost(&self) -> Vec<Skipped> {
        Vec::new()
    }
}

/// The bytes of one sample, or the sample itself.
pub enum Payload {
    /// What was read of sample number `number` of a source.
    Source {
        /// Its number in the listing.
        number: usize,
        /// Its bytes.
        content: Content,
    },
    /// A record with its frame.
    Record {
        /// The shard.
        shard: usize,
        /// Its number in the shard.
        record: usize,
        /// The frame.
        frame: Bytes,
    },
    /// A sample that is in memory already.
    Ready(Box<Sample>),
    /// A sample out of the cache: the steps that always give the same are done.
    Cached(Arc<Sample>),
    /// It could not be read. Reported as an error of this one sample, so that the others of its block live on.
    Failed(Failed),
}

/// A sample that could not be read or taken apart.
#[derive(Debug)]
pub struct Failed {
    /// What it is called: its key, or where its record lies.
    pub key: String,
    /// Why.
    pub error: Box<Error>,
}

impl Failed {
    /// Stands where a payload will be put.
    fn nothing() -> Self {
        let error = Error::Panicked { message: "a sample was neither read nor in the cache".to_owned() };
        Self { key: String::new(), error: Box::new(error) }
    }
}

/// Samples from storage, in the order of a [`Schedule`].
pub struct FromStorage {
    schedule: Mutex<Schedule>,
    start: u64,
    samples: u64,
    storage: Arc<dyn Storage>,
    origin: Place,
    cache: Option<Arc<Cache>>,
    bytes_read: AtomicU64,
}

/// Where they lie.
enum Place {
    Source(SourceReader),
    Shards { dataset: Arc<Dataset>, schema: Schema, open: Vec<OnceLock<Box<dyn File>>> },
}

/// Neighbouring records are read together up to so many bytes: large enough that a seek costs little (PRESTO's storage
/// reads 4 MB in 18 ms and seeks in 29 ms).
const BLOCK_BYTES_MAX: u64 = 4 << 20;
/// A small data set is cut into smaller blocks, so that workers need not wait for much of it before they start.
const BLOCK_BYTES_MIN: u64 = 256 << 10;
/// How many blocks a small data set is cut into.
const BLOCKS: u64 = 32;

/// How many bytes of `bytes` are read at once.
fn block_bytes(bytes: u64) -> u64 {
    (bytes / BLOCKS).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX)
}

impl FromStorage {
    /// The samples of a source: one read for each file, and blocks of neighbours in shards.
    pub fn source(
        listing: Arc<Listing>,
        storage: Arc<dyn Storage>,
        order: impl FnOnce(Vec<Block>) -> Schedule,
    ) -> Self {
        let runs = listing.runs(block_bytes(listing.bytes()));
        let blocks = runs.into_iter().map(|(records, bytes)| Block { shard: 0, records, bytes }).collect();
        let reader = SourceReader::new(listing, Arc::clone(&storage));
        Self::new(blocks, order, storage, Place::Source(reader))
    }

    /// The records of a data set, in blocks.
    pub fn shards(
        dataset: Arc<Dataset>,
        storage: Arc<dyn Storage>,
        order: impl FnOnce(Vec<Block>) -> Schedule,
    ) -> Result<Self> {
        let mut blocks = Vec::new();
        let block_bytes = block_bytes(dataset.manifest().bytes);
        for shard in 0..dataset.manifest().shards.len() {
            let mut block = Block { shard, records: 0..0, bytes: 0 };
            let index = match dataset.index(shard) {
                Ok(index) => index,
                Err(error) if dataset.on_error() == OnError::Fail => return Err(error),
                // The samples keep their places in the epoch, and each is reported as lost when its turn comes.
                Err(_) => {
                    let entry = &dataset.manifest().shards[shard];
                    let all = Block { shard, records: 0..entry.samples as usize, bytes: entry.bytes };
                    blocks.extend((entry.samples > 0).then_some(all));
                    continue;
                }
            };
            // Of a packed block all is read or nothing.
            let packed = dataset.blocks(shard)?;
            let may_begin = |offset| packed.is_none_or(|blocks| blocks.begins_at(offset));
            let mut start = 0;
            for (record, location) in index.entries().iter().enumerate() {
                // What lies between records is read along with them.
                let bytes = location.end() - start;
                let full = block.bytes > 0 && bytes > block_bytes;
                if block.bytes == 0 || full && may_begin(location.offset) {
                    let fresh = Block { shard, records: record..record, bytes: 0 };
                    let done = std::mem::replace(&mut block, fresh);
                    blocks.extend((!done.records.is_empty()).then_some(done));
                    start = location.offset;
                }
                block.records.end = record + 1;
                block.bytes = location.end() - start;
            }
            blocks.extend((!block.records.is_empty()).then_some(block));
        }
        let schema = dataset.stored_schema();
        let open = dataset.manifest().shards.iter().map(|_| OnceLock::new()).collect();
        Ok(Self::new(blocks, order, storage, Place::Shards { dataset, schema, open }))
    }

    fn new(
        blocks: Vec<Block>,
        order: impl FnOnce(Vec<Block>) -> Schedule,
        storage: Arc<dyn Storage>,
        origin: Place,
    ) -> Self {
        let schedule = order(blocks);
        let (start, samples) = (schedule.start(), schedule.samples());
        Self {
            schedule: Mutex::new(schedule),
            start,
            samples,
            storage,
            origin,
            cache: None,
            bytes_read: AtomicU64::new(0),
        }
    }

    /// The same, except that samples that are in `cache` are not read.
    #[must_use]
    pub fn cached(mut self, cache: Arc<Cache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// The number of the first sample of a block.
    fn first_sample(&self, block: &Block) -> u64 {
        match &self.origin {
            Place::Source(_) => block.records.start as u64,
            Place::Shards { dataset, .. } => dataset.first_sample(block.shard) + block.records.start as u64,
        }
    }

    fn read_block(&self, block: &Block) -> Vec<Payload> {
        match &self.origin {
            Place::Source(reader) => self.read_source(reader, block.records.clone()),
            Place::Shards { dataset, open, .. } => self.read_shard(dataset, &open[block.shard], block),
        }
    }

    /// Reads a block of a source. If that fails, each of its samples is tried by itself, so that one bad one does not take
    /// its neighbours along.
    fn read_source(&self, reader: &SourceReader, records: std::ops::Range<usize>) -> Vec<Payload> {
        let payload = |(number, content): (usize, Result<Content>)| match content {
            Ok(content) => {
                self.bytes_read.fetch_add(content.bytes(), Ordering::Relaxed);
                Payload::Source { number, content }
            }
            Err(error) => {
                let key = reader.listing().entries()[number].key.to_string();
                Payload::Failed(Failed { key, error: Box::new(error) })
            }
        };
        match reader.read_run(records.clone()) {
            Ok(contents) => records.zip(contents.into_iter().map(Ok)).map(payload).collect(),
            Err(error) if records.len() == 1 => records.zip(std::iter::once(Err(error))).map(payload).collect(),
            Err(_) => records.map(|number| payload((number, reader.read(number)))).collect(),
        }
    }

    /// Reads a block of records. If that fails, each of them is tried by itself, so that those before the end of a truncated
    /// shard, and those of the packed blocks beside a damaged one, live on.
    fn read_shard(&self, dataset: &Dataset, open: &OnceLock<Box<dyn File>>, block: &Block) -> Vec<Payload> {
        if let Ok(payloads) = self.read_records(dataset, open, block.shard, block.records.clone()) {
            return payloads;
        }
        let alone = |record: usize| match self.read_records(dataset, open, block.shard, record..record + 1) {
            Ok(payloads) => payloads,
            Err(error) => {
                let name = &dataset.manifest().shards[block.shard].file;
                // A shard that nothing can be read of is one loss.
                let lost = open.get().is_none() || dataset.index(block.shard).is_err();
                let key = if lost { name.clone() } else { format!("{name}:{record}") };
                vec![Payload::Failed(Failed { key, error: Box::new(error) })]
            }
        };
        block.records.clone().flat_map(alone).collect()
    }

    fn read_records(
        &self,
        dataset: &Dataset,
        open: &OnceLock<Box<dyn File>>,
        shard: usize,
        records: std::ops::Range<usize>,
    ) -> Result<Vec<Payload>> {
        // Its tables first: where nothing is known of its records there is nothing to read.
        let index = dataset.index(shard)?;
        let file = if let Some(file) = open.get() {
            file
        } else {
            let file = self.storage.open(&dataset.shard_path(shard))?;
            open.get_or_init(|| file)
        };
        let stretch = dataset.read_stretch(&**file, shard, records.clone())?;
        self.bytes_read.fetch_add(stretch.bytes_read, Ordering::Relaxed);
        let payload = |(record, location): (usize, &forebay_record::Location)| {
            let from = (location.offset - stretch.offset) as usize;
            let frame = stretch.frames.slice(from..from + location.length as usize);
            Payload::Record { shard, record, frame }
        };
        Ok(records.clone().zip(&index.entries()[records]).map(payload).collect())
    }
}

impl Supply for FromStorage {
    fn next(&self) -> Option<Read> {
        self.schedule.lock().next()
    }

    fn start(&self) -> u64 {
        self.start
    }

    fn samples(&self) -> u64 {
        self.samples
    }

    fn window_bytes(&self, block_bytes_max: u64) -> u64 {
        self.schedule.lock().window_bytes(block_bytes_max)
    }

    fn key(&self, read: &Read, place: usize) -> String {
        let record = read.block.records.start + place;
        match &self.origin {
            Place::Source(reader) => reader.listing().entries()[record].key.to_string(),
            Place::Shards { dataset, .. } => {
                format!("{}:{record}", dataset.manifest().shards[read.block.shard].file)
            }
        }
    }

    fn read(&self, read: &Read) -> Result<Vec<Payload>> {
        let Some(cache) = &self.cache else { return Ok(self.read_block(&read.block)) };
        let first = self.first_sample(&read.block);
        let numbers = first..first + read.block.records.len() as u64;
        let missing = numbers.clone().any(|number| !cache.has(number));
        let mut payloads = if missing { self.read_block(&read.block) } else { Vec::new() };
        payloads.resize_with(numbers.clone().count(), || Payload::Failed(Failed::nothing()));
        for (number, payload) in numbers.zip(&mut payloads) {
            if let Some(sample) = cache.get(number) {
                *payload = Payload::Cached(sample);
            }
        }
        Ok(payloads)
    }

    fn unpack(&self, payload: Payload) -> Result<Sample, Failed> {
        match (payload, &self.origin) {
            (Payload::Ready(sample), _) => Ok(*sample),
            (Payload::Cached(sample), _) => Ok(Arc::unwrap_or_clone(sample)),
            (Payload::Failed(failed), _) => Err(failed),
            (Payload::Source { number, content }, Place::Source(reader)) => {
                reader.unpack(number, content).map_err(|error| {
                    let key = reader.listing().entries()[number].key.to_string();
                    Failed { key, error: Box::new(error) }
                })
            }
            (Payload::Record { shard, record, frame }, Place::Shards { dataset, schema, .. }) => {
                unpack_record(dataset, schema, shard, record, &frame).map_err(|error| {
                    let key = format!("{}:{record}", dataset.manifest().shards[shard].file);
                    Failed { key, error: Box::new(error) }
                })
            }
            (Payload::Source { .. } | Payload::Record { .. }, _) => unreachable!("a supply unpacks its own payloads"),
        }
    }

    fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn lost(&self) -> Vec<Skipped> {
        match &self.origin {
            Place::Source(reader) => reader.listing().lost().to_vec(),
            Place::Shards { dataset, .. } => dataset.remade(),
        }
    }
}

/// Checks a record and takes it apart.
fn unpack_record(dataset: &Dataset, schema: &Schema, shard: usize, record: usize, frame: &Bytes) -> Result<Sample> {
    let payload = dataset.payload(shard, record, frame)?;
    let number = dataset.first_sample(shard) + record as u64;
    decode_sample(payload, schema, number).map_err(|source| Error::Sample {
        shard: dataset.manifest().shards[shard].file.clone(),
        record: record as u64,
        offset: dataset.index(shard).ok().and_then(|index| index.get(record)).map_or(0, |location| location.offset),
        source: Box::new(source.into()),
    })
}

/// Samples that are in memory already: the application-level cache (inventory P20).
pub struct FromMemory {
    schedule: Mutex<Schedule>,
    samples: Arc<Vec<Sample>>,
}

impl FromMemory {
    /// These samples, one read each.
    pub fn new(samples: Arc<Vec<Sample>>, order: impl FnOnce(Vec<Block>) -> Schedule) -> Self {
        let block = |(number, sample): (usize, &Sample)| Block {
            shard: 0,
            records: number..number + 1,
            bytes: sample.bytes() as u64,
        };
        let schedule = Mutex::new(order(samples.iter().enumerate().map(block).collect()));
        Self { schedule, samples }
    }
}

impl Supply for FromMemory {
    fn next(&self) -> Option<Read> {
        self.schedule.lock().next()
    }

    fn samples(&self) -> u64 {
        self.samples.len() as u64
    }

    /// None: they are shared with whoever keeps them.
    fn read_bytes(&self, _read: &Read) -> u64 {
        0
    }

    fn key(&self, read: &Read, place: usize) -> String {
        self.samples[read.block.records.start + place].key.to_string()
    }

    fn read(&self, read: &Read) -> Result<Vec<Payload>> {
        let ready = |number: usize| Payload::Ready(Box::new(self.samples[number].clone()));
        Ok(read.block.records.clone().map(ready).collect())
    }

    fn unpack(&self, payload: Payload) -> Result<Sample, Failed> {
        match payload {
            Payload::Ready(sample) => Ok(*sample),
            Payload::Cached(sample) => Ok(Arc::unwrap_or_clone(sample)),
            Payload::Failed(failed) => Err(failed),
            Payload::Source { .. } | Payload::Record { .. } => unreachable!("a supply unpacks its own payloads"),
        }
    }

    fn bytes_read(&self) -> u64 {
        0
    }
}
