//! Elements as raw bits, and numbers of variable length.

use crate::error::{Error, Result};

/// What errors call the format.
pub(super) const FORMAT: &str = "tensor";

/// An element's bits.
pub(super) trait Bits: Copy + Eq + Ord {
    /// How many bytes an element has.
    const BYTES: usize;
    const ZERO: Self;

    /// The element at the start of `bytes`, which must contain all of it.
    fn read(bytes: &[u8]) -> Self;
    fn write(self, to: &mut [u8]);
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// The same with its highest bit turned over: what orders signed numbers as unsigned ones.
    fn flipped(self) -> Self;
    fn wide(self) -> u64;
    fn narrow(wide: u64) -> Self;
}

macro_rules! bits {
    ($($unsigned:ty),*) => {$(
        impl Bits for $unsigned {
            const BYTES: usize = size_of::<$unsigned>();
            const ZERO: Self = 0;

            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut whole = [0; size_of::<$unsigned>()];
                whole.copy_from_slice(&bytes[..size_of::<$unsigned>()]);
                Self::from_le_bytes(whole)
            }

            #[inline]
            fn write(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn flipped(self) -> Self {
                self ^ (1 << (Self::BITS - 1))
            }

            #[inline]
            fn wide(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn narrow(wide: u64) -> Self {
                wide as Self
            }
        }
    )*};
}
bits!(u8, u16, u32, u64);

/// Calls a function that is generic over [`Bits`] for elements of that many bytes.
macro_rules! by_width {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $width {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            _ => $function::<u64>($($argument),*),
        }
    };
}
pub(super) use by_width;

/// Appends a number: seven bits to a byte, the lowest first, the highest bit set in all but the last.
pub(super) fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is left of bytes that are read from their start.
pub(super) struct Cursor<'a> {
    all: usize,
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { all: bytes.len(), rest: bytes }
    }

    /// How far it has come.
    pub(super) fn offset(&self) -> usize {
        self.all - self.rest.len()
    }

    pub(super) fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or_else(|| Error::truncated(FORMAT, format!("{what} is cut off"), self.offset()))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8> {
        Ok(self.take(1, what)?[0])
    }

    /// A number as [`write_varint`] writes it, which is the only way to write it.
    pub(super) fn varint(&mut self, what: &'static str) -> Result<usize> {
        let from = self.offset();
        let wrong = || Error::format_at(FORMAT, format!("{what} is not a number"), from);
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let part = u64::from(byte & 0x7f);
            if (part << shift) >> shift != part || (byte == 0 && shift > 0) {
                return Err(wrong());
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(number).map_err(|_| wrong());
            }
        }
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_have_one_spelling() {
        for number in [0, 1, 127, 128, 300, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(number, &mut bytes);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(cursor.varint("it").expect("a number") as u64, number);
            assert!(cursor.rest.is_empty());
            assert!(Cursor::new(&bytes[..bytes.len() - 1]).varint("it").is_err());
        }
        for wrong in [&[0x80, 0x00][..], &[0xff; 10], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]] {
            assert!(Cursor::new(wrong).varint("it").is_err(), "{wrong:?}");
        }
    }
}
