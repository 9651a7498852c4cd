//! Everything about several profiles as one table, for other programs.

use serde::Serialize;
use serde_json::Value;

use crate::analysis::analyze;
use crate::error::{Error, Result};
use crate::objective::Objective;
use crate::profile::Profile;

/// Columns of one kind of value each, and rows: one for each strategy of each profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The columns: the settings of the profile, the strategy, and then in alphabetical order the keys of [`crate::Analyzed`] in JSON, with
    /// `.` between those of nested ones.
    pub columns: Vec<Column>,
    /// The rows: a cell for each column.
    pub rows: Vec<Vec<Option<Cell>>>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Column {
    /// Its name.
    pub name: String,
}

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Whole(i64),
    /// A measurement.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

/// The analysis of all `profiles` by `objective` as one table. Columns that hold nothing anywhere are left out.
pub fn table(profiles: &[&Profile], objective: &Objective) -> Result<Table> {
    let mut table = Table { columns: Vec::new(), rows: Vec::new() };
    for (number, profile) in profiles.iter().enumerate() {
        for strategy in analyze(profile, objective)?.strategies {
            let mut cells = settings(number, profile);
            cells.push(("strategy".to_owned(), Cell::Text(strategy.ranked.summary.name.clone())));
            let value = serde_json::to_value(&strategy).map_err(|source| Error::Write { what: "profile", source })?;
            flatten("", &value, &mut cells);
            cells.retain(|(name, _)| name != "name");
            table.add(cells);
        }
    }
    Ok(table)
}

/// What sets this profile apart from the others.
fn settings(number: usize, profile: &Profile) -> Vec<(String, Cell)> {
    let whole = |count: u64| Cell::Whole(i64::try_from(count).unwrap_or(i64::MAX));
    let caching = serde_json::to_value(profile.method.caching).ok();
    let caching = caching.and_then(|caching| caching.as_str().map(str::to_owned)).unwrap_or_default();
    let cells = [
        ("profile", whole(number as u64)),
        ("pipeline", Cell::Text(profile.pipeline.name.clone())),
        ("storage", Cell::Text(profile.storage.name.clone())),
        ("caching", Cell::Text(caching)),
        ("threads", whole(profile.method.threads as u64)),
        ("shards", whole(profile.method.shards as u64)),
        ("sample_count", whole(profile.method.sample_count)),
        ("samples_total", whole(profile.data.samples)),
    ];
    cells.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect()
}

fn flatten(prefix: &str, value: &Value, cells: &mut Vec<(String, Cell)>) {
    let cell = match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&name, value, cells);
            }
            return;
        }
        // No list is part of an analysis.
        Value::Null | Value::Array(_) => return,
        Value::String(text) => Cell::Text(text.clone()),
        Value::Bool(flag) => Cell::Flag(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cell::Whole(whole),
            None => Cell::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
    };
    cells.push((prefix.to_owned(), cell));
}

impl Table {
    fn add(&mut self, cells: Vec<(String, Cell)>) {
        let mut row: Vec<Option<Cell>> = vec![None; self.columns.len()];
        for (name, cell) in cells {
            if let Some(at) = self.columns.iter().position(|column| column.name == name) {
                row[at] = Some(cell);
            } else {
                // Earlier rows have nothing in a column that comes later.
                self.columns.push(Column { name });
                self.rows.iter_mut().for_each(|row| row.push(None));
                row.push(Some(cell));
            }
        }
        self.rows.push(row);
    }

    /// The table as CSV (RFC 4180), numbers with every digit; what is missing is empty.
    pub fn to_csv(&self) -> String {
        let names: Vec<String> = self.columns.iter().map(|column| quoted(&column.name)).collect();
        let mut text = names.join(",") + "\r\n";
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().map(|cell| cell.as_ref().map_or_else(String::new, Cell::to_csv)).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        }
        text
    }
}

impl Cell {
    /// The value as words, with every digit.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Whole(whole) => whole.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }

    fn to_csv(&self) -> String {
        quoted(&self.text())
    }
}

/// In quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
