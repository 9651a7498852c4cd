//! Parquet files as shards: which of their columns are fields, and reading rows of them.
//!
//! A row group is what lies together: its columns' chunks are read at once where all of its rows are wanted. Where only some are, pages are found
//! by their headers and read one by one; what was inflated is kept for those who come next, since a page has many rows and a
//! dictionary those of a whole chunk.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_pipeline::{FieldType, Format, LABEL_FIELD, Source, SourceField, nearest};
use forebay_record::parquet::{
    Cell, Chunk, Column, ColumnPages, ColumnType, Input, Metadata, PageEntry, RowGroup, read_chunk, read_column,
    read_page, refuse_unreadable,
};
use forebay_storage::{File, Storage};

use super::reader::Content;
use super::shards::shard_name;
use crate::error::{Error, Result};
use crate::sync::Mutex;

/// A row group of so many bytes or fewer is read whole.
pub(super) const WHOLE_GROUP_BYTES_MAX: u64 = 16 << 20;

/// A chunk of so many bytes or fewer is read whole, whatever is wanted of it.
const WHOLE_CHUNK_BYTES_MAX: u64 = 1 << 20;

/// What is read at once where headers of pages are looked for: little, or as much as a store gives for the price of little.
const PIECE_BYTES: usize = 4 << 10;
const REMOTE_PIECE_BYTES: usize = 64 << 10;

/// What is kept of inflated pages, unless a budget says something else.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// So many fields a sample of a Parquet file may have.
pub(super) const FIELDS_MAX: usize = 64;

/// So many names of columns are listed in a message.
const NAMES_LISTED_MAX: usize = 16;

/// A file of a storage, for the reader of Parquet. Small reads are answered out of a larger one.
struct Window<'a> {
    file: &'a dyn File,
    piece_bytes: usize,
    held: RefCell<(u64, Bytes)>,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn File, piece_bytes: usize) -> Self {
        Self { file, piece_bytes, held: RefCell::default() }
    }
}

impl Input for Window<'_> {
    type Error = Error;

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes> {
        let mut held = self.held.borrow_mut();
        let (start, bytes) = &*held;
        if let Some(from) = offset.checked_sub(*start).and_then(|from| usize::try_from(from).ok())
            && let Some(end) = from.checked_add(length).filter(|end| *end <= bytes.len())
        {
            return Ok(bytes.slice(from..end));
        }
        let left = usize::try_from(self.file.size().saturating_sub(offset)).unwrap_or(usize::MAX);
        let bytes = self.file.read(offset, self.piece_bytes.max(length).min(left.max(length)))?;
        *held = (offset, bytes.clone());
        Ok(bytes.slice(..length))
    }
}

/// A Parquet file, open.
pub(super) struct ParquetShard {
    path: PathBuf,
    name: Arc<str>,
    file: Box<dyn File>,
    piece_bytes: usize,
    pub(super) metadata: Metadata,
    /// The column of each field; none where it may be missing and is.
    columns: Vec<Option<Column>>,
    /// The pages of each field in each row group, once they were looked for; or what is wrong with them.
    pages: Vec<OnceLock<Result<ColumnPages, String>>>,
    /// Held while a part of a row group is read, so that its pages are not inflated twice.
    turns: Vec<Mutex<()>>,
}

impl ParquetShard {
    /// Opens the file at `path`, whose columns are `fields`.
    pub(super) fn open(storage: &dyn Storage, path: &Path, fields: &[SourceField]) -> Result<Self> {
        let file = storage.open(path)?;
        let name = shard_name(path);
        let piece_bytes = if storage.reads_at_once(path) > 0 { REMOTE_PIECE_BYTES } else { PIECE_BYTES };
        let metadata = Metadata::read(&Window::new(&*file, 0), &name)?;
        let columns =
            fields.iter().map(|field| column_of(field, &metadata, path, &name)).collect::<Result<Vec<_>>>()?;
        let pages = (0..metadata.row_groups.len() * fields.len()).map(|_| OnceLock::new()).collect();
        let turns = metadata.row_groups.iter().map(|_| Mutex::new(())).collect();
        Ok(Self { path: path.to_owned(), name, file, piece_bytes, metadata, columns, pages, turns })
    }

