//! Writing one shard.

use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_codec::memory;
use forebay_pipeline::{RngKey, Runner, SampleView, Sink, StepError, StorageFormat, encode_sample, encode_scan_groups};
use forebay_record::{
    Blocks, Checksums, Dictionary, Index, RecordCompressor, Scope, ShardCompression, ShardCompressor, Sizes, Writer,
};
use forebay_storage::Upload;
use xxhash_rust::xxh3::Xxh3;

use super::Build;
use super::chunk::Chunk;
use super::journal::{Journal, ShardDone, shard_name};
use super::read_ahead::ReadAhead;
use crate::data::{
    ScanLayout, ShardEntry, Skipped, SourceReader, blocks_path, checksum, crc_path, digits, index_path, sizes_path,
};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::{Gate, Pass, StreamLimits};
use crate::progress::Progress;
use crate::threads::share;

/// Why a shard was not finished.
pub(super) enum Stopped {
    /// It failed.
    Failed(Error),
    /// Another one failed.
    Elsewhere,
}

impl<E: Into<Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Where the records of shards come from. Samples are numbered, and neighbors are in one shard.
pub(super) trait Origin {
    /// How many samples there are.
    fn len(&self) -> usize;

    /// What a sample is called.
    fn key(&self, number: usize) -> String;

    /// How many bytes it has where it is read.
    fn bytes(&self, number: usize) -> u64;

    /// Begins a shard of the samples `range`. What comes out is to be read by others while it is written, no more than `bytes_max` ahead.
    fn begin_shard(&mut self, _range: Range<usize>, _bytes_max: u64) -> Option<Ahead> {
        None
    }

    /// Reads a sample, and passes what will be stored of it to `records`.
    fn make(&mut self, number: usize, records: &mut Records<'_>) -> Result<()>;

    /// What is held of samples before, until there is more of them or the shard ends.
    fn held_bytes(&self) -> u64 {
        0
    }

    /// Ends a shard: hands what is still held to `records`.
    fn end_shard(&mut self, _records: &mut Records<'_>) -> Result<()> {
        Ok(())
    }
}

/// What is read ahead of the samples of a shard, and by how many threads.
pub(super) struct Ahead {
    samples: Arc<ReadAhead>,
    readers: usize,
}

/// The samples of a listing, and what the offline steps make of them.
struct Listed<'a> {
    build: &'a Build,
    reader: Arc<SourceReader>,
    /// How many threads read ahead, where each read waits long.
    readers: usize,
    /// What they read, while a shard is written.
    ahead: Option<Arc<ReadAhead>>,
    runner: Runner,
}

impl Origin for Listed<'_> {
    fn len(&self) -> usize {
        self.build.listing.len()
    }

    fn key(&self, number: usize) -> String {
        self.build.listing.entries()[number].key.to_string()
    }

    fn bytes(&self, number: usize) -> u64 {
        self.build.listing.entries()[number].bytes
    }

    fn begin_shard(&mut self, range: Range<usize>, bytes_max: u64) -> Option<Ahead> {
        self.runner.begin_shard();
        // A compressed stream is read in its order.
        let reads_ahead =
            self.readers > 1 && !range.is_empty() && self.build.listing.sequence_of(range.start).is_none();
        self.ahead = reads_ahead.then(|| Arc::new(ReadAhead::new(Arc::clone(&self.reader), range, bytes_max)));
        self.ahead.clone().map(|samples| Ahead { samples, readers: self.readers })
    }

    fn make(&mut self, number: usize, records: &mut Records<'_>) -> Result<()> {
        let entry = &self.build.listing.entries()[number];
        records.begin(&entry.key, entry.bytes)?;
        let content = match &self.ahead {
            Some(ahead) => ahead.take(number)?,
            None => self.reader.read(number)?,
        };
        let sample = self.reader.unpack(number, content)?;
        // Offline steps are not random: the draw does not matter.
        Ok(self.runner.run(&sample, RngKey::default(), &mut (), records)?)
    }

    fn held_bytes(&self) -> u64 {
        self.runner.shard_bytes() as u64
    }

    fn end_shard(&mut self, records: &mut Records<'_>) -> Result<()> {
        self.ahead = None;
        Ok(self.runner.end_shard(RngKey::default(), &mut (), records)?)
    }
}

