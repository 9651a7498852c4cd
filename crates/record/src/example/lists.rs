//! The lists of a parsed Example. They are read from the record's bytes each time they are walked; nothing is copied.

use crate::error::{MessageFault, Result};
use crate::example::{FIELD_BYTES_LIST, FIELD_FLOAT_LIST, FIELD_INT64_LIST, MESSAGE};
use crate::protobuf::{Fields, Value, read_varint};

/// A feature as it was read.
#[derive(Debug, Clone, Copy)]
pub enum FeatureView<'a> {
    /// A list of byte strings.
    Bytes(BytesList<'a>),
    /// A list of floats.
    Float(FloatList<'a>),
    /// A list of integers.
    Int64(Int64List<'a>),
    /// A feature that was written without saying what it is a list of.
    Unset,
}

/// Which list a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bytes,
    Float,
    Int64,
    Unset,
}

impl Kind {
    fn of_field(number: u32) -> Self {
        match u8::try_from(number) {
            Ok(FIELD_BYTES_LIST) => Self::Bytes,
            Ok(FIELD_FLOAT_LIST) => Self::Float,
            Ok(FIELD_INT64_LIST) => Self::Int64,
            _ => Self::Unset,
        }
    }

    fn field(self) -> u32 {
        u32::from(match self {
            Self::Bytes => FIELD_BYTES_LIST,
            Self::Float => FIELD_FLOAT_LIST,
            Self::Int64 => FIELD_INT64_LIST,
            Self::Unset => 0,
        })
    }
}

impl<'a> FeatureView<'a> {
    /// The view of a `Feature` message that [`check_feature`] accepted, from where it said that the list begins.
    pub(crate) fn of_checked(kind: Kind, body: &'a [u8]) -> Self {
        let lists = Lists { body, field: kind.field() };
        match kind {
            Kind::Bytes => Self::Bytes(BytesList { lists }),
            Kind::Float => Self::Float(FloatList { lists }),
            Kind::Int64 => Self::Int64(Int64List { lists }),
            Kind::Unset => Self::Unset,
        }
    }
}

/// Checks a `Feature` message through to each value, so that walking it later cannot fail. Returns its kind and where in it
/// the list begins: the members are a `oneof`, so a later one replaces those of other kinds and continues its own.
pub(crate) fn check_feature(body: &[u8], position: usize) -> Result<(Kind, usize)> {
    let mut kind = Kind::Unset;
    let mut start = 0;
    let mut fields = Fields::new(body, position, MESSAGE);
    loop {
        let field_start = fields.position() - position;
        let Some((number, value)) = fields.next_field()? else {
            return Ok((kind, start));
        };
        let Value::Length { bytes, position } = value else {
            continue;
        };
        let found = Kind::of_field(number);
        if found == Kind::Unset {
            continue;
        }
        if found != kind {
            (kind, start) = (found, field_start);
        }
        check_list(kind, bytes, position)?;
    }
}

fn check_list(kind: Kind, bytes: &[u8], position: usize) -> Result<()> {
    let mut fields = Fields::new(bytes, position, MESSAGE);
    while let Some((number, value)) = fields.next_field()? {
        let (1, Value::Length { bytes, position }) = (number, value) else {
            continue;
        };
        let mut packed = Fields::new(bytes, position, MESSAGE);
        match kind {
            Kind::Float if bytes.len() % 4 != 0 => return Err(packed.fault(MessageFault::FloatsCut)),
            Kind::Int64 => {
                while packed.position() < position + bytes.len() {
                    packed.varint()?;
                }
            }
            Kind::Float | Kind::Bytes | Kind::Unset => {}
        }
    }
    Ok(())
}

/// The values of the lists of one kind in a checked `Feature` message.
#[derive(Debug, Clone, Copy)]
struct Lists<'a> {
    body: &'a [u8],
    field: u32,
}

impl<'a> Lists<'a> {
    fn values(self) -> Values<'a> {
        Values { outer: Fields::new(self.body, 0, MESSAGE), inner: Fields::new(&[], 0, MESSAGE), field: self.field }
    }
}

