//! Reads the samples of a listing.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use forebay_codec::Tensor;
use forebay_pipeline::{Field, Format, LABEL_FIELD, Sample, SourceField, Value};
use forebay_record::Cell;
use forebay_record::{Compression, Location, Origin, SharedExample, parse_indexed, tar_members};
use forebay_storage::Storage;

use super::FILE_BYTES_MAX;
use super::kept::ReadCache;
use super::labels::LabelValue;
use super::listing::{Entry, Listing, SampleLocation};
use super::open_shards::{OpenShard, OpenShards};
use super::rows::{RowFiles, WHOLE_GROUP_BYTES_MAX};
use super::shards::shard_name;
use crate::error::{Error, Result};
use crate::memory::StreamLimits;

/// Reads the samples of a listing from a storage. May be shared by threads.
pub struct SourceReader {
    listing: Arc<Listing>,
    storage: Arc<dyn Storage>,
    fields: Vec<SourceField>,
    open: OpenShards,
    /// The same of files of rows.
    rows: RowFiles,
}

/// What was read of one sample: the content of its file and of those beside it, or its part of a shard.
#[derive(Debug, Clone, Default)]
pub struct Content {
    first: Bytes,
    beside: Vec<Bytes>,
    /// Which parts a row of a Parquet or Arrow file has nothing in: a bit for each.
    nulls: u64,
}

impl Content {
    /// How many bytes were read.
    pub fn bytes(&self) -> u64 {
        self.first.len() as u64 + self.beside.iter().map(|part| part.len() as u64).sum::<u64>()
    }

    /// The same in memory of its own.
    pub(crate) fn copied(&self) -> Result<Self> {
        let copy = |part: &Bytes| {
            let copied = forebay_codec::memory::copied(&part[..]);
            copied.map(Bytes::from).map_err(|error| Error::from(forebay_pipeline::Error::Encoding(error)))
        };
        let beside = self.beside.iter().map(copy).collect::<Result<_>>()?;
        Ok(Self { first: copy(&self.first)?, beside, nulls: self.nulls })
    }

    /// What was read in several parts.
    pub(crate) fn of_parts(first: Bytes, beside: Vec<Bytes>) -> Self {
        Self { first, beside, nulls: 0 }
    }

    /// Adds part number `number`, or that there is nothing in it. Parts come in order.
    pub(super) fn push(&mut self, number: usize, part: Option<Bytes>) {
        if part.is_none() {
            self.nulls |= 1 << (number % u64::BITS as usize);
        }
        let part = part.unwrap_or_default();
        if number == 0 {
            self.first = part;
        } else {
            self.beside.push(part);
        }
    }

    /// Part number `number`, if there is something in it.
    pub(super) fn part(&self, number: usize) -> Option<&Bytes> {
        let is_null = self.nulls >> (number % u64::BITS as usize) & 1 == 1;
        let part = number.checked_sub(1).map_or(Some(&self.first), |number| self.beside.get(number));
        part.filter(|_| !is_null)
    }

    /// The parts after the first.
    pub(crate) fn beside(&self) -> &[Bytes] {
        &self.beside
    }

    /// The content of the sample's file, or all of its part of a shard.
    pub(crate) fn first(&self) -> &Bytes {
        &self.first
    }
}

impl From<Bytes> for Content {
    fn from(first: Bytes) -> Self {
        Self { first, beside: Vec::new(), nulls: 0 }
    }
}

impl SourceReader {
    /// A reader of `listing`.
    pub fn new(listing: Arc<Listing>, storage: Arc<dyn Storage>) -> Self {
        let open = OpenShards::new(listing.shards().len());
        let fields = listing.source().read_fields().into_owned();
        let rows = RowFiles::new(listing.shards().len(), listing.source().format, fields.clone());
        Self { listing, storage, fields, open, rows }
    }

    /// What samples are read from.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Limits what the places within compressed streams hold in memory between reads, and what is kept of what was read of far shards for their listing;
    /// how many bytes that is, or 0 where there is neither.
    pub fn limit_streams(&self, limits: StreamLimits) -> u64 {
        let StreamLimits { streams_bytes, kept_bytes, .. } = limits;
        if self.has_columns() {
            self.rows.limit(streams_bytes);
            return streams_bytes;
        }
        let compressed = |shard| self.listing.compression(shard) != Compression::None;
        if !(0..self.listing.shards().len()).any(compressed) {
            return self.listing.kept().map_or(0, |kept| kept.limit(kept_bytes));
        }
        if let Some(kept) = self.listing.kept() {
            kept.limit(0);
        }
        self.open.limit_streams(limits);
        streams_bytes
    }

