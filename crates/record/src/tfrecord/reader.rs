//! Reading a shard from start to end.

use std::io::{self, Read};

use bytes::Bytes;

use crate::error::{Error, ErrorLocation, FormatFault, FramePart, Result};
use crate::index::Index;
use crate::tfrecord::damage::{Damage, DamageReport};
use crate::tfrecord::input::{Compression, Input};
use crate::tfrecord::window::Window;
use crate::tfrecord::{
    FOOTER_BYTES, FRAME_OVERHEAD_BYTES, HEADER_BYTES, Location, check_header, check_payload, stated_length,
};

/// What to do about a damaged record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum OnDamage {
    /// Return the error and end.
    #[default]
    Fail,
    /// Pass over it, add it to the [`DamageReport`], and go on.
    Skip,
}

/// How to read a shard.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether to verify the payloads' checksums. The lengths' are always verified. Default: yes.
    pub verify_checksums: bool,
    /// The longest record. Default: 1 GiB.
    pub max_record_bytes: u64,
    /// What to do about a damaged record. Default: fail. Errors of the reader underneath always end the reading.
    pub on_damage: OnDamage,
    /// The most records that [`OnDamage::Skip`] passes over before it fails after all. Default: no limit.
    pub max_skipped_records: u64,
    /// How far [`OnDamage::Skip`] looks for the next frame after a damaged length, where there is no index. Default: 256 MiB.
    pub max_resync_bytes: u64,
    /// How the shard is compressed. Default: detected.
    pub compression: Compression,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            verify_checksums: true,
            max_record_bytes: 1 << 30,
            on_damage: OnDamage::Fail,
            max_skipped_records: u64::MAX,
            max_resync_bytes: 256 << 20,
            compression: Compression::Detect,
        }
    }
}

/// A record of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The payload. A slice of what was read ahead, which it keeps alive.
    pub data: Bytes,
    /// Its number in the shard, from 0. After a damaged length, and without an index, the records that were lost there count
    /// as one.
    pub number: u64,
    /// Where its frame is. In a compressed shard, in what it inflates to.
    pub location: Location,
}

/// Reads the records of a shard in order, inflating it where it is compressed.
///
/// After the first error it ends: every later call of `next` returns `None`.
///
/// With [`OnDamage::Skip`], a damaged payload is passed over by its length. A damaged length says nothing about where the next
/// frame begins: with an index ([`Reader::with_index`]) reading goes on at the next record in it; without one, at the next
/// offset where a length (within the limit) and its checksum agree. In a shard whose records are themselves TFRecord data that
/// may be a frame inside a record, so such a shard needs the index.
pub struct Reader<R: Read> {
    window: Window<R>,
    shard: Box<str>,
    options: Options,
    index: Option<Index>,
    number: u64,
    done: bool,
    report: DamageReport,
}

/// How to go on after an error.
enum Recovery {
    /// The frame's length is known: pass over it.
    PassOver(u64),
    /// Look for the next frame.
    Resynchronize,
    /// There is no more, and so many records are known to be lost.
    Stop { lost: u64 },
}

impl<R: Read> Reader<R> {
    /// A reader of the shard called `shard` in errors. Reads its first 12 bytes to detect its compression.
    pub fn new(input: R, shard: &str, options: Options) -> Result<Self> {
        let location = || ErrorLocation { shard: Some(shard.into()), ..ErrorLocation::default() };
        let input = Input::open(input, options.compression).map_err(|source| Error::Io {
            location: location(),
            action: "read",
            source,
        })?;
        let window = Window::new(input);
        let report = DamageReport::default();
        Ok(Self { window, shard: shard.into(), options, index: None, number: 0, done: false, report })
    }

    /// Uses the shard's index to find the next record after a damaged length.
    #[must_use]
    pub fn with_index(mut self, index: Index) -> Self {
        self.index = Some(index);
        self
    }

