//! What files of columns have in common, whatever their format: where bytes come from, the values of rows, and what is wrong with a file.

use std::fmt;

use bytes::Bytes;

use crate::error::{Error, ErrorLocation, FormatFault};

/// The longest path of a column: a long name of a structure is in those of all of its fields.
pub(crate) const NAME_BYTES_MAX: usize = 1024;

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

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Booleans.
    Bool,
    /// Whole numbers of so many bits.
    Int(u8),
    /// Whole numbers from 0 on, of so many bits.
    Uint(u8),
    /// Numbers of so many bits.
    Float(u8),
    /// UTF-8 text.
    Text,
    /// Bytes.
    Binary,
    /// Something that is not read here.
    Other(&'static str),
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int(bits) => write!(f, "int{bits}"),
            Self::Uint(bits) => write!(f, "uint{bits}"),
            Self::Float(bits) => write!(f, "float{bits}"),
            Self::Text => f.write_str("string"),
            Self::Binary => f.write_str("binary"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// The error of a column whose values cannot be read here.
pub(crate) fn unreadable(column: &str, type_name: &str, shard: &str) -> Error {
    Error::Unsupported {
        location: ErrorLocation { shard: Some(shard.into()), ..ErrorLocation::default() },
        what: "a column of this type",
        found: format!("{column}: {type_name}").into(),
        hint: "numbers, booleans, text, bytes and lists of numbers can be read: convert the column, or leave it out",
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
pub(crate) enum Fault {
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

pub(crate) type Parsed<T> = std::result::Result<T, Fault>;

pub(crate) fn damaged<T>(problem: impl Into<String>) -> Parsed<T> {
    Err(Fault::Damaged(problem.into()))
}

impl Fault {
    /// The error, at `offset` of `shard`, a file of this format; `what` is the column or the part of the file.
    pub(crate) fn at(self, format: &'static str, shard: &str, offset: u64, what: &str) -> Error {
        let location = ErrorLocation { shard: Some(shard.into()), record: None, offset: Some(offset) };
        let damaged = |problem: String| FormatFault::Columns { format, part: what.into(), problem: problem.into() };
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
pub(crate) fn reserved<T>(count: usize) -> Parsed<Vec<T>> {
    let mut elements = Vec::new();
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    elements.try_reserve_exact(count).map_err(|_| Fault::Memory(bytes))?;
    Ok(elements)
}
