//! The footer: which columns there are, and where their chunks lie.

use super::schema::{Column, Element, columns};
use super::thrift::{Kind, Reader};
use super::{FORMAT, Fault, Input, MAGIC, Parsed, damaged, rows_max};

/// The largest footer that is read: that of a million chunks.
pub const FOOTER_BYTES_MAX: u64 = 256 << 20;

/// What is read of a file's end before it is known how long the footer is.
const TAIL_BYTES: u64 = 64 << 10;

/// The footer's length and the magic bytes behind it.
const END_BYTES: u64 = 8;

/// What a file with an encrypted footer ends with.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";

/// What the footer of a file says.
#[derive(Debug, Clone)]
pub struct Metadata {
    /// The columns.
    pub columns: Vec<Column>,
    /// The row groups, in order.
    pub row_groups: Vec<RowGroup>,
    /// How many rows there are.
    pub rows: u64,
    /// What the file's writer wrote down besides: names and texts.
    pub notes: Vec<(String, String)>,
}

/// Neighboring rows.
#[derive(Debug, Clone)]
pub struct RowGroup {
    /// The number of the first.
    pub first_row: u64,
    /// How many there are.
    pub rows: u64,
    /// The chunk of each column.
    pub chunks: Vec<Chunk>,
}

/// The values of a column in a row group.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Where its first page begins.
    pub offset: u64,
    /// How many bytes its pages have in the file.
    pub length: u64,
    /// How many bytes they have inflated.
    pub inflated_bytes: u64,
    /// How many values it has, those that are not there included.
    pub(super) values: u64,
    pub(super) codec: i64,
}

impl Metadata {
    /// Reads the footer of `input`, which errors call `shard`.
    pub fn read<I: Input>(input: &I, shard: &str) -> Result<Self, I::Error> {
        let size = input.size();
        let wrong = |fault: Fault, offset| I::Error::from(fault.at(FORMAT, shard, offset, "its footer"));
        if size < END_BYTES + MAGIC.len() as u64 {
            return Err(wrong(Fault::Damaged(format!("it has {size} bytes, too few for one")), 0));
        }
        let tail_start = size - size.min(TAIL_BYTES);
        let tail = input.read(tail_start, (size - tail_start) as usize)?;
        let Some((before, [length @ .., m0, m1, m2, m3])) = tail.split_last_chunk::<8>() else {
            return Err(wrong(Fault::Cut, tail_start));
        };
        match &[*m0, *m1, *m2, *m3] {
            MAGIC => {}
            ENCRYPTED_MAGIC => return Err(wrong(encrypted(), size - 4)),
            _ => {
                return Err(wrong(
                    Fault::Damaged("it does not end with `PAR1`: it was cut, or is not Parquet".into()),
                    size - 4,
                ));
            }
        }
        let length = u64::from(u32::from_le_bytes(*length));
        let end = size - END_BYTES;
        if length > end - MAGIC.len() as u64 {
            return Err(wrong(Fault::Damaged(format!("it says to have {length} bytes of {size}")), end));
        }
        if length > FOOTER_BYTES_MAX {
            return Err(wrong(Fault::Limit("the footer's length", length, FOOTER_BYTES_MAX), end));
        }
        let start = end - length;
        let more = if start < tail_start { input.read(start, length as usize)? } else { tail.slice(..0) };
        let footer = if start < tail_start { &more[..] } else { &before[(start - tail_start) as usize..] };
        let parsed = Self::parse(footer).and_then(|metadata| metadata.checked(size));
        parsed.map_err(|fault| wrong(fault, start))
    }