    /// What the shard's compression is called, such as `GZIP`, if it is compressed.
    pub fn compression(&self) -> Option<&'static str> {
        self.window.compression()
    }

    /// What has been passed over so far.
    pub fn report(&self) -> &DamageReport {
        &self.report
    }

    /// What has been passed over.
    pub fn into_report(self) -> DamageReport {
        self.report
    }

    /// The next record, or `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record>> {
        while !self.done {
            match self.read_frame() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) => self.done = true,
                Err((error, recovery)) => {
                    if self.options.on_damage == OnDamage::Fail || matches!(error, Error::Io { .. }) {
                        self.done = true;
                        return Err(error);
                    }
                    if let Err(error) = self.recover(error, &recovery) {
                        self.done = true;
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    fn read_frame(&mut self) -> std::result::Result<Option<Record>, (Error, Recovery)> {
        let held = self.fill(HEADER_BYTES)?;
        if held == 0 {
            return match self.window.take_fault() {
                None => Ok(None),
                // Whatever follows the end of a compressed stream, the records before it are all there.
                Some(fault @ FormatFault::TrailingGarbage { .. }) => {
                    Err((self.format(fault), Recovery::Stop { lost: 0 }))
                }
                Some(fault) => Err((self.format(fault), Recovery::Stop { lost: 1 })),
            };
        }
        let Some(header) = self.window.bytes().first_chunk::<HEADER_BYTES>() else {
            return Err(self.cut(FramePart::Header, HEADER_BYTES as u64, held as u64));
        };
        let length = check_header(header).map_err(|fault| (self.format(fault), Recovery::Resynchronize))?;
        let limit = self.options.max_record_bytes.min(isize::MAX as u64 - FRAME_OVERHEAD_BYTES);
        if length > limit {
            let error = Error::Limit {
                location: self.location(),
                what: "record length",
                limit,
                found: length,
                hint: "raise `max_record_bytes` if the record is meant to be this long",
            };
            return Err((error, Recovery::PassOver(length.saturating_add(FRAME_OVERHEAD_BYTES))));
        }
        let frame_length = length + FRAME_OVERHEAD_BYTES;
        let held = self.fill(frame_length as usize)? as u64;
        if held < frame_length {
            let found = held - HEADER_BYTES as u64;
            return Err(match found.checked_sub(length) {
                Some(found) => self.cut(FramePart::Footer, FOOTER_BYTES as u64, found),
                None => self.cut(FramePart::Payload, length, found),
            });
        }
        let payload = HEADER_BYTES..HEADER_BYTES + length as usize;
        if self.options.verify_checksums {
            let bytes = self.window.bytes();
            let footer = *bytes[payload.end..].first_chunk().expect("the window holds the whole frame");
            check_payload(&bytes[payload.clone()], footer)
                .map_err(|fault| (self.format(fault), Recovery::PassOver(frame_length)))?;
        }
        let location = Location { offset: self.window.offset(), length: frame_length };
        let data = self.window.take(frame_length as usize).slice(payload);
        let number = self.number;
        self.number += 1;
        Ok(Some(Record { data, number, location }))
    }

    /// Goes on after `error`, and adds it to the report.
    fn recover(&mut self, error: Error, recovery: &Recovery) -> Result<()> {
        let number = self.number;
        let bytes = match recovery {
            Recovery::PassOver(frame_length) => {
                self.number += 1;
                self.discard(*frame_length)?
            }
            Recovery::Resynchronize => self.resynchronize()?,
            Recovery::Stop { lost } => {
                self.done = true;
                self.number = self.index.as_ref().map_or(number + lost, |index| index.len() as u64);
                self.discard(u64::MAX)?
            }
        };
        // Garbage between indexed records, or after the last, is bytes but no record.
        let records = self.number.saturating_sub(number);
        self.report.add(Damage { error, records, bytes });
        if self.report.records() > self.options.max_skipped_records {
            return Err(Error::Limit {
                location: self.location(),
                what: "damaged records passed over",
                limit: self.options.max_skipped_records,
                found: self.report.records(),
                hint: "the shard is too damaged to go on with; restore it",
            });
        }
        Ok(())
    }

    /// Goes to the next frame after a damaged length; returns how many bytes that passed over.
    fn resynchronize(&mut self) -> Result<u64> {
        let here = self.window.offset();
        let Some(index) = &self.index else {
            return self.scan();
        };
        let next = index.first_after(here);
        self.number = self.number.max(next as u64);
        match index.get(next) {
            Some(entry) => self.discard(entry.offset - here),
            None => self.discard(u64::MAX),
        }
    }

    /// Looks for the next offset where a length and its checksum agree.
    fn scan(&mut self) -> Result<u64> {
        let mut scanned = 0;
        self.number += 1;
        loop {
            let held = self.window.fill(1 + HEADER_BYTES).map_err(|source| self.read_error(source))?;
            if held <= HEADER_BYTES {
                return Ok(scanned + self.discard(u64::MAX)?);
            }
            let limit = self.options.max_record_bytes;
            let found = self.window.bytes()[1..].windows(HEADER_BYTES).position(|bytes| {
                // The limit first: it is cheap, and few offsets pass it.
                bytes.first_chunk().is_some_and(|header| stated_length(header) <= limit && check_header(header).is_ok())
            });
            if let Some(position) = found {
                return Ok(scanned + self.discard(position as u64 + 1)?);
            }
            scanned += self.discard((held - HEADER_BYTES) as u64)?;
            if scanned > self.options.max_resync_bytes {
                return Err(Error::Limit {
                    location: self.location(),
                    what: "bytes searched for the next frame",
                    limit: self.options.max_resync_bytes,
                    found: scanned,
                    hint: "read the shard with its index, or raise `max_resync_bytes`",
                });
            }
        }
    }

    /// The stream ends within a part of the frame: because the shard does, or because its compression is damaged there.
    fn cut(&mut self, part: FramePart, expected: u64, found: u64) -> (Error, Recovery) {
        let truncated = FormatFault::Truncated { part, expected, found };
        let fault = self.window.take_fault().unwrap_or(truncated);
        (self.format(fault), Recovery::Stop { lost: 1 })
    }

    fn fill(&mut self, wanted: usize) -> std::result::Result<usize, (Error, Recovery)> {
        self.window.fill(wanted).map_err(|source| (self.read_error(source), Recovery::Stop { lost: 1 }))
    }

    fn discard(&mut self, count: u64) -> Result<u64> {
        self.window.discard(count).map_err(|source| self.read_error(source))
    }

    fn location(&self) -> ErrorLocation {
        ErrorLocation { shard: Some(self.shard.clone()), record: Some(self.number), offset: Some(self.window.offset()) }
    }

    fn format(&self, fault: FormatFault) -> Error {
        Error::Format { location: self.location(), fault }
    }

    fn read_error(&self, source: io::Error) -> Error {
        Error::Io { location: self.location(), action: "read", source }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_record().transpose()
    }
}

impl<R: Read> std::iter::FusedIterator for Reader<R> {}