/// Writes shards, one after another.
pub(super) struct ShardWriter<'a> {
    origin: Box<dyn Origin + 'a>,
    format: StorageFormat,
    on_error: OnError,
    stop: &'a AtomicBool,
    progress: &'a dyn Progress,
    records: Records<'a>,
    /// What records are compressed with, where they are.
    dictionary: Option<&'a Dictionary>,
}

impl<'a> ShardWriter<'a> {
    /// A writer of the records of `build`, with that many threads that read ahead if reads have a high latency.
    pub(super) fn new(
        build: &'a Build,
        readers: usize,
        on_error: OnError,
        (stop, progress, gate): (&'a AtomicBool, &'a dyn Progress, &'a Gate),
    ) -> Self {
        let offline = build.strategy.offline(&build.pipeline);
        let reader = SourceReader::new(Arc::clone(&build.listing), Arc::clone(&build.storage));
        let streams_bytes = reader.limit_streams(StreamLimits::of(gate.streams_bytes()));
        let runner = Runner::new(offline, 0).keeping(gate.keep_bytes() - streams_bytes as usize);
        let origin = Listed { build, reader: Arc::new(reader), readers, ahead: None, runner };
        Self::of(Box::new(origin), build.strategy.format, on_error, (stop, progress, gate))
    }

    /// A writer of what `origin` gives, in this format.
    pub(super) fn of(
        origin: Box<dyn Origin + 'a>,
        format: StorageFormat,
        on_error: OnError,
        (stop, progress, gate): (&'a AtomicBool, &'a dyn Progress, &'a Gate),
    ) -> Self {
        Self { origin, format, on_error, stop, progress, records: Records::new(format, gate), dictionary: None }
    }

    /// The same, whose records are compressed with `dictionary`, if there is one.
    pub(super) fn with_dictionary(self, dictionary: Option<&'a Dictionary>) -> Self {
        Self { dictionary, ..self }
    }

    /// The records that the first samples become, until there are `bytes_min` or no more. Samples that are skipped in a build are left out here.
    pub(super) fn first_records(&mut self, bytes_min: usize) -> Result<Vec<Box<[u8]>>> {
        let mut first: Vec<Box<[u8]>> = Vec::new();
        let mut bytes = 0;
        for number in 0..self.origin.len() {
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            Error::if_memory_was_refused()?;
            match self.process(number) {
                Err(error) if self.on_error == OnError::Fail || error.ends() => return Err(error),
                _ => {}
            }
            for record in self.records.iter() {
                bytes += record.len();
                first.push(record.into());
            }
            self.records.clear();
            if bytes >= bytes_min {
                break;
            }
        }
        if first.is_empty() {
            self.end_shard()?;
            first.extend(self.records.iter().map(Into::into));
            self.records.clear();
        }
        Ok(first)
    }

    /// Writes the samples `range` as shard number `shard`, with its index, and notes it in the journal.
    pub(super) fn write(
        &mut self,
        shard: usize,
        range: Range<usize>,
        journal: &Journal,
    ) -> std::result::Result<ShardDone, Stopped> {
        let path = journal.output().file(shard_name(shard));
        journal.check_ours()?;
        let written = self.read_and_write(journal.create(&path)?, &path, range)?;
        journal.check_ours()?;
        let done = self.name(shard, &path, written, journal);
        journal.check_still_ours(shard)?;
        let done = done?;
        journal.note(shard, &done)?;
        Ok(done)
    }

    /// Gives a shard and its tables their names.
    fn name(&self, shard: usize, path: &Path, written: Written, journal: &Journal) -> Result<ShardDone> {
        let Written { index, checksums, blocks, sizes, file, skipped, skipped_numbers, scans } = written;
        let write_table = |table: &Path, content: &[u8]| -> Result<String> {
            journal.write(table, content)?;
            Ok(checksum(content))
        };
        let index_xxh3 = write_table(&index_path(path), index.to_text().as_bytes())?;
        let crc_xxh3 = write_table(&crc_path(path), &checksums.to_bytes())?;
        let blocks = blocks.map(|blocks| write_table(&blocks_path(path), blocks.to_text().as_bytes()));
        let blocks_xxh3 = blocks.transpose()?;
        let sizes_xxh3 = sizes.map(|sizes| write_table(&sizes_path(path), &sizes.to_bytes())).transpose()?;
        file.upload.commit()?;
        Ok(ShardDone {
            entry: ShardEntry {
                file: shard_name(shard),
                samples: index.len() as u64 / scans.map_or(1, |scans| scans.groups),
                bytes: file.bytes,
                xxh3: digits(file.hash.digest()),
                index_xxh3,
                crc_xxh3,
                blocks_xxh3,
                sizes_xxh3,
                scans,
                skipped_numbers,
            },
            skipped,
            dictionary_xxh3: self.dictionary.map(|dictionary| checksum(dictionary.bytes())),
        })
    }

    /// Writes the samples `range`, which others read ahead where that is worth it.
    fn read_and_write(
        &mut self,
        upload: Box<dyn Upload>,
        path: &Path,
        range: Range<usize>,
    ) -> std::result::Result<Written, Stopped> {
        let Some(ahead) = self.origin.begin_shard(range.clone(), self.records.gate.keep_bytes() as u64) else {
            return self.write_file(upload, path, range);
        };
        let read = || ahead.samples.read_all();
        std::thread::scope(|scope| {
            let _stops = ahead.samples.stops();
            share(scope, ahead.readers, "read ahead", &read)?;
            self.write_file(upload, path, range)
        })
    }

    /// Writes the samples `range` to `upload`, which will be the shard at `path`.
    fn write_file(
        &mut self,
        upload: Box<dyn Upload>,
        path: &Path,
        range: Range<usize>,
    ) -> std::result::Result<Written, Stopped> {
        let write_failed = |source: io::Error| Error::io("write the shard", path)(source);
        let hashing = HashingUpload { upload, hash: Xxh3::new(), bytes: 0 };
        let compression = self.format.compression;
        let output = ShardOutput::new(BufWriter::with_capacity(1 << 20, hashing), compression).map_err(write_failed)?;
        let mut writer = Writer::new(output);
        let (mut index, mut checksums) = (Index::new(), Checksums::new());
        let mut by_record = CompressedRecords::new(compression, self.dictionary).map_err(write_failed)?;
        let (mut skipped, mut skipped_numbers) = (Vec::new(), Vec::new());
        let scans = self.format.progressive.then(|| self.scan_layout(range.clone()));
        let mut chunk = scans.map(Chunk::new);
        let last = range.end.saturating_sub(1);
        for number in range {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped::Elsewhere);
            }
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled.into());
            }
            Error::if_memory_was_refused()?;
            match (self.process(number), self.on_error) {
                (Ok(()), _) => {}
                (Err(error), on_error) if on_error == OnError::Fail || error.ends() => return Err(error.into()),
                (Err(error), _) => {
                    skipped.push(Skipped::one(self.origin.key(number), &error));
                    skipped_numbers.push(number as u64);
                }
            }
            if number == last {
                self.end_shard()?;
            }
            let mut append = |record: &[u8]| -> Result<()> {
                index.push(writer.write(record).map_err(|error| shard_error(error, path))?)?;
                checksums.push(writer.last_checksum());
                writer.output().end_record().map_err(write_failed)
            };
            if let Some(chunk) = &mut chunk {
                self.records.iter().for_each(|record| chunk.push(record));
                if chunk.is_full() || number == last {
                    chunk.records().try_for_each(&mut append)?;
                    chunk.clear();
                }
                self.records.held_bytes = chunk.bytes();
            } else {
                self.records.held_bytes = self.origin.held_bytes();
                for record in self.records.iter() {
                    append(match &mut by_record {
                        Some(records) => records.compress(record).map_err(|error| shard_error(error, path))?,
                        None => record,
                    })?;
                }
            }
            self.records.clear();
            self.progress.advance(1);
        }
        let output = writer.finish().map_err(|error| shard_error(error, path))?;
        let (buffered, blocks) = output.finish().map_err(write_failed)?;
        let file = buffered.into_inner().map_err(|error| write_failed(error.into_error()))?;
        let sizes = by_record.map(|records| records.sizes);
        Ok(Written { index, checksums, blocks, sizes, file, skipped, skipped_numbers, scans })
    }

    /// Adds what the steps of entire shards still hold to the records of the last sample.
    fn end_shard(&mut self) -> Result<()> {
        let done = self.origin.end_shard(&mut self.records);
        let failed = self.records.failure.take();
        done.and(failed.map_or(Ok(()), |error| Err(error.into())))
    }

    /// The layout of the progressive records of the samples `range`.
    fn scan_layout(&self, range: Range<usize>) -> ScanLayout {
        ScanLayout::of(range.len() as u64, range.map(|number| self.origin.bytes(number)).sum())
    }

    /// Makes sample number `number`; its records are in `self.records` then.
    fn process(&mut self, number: usize) -> Result<()> {
        self.records.clear();
        let done = self.origin.make(number, &mut self.records);
        let failed = self.records.failure.take();
        let result = done.and(failed.map_or(Ok(()), |error| Err(error.into())));
        if result.is_err() {
            self.records.clear();
        }
        result
    }
}

