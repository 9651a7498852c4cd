//! Writing Examples, with sorted names: the bytes of TensorFlow's deterministic serialization.

use std::borrow::Cow;

use crate::error::{Error, ErrorLocation, Result, UsageFault};
use crate::example::{FIELD_BYTES_LIST, FIELD_FLOAT_LIST, FIELD_INT64_LIST};
use crate::protobuf::{length_field_len, put_length_field, put_varint, varint_len};
use crate::tensor_proto::TensorProto;

/// Protobuf's own limit on a message, which TensorFlow's readers share.
const MESSAGE_BYTES_MAX: u64 = (1 << 31) - 1;

/// A feature to be written.
#[derive(Debug, Clone, Copy)]
pub enum Feature<'a> {
    /// A list of byte strings.
    Bytes(&'a [&'a [u8]]),
    /// A list of floats.
    Float(&'a [f32]),
    /// A list of integers.
    Int64(&'a [i64]),
    /// A list of one byte string, a serialized tensor, which is written in place without an intermediate copy.
    Tensor(TensorProto<'a>),
}

impl Feature<'_> {
    /// Bytes of the list, and of what it holds before any framing that is common to all kinds.
    fn list_len(&self) -> u64 {
        match self {
            Self::Bytes(values) => values.iter().map(|value| length_field_len(value.len() as u64)).sum(),
            Self::Float(values) => packed_len(values.len() as u64 * 4),
            Self::Int64(values) => packed_len(int64_values_len(values)),
            Self::Tensor(tensor) => length_field_len(tensor.encoded_len()),
        }
    }

    fn list_field(&self) -> u8 {
        match self {
            Self::Bytes(_) | Self::Tensor(_) => FIELD_BYTES_LIST,
            Self::Float(_) => FIELD_FLOAT_LIST,
            Self::Int64(_) => FIELD_INT64_LIST,
        }
    }

    fn encode_list_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(values) => {
                for value in *values {
                    put_length_field(out, 1, value.len() as u64);
                    out.extend_from_slice(value);
                }
            }
            Self::Float([]) | Self::Int64([]) => {}
            Self::Float(values) => {
                put_length_field(out, 1, values.len() as u64 * 4);
                out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            Self::Int64(values) => {
                put_length_field(out, 1, int64_values_len(values));
                for &value in *values {
                    put_varint(out, value as u64);
                }
            }
            Self::Tensor(tensor) => {
                put_length_field(out, 1, tensor.encoded_len());
                tensor.encode_into(out);
            }
        }
    }
}

/// An empty packed list is left out.
fn packed_len(values_len: u64) -> u64 {
    if values_len == 0 { 0 } else { length_field_len(values_len) }
}

fn int64_values_len(values: &[i64]) -> u64 {
    values.iter().map(|&value| varint_len(value as u64)).sum()
}

fn entry_len(name: &str, list_len: u64) -> u64 {
    length_field_len(name.len() as u64) + length_field_len(length_field_len(list_len))
}

/// Bytes of an Example of one feature that holds one tensor of `tensor_len` bytes.
pub(crate) fn single_tensor_example_len(name: &str, tensor_len: u64) -> u64 {
    length_field_len(length_field_len(entry_len(name, length_field_len(tensor_len))))
}

fn features_len(features: &[(&str, Feature<'_>)]) -> u64 {
    features.iter().map(|(name, feature)| length_field_len(entry_len(name, feature.list_len()))).sum()
}

/// Bytes of the Example that [`encode_example`] makes of `features`.
pub fn encoded_example_len(features: &[(&str, Feature<'_>)]) -> u64 {
    length_field_len(features_len(features))
}

/// An Example of these features, in whatever order they are given: they are written sorted by name.
pub fn encode_example(features: &[(&str, Feature<'_>)]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    encode_example_into(features, &mut out)?;
    Ok(out)
}

/// Appends an Example to `out`, which a writer of many records reuses. On an error `out` is unchanged.
pub fn encode_example_into(features: &[(&str, Feature<'_>)], out: &mut Vec<u8>) -> Result<()> {
    let mut features = Cow::Borrowed(features);
    if !features.is_sorted_by(|(left, _), (right, _)| left < right) {
        features.to_mut().sort_by_key(|&(name, _)| name);
        if let Some(pair) = features.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::usage(UsageFault::DuplicateFeature { name: pair[0].0.into() }));
        }
    }
    let features_len = features_len(&features);
    let total = length_field_len(features_len);
    if total > MESSAGE_BYTES_MAX {
        return Err(Error::Limit {
            location: ErrorLocation::default(),
            what: "tf.train.Example bytes",
            limit: MESSAGE_BYTES_MAX,
            found: total,
            hint: "split the sample into several records",
        });
    }
    out.reserve(total as usize);
    put_length_field(out, 1, features_len);
    for (name, feature) in &*features {
        let list_len = feature.list_len();
        put_length_field(out, 1, entry_len(name, list_len));
        put_length_field(out, 1, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        put_length_field(out, 2, length_field_len(list_len));
        put_length_field(out, feature.list_field(), list_len);
        feature.encode_list_into(out);
    }
    Ok(())
}
