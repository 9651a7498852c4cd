//! `TensorProto`: a tensor inside a record, as `tf.io.serialize_tensor` writes it.
//!
//! ```text
//! field  name          as written here
//!     1  dtype         varint, a TensorFlow type number
//!     2  tensor_shape  message of repeated field 2 `dim`, each a message of field 1 `size`; present for a scalar too
//!     4  tensor_content  row-major little-endian elements; left out if there are none
//! ```
//!
//! PRESTO stores every numeric tensor this way, in the first value of a `bytes_list`.

use std::fmt;

use crate::error::{Error, ErrorLocation, FormatFault, MessageFault, Result, UsageFault};
use crate::protobuf::{Fields, Value, WIRE_VARINT, length_field_len, put_length_field, put_varint, tag, varint_len};
use crate::tfrecord::FRAME_OVERHEAD_BYTES;

const MESSAGE: &str = "TensorProto";
const FIELD_DTYPE: u8 = 1;
const FIELD_SHAPE: u8 = 2;
const FIELD_CONTENT: u8 = 4;
const FIELD_DIM: u8 = 2;
const FIELD_DIM_SIZE: u8 = 1;

/// The most dimensions a tensor has here. (TensorFlow allows 254.)
pub const RANK_MAX: usize = 8;

/// The most bytes a tensor has: what memory can address. (A message that holds it is limited further when it is written.)
const CONTENT_BYTES_MAX: u64 = i64::MAX as u64;

/// TensorFlow's number for an element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorFlowType(pub i32);

impl TensorFlowType {
    /// IEEE 754 single precision.
    pub const DT_FLOAT: Self = Self(1);
    /// IEEE 754 double precision.
    pub const DT_DOUBLE: Self = Self(2);
    /// Signed 32 bit.
    pub const DT_INT32: Self = Self(3);
    /// Unsigned 8 bit.
    pub const DT_UINT8: Self = Self(4);
    /// Signed 16 bit.
    pub const DT_INT16: Self = Self(5);
    /// Signed 8 bit.
    pub const DT_INT8: Self = Self(6);
    /// Byte strings, which have no fixed width and are not read or written as tensors here.
    pub const DT_STRING: Self = Self(7);
    /// Signed 64 bit.
    pub const DT_INT64: Self = Self(9);
    /// One byte, 0 or 1.
    pub const DT_BOOL: Self = Self(10);
    /// The upper half of a single.
    pub const DT_BFLOAT16: Self = Self(14);
    /// Unsigned 16 bit.
    pub const DT_UINT16: Self = Self(17);
    /// IEEE 754 half precision.
    pub const DT_HALF: Self = Self(19);
    /// Unsigned 32 bit.
    pub const DT_UINT32: Self = Self(22);
    /// Unsigned 64 bit.
    pub const DT_UINT64: Self = Self(23);

    /// Bytes per element, for the types that this crate reads and writes.
    pub const fn element_bytes(self) -> Option<u64> {
        match self {
            Self::DT_UINT8 | Self::DT_INT8 | Self::DT_BOOL => Some(1),
            Self::DT_INT16 | Self::DT_UINT16 | Self::DT_HALF | Self::DT_BFLOAT16 => Some(2),
            Self::DT_FLOAT | Self::DT_INT32 | Self::DT_UINT32 => Some(4),
            Self::DT_DOUBLE | Self::DT_INT64 | Self::DT_UINT64 => Some(8),
            _ => None,
        }
    }

    fn known_element_bytes(self) -> Result<u64> {
        self.element_bytes().ok_or_else(|| {
            let hint = match self {
                Self::DT_STRING => "keep strings as they are in a bytes_list",
                _ => "",
            };
            unsupported("the element type", format!("DataType {}", self.0), hint)
        })
    }
}

/// Up to [`RANK_MAX`] dimensions, outermost first. Copied freely.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorShape {
    dims: [u64; RANK_MAX],
    rank: u8,
}

impl TensorShape {
    /// A shape of these dimensions; none for a scalar.
    pub fn new(dims: &[u64]) -> Result<Self> {
        let mut shape = Self { dims: [0; RANK_MAX], rank: 0 };
        for &dim in dims {
            shape.push(dim)?;
        }
        Ok(shape)
    }

    /// The dimensions, outermost first.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }

