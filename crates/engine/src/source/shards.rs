//! A data set that was built.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_pipeline::{Pipeline, Sample, Schema, Strategy, decode_sample, join_scan_groups};
use forebay_record::{Compression, Scope};
use forebay_storage::{Folder, Storage};

use super::{Block, Failed, Fetched, Source, block_bytes};
use crate::data::{BESIDE_SHARD, Content, Dataset, OpenShards, ScanLayout, Skipped, stream_of};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::StreamLimits;
use crate::threads::{cores, share};

/// The records of a data set.
pub struct Shards {
    dataset: Arc<Dataset>,
    storage: Arc<dyn Storage>,
    /// The data set's, or one that differs in what is done every epoch.
    pipeline: Pipeline,
    schema: Schema,
    open: OpenShards,
    /// Neighbors are read together up to so many.
    block_bytes: u64,
    /// How many groups of scans are read of progressive records; all where it is not said.
    scans: Option<u64>,
}

impl Shards {
    /// The data set in the folder `root`. `on_error` says what happens to shards that are damaged or not there.
    pub fn open(root: &Path, storage: Arc<dyn Storage>, on_error: OnError) -> Result<Self> {
        let folder = Folder::new(Arc::clone(&storage), root);
        Ok(Self::new(Arc::new(Dataset::open_on_error(folder, on_error)?), storage))
    }

    /// The records of `dataset`.
    pub fn new(dataset: Arc<Dataset>, storage: Arc<dyn Storage>) -> Self {
        let schema = dataset.stored_schema();
        let open = OpenShards::new(dataset.manifest().shards.len());
        let pipeline = dataset.pipeline().clone();
        let block_bytes = block_bytes(dataset.manifest().bytes);
        Self { dataset, storage, pipeline, schema, open, block_bytes, scans: None }
    }

    /// The same, read in blocks as large as if the data set were `times` as large: it stands for one that is.
    pub(crate) fn standing_for(self, times: f64) -> Self {
        let block_bytes = block_bytes((self.dataset.manifest().bytes as f64 * times) as u64);
        Self { block_bytes, ..self }
    }

    /// The same with other steps every epoch. What the data set has done once cannot be changed: `pipeline` must begin with that.
    pub fn with_pipeline(self, pipeline: Pipeline) -> Result<Self> {
        let once = self.strategy().split.offline_steps();
        let done = |pipeline: &Pipeline| {
            let spec = pipeline.to_spec()?;
            Some((spec.source, spec.steps.get(..once)?.to_vec()))
        };
        match (done(self.pipeline()), done(&pipeline)) {
            (Some(before), Some(after)) if before == after => Ok(Self { pipeline, ..self }),
            _ => Err(Error::Usage {
                problem: format!(
                    "this data set keeps `{}`: what was done once to get there cannot be changed any more",
                    self.strategy()
                ),
                remedy: "change steps that run every epoch, or build the data set again".to_owned(),
            }),
        }
    }

    /// The same, of whose progressive records only the first `scans` groups of scans are read: fewer bytes, and pictures of a lower quality. The order
    /// of an epoch does not depend on it, so that it can change from one to the next.
    pub fn with_scans(self, scans: u64) -> Result<Self> {
        let layouts = self.dataset.manifest().shards.iter().map(|shard| shard.scans.map(|layout| layout.groups));
        match layouts.min().flatten() {
            Some(groups) if (1..=groups).contains(&scans) => Ok(Self { scans: Some(scans), ..self }),
            Some(groups) => Err(Error::Usage {
                problem: format!("{scans} groups of scans are asked for, but a sample has {groups}"),
                remedy: format!("pass 1 to {groups} as `scans` (`--scans`)"),
            }),
            None => Err(Error::Usage {
                problem: format!("`{}` has no progressive records, of which a part could be read", self.strategy()),
                remedy: "omit `scans` (`--scans`), or build the data set as `concatenated+pcr`".to_owned(),
            }),
        }
    }