/// A shard that is complete except for its name, and its tables.
struct Written {
    index: Index,
    checksums: Checksums,
    blocks: Option<Blocks>,
    sizes: Option<Sizes>,
    file: HashingUpload,
    skipped: Vec<Skipped>,
    skipped_numbers: Vec<u64>,
    /// The layout of the records, if they are progressive.
    scans: Option<ScanLayout>,
}

/// Compresses records, each by itself, and records their lengths.
struct CompressedRecords {
    compressor: RecordCompressor,
    sizes: Sizes,
}

impl CompressedRecords {
    /// `None` where that is not what is asked for.
    fn new(compression: Option<ShardCompression>, dictionary: Option<&Dictionary>) -> io::Result<Option<Self>> {
        let Some(compression) = compression.filter(|compression| compression.scope == Scope::Record) else {
            return Ok(None);
        };
        Ok(Some(Self { compressor: RecordCompressor::new(compression, dictionary)?, sizes: Sizes::new() }))
    }

    fn compress(&mut self, record: &[u8]) -> std::result::Result<&[u8], forebay_record::Error> {
        self.sizes.push(record.len())?;
        self.compressor.compress(record)
    }
}

/// Where the bytes of a shard go: as they are, or compressed together.
enum ShardOutput<W: Write> {
    Plain(W),
    Compressed(Box<ShardCompressor<W>>),
}

