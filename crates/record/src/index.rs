//! The index of a shard: where each record is.
//!
//! A text file named as the shard with [`INDEX_SUFFIX`], one line per record, in order:
//!
//! ```text
//! 0 197
//! 197 218
//! ```
//!
//! The offset of the record's frame in the shard, a space, the length of the whole frame. DALI (`tfrecord2idx`) and the
//! `tfrecord` package for Python write and read the same, so an index made by either serves the other.

use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use crate::error::{Error, ErrorLocation, FormatFault, FramePart, IndexFault, Result, UsageFault};
use crate::offsets::Offsets;
use crate::tfrecord::{
    Compression, DamageReport, FRAME_OVERHEAD_BYTES, HEADER_BYTES, Location, OnDamage, Options, Reader, split_header,
};

/// What the name of an index adds to its shard's: `shard-0.tfrecord.idx`.
pub const INDEX_SUFFIX: &str = ".idx";

/// Where each record of a shard is: in order, without overlap.
///
/// Records nearly always follow each other without a gap, and then an index takes 4 bytes for each in memory, otherwise 8; twice as many in
/// shards of 4 GiB and more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    /// Where each record's frame ends.
    ends: Offsets,
    /// Where each begins; `None` as long as that is where the one before it ends.
    starts: Option<Offsets>,
}

impl Index {
    /// An index of no records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next record.
    pub fn push(&mut self, location: Location) -> Result<()> {
        self.check_next(location).map_err(|_| {
            let Location { offset, length } = location;
            Error::usage(UsageFault::LocationOrder { offset, length, end: self.end() })
        })?;
        self.add(location);
        Ok(())
    }

    /// Adds a record that was checked to come next.
    fn add(&mut self, location: Location) {
        if self.starts.is_none() && location.offset != self.end() {
            let mut starts = Offsets::with_capacity(self.len() + 1);
            self.iter().for_each(|entry| starts.push(entry.offset));
            self.starts = Some(starts);
        }
        if let Some(starts) = &mut self.starts {
            starts.push(location.offset);
        }
        self.ends.push(location.end());
    }

