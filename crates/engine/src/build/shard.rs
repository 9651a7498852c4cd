//! Writing one shard.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_codec::TensorSpec;
use forebay_codec::image::Encoding;
use forebay_pipeline::{Draw, Runner, SampleView, Sink, encode_sample};
use forebay_record::{Index, Writer};
use xxhash_rust::xxh3::Xxh3;

use super::Build;
use super::journal::{Journal, ShardDone, rename, write_whole};
use crate::data::{ShardEntry, Skipped, SourceReader, index_path};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

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

/// Writes shards, one after another.
pub(super) struct ShardWriter<'a> {
    build: &'a Build,
    reader: SourceReader,
    runner: Runner,
    on_error: OnError,
    stop: &'a AtomicBool,
    progress: &'a dyn Progress,
    records: Records,
}

impl<'a> ShardWriter<'a> {
    pub(super) fn new(build: &'a Build, on_error: OnError, stop: &'a AtomicBool, progress: &'a dyn Progress) -> Self {
        let offline = build.strategy.offline(&build.pipeline);
        let encoding = build.strategy.encoding.map(|encoding| encoding.0);
        Self {
            build,
            reader: SourceReader::new(Arc::clone(&build.listing), Arc::clone(&build.storage)),
            runner: Runner::new(offline, 0),
            on_error,
            stop,
            progress,
            records: Records { encoding, ..Records::default() },
        }
    }

    /// Writes the samples `range` as shard number `shard`, with its index, and notes it in the journal.
    pub(super) fn write(
        &mut self,
        shard: usize,
        range: Range<usize>,
        journal: &Journal,
    ) -> std::result::Result<ShardDone, Stopped> {
        let path = journal.shard_path(shard);
        let temporary = path.with_extension("tfrecord.partial");
        let written = self.write_file(&temporary, range);
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        let (index, file, skipped) = written?;
        write_whole(&index_path(&path), index.to_text().as_bytes())?;
        rename(&temporary, &path)?;
        let done = ShardDone {
            entry: ShardEntry {
                file: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
                samples: index.len() as u64,
                bytes: file.bytes,
                xxh3: format!("{:016x}", file.hash.digest()),
            },
            skipped,
        };
        journal.note(shard, &done)?;
        Ok(done)
    }

    fn write_file(
        &mut self,
        path: &Path,
        range: Range<usize>,
    ) -> std::result::Result<(Index, HashingFile, Vec<Skipped>), Stopped> {
        let write_failed = |source: io::Error| Error::io("write the shard", path)(source);
        let file = fs::File::create(path).map_err(Error::io("create the shard", path))?;
        let hashing = HashingFile { file, hash: Xxh3::new(), bytes: 0 };
        let mut writer = Writer::new(BufWriter::with_capacity(1 << 20, hashing));
        let mut index = Index::new();
        let mut skipped = Vec::new();
        for number in range {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Stopped::Elsewhere);
            }
            if self.progress.is_cancelled() {
                return Err(Error::Cancelled.into());
            }
            match (self.process(number), self.on_error) {
                (Ok(()), _) => {}
                (Err(error), OnError::Fail) => return Err(error.into()),
                (Err(error), OnError::Skip) => {
                    let key = self.build.listing.entries()[number].key.to_string();
                    skipped.push(Skipped { key, reason: error.to_string() });
                }
            }
            for record in self.records.iter() {
                index.push(writer.write(record).map_err(|error| shard_error(error, path))?)?;
            }
            self.progress.advance(1);
        }
        let buffered = writer.finish().map_err(|error| shard_error(error, path))?;
        let hashing = buffered.into_inner().map_err(|error| write_failed(error.into_error()))?;
        hashing.file.sync_data().map_err(write_failed)?;
        Ok((index, hashing, skipped))
    }

    /// Does the offline steps to sample number `number`; its records are in `self.records` then.
    fn process(&mut self, number: usize) -> Result<()> {
        self.records.clear();
        let sample = self.reader.sample(number)?;
        // Offline steps are not random: the draw does not matter.
        let done = self.runner.run(&sample, Draw::default(), &mut (), &mut self.records);
        let failed = self.records.failure.take();
        let result = done.and(failed.map_or(Ok(()), Err));
        if result.is_err() {
            self.records.clear();
        }
        Ok(result?)
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
#[derive(Default)]
struct Records {
    encoding: Option<Encoding>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    failure: Option<forebay_pipeline::Error>,
}

impl Records {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.failure = None;
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl Sink for Records {
    fn place(&mut self, _field: &str, _spec: &TensorSpec) -> Option<&mut [u8]> {
        None
    }

    fn accept(&mut self, sample: SampleView<'_>) {
        match encode_sample(&sample, self.encoding, &mut self.bytes) {
            Ok(()) => self.ends.push(self.bytes.len()),
            Err(error) => self.failure = Some(error),
        }
    }
}

/// A file whose checksum is taken as it is written.
struct HashingFile {
    file: fs::File,
    hash: Xxh3,
    bytes: u64,
}

impl Write for HashingFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
