//! Messages: where they lie, and the batches that they describe.

use bytes::Bytes;

use super::flatbuffer::Table;
use super::{CONTINUATION, Fault, Input, MESSAGE_BYTES_MAX, Parsed, damaged};

/// A message: what it says, and where its buffers begin.
pub(super) struct Message {
    pub(super) about: Bytes,
    pub(super) body: u64,
}

/// What a message has.
pub(super) enum Header<'a> {
    Schema(Table<'a>, i16),
    Dictionary { id: i64, is_delta: bool, batch: Batch },
    Batch(Batch),
}

/// Rows, or the values of a dictionary: where the buffers of their columns lie.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The number of its first row in the file.
    pub first_row: u64,
    /// How many rows it has.
    pub rows: u64,
    /// Where its buffers begin in the file.
    pub offset: u64,
    /// How many bytes they have there.
    pub bytes: u64,
    /// How many messages with dictionaries count for it: those before it in a stream, all of a file.
    pub(super) dictionaries: usize,
    pub(super) codec: Option<Codec>,
    /// Of each field how many values it has, and how many of them are not there, which may be below 0 where that is not known.
    pub(super) nodes: Box<[(u64, i64)]>,
    /// Where each buffer begins behind the first, and its length.
    pub(super) buffers: Box<[(u64, u64)]>,
    /// How many buffers of views each column with such has.
    pub(super) views: Box<[u64]>,
}

/// How buffers are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    Lz4,
    Zstd,
}

/// The shortest message: a length, and a table in as many bytes as it takes at least.
const LENGTH_BYTES: u64 = 4;

impl Message {
    /// The message at `at` of a file whose messages end at `end`; none is the mark of the end.
    ///
    /// Before 2019 (Arrow 0.15) there was nothing before the length.
    pub(super) fn read<I: Input>(input: &I, at: u64, end: u64) -> Result<Parsed<Option<Self>>, I::Error> {
        if end.saturating_sub(at) < LENGTH_BYTES {
            return Ok(damaged("it ends without the mark of its end: it was cut, or is still being written"));
        }
        let head = input.read(at, (end - at).min(2 * LENGTH_BYTES) as usize)?;
        let (length, start) = match (head.first_chunk::<4>(), head.get(4..).and_then(|rest| rest.first_chunk::<4>())) {
            (Some(CONTINUATION), Some(length)) => (length, at + 2 * LENGTH_BYTES),
            (Some(length), _) if length != CONTINUATION => (length, at + LENGTH_BYTES),
            _ => return Ok(Err(Fault::Cut)),
        };
        let fits = |length: i32| u64::try_from(length).is_ok_and(|length| length <= end - start);
        if at == 0 && start == LENGTH_BYTES && !fits(i32::from_le_bytes(*length)) {
            return Ok(damaged("it does not begin as Arrow's files and streams do"));
        }
        let length = match u64::try_from(i32::from_le_bytes(*length)) {
            Ok(0) => return Ok(Ok(None)),
            Ok(length) if length > MESSAGE_BYTES_MAX => {
                return Ok(Err(Fault::Limit("the length of a message", length, MESSAGE_BYTES_MAX)));
            }
            Ok(length) if length <= end - start => length,
            Ok(_) => return Ok(Err(Fault::Cut)),
            Err(_) => return Ok(damaged("a message has a length below 0")),
        };
        Ok(Ok(Some(Self { about: input.read(start, length as usize)?, body: start + length })))
    }

    /// What it has, and where its buffers end, which is not behind `end`.
    pub(super) fn header(&self, end: u64) -> Parsed<(Header<'_>, u64)> {
        let message = Table::root(&self.about)?;
        let version = message.short(0)?;
        // That of 0.8 in 2017; those before had other layouts.
        if !(3..=4).contains(&version) {
            let hint = "write the file again with a newer library";
            return Err(Fault::Unsupported("a version of Arrow's format", format!("V{}", version + 1), hint));
        }
        let Some(header) = message.table(2)? else { return damaged("a message says nothing of itself") };
        let bytes = message.count(3)?;
        let after = self.body.checked_add(bytes).filter(|after| *after <= end).ok_or(Fault::Cut)?;
        let found = match message.byte(1)? {
            1 => Header::Schema(header, version),
            2 => {
                let Some(batch) = header.table(1)? else { return damaged("a dictionary has no values") };
                let batch = Batch::parse(batch, self.body, bytes)?;
                Header::Dictionary { id: header.long(0)?, is_delta: header.byte(2)? != 0, batch }
            }
            3 => Header::Batch(Batch::parse(header, self.body, bytes)?),
            other => {
                let hint = "write a file of rows: tensors are none";
                return Err(Fault::Unsupported("a message of Arrow", format!("message {other}"), hint));
            }
        };
        Ok((found, after))
    }
}

impl Batch {
    fn parse(table: Table<'_>, offset: u64, bytes: u64) -> Parsed<Self> {
        let pair = |pair: &[u8; 16]| {
            let (halves, _) = pair.as_chunks::<8>();
            (i64::from_le_bytes(halves[0]), i64::from_le_bytes(halves[1]))
        };
        let whole = |number: i64| u64::try_from(number).map_err(|_| Fault::Damaged(format!("it has {number} values")));
        let node = |found: &[u8; 16]| {
            let (values, missing) = pair(found);
            Ok((whole(values)?, missing))
        };
        let buffer = |found: &[u8; 16]| {
            let (start, length) = pair(found);
            let (start, length) = (whole(start)?, whole(length)?);
            match start.checked_add(length) {
                Some(end) if end <= bytes => Ok((start, length)),
                _ => damaged(format!("a buffer has {length} bytes at {start}, but the batch has {bytes}")),
            }
        };
        let codec = table.table(3)?.map(|compression| match (compression.byte(0)?, compression.byte(1)?) {
            (0, 0) => Ok(Codec::Lz4),
            (1, 0) => Ok(Codec::Zstd),
            other => {
                let hint = "write the file again with `compression=\"zstd\"` or \"lz4\"";
                Err(Fault::Unsupported("a compression of Arrow", format!("{other:?}"), hint))
            }
        });
        let views = table.structures::<8>(4)?.iter().map(|count| whole(i64::from_le_bytes(*count)));
        Ok(Self {
            first_row: 0,
            rows: table.count(0)?,
            offset,
            bytes,
            dictionaries: 0,
            codec: codec.transpose()?,
            nodes: table.structures(1)?.iter().map(node).collect::<Parsed<_>>()?,
            buffers: table.structures(2)?.iter().map(buffer).collect::<Parsed<_>>()?,
            views: views.collect::<Parsed<_>>()?,
        })
    }

    /// Whether its buffers are compressed, so that all of one is read at once.
    pub fn is_compressed(&self) -> bool {
        self.codec.is_some()
    }

    /// The same by LZ4 (otherwise by Zstandard).
    pub fn is_lz4(&self) -> bool {
        self.codec == Some(Codec::Lz4)
    }
}