    /// How many bytes those held at most, and do now.
    pub fn streams_bytes(&self) -> (u64, u64) {
        if self.has_columns() {
            return self.rows.bytes();
        }
        let ((peak, now), kept) = (self.open.streams_bytes(), self.listing.kept().map_or((0, 0), ReadCache::bytes));
        (peak + kept.0, now + kept.1)
    }

    fn has_columns(&self) -> bool {
        self.listing.source().format.has_columns()
    }

    /// The values of a column of Parquet or Arrow files for each sample of the listing; none where the files have no such column.
    pub(crate) fn column(&self, name: &str) -> Result<Option<Vec<Cell>>> {
        if !self.has_columns() {
            return Ok(None);
        }
        let shards = self.listing.shards();
        let mut columns = Vec::with_capacity(shards.len());
        for (shard, path) in shards.iter().enumerate() {
            let Some(cells) = self.rows.get(shard, &*self.storage, path)?.column(name)? else { return Ok(None) };
            columns.push(cells);
        }
        let cell = |entry: &Entry| match entry.location {
            SampleLocation::Shard { shard, record, .. } => columns[shard].get(record as usize).cloned(),
            SampleLocation::File(_) => None,
        };
        Ok(Some(self.listing.entries().iter().map(|entry| cell(entry).unwrap_or(Cell::Null)).collect()))
    }

    /// The names of the columns of the first Parquet or Arrow file.
    pub(crate) fn column_names(&self) -> Result<Vec<String>> {
        let Some(path) = self.listing.shards().first().filter(|_| self.has_columns()) else { return Ok(Vec::new()) };
        let file = self.rows.get(0, &*self.storage, path)?;
        Ok(file.names().into_iter().map(str::to_owned).collect())
    }

    /// The listing.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Reads and takes apart sample number `number`.
    pub fn sample(&self, number: usize) -> Result<Sample> {
        self.unpack(number, self.read(number)?)
    }

    /// Reads sample number `number`.
    pub fn read(&self, number: usize) -> Result<Content> {
        let entry = &self.listing.entries()[number];
        match entry.location {
            SampleLocation::File(_) => {
                let read = |path: PathBuf| self.storage.read_file(&path, FILE_BYTES_MAX);
                let mut files = self.listing.files_of(entry).into_iter();
                let first = files.next().map(read).transpose()?.unwrap_or_default();
                // One that may be missing is looked for first: what cannot be read is still an error.
                let read_field = |(path, field): (PathBuf, &SourceField)| {
                    if field.optional && self.storage.status(&path)?.is_none() {
                        return Ok(Bytes::new());
                    }
                    read(path)
                };
                let beside = files.zip(&self.fields).map(read_field).collect::<Result<_, _>>()?;
                Ok(Content { first, beside, nulls: 0 })
            }
            SampleLocation::Shard { shard, record, .. } if self.has_columns() => {
                let path = &self.listing.shards()[shard];
                let mut rows = self.rows.read(shard, &*self.storage, path, record..record + 1)?;
                rows.pop().ok_or_else(|| Error::internal("a row that was read and is not there"))
            }
            SampleLocation::Shard { shard, offset, .. } => {
                Ok(self.read_shard(shard, offset..offset + entry.bytes)?.into())
            }
        }
    }