    /// How the records of shard number `shard` lie, and how many groups of each are read, where they are progressive.
    fn layout(&self, shard: usize) -> Option<(ScanLayout, u64)> {
        let layout = self.dataset.manifest().shards[shard].scans?;
        Some((layout, self.scans.map_or(layout.groups, |scans| scans.min(layout.groups))))
    }

    /// The data set.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    fn name(&self, shard: usize) -> &str {
        &self.dataset.manifest().shards[shard].file
    }

    /// Samples of shard number `shard` that lie together. Of one whose index is lost all samples are a block, so that each keeps
    /// its number and is reported as lost when its turn comes.
    pub(crate) fn blocks_of(&self, shard: usize) -> Result<Vec<Block>> {
        let (dataset, entry) = (&self.dataset, &self.dataset.manifest().shards[shard]);
        let first = dataset.first_sample(shard);
        let index = match dataset.index(shard) {
            Ok(index) => index,
            Err(error) if dataset.on_error() == OnError::Fail || error.ends() => return Err(error),
            Err(_) if entry.samples == 0 => return Ok(Vec::new()),
            Err(_) => {
                return Ok(vec![Block { samples: first..first + entry.samples, bytes: entry.bytes, sequence: None }]);
            }
        };
        if let Some((layout, _)) = self.layout(shard) {
            return Ok(self.chunks_of(shard, layout, index));
        }
        // Of a compressed block all is read or nothing; a stream goes on.
        let compressed = dataset.blocks(shard)?.filter(|_| !self.is_stream());
        let sequence = self.is_stream().then_some(shard);
        let may_begin = |offset| compressed.is_none_or(|blocks| blocks.begins_at(offset));
        let mut blocks = Vec::new();
        let mut block = Block { samples: first..first, bytes: 0, sequence };
        let mut start = 0;
        for location in index.iter() {
            let full = block.bytes > 0 && location.end() - start > self.block_bytes;
            if block.len() == 0 || full && may_begin(location.offset) {
                let end = block.samples.end;
                let done = std::mem::replace(&mut block, Block { samples: end..end, bytes: 0, sequence });
                blocks.extend((done.len() > 0).then_some(done));
                start = location.offset;
            }
            block.samples.end += 1;
            // What lies between records is read along with them.
            block.bytes = location.end() - start;
        }
        blocks.extend((block.len() > 0).then_some(block));
        Ok(blocks)
    }

    /// Chunks of progressive records, several together where they are small. They count with all of their bytes, however few are read: so the order of an
    /// epoch does not depend on that.
    fn chunks_of(&self, shard: usize, layout: ScanLayout, index: &forebay_record::Index) -> Vec<Block> {
        let (first, samples) = (self.dataset.first_sample(shard), self.dataset.manifest().shards[shard].samples);
        let mut blocks: Vec<Block> = Vec::new();
        let mut at = 0;
        while at < samples {
            let chunk = layout.chunk(samples, at);
            let records = [at * layout.groups, chunk.end * layout.groups - 1].map(|record| index.get(record as usize));
            let bytes = if let [Some(front), Some(back)] = records { back.end() - front.offset } else { 0 };
            match blocks.last_mut() {
                Some(block) if block.bytes + bytes <= self.block_bytes => {
                    block.samples.end = first + chunk.end;
                    block.bytes += bytes;
                }
                _ => blocks.push(Block { samples: first + at..first + chunk.end, bytes, sequence: None }),
            }
            at = chunk.end;
        }
        blocks
    }

    /// Reads the first groups of scans of progressive records: as few pieces as they lie in, and no byte besides.
    fn read_scans(&self, shard: usize, wanted: Range<usize>, (layout, groups): (ScanLayout, u64)) -> Result<Fetched> {
        let (index, samples) = (self.dataset.index(shard)?, self.dataset.manifest().shards[shard].samples);
        let open = self.open.get(shard, &*self.storage, &self.dataset.shard_path(shard), Compression::None)?;
        let mut bytes_read = 0;
        let mut frames: HashMap<u64, Bytes> = HashMap::new();
        for piece in layout.pieces(samples, wanted.start as u64..wanted.end as u64, groups) {
            let records = piece.start as usize..piece.end as usize;
            let extent = self.dataset.read_open(open, shard, records.clone())?;
            bytes_read += extent.bytes_read;
            for (record, location) in piece.zip(index.range(records)) {
                let from = (location.offset - extent.offset) as usize;
                frames.insert(record, extent.frames.slice(from..from + location.length as usize));
            }
        }
        let missing = || Error::internal("a record that was not read");
        let content = |sample: usize| {
            let mut parts = (0..groups).map(|group| frames.remove(&layout.record(samples, sample as u64, group)));
            let first = parts.next().flatten().ok_or_else(missing)?;
            Ok(Ok(Content::of_parts(first, parts.collect::<Option<_>>().ok_or_else(missing)?)))
        };
        Ok(Fetched { contents: wanted.map(content).collect::<Result<_>>()?, bytes_read })
    }

    fn read_records(&self, shard: usize, records: Range<usize>) -> Result<Fetched> {
        if let Some(layout) = self.layout(shard) {
            return self.read_scans(shard, records, layout);
        }
        // Its tables first: where nothing is known of its records there is nothing to read.
        let index = self.dataset.index(shard)?;
        let stream = if self.is_stream() { stream_of(self.dataset.compression()) } else { Compression::None };
        let open = |shard| self.open.get(shard, &*self.storage, &self.dataset.shard_path(shard), stream);
        let shard_open = open(shard)?;
        let _turn = index.get(records.start).and_then(|first| self.open.turn(shard, first.offset, open));
        let extent = self.dataset.read_open(shard_open, shard, records.clone())?;
        let content = |location: forebay_record::Location| {
            let from = (location.offset - extent.offset) as usize;
            Ok(Content::from(extent.frames.slice(from..from + location.length as usize)))
        };
        let contents = index.range(records).map(content).collect();
        Ok(Fetched { contents, bytes_read: extent.bytes_read })
    }

    /// Whether each shard is one compressed stream.
    fn is_stream(&self) -> bool {
        self.dataset.compression().is_some_and(|compression| compression.scope == Scope::Stream)
    }

    fn unpack_record(&self, shard: usize, within: usize, content: &Content) -> Result<Sample> {
        let dataset = &self.dataset;
        let record = dataset.record_of(shard, within);
        let payload = dataset.payload(shard, record, content.first())?;
        let number = dataset.first_sample(shard) + within as u64;
        let failed = |source: forebay_pipeline::Error| Error::Sample {
            shard: self.name(shard).to_owned(),
            record: record as u64,
            offset: dataset.index(shard).ok().and_then(|index| index.get(record)).map_or(0, |location| location.offset),
            source: Box::new(source.into()),
        };
        let mut sample = decode_sample(payload, &self.schema, number).map_err(failed)?;
        if let Some((layout, _)) = self.layout(shard) {
            let samples = dataset.manifest().shards[shard].samples;
            let groups = content.beside().iter().zip(1..).map(|(frame, group)| {
                dataset.payload(shard, layout.record(samples, within as u64, group) as usize, frame)
            });
            join_scan_groups(&mut sample, &groups.collect::<Result<Vec<_>>>()?).map_err(failed)?;
        }
        Ok(sample)
    }
}