/// Walks the fields `value` of the lists. An error cannot occur in a checked message, and would end the walk.
#[derive(Debug, Clone)]
struct Values<'a> {
    outer: Fields<'a>,
    inner: Fields<'a>,
    field: u32,
}

impl<'a> Values<'a> {
    fn next_value(&mut self) -> Option<Value<'a>> {
        loop {
            while let Some((number, value)) = self.inner.next_field().ok().flatten() {
                if number == 1 {
                    return Some(value);
                }
            }
            let (number, value) = self.outer.next_field().ok().flatten()?;
            if let (true, Value::Length { bytes, .. }) = (number == self.field, value) {
                self.inner = Fields::new(bytes, 0, MESSAGE);
            }
        }
    }
}

macro_rules! list {
    ($list:ident, $iter:ident, $item:ty, $what:literal) => {
        #[doc = concat!("A list of ", $what, ", read from the record as it is walked.")]
        #[derive(Debug, Clone, Copy)]
        pub struct $list<'a> {
            lists: Lists<'a>,
        }

        impl<'a> $list<'a> {
            /// The values, in order.
            pub fn iter(&self) -> $iter<'a> {
                $iter::new(self.lists)
            }

            /// The first value.
            pub fn first(&self) -> Option<$item> {
                self.iter().next()
            }
        }

        impl<'a> IntoIterator for $list<'a> {
            type Item = $item;
            type IntoIter = $iter<'a>;

            fn into_iter(self) -> $iter<'a> {
                self.iter()
            }
        }

        impl<'a> IntoIterator for &$list<'a> {
            type Item = $item;
            type IntoIter = $iter<'a>;

            fn into_iter(self) -> $iter<'a> {
                self.iter()
            }
        }
    };
}

list!(BytesList, BytesListIter, &'a [u8], "byte strings");
list!(FloatList, FloatListIter, f32, "floats");
list!(Int64List, Int64ListIter, i64, "integers");

/// The values of a [`BytesList`].
#[derive(Debug, Clone)]
pub struct BytesListIter<'a> {
    values: Values<'a>,
}

impl<'a> BytesListIter<'a> {
    fn new(lists: Lists<'a>) -> Self {
        Self { values: lists.values() }
    }
}

impl<'a> Iterator for BytesListIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if let Value::Length { bytes, .. } = self.values.next_value()? {
                return Some(bytes);
            }
        }
    }
}

/// The values of a [`FloatList`].
#[derive(Debug, Clone)]
pub struct FloatListIter<'a> {
    values: Values<'a>,
    packed: &'a [u8],
}

impl<'a> FloatListIter<'a> {
    fn new(lists: Lists<'a>) -> Self {
        Self { values: lists.values(), packed: &[] }
    }
}

impl Iterator for FloatListIter<'_> {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        loop {
            if let Some((bytes, rest)) = self.packed.split_first_chunk() {
                self.packed = rest;
                return Some(f32::from_le_bytes(*bytes));
            }
            match self.values.next_value()? {
                Value::Length { bytes, .. } => self.packed = bytes,
                Value::Fixed32(bits) => return Some(f32::from_bits(bits)),
                Value::Varint(_) | Value::Fixed64 => {}
            }
        }
    }
}

/// The values of an [`Int64List`].
#[derive(Debug, Clone)]
pub struct Int64ListIter<'a> {
    values: Values<'a>,
    packed: &'a [u8],
}

impl<'a> Int64ListIter<'a> {
    fn new(lists: Lists<'a>) -> Self {
        Self { values: lists.values(), packed: &[] }
    }
}

impl Iterator for Int64ListIter<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        loop {
            if let Ok((value, length)) = read_varint(self.packed) {
                self.packed = &self.packed[length..];
                return Some(value as i64);
            }
            match self.values.next_value()? {
                Value::Length { bytes, .. } => self.packed = bytes,
                Value::Varint(value) => return Some(value as i64),
                Value::Fixed32(_) | Value::Fixed64 => {}
            }
        }
    }
}