    /// Reads some samples that follow each other in one shard, at once; see [`Listing::runs`].
    pub fn read_run(&self, numbers: Range<usize>) -> Result<Vec<Content>> {
        let entries = &self.listing.entries()[numbers.clone()];
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(Vec::new()) };
        let (SampleLocation::Shard { shard, offset: start, .. }, SampleLocation::Shard { offset, .. }) =
            (&first.location, &last.location)
        else {
            return numbers.map(|number| self.read(number)).collect();
        };
        if self.has_columns() {
            return self.read_rows(entries);
        }
        let bytes = self.read_shard(*shard, *start..offset + last.bytes)?;
        let part = |entry: &Entry| match entry.location {
            SampleLocation::Shard { offset, .. } => {
                let from = (offset - start) as usize;
                bytes.slice(from..from + entry.bytes as usize).into()
            }
            SampleLocation::File(_) => Content::default(),
        };
        Ok(entries.iter().map(part).collect())
    }

    /// Rows of Parquet or Arrow files, those at once that follow each other in one row group.
    fn read_rows(&self, entries: &[Entry]) -> Result<Vec<Content>> {
        let follows = |one: &Entry, next: &Entry| match (&one.location, &next.location) {
            (
                SampleLocation::Shard { shard, record, offset },
                SampleLocation::Shard { shard: next_shard, record: next, offset: next_offset },
            ) => (shard, record + 1, offset) == (next_shard, *next, next_offset),
            _ => false,
        };
        let mut contents = Vec::with_capacity(entries.len());
        for run in entries.chunk_by(follows) {
            let SampleLocation::Shard { shard, record, .. } = run[0].location else { continue };
            let rows = record..record + run.len() as u64;
            contents.append(&mut self.rows.read(shard, &*self.storage, &self.listing.shards()[shard], rows)?);
        }
        Ok(contents)
    }

    fn shard(&self, shard: usize) -> Result<&OpenShard> {
        self.open.get(shard, &*self.storage, &self.listing.shards()[shard], self.listing.compression(shard))
    }

    /// A part of a shard, or of what it inflates to. What was read of it for the listing is not read again for the first epoch.
    fn read_shard(&self, shard: usize, range: Range<u64>) -> Result<Bytes> {
        let read = |range: Range<u64>| {
            let open = self.shard(shard)?;
            let _turn = self.open.turn(shard, range.start, |next| self.shard(next));
            open.read(range.start, (range.end - range.start) as usize)
        };
        match self.listing.kept() {
            Some(kept) if self.listing.compression(shard) == Compression::None => {
                kept.complete(shard, range, |missing| {
                    if !kept.is_of(shard, self.shard(shard)?.version()) {
                        let problem = "was replaced since it was listed\nhint: load it anew once nothing writes to it";
                        let path = self.listing.shards()[shard].clone();
                        return Err(Error::Format { path, problem: problem.to_owned() });
                    }
                    read(missing)
                })
            }
            _ => read(range),
        }
    }

    /// Takes what was read of sample number `number` apart.
    pub fn unpack(&self, number: usize, content: Content) -> Result<Sample> {
        let entry = &self.listing.entries()[number];
        let fields = match &entry.location {
            SampleLocation::File(_) => self.file_fields(entry, content)?,
            SampleLocation::Shard { shard, record, offset } => {
                let name = shard_name(&self.listing.shards()[*shard]);
                match self.listing.source().format {
                    Format::Tar => self.tar_fields(&content.first, &entry.key, &name, *record, *offset)?,
                    Format::Parquet | Format::Arrow => {
                        let path = &self.listing.shards()[*shard];
                        let row = self.rows.row((*shard, &*self.storage, path), &content)?;
                        let field = |(field, cell): (&SourceField, Cell)| {
                            let value = field.cell(cell);
                            let value =
                                value.map_err(|problem| in_shard(&name, *record, *offset, &field.from, problem))?;
                            Ok(Field { name: field.field.as_str().into(), value })
                        };
                        row.map(field).collect::<Result<_>>()?
                    }
                    Format::Tfrecord | Format::Files => self.record_fields(&content.first, &name, *record, *offset)?,
                }
            }
        };
        Ok(Sample { key: Arc::clone(&entry.key), index: number as u64, fields })
    }

    fn file_fields(&self, entry: &Entry, content: Content) -> Result<Vec<Field>> {
        let source = self.listing.source();
        let mut fields = vec![Field { name: source.field.as_str().into(), value: Value::Bytes(content.first) }];
        fields.extend(entry.label.map(|label| {
            let value = match label {
                LabelValue::Int(number) => Value::Int(number),
                LabelValue::Float(number) => {
                    Value::Tensor(Tensor::from_elements(&[], &[number]).expect("one element for a shape of none"))
                }
            };
            Field { name: LABEL_FIELD.into(), value }
        }));
        for (index, (field, content)) in self.fields.iter().zip(content.beside).enumerate() {
            let value = field.value(content).map_err(|problem| Error::Format {
                path: self.listing.files_of(entry).swap_remove(index + 1),
                problem: format!("field `{}` {problem}", field.field),
            })?;
            fields.push(Field { name: field.field.as_str().into(), value });
        }
        Ok(fields)
    }

    fn tar_fields(&self, sample: &Bytes, key: &str, shard: &str, record: u64, offset: u64) -> Result<Vec<Field>> {
        let members = tar_members(sample, key, shard, record, offset)?;
        let field = |field: &SourceField| {
            let wanted = |name: &str| field.from.split(';').any(|member| member.trim().eq_ignore_ascii_case(name));
            let content = members.iter().find(|(name, _)| wanted(name)).map(|(_, content)| content.clone());
            let content = content.or_else(|| field.optional.then(Bytes::new));
            let value = content.ok_or_else(|| {
                let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                format!("has no member `{}`, only `{}`", field.from, names.join("`, `"))
            });
            let value = value.and_then(|content| field.value(content));
            let value = value.map_err(|problem| in_shard(shard, record, offset, &field.field, problem))?;
            Ok(Field { name: field.field.as_str().into(), value })
        };
        self.fields.iter().map(field).collect()
    }

    fn record_fields(&self, frame: &Bytes, shard: &str, record: u64, offset: u64) -> Result<Vec<Field>> {
        let location = Location { offset, length: frame.len() as u64 };
        let payload = parse_indexed(frame, location, Origin { shard, record, offset }, true)?;
        let example = SharedExample::parse(payload).map_err(|source| Error::Sample {
            shard: shard.to_owned(),
            record,
            offset,
            source: Box::new(source.into()),
        })?;
        let field = |field: &SourceField| {
            let value = field.feature(&example);
            let value = value.map_err(|problem| in_shard(shard, record, offset, &field.from, problem))?;
            Ok(Field { name: field.field.as_str().into(), value })
        };
        self.fields.iter().map(field).collect()
    }
}