impl Source for Shards {
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn strategy(&self) -> &Strategy {
        &self.dataset.manifest().strategy
    }

    fn samples(&self) -> u64 {
        self.dataset.manifest().samples
    }

    fn classes(&self) -> &[String] {
        &self.dataset.manifest().classes
    }

    fn identity(&self) -> String {
        self.dataset.manifest().identity.clone()
    }

    fn paths(&self) -> Vec<PathBuf> {
        let shards = (0..self.open.len()).map(|shard| self.dataset.shard_path(shard));
        let beside = |shard: PathBuf| {
            let tables = BESIDE_SHARD.map(|suffix| crate::data::beside_shard(&shard, suffix));
            let is_there = |path: &PathBuf| matches!(self.storage.status(path), Ok(Some(_)));
            std::iter::once(shard).chain(tables.into_iter().filter(is_there))
        };
        shards.flat_map(beside).collect()
    }

    /// Of each shard the tables are read for it, on all cores.
    fn blocks(&self) -> Result<Vec<Block>> {
        let found: Vec<OnceLock<Result<Vec<Block>>>> = (0..self.open.len()).map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let shard = next.fetch_add(1, Ordering::Relaxed);
                let Some(found) = found.get(shard) else { return };
                found.get_or_init(|| self.blocks_of(shard));
            }
        };
        let threads = cores().max(self.reads_at_once()).min(self.open.len());
        std::thread::scope(|scope| share(scope, threads, "read the indexes", &work))?;
        let mut blocks = Vec::new();
        for found in found {
            blocks.extend(found.into_inner().ok_or_else(|| Error::internal("a shard that nobody looked at"))??);
        }
        Ok(blocks)
    }

    /// At once; if that fails, each record is tried by itself, so that those before the end of a truncated shard, and those of the
    /// compressed blocks beside a damaged one, live on.
    fn read(&self, samples: Range<u64>) -> Fetched {
        let (shard, first) = self.dataset.locate(samples.start);
        let records = first..first + (samples.end - samples.start) as usize;
        if let Ok(fetched) = self.read_records(shard, records.clone()) {
            return fetched;
        }
        let mut all = Fetched { contents: Vec::new(), bytes_read: 0 };
        for record in records {
            match self.read_records(shard, record..record + 1) {
                Ok(fetched) => {
                    all.contents.extend(fetched.contents);
                    all.bytes_read += fetched.bytes_read;
                }
                Err(error) => {
                    let name = self.name(shard);
                    // A shard that nothing can be read of is one loss.
                    let lost = !self.open.is_open(shard) || self.dataset.index(shard).is_err();
                    let key = if lost { name.to_owned() } else { format!("{name}:{record}") };
                    all.contents.push(Err(Failed::new(key, error)));
                }
            }
        }
        all
    }

    fn reads_at_once(&self) -> usize {
        self.storage.reads_at_once(self.dataset.root())
    }

    fn inflates(&self) -> bool {
        self.dataset.compression().is_some_and(|compression| compression.scope != Scope::Record)
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        let (shard, record) = self.dataset.locate(sample);
        let unpacked = self.unpack_record(shard, record, &content);
        unpacked.map_err(|error| Failed::new(format!("{}:{record}", self.name(shard)), error))
    }

    /// A record that was compressed by itself is inflated by then; the scans of a progressive one are joined.
    fn unpacking_bytes(&self, sample: u64) -> u64 {
        let (shard, record) = self.dataset.locate(sample);
        if let (Some((layout, groups)), Ok(index)) = (self.layout(shard), self.dataset.index(shard)) {
            let samples = self.dataset.manifest().shards[shard].samples;
            let records = (0..groups).map(|group| layout.record(samples, record as u64, group) as usize);
            return records.filter_map(|record| index.get(record)).map(|location| location.length).sum();
        }
        self.dataset.payload_bytes(shard, record)
    }

    fn limit_streams(&self, limits: StreamLimits) -> u64 {
        if !self.is_stream() {
            return 0;
        }
        self.open.limit_streams(limits);
        limits.streams_bytes
    }

    fn streams_bytes(&self) -> (u64, u64) {
        self.open.streams_bytes()
    }

    fn key(&self, sample: u64) -> String {
        let (shard, record) = self.dataset.locate(sample);
        format!("{}:{record}", self.name(shard))
    }

    fn lost(&self) -> Vec<Skipped> {
        self.dataset.rebuilt_tables()
    }
}
