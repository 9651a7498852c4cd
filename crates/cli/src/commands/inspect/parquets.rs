//! A Parquet file: its columns and row groups.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use forebay_engine::StorageChoice;
use forebay_plan::units;
use forebay_record::Input;
use forebay_record::parquet::{Column, Metadata, read_chunk};
use forebay_storage::File;
use serde::Serialize;

use super::show_problems;
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    bytes: u64,
    rows: u64,
    row_groups: u64,
    columns: Vec<ColumnFound>,
    /// Whether the values of all columns that can be read were read.
    verified: bool,
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct ColumnFound {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// Whether a source or a table may use it.
    pub(super) supported: bool,
    pub(super) bytes: u64,
    pub(super) inflated_bytes: u64,
}

/// A file of a storage.
pub(super) struct Opened(Box<dyn File>);

impl Opened {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let storage = StorageChoice::Local.open(0)?;
        Ok(Self(storage.open(path).map_err(forebay_engine::Error::from)?))
    }
}

impl Input for Opened {
    type Error = Error;

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        Ok(self.0.read(offset, length).map_err(forebay_engine::Error::from)?)
    }
}

/// Reads the footer, and with `verify` the values.
pub(super) fn inspect(path: &Path, bytes: u64, verify: bool) -> Result<Found> {
    let file = Opened::open(path)?;
    let name = path.display().to_string();
    let (metadata, mut problems) = match Metadata::read(&file, &name) {
        Ok(metadata) => (Some(metadata), Vec::new()),
        Err(error) => (None, vec![error.to_string()]),
    };
    let (rows, row_groups) = metadata.as_ref().map_or((0, 0), |found| (found.rows, found.row_groups.len() as u64));
    let mut columns = Vec::new();
    if let Some(metadata) = &metadata {
        columns = metadata.columns.iter().map(|column| describe(metadata, column)).collect();
        if verify {
            problems = metadata.columns.iter().filter_map(|column| damage(&file, metadata, column, &name)).collect();
        }
    }
    Ok(Found { path: path.to_owned(), bytes, rows, row_groups, columns, verified: verify, problems })
}

fn describe(metadata: &Metadata, column: &Column) -> ColumnFound {
    let chunks = || metadata.row_groups.iter().map(|group| group.chunk(column));
    ColumnFound {
        name: column.name.clone(),
        kind: column.type_name(),
        supported: column.is_readable(),
        bytes: chunks().map(|chunk| chunk.length).fold(0, u64::saturating_add),
        inflated_bytes: chunks().map(|chunk| chunk.inflated_bytes).fold(0, u64::saturating_add),
    }
}

/// What is wrong with the values of a column, which are read a row group at a time.
fn damage(file: &Opened, metadata: &Metadata, column: &Column, name: &str) -> Option<String> {
    let groups = metadata.row_groups.iter().filter(|_| column.is_readable());
    let mut read = groups.map(|group| read_chunk(file, (column, group.chunk(column)), group.rows, name));
    read.find_map(Result::err).map(|error| error.to_string())
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        brief(self.rows, &self.columns)
    }

    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            ("Parquet", self.path.display().to_string()),
            ("size", units::bytes(self.bytes as f64)),
            ("rows", units::count(self.rows)),
            ("row groups", units::count(self.row_groups)),
        ]);
        show_columns(page, &self.columns);
        show_problems(page, &self.problems);
    }
}

/// A file of columns in a few words.
pub(super) fn brief(rows: u64, columns: &[ColumnFound]) -> String {
    let names: Vec<&str> = columns.iter().take(6).map(|column| column.name.as_str()).collect();
    format!("{} of {}", units::counted(rows, "row"), names.join(", "))
}

pub(super) fn show_columns(page: &mut Page, columns: &[ColumnFound]) {
    page.gap();
    let mut table = Table::new(&[
        ("column", Align::Left),
        ("type", Align::Left),
        ("bytes", Align::Right),
        ("inflated", Align::Right),
    ]);
    for column in columns {
        let kind = if column.supported { column.kind.clone() } else { format!("{} (not read)", column.kind) };
        let sizes = [column.bytes, column.inflated_bytes].map(|bytes| units::bytes(bytes as f64));
        let [bytes, inflated] = sizes;
        table.row([column.name.clone(), kind, bytes, inflated], false);
    }
    page.table(&table);
}
