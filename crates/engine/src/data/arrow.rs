//! Arrow's IPC files as shards: which of their columns are fields, and reading rows of them.
//!
//! A batch is what lies together. Where its buffers are not compressed, some rows of it are read by themselves: what says where values lie is read
//! once and kept, and then the values of these rows. Compressed buffers are inflated whole, and kept for those who come next.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_pipeline::{Format, Source, SourceField};
use forebay_record::arrow::{ArrowFile, Batch, Column, inflated_bytes, read_dictionary, read_rows, refuse_unreadable};
use forebay_record::{Cell, Compression, Input};
use forebay_storage::{File, Folder, Storage};
use serde::Deserialize;

use super::rows::{
    DICTIONARY, Group, LEAD, PageCache, PageKey, Place, RowFile, Shape, WHOLE, Window, columns_of, piece_bytes,
};
use super::shards::shard_name;
use crate::error::{Error, Result};

/// The values of a column in a batch that have so many bytes or fewer are read whole, whatever is wanted of them.
const WHOLE_COLUMN_BYTES_MAX: u64 = 1 << 20;

/// What says where values lie is kept where it has so many bytes or fewer: that of half a million values.
const LEAD_BYTES_MAX: u64 = 4 << 20;

/// A file of a storage, for the reader of Arrow, and bytes of it that were read.
struct Held<'a> {
    file: &'a dyn File,
    start: u64,
    bytes: Bytes,
}

impl<'a> Held<'a> {
    /// With the bytes of `range`.
    fn read(file: &'a dyn File, range: Range<u64>) -> Result<Self> {
        let length = (range.end - range.start) as usize;
        let bytes = if length == 0 { Bytes::new() } else { file.read(range.start, length)? };
        Ok(Self { file, start: range.start, bytes })
    }
}

impl Input for Held<'_> {
    type Error = Error;

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        if let Some(from) = offset.checked_sub(self.start).and_then(|from| usize::try_from(from).ok())
            && let Some(end) = from.checked_add(length).filter(|end| *end <= self.bytes.len())
        {
            return Ok(self.bytes.slice(from..end));
        }
        Ok(self.file.read(offset, length)?)
    }
}

/// An Arrow file, open.
pub(super) struct ArrowShard {
    name: Arc<str>,
    file: Box<dyn File>,
    found: ArrowFile,
    /// The column of each field; none where it may be missing and is.
    columns: Vec<Option<Column>>,
    groups: Vec<Group>,
}

fn shape(column: &Column) -> Shape {
    Shape { name: column.name.clone(), kind: column.kind, lists: column.lists, type_name: column.type_name() }
}

impl ArrowShard {
    /// Opens the file at `path`, whose columns are `fields`.
    pub(super) fn open(storage: &dyn Storage, path: &Path, fields: &[SourceField]) -> Result<Self> {
        let file = storage.open(path)?;
        let name = shard_name(path);
        let found = ArrowFile::read(&Window::new(&*file, piece_bytes(storage, path)), &name)?;
        let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
        let find = |wanted: &str| found.column(wanted);
        let refuse = |column: &Column| -> Result<()> { Ok(refuse_unreadable(column, &name)?) };
        let columns = columns_of(fields, (&find, &refuse, &shape), &names, path)?;
        let groups = found.batches.iter().map(|batch| extent(&*file, batch, &columns, &name));
        let groups = groups.collect::<Result<_>>()?;
        Ok(Self { name, file, found, columns, groups })
    }

    /// The values of the dictionary that a column has in a batch, if it has one.
    fn dictionary(
        &self,
        (column, batch): (&Column, &Batch),
        place: Place,
        kept: &PageCache,
    ) -> Result<Option<Arc<Vec<Cell>>>> {
        let Some(number) = self.found.dictionary_number(column, batch) else { return Ok(None) };
        // Batches share it.
        let key = PageKey { place: Place { group: number, ..place }, page: DICTIONARY };
        let read = || {
            let input = Held::read(&*self.file, 0..0)?;
            Ok(read_dictionary(&input, &self.found, (column, batch), &self.name)?.unwrap_or_default())
        };
        kept.get_or(key, read).map(Some)
    }
}

/// Where the buffers of a batch begin, and how many bytes those of the fields have, inflated.
fn extent(file: &dyn File, batch: &Batch, columns: &[Option<Column>], name: &str) -> Result<Group> {
    let input = Window::new(file, 0);
    let mut bytes = 0_u64;
    for column in columns.iter().flatten() {
        bytes = bytes.saturating_add(inflated_bytes(&input, (column, batch), name)?);
    }
    let (offset, is_shared) = (batch.offset, batch.is_compressed());
    Ok(Group { first_row: batch.first_row, rows: batch.rows, offset, bytes, is_shared })
}

