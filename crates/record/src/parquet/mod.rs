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

use crate::columns::{Cell, ColumnType, Fault, Input, NAME_BYTES_MAX, Parsed, damaged, reserved, rows_max};

pub use metadata::{Chunk, FOOTER_BYTES_MAX, Metadata, RowGroup};
pub use page::{ColumnPages, PageEntry};
pub use rows::{read_chunk, read_column, read_page, refuse_unreadable};
pub use schema::Column;

/// What a Parquet file begins and ends with.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// The largest page that is read, inflated or not.
pub const PAGE_BYTES_MAX: u64 = 1 << 30;

/// What the errors of this format call it.
const FORMAT: &str = "Parquet";
