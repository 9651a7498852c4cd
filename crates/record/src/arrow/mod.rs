//! Arrow's IPC files, both formats: the stream, as Hugging Face's `datasets` keeps its data, and the file (Feather 2).
//!
//! ```text
//! stream: message message … | FF FF FF FF 00 00 00 00
//! file:   ARROW1 00 00 | stream | footer: where its messages lie | the footer's length | ARROW1
//! message: FF FF FF FF | length | what it is: columns, values of a dictionary, or a batch of rows | its buffers
//! ```
//!
//! A *batch* has some rows: of each column a bitmap of what is there and a buffer of values, with offsets where values are of different
//! lengths ([`Batch`]). Where buffers are not compressed, the values of some rows are found by the offsets of these rows alone, so that nothing
//! else is read ([`read_rows`]). Values come as [`Cell`]s.
//!
//! What is read: numbers, booleans, text and bytes (with offsets of 32 and 64 bits, and views), those that are numbers of a dictionary's
//! values, structures of any depth, lists of numbers of any or of a fixed length; buffers compressed by LZ4 or Zstandard. What is not is
//! refused by name.
//!
//! A message says how long its parts are, and nothing is believed that does not lie within the file: messages of a file follow each other,
//! and what is taken of a buffer lies in it. A compressed one inflates to no more than [`BUFFER_BYTES_MAX`].

mod file;
mod flatbuffer;
mod message;
mod rows;
mod schema;
mod values;

use crate::columns::{Cell, ColumnType, Fault, Input, NAME_BYTES_MAX, Parsed, damaged, reserved, rows_max};

pub use file::{ArrowFile, MESSAGE_BYTES_MAX};
pub use message::Batch;
pub use rows::{inflated_bytes, read_column, read_dictionary, read_rows, refuse_unreadable};
pub use schema::{COLUMNS_MAX, Column};

/// What a file begins and ends with; a stream does not.
pub const MAGIC: &[u8; 6] = b"ARROW1";

/// What a message begins with, in all versions since 2019: before the length of what it says.
pub const CONTINUATION: &[u8; 4] = &[0xFF; 4];

/// The largest buffer that is inflated.
pub const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// What the errors of this format call it.
const FORMAT: &str = "Arrow";
