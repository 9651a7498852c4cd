//! Where samples come from, opened: everything that loads, measures or exports begins here.
//!
//! A [`Source`] knows its samples by number, what is done to them and how far that was done already, which of them lie together, and how to
//! read and unpack them. [`Files`] are what a user has: a folder of files, tar, TFRecord, Parquet or Arrow shards, through a whole pipeline.
//! [`Shards`] are a data set that was built, [`Mixed`] one that was built in several formats, [`Interleaved`] several data sets. A remote storage is one implementation more.

mod files;
mod held;
mod interleaved;
mod memory;
mod mixed;
mod repeated;
mod sampled;
mod shards;

use std::ops::Range;
use std::path::{Path, PathBuf};

use forebay_pipeline::{LABEL_FIELD, Pipeline, Sample, Strategy};
use forebay_record::Cell;

pub use crate::data::Content;
use crate::data::{LabelValue, Skipped};
use crate::error::{Error, Result};
use crate::memory::StreamLimits;
pub use files::Files;
pub(crate) use held::Held;
pub use interleaved::Interleaved;
pub(crate) use memory::InMemory;
pub use mixed::{Mixed, open_dataset};
pub(crate) use repeated::Repeated;
pub(crate) use sampled::Sampled;
pub use shards::Shards;

/// Where samples come from. Shared by the threads of a loader.
pub trait Source: Send + Sync {
    /// Everything that is done to a sample, what was done already included.
    fn pipeline(&self) -> &Pipeline;

    /// How far that was done already, and how the samples are kept.
    fn strategy(&self) -> &Strategy;

    /// The formats that samples are kept in, where these are several: what is done to a sample every epoch depends on its own.
    fn strategies(&self) -> Vec<&Strategy> {
        vec![self.strategy()]
    }

    /// What is done to samples of each of [`strategies`](Self::strategies), where that differs: of several data sets.
    fn pipelines(&self) -> Vec<&Pipeline> {
        vec![self.pipeline(); self.strategies().len()]
    }

    /// Which of [`strategies`](Self::strategies) sample number `sample` is kept in. The samples of a block are all kept in one.
    fn format_of(&self, _sample: u64) -> usize {
        0
    }

    /// How many samples there are.
    fn samples(&self) -> u64;

    /// How many of them are different ones.
    fn different(&self) -> u64 {
        self.samples()
    }

    /// The names of the classes; a label is an index into this list.
    fn classes(&self) -> &[String] {
        &[]
    }

    /// A checksum of what the samples are and of what is done to them, not of where they lie.
    fn identity(&self) -> String;

    /// The folder that samples' keys are paths below, where samples are files.
    fn folder(&self) -> Option<&Path> {
        None
    }

    /// The files that are read.
    fn paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Samples that lie together and are best read together, in order: each sample is in one of them.
    fn blocks(&self) -> Result<Vec<Block>>;

    /// Reads neighboring samples: (a part of) a block. Runs on reader threads, and does no work but reading (and inflating, which
    /// gives the samples of a compressed block at once).
    fn read(&self, samples: Range<u64>) -> Fetched;

    /// How many reads at once it takes to hide the time that each takes to begin; 0 where as many as there are workers do.
    fn reads_at_once(&self) -> usize {
        0
    }

    /// Whether reading inflates, too: while a reader does, another should wait for the storage.
    fn inflates(&self) -> bool {
        false
    }

    /// Makes a sample of what was read. Runs on workers.
    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed>;

    /// How many bytes unpacking sample number `sample` takes besides what was read.
    fn unpacking_bytes(&self, _sample: u64) -> u64 {
        0
    }

    /// Limits what is held in memory between reads by the places within compressed streams, and of what was read for a listing; how many bytes that is, or
    /// 0 where there is neither.
    fn limit_streams(&self, _limits: StreamLimits) -> u64 {
        0
    }

