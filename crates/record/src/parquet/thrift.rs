//! Thrift's compact protocol, as far as Parquet's footers and page headers use it.

use super::{Fault, Parsed, damaged};

/// Structures within structures; those of Parquet are far fewer.
const DEPTH_MAX: usize = 32;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    True,
    False,
    Byte,
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
}

impl Kind {
    fn of(number: u8) -> Parsed<Self> {
        Ok(match number {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return damaged(format!("unknown Thrift type `{number}`")),
        })
    }
}

/// Reads values one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// How many bytes were not read yet.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    fn byte(&mut self) -> Parsed<u8> {
        let (&first, rest) = self.rest.split_first().ok_or(Fault::Cut)?;
        self.rest = rest;
        Ok(first)
    }

    fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Fault::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn varint(&mut self) -> Parsed<u64> {
        let (value, rest) = varint(self.rest)?;
        self.rest = rest;
        Ok(value)
    }

    /// A whole number of any width but a byte.
    pub(super) fn int(&mut self) -> Parsed<i64> {
        Ok(zigzag(self.varint()?))
    }

    /// A number that counts or sizes something.
    pub(super) fn count(&mut self) -> Parsed<u64> {
        let number = self.int()?;
        u64::try_from(number).map_err(|_| Fault::Damaged(format!("a count is {number}")))
    }

    pub(super) fn small(&mut self) -> Parsed<i8> {
        Ok(self.byte()? as i8)
    }

    pub(super) fn binary(&mut self) -> Parsed<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| Fault::Cut)?)
    }

    pub(super) fn text(&mut self) -> Parsed<&'a str> {
        std::str::from_utf8(self.binary()?).map_err(|_| Fault::Damaged("a name is not UTF-8 text".to_owned()))
    }

    /// Calls `visit` with the number and the kind of each field of a structure. It reads the value and says `true`, or leaves it.
    pub(super) fn fields(&mut self, mut visit: impl FnMut(&mut Self, i64, Kind) -> Parsed<bool>) -> Parsed<()> {
        self.deeper(|reader| {
            let mut number = 0_i64;
            loop {
                let head = reader.byte()?;
                let (step, kind) = (i64::from(head >> 4), head & 0x0F);
                if kind == 0 {
                    return Ok(());
                }
                let kind = Kind::of(kind)?;
                number = if step == 0 { reader.int()? } else { number.saturating_add(step) };
                if !visit(reader, number, kind)? {
                    reader.skip(kind)?;
                }
            }
        })
    }

    /// Calls `visit` for each element of a list of structures.
    pub(super) fn structures(&mut self, visit: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        self.list(Kind::Struct, visit)
    }

    /// Calls `visit` for each element of a list, which are of one kind.
    pub(super) fn list(&mut self, of: Kind, mut visit: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let (kind, count) = self.list_head()?;
        if kind != of && count > 0 {
            return damaged(format!("a list has elements of the kind {kind:?}, not {of:?}"));
        }
        self.deeper(|reader| (0..count).try_for_each(|_| visit(reader)))
    }

    /// What the elements of a list are, and how many. Each takes at least a byte.
    fn list_head(&mut self) -> Parsed<(Kind, usize)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let kind = if count == 0 { Kind::Byte } else { Kind::of(head & 0x0F)? };
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok((kind, count)),
            _ => Err(Fault::Cut),
        }
    }

    fn skip(&mut self, kind: Kind) -> Parsed<()> {
        match kind {
            Kind::True | Kind::False => Ok(()),
            Kind::Byte => self.byte().map(drop),
            Kind::Int => self.varint().map(drop),
            Kind::Double => self.take(8).map(drop),
            Kind::Binary => self.binary().map(drop),
            Kind::Struct => self.fields(|_, _, _| Ok(false)),
            Kind::List => {
                let (kind, count) = self.list_head()?;
                self.deeper(|reader| (0..count).try_for_each(|_| reader.skip_element(kind)))
            }
            Kind::Map => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                let (key, value) = (Kind::of(kinds >> 4)?, Kind::of(kinds & 0x0F)?);
                if count > self.rest.len() as u64 {
                    return Err(Fault::Cut);
                }
                self.deeper(|reader| {
                    (0..count).try_for_each(|_| reader.skip_element(key).and_then(|()| reader.skip_element(value)))
                })
            }
        }
    }

    /// Within lists and maps a boolean takes a byte.
    fn skip_element(&mut self, kind: Kind) -> Parsed<()> {
        match kind {
            Kind::True | Kind::False => self.byte().map(drop),
            kind => self.skip(kind),
        }
    }

    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            return damaged("it is nested too deeply");
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }
}

/// A number of seven bits a byte, the low ones first, and what follows it.
pub(super) fn varint(bytes: &[u8]) -> Parsed<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[index + 1..]));
        }
    }
    if bytes.len() < 10 { Err(Fault::Cut) } else { damaged("a number is longer than ten bytes") }
}

/// The signed number that was folded into `value`.
pub(super) fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
