//! The columns of a file: the leaves of its tree of fields, and which buffers of a batch each has.

use std::collections::HashSet;

use super::flatbuffer::Table;
use super::{ColumnType, Fault, NAME_BYTES_MAX, Parsed, damaged};

/// A column: a leaf of the tree of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its path, with dots between the names of structures (`image.bytes`). Those of the elements of lists are left out.
    pub name: String,
    /// What its values are, or those of its lists; of a column with a dictionary, the values there.
    pub kind: ColumnType,
    /// How many lists its values are in, one within the other.
    pub lists: u32,
    /// The field itself, below the fields that it is in, outermost first.
    pub(super) path: Vec<Level>,
    pub(super) layout: Layout,
    pub(super) dictionary: Option<Encoding>,
}

/// How values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A bit for each.
    Bits,
    /// So many bytes each.
    Fixed(u32),
    /// Offsets of so many bytes, and bytes.
    Offsets(u32),
    /// What is short itself, and where the rest lies.
    Views,
}

/// That values are numbers of a dictionary's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) id: i64,
    /// The kind of the numbers.
    pub(super) index: ColumnType,
    pub(super) index_bytes: u32,
}

/// A field above a column, or the column's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// Its number among those of a batch.
    pub(super) node: usize,
    /// The number of its first buffer, without those of views before it, of which each batch may have another number.
    pub(super) buffer: usize,
    /// How many columns with views there are before it.
    pub(super) views: usize,
    pub(super) kind: LevelKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelKind {
    Structure,
    /// With offsets of so many bytes.
    List(u32),
    /// Of so many elements each.
    FixedList(u32),
    Values,
}

impl Column {
    /// Its type as text, lists included.
    pub fn type_name(&self) -> String {
        let lists = self.lists as usize;
        let encoded = if self.dictionary.is_some() { "dictionary of " } else { "" };
        format!("{}{encoded}{}{}", "list<".repeat(lists), self.kind, ">".repeat(lists))
    }

    /// Whether its values can be read: one value or one list of numbers in each row.
    pub fn is_readable(&self) -> bool {
        match self.kind {
            ColumnType::Other(_) => false,
            _ if self.dictionary.is_some() => self.lists == 0,
            ColumnType::Text | ColumnType::Binary => self.lists == 0,
            _ => self.lists <= 1,
        }
    }

    /// How many buffers it has, without those that views point to.
    pub(super) fn buffers(&self) -> usize {
        if self.dictionary.is_none() && matches!(self.layout, Layout::Offsets(_)) { 3 } else { 2 }
    }

    /// Whether it has buffers that views point to.
    pub(super) fn has_views(&self) -> bool {
        self.dictionary.is_none() && self.layout == Layout::Views
    }

    /// The column that the batches of its dictionary have.
    pub(super) fn of_dictionary(&self) -> Self {
        let level = Level { node: 0, buffer: 0, views: 0, kind: LevelKind::Values };
        Self { lists: 0, path: vec![level], dictionary: None, ..self.clone() }
    }
}

/// Fields within fields; people's are far fewer.
const DEPTH_MAX: usize = 64;

/// So many fields a file may have, and so many columns with them: a field may be named twice, so that bytes alone do not bound them.
pub const COLUMNS_MAX: usize = 1 << 14;

/// The metadata version in which unions lost their bitmap.
const V5: i16 = 4;

/// What the schema of a file says.
pub(super) struct Schema {
    pub(super) columns: Vec<Column>,
    pub(super) notes: Vec<(String, String)>,
    /// The ids of the dictionaries that its columns have; and whether there may be others, within values that are not read.
    pub(super) dictionaries: HashSet<i64>,
    pub(super) has_others: bool,
}