    /// The index in `text`; `name` is the index's own name, for errors.
    pub fn parse(text: &[u8], name: &str) -> Result<Self> {
        let records = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
        // The shortest line is `0 16`: those that are none get nothing reserved.
        let mut index = Self { ends: Offsets::with_capacity(records.min(text.len() / 4)), starts: None };
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            parse_line(line).and_then(|location| index.check_next(location).map(|()| location)).map_or_else(
                |fault| {
                    let location = ErrorLocation { shard: Some(name.into()), ..ErrorLocation::default() };
                    let fault = FormatFault::Index { line: number as u64 + 1, fault };
                    Err(Error::Format { location, fault })
                },
                |location| {
                    index.add(location);
                    Ok(())
                },
            )?;
        }
        index.ends.shrink_to_fit();
        Ok(index)
    }

    /// Makes the index of a shard by reading it. With [`crate::OnDamage::Skip`], damaged records are left out.
    ///
    /// A compressed shard is refused: its records cannot be reached by an offset.
    pub fn scan<R: Read>(input: R, shard: &str, options: Options) -> Result<Self> {
        let reader = Reader::new(input, shard, options)?;
        if let Some(compression) = reader.compression() {
            return Err(Error::Unsupported {
                location: ErrorLocation { shard: Some(shard.into()), ..ErrorLocation::default() },
                what: "an index of a compressed shard",
                found: compression.into(),
                hint: "read it from start to end, or store it uncompressed",
            });
        }
        let mut index = Self::new();
        for record in reader {
            index.add(record?.location);
        }
        Ok(index)
    }

    /// Makes the index of an uncompressed shard by its frames' headers alone: records are skipped, not read, and their
    /// checksums are left to whoever reads them.
    pub fn scan_headers<R: Read + Seek>(mut input: R, shard: &str) -> Result<Self> {
        let location = |offset| ErrorLocation { shard: Some(shard.into()), record: None, offset: Some(offset) };
        let failed = |offset, source| Error::Io { action: "read", location: location(offset), source };
        let end = input.seek(SeekFrom::End(0)).map_err(|source| failed(0, source))?;
        let mut index = Self::new();
        let mut offset = 0;
        while offset < end {
            input.seek(SeekFrom::Start(offset)).map_err(|source| failed(offset, source))?;
            let format = |fault| Error::Format {
                location: ErrorLocation { record: Some(index.len() as u64), ..location(offset) },
                fault,
            };
            let truncated =
                |part, expected| format(FormatFault::Truncated { part, expected, found: end.saturating_sub(offset) });
            if end - offset < HEADER_BYTES as u64 {
                return Err(truncated(FramePart::Header, HEADER_BYTES as u64));
            }
            let mut header = [0; HEADER_BYTES];
            input.read_exact(&mut header).map_err(|source| failed(offset, source))?;
            let (length, _) = split_header(&header).map_err(format)?;
            let length = length.saturating_add(FRAME_OVERHEAD_BYTES);
            if length > end - offset {
                return Err(truncated(FramePart::Payload, length));
            }
            index.push(Location { offset, length })?;
            offset += length;
        }
        Ok(index)
    }

    /// Makes the index of an uncompressed shard that may be damaged, by its frames' headers: where one is damaged, reading goes
    /// on at the next that is not. What was passed over is in the report; the records' own checksums are left to whoever reads
    /// them.
    pub fn salvage<R: Read>(input: R, shard: &str) -> Result<(Self, DamageReport)> {
        let options = Options {
            verify_checksums: false,
            on_damage: OnDamage::Skip,
            max_resync_bytes: u64::MAX,
            compression: Compression::None,
            ..Options::default()
        };
        let mut reader = Reader::new(input, shard, options)?;
        let mut index = Self::new();
        while let Some(record) = reader.next_record()? {
            index.add(record.location);
        }
        Ok((index, reader.into_report()))
    }

    /// Without the records that a shard of `shard_bytes` does not have; how many that are.
    pub fn cut_to(&mut self, shard_bytes: u64) -> u64 {
        let within = self.ends.partition_point(|end| end <= shard_bytes);
        let lost = (self.len() - within) as u64;
        self.ends.truncate(within);
        if let Some(starts) = &mut self.starts {
            starts.truncate(within);
        }
        lost
    }

    /// The index as text.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.len() * 16);
        for Location { offset, length } in self.iter() {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "{offset} {length}");
        }
        text
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where record `number` is.
    pub fn get(&self, number: usize) -> Option<Location> {
        (number < self.len()).then(|| self.location(number))
    }

    /// The length of record `number`, without its frame.
    pub fn payload_length(&self, number: usize) -> Option<u64> {
        self.get(number).map(Location::payload_length)
    }

    /// Where the records are, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Location> + Clone {
        self.range(0..self.len())
    }

    /// Where the records `numbers` are, in order, as far as there are so many.
    pub fn range(&self, numbers: Range<usize>) -> impl ExactSizeIterator<Item = Location> + Clone {
        (numbers.start.min(self.len())..numbers.end.min(self.len())).map(|number| self.location(number))
    }

    /// Where record `number` is, which there is.
    fn location(&self, number: usize) -> Location {
        let offset = match &self.starts {
            Some(starts) => starts.at(number),
            None => number.checked_sub(1).map_or(0, |before| self.ends.at(before)),
        };
        Location { offset, length: self.ends.at(number) - offset }
    }

    /// The number of the first record that begins after `offset`; [`Index::len`] if none does.
    pub fn first_after(&self, offset: u64) -> usize {
        match &self.starts {
            Some(starts) => starts.partition_point(|start| start <= offset),
            // Each begins where the one before ends; and the first at 0.
            None => (1 + self.ends.partition_point(|end| end <= offset)).min(self.len()),
        }
    }

    /// The number of the record at `location`.
    pub fn find(&self, location: Location) -> Option<usize> {
        let number = self.ends.partition_point(|end| end < location.end());
        (self.get(number) == Some(location)).then_some(number)
    }

    /// Where the last record's frame ends.
    pub fn end(&self) -> u64 {
        self.ends.last().unwrap_or(0)
    }

    /// Checks that a shard of `shard_bytes` can hold every record. Bytes that no record covers are no error here, because an
    /// index may leave out damaged records on purpose; see [`Index::gaps`].
    pub fn check_within(&self, shard_bytes: u64, shard: &str) -> Result<()> {
        if self.end() <= shard_bytes {
            return Ok(());
        }
        let record = self.ends.partition_point(|end| end <= shard_bytes);
        let offset = self.get(record).map(|entry| entry.offset);
        Err(Error::Format {
            location: ErrorLocation { shard: Some(shard.into()), record: Some(record as u64), offset },
            fault: FormatFault::IndexBeyondShard { expected: self.end(), found: shard_bytes },
        })
    }

    /// The ranges of a shard of `shard_bytes` that no record covers: before, between and after them.
    pub fn gaps(&self, shard_bytes: u64) -> impl Iterator<Item = Range<u64>> {
        let starts = std::iter::once(0).chain(self.ends.iter());
        let ends = self.iter().map(|entry| entry.offset).chain(std::iter::once(shard_bytes));
        starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| start..end)
    }

    fn check_next(&self, location: Location) -> std::result::Result<(), IndexFault> {
        let end = self.end();
        if location.length < FRAME_OVERHEAD_BYTES {
            return Err(IndexFault::TooShort { found: location.length });
        }
        if location.offset.checked_add(location.length).is_none() {
            return Err(IndexFault::TooLarge);
        }
        if location.offset < end {
            return Err(IndexFault::Overlap { expected: end, found: location.offset });
        }
        Ok(())
    }
}

fn parse_line(line: &[u8]) -> std::result::Result<Location, IndexFault> {
    let (offset, rest) = parse_number(line)?;
    let separated = rest.trim_ascii_start();
    if separated.len() == rest.len() {
        return Err(IndexFault::NotTwoNumbers);
    }
    match parse_number(separated)? {
        (length, []) => Ok(Location { offset, length }),
        _ => Err(IndexFault::NotTwoNumbers),
    }
}

/// The decimal number at the start of `text`, and what follows it.
fn parse_number(text: &[u8]) -> std::result::Result<(u64, &[u8]), IndexFault> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err(IndexFault::NotTwoNumbers);
    }
    let (number, rest) = text.split_at(digits);
    number
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .map(|value| (value, rest))
        .ok_or(IndexFault::TooLarge)
}
