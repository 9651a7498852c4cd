//! Conditions on samples: those that a source has, and those that a loader is asked for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use forebay_pipeline::{Datum, Predicate, Source, nearest};
use forebay_storage::{Folder, Storage};

use super::label_table::table_path;
use super::labels::{LabelValue, of_path};
use super::listing::{Entry, Listing, ListingOptions};
use super::reader::SourceReader;
use super::table::{Table, datum, listed};
use crate::error::{Error, Result};
use crate::source::Source as OpenSource;

/// The columns that samples have by themselves: their keys, their labels, and what classes these are.
pub const COLUMNS_OF_SAMPLES: [&str; 3] = ["key", "label", "class"];

fn predicate(condition: &str) -> Result<Predicate> {
    Predicate::parse(condition).map_err(|problem| Error::Usage {
        problem: format!("`where` is `{condition}`, but {problem}"),
        remedy: "write it like `split == 'train' and width >= 224`".to_owned(),
    })
}

/// Whether the row of the sample `key` meets a condition.
fn holds(predicate: &Predicate, values: &[Datum], key: impl FnOnce() -> String) -> Result<bool> {
    predicate.holds(values).map_err(|problem| Error::Usage {
        problem: format!("`where` cannot be answered for `{}`: {problem}", key()),
        remedy: "correct the condition, or the table".to_owned(),
    })
}

fn nothing_left(condition: &str, samples: usize) -> Error {
    Error::Usage {
        problem: format!("none of {samples} samples meets `where`: `{condition}`"),
        remedy: "check the condition: texts are compared letter by letter, case included".to_owned(),
    }
}

/// The condition that a source of files has, and what its table says of each.
pub(super) struct Condition {
    text: String,
    predicate: Predicate,
    rows: HashMap<String, Box<[Datum]>>,
}

impl Condition {
    /// Reads the table, if the source has a condition.
    pub(super) fn of(source: &Source, root: &Folder, options: &ListingOptions<'_>) -> Result<Option<Self>> {
        let Some(text) = source.condition.clone() else { return Ok(None) };
        let predicate = predicate(&text)?;
        let table = Table::read(&**root.storage(), &table_path(source, root, options)?)?;
        let names = table.names()?;
        let key = match &source.table_columns {
            Some([key, _]) => table.column(&names, key, "Correct the source's `table_columns`")?,
            None => 0,
        };
        let columns = predicate.columns().iter().map(|name| table.column(&names, name, "Correct the source's `where`"));
        let rows = table.keyed(key, &columns.collect::<Result<Vec<_>>>()?)?;
        Ok(Some(Self { text, predicate, rows }))
    }

    /// Keeps the files that the table names. They have their labels before [the others](Self::keep_matching) are left out, so that all parts of a
    /// data set have the same classes.
    pub(super) fn keep_named(&self, entries: &mut Vec<Entry>, source: &Source) -> Result<()> {
        entries.retain(|entry| of_path(&self.rows, entry.path()).is_some());
        if entries.is_empty() { Err(unknown_files(source.table.as_deref().unwrap_or_default())) } else { Ok(()) }
    }

    /// Keeps those whose rows meet the condition.
    pub(super) fn keep_matching(&self, entries: &mut Vec<Entry>) -> Result<()> {
        let all = entries.len();
        let mut failure = Ok(());
        entries.retain(|entry| {
            let row = of_path(&self.rows, entry.path()).map_or(&[][..], |row| row);
            holds(&self.predicate, row, || entry.key.to_string()).unwrap_or_else(|error| {
                failure = Err(error);
                false
            })
        });
        failure?;
        if entries.is_empty() { Err(nothing_left(&self.text, all)) } else { Ok(()) }
    }
}

fn unknown_files(table: &str) -> Error {
    Error::Usage {
        problem: format!("the table `{table}` names none of the samples"),
        remedy: "its first column (or that of the source's `table_columns`) must have the paths of their files below the data folder, their \
                 names, or these without the extension"
            .to_owned(),
    }
}

/// The rows of Parquet or Arrow files that meet the condition that their source has, if it has one.
pub(super) fn matching_rows(listing: Listing) -> Result<Listing> {
    let Some(condition) = listing.source().condition.clone() else { return Ok(listing) };
    let predicate = predicate(&condition)?;
    let storage = Arc::clone(listing.root().storage());
    let reader = SourceReader::new(Arc::new(listing), storage);
    let mut columns = Vec::new();
    for name in predicate.columns() {
        columns.push(match reader.column(name)? {
            Some(cells) => cells,
            None => return Err(unknown_column(name, &reader.column_names()?)),
        });
    }
    let entries = reader.listing().entries();
    let mut takes = Vec::with_capacity(entries.len());
    for (number, entry) in entries.iter().enumerate() {
        let values = columns.iter().map(|cells| cell(&cells[number], &entry.key)).collect::<Result<Vec<_>>>()?;
        takes.push(holds(&predicate, &values, || entry.key.to_string())?);
    }
    if !takes.contains(&true) {
        return Err(nothing_left(&condition, takes.len()));
    }
    let mut takes = takes.into_iter();
    Ok(reader.listing().clone().part(|| takes.next().unwrap_or(false), true))
}

