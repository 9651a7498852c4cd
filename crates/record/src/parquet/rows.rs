//! Rows out of chunks.

use super::metadata::{Chunk, Metadata};
use super::page::{ColumnPages, PageEntry};
use super::schema::Column;
use super::values::{cells, dictionary};
use super::{Cell, FORMAT, Fault, Input, reserved};
use crate::columns::unreadable;
use crate::error::Error;

/// Reads a page: the values of a dictionary, where it is one, otherwise its cells; and whether the first of them goes on with the last list
/// of the page before. `others` are the values of the chunk's dictionary, if it has one.
pub fn read_page<I: Input>(
    input: &I,
    (column, chunk): (&Column, &Chunk),
    entry: &PageEntry,
    others: Option<&[Cell]>,
    shard: &str,
) -> Result<(Vec<Cell>, bool), I::Error> {
    let page = entry.read(input, chunk, column, shard)?;
    let read = if entry.is_dictionary() {
        dictionary(entry, &page, column).map(|cells| (cells, false))
    } else {
        cells(entry, &page, column, others)
    };
    read.map_err(|fault| fault.at(FORMAT, shard, entry.offset, &column.name).into())
}

/// Reads all of a column, row by row, of the whole file.
pub fn read_column<I: Input>(
    input: &I,
    metadata: &Metadata,
    column: &Column,
    shard: &str,
) -> Result<Vec<Cell>, I::Error> {
    refuse_unreadable(column, shard)?;
    let mut all = reserved(metadata.rows as usize).map_err(|fault| fault.at(FORMAT, shard, 0, &column.name))?;
    for group in &metadata.row_groups {
        all.append(&mut read_chunk(input, (column, group.chunk(column)), group.rows, shard)?);
    }
    Ok(all)
}

/// Reads the `rows` rows of a chunk.
pub fn read_chunk<I: Input>(
    input: &I,
    (column, chunk): (&Column, &Chunk),
    rows: u64,
    shard: &str,
) -> Result<Vec<Cell>, I::Error> {
    let mut all = Vec::new();
    let pages = ColumnPages::scan(input, column, chunk, shard)?;
    let others = pages.dictionary.as_ref().map(|entry| read_page(input, (column, chunk), entry, None, shard));
    let others = others.transpose()?.map(|(cells, _)| cells);
    for entry in &pages.data {
        let (cells, goes_on) = read_page(input, (column, chunk), entry, others.as_deref(), shard)?;
        add(&mut all, cells, goes_on);
    }
    let found = all.len() as u64;
    if found == rows {
        return Ok(all);
    }
    let problem = format!("it has {found} rows of {rows}");
    Err(Fault::Damaged(problem).at(FORMAT, shard, chunk.offset, &column.name).into())
}

/// An error if a column's values cannot be read here, which names it and its type.
pub fn refuse_unreadable(column: &Column, shard: &str) -> Result<(), Error> {
    if column.is_readable() { Ok(()) } else { Err(unreadable(&column.name, &column.type_name(), shard)) }
}

/// Adds the cells of the next page to those of the pages before.
fn add(all: &mut Vec<Cell>, mut cells: Vec<Cell>, goes_on: bool) {
    if goes_on && !cells.is_empty() {
        match (all.last_mut(), cells.remove(0)) {
            (Some(Cell::Ints(last)), Cell::Ints(more)) => *last = [&last[..], &more].concat().into(),
            (Some(Cell::Floats(last)), Cell::Floats(more)) => *last = [&last[..], &more].concat().into(),
            // Found out by the number of rows.
            _ => {}
        }
    }
    all.append(&mut cells);
}
