//! `FlatBuffers`: tables whose fields are found by a list of offsets, as Arrow keeps what it says of its columns.
//!
//! ```text
//! table: i32 how far back its list begins | fields …      list: u16 its length | u16 the table's length | u16 each field's offset, or 0
//! ```
//!
//! Texts, lists and tables within a table lie elsewhere, and a field has the distance to them. Nothing keeps a file from naming the same table
//! twice: whoever walks through tables counts them.

use super::{Fault, Parsed, damaged};

/// A table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Two bytes for each field.
    offsets: &'a [u8],
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Parsed<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().ok_or(Fault::Cut)
}

/// What the distance that lies at `at` leads to.
fn follow(bytes: &[u8], at: usize) -> Parsed<usize> {
    at.checked_add(u32::from_le_bytes(array(bytes, at)?) as usize).ok_or(Fault::Cut)
}

impl<'a> Table<'a> {
    /// The one that a message begins with.
    pub(super) fn root(bytes: &'a [u8]) -> Parsed<Self> {
        Self::new(bytes, follow(bytes, 0)?)
    }

    fn new(bytes: &'a [u8], at: usize) -> Parsed<Self> {
        let back = i64::from(i32::from_le_bytes(array(bytes, at)?));
        let start = usize::try_from(at as i64 - back).map_err(|_| Fault::Cut)?;
        let length = usize::from(u16::from_le_bytes(array(bytes, start)?));
        let list = bytes.get(start..).and_then(|rest| rest.get(..length)).ok_or(Fault::Cut)?;
        Ok(Self { bytes, at, offsets: list.get(4..).ok_or(Fault::Cut)? })
    }

    /// Where field number `field` lies; none where it has its default.
    fn place(&self, field: usize) -> Option<usize> {
        let offset = self.offsets.as_chunks::<2>().0.get(field)?;
        let offset = usize::from(u16::from_le_bytes(*offset));
        if offset == 0 { None } else { Some(self.at + offset) }
    }

    fn number<const N: usize>(&self, field: usize) -> Parsed<[u8; N]> {
        self.place(field).map_or(Ok([0; N]), |at| array(self.bytes, at))
    }

    /// A byte, or a boolean; 0 unless given, as the numbers below.
    pub(super) fn byte(&self, field: usize) -> Parsed<u8> {
        self.number(field).map(u8::from_le_bytes)
    }

    pub(super) fn short(&self, field: usize) -> Parsed<i16> {
        self.number(field).map(i16::from_le_bytes)
    }

    pub(super) fn int(&self, field: usize) -> Parsed<i32> {
        self.number(field).map(i32::from_le_bytes)
    }

    pub(super) fn long(&self, field: usize) -> Parsed<i64> {
        self.number(field).map(i64::from_le_bytes)
    }

    /// A number of things, which is not below 0.
    pub(super) fn count(&self, field: usize) -> Parsed<u64> {
        let number = self.long(field)?;
        u64::try_from(number).map_err(|_| Fault::Damaged(format!("it says to have {number} of something")))
    }

    fn target(&self, field: usize) -> Parsed<Option<usize>> {
        self.place(field).map(|at| follow(self.bytes, at)).transpose()
    }

    pub(super) fn table(&self, field: usize) -> Parsed<Option<Self>> {
        self.target(field)?.map(|at| Self::new(self.bytes, at)).transpose()
    }

    pub(super) fn text(&self, field: usize) -> Parsed<Option<&'a str>> {
        let Some((_, bytes)) = self.list(field, 1)? else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => damaged("a name is not UTF-8 text"),
        }
    }

    /// The bytes of a list whose elements are of `size` bytes, and where they begin.
    fn list(&self, field: usize, size: usize) -> Parsed<Option<(usize, &'a [u8])>> {
        let Some(at) = self.target(field)? else { return Ok(None) };
        let count = u32::from_le_bytes(array(self.bytes, at)?) as usize;
        let length = count.checked_mul(size).ok_or(Fault::Cut)?;
        let bytes = self.bytes.get(at + 4..).and_then(|rest| rest.get(..length)).ok_or(Fault::Cut)?;
        Ok(Some((at + 4, bytes)))
    }

    /// A list of structures of `N` bytes; none is an empty one.
    pub(super) fn structures<const N: usize>(&self, field: usize) -> Parsed<&'a [[u8; N]]> {
        Ok(self.list(field, N)?.map_or(&[], |(_, bytes)| bytes.as_chunks::<N>().0))
    }

    /// A list of tables; none is an empty one.
    pub(super) fn tables(&self, field: usize) -> Parsed<impl Iterator<Item = Parsed<Self>> + use<'a>> {
        let (start, list) = self.list(field, 4)?.unwrap_or((0, &[]));
        let bytes = self.bytes;
        Ok((0..list.len() / 4).map(move |number| Self::new(bytes, follow(bytes, start + 4 * number)?)))
    }
}