    /// How many elements that is; `None` if 64 bits do not hold it.
    pub fn elements(&self) -> Option<u64> {
        self.dims().iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))
    }

    fn push(&mut self, dim: u64) -> Result<()> {
        let Some(slot) = self.dims.get_mut(usize::from(self.rank)) else {
            return Err(Error::Limit {
                location: ErrorLocation::default(),
                what: "tensor rank",
                limit: RANK_MAX as u64,
                found: RANK_MAX as u64 + 1,
                hint: "",
            });
        };
        *slot = dim;
        self.rank += 1;
        Ok(())
    }

    /// Bytes of a tensor of this shape.
    fn content_bytes(&self, dtype: TensorFlowType) -> Result<u64> {
        let element_bytes = dtype.known_element_bytes()?;
        match self.elements().and_then(|elements| elements.checked_mul(element_bytes)) {
            Some(bytes) if bytes <= CONTENT_BYTES_MAX => Ok(bytes),
            bytes => Err(Error::Limit {
                location: ErrorLocation::default(),
                what: "tensor bytes",
                limit: CONTENT_BYTES_MAX,
                found: bytes.unwrap_or(u64::MAX),
                hint: "",
            }),
        }
    }

    fn dim_message_len(dim: u64) -> u64 {
        // Protobuf leaves a zero out.
        if dim == 0 { 0 } else { 1 + varint_len(dim) }
    }

    fn encoded_len(&self) -> u64 {
        self.dims().iter().map(|&dim| length_field_len(Self::dim_message_len(dim))).sum()
    }

    fn encode_into(&self, out: &mut Vec<u8>) {
        for &dim in self.dims() {
            put_length_field(out, FIELD_DIM, Self::dim_message_len(dim));
            if dim != 0 {
                out.push(tag(FIELD_DIM_SIZE, WIRE_VARINT));
                put_varint(out, dim);
            }
        }
    }

    /// Adds the dimensions in a `TensorShapeProto`.
    fn parse_into(&mut self, bytes: &[u8], position: usize) -> Result<()> {
        let mut fields = Fields::new(bytes, position, MESSAGE);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (2, Value::Length { bytes, position }) => {
                    let mut size = 0;
                    let mut dim_fields = Fields::new(bytes, position, MESSAGE);
                    while let Some(field) = dim_fields.next_field()? {
                        if let (1, Value::Varint(found)) = field {
                            size = found;
                        }
                    }
                    // Sizes are signed on the wire; -1 stands for an unknown one, which a stored tensor cannot have.
                    if size > i64::MAX as u64 {
                        return Err(Error::message(MESSAGE, position, MessageFault::NegativeDimension));
                    }
                    self.push(size)?;
                }
                (3, Value::Varint(unknown_rank)) if unknown_rank != 0 => {
                    return Err(unsupported("a tensor shape", "unknown_rank".to_owned(), ""));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TensorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

/// A tensor as it is inside a record: type, shape, and row-major little-endian content that fits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorProto<'a> {
    dtype: TensorFlowType,
    shape: TensorShape,
    content: &'a [u8],
}

impl<'a> TensorProto<'a> {
    /// A tensor of this content, whose length must be what type and shape ask for.
    pub fn new(dtype: TensorFlowType, shape: TensorShape, content: &'a [u8]) -> Result<Self> {
        let expected = shape.content_bytes(dtype)?;
        let found = content.len() as u64;
        if expected != found {
            return Err(Error::usage(UsageFault::TensorContent { expected, found }));
        }
        Ok(Self { dtype, shape, content })
    }

    /// The type of its elements.
    pub fn dtype(&self) -> TensorFlowType {
        self.dtype
    }

    /// Its shape.
    pub fn shape(&self) -> TensorShape {
        self.shape
    }

    /// Its elements, row-major and little-endian.
    pub fn content(&self) -> &'a [u8] {
        self.content
    }

    /// Bytes of the message.
    pub fn encoded_len(&self) -> u64 {
        encoded_len(self.dtype, &self.shape, self.content.len() as u64)
    }

    /// Appends the message to `out`, byte for byte as TensorFlow would.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        // The length is that of memory that exists, plus little.
        out.reserve(self.encoded_len() as usize);
        out.push(tag(FIELD_DTYPE, WIRE_VARINT));
        put_varint(out, self.dtype.0 as u64);
        put_length_field(out, FIELD_SHAPE, self.shape.encoded_len());
        self.shape.encode_into(out);
        if !self.content.is_empty() {
            put_length_field(out, FIELD_CONTENT, self.content.len() as u64);
            out.extend_from_slice(self.content);
        }
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// The tensor in `bytes`. Its content is a slice of them.
    ///
    /// Elements in the typed fields (`float_val` and its kin), which `tf.make_tensor_proto` uses for small tensors, are
    /// refused as unsupported.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut dtype = TensorFlowType(0);
        let mut shape = TensorShape { dims: [0; RANK_MAX], rank: 0 };
        let mut content: &[u8] = &[];
        let mut typed_field = None;
        let mut fields = Fields::new(bytes, 0, MESSAGE);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (1, Value::Varint(number)) => dtype = TensorFlowType(number as i32),
                (2, Value::Length { bytes, position }) => shape.parse_into(bytes, position)?,
                (4, Value::Length { bytes, .. }) => content = bytes,
                // half_val, float_val, double_val, int_val, string_val and so on.
                (5..=17, _) => typed_field = Some(number),
                _ => {}
            }
        }
        let expected = shape.content_bytes(dtype)?;
        if let (true, true, Some(number)) = (content.is_empty(), expected > 0, typed_field) {
            let hint = "write it with tf.io.serialize_tensor, which fills tensor_content";
            return Err(unsupported("a tensor without tensor_content", format!("values in field {number}"), hint));
        }
        let found = content.len() as u64;
        if expected != found {
            return Err(Error::format(FormatFault::TensorContent { expected, found }));
        }
        Ok(Self { dtype, shape, content })
    }
}

/// Bytes of a whole frame whose record is an Example with one feature `name` that holds one tensor: what such a sample takes
/// in a shard, known before it exists. The published record sizes of PRESTO follow from it.
pub fn tensor_frame_bytes(name: &str, dtype: TensorFlowType, shape: &TensorShape) -> Result<u64> {
    let tensor = encoded_len(dtype, shape, shape.content_bytes(dtype)?);
    Ok(crate::example::single_tensor_example_len(name, tensor) + FRAME_OVERHEAD_BYTES)
}

fn encoded_len(dtype: TensorFlowType, shape: &TensorShape, content_bytes: u64) -> u64 {
    let content = if content_bytes == 0 { 0 } else { length_field_len(content_bytes) };
    1 + varint_len(dtype.0 as u64) + length_field_len(shape.encoded_len()) + content
}

fn unsupported(what: &'static str, found: String, hint: &'static str) -> Error {
    Error::Unsupported { location: ErrorLocation::default(), what, found: found.into(), hint }
}
