//! The form in which samples are kept: how their pictures are encoded, and how their records are packed.

use std::fmt;
use std::str::FromStr;

use forebay_codec::image::Encoding;
use forebay_record::Packing;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What joins the parts of a form, and a form to the name of its split: `decoded+png`, `resized+l3-fast+gzip`.
pub(crate) const JOIN: char = '+';

/// The form in which samples are kept; by default raw tensors in plain records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// How pictures are stored; as raw tensors where there is none. Fields that are no pictures always are.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub encoding: Option<Encoding>,
    /// How the shards of records are compressed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name")]
    pub packing: Option<Packing>,
}

impl Form {
    /// Whether it is the default.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// The parts, joined; nothing where it is plain.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.encoding, self.packing) {
            (Some(encoding), Some(packing)) => write!(f, "{encoding}{JOIN}{packing}"),
            (Some(encoding), None) => encoding.fmt(f),
            (None, Some(packing)) => packing.fmt(f),
            (None, None) => Ok(()),
        }
    }
}

impl FromStr for Form {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut form = Self::default();
        for part in text.split(JOIN) {
            // Packing comes last: what is packed are records, whatever is in them.
            match part.parse::<Packing>() {
                Ok(packing) if form.packing.is_none() => form.packing = Some(packing),
                // A compression of a level that there is not is no encoding either.
                Err(_) if form.is_plain() && !part.starts_with("gzip") && !part.starts_with("zlib") => {
                    form.encoding = Some(part.parse().map_err(Error::Encoding)?);
                }
                _ => return Err(Error::Form { found: text.to_owned() }),
            }
        }
        Ok(form)
    }
}

/// Writes a part of a form down by its name.
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
