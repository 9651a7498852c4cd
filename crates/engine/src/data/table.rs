//! Tables that name files: CSV, TSV or Parquet, and what is in their columns.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_pipeline::{Datum, Rows, nearest};
use forebay_record::Cell;
use forebay_record::parquet::{MAGIC, Metadata};
use forebay_storage::Storage;

use super::labels::BYTE_ORDER_MARK;
use super::parquet::column_in_memory;
use super::shards::shard_name;
use crate::error::{Error, Result};

/// The largest table that is read.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// So many names of columns are listed in a message.
const NAMES_LISTED_MAX: usize = 12;

/// A table, in memory.
pub(super) struct Table {
    pub(super) path: PathBuf,
    pub(super) content: TableContent,
}

/// What a table is made of.
pub(super) enum TableContent {
    Text(String),
    Parquet(Bytes, Metadata),
}

impl Table {
    /// Reads the table at `path`.
    pub(super) fn read(storage: &dyn Storage, path: &Path) -> Result<Self> {
        let bytes = storage.read_file(path, TABLE_BYTES_MAX)?;
        let content = if bytes.starts_with(MAGIC) {
            let metadata = Metadata::read(&bytes, &shard_name(path))?;
            TableContent::Parquet(bytes, metadata)
        } else {
            let text = std::str::from_utf8(&bytes).map_err(|error| {
                let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
                Error::Format { path: path.to_owned(), problem: format!("line {line} is not UTF-8 text") }
            })?;
            TableContent::Text(text.trim_start_matches(BYTE_ORDER_MARK).to_owned())
        };
        Ok(Self { path: path.to_owned(), content })
    }

    /// The names of its columns: of a text, what its first line has.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        match &self.content {
            TableContent::Parquet(_, metadata) => {
                Ok(metadata.columns.iter().map(|column| column.name.clone()).collect())
            }
            TableContent::Text(text) => match Rows::new(text).next_row() {
                Some(Ok((_, fields))) => Ok(fields.into_iter().map(std::borrow::Cow::into_owned).collect()),
                Some(Err((line, problem))) => Err(self.wrong(format!("line {line} {problem}"))),
                None => Err(self.wrong("is empty".to_owned())),
            },
        }
    }

    /// Which of `names` is the column `wanted`; an error that names what may have been meant.
    pub(super) fn column(&self, names: &[String], wanted: &str, remedy: &str) -> Result<usize> {
        let mut places = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(place, _)| place);
        let problem = match (places.next(), places.next()) {
            (Some(place), None) => return Ok(place),
            (Some(_), Some(_)) => "twice",
            (None, _) => "not",
        };
        let meant = nearest(wanted, names.iter().map(String::as_str)).filter(|_| problem == "not");
        Err(Error::Usage {
            problem: format!(
                "the table `{}` has {problem} a column `{wanted}`, but {}",
                self.path.display(),
                listed(names)
            ),
            remedy: match meant {
                Some(meant) => format!("did you mean `{meant}`? {remedy}"),
                None => remedy.to_owned(),
            },
        })
    }

    /// What the columns `wanted` have in each row, by what the column `key` has there.
    pub(super) fn keyed(&self, key: usize, wanted: &[usize]) -> Result<HashMap<String, Box<[Datum]>>> {
        let mut rows = HashMap::new();
        let mut add = |place: String, name: String, row: Vec<Datum>| {
            // As `find` and others write paths.
            let name = name.trim_start_matches("./").to_owned();
            match rows.insert(name, row.into_boxed_slice()) {
                None => Ok(()),
                Some(_) => Err(self.wrong(format!("{place} names a file that another one named"))),
            }
        };
        match &self.content {
            TableContent::Text(text) => {
                let mut lines = Rows::new(text);
                let mut count = None;
                while let Some(row) = lines.next_row() {
                    let (line, mut fields) =
                        row.map_err(|(line, problem)| self.wrong(format!("line {line} {problem}")))?;
                    let Some(count) = count else {
                        count = Some(fields.len());
                        continue;
                    };
                    if fields.len() != count {
                        let problem = format!("line {line} has {} columns, but the first has {count}", fields.len());
                        return Err(self.wrong(problem));
                    }
                    let row = wanted.iter().map(|&column| Datum::Written(fields[column].to_string())).collect();
                    add(format!("line {line}"), fields.swap_remove(key).into_owned(), row)?;
                }
            }
            TableContent::Parquet(bytes, metadata) => {
                let name = shard_name(&self.path);
                let read = |column: usize| column_in_memory(bytes, metadata, &metadata.columns[column], &name);
                let keys = read(key)?;
                let columns = wanted.iter().map(|&column| read(column)).collect::<Result<Vec<_>>>()?;
                for (place, key) in keys.into_iter().enumerate() {
                    let datum =
                        |column: &Vec<Cell>| column.get(place).map_or(Ok(Datum::Null), |cell| self.datum(cell, place));
                    let row = columns.iter().map(datum).collect::<Result<Vec<_>>>()?;
                    let called = format!("row {place}");
                    let key = self.text(self.datum(&key, place)?, &called)?;
                    add(called, key, row)?;
                }
            }
        }
        Ok(rows)
    }

    /// A cell of row number `place`.
    fn datum(&self, cell: &Cell, place: usize) -> Result<Datum> {
        datum(cell).map_err(|problem| self.wrong(format!("row {place} has {problem}")))
    }

    /// What the row that is called `row` has, as text.
    pub(super) fn text(&self, datum: Datum, row: &str) -> Result<String> {
        match datum {
            Datum::Text(text) | Datum::Written(text) => Ok(text),
            Datum::Int(number) => Ok(number.to_string()),
            Datum::Float(number) => Ok(number.to_string()),
            Datum::Bool(is) => Ok(is.to_string()),
            Datum::Null => Err(self.wrong(format!("{row} has nothing where a file or its label should be"))),
        }
    }

    pub(super) fn wrong(&self, problem: String) -> Error {
        Error::Format { path: self.path.clone(), problem }
    }
}

/// A cell, for conditions; or what it is that cannot be compared.
pub(super) fn datum(cell: &Cell) -> Result<Datum, String> {
    Ok(match cell {
        Cell::Null => Datum::Null,
        Cell::Bool(is) => Datum::Bool(*is),
        Cell::Int(number) => Datum::Int(*number),
        Cell::Float(number) => Datum::Float(*number),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Datum::Text(text.to_owned()),
            Err(_) => return Err("bytes that are not text".to_owned()),
        },
        Cell::Ints(_) | Cell::Floats(_) => return Err("a list, which cannot be compared".to_owned()),
    })
}

/// Some names of columns, for a message.
pub(super) fn listed(names: &[String]) -> String {
    let listed: Vec<String> = names.iter().take(NAMES_LISTED_MAX).map(|name| format!("`{name}`")).collect();
    listed.join(", ") + if names.len() > NAMES_LISTED_MAX { ", …" } else { "" }
}
