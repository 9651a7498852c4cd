//! Parquet files as shards: which of their columns are fields, and reading rows of them.
//!
//! A row group is what lies together: its columns' chunks are read at once where all of its rows are wanted. Where only some are, pages are found
//! by their headers and read one by one; what was inflated is kept for those who come next, since a page has many rows and a
//! dictionary those of a whole chunk.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_pipeline::SourceField;
use forebay_record::Cell;
use forebay_record::parquet::{
    Chunk, Column, ColumnPages, Metadata, PageEntry, RowGroup, read_chunk, read_column, read_page, refuse_unreadable,
};
use forebay_storage::{File, Storage};

use super::rows::{
    DICTIONARY, Group, PageCache, PageKey, Place, RowFile, Shape, WHOLE, Window, columns_of, piece_bytes,
};
use super::shards::shard_name;
use crate::error::{Error, Result};

/// A chunk of so many bytes or fewer is read whole, whatever is wanted of it.
const WHOLE_CHUNK_BYTES_MAX: u64 = 1 << 20;

/// A Parquet file, open.
pub(super) struct ParquetShard {
    path: PathBuf,
    name: Arc<str>,
    file: Box<dyn File>,
    piece_bytes: usize,
    metadata: Metadata,
    /// The column of each field; none where it may be missing and is.
    columns: Vec<Option<Column>>,
    groups: Vec<Group>,
    /// The pages of each field in each row group, once they were looked for; or what is wrong with them.
    pages: Vec<OnceLock<Result<ColumnPages, String>>>,
}

fn shape(column: &Column) -> Shape {
    Shape { name: column.name.clone(), kind: column.kind, lists: column.lists, type_name: column.type_name() }
}

impl ParquetShard {
    /// Opens the file at `path`, whose columns are `fields`.
    pub(super) fn open(storage: &dyn Storage, path: &Path, fields: &[SourceField]) -> Result<Self> {
        let file = storage.open(path)?;
        let name = shard_name(path);
        let piece_bytes = piece_bytes(storage, path);
        let metadata = Metadata::read(&Window::new(&*file, 0), &name)?;
        let names: Vec<&str> = metadata.columns.iter().map(|column| column.name.as_str()).collect();
        let find = |wanted: &str| metadata.column(wanted);
        let refuse = |column: &Column| -> Result<()> { Ok(refuse_unreadable(column, &name)?) };
        let columns = columns_of(fields, (&find, &refuse, &shape), &names, path)?;
        let groups = metadata.row_groups.iter().map(|group| extent(group, &columns)).collect();
        let pages = (0..metadata.row_groups.len() * fields.len()).map(|_| OnceLock::new()).collect();
        Ok(Self { path: path.to_owned(), name, file, piece_bytes, metadata, columns, groups, pages })
    }

    /// Where the pages of a field lie in a row group. What is wrong with them is found out once.
    fn pages(&self, place: Place, column: &Column, chunk: &Chunk) -> Result<&ColumnPages> {
        let slot = &self.pages[place.group * self.columns.len() + place.field];
        if slot.get().is_none() {
            let window = Window::new(&*self.file, self.piece_bytes);
            let found = match ColumnPages::scan(&window, column, chunk, &self.name) {
                Ok(pages) => Ok(pages),
                // Whoever could not read may try again.
                Err(error) if error.kind() != forebay_error::ErrorKind::Data => return Err(error),
                Err(error) => Err(error.to_string()),
            };
            let _ = slot.set(found);
        }
        match slot.get() {
            Some(Ok(pages)) => Ok(pages),
            Some(Err(problem)) => {
                Err(Error::Format { path: self.path.clone(), problem: format!("cannot be read: {problem}") })
            }
            None => Err(Error::internal("pages that were looked for and are not there")),
        }
    }
}

impl RowFile for ParquetShard {
    fn shapes(&self) -> Vec<Option<Shape>> {
        self.columns.iter().map(|column| column.as_ref().map(shape)).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.metadata.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn notes(&self) -> &[(String, String)] {
        &self.metadata.notes
    }

    fn column(&self, name: &str) -> Result<Option<Vec<Cell>>> {
        let Some(column) = self.metadata.column(name) else { return Ok(None) };
        let mut cells = Vec::new();
        refuse_unreadable(column, &self.name)?;
        for group in &self.metadata.row_groups {
            let chunk = group.chunk(column);
            let window = Window::new(&*self.file, chunk.length as usize);
            cells.append(&mut read_chunk(&window, (column, chunk), group.rows, &self.name)?);
        }
        Ok(Some(cells))
    }

    fn cells(&self, place: Place, rows: Range<usize>, kept: &PageCache) -> Result<Vec<Cell>> {
        let Some(column) = &self.columns[place.field] else { return Ok(vec![Cell::Null; rows.len()]) };
        let group = &self.metadata.row_groups[place.group];
        let chunk = group.chunk(column);
        let all = rows.len() as u64 == group.rows;
        let key = |page| PageKey { place, page };
        if all || column.lists > 0 || chunk.length <= WHOLE_CHUNK_BYTES_MAX {
            let read = || {
                let window = Window::new(&*self.file, chunk.length as usize);
                read_chunk(&window, (column, chunk), group.rows, &self.name)
            };
            return if all { read() } else { Ok(kept.get_or(key(WHOLE), read)?[rows].to_vec()) };
        }
        let pages = self.pages(place, column, chunk)?;
        let window = Window::new(&*self.file, 0);
        let read = |entry: &PageEntry, others: Option<&[Cell]>| {
            let (cells, _) = read_page(&window, (column, chunk), entry, others, &self.name)?;
            Ok(cells)
        };
        let others = match &pages.dictionary {
            Some(entry) => Some(kept.get_or(key(DICTIONARY), || read(entry, None))?),
            None => None,
        };
        let mut cells = Vec::with_capacity(rows.len());
        let first = pages.data.partition_point(|entry| entry.first_value + entry.values <= rows.start as u64);
        for (number, entry) in pages.data.iter().enumerate().skip(first) {
            let start = entry.first_value as usize;
            if start >= rows.end {
                break;
            }
            let page = kept.get_or(key(number as u32), || read(entry, others.as_ref().map(|others| &others[..])))?;
            let wanted = rows.start.max(start) - start..(rows.end - start).min(page.len());
            let short = || Error::Format {
                path: self.path.clone(),
                problem: format!("has too few values in a page of the column `{}`", column.name),
            };
            cells.extend_from_slice(page.get(wanted).ok_or_else(short)?);
        }
        if cells.len() == rows.len() { Ok(cells) } else { Err(Error::internal("pages that do not have their rows")) }
    }
}

/// Where the fields of a row group begin, and how many bytes they inflate to.
fn extent(group: &RowGroup, columns: &[Option<Column>]) -> Group {
    let chunks = || columns.iter().flatten().map(|column| group.chunk(column));
    Group {
        first_row: group.first_row,
        rows: group.rows,
        offset: chunks().map(|chunk| chunk.offset).min().unwrap_or_default(),
        bytes: chunks().map(|chunk| chunk.inflated_bytes).fold(0, u64::saturating_add),
        // Its pages are inflated for many rows at once.
        is_shared: true,
    }
}

/// Reads a column of a Parquet file that is in memory.
pub(super) fn column_in_memory(file: &Bytes, metadata: &Metadata, column: &Column, name: &str) -> Result<Vec<Cell>> {
    Ok(read_column(file, metadata, column, name)?)
}
