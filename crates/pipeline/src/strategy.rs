//! The strategy: where a pipeline is split, and how what is kept there is stored.

use std::fmt;
use std::sync::Arc;

use forebay_codec::DType;
use forebay_codec::image::Encoding;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::pipeline::{Pipeline, Split};
use crate::schema::{FieldType, Schema};
use crate::step::{Action, Step};
use crate::steps::{Colour, Decode};

/// A split, and how its pictures are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strategy {
    /// Where the pipeline is split.
    pub split: Split,
    /// How pictures are stored; as raw tensors where there is none. Fields that are no pictures always are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<PictureEncoding>,
}

/// An image encoding that is written down by its name.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PictureEncoding(pub Encoding);

impl From<PictureEncoding> for String {
    fn from(encoding: PictureEncoding) -> Self {
        encoding.0.to_string()
    }
}

impl TryFrom<String> for PictureEncoding {
    type Error = forebay_codec::Error;

    fn try_from(name: String) -> Result<Self, forebay_codec::Error> {
        name.parse().map(Self)
    }
}

/// The strategy's name: its split's, and its encoding's if it has one, as in `decoded+png`.
impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.split.name)?;
        self.encoding.map_or(Ok(()), |encoding| write!(f, "+{}", encoding.0))
    }
}

/// What joins the names of a split and an encoding.
const JOIN: char = '+';

impl Strategy {
    /// The strategy of this name, checked against its pipeline.
    pub fn parse(pipeline: &Pipeline, name: &str) -> Result<Self> {
        let (split, encoding) = name.split_once(JOIN).map_or((name, None), |(split, encoding)| (split, Some(encoding)));
        let encoding = encoding.map(str::parse::<Encoding>).transpose().map_err(Error::Encoding)?;
        Self::new(pipeline, pipeline.split(split)?, encoding)
    }

    /// A strategy, if what is kept at `split` has a picture that can be stored so.
    pub fn new(pipeline: &Pipeline, split: Split, encoding: Option<Encoding>) -> Result<Self> {
        let strategy = Self { split, encoding: encoding.map(PictureEncoding) };
        if let Some(encoding) = encoding {
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

    /// Every strategy of `pipeline`: each legal split with its pictures raw, and in each of `encodings` that can hold them.
    pub fn all(pipeline: &Pipeline, encodings: &[Encoding]) -> Vec<Self> {
        let mut all = Vec::new();
        for split in pipeline.splits() {
            all.push(Self { split: split.clone(), encoding: None });
            all.extend(
                encodings.iter().filter_map(|&encoding| Self::new(pipeline, split.clone(), Some(encoding)).ok()),
            );
        }
        all
    }

    /// Whether what is kept differs from what the pipeline computes up to the split.
    pub fn is_lossy(&self) -> bool {
        self.encoding.is_some_and(|encoding| !encoding.0.is_lossless())
    }

    /// The steps that are done once.
    pub fn offline<'p>(&self, pipeline: &'p Pipeline) -> &'p [Step] {
        &pipeline.steps()[..self.split.offline_steps()]
    }

    /// The fields of a stored record: pictures that are encoded are bytes.
    pub fn stored_schema(&self, pipeline: &Pipeline) -> Schema {
        let mut schema = pipeline.schema_after(self.split.offline_steps()).clone();
        if let Some(PictureEncoding(encoding)) = self.encoding {
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
        let Some(PictureEncoding(encoding)) = self.encoding else { return Vec::new() };
        let kept = &pipeline.schema_after(self.split.offline_steps()).fields;
        let pictures = kept.iter().filter_map(|(name, kind)| Some((name, decoder_of(kind, encoding)?)));
        let step = |(name, decode): (&String, Decode)| Step {
            name: format!("decode {name} from {encoding}"),
            state: self.split.name.clone(),
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
    let colour = match channels {
        Some(1) => Colour::Grey,
        Some(3) => Colour::Rgb,
        _ => return None,
    };
    // Written by us: there is no orientation to apply and no part to miss.
    Some(Decode { colour, keep_depth, orientation: false, ..Decode::default() })
}
