//! Arrow's files and streams: their columns and batches.

use std::path::{Path, PathBuf};

use forebay_plan::units;
use forebay_record::arrow::{ArrowFile, Column, inflated_bytes, read_column};
use serde::Serialize;

use super::parquets::{ColumnFound, Opened, brief, show_columns};
use super::show_problems;
use crate::error::Result;
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    /// `stream` or `file`.
    format: &'static str,
    bytes: u64,
    rows: u64,
    batches: u64,
    columns: Vec<ColumnFound>,
    /// Whether the values of all columns that can be read were read.
    verified: bool,
    pub(super) problems: Vec<String>,
}

/// Reads the messages, and with `verify` the values.
pub(super) fn inspect(path: &Path, bytes: u64, verify: bool) -> Result<Found> {
    let file = Opened::open(path)?;
    let name = path.display().to_string();
    let mut found = Found {
        path: path.to_owned(),
        format: "stream",
        bytes,
        rows: 0,
        batches: 0,
        columns: Vec::new(),
        verified: verify,
        problems: Vec::new(),
    };
    let arrow = match ArrowFile::read(&file, &name) {
        Ok(arrow) => arrow,
        Err(error) => {
            found.problems.push(error.to_string());
            return Ok(found);
        }
    };
    found.format = if arrow.is_stream { "stream" } else { "file" };
    (found.rows, found.batches) = (arrow.rows, arrow.batches.len() as u64);
    for column in &arrow.columns {
        found.columns.push(describe(&file, &arrow, column, &name)?);
        if verify && column.is_readable() {
            found.problems.extend(read_column(&file, &arrow, column, &name).err().map(|error| error.to_string()));
        }
    }
    Ok(found)
}

fn describe(file: &Opened, arrow: &ArrowFile, column: &Column, name: &str) -> Result<ColumnFound> {
    let (mut bytes, mut inflated) = (0_u64, 0_u64);
    // Of what is not read, nobody looked where all of it lies.
    for batch in arrow.batches.iter().filter(|_| column.is_readable()) {
        let extent = arrow.extent(column, batch);
        bytes = bytes.saturating_add(extent.end - extent.start);
        inflated = inflated.saturating_add(inflated_bytes(file, (column, batch), name)?);
    }
    let (kind, supported) = (column.type_name(), column.is_readable());
    Ok(ColumnFound { name: column.name.clone(), kind, supported, bytes, inflated_bytes: inflated })
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        brief(self.rows, &self.columns)
    }

    pub(super) fn show(&self, page: &mut Page) {
        page.facts(&[
            (if self.format == "file" { "Arrow file" } else { "Arrow stream" }, self.path.display().to_string()),
            ("size", units::bytes(self.bytes as f64)),
            ("rows", units::count(self.rows)),
            ("batches", units::count(self.batches)),
        ]);
        show_columns(page, &self.columns);
        show_problems(page, &self.problems);
    }
}
