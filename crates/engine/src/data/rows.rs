//! Files of rows as shards: which of their columns are fields, and reading some of their rows. Parquet and Arrow differ in how a column is read
//! ([`RowFile`]); what is kept between rows is the same.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_pipeline::{FieldType, Format, LABEL_FIELD, Source, SourceField, nearest};
use forebay_record::{Cell, ColumnType, Compression, Input};
use forebay_storage::{File, Storage};

use super::arrow::ArrowShard;
use super::parquet::ParquetShard;
use super::reader::Content;
use crate::error::{Error, Result};
use crate::sync::Mutex;

/// A row group of so many bytes or fewer is read whole.
pub(super) const WHOLE_GROUP_BYTES_MAX: u64 = 16 << 20;

/// What is kept of inflated pages, unless a budget says something else.
const KEPT_BYTES_MAX: u64 = 64 << 20;

/// So many fields a sample of a file of rows may have.
pub(super) const FIELDS_MAX: usize = 64;

/// So many names of columns are listed in a message.
const NAMES_LISTED_MAX: usize = 16;

/// What is read at once where headers of pages, or messages, are looked for: little, or as much as a store gives for the price of little.
const PIECE_BYTES: usize = 4 << 10;
const REMOTE_PIECE_BYTES: usize = 64 << 10;

/// How much that is of the file at `path`.
pub(super) fn piece_bytes(storage: &dyn Storage, path: &Path) -> usize {
    if storage.reads_at_once(path) > 0 { REMOTE_PIECE_BYTES } else { PIECE_BYTES }
}

/// A file of a storage, for a reader of columns. Small reads are answered out of a larger one.
pub(super) struct Window<'a> {
    file: &'a dyn File,
    piece_bytes: usize,
    held: RefCell<(u64, Bytes)>,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a dyn File, piece_bytes: usize) -> Self {
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

/// A file of rows, open.
pub(super) trait RowFile: Send + Sync {
    /// What the column of each field is; none where it may be missing and is.
    fn shapes(&self) -> Vec<Option<Shape>>;

    /// The names of its columns.
    fn names(&self) -> Vec<&str>;

    /// Its rows, by what lies together.
    fn groups(&self) -> &[Group];

    /// What the file's writer wrote down besides: names and texts.
    fn notes(&self) -> &[(String, String)];

    /// How values are compressed, where that decides in which order rows are read.
    fn compression(&self) -> Compression {
        Compression::None
    }

    /// Reads all of a column; none where there is none of this name.
    fn column(&self, name: &str) -> Result<Option<Vec<Cell>>>;

    /// The values of a field in some rows of a group, numbered from its first.
    fn cells(&self, place: Place, rows: Range<usize>, kept: &PageCache) -> Result<Vec<Cell>>;
}

/// What a column is.
pub(super) struct Shape {
    pub(super) name: String,
    pub(super) kind: ColumnType,
    /// How many lists its values are in, one within the other.
    pub(super) lists: u32,
    pub(super) type_name: String,
}

/// Rows that lie together: a row group of Parquet, a batch of Arrow.
pub(super) struct Group {
    /// The number of the first.
    pub(super) first_row: u64,
    pub(super) rows: u64,
    /// Where the values of the fields begin, and how many bytes they have.
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Whether some rows cannot be read without work that others need as well.
    pub(super) is_shared: bool,
}

/// A field in a group of rows of a shard, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) shard: usize,
    pub(super) group: usize,
    pub(super) field: usize,
}