    /// Where the fields of a row group begin, and how many bytes they inflate to.
    pub(super) fn extent(&self, group: &RowGroup) -> (u64, u64) {
        let chunks = || self.columns.iter().flatten().map(|column| group.chunk(column));
        let offset = chunks().map(|chunk| chunk.offset).min().unwrap_or_default();
        (offset, chunks().map(|chunk| chunk.inflated_bytes).fold(0, u64::saturating_add))
    }

    /// Reads all of a column.
    pub(super) fn column(&self, name: &str) -> Result<Option<Vec<Cell>>> {
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

    /// Reads rows of one group, those of the file that are numbered so.
    fn read(&self, shard: usize, rows: Range<u64>, kept: &PageCache) -> Result<Vec<Content>> {
        let groups = &self.metadata.row_groups;
        let place = groups.partition_point(|group| group.first_row + group.rows <= rows.start);
        let outside = || Error::internal("rows that are of no one row group");
        let group = groups.get(place).filter(|group| rows.end <= group.first_row + group.rows).ok_or_else(outside)?;
        let within = (rows.start - group.first_row) as usize..(rows.end - group.first_row) as usize;
        let whole = within.len() as u64 == group.rows;
        let turn = if whole { None } else { Some(self.turns[place].lock()) };
        let mut contents: Vec<Content> = Vec::new();
        for (field, column) in self.columns.iter().enumerate() {
            let cells = match column {
                Some(column) => self.cells((shard, place, field), column, group, within.clone(), kept)?,
                None => vec![Cell::Null; within.len()],
            };
            if field == 0 {
                contents = (0..within.len()).map(|_| Content::default()).collect();
            }
            for (content, cell) in contents.iter_mut().zip(cells) {
                content.push(field, packed(cell));
            }
        }
        drop(turn);
        Ok(contents)
    }

    /// The values of a field in some rows of a row group.
    fn cells(
        &self,
        (shard, place, field): (usize, usize, usize),
        column: &Column,
        group: &RowGroup,
        rows: Range<usize>,
        kept: &PageCache,
    ) -> Result<Vec<Cell>> {
        let chunk = group.chunk(column);
        let all = rows.len() as u64 == group.rows;
        let key = |page| PageKey { shard, group: place, field, page };
        if all || column.lists > 0 || chunk.length <= WHOLE_CHUNK_BYTES_MAX {
            let read = || {
                let window = Window::new(&*self.file, chunk.length as usize);
                read_chunk(&window, (column, chunk), group.rows, &self.name)
            };
            return if all { read() } else { Ok(kept.get_or(key(WHOLE_CHUNK), read)?[rows].to_vec()) };
        }
        let pages = self.pages(place, field, column, chunk)?;
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

    /// Where the pages of a field lie in a row group. What is wrong with them is found out once.
    fn pages(&self, group: usize, field: usize, column: &Column, chunk: &Chunk) -> Result<&ColumnPages> {
        let slot = &self.pages[group * self.columns.len() + field];
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

/// What the bytes of a cell are until the sample is unpacked; none where there is nothing.
fn packed(cell: Cell) -> Option<Bytes> {
    let bytes = |parts: Vec<u8>| Some(Bytes::from(parts));
    match cell {
        Cell::Null => None,
        Cell::Bytes(bytes) => Some(bytes),
        Cell::Bool(is) => bytes(i64::from(is).to_le_bytes().into()),
        Cell::Int(number) => bytes(number.to_le_bytes().into()),
        Cell::Float(number) => bytes(number.to_le_bytes().into()),
        Cell::Ints(list) => bytes(list.iter().flat_map(|number| number.to_le_bytes()).collect()),
        Cell::Floats(list) => bytes(list.iter().flat_map(|number| number.to_le_bytes()).collect()),
    }
}

/// The cell that was packed so, of a column.
pub(super) fn unpacked(column: Option<&Column>, bytes: Option<&Bytes>) -> Cell {
    let (Some(column), Some(bytes)) = (column, bytes) else { return Cell::Null };
    let ints = || bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number));
    let floats = || bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number));
    match (column.kind, column.lists) {
        (ColumnType::Text | ColumnType::Binary | ColumnType::Other(_), _) => Cell::Bytes(bytes.clone()),
        (ColumnType::Float(_), 0) => floats().next().map_or(Cell::Null, Cell::Float),
        (ColumnType::Float(_), _) => Cell::Floats(floats().collect()),
        (_, 0) => ints().next().map_or(Cell::Null, Cell::Int),
        (_, _) => Cell::Ints(ints().collect()),
    }
}

