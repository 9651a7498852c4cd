//! Parquet files: their columns, row groups and pages, and the values in them.
//!
//! ```text
//! PAR1 | row group: a chunk of each column: [dictionary page] page page … | row group … | footer | footer's length | PAR1
//! ```
//!
//! A *footer* names the columns and where their chunks lie ([`Metadata`]). A *chunk* is a row of *pages*, each with a header that says how
//! long it is and how many values it has ([`ColumnPages`]); a page is compressed by itself, so that it can be read by itself, but for the
//! dictionary that it may need. Rows are taken out of chunks as [`Cell`]s.
//!
//! What is read: numbers, booleans, text and bytes, within structures of any depth, and lists of numbers; every encoding that the format
//! has for them; pages of both versions; Snappy, GZIP, Zstandard and raw LZ4. What is not is refused by name: other types, lists of lists,
//! Brotli, LZO, encrypted files.
//!
//! A file can say that it has more than it has: many rows in few bytes, or pages that inflate without end. Rows are bounded by the
//! file's size ([`rows_max`]), the values of a page by the rows of its group, and memory for a page is had or refused, never more
//! than [`PAGE_BYTES_MAX`].

mod delta;
mod hybrid;
mod metadata;
mod page;
mod rows;
mod schema;
mod thrift;
mod values;

use bytes::Bytes;

use crate::error::{Error, ErrorLocation, FormatFault};

pub use metadata::{Chunk, FOOTER_BYTES_MAX, Metadata, RowGroup};
pub use page::{ColumnPages, PageEntry};
pub use rows::{read_chunk, read_column, read_page, refuse_unreadable};
pub use schema::{Column, ColumnType};

/// What a Parquet file begins and ends with.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// The largest page that is read, inflated or not.
pub const PAGE_BYTES_MAX: u64 = 1 << 30;

/// So many rows are believed in any case, and some for each byte of a file: a column of one value takes next to none.
const ROWS_MIN: u64 = 1 << 20;
const ROWS_PER_BYTE: u64 = 8;

/// How many rows a file of `bytes` may have.
pub fn rows_max(bytes: u64) -> u64 {
    bytes.saturating_mul(ROWS_PER_BYTE).max(ROWS_MIN)
}

/// The bytes of a file, wherever it lies.
pub trait Input {
    /// What reading fails with.
    type Error: From<Error>;

    /// How many bytes it has.
    fn size(&self) -> u64;

    /// Reads `length` bytes at `offset`, which lie within the file.
    fn read(&self, offset: u64, length: usize) -> Result<Bytes, Self::Error>;
}

impl Input for Bytes {
    type Error = Error;

    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes, Error> {
        let start = (offset as usize).min(self.len());
        Ok(self.slice(start..start.saturating_add(length).min(self.len())))
    }
}

/// What is in memory and cannot be shared is copied page by page.
impl Input for &[u8] {
    type Error = Error;

    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes, Error> {
        let start = (offset as usize).min(self.len());
        Ok(Bytes::copy_from_slice(&self[start..start.saturating_add(length).min(self.len())]))
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Bytes, or the bytes of a text.
    Bytes(Bytes),
    /// A list of whole numbers.
    Ints(Box<[i64]>),
    /// A list of numbers.
    Floats(Box<[f64]>),
}

impl Cell {
    /// How many bytes it takes in memory, with what it keeps alive.
    pub fn memory_bytes(&self) -> u64 {
        let content = match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Ints(list) => list.len() * 8,
            Self::Floats(list) => list.len() * 8,
            _ => 0,
        };
        (size_of::<Self>() + content) as u64
    }
}

/// What is wrong with some bytes, before it is known where they lie.
#[derive(Debug)]
enum Fault {
    /// They end too early.
    Cut,
    /// They are not what the format says.
    Damaged(String),
    /// They are something that is not read here: of what kind, which, and what to do.
    Unsupported(&'static str, String, &'static str),
    /// They ask for more than is given: what, how much, and of how much.
    Limit(&'static str, u64, u64),
    /// There is no memory for so many bytes.
    Memory(u64),
}

type Parsed<T> = std::result::Result<T, Fault>;

fn damaged<T>(problem: impl Into<String>) -> Parsed<T> {
    Err(Fault::Damaged(problem.into()))
}

impl Fault {
    /// The error, at `offset` of `shard`; `what` is the column or the part of the file.
    fn at(self, shard: &str, offset: u64, what: &str) -> Error {
        let location = ErrorLocation { shard: Some(shard.into()), record: None, offset: Some(offset) };
        let damaged = |problem: String| FormatFault::Parquet { part: what.into(), problem: problem.into() };
        match self {
            Self::Cut => Error::Format { location, fault: damaged("it ends too early".to_owned()) },
            Self::Damaged(problem) => Error::Format { location, fault: damaged(problem) },
            Self::Unsupported(kind, found, hint) => {
                Error::Unsupported { location, what: kind, found: format!("{what}: {found}").into(), hint }
            }
            Self::Limit(what, found, limit) => Error::Limit { location, what, limit, found, hint: "" },
            Self::Memory(bytes) => Error::Io {
                location,
                action: "inflate",
                source: std::io::Error::new(
                    std::io::ErrorKind::OutOfMemory,
                    format!("there is no memory for {bytes} bytes"),
                ),
            },
        }
    }
}

/// Memory for `count` elements, or an error.
fn reserved<T>(count: usize) -> Parsed<Vec<T>> {
    let mut elements = Vec::new();
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    elements.try_reserve_exact(count).map_err(|_| Fault::Memory(bytes))?;
    Ok(elements)
}
