//! The head of an encoded tensor, and what is checked of it before anything is decoded.

use super::bits::{Cursor, FORMAT, write_varint};
use crate::error::{Error, Result};
use crate::tensor::{DType, RANK_MAX, Shape, TensorSpec};

/// The layout of the elements in the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Plain,
    Zstd,
    Lz4,
    Pco,
    BitPack,
    Sparse,
    SparseMask,
    RunLength,
}

impl Stored {
    /// Each at its number.
    const ALL: [Self; 8] =
        [Self::Plain, Self::Zstd, Self::Lz4, Self::Pco, Self::BitPack, Self::Sparse, Self::SparseMask, Self::RunLength];
}

const SCHEME_BITS: u8 = 0b111;
const DELTA: u8 = 1 << 3;
const SHUFFLE: u8 = 1 << 4;
const BFLOAT16: u8 = 1 << 5;
const RESERVED: u8 = 0b1100_0000;

const CHECKSUM_BYTES: usize = 4;

/// An encoded tensor, its head read and its checksum right.
#[derive(Debug, Clone, Copy)]
pub struct EncodedTensor<'a> {
    pub(super) head: Head,
    pub(super) payload: &'a [u8],
}

/// What is before the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) spec: TensorSpec,
    pub(super) stored: Stored,
    /// How far back, where there is a delta.
    pub(super) delta: Option<usize>,
    pub(super) shuffle: bool,
    pub(super) bfloat16: bool,
}

impl Head {
    /// The type of the elements in the payload: bfloat16's are looked at as integers.
    pub(super) fn stored_dtype(&self) -> DType {
        if self.bfloat16 { DType::U16 } else { self.spec.dtype }
    }

    /// How many bytes the elements have that the payload gives.
    pub(super) fn stored_bytes(&self) -> usize {
        self.spec.shape.elements().saturating_mul(self.stored_dtype().bytes())
    }

    /// Appends head, payload and checksum.
    pub(super) fn write(&self, payload: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let scheme = Stored::ALL.iter().position(|stored| *stored == self.stored).unwrap_or_default() as u8;
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(
            scheme | flag(self.delta.is_some(), DELTA) | flag(self.shuffle, SHUFFLE) | flag(self.bfloat16, BFLOAT16),
        );
        let dtype = DType::ALL.iter().position(|dtype| *dtype == self.spec.dtype).unwrap_or_default();
        let dims = self.spec.shape.dims();
        out.push(dtype as u8 | (dims.len() as u8) << 4);
        for &dim in dims {
            write_varint(dim as u64, out);
        }
        if let Some(distance) = self.delta {
            write_varint(distance as u64, out);
        }
        write_varint(payload.len() as u64, out);
        out.extend_from_slice(payload);
        let checksum = crc32c::crc32c(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        let wrong = |problem: String, offset: usize| Err(Error::format_at(FORMAT, problem, offset));
        let flags = cursor.byte("the scheme")?;
        if flags & RESERVED != 0 {
            return wrong(format!("the scheme {flags:#04x} is not known"), 0);
        }
        let stored = Stored::ALL[usize::from(flags & SCHEME_BITS)];
        let kind = cursor.byte("the element type")?;
        let Some(&dtype) = DType::ALL.get(usize::from(kind & 0xf)) else {
            return wrong(format!("the element type {} is not known", kind & 0xf), 1);
        };
        let rank = usize::from(kind >> 4);
        if rank > RANK_MAX {
            return wrong(format!("it has {rank} dimensions, and at most {RANK_MAX} are possible"), 1);
        }
        let mut dims = [0; RANK_MAX];
        for dim in &mut dims[..rank] {
            *dim = cursor.varint("a dimension")?;
        }
        let Some(shape) = Shape::try_new(&dims[..rank]) else {
            return wrong(format!("the dimensions {:?} cannot be", &dims[..rank]), 2);
        };
        let delta = (flags & DELTA != 0).then(|| cursor.varint("the distance")).transpose()?;
        let (shuffle, bfloat16) = (flags & SHUFFLE != 0, flags & BFLOAT16 != 0);
        let head = Self { spec: TensorSpec { dtype, shape }, stored, delta, shuffle, bfloat16 };
        match head.contradiction() {
            Some(problem) => wrong(problem.to_owned(), 0),
            None => Ok(head),
        }
    }

    /// What no encoder writes.
    fn contradiction(&self) -> Option<&'static str> {
        let filtered = self.delta.is_some() || self.shuffle;
        let is_integer = !self.stored_dtype().is_float() && !self.bfloat16;
        match self.stored {
            _ if self.bfloat16 && self.spec.dtype != DType::F32 => Some("bfloat16 is of float32 only"),
            _ if self.delta == Some(0) => Some("a delta has a distance"),
            _ if self.shuffle && self.stored_dtype().bytes() == 1 => Some("single bytes are not shuffled"),
            Stored::Zstd | Stored::Lz4 => None,
            _ if filtered => Some("only what is compressed is filtered"),
            Stored::BitPack if !is_integer => Some("only integers are packed"),
            _ => None,
        }
    }

    /// Whether a payload of that many bytes can contain the elements, as far as that is known without reading it.
    fn may_come_of(&self, payload_bytes: usize) -> bool {
        let bytes = self.stored_bytes();
        let elements = self.spec.shape.elements();
        if elements == 0 {
            return self.stored == Stored::Plain && payload_bytes == 0;
        }
        match self.stored {
            Stored::Plain => payload_bytes == bytes,
            // RFC 8878: a block is a header of three bytes, and of one byte that is repeated at most 128 KiB.
            Stored::Zstd => bytes / ((128 << 10) / 4) <= payload_bytes,
            // A byte of 255 lengthens a match by as much.
            Stored::Lz4 => bytes / 255 <= payload_bytes,
            // A block of 1024 takes two bytes or more.
            Stored::BitPack => elements / 512 <= payload_bytes,
            Stored::SparseMask => elements / 8 <= payload_bytes,
            Stored::Pco | Stored::Sparse | Stored::RunLength => payload_bytes > 0,
        }
    }
}

impl<'a> EncodedTensor<'a> {
    /// Reads the head, and checks the length and the checksum: what is damaged is found here.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let head = Head::read(&mut cursor)?;
        let length = cursor.varint("the length")?;
        let offset = cursor.offset();
        let payload = cursor.take(length, "the payload")?;
        let checksum = cursor.take(CHECKSUM_BYTES, "the checksum")?;
        if !cursor.rest.is_empty() {
            return Err(Error::format_at(FORMAT, "there are bytes after it", cursor.offset()));
        }
        if crc32c::crc32c(&bytes[..offset + length]).to_le_bytes() != *checksum {
            return Err(Error::format(FORMAT, "its checksum is wrong"));
        }
        if !head.may_come_of(length) {
            let problem = format!("{length} bytes cannot become {}", head.spec);
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        Ok(Self { head, payload })
    }

    /// What it will be.
    pub fn spec(&self) -> TensorSpec {
        self.head.spec
    }

    /// The bytes that decoding takes in addition to the tensor.
    pub fn working_bytes(&self) -> usize {
        let Head { shuffle, bfloat16, stored, .. } = self.head;
        let buffers = usize::from(shuffle) + usize::from(bfloat16 && stored != Stored::Plain);
        // If the slot is not aligned for its elements, pco writes to a separate buffer.
        let buffers = buffers + usize::from(stored == Stored::Pco);
        self.head.stored_bytes().saturating_mul(buffers)
    }
}