impl Schema {
    /// Of a message of `length` bytes.
    pub(super) fn parse(schema: Table<'_>, version: i16, length: usize) -> Parsed<Self> {
        if schema.short(0)? != 0 {
            let hint = "write the file again on a machine of today";
            return Err(Fault::Unsupported("a byte order", "big endian".to_owned(), hint));
        }
        let mut walk = Walk {
            version,
            columns: Vec::new(),
            dictionaries: HashSet::new(),
            has_others: false,
            fields: 0,
            nodes: 0,
            buffers: 0,
            views: 0,
        };
        let top = Within { name: String::new(), path: Vec::new(), lists: 0, skips: false, other: None };
        for field in schema.tables(1)? {
            walk.field(field?, &top)?;
        }
        let mut notes = Vec::new();
        // The same text may be named many times.
        let mut left = length;
        for note in schema.tables(2)? {
            let note = note?;
            let (Some(key), Some(text)) = (note.text(0)?, note.text(1)?) else { continue };
            left = left.checked_sub(key.len() + text.len()).ok_or(Fault::Cut)?;
            notes.push((key.to_owned(), text.to_owned()));
        }
        Ok(Self { columns: walk.columns, notes, dictionaries: walk.dictionaries, has_others: walk.has_others })
    }
}

/// What is known above a field.
#[derive(Clone)]
struct Within {
    name: String,
    path: Vec<Level>,
    lists: u32,
    /// Whether the name of the child says nothing: that of a list's elements.
    skips: bool,
    /// Something above that is not read.
    other: Option<&'static str>,
}