/// Opens a file of rows.
pub(super) fn open_rows(
    format: Format,
    storage: &dyn Storage,
    path: &Path,
    fields: &[SourceField],
) -> Result<Box<dyn RowFile>> {
    Ok(match format {
        Format::Arrow => Box::new(ArrowShard::open(storage, path, fields)?),
        _ => Box::new(ParquetShard::open(storage, path, fields)?),
    })
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
fn unpacked(column: Option<&Shape>, bytes: Option<&Bytes>) -> Cell {
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

/// What is asked of a format's columns: the one of a name, whether it cannot be read, and what it is.
type Asked<'a, C> = (&'a dyn Fn(&str) -> Option<&'a C>, &'a dyn Fn(&C) -> Result<()>, &'a dyn Fn(&C) -> Shape);

/// The column that each of `fields` is read from; none where it may be missing and is.
pub(super) fn columns_of<C: Clone>(
    fields: &[SourceField],
    (find, refuse, shape): Asked<'_, C>,
    names: &[&str],
    path: &Path,
) -> Result<Vec<Option<C>>> {
    let column = |field: &SourceField| {
        let Some(column) = field.from.split(';').find_map(|wanted| find(wanted.trim())) else {
            return if field.optional { Ok(None) } else { Err(missing(&field.from, names, path)) };
        };
        refuse(column)?;
        check_type(field, &shape(column), path)?;
        Ok(Some(column.clone()))
    };
    fields.iter().map(column).collect()
}

/// An error if the values of a column are none of a field's type.
fn check_type(field: &SourceField, column: &Shape, path: &Path) -> Result<()> {
    let is_text = matches!(column.kind, ColumnType::Text | ColumnType::Binary);
    let fits = match &field.kind {
        FieldType::Bytes | FieldType::Text | FieldType::Json => is_text,
        FieldType::Int => column.lists == 0 && !matches!(column.kind, ColumnType::Float(_)),
        FieldType::Tensor { dims, .. } => is_text || dims.len() == column.lists as usize,
    };
    if fits {
        return Ok(());
    }
    Err(Error::Usage {
        problem: format!(
            "the column `{}` of `{}` is {}, but the source's field `{}` is {}",
            column.name,
            path.display(),
            column.type_name,
            field.field,
            field.kind
        ),
        remedy: "give the field another `type` or column in the source's `fields`: numbers are `int` or `float32[]`, lists of them `float32[?]`"
            .to_owned(),
    })
}

/// That there is no such column, and which there are.
fn missing(wanted: &str, names: &[&str], path: &Path) -> Error {
    let listed: Vec<String> = names.iter().take(NAMES_LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > NAMES_LISTED_MAX { ", …" } else { "" };
    // A structure stands for its bytes.
    let structures = names.iter().filter_map(|name| name.strip_suffix(".bytes"));
    let choices: Vec<&str> = structures.chain(names.iter().copied()).collect();
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
pub(super) fn noted_classes(notes: &[(String, String)], source: &Source) -> Option<Vec<String>> {
    let fields = source.read_fields();
    let label = fields.iter().find(|field| field.field == LABEL_FIELD)?;
    let (_, text) = notes.iter().find(|(key, _)| key == "huggingface")?;
    let written: serde_json::Value = serde_json::from_str(text).ok()?;
    let features = written.get("info")?.get("features")?;
    let feature = label.from.split(';').find_map(|column| features.get(column.trim()))?;
    let names = feature.get("names")?.as_array()?;
    names.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A page that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageKey {
    pub(super) place: Place,
    pub(super) page: u32,
}

/// Numbers of what is no page of values: all values of a field in a group, those of its dictionary, and what says where values lie.
pub(super) const WHOLE: u32 = u32::MAX;
pub(super) const DICTIONARY: u32 = u32::MAX - 1;
pub(super) const LEAD: u32 = u32::MAX - 2;

/// The pages of a source that were inflated last, within a limit: the one that was used last is at the end.
pub(super) struct PageCache {
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
    pub(super) fn get_or(&self, key: PageKey, read: impl FnOnce() -> Result<Vec<Cell>>) -> Result<Arc<Vec<Cell>>> {
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
        // Another thread may have read it meanwhile.
        if let Some((_, known, _)) = pages.held.iter().find(|(held, _, _)| *held == key) {
            return Ok(Arc::clone(known));
        }
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

/// A file and what those who read parts of it share.
struct OpenRows {
    file: Box<dyn RowFile>,
    shapes: Vec<Option<Shape>>,
    /// Held while a part of a group is read, so that its pages are not inflated twice.
    turns: Vec<Mutex<()>>,
}

/// The files of a source, each opened when it is first read.
pub(super) struct RowFiles {
    format: Format,
    fields: Vec<SourceField>,
    open: Vec<OnceLock<OpenRows>>,
    kept: PageCache,
}

impl RowFiles {
    pub(super) fn new(count: usize, format: Format, fields: Vec<SourceField>) -> Self {
        let kept = PageCache::new(fields.len());
        Self { format, fields, open: (0..count).map(|_| OnceLock::new()).collect(), kept }
    }

    fn opened(&self, shard: usize, storage: &dyn Storage, path: &Path) -> Result<&OpenRows> {
        if let Some(open) = self.open[shard].get() {
            return Ok(open);
        }
        let file = open_rows(self.format, storage, path, &self.fields)?;
        let turns = file.groups().iter().map(|_| Mutex::new(())).collect();
        let open = OpenRows { shapes: file.shapes(), file, turns };
        Ok(self.open[shard].get_or_init(|| open))
    }

    /// File number `shard`, which lies at `path`.
    pub(super) fn get(&self, shard: usize, storage: &dyn Storage, path: &Path) -> Result<&dyn RowFile> {
        Ok(&*self.opened(shard, storage, path)?.file)
    }

    /// Reads rows of one group of file number `shard`, those of the file that are numbered so.
    pub(super) fn read(
        &self,
        shard: usize,
        storage: &dyn Storage,
        path: &Path,
        rows: Range<u64>,
    ) -> Result<Vec<Content>> {
        let open = self.opened(shard, storage, path)?;
        let groups = open.file.groups();
        let number = groups.partition_point(|group| group.first_row + group.rows <= rows.start);
        let outside = || Error::internal("rows that are of no one row group");
        let group = groups.get(number).filter(|group| rows.end <= group.first_row + group.rows).ok_or_else(outside)?;
        let within = (rows.start - group.first_row) as usize..(rows.end - group.first_row) as usize;
        let whole = within.len() as u64 == group.rows;
        let turn = if whole || !group.is_shared { None } else { Some(open.turns[number].lock()) };
        let mut contents: Vec<Content> = (0..within.len()).map(|_| Content::default()).collect();
        for field in 0..self.fields.len() {
            let cells = open.file.cells(Place { shard, group: number, field }, within.clone(), &self.kept)?;
            for (content, cell) in contents.iter_mut().zip(cells) {
                content.push(field, packed(cell));
            }
        }
        drop(turn);
        Ok(contents)
    }

    /// The values of a row, as it was read.
    pub(super) fn row<'a>(
        &'a self,
        (shard, storage, path): (usize, &dyn Storage, &Path),
        content: &'a Content,
    ) -> Result<impl Iterator<Item = (&'a SourceField, Cell)>> {
        let shapes = &self.opened(shard, storage, path)?.shapes;
        let fields = self.fields.iter().zip(shapes).enumerate();
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

/// An error if there are more fields than a sample of a file of rows may have.
pub(super) fn check_fields(source: &Source) -> Result<()> {
    let fields = source.read_fields().len();
    if source.format.has_columns() && fields > FIELDS_MAX {
        return Err(Error::Limit {
            problem: format!(
                "the source has {fields} fields, and a source of Parquet or Arrow files at most {FIELDS_MAX}"
            ),
            remedy: "leave some of them out".to_owned(),
        });
    }
    Ok(())
}
