//! A table of labels: a file of rows, with a column for the path of a file and one for its label.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use forebay_pipeline::{Rows, Source, nearest};
use forebay_storage::Folder;

use super::listing::{ListingOptions, outside};
use super::table::{Table, TableContent};
use crate::error::{Error, Result};

/// So many names of columns are listed in a message.
const NAMES_LISTED_MAX: usize = 12;

/// The label of each path (or name, or stem) in the table that the source names.
pub(super) fn read_table(
    source: &Source,
    root: &Folder,
    options: &ListingOptions<'_>,
) -> Result<HashMap<String, String>> {
    let table = Table::read(&**root.storage(), &table_path(source, root, options)?)?;
    match &table.content {
        TableContent::Text(text) => parse(text, source.table_columns.as_ref(), &table.path),
        TableContent::Parquet(..) => of_parquet(&table, source.table_columns.as_ref()),
    }
}

/// The labels of a Parquet file.
fn of_parquet(table: &Table, chosen: Option<&[String; 2]>) -> Result<HashMap<String, String>> {
    let names = table.names()?;
    let [key, label] = if let Some([key, label]) = chosen {
        let remedy = "Correct the source's `table_columns`";
        [table.column(&names, key, remedy)?, table.column(&names, label, remedy)?]
    } else {
        let first: Vec<Cow<'_, str>> = names.iter().map(|name| Cow::Borrowed(name.as_str())).collect();
        columns_of(&first, None, 1, &table.path)?
    };
    let mut labels = HashMap::new();
    for (key, row) in table.keyed(key, &[label])? {
        let called = format!("the row of `{key}`");
        let label = row.into_iter().next().map_or(Ok(String::new()), |label| table.text(label, &called))?;
        labels.insert(key, label);
    }
    Ok(labels)
}

/// The path of the table that the source names.
pub(super) fn table_path(source: &Source, root: &Folder, options: &ListingOptions<'_>) -> Result<PathBuf> {
    let name = source.table.as_deref().ok_or_else(|| Error::Usage {
        problem: "the source has `label = \"table\"` but no `table`".to_owned(),
        remedy: "add `table = \"labels.csv\"`, a file below the data folder".to_owned(),
    })?;
    let below = options.reach.below(root.path(), Path::new(name));
    let below = below.ok_or_else(|| outside(format!("the label table `{name}` lies outside the data folder")))?;
    Ok(root.file(below))
}

fn parse(text: &str, chosen: Option<&[String; 2]>, path: &Path) -> Result<HashMap<String, String>> {
    let wrong = |line: usize, problem: String| {
        Err(Error::Format { path: path.to_owned(), problem: format!("line {line} {problem}") })
    };
    let mut rows = Rows::new(text);
    let mut table: HashMap<String, String> = HashMap::new();
    let mut columns = None;
    while let Some(row) = rows.next_row() {
        let (line, fields) = match row {
            Ok(row) => row,
            Err((line, problem)) => return wrong(line, problem.to_owned()),
        };
        let (count, [key, label]) = if let Some(columns) = columns {
            columns
        } else {
            let found = (fields.len(), columns_of(&fields, chosen, line, path)?);
            columns = Some(found);
            if chosen.is_some() {
                continue;
            }
            found
        };
        if fields.len() != count {
            return wrong(line, format!("has {} columns, but the first has {count}", fields.len()));
        }
        // As `find` and others write paths.
        let (key, label) = (fields[key].trim_start_matches("./"), &fields[label]);
        match table.insert(key.to_string(), label.to_string()) {
            Some(other) if other != **label => {
                return wrong(line, format!("gives `{key}` the label `{label}`, but it had `{other}`"));
            }
            _ => {}
        }
    }
    Ok(table)
}

/// Which of the columns have the path and the label, by the first row.
fn columns_of(first: &[Cow<'_, str>], chosen: Option<&[String; 2]>, line: usize, path: &Path) -> Result<[usize; 2]> {
    let listed: Vec<String> = first.iter().take(NAMES_LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let listed = listed.join(", ") + if first.len() > NAMES_LISTED_MAX { ", …" } else { "" };
    let Some(chosen) = chosen else {
        return match first.len() {
            1 => Err(Error::Format {
                path: path.to_owned(),
                problem: format!("line {line} has no tab and no comma: expected path, tab, label; found {listed}"),
            }),
            2 => Ok([0, 1]),
            count => Err(Error::Usage {
                problem: format!("the label table `{}` has {count} columns: {listed}", path.display()),
                remedy: format!(
                    "say which have the files and the labels, by their names in the first line: `table_columns = [\"{}\", \
                     \"{}\"]` (in Python: `table_columns`)",
                    first[0], first[1]
                ),
            }),
        };
    };
    let index = |name: &String| {
        let mut indexes = first.iter().enumerate().filter(|(_, found)| *found == name).map(|(index, _)| index);
        let problem = match (indexes.next(), indexes.next()) {
            (Some(index), None) => return Ok(index),
            (Some(_), Some(_)) => "twice",
            (None, _) => "not",
        };
        let meant = nearest(name, first.iter().map(|found| &**found)).filter(|_| problem == "not");
        Err(Error::Usage {
            problem: format!(
                "the label table `{}` has {problem} a column `{name}` in its first line, but {listed}",
                path.display()
            ),
            remedy: match meant {
                Some(meant) => format!("did you mean `{meant}`? Correct the source's `table_columns`"),
                None => "correct the source's `table_columns`, or the table".to_owned(),
            },
        })
    };
    Ok([index(&chosen[0])?, index(&chosen[1])?])
}
