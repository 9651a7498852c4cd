//! What a user has: files, tar, TFRecord, Parquet or Arrow shards, through a whole pipeline.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_pipeline::{Format, LABEL_FIELD, Pipeline, Sample, Strategy};
use forebay_record::Cell;
use forebay_storage::{Folder, Storage};
use xxhash_rust::xxh3::Xxh3;

use super::{Block, Failed, Fetched, Source, block_bytes};
use crate::data::{Content, Entry, LabelValue, Listing, ListingOptions, Skipped, SourceReader};
use crate::error::Result;
use crate::memory::StreamLimits;

/// The samples of a listing, with nothing done to them yet.
pub struct Files {
    pipeline: Pipeline,
    strategy: Strategy,
    reader: SourceReader,
    /// The number that each sample has in a build, which random steps are drawn by: so they do the same to it here and there.
    /// `None` where they come in that order.
    numbers: Option<Vec<u64>>,
}

impl Files {
    /// What the pipeline's `[source]` means in the folder `root`, as it lies there.
    pub fn open(
        pipeline: Pipeline,
        root: &Path,
        storage: Arc<dyn Storage>,
        options: &ListingOptions<'_>,
    ) -> Result<Self> {
        let folder = Folder::new(Arc::clone(&storage), root);
        let (listing, numbers) = Listing::as_they_lie(pipeline.source(), folder, options)?;
        Ok(Self { numbers: Some(numbers), ..Self::new(pipeline, Arc::new(listing), storage)? })
    }

    /// The samples of `listing` in its order, through `pipeline`.
    pub fn new(pipeline: Pipeline, listing: Arc<Listing>, storage: Arc<dyn Storage>) -> Result<Self> {
        Ok(Self { pipeline, strategy: Strategy::files(), reader: SourceReader::new(listing, storage), numbers: None })
    }

    fn listing(&self) -> &Listing {
        self.reader.listing()
    }

    /// The column of Parquet or Arrow files that has the labels.
    fn label_column(&self) -> Result<Option<String>> {
        let known = self.reader.column_names()?;
        let fields = self.pipeline.source().read_fields();
        let label = fields.iter().find(|field| field.field == LABEL_FIELD);
        let named = label.and_then(|label| {
            label.from.split(';').map(str::trim).find(|name| known.iter().any(|known| known == name))
        });
        Ok(named.map(str::to_owned))
    }

    fn failed(&self, number: usize, error: crate::Error) -> Failed {
        Failed::new(&*self.listing().entries()[number].key, error)
    }
}

impl Source for Files {
    fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    fn samples(&self) -> u64 {
        self.listing().len() as u64
    }

    fn classes(&self) -> &[String] {
        self.listing().classes()
    }

    fn identity(&self) -> String {
        let mut hash = Xxh3::new();
        let spec = self.pipeline.to_spec().and_then(|spec| serde_json::to_vec(&spec).ok());
        hash.update(&spec.unwrap_or_default());
        for file in self.listing().entries() {
            hash.update(file.key.as_bytes());
            hash.update(&[0]);
            hash.update(&file.bytes.to_le_bytes());
            hash.update(&LabelValue::identity(file.label));
        }
        format!("{:016x}", hash.digest())
    }

    fn folder(&self) -> Option<&Path> {
        Some(self.listing().root().path())
    }

    fn paths(&self) -> Vec<PathBuf> {
        self.listing().paths()
    }

    /// One for each file, and neighbors in shards.
    fn blocks(&self) -> Result<Vec<Block>> {
        let runs = self.listing().runs(block_bytes(self.listing().bytes()));
        let block = |(run, bytes): (Range<usize>, u64)| Block {
            sequence: self.listing().sequence_of(run.start),
            samples: run.start as u64..run.end as u64,
            bytes,
        };
        Ok(runs.into_iter().map(block).collect())
    }

    /// At once; if that fails, each sample is tried by itself.
    fn read(&self, samples: Range<u64>) -> Fetched {
        let numbers = samples.start as usize..samples.end as usize;
        let contents: Vec<Result<Content, Failed>> = match self.reader.read_run(numbers.clone()) {
            Ok(contents) => contents.into_iter().map(Ok).collect(),
            Err(error) if numbers.len() == 1 => vec![Err(self.failed(numbers.start, error))],
            Err(_) => {
                let alone = |number| self.reader.read(number).map_err(|error| self.failed(number, error));
                numbers.map(alone).collect()
            }
        };
        let bytes_read = contents.iter().flatten().map(Content::bytes).sum();
        Fetched { contents, bytes_read }
    }

    fn reads_at_once(&self) -> usize {
        self.reader.storage().reads_at_once(self.listing().root().path())
    }

    fn unpack(&self, sample: u64, content: Content) -> Result<Sample, Failed> {
        let number = sample as usize;
        let unpacked = self.reader.unpack(number, content).map_err(|error| self.failed(number, error))?;
        let index = self.numbers.as_ref().map_or(sample, |numbers| numbers[number]);
        Ok(Sample { index, ..unpacked })
    }

    fn limit_streams(&self, limits: StreamLimits) -> u64 {
        self.reader.limit_streams(limits)
    }

    fn streams_bytes(&self) -> (u64, u64) {
        self.reader.streams_bytes()
    }

    fn key(&self, sample: u64) -> String {
        self.listing().entries()[sample as usize].key.to_string()
    }

    fn keys_and_labels(&self) -> Result<Vec<(String, Option<LabelValue>)>> {
        // That of a row is in a column, which is read alone.
        if self.pipeline.source().format.has_columns() {
            let cells = match self.label_column()? {
                Some(column) => self.reader.column(&column)?.unwrap_or_default(),
                None => Vec::new(),
            };
            let label = |cell: &Cell| match cell {
                Cell::Int(number) => Some(LabelValue::Int(*number)),
                Cell::Bool(is) => Some(LabelValue::Int(i64::from(*is))),
                Cell::Float(number) => Some(LabelValue::Float(*number as f32)),
                _ => None,
            };
            let sample = |(number, entry): (usize, &Entry)| (entry.key.to_string(), cells.get(number).and_then(label));
            return Ok(self.listing().entries().iter().enumerate().map(sample).collect());
        }
        // The label of a sample in a shard is a field of it.
        if self.pipeline.source().format != Format::Files {
            return super::read_keys_and_labels(self);
        }
        Ok(self.listing().entries().iter().map(|entry| (entry.key.to_string(), entry.label)).collect())
    }

    fn column(&self, name: &str) -> Result<Option<Vec<Cell>>> {
        self.reader.column(name)
    }

    fn column_names(&self) -> Result<Vec<String>> {
        self.reader.column_names()
    }

    fn lost(&self) -> Vec<Skipped> {
        self.listing().lost().to_vec()
    }
}
