//! The columns of a file: the leaves of its tree of fields.

use super::thrift::{Kind, Reader};
use super::{ColumnType, Fault, NAME_BYTES_MAX, Parsed, damaged};

/// How values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    Bytes,
    /// Of so many bytes each.
    Fixed(u32),
}

/// A column: a leaf of the tree of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its path, with dots between the names of structures (`image.bytes`). What the format puts between a list and its elements is left
    /// out.
    pub name: String,
    /// What its values are, or those of its lists.
    pub kind: ColumnType,
    /// How many lists its values are in, one within the other.
    pub lists: u32,
    /// Its number among the columns.
    pub(super) number: usize,
    pub(super) physical: Physical,
    /// The definition level of a value that is there.
    pub(super) defined: u32,
    /// The definition level of an element of its list, whether it is there or not.
    pub(super) element: u32,
}

impl Column {
    /// Its type as text, lists included.
    pub fn type_name(&self) -> String {
        let lists = self.lists as usize;
        format!("{}{}{}", "list<".repeat(lists), self.kind, ">".repeat(lists))
    }

    /// Whether its values can be read: one value or one list of numbers in each row.
    pub fn is_readable(&self) -> bool {
        match self.kind {
            ColumnType::Other(_) => false,
            ColumnType::Text | ColumnType::Binary => self.lists == 0,
            _ => self.lists <= 1,
        }
    }
}

/// A field of the tree, as the footer lists them: each before its children.
pub(super) struct Element {
    name: String,
    physical: Option<i64>,
    length: u64,
    repetition: i64,
    children: u64,
    converted: Option<i64>,
    logical: Option<Logical>,
}

/// What a field says of its meaning: the number in the union, and of whole numbers their bits and sign.
struct Logical {
    number: i64,
    bits: i8,
    signed: bool,
}

const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;

/// Numbers of meanings, of the older kind and of the union.
const CONVERTED_LIST: i64 = 3;
const LOGICAL_LIST: i64 = 3;

