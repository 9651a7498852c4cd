//! A TFRecord file, by whomever it was written.

use std::path::{Path, PathBuf};

use forebay_plan::units;
use forebay_record::{OnDamage, Options, Reader};
use serde::Serialize;

use super::features::RecordFound;
use super::{reader, show_problems};
use crate::error::{Error, Result};
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    bytes: u64,
    compressed: bool,
    /// As what, such as `GZIP`.
    compression: Option<&'static str>,
    records: u64,
    /// Bytes of all records, inflated, without their frames.
    record_bytes: u64,
    min_record_bytes: u64,
    max_record_bytes: u64,
    /// Damaged records, and what is wrong with them.
    damaged_records: u64,
    pub(super) problems: Vec<String>,
    record: Option<RecordFound>,
}

/// Reads the file, verifies every checksum, and shows record `wanted`, or the first.
pub(super) fn inspect(path: &Path, bytes: u64, wanted: Option<u64>) -> Result<Found> {
    let file = reader::open(path)?;
    let name = path.display().to_string();
    let options = Options { on_damage: OnDamage::Skip, ..Options::default() };
    let mut input = Reader::new(file, &name, options)?;
    let compression = input.compression();
    let (mut records, mut record_bytes, mut smallest, mut largest) = (0, 0, u64::MAX, 0);
    let mut shown = None;
    while let Some(record) = input.next_record()? {
        let length = record.data.len() as u64;
        records += 1;
        record_bytes += length;
        smallest = smallest.min(length);
        largest = largest.max(length);
        if wanted.map_or(records == 1, |wanted| record.number == wanted) {
            shown = Some(RecordFound::new(&name, record.number, record.location.offset, &record.data));
        }
    }
    let report = input.into_report();
    if let Some(wanted) = wanted
        && shown.is_none()
    {
        return Err(Error::usage(
            format!("`{name}` has no record {wanted} that can be read: it has {}", units::counted(records, "record")),
            "records are counted from 0",
        ));
    }
    Ok(Found {
        path: path.to_owned(),
        bytes,
        compressed: compression.is_some(),
        compression,
        records,
        record_bytes,
        min_record_bytes: if records == 0 { 0 } else { smallest },
        max_record_bytes: largest,
        damaged_records: report.records(),
        problems: report.entries().iter().map(|damage| damage.error.to_string()).collect(),
        record: shown,
    })
}

impl Found {
    pub(super) fn show(&self, page: &mut Page) {
        let compression = self.compression.unwrap_or("none");
        let size = |bytes: u64| units::bytes(bytes as f64);
        let mean = self.record_bytes.checked_div(self.records).unwrap_or(0);
        page.facts(&[
            ("TFRecord file", self.path.display().to_string()),
            ("size", size(self.bytes)),
            ("compression", compression.to_owned()),
            ("records", units::count(self.records)),
            (
                "a record",
                format!("{} (from {} to {})", size(mean), size(self.min_record_bytes), size(self.max_record_bytes)),
            ),
            ("damaged", units::count(self.damaged_records)),
        ]);
        if let Some(record) = &self.record {
            record.show(page);
        }
        show_problems(page, &self.problems);
    }
}
