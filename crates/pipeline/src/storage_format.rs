//! The format in which samples are kept: how their pictures are encoded, and how their records are compressed.

use std::fmt;
use std::str::FromStr;

use forebay_codec::image::Encoding;
use forebay_record::ShardCompression;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What joins the parts of a format, and a format to the name of its split: `decoded+png`, `resized+l3-fast+zstd-3`.
pub(crate) const JOIN: char = '+';

/// The format in which samples are kept; by default raw tensors in plain records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageFormat {
    /// How pictures are stored; as raw tensors where there is none. Fields that are no pictures always are.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub encoding: Option<Encoding>,
    /// How the shards of records are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub compression: Option<ShardCompression>,
}

impl StorageFormat {
    /// Whether it is the default.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The parts, joined; nothing where it is plain.
impl fmt::Display for StorageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.encoding, self.compression) {
            (Some(encoding), Some(compression)) => write!(f, "{encoding}{JOIN}{compression}"),
            (Some(encoding), None) => encoding.fmt(f),
            (None, Some(compression)) => compression.fmt(f),
            (None, None) => Ok(()),
        }
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
            if ShardCompression::is_meant_by(part) {
                format.compression = Some(part.parse().map_err(Error::Compression)?);
            } else if format.encoding.is_none() {
                format.encoding = Some(part.parse().map_err(Error::Encoding)?);
            } else {
                return Err(Error::StorageFormat { found: text.to_owned() });
            }
        }
        Ok(format)
    }
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