impl<W: Write> ShardOutput<W> {
    fn new(output: W, compression: Option<ShardCompression>) -> io::Result<Self> {
        Ok(match compression.filter(|compression| compression.scope != Scope::Record) {
            None => Self::Plain(output),
            Some(compression) => Self::Compressed(Box::new(ShardCompressor::new(output, compression)?)),
        })
    }

    /// Says that a record ends here.
    fn end_record(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Compressed(compressor) => compressor.end_record(),
        }
    }

    fn finish(self) -> io::Result<(W, Option<Blocks>)> {
        Ok(match self {
            Self::Plain(output) => (output, None),
            Self::Compressed(compressor) => compressor.finish().map(|(output, blocks)| (output, Some(blocks)))?,
        })
    }
}

impl<W: Write> Write for ShardOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(output) => output.write(bytes),
            Self::Compressed(compressor) => compressor.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(output) => output.flush(),
            Self::Compressed(compressor) => compressor.flush(),
        }
    }
}

/// An error of writing a record is an error of its file.
fn shard_error(error: forebay_record::Error, path: &Path) -> Error {
    match error {
        forebay_record::Error::Io { source, .. } => Error::io("write the shard", path)(source),
        error => error.into(),
    }
}

/// The records that one sample became, one after another in one buffer.
pub(super) struct Records<'a> {
    format: StorageFormat,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    failure: Option<forebay_pipeline::Error>,
    gate: &'a Gate,
    pass: Option<Pass<'a>>,
    /// What the sample takes as it was read, and what the steps take.
    input_bytes: u64,
    work_bytes: u64,
    /// What is held of samples before it.
    held_bytes: u64,
}

