//! The strategy: where a pipeline is split, and in which format what is kept there is stored.

use std::fmt;
use std::sync::Arc;

use forebay_codec::DType;
use forebay_codec::image::Encoding;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pipeline::{Pipeline, Split};
use crate::schema::{FieldType, Schema};
use crate::step::{Action, Step};
use crate::steps::{Color, Decode};
use crate::storage_format::{JOIN, StorageFormat};

/// A split, and the format in which samples are kept there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strategy {
    /// Where the pipeline is split.
    pub split: Split,
    /// The format.
    #[serde(flatten)]
    pub format: StorageFormat,
}

/// The strategy's name: its split's, and its format's unless that is plain, as in `decoded+png`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.split.name)?;
        if self.format.is_plain() { Ok(()) } else { write!(f, "{JOIN}{}", self.format) }
    }
}

impl Strategy {
    /// The strategy of this name, checked against its pipeline.
    pub fn parse(pipeline: &Pipeline, name: &str) -> Result<Self> {
        let (split, format) = name.split_once(JOIN).map_or((name, None), |(split, format)| (split, Some(format)));
        let format = format.map(str::parse).transpose()?.unwrap_or_default();
        Self::new(pipeline, pipeline.split(split)?, format)
    }

    /// A strategy, if what is kept at `split` can be stored so.
    pub fn new(pipeline: &Pipeline, split: Split, format: StorageFormat) -> Result<Self> {
        let strategy = Self { split, format };
        if strategy.split.keeps_files() && !format.is_plain() {
            return Err(Error::KeepsFiles { strategy: strategy.to_string(), format: format.to_string() });
        }
        if let Some(encoding) = format.encoding {
            let kept = pipeline.schema_after(strategy.split.offline_steps());
            if !kept.fields.iter().any(|(_, kind)| decoder_of(kind, encoding).is_some()) {
                return Err(Error::NotAPicture {
                    strategy: strategy.to_string(),
                    encoding: encoding.to_string(),
                    found: kept.to_string(),
                });
            }
        }
        Ok(strategy)
    }

    /// Every strategy of `pipeline`: each legal split in plain format, and in each of `formats` that can hold what is kept.
    pub fn all(pipeline: &Pipeline, formats: &[StorageFormat]) -> Vec<Self> {
        let mut all = Vec::new();
        for split in pipeline.splits() {
            let plain = StorageFormat::default();
            let formats = std::iter::once(&plain).chain(formats.iter().filter(|format| !format.is_plain()));
            all.extend(formats.filter_map(|&format| Self::new(pipeline, split.clone(), format).ok()));
        }
        all
    }

    /// Whether what is kept differs from what the pipeline computes up to the split.
    pub fn is_lossy(&self) -> bool {
        self.format.encoding.is_some_and(|encoding| !encoding.is_lossless())
    }

    /// The steps that are done once.
    pub fn offline<'p>(&self, pipeline: &'p Pipeline) -> &'p [Step] {
        &pipeline.steps()[..self.split.offline_steps()]
    }

    /// The fields of a stored record: pictures that are encoded are bytes.
    pub fn stored_schema(&self, pipeline: &Pipeline) -> Schema {
        let mut schema = pipeline.schema_after(self.split.offline_steps()).clone();
        if let Some(encoding) = self.format.encoding {
            for (_, kind) in &mut schema.fields {
                if decoder_of(kind, encoding).is_some() {
                    *kind = FieldType::Bytes;
                }
            }
        }
        schema
    }

    /// The steps that make the pictures of a stored sample again; none where they are kept raw.
    pub fn unpacking(&self, pipeline: &Pipeline) -> Vec<Step> {
        let Some(encoding) = self.format.encoding else { return Vec::new() };
        let kept = &pipeline.schema_after(self.split.offline_steps()).fields;
        let pictures = kept.iter().filter_map(|(name, kind)| Some((name, decoder_of(kind, encoding)?)));
        let step = |(name, decode): (&String, Decode)| Step {
            name: format!("decode {name} from {encoding}"),
            stage: self.split.name.clone(),
            fields: vec![name.clone()],
            action: Action::Transform(Arc::new(decode)),
            spec: None,
        };
        pictures.map(step).collect()
    }

    /// The steps that are done every epoch, unpacking first, and the number of the first. (Unpacking draws nothing, so it
    /// may take the numbers of offline steps.)
    pub fn online(&self, pipeline: &Pipeline) -> (Vec<Step>, usize) {
        let offline = self.split.offline_steps();
        let mut steps = self.unpacking(pipeline);
        let first = offline.saturating_sub(steps.len());
        steps.extend_from_slice(&pipeline.steps()[offline..]);
        (steps, first)
    }
}

/// How to get a picture of this type back from `encoding`; `None` if it is no picture that the encoding can hold.
pub(crate) fn decoder_of(kind: &FieldType, encoding: Encoding) -> Option<Decode> {
    let (dtype, [_, _, channels]) = kind.as_picture()?;
    let keep_depth = match dtype {
        DType::U8 => false,
        DType::U16 if encoding.holds_sixteen_bits() => true,
        _ => return None,
    };
    let color = match channels {
        Some(1) => Color::Gray,
        Some(3) => Color::Rgb,
        _ => return None,
    };
    // Written by us: there is no orientation to apply and no part to miss.
    Some(Decode { color, keep_depth, orientation: false, ..Decode::default() })
}
