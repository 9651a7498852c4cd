//! The strategy: where a pipeline is split, and in which format what is kept there is stored.

use std::fmt;
use std::sync::Arc;

use forebay_codec::DType;
use forebay_codec::image::Encoding;
use forebay_codec::tensor_encoding::TensorEncoding;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pipeline::{Pipeline, Split};
use crate::schema::{FieldType, Schema};
use crate::step::{Action, Step, Transform};
use crate::steps::{Color, Decode, DecodeTensor};
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
        let kept = pipeline.schema_after(strategy.split.offline_steps());
        let is_kept_so = |is_so: fn(&StoredAs) -> bool| {
            kept.fields.iter().filter_map(|(_, kind)| kept_as(kind, &format)).any(|kept_as| is_so(&kept_as))
        };
        if let Some(encoding) = format.encoding
            && !is_kept_so(|kept_as| matches!(kept_as, StoredAs::Image(..)))
        {
            return Err(Error::NotAPicture {
                strategy: strategy.to_string(),
                encoding: encoding.to_string(),
                found: kept.to_string(),
            });
        }
        if format.progressive && !kept.fields.iter().any(|(_, kind)| *kind == FieldType::Bytes) {
            return Err(Error::NotAPicture {
                strategy: strategy.to_string(),
                encoding: format.to_string(),
                found: kept.to_string(),
            });
        }
        if let Some(encoding) = format.tensor_encoding
            && !is_kept_so(|kept_as| matches!(kept_as, StoredAs::Tensor(..)))
        {
            return Err(Error::NotATensor {
                strategy: strategy.to_string(),
                encoding: encoding.to_string(),
                found: kept.to_string(),
            });
        }
        Ok(strategy)
    }

    /// The files as they are, all steps every epoch. Of a pipeline that packs the samples of shards, that is no strategy to load by.
    pub fn files() -> Self {
        Self { split: Split::files(), format: StorageFormat::default() }
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
            || self.format.tensor_encoding.is_some_and(|encoding| !encoding.is_lossless())
    }

    /// The steps that are done once.
    pub fn offline<'p>(&self, pipeline: &'p Pipeline) -> &'p [Step] {
        &pipeline.steps()[..self.split.offline_steps()]
    }

    /// The fields of a stored record: pictures and tensors that are encoded are bytes.
    pub fn stored_schema(&self, pipeline: &Pipeline) -> Schema {
        let mut schema = pipeline.schema_after(self.split.offline_steps()).clone();
        for (_, kind) in &mut schema.fields {
            if kept_as(kind, &self.format).is_some() {
                *kind = FieldType::Bytes;
            }
        }
        schema
    }

    /// The fields that are kept encoded, each with its encoding.
    pub fn field_encodings(&self, pipeline: &Pipeline) -> Vec<FieldEncoding> {
        self.encoded(pipeline).map(|(name, kept_as)| FieldEncoding::new(name, &kept_as)).collect()
    }

    /// The steps that make the pictures and tensors of a stored sample again; none where they are kept raw.
    pub fn unpacking(&self, pipeline: &Pipeline) -> Vec<Step> {
        self.encoded(pipeline).map(|(name, kept_as)| self.decoding(name, kept_as)).collect()
    }

    /// The same but for pictures, which others read as they are.
    pub fn unpacking_tensors(&self, pipeline: &Pipeline) -> Vec<Step> {
        let tensors = self.encoded(pipeline).filter(|(_, kept_as)| matches!(kept_as, StoredAs::Tensor(..)));
        tensors.map(|(name, kept_as)| self.decoding(name, kept_as)).collect()
    }

    fn encoded<'p>(&self, pipeline: &'p Pipeline) -> impl Iterator<Item = (&'p str, StoredAs)> {
        let kept = &pipeline.schema_after(self.split.offline_steps()).fields;
        kept.iter().filter_map(move |(name, kind)| Some((name.as_str(), kept_as(kind, &self.format)?)))
    }

    fn decoding(&self, field: &str, kept_as: StoredAs) -> Step {
        let (encoding, transform): (String, Arc<dyn Transform>) = match kept_as {
            StoredAs::Image(encoding, decode) => (encoding.to_string(), Arc::new(decode)),
            StoredAs::Tensor(encoding, decode) => (encoding.to_string(), Arc::new(decode)),
        };
        Step {
            name: format!("decode {field} from {encoding}"),
            stage: self.split.name.clone(),
            fields: vec![field.to_owned()],
            action: Action::Transform(transform),
            spec: None,
        }
    }

    /// The steps that are done every epoch, unpacking first, and the number of the first. (Unpacking draws nothing, so it
    /// may take the numbers of offline steps, and where it is more of them those before zero, which wrap around.)
    pub fn online(&self, pipeline: &Pipeline) -> (Vec<Step>, usize) {
        let offline = self.split.offline_steps();
        let mut steps = self.unpacking(pipeline);
        let first = offline.wrapping_sub(steps.len());
        steps.extend_from_slice(&pipeline.steps()[offline..]);
        (steps, first)
    }
}