    /// How many bytes those held at most, and do now.
    fn streams_bytes(&self) -> (u64, u64) {
        (0, 0)
    }

    /// What sample number `sample` is called, where it was not read.
    fn key(&self, sample: u64) -> String;

    /// The key and the label of each sample, in order. Those that are not listed are read; one that cannot be has no label.
    fn keys_and_labels(&self) -> Result<Vec<(String, Option<LabelValue>)>> {
        read_keys_and_labels(self)
    }

    /// The values of a column for each sample, where samples are rows of a table with such a column.
    fn column(&self, _name: &str) -> Result<Option<Vec<Cell>>> {
        Ok(None)
    }

    /// The names of such columns.
    fn column_names(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// What is known to be lost before anything is read, and has no number; and what was damaged and could be read in another way.
    fn lost(&self) -> Vec<Skipped> {
        Vec::new()
    }
}

impl dyn Source + '_ {
    /// Whether a step may make several samples of one, so that nobody knows how many there will be.
    pub fn expands(&self) -> bool {
        let expands = |(pipeline, strategy): (&Pipeline, &Strategy)| {
            let (steps, _) = strategy.online(pipeline);
            steps.iter().any(|step| step.action.changes_count())
        };
        self.pipelines().into_iter().zip(self.strategies()).any(expands)
    }

    /// How samples are kept: the strategy's name, or those of all formats.
    pub fn formats(&self) -> String {
        self.strategies().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// The key and the label of each sample, read.
fn read_keys_and_labels<S: Source + ?Sized>(source: &S) -> Result<Vec<(String, Option<LabelValue>)>> {
    let mut all = Vec::new();
    for block in source.blocks()? {
        let contents = source.read(block.samples.clone()).contents;
        for (number, content) in block.samples.zip(contents) {
            let sample = content.and_then(|content| source.unpack(number, content));
            all.push(match sample {
                Ok(sample) => (sample.key.to_string(), sample.field(LABEL_FIELD).and_then(LabelValue::of)),
                Err(failed) => (failed.key, None),
            });
        }
    }
    Ok(all)
}

/// Samples that nobody wants are read along with their neighbors, up to so many bytes: about what a seek costs.
pub(crate) const GAP_BYTES_MAX: u64 = 256 << 10;

/// Neighboring samples that are read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Which samples of the source.
    pub samples: Range<u64>,
    /// How many bytes they are; of a part of a block, about.
    pub bytes: u64,
    /// The number of the sequence that it is of, if it is best read after those of the sequence that come before it: a compressed stream can
    /// only be inflated from its start.
    pub sequence: Option<usize>,
}

impl Block {
    /// How many samples.
    pub(crate) fn len(&self) -> u64 {
        self.samples.end - self.samples.start
    }

    /// Its samples `range`, counted from its first.
    pub(crate) fn part(&self, range: Range<u64>) -> Self {
        let bytes = u128::from(self.bytes) * u128::from(range.end - range.start) / u128::from(self.len().max(1));
        let samples = self.samples.start + range.start..self.samples.start + range.end;
        Self { samples, bytes: bytes as u64, sequence: self.sequence }
    }
}

/// What was read of neighboring samples.
pub struct Fetched {
    /// Of each its bytes, or why there are none: one that cannot be read does not take its neighbors along.
    pub contents: Vec<Result<Content, Failed>>,
    /// How many bytes were read for them.
    pub bytes_read: u64,
}

/// A sample that could not be read or unpacked.
#[derive(Debug)]
pub struct Failed {
    /// What it is called: its key, or where its record lies.
    pub key: String,
    /// Why.
    pub error: Box<Error>,
}

impl Failed {
    pub(crate) fn new(key: impl Into<String>, error: Error) -> Self {
        Self { key: key.into(), error: Box::new(error) }
    }
}

/// Neighbors are read together up to so many bytes: large enough that a seek costs little (PRESTO's storage
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
