//! `tf.train.Example`: named lists of bytes, integers or floats.
//!
//! ```text
//! Example   field 1 features: Features
//! Features  field 1 feature: map, an entry per feature: field 1 key (UTF-8), field 2 value: Feature
//! Feature   field 1 bytes_list, or field 2 float_list, or field 3 int64_list
//! lists     field 1 value, repeated; floats and integers packed
//! ```

mod encode;
mod lists;
mod parse;

pub(crate) use encode::single_tensor_example_len;
pub use encode::{Feature, encode_example, encode_example_into, encoded_example_len};
pub use lists::{BytesList, BytesListIter, FeatureView, FloatList, FloatListIter, Int64List, Int64ListIter};
pub use parse::{Example, SharedExample};

/// The most entries in an Example's feature map, duplicates counted. A bound on memory, which an entry takes more of than its
/// two bytes on the wire.
pub const FEATURES_MAX: usize = 65_536;

pub(crate) const MESSAGE: &str = "tf.train.Example";
pub(crate) const FIELD_BYTES_LIST: u8 = 1;
pub(crate) const FIELD_FLOAT_LIST: u8 = 2;
pub(crate) const FIELD_INT64_LIST: u8 = 3;
