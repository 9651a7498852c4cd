//! The protobuf wire format, as far as the messages here use it.
//!
//! Reading is by slices with positions counted from the start of the outermost message, so that an error can say where it
//! is. Fields that a message does not know are passed over; the caller decides what it knows.

use crate::error::{Error, MessageFault, Result};

pub(crate) const WIRE_VARINT: u8 = 0;
pub(crate) const WIRE_LENGTH: u8 = 2;

/// A field's value. A length-delimited one comes with its position in the outermost message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64,
    Length { bytes: &'a [u8], position: usize },
    Fixed32(u32),
}

/// The fields of one message, in the order of its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    position: usize,
    message: &'static str,
}

impl<'a> Fields<'a> {
    /// `position` is that of `bytes` in the outermost message, whose name is `message`.
    pub(crate) fn new(bytes: &'a [u8], position: usize, message: &'static str) -> Self {
        Self { rest: bytes, position, message }
    }

    pub(crate) fn position(&self) -> usize {
        self.position
    }

    pub(crate) fn fault(&self, fault: MessageFault) -> Error {
        Error::message(self.message, self.position, fault)
    }

    /// The next field's number and value, or `None` at the end of the message.
    pub(crate) fn next_field(&mut self) -> Result<Option<(u32, Value<'a>)>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.position;
        let message = self.message;
        let tag = self.varint()?;
        // A tag is 32 bits: 29 of field number, 3 of wire type.
        let number = match u32::try_from(tag) {
            Ok(tag) if tag >> 3 != 0 => tag >> 3,
            _ => return Err(Error::message(message, start, MessageFault::FieldNumber)),
        };
        let value = match tag as u8 & 7 {
            WIRE_VARINT => Value::Varint(self.varint()?),
            1 => {
                self.take(8)?;
                Value::Fixed64
            }
            WIRE_LENGTH => {
                let length = self.varint()?;
                let position = self.position;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                Value::Length { bytes: self.take(length)?, position }
            }
            5 => {
                let bytes = self.take(4)?;
                Value::Fixed32(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
            3 | 4 => {
                return Err(Error::Unsupported {
                    location: crate::error::ErrorLocation::default(),
                    what: "a protobuf group",
                    found: format!("field {number}, at byte {start} of the {message}").into(),
                    hint: "",
                });
            }
            _ => return Err(Error::message(message, start, MessageFault::WireType)),
        };
        Ok(Some((number, value)))
    }

    /// The next varint. Bits beyond 64 are dropped, as protobuf does.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        match read_varint(self.rest) {
            Ok((value, length)) => {
                self.rest = &self.rest[length..];
                self.position += length;
                Ok(value)
            }
            Err(fault) => Err(self.fault(fault)),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.fault(MessageFault::FieldTruncated));
        };
        self.rest = rest;
        self.position += length;
        Ok(bytes)
    }
}

/// The varint at the start of `bytes` and its length.
pub(crate) fn read_varint(bytes: &[u8]) -> std::result::Result<(u64, usize), MessageFault> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok((value, index + 1));
        }
    }
    Err(if bytes.len() < 10 { MessageFault::VarintTruncated } else { MessageFault::VarintTooLong })
}

/// Bytes that a varint takes.
pub(crate) const fn varint_len(value: u64) -> u64 {
    // 7 bits a byte, and one byte for 0.
    let bits = 64 - (value | 1).leading_zeros() as u64;
    bits.div_ceil(7)
}

/// Bytes that a length-delimited field of a number below 16 takes.
pub(crate) const fn length_field_len(length: u64) -> u64 {
    1 + varint_len(length) + length
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The tag of a field whose number is below 16, in one byte.
pub(crate) const fn tag(number: u8, wire_type: u8) -> u8 {
    number << 3 | wire_type
}

/// The tag and length of a length-delimited field; the content follows.
pub(crate) fn put_length_field(out: &mut Vec<u8>, number: u8, length: u64) {
    out.push(tag(number, WIRE_LENGTH));
    put_varint(out, length);
}