impl<'a> Records<'a> {
    fn new(format: StorageFormat, gate: &'a Gate) -> Self {
        let (bytes, ends) = (Vec::new(), Vec::new());
        Self { format, bytes, ends, failure: None, gate, pass: None, input_bytes: 0, work_bytes: 0, held_bytes: 0 }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > self.gate.keep_bytes() {
            self.bytes = Vec::new();
        }
        self.ends.clear();
        self.failure = None;
        self.pass = None;
    }

    /// Waits until the sample `key`, of `input_bytes`, may be read.
    pub(super) fn begin(&mut self, key: &str, input_bytes: u64) -> std::result::Result<(), forebay_pipeline::Error> {
        (self.input_bytes, self.work_bytes) = (input_bytes, 0);
        self.wait().map_err(|source| failed(key, "read", source))
    }

    fn wait(&mut self) -> std::result::Result<(), StepError> {
        self.gate.wait(self.taken_bytes(self.bytes.len()), &mut self.pass)
    }

    /// What is taken in all, where records take so many bytes.
    fn taken_bytes(&self, records_bytes: usize) -> u64 {
        let taken = [self.input_bytes, self.work_bytes, self.held_bytes, records_bytes as u64];
        taken.into_iter().fold(0, u64::saturating_add)
    }

    /// Adds a sample's record.
    fn add(&mut self, sample: &SampleView<'_>) -> std::result::Result<(), forebay_pipeline::Error> {
        let bytes: usize = sample.fields.iter().map(|(_, value)| value.bytes()).sum();
        // A tensor that is encoded takes up to three more copies: filtered once, filtered again, and compressed.
        // An image that becomes progressive takes its coefficients, less than thirty times its bytes, and two more copies.
        let encoding_bytes = match (self.format.tensor_encoding, self.format.progressive) {
            (Some(_), _) => bytes.saturating_mul(3),
            (None, true) => bytes.saturating_mul(32),
            (None, false) => 0,
        };
        let taken_bytes = self.taken_bytes((self.bytes.len() + bytes).saturating_add(encoding_bytes));
        let fits = self.gate.wait(taken_bytes, &mut self.pass);
        let fits = fits.and_then(|()| Ok(memory::reserve(&mut self.bytes, bytes)?));
        fits.map_err(|source| failed(sample.key, "write", source))?;
        if self.format.progressive {
            return encode_scan_groups(sample, &mut self.bytes, &mut self.ends);
        }
        encode_sample(sample, &self.format, &mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl Sink for Records<'_> {
    fn reserve(&mut self, bytes: usize) -> std::result::Result<(), StepError> {
        self.work_bytes = bytes as u64;
        self.wait()
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        if let Err(error) = self.add(&sample) {
            self.failure = Some(error);
        }
    }
}

pub(super) fn failed(key: &str, step: &str, source: StepError) -> forebay_pipeline::Error {
    forebay_pipeline::Error::Step { key: key.to_owned(), step: step.to_owned(), source: Box::new(source) }
}

/// A file whose checksum is computed as it is written.
struct HashingUpload {
    upload: Box<dyn Upload>,
    hash: Xxh3,
    bytes: u64,
}

impl Write for HashingUpload {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.upload.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}