/// An error for a folder with several data sets that are not meant to be one: a `DatasetDict` of `datasets` has its splits in folders.
pub(super) fn check_splits(source: &Source, root: &Folder) -> Result<()> {
    let path = root.file(Path::new(SPLITS_FILE));
    if source.format != Format::Arrow || source.files.is_some() || root.storage().status(&path)?.is_none() {
        return Ok(());
    }
    let text = root.storage().read_file(&path, SPLITS_BYTES_MAX)?;
    let noted: Option<Splits> = serde_json::from_slice(&text).ok();
    let Some(splits) = noted.map(|noted| noted.splits).filter(|splits| splits.len() > 1) else { return Ok(()) };
    let listed: Vec<String> = splits.iter().take(SPLITS_LISTED_MAX).map(|split| format!("`{split}`")).collect();
    Err(Error::Usage {
        problem: format!("`{}` has several splits: {}", root.path().display(), listed.join(", ")),
        remedy: format!(
            "name the folder of one (`{}`), or say in the source which files are meant: `files = \"{}/*.arrow\"`",
            root.file(Path::new(&splits[0])).display(),
            splits[0]
        ),
    })
}

/// Where `datasets` notes the splits of a folder, and how much of it is read and shown.
const SPLITS_FILE: &str = "dataset_dict.json";
const SPLITS_BYTES_MAX: u64 = 1 << 20;
const SPLITS_LISTED_MAX: usize = 16;

#[derive(Deserialize)]
struct Splits {
    splits: Vec<String>,
}

impl RowFile for ArrowShard {
    fn shapes(&self) -> Vec<Option<Shape>> {
        self.columns.iter().map(|column| column.as_ref().map(shape)).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.found.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn groups(&self) -> &[Group] {
        &self.groups
    }

    fn notes(&self) -> &[(String, String)] {
        &self.found.notes
    }

    fn compression(&self) -> Compression {
        match self.found.batches.iter().find(|batch| batch.is_compressed()) {
            Some(batch) if batch.is_lz4() => Compression::Lz4,
            Some(_) => Compression::Zstd,
            None => Compression::None,
        }
    }

    fn column(&self, name: &str) -> Result<Option<Vec<Cell>>> {
        let Some(column) = self.found.column(name) else { return Ok(None) };
        refuse_unreadable(column, &self.name)?;
        let (mut cells, mut number, mut dictionary) = (Vec::new(), None::<usize>, None);
        for batch in &self.found.batches {
            let input = Held::read(&*self.file, self.found.extent(column, batch))?;
            // Most batches have the dictionary of the one before.
            let wanted = self.found.dictionary_number(column, batch);
            if wanted != number {
                dictionary = read_dictionary(&input, &self.found, (column, batch), &self.name)?;
                number = wanted;
            }
            let rows = 0..batch.rows;
            cells.append(&mut read_rows(&input, (column, batch), rows, dictionary.as_deref(), &self.name)?);
        }
        Ok(Some(cells))
    }

    fn cells(&self, place: Place, rows: Range<usize>, kept: &PageCache) -> Result<Vec<Cell>> {
        let Some(column) = &self.columns[place.field] else { return Ok(vec![Cell::Null; rows.len()]) };
        let batch = &self.found.batches[place.group];
        let dictionary = self.dictionary((column, batch), place, kept)?;
        let extent = self.found.extent(column, batch);
        let read = |input: &Held<'_>, rows: Range<u64>| {
            let dictionary = dictionary.as_ref().map(|values| &values[..]);
            read_rows(input, (column, batch), rows, dictionary, &self.name)
        };
        let whole = || read(&Held::read(&*self.file, extent.clone())?, 0..batch.rows);
        if rows.len() as u64 == batch.rows {
            return whole();
        }
        let bytes = extent.end - extent.start;
        if batch.is_compressed() || bytes <= WHOLE_COLUMN_BYTES_MAX {
            let all = kept.get_or(PageKey { place, page: WHOLE }, whole)?;
            return all.get(rows).map(<[Cell]>::to_vec).ok_or_else(|| Error::internal("a batch without its rows"));
        }
        let lead = self.found.lead(column, batch);
        let mut input = Held::read(&*self.file, 0..0)?;
        if lead.end - lead.start <= LEAD_BYTES_MAX {
            let read = || Ok(vec![Cell::Bytes(Held::read(&*self.file, lead.clone())?.bytes)]);
            let held = kept.get_or(PageKey { place, page: LEAD }, read)?;
            if let Some(Cell::Bytes(bytes)) = held.first() {
                (input.start, input.bytes) = (lead.start, bytes.clone());
            }
        }
        read(&input, rows.start as u64..rows.end as u64)
    }
}