fn cell(cell: &forebay_record::Cell, key: &str) -> Result<Datum> {
    datum(cell).map_err(|problem| Error::Usage {
        problem: format!("`{key}` has {problem}"),
        remedy: "name another column in `where`".to_owned(),
    })
}

fn unknown_column(wanted: &str, names: &[String]) -> Error {
    let meant = nearest(wanted, names.iter().map(String::as_str));
    Error::Usage {
        problem: format!("`where` names a column `{wanted}`, but there are {}", listed(names)),
        remedy: match meant {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "name one of these, or give a table that has it (`--table`; in Python: `table=`)".to_owned(),
        },
    }
}

/// The numbers of the samples of `source` that meet `condition`: on the columns of a table whose first column names samples, on those that the source
/// has itself, where it is of Parquet or Arrow files, and on [`COLUMNS_OF_SAMPLES`].
pub fn matching(source: &dyn OpenSource, condition: &str, table: Option<(&dyn Storage, &Path)>) -> Result<Vec<u64>> {
    let predicate = predicate(condition)?;
    let table = table.map(|(storage, path)| Table::read(storage, path)).transpose()?;
    let in_table = table.as_ref().map(Table::names).transpose()?.unwrap_or_default();
    let mut known = in_table.clone();
    for name in source.column_names()?.into_iter().chain(COLUMNS_OF_SAMPLES.map(str::to_owned)) {
        // One column hides those of the same name behind it.
        if !known.contains(&name) {
            known.push(name);
        }
    }

    let mut places = Vec::new();
    let mut values: Vec<Option<Vec<Datum>>> = Vec::new();
    let mut keys: Option<Vec<(String, Option<LabelValue>)>> = None;
    for name in predicate.columns() {
        if let (Some(table), true) = (&table, in_table.contains(name)) {
            places.push(table.column(&in_table, name, "Correct the condition")?);
            values.push(None);
        } else if let Some(cells) = source.column(name)? {
            let of_row = |(number, found): (usize, &_)| cell(found, &source.key(number as u64));
            values.push(Some(cells.iter().enumerate().map(of_row).collect::<Result<_>>()?));
        } else if COLUMNS_OF_SAMPLES.contains(&name.as_str()) {
            let keys = match &keys {
                Some(keys) => keys,
                None => keys.insert(source.keys_and_labels()?),
            };
            values.push(Some(keys.iter().map(|known| of_sample(name, known, source.classes())).collect()));
        } else {
            return Err(unknown_column(name, &known));
        }
    }
    let rows = table.as_ref().map(|table| table.keyed(0, &places)).transpose()?;
    let keys = match (keys, &rows) {
        (Some(keys), _) => keys,
        (None, Some(_)) => source.keys_and_labels()?,
        (None, None) => Vec::new(),
    };

    let samples = source.samples();
    let (mut found, mut named) = (Vec::new(), false);
    for sample in 0..samples {
        let number = sample as usize;
        let row = match (&rows, keys.get(number)) {
            (Some(rows), Some((key, _))) => match of_path(rows, Path::new(key)) {
                Some(row) => &row[..],
                None => continue,
            },
            _ => &[],
        };
        named = true;
        let mut row = row.iter();
        let mut value = |column: Option<&Vec<Datum>>| match column {
            Some(column) => column.get(number).cloned().unwrap_or(Datum::Null),
            None => row.next().cloned().unwrap_or(Datum::Null),
        };
        let values: Vec<Datum> = values.iter().map(|column| value(column.as_ref())).collect();
        let key = || keys.get(number).map_or_else(|| source.key(sample), |(key, _)| key.clone());
        if holds(&predicate, &values, key)? {
            found.push(sample);
        }
    }
    match (&table, named, found.is_empty()) {
        (Some(table), false, _) => Err(unknown_files(&table.path.display().to_string())),
        (_, _, true) => Err(nothing_left(condition, samples as usize)),
        _ => Ok(found),
    }
}

/// What a sample has in one of its own columns.
fn of_sample(name: &str, (key, label): &(String, Option<LabelValue>), classes: &[String]) -> Datum {
    match (name, label) {
        ("key", _) => Datum::Text(key.clone()),
        ("label", Some(LabelValue::Int(number))) => Datum::Int(*number),
        ("label", Some(LabelValue::Float(number))) => Datum::Float(f64::from(*number)),
        (_, Some(LabelValue::Int(class))) => {
            let class = usize::try_from(*class).ok().and_then(|class| classes.get(class));
            class.map_or(Datum::Null, |class| Datum::Text(class.clone()))
        }
        _ => Datum::Null,
    }
}