/// What a type comes to.
enum Shape {
    Values(ColumnType, Layout),
    /// Something that is not read, and has so many buffers.
    Skipped(&'static str, usize),
    Structure,
    List(u32),
    FixedList(u32),
    /// Fields within something that is not read, which has so many buffers of its own.
    Other(&'static str, usize),
}

struct Walk {
    version: i16,
    columns: Vec<Column>,
    dictionaries: HashSet<i64>,
    has_others: bool,
    fields: usize,
    nodes: usize,
    buffers: usize,
    views: usize,
}

impl Walk {
    fn field(&mut self, field: Table<'_>, within: &Within) -> Parsed<()> {
        if within.path.len() > DEPTH_MAX {
            return damaged("its fields are nested too deeply");
        }
        self.fields += 1;
        if self.fields > COLUMNS_MAX {
            return Err(Fault::Limit("the number of fields", self.fields as u64, COLUMNS_MAX as u64));
        }
        let mut inner = within.clone();
        inner.skips = false;
        if !within.skips {
            let name = field.text(0)?.unwrap_or_default();
            let dot = if inner.name.is_empty() { "" } else { "." };
            let length = inner.name.len() + dot.len() + name.len();
            if length > NAME_BYTES_MAX {
                return Err(Fault::Limit("the length of a column's name", length as u64, NAME_BYTES_MAX as u64));
            }
            inner.name = format!("{}{dot}{name}", inner.name);
        }
        let shape = self.shape(field)?;
        let dictionary = field.table(4)?.map(Encoding::parse).transpose()?;
        self.dictionaries.extend(dictionary.map(|encoding| encoding.id));
        let mut level = self.level();
        let (kind, own) = match &shape {
            _ if dictionary.is_some() => (LevelKind::Values, 2),
            Shape::Values(_, Layout::Offsets(_)) => (LevelKind::Values, 3),
            Shape::Values(..) => (LevelKind::Values, 2),
            Shape::Skipped(_, own) | Shape::Other(_, own) => (LevelKind::Values, *own),
            Shape::Structure => (LevelKind::Structure, 1),
            Shape::List(bytes) => (LevelKind::List(*bytes), 2),
            Shape::FixedList(count) => (LevelKind::FixedList(*count), 1),
        };
        level.kind = kind;
        inner.path.push(level);
        self.nodes += 1;
        self.buffers += own;
        match (dictionary, shape) {
            (Some(encoding), Shape::Values(kind, layout)) => self.push(inner, kind, layout, Some(encoding)),
            (Some(_), _) => {
                self.has_others = true;
                self.push(inner, ColumnType::Other("dictionary"), Layout::Bits, None);
            }
            (None, Shape::Values(kind, layout)) => {
                self.views += usize::from(layout == Layout::Views);
                self.push(inner, kind, layout, None);
            }
            (None, Shape::Skipped(name, _)) => self.push(inner, ColumnType::Other(name), Layout::Bits, None),
            (None, shape) => {
                match shape {
                    Shape::List(_) | Shape::FixedList(_) => (inner.lists, inner.skips) = (inner.lists + 1, true),
                    Shape::Other(name, _) => inner.other = Some(name),
                    _ => {}
                }
                return self.children(field, &inner);
            }
        }
        Ok(())
    }

    fn children(&mut self, field: Table<'_>, inner: &Within) -> Parsed<()> {
        let mut children = field.tables(5)?;
        if inner.skips {
            return match (children.next(), children.next()) {
                (Some(child), None) => self.field(child?, inner),
                _ => damaged(format!("`{}` is a list of not one field", inner.name)),
            };
        }
        children.try_for_each(|child| self.field(child?, inner))
    }

    fn level(&self) -> Level {
        Level { node: self.nodes, buffer: self.buffers, views: self.views, kind: LevelKind::Values }
    }

    fn push(&mut self, inner: Within, kind: ColumnType, layout: Layout, dictionary: Option<Encoding>) {
        let kind = inner.other.map_or(kind, ColumnType::Other);
        self.columns.push(Column { name: inner.name, kind, lists: inner.lists, path: inner.path, layout, dictionary });
    }

    /// What the type of a field comes to: the numbers of `Schema.fbs`.
    fn shape(&self, field: Table<'_>) -> Parsed<Shape> {
        let about = field.table(3)?;
        let int = |number| about.map_or(Ok(0), |about| about.int(number));
        let size = |number| {
            let found = int(number)?;
            u32::try_from(found).map_err(|_| Fault::Damaged(format!("a type has {found} bytes or elements")))
        };
        Ok(match field.byte(2)? {
            1 => Shape::Skipped("null", 0),
            2 => {
                let (kind, bytes) = whole(about)?;
                Shape::Values(kind, Layout::Fixed(bytes))
            }
            3 => match about.map_or(Ok(0), |about| about.short(0))? {
                1 => Shape::Values(ColumnType::Float(32), Layout::Fixed(4)),
                2 => Shape::Values(ColumnType::Float(64), Layout::Fixed(8)),
                _ => Shape::Skipped("float16", 2),
            },
            4 => Shape::Values(ColumnType::Binary, Layout::Offsets(4)),
            5 => Shape::Values(ColumnType::Text, Layout::Offsets(4)),
            6 => Shape::Values(ColumnType::Bool, Layout::Bits),
            7 => Shape::Skipped("decimal", 2),
            8 => Shape::Skipped("date", 2),
            9 => Shape::Skipped("time", 2),
            10 => Shape::Skipped("timestamp", 2),
            11 => Shape::Skipped("interval", 2),
            12 => Shape::List(4),
            13 => Shape::Structure,
            14 => {
                let dense = about.map_or(Ok(0), |about| about.short(0))? == 1;
                Shape::Other("union", 1 + usize::from(dense) + usize::from(self.version < V5))
            }
            15 => Shape::Values(ColumnType::Binary, Layout::Fixed(size(0)?)),
            16 => Shape::FixedList(size(0)?),
            17 => Shape::Other("map", 2),
            18 => Shape::Skipped("duration", 2),
            19 => Shape::Values(ColumnType::Binary, Layout::Offsets(8)),
            20 => Shape::Values(ColumnType::Text, Layout::Offsets(8)),
            21 => Shape::List(8),
            22 => Shape::Other("run_end_encoded", 0),
            23 => Shape::Values(ColumnType::Binary, Layout::Views),
            24 => Shape::Values(ColumnType::Text, Layout::Views),
            25 | 26 => Shape::Other("list_view", 3),
            // How many buffers it has, nobody knows.
            other => {
                let hint = "write the file again without it";
                return Err(Fault::Unsupported("a type of Arrow", format!("type {other}"), hint));
            }
        })
    }
}

/// The kind of whole numbers, and their bytes.
fn whole(about: Option<Table<'_>>) -> Parsed<(ColumnType, u32)> {
    let Some(about) = about else { return damaged("a whole number has no size") };
    let bits = about.int(0)?;
    if !matches!(bits, 8 | 16 | 32 | 64) {
        return damaged(format!("a whole number has {bits} bits"));
    }
    let kind = if about.byte(1)? == 0 { ColumnType::Uint } else { ColumnType::Int };
    Ok((kind(bits as u8), bits as u32 / 8))
}

impl Encoding {
    fn parse(table: Table<'_>) -> Parsed<Self> {
        let about = table.table(1)?;
        // Unless it is said.
        let (index, index_bytes) = if about.is_some() { whole(about)? } else { (ColumnType::Int(32), 4) };
        Ok(Self { id: table.long(0)?, index, index_bytes })
    }
}