impl Element {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Parsed<Self> {
        let mut element = Self {
            name: String::new(),
            physical: None,
            length: 0,
            repetition: 0,
            children: 0,
            converted: None,
            logical: None,
        };
        reader.fields(|reader, number, kind| {
            match (number, kind) {
                (1, Kind::Int) => element.physical = Some(reader.int()?),
                (2, Kind::Int) => element.length = reader.count()?,
                (3, Kind::Int) => element.repetition = reader.int()?,
                (4, Kind::Binary) => reader.text()?.clone_into(&mut element.name),
                (5, Kind::Int) => element.children = reader.count()?,
                (6, Kind::Int) => element.converted = Some(reader.int()?),
                (10, Kind::Struct) => element.logical = Logical::parse(reader)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(element)
    }

    fn is_list(&self) -> bool {
        self.converted == Some(CONVERTED_LIST)
            || self.logical.as_ref().is_some_and(|logical| logical.number == LOGICAL_LIST)
    }

    fn physical(&self) -> Parsed<Physical> {
        Ok(match self.physical {
            Some(0) => Physical::Boolean,
            Some(1) => Physical::Int32,
            Some(2) => Physical::Int64,
            Some(3) => Physical::Int96,
            Some(4) => Physical::Float,
            Some(5) => Physical::Double,
            Some(6) => Physical::Bytes,
            Some(7) if self.length > 0 && i32::try_from(self.length).is_ok() => Physical::Fixed(self.length as u32),
            other => return damaged(format!("the column `{}` has the type {other:?} of {}", self.name, self.length)),
        })
    }

    fn kind(&self, physical: Physical) -> ColumnType {
        let logical = self.logical.as_ref().map(|logical| logical.number);
        let named = match (logical, self.converted) {
            (Some(1 | 4 | 12), _) | (None, Some(0 | 4 | 19)) => Some(ColumnType::Text),
            (Some(5), _) | (None, Some(5)) => Some(ColumnType::Other("decimal")),
            (Some(6), _) | (None, Some(6)) => Some(ColumnType::Other("date")),
            (Some(7), _) | (None, Some(7 | 8)) => Some(ColumnType::Other("time")),
            (Some(8), _) | (None, Some(9 | 10)) => Some(ColumnType::Other("timestamp")),
            (Some(15), _) => Some(ColumnType::Other("float16")),
            (None, Some(21)) => Some(ColumnType::Other("interval")),
            _ => None,
        };
        let whole = |bits: u8| match (&self.logical, self.converted) {
            (Some(Logical { number: 10, bits: stated, signed }), _) => {
                let bits = u8::try_from(*stated).unwrap_or(bits);
                if *signed { ColumnType::Int(bits) } else { ColumnType::Uint(bits) }
            }
            (_, Some(converted @ 11..=14)) => ColumnType::Uint(8 << (converted - 11)),
            (_, Some(converted @ 15..=18)) => ColumnType::Int(8 << (converted - 15)),
            _ => ColumnType::Int(bits),
        };
        match physical {
            // A meaning that does not go with how values are kept is none.
            Physical::Boolean => ColumnType::Bool,
            Physical::Float => ColumnType::Float(32),
            Physical::Double => ColumnType::Float(64),
            Physical::Int96 => ColumnType::Other("int96"),
            Physical::Int32 => named.filter(|named| matches!(named, ColumnType::Other(_))).unwrap_or(whole(32)),
            Physical::Int64 => named.filter(|named| matches!(named, ColumnType::Other(_))).unwrap_or(whole(64)),
            Physical::Bytes | Physical::Fixed(_) => named.unwrap_or(ColumnType::Binary),
        }
    }
}

impl Logical {
    fn parse(reader: &mut Reader<'_>) -> Parsed<Option<Self>> {
        let mut found = None;
        reader.fields(|reader, number, kind| {
            if kind != Kind::Struct {
                return Ok(false);
            }
            let mut logical = Self { number, bits: 0, signed: true };
            reader.fields(|reader, field, kind| {
                match (number, field, kind) {
                    (10, 1, Kind::Byte) => logical.bits = reader.small()?,
                    (10, 2, Kind::True | Kind::False) => logical.signed = kind == Kind::True,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
            found = Some(logical);
            Ok(true)
        })?;
        Ok(found)
    }
}

/// Fields within fields; people's are far fewer.
const DEPTH_MAX: usize = 64;

/// The columns of a tree.
pub(super) fn columns(elements: &[Element]) -> Parsed<Vec<Column>> {
    let Some((root, rest)) = elements.split_first() else { return damaged("it has no fields") };
    let mut walk = Walk { rest: rest.iter(), columns: Vec::new() };
    let top = Within { name: String::new(), defined: 0, element: 0, lists: 0, skips: false };
    walk.children(root, &top, 0)?;
    if walk.rest.len() > 0 {
        return damaged("it has fields that belong to nothing");
    }
    Ok(walk.columns)
}

struct Walk<'a> {
    rest: std::slice::Iter<'a, Element>,
    columns: Vec<Column>,
}

/// What is known above a field.
#[derive(Clone)]
struct Within {
    name: String,
    defined: u32,
    element: u32,
    lists: u32,
    /// Whether the names of the children say nothing: those between a list and its elements.
    skips: bool,
}

impl Walk<'_> {
    fn children(&mut self, parent: &Element, within: &Within, depth: usize) -> Parsed<()> {
        if depth > DEPTH_MAX {
            return damaged("its fields are nested too deeply");
        }
        for _ in 0..parent.children {
            let Some(element) = self.rest.next() else { return damaged("it has fewer fields than it says") };
            let mut inner = within.clone();
            if !within.skips || parent.children > 1 {
                let dot = if inner.name.is_empty() { "" } else { "." };
                let length = inner.name.len() + dot.len() + element.name.len();
                if length > NAME_BYTES_MAX {
                    return Err(Fault::Limit("the length of a column's name", length as u64, NAME_BYTES_MAX as u64));
                }
                inner.name = format!("{}{dot}{}", inner.name, element.name);
            }
            inner.skips = false;
            match element.repetition {
                OPTIONAL => inner.defined += 1,
                REPEATED => {
                    inner.defined += 1;
                    inner.lists += 1;
                    inner.element = inner.defined;
                    // The element of a list has a name of its own below that of the repeated group.
                    inner.skips = parent.is_list() && element.children == 1;
                }
                _ => {}
            }
            if element.children > 0 {
                inner.skips |= element.is_list() && element.children == 1;
                self.children(element, &inner, depth + 1)?;
                continue;
            }
            let physical = element.physical()?;
            self.columns.push(Column {
                name: inner.name,
                kind: element.kind(physical),
                lists: inner.lists,
                number: self.columns.len(),
                physical,
                defined: inner.defined,
                element: inner.element,
            });
        }
        Ok(())
    }
}
