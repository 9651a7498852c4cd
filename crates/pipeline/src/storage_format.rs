//! The format in which samples are kept: how their pictures and their other tensors are encoded, whether their JPEG files are kept as scans, and how their records are compressed.

use std::fmt;
use std::str::FromStr;

use forebay_codec::image::{ENCODING_NAMES, Encoding};
use forebay_codec::tensor_encoding::{TENSOR_ENCODING_NAMES, TensorEncoding};
use forebay_record::ShardCompression;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What joins the parts of a format, and a format to the name of its split: `decoded+png`, `spectrogram+pco-8`, `resized+l3-fast+zstd-3`.
pub(crate) const JOIN: char = '+';

/// The name of progressive records.
const PROGRESSIVE: &str = "pcr";

/// The format in which samples are kept; by default raw tensors in plain records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageFormat {
    /// How pictures are stored, those that it can hold.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub encoding: Option<Encoding>,
    /// How tensors are stored, those that it can hold and that are not stored as pictures. All others are stored raw.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub tensor_encoding: Option<TensorEncoding>,
    /// Whether encoded JPEG files are kept as groups of progressive scans (`pcr`), of which a loader reads as many as it wants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progressive: bool,
    /// How the shards of records are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub compression: Option<ShardCompression>,
}

impl StorageFormat {
    /// Whether it is the default.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Whether fields are stored as they are, whatever is done to records.
    pub fn has_plain_fields(&self) -> bool {
        self.encoding.is_none() && self.tensor_encoding.is_none() && !self.progressive
    }
}

/// The parts, joined; nothing where it is plain.
impl fmt::Display for StorageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.encoding.map(|encoding| encoding.to_string()),
            self.tensor_encoding.map(|encoding| encoding.to_string()),
            self.progressive.then(|| PROGRESSIVE.to_owned()),
            self.compression.map(|compression| compression.to_string()),
        ];
        for (index, part) in parts.into_iter().flatten().enumerate() {
            if index > 0 {
                write!(f, "{JOIN}")?;
            }
            f.write_str(&part)?;
        }
        Ok(())
    }
}

impl FromStr for StorageFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut format = Self::default();
        for part in text.split(JOIN) {
            // Compression comes last: what is compressed are records, whatever is in them.
            if format.compression.is_some() {
                return Err(Error::StorageFormat { found: text.to_owned() });
            }
            let given_twice = if part == PROGRESSIVE {
                std::mem::replace(&mut format.progressive, true)
            } else if ShardCompression::is_meant_by(part) {
                format.compression = Some(part.parse().map_err(Error::Compression)?);
                false
            } else if TensorEncoding::is_meant_by(part) {
                format.tensor_encoding.replace(part.parse().map_err(Error::Encoding)?).is_some()
            } else {
                format.encoding.replace(part.parse().map_err(|_| unknown_encoding(part))?).is_some()
            };
            if given_twice {
                return Err(Error::StorageFormat { found: text.to_owned() });
            }
        }
        // What is read of a progressive record is a part of it, which nothing but its own codes may compress.
        let others = format.encoding.is_some() || format.tensor_encoding.is_some() || format.compression.is_some();
        if format.progressive && others {
            return Err(Error::StorageFormat { found: text.to_owned() });
        }
        Ok(format)
    }
}

fn unknown_encoding(name: &str) -> Error {
    Error::Encoding(forebay_codec::Error::Usage {
        problem: "there is no such encoding",
        expected: format!("{ENCODING_NAMES}; for tensors: {TENSOR_ENCODING_NAMES}; for JPEG files: {PROGRESSIVE}"),
        found: name.to_owned(),
    })
}

/// Writes a part of a format down by its name.
mod by_name {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `with` passes it so")]
    pub(super) fn serialize<T: Display, S: Serializer>(part: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(part.as_ref().expect("skipped where there is none"))
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let name = String::deserialize(deserializer)?;
        name.parse().map(Some).map_err(D::Error::custom)
    }
}