    /// The column `name`, or the bytes of the structure of that name, as Hugging Face keeps pictures and sounds.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let find = |name: &str| self.columns.iter().find(|column| column.name == name);
        find(name).or_else(|| find(&format!("{name}.bytes")))
    }

    fn parse(footer: &[u8]) -> Parsed<Self> {
        let (mut elements, mut groups, mut notes, mut rows) = (Vec::new(), Vec::new(), Vec::new(), 0);
        Reader::new(footer).fields(|reader, number, kind| {
            match (number, kind) {
                (2, Kind::List) => reader.structures(|reader| {
                    elements.push(Element::parse(reader)?);
                    Ok(())
                })?,
                (3, Kind::Int) => rows = reader.count()?,
                (4, Kind::List) => reader.structures(|reader| {
                    groups.push(RowGroup::parse(reader)?);
                    Ok(())
                })?,
                (5, Kind::List) => reader.structures(|reader| {
                    notes.extend(note(reader)?);
                    Ok(())
                })?,
                (8, Kind::Struct) => return Err(encrypted()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Self { columns: columns(&elements)?, row_groups: groups, rows, notes })
    }

    /// The same with its row groups numbered, where they go with the columns and with a file of `size` bytes.
    fn checked(mut self, size: u64) -> Parsed<Self> {
        let mut rows = 0_u64;
        for group in &mut self.row_groups {
            if group.chunks.len() != self.columns.len() {
                let (chunks, columns) = (group.chunks.len(), self.columns.len());
                return damaged(format!("a row group has {chunks} chunks for {columns} columns"));
            }
            for (chunk, column) in group.chunks.iter().zip(&self.columns) {
                let end = chunk.offset.checked_add(chunk.length);
                if chunk.offset < MAGIC.len() as u64 || end.is_none_or(|end| end > size) {
                    let (offset, length) = (chunk.offset, chunk.length);
                    let problem = format!("`{}` has {length} bytes at {offset}, but the file has {size}", column.name);
                    return damaged(problem);
                }
                if chunk.values > rows_max(size) {
                    return Err(Fault::Limit(
                        "the number of values for a file of this size",
                        chunk.values,
                        rows_max(size),
                    ));
                }
                if column.lists == 0 && chunk.values != group.rows {
                    let problem = format!("`{}` has {} values for {} rows", column.name, chunk.values, group.rows);
                    return damaged(problem);
                }
            }
            group.first_row = rows;
            rows = rows.saturating_add(group.rows);
        }
        if rows != self.rows {
            return damaged(format!("its row groups have {rows} rows, but it says {}", self.rows));
        }
        if rows > rows_max(size) {
            return Err(Fault::Limit("the number of rows for a file of this size", rows, rows_max(size)));
        }
        Ok(self)
    }
}

fn encrypted() -> Fault {
    Fault::Unsupported("an encrypted Parquet file", "encryption".to_owned(), "write it without encryption")
}

/// A name and a text; none where one of them is no text.
fn note(reader: &mut Reader<'_>) -> Parsed<Option<(String, String)>> {
    let (mut key, mut value) = (None, None);
    reader.fields(|reader, number, kind| {
        let slot = match (number, kind) {
            (1, Kind::Binary) => &mut key,
            (2, Kind::Binary) => &mut value,
            _ => return Ok(false),
        };
        *slot = std::str::from_utf8(reader.binary()?).ok().map(str::to_owned);
        Ok(true)
    })?;
    Ok(key.zip(value))
}

impl RowGroup {
    fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let mut group = Self { first_row: 0, rows: 0, chunks: Vec::new() };
        reader.fields(|reader, number, kind| {
            match (number, kind) {
                (1, Kind::List) => reader.structures(|reader| {
                    group.chunks.push(Chunk::parse(reader)?);
                    Ok(())
                })?,
                (3, Kind::Int) => group.rows = reader.count()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(group)
    }

    /// The chunk of `column`.
    pub fn chunk(&self, column: &Column) -> &Chunk {
        &self.chunks[column.number]
    }
}

impl Chunk {
    fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let mut found = None;
        reader.fields(|reader, number, kind| {
            match (number, kind) {
                (1, Kind::Binary) => {
                    if !reader.binary()?.is_empty() {
                        let hint = "write each file with its own rows";
                        return Err(Fault::Unsupported("a column in another file", "file_path".to_owned(), hint));
                    }
                }
                (3, Kind::Struct) => found = Some(Self::parse_content(reader)?),
                (8, Kind::Struct) => return Err(encrypted()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        found.map_or_else(|| damaged("a chunk says nothing of itself"), Ok)
    }

    fn parse_content(reader: &mut Reader<'_>) -> Parsed<Self> {
        let (mut codec, mut values, mut inflated, mut length, mut data, mut dictionary) =
            (None, None, None, None, None, None);
        reader.fields(|reader, number, kind| {
            let slot = match (number, kind) {
                (4, Kind::Int) => &mut codec,
                (5, Kind::Int) => &mut values,
                (6, Kind::Int) => &mut inflated,
                (7, Kind::Int) => &mut length,
                (9, Kind::Int) => &mut data,
                (11, Kind::Int) => &mut dictionary,
                _ => return Ok(false),
            };
            *slot = Some(reader.count()?);
            Ok(true)
        })?;
        let (Some(codec), Some(values), Some(length), Some(data)) = (codec, values, length, data) else {
            return damaged("a chunk does not say where it lies, how long it is, or how it is compressed");
        };
        // Some writers note no dictionary as one at 0.
        let offset = dictionary.filter(|dictionary| (1..data).contains(dictionary)).unwrap_or(data);
        Ok(Self { offset, length, inflated_bytes: inflated.unwrap_or(length), values, codec: codec as i64 })
    }
}