/// How a value is kept that is not kept raw, and how to get it back.
pub(crate) enum StoredAs {
    Image(Encoding, Decode),
    Tensor(TensorEncoding, DecodeTensor),
}

/// How `format` keeps a value of this type; `None` where it keeps it raw.
pub(crate) fn kept_as(kind: &FieldType, format: &StorageFormat) -> Option<StoredAs> {
    if let Some(encoding) = format.encoding
        && let Some(decode) = decoder_of(kind, encoding)
    {
        return Some(StoredAs::Image(encoding, decode));
    }
    let FieldType::Tensor { dtype, dims } = kind else { return None };
    // A single number, such as a label, would only become larger, and a loss is not meant for it.
    if dims.is_empty() {
        return None;
    }
    let encoding = format.tensor_encoding.filter(|encoding| encoding.holds(*dtype))?;
    Some(StoredAs::Tensor(encoding, DecodeTensor { kind: kind.clone() }))
}

/// A field that is kept encoded, as a manifest has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldEncoding {
    /// Its name.
    pub field: String,
    /// The encoding's name.
    pub encoding: String,
    /// Of a tensor that is kept with a loss: no number comes back further from what it was than by the larger of this and of
    /// `max_relative_error` times its magnitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_absolute_error: Option<f64>,
    /// See `max_absolute_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_relative_error: Option<f64>,
}

impl FieldEncoding {
    fn new(field: &str, kept_as: &StoredAs) -> Self {
        let (encoding, bound) = match kept_as {
            StoredAs::Image(encoding, _) => (encoding.to_string(), None),
            StoredAs::Tensor(encoding, _) => (encoding.to_string(), encoding.error_bound()),
        };
        Self {
            field: field.to_owned(),
            encoding,
            max_absolute_error: bound.map(|bound| bound.absolute),
            max_relative_error: bound.map(|bound| bound.relative),
        }
    }
}

/// `image: l3-fast`, `sound: round-absolute-0.001-pco-8 (error at most 0.001)`.
impl fmt::Display for FieldEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.encoding)?;
        match (self.max_absolute_error, self.max_relative_error) {
            (Some(absolute), Some(relative)) if relative > 0.0 && absolute > 0.0 => {
                write!(f, " (error at most {relative} of the number, or {absolute:e})")
            }
            (_, Some(relative)) if relative > 0.0 => write!(f, " (error at most {relative} of the number)"),
            (Some(absolute), _) => write!(f, " (error at most {absolute})"),
            _ => Ok(()),
        }
    }
}

/// How to get a picture of this type back from `encoding`; `None` if it is no picture that the encoding can hold.
fn decoder_of(kind: &FieldType, encoding: Encoding) -> Option<Decode> {
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