/// An error of one field of a sample in a shard.
fn in_shard(shard: &str, record: u64, offset: u64, field: &str, problem: String) -> Error {
    let source = forebay_pipeline::Error::Stored { field: field.to_owned(), problem };
    Error::Sample { shard: shard.to_owned(), record, offset, source: Box::new(source.into()) }
}

impl Listing {
    /// Runs of samples that follow each other in one shard and have up to `bytes_max` bytes together; a sample that
    /// lies in files of its own is an extent of its own.
    pub fn runs(&self, bytes_max: u64) -> Vec<(Range<usize>, u64)> {
        if self.source().format.has_columns() {
            return self.row_runs(bytes_max);
        }
        let mut runs: Vec<(Range<usize>, u64)> = Vec::new();
        let mut end = None;
        for (number, entry) in self.entries().iter().enumerate() {
            let start = match entry.location {
                SampleLocation::Shard { shard, offset, .. } => Some((shard, offset)),
                SampleLocation::File(_) => None,
            };
            match runs.last_mut() {
                Some((run, bytes))
                    if start.is_some() && start == end && bytes.saturating_add(entry.bytes) <= bytes_max =>
                {
                    run.end = number + 1;
                    *bytes += entry.bytes;
                }
                _ => runs.push((number..number + 1, entry.bytes)),
            }
            end = start.map(|(shard, offset)| (shard, offset + entry.bytes));
        }
        runs
    }

    /// The same of Parquet and Arrow files: row groups, or where these are large, neighboring rows of one.
    fn row_runs(&self, bytes_max: u64) -> Vec<(Range<usize>, u64)> {
        let group = |entry: &Entry| match entry.location {
            SampleLocation::Shard { shard, offset, .. } => Some((shard, offset)),
            SampleLocation::File(_) => None,
        };
        let row = |entry: &Entry| match entry.location {
            SampleLocation::Shard { record, .. } => record,
            SampleLocation::File(_) => 0,
        };
        let follows = |one: &Entry, next: &Entry| group(one) == group(next) && row(one) + 1 == row(next);
        let mut runs = Vec::new();
        let mut begin = 0;
        for rows in self.entries().chunk_by(follows) {
            let bytes = rows.iter().map(|entry| entry.bytes).fold(0, u64::saturating_add);
            // What must be inflated for one row is for all.
            let is_shared = self.sequence_of(begin).is_some();
            let most = if is_shared && bytes <= WHOLE_GROUP_BYTES_MAX { bytes } else { bytes_max };
            let (mut first, mut held) = (begin, 0_u64);
            for (number, entry) in (begin..).zip(rows) {
                if number > first && held.saturating_add(entry.bytes) > most {
                    runs.push((first..number, held));
                    (first, held) = (number, 0);
                }
                held = held.saturating_add(entry.bytes);
            }
            begin += rows.len();
            runs.push((first..begin, held));
        }
        runs
    }
}
