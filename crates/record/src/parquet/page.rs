//! Pages: where those of a chunk lie, and what they inflate to.

use bytes::Bytes;

use super::metadata::Chunk;
use super::schema::Column;
use super::thrift::{Kind, Reader};
use super::{FORMAT, Fault, Input, PAGE_BYTES_MAX, Parsed, damaged, reserved};
use crate::compression::{Framing, inflate_framed};

/// What is read of a page's header at first, and how long one may be: some writers put the smallest and the largest value there.
const HEADER_BYTES: usize = 256;
const HEADER_BYTES_MAX: usize = 16 << 20;

/// The pages of a chunk.
#[derive(Debug, Clone, Default)]
pub struct ColumnPages {
    /// The values that others name by their number.
    pub dictionary: Option<PageEntry>,
    /// The pages with values, in order.
    pub data: Vec<PageEntry>,
}

/// Where a page lies, and what its header says.
#[derive(Debug, Clone)]
pub struct PageEntry {
    /// Where its content begins, behind its header.
    pub offset: u64,
    /// The number of its first value in the chunk; of a column without lists, of its first row in the row group.
    pub first_value: u64,
    /// How many values it has, those that are not there included.
    pub values: u64,
    pub(super) encoding: i64,
    kind: PageKind,
    compressed: u64,
    inflated: u64,
    checksum: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageKind {
    Dictionary,
    /// Levels and values are compressed together, and levels say how long they are.
    First,
    /// Levels are not compressed and of these lengths: of repetition, and of definition. Whether values are.
    Second(u64, u64, bool),
}

/// A page, inflated.
pub(super) struct Page {
    pub(super) body: Bytes,
    /// Where the levels of repetition and of definition are, and where values begin; levels of the first version say that themselves.
    pub(super) levels: Option<(u64, u64)>,
}

impl ColumnPages {
    /// Finds the pages of `column`'s chunk by their headers.
    pub fn scan<I: Input>(input: &I, column: &Column, chunk: &Chunk, shard: &str) -> Result<Self, I::Error> {
        let mut pages = Self::default();
        let (mut at, end) = (chunk.offset, chunk.offset + chunk.length);
        let mut values = 0;
        while at < end && values < chunk.values {
            let wrong = |fault: Fault| fault.at(FORMAT, shard, at, &column.name);
            let (entry, header_bytes) = read_header(input, at..end, shard, &column.name)?;
            let next = at + header_bytes + entry.compressed;
            if next > end {
                return Err(wrong(Fault::Cut).into());
            }
            if let Some(mut entry) = entry.page {
                if entry.inflated.max(entry.compressed) > PAGE_BYTES_MAX {
                    let found = entry.inflated.max(entry.compressed);
                    return Err(wrong(Fault::Limit("the size of a page", found, PAGE_BYTES_MAX)).into());
                }
                (entry.offset, entry.first_value) = (at + header_bytes, values);
                if entry.values > chunk.values {
                    let problem = format!("a page has {} values of {}", entry.values, chunk.values);
                    return Err(wrong(Fault::Damaged(problem)).into());
                }
                if entry.is_dictionary() {
                    if pages.dictionary.is_some() || !pages.data.is_empty() {
                        return Err(wrong(Fault::Damaged("a dictionary comes behind other pages".to_owned())).into());
                    }
                    pages.dictionary = Some(entry);
                } else {
                    values += entry.values;
                    if values > chunk.values {
                        let problem = format!("its pages have more than the {} values that it has", chunk.values);
                        return Err(wrong(Fault::Damaged(problem)).into());
                    }
                    pages.data.push(entry);
                }
            }
            at = next;
        }
        if values != chunk.values {
            let problem = format!("its pages have {values} values of {}", chunk.values);
            return Err(Fault::Damaged(problem).at(FORMAT, shard, end, &column.name).into());
        }
        Ok(pages)
    }
}

/// A page's header: how many bytes follow it, and what it is of, if that is of use.
struct Header {
    compressed: u64,
    page: Option<PageEntry>,
}

/// The header at the start of `range`, and how long it is.
fn read_header<I: Input>(
    input: &I,
    range: std::ops::Range<u64>,
    shard: &str,
    column: &str,
) -> Result<(Header, u64), I::Error> {
    let mut length = HEADER_BYTES;
    loop {
        let held = ((range.end - range.start) as usize).min(length);
        let bytes = input.read(range.start, held)?;
        match Header::parse(&bytes) {
            Ok((header, read)) => return Ok((header, read as u64)),
            Err(Fault::Cut) if held == length && length < HEADER_BYTES_MAX => length *= 16,
            Err(fault) => return Err(fault.at(FORMAT, shard, range.start, column).into()),
        }
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Parsed<(Self, usize)> {
        let mut reader = Reader::new(bytes);
        let (mut kind, mut inflated, mut compressed, mut checksum) = (None, None, None, None);
        // Values, encoding, and what else the header of its kind says.
        let mut about: Option<(u64, i64, PageKind)> = None;
        reader.fields(|reader, number, of| {
            match (number, of) {
                (1, Kind::Int) => kind = Some(reader.int()?),
                (2, Kind::Int) => inflated = Some(reader.count()?),
                (3, Kind::Int) => compressed = Some(reader.count()?),
                (4, Kind::Int) => checksum = Some(reader.int()? as u32),
                (5, Kind::Struct) => about = Some(first_version(reader)?),
                (7, Kind::Struct) => about = Some(dictionary(reader)?),
                (8, Kind::Struct) => about = Some(second_version(reader)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let read = bytes.len() - reader.left();
        let (Some(kind), Some(inflated), Some(compressed)) = (kind, inflated, compressed) else {
            return damaged("a page does not say how long it is");
        };
        let page = match (kind, about) {
            (0, Some((values, encoding, kind @ PageKind::First)))
            | (2, Some((values, encoding, kind @ PageKind::Dictionary)))
            | (3, Some((values, encoding, kind @ PageKind::Second(..)))) => {
                Some(PageEntry { offset: 0, first_value: 0, values, encoding, kind, compressed, inflated, checksum })
            }
            // Indexes, and what nobody wrote yet.
            (1 | 4.., _) => None,
            _ => return damaged(format!("a page of kind {kind} does not say what it is")),
        };
        Ok((Self { compressed, page }, read))
    }
}

fn first_version(reader: &mut Reader<'_>) -> Parsed<(u64, i64, PageKind)> {
    let (mut values, mut encoding) = (0, -1);
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => values = reader.count()?,
            (2, Kind::Int) => encoding = reader.int()?,
            (3 | 4, Kind::Int) => {
                let levels = reader.int()?;
                if levels != RLE {
                    let hint = "write the file again: only files from before 2014 have it";
                    return Err(Fault::Unsupported("an encoding of levels", encoding_name(levels), hint));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((values, encoding, PageKind::First))
}

fn dictionary(reader: &mut Reader<'_>) -> Parsed<(u64, i64, PageKind)> {
    let (mut values, mut encoding) = (0, -1);
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => values = reader.count()?,
            (2, Kind::Int) => encoding = reader.int()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((values, encoding, PageKind::Dictionary))
}

fn second_version(reader: &mut Reader<'_>) -> Parsed<(u64, i64, PageKind)> {
    let (mut values, mut encoding, mut definition, mut repetition, mut compressed) = (0, -1, 0, 0, true);
    reader.fields(|reader, number, kind| {
        match (number, kind) {
            (1, Kind::Int) => values = reader.count()?,
            (4, Kind::Int) => encoding = reader.int()?,
            (5, Kind::Int) => definition = reader.count()?,
            (6, Kind::Int) => repetition = reader.count()?,
            (7, Kind::True | Kind::False) => compressed = kind == Kind::True,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((values, encoding, PageKind::Second(repetition, definition, compressed)))
}

/// The encoding of levels, and of booleans.
pub(super) const RLE: i64 = 3;

/// What an encoding is called.
pub(super) fn encoding_name(encoding: i64) -> String {
    const NAMES: [&str; 10] = [
        "PLAIN",
        "1",
        "PLAIN_DICTIONARY",
        "RLE",
        "BIT_PACKED",
        "DELTA_BINARY_PACKED",
        "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY",
        "RLE_DICTIONARY",
        "BYTE_STREAM_SPLIT",
    ];
    let known = usize::try_from(encoding).ok().and_then(|encoding| NAMES.get(encoding));
    known.map_or_else(|| encoding.to_string(), |name| (*name).to_owned())
}

impl PageEntry {
    /// Whether it has the values of the chunk's dictionary.
    pub fn is_dictionary(&self) -> bool {
        self.kind == PageKind::Dictionary
    }

    /// Reads and inflates the page.
    pub(super) fn read<I: Input>(
        &self,
        input: &I,
        chunk: &Chunk,
        column: &Column,
        shard: &str,
    ) -> Result<Page, I::Error> {
        let stored = input.read(self.offset, self.compressed as usize)?;
        self.inflate(stored, chunk.codec).map_err(|fault| fault.at(FORMAT, shard, self.offset, &column.name).into())
    }

    fn inflate(&self, stored: Bytes, codec: i64) -> Parsed<Page> {
        if stored.len() as u64 != self.compressed {
            return Err(Fault::Cut);
        }
        if let Some(stated) = self.checksum {
            let found = libdeflater::crc32(&stored);
            if found != stated {
                return damaged(format!("the page's checksum is {found:#010x}, not {stated:#010x}"));
            }
        }
        let (levels, compressed) = match self.kind {
            PageKind::Second(repetition, definition, compressed) => (Some((repetition, definition)), compressed),
            _ => (None, true),
        };
        let first = levels.map_or(0, |(repetition, definition)| repetition.saturating_add(definition));
        let Some(content) = stored.get(usize::try_from(first).map_err(|_| Fault::Cut)?..) else {
            return Err(Fault::Cut);
        };
        if codec == UNCOMPRESSED || !compressed {
            if self.inflated != self.compressed {
                return damaged(format!(
                    "a page that is not compressed has {} bytes of {}",
                    self.compressed, self.inflated
                ));
            }
            return Ok(Page { body: stored, levels });
        }
        let Some(rest) = self.inflated.checked_sub(first) else { return damaged("its levels are longer than it is") };
        let mut body = reserved(self.inflated as usize)?;
        body.extend_from_slice(&stored[..first as usize]);
        // A page of nothing but what is not there has no values, and some writers do not compress nothing.
        if rest > 0 {
            inflate(content, codec, rest as usize, &mut body)?;
        }
        Ok(Page { body: body.into(), levels })
    }
}

const UNCOMPRESSED: i64 = 0;
const ZSTD: i64 = 6;

/// Zstandard has no bound of its own: pages may inflate to so many bytes in any case, and to so many times what they take.
const ZSTD_BYTES_MIN: u64 = 64 << 20;
const ZSTD_INFLATION_MAX: u64 = 1000;

/// Adds the `length` bytes that `content` inflates to.
fn inflate(content: &[u8], codec: i64, length: usize, body: &mut Vec<u8>) -> Parsed<()> {
    let (name, framing, most) = match codec {
        1 => ("SNAPPY", Some(Framing::SnappyRaw), 64),
        2 => ("GZIP", Some(Framing::Gzip), 1032),
        ZSTD => ("ZSTD", Some(Framing::Zstd), ZSTD_INFLATION_MAX),
        7 => ("LZ4_RAW", None, 256),
        other => {
            let name = match other {
                3 => "LZO".to_owned(),
                4 => "BROTLI".to_owned(),
                5 => "LZ4 (of Hadoop)".to_owned(),
                other => other.to_string(),
            };
            let hint = "write the file again with `compression=\"zstd\"` or \"snappy\"";
            return Err(Fault::Unsupported("a compression of Parquet", name, hint));
        }
    };
    let most = (content.len() as u64).saturating_mul(most).max(if codec == ZSTD { ZSTD_BYTES_MIN } else { 0 });
    if length as u64 > most {
        return damaged(format!("{} bytes of {name} cannot inflate to {length}", content.len()));
    }
    let start = body.len();
    body.resize(start + length, 0);
    let given = match framing {
        Some(framing) => inflate_framed(content, framing, &mut body[start..]),
        None => lz4::block::decompress_to_buffer(content, i32::try_from(length).ok(), &mut body[start..])
            .map_err(|error| error.to_string()),
    };
    match given {
        Ok(given) if given == length => Ok(()),
        Ok(given) => damaged(format!("a page of {name} gives {given} bytes, not {length}")),
        Err(problem) => damaged(format!("a page of {name} is damaged: {problem}")),
    }
}