/// The column that `field` is read from; none where it may be missing and is.
fn column_of(field: &SourceField, metadata: &Metadata, path: &Path, name: &str) -> Result<Option<Column>> {
    let found = field.from.split(';').find_map(|wanted| metadata.column(wanted.trim()));
    let Some(column) = found else {
        return if field.optional { Ok(None) } else { Err(missing(&field.from, metadata, path)) };
    };
    refuse_unreadable(column, name)?;
    let is_text = matches!(column.kind, ColumnType::Text | ColumnType::Binary);
    let fits = match &field.kind {
        FieldType::Bytes | FieldType::Text | FieldType::Json => is_text,
        FieldType::Int => column.lists == 0 && !matches!(column.kind, ColumnType::Float(_)),
        FieldType::Tensor { dims, .. } => is_text || dims.len() == column.lists as usize,
    };
    if fits {
        return Ok(Some(column.clone()));
    }
    Err(Error::Usage {
        problem: format!(
            "the column `{}` of `{}` is {}, but the source's field `{}` is {}",
            column.name,
            path.display(),
            column.type_name(),
            field.field,
            field.kind
        ),
        remedy: "give the field another `type` or column in the source's `fields`: numbers are `int` or `float32[]`, lists of them `float32[?]`"
            .to_owned(),
    })
}

/// That there is no such column, and which there are.
pub(super) fn missing(wanted: &str, metadata: &Metadata, path: &Path) -> Error {
    let names = || metadata.columns.iter().map(|column| column.name.as_str());
    let listed: Vec<String> = names().take(NAMES_LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let more = if metadata.columns.len() > NAMES_LISTED_MAX { ", …" } else { "" };
    // A structure stands for its bytes.
    let choices: Vec<&str> = names().filter_map(|name| name.strip_suffix(".bytes")).chain(names()).collect();
    let meant = wanted.split(';').find_map(|wanted| nearest(wanted.trim(), choices.iter().copied()));
    Error::Usage {
        problem: format!("`{}` has no column `{wanted}`, but {}{more}", path.display(), listed.join(", ")),
        remedy: match meant {
            Some(meant) => format!("did you mean `{meant}`? Name columns in the source's `fields`"),
            None => "name columns in the source's `fields` (in Python: `fields={\"image\": \"image\"}`), or do without labels: `label = \"none\"`"
                .to_owned(),
        },
    }
}

/// The names of the classes that Hugging Face's writers note for the column of labels.
pub(super) fn noted_classes(metadata: &Metadata, source: &Source) -> Option<Vec<String>> {
    let fields = source.read_fields();
    let label = fields.iter().find(|field| field.field == LABEL_FIELD)?;
    let (_, text) = metadata.notes.iter().find(|(key, _)| key == "huggingface")?;
    let noted: serde_json::Value = serde_json::from_str(text).ok()?;
    let features = noted.get("info")?.get("features")?;
    let feature = label.from.split(';').find_map(|column| features.get(column.trim()))?;
    let names = feature.get("names")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A page that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageKey {
    shard: usize,
    group: usize,
    field: usize,
    page: u32,
}

/// Numbers of pages that are none of a chunk's data.
const WHOLE_CHUNK: u32 = u32::MAX;
const DICTIONARY: u32 = u32::MAX - 1;

/// The pages of a source that were inflated last, within a limit: the one that was used last is at the end.
struct PageCache {
    pages: Mutex<Pages>,
    /// So many are kept in any case: those that the next row needs.
    pages_min: usize,
}

struct Pages {
    held: VecDeque<(PageKey, Arc<Vec<Cell>>, u64)>,
    bytes: u64,
    bytes_max: u64,
    bytes_peak: u64,
}

impl PageCache {
    fn new(fields: usize) -> Self {
        let pages = Pages { held: VecDeque::new(), bytes: 0, bytes_max: KEPT_BYTES_MAX, bytes_peak: 0 };
        Self { pages: Mutex::new(pages), pages_min: 2 * fields }
    }

    /// The page `key`, or what `read` gives.
    fn get_or(&self, key: PageKey, read: impl FnOnce() -> Result<Vec<Cell>>) -> Result<Arc<Vec<Cell>>> {
        {
            let mut pages = self.pages.lock();
            if let Some(place) = pages.held.iter().rposition(|(held, _, _)| *held == key)
                && let Some(found) = pages.held.remove(place)
            {
                let page = Arc::clone(&found.1);
                pages.held.push_back(found);
                return Ok(page);
            }
        }
        let page = Arc::new(read()?);
        let bytes = page.iter().map(Cell::memory_bytes).sum();
        let mut pages = self.pages.lock();
        pages.bytes += bytes;
        pages.held.push_back((key, Arc::clone(&page), bytes));
        pages.shrink(self.pages_min);
        Ok(page)
    }
}

impl Pages {
    fn shrink(&mut self, pages_min: usize) {
        while self.bytes > self.bytes_max
            && self.held.len() > pages_min
            && let Some((_, _, bytes)) = self.held.pop_front()
        {
            self.bytes -= bytes;
        }
        self.bytes_peak = self.bytes_peak.max(self.bytes);
    }
}

/// The Parquet files of a source, each opened when it is first read.
pub(super) struct ParquetFiles {
    fields: Vec<SourceField>,
    open: Vec<OnceLock<ParquetShard>>,
    kept: PageCache,
}

impl ParquetFiles {
    pub(super) fn new(count: usize, fields: Vec<SourceField>) -> Self {
        let kept = PageCache::new(fields.len());
        Self { fields, open: (0..count).map(|_| OnceLock::new()).collect(), kept }
    }

    /// File number `shard`, which lies at `path`.
    pub(super) fn get(&self, shard: usize, storage: &dyn Storage, path: &Path) -> Result<&ParquetShard> {
        if let Some(open) = self.open[shard].get() {
            return Ok(open);
        }
        let open = ParquetShard::open(storage, path, &self.fields)?;
        Ok(self.open[shard].get_or_init(|| open))
    }

    /// Reads rows of one row group of file number `shard`.
    pub(super) fn read(
        &self,
        shard: usize,
        storage: &dyn Storage,
        path: &Path,
        rows: Range<u64>,
    ) -> Result<Vec<Content>> {
        self.get(shard, storage, path)?.read(shard, rows, &self.kept)
    }

    /// The values of a row, as it was read.
    pub(super) fn row<'a>(
        &'a self,
        (shard, storage, path): (usize, &dyn Storage, &Path),
        content: &'a Content,
    ) -> Result<impl Iterator<Item = (&'a SourceField, Cell)>> {
        let file = self.get(shard, storage, path)?;
        let fields = self.fields.iter().zip(&file.columns).enumerate();
        Ok(fields.map(|(place, (field, column))| (field, unpacked(column.as_ref(), content.part(place)))))
    }

    /// Limits what is kept of inflated pages.
    pub(super) fn limit(&self, bytes_max: u64) {
        let mut pages = self.kept.pages.lock();
        pages.bytes_max = bytes_max;
        pages.shrink(self.kept.pages_min);
    }

    /// How many bytes were kept at most, and are now.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let pages = self.kept.pages.lock();
        (pages.bytes_peak, pages.bytes)
    }
}

/// Reads a column of a Parquet file that is in memory.
pub(super) fn column_in_memory(file: &Bytes, metadata: &Metadata, column: &Column, name: &str) -> Result<Vec<Cell>> {
    Ok(read_column(file, metadata, column, name)?)
}

/// An error if there are more fields than a sample of a Parquet file may have.
pub(super) fn check_fields(source: &Source) -> Result<()> {
    let fields = source.read_fields().len();
    if source.format == Format::Parquet && fields > FIELDS_MAX {
        return Err(Error::Limit {
            problem: format!("the source has {fields} fields, and a Parquet source at most {FIELDS_MAX}"),
            remedy: "leave some of them out".to_owned(),
        });
    }
    Ok(())
}
