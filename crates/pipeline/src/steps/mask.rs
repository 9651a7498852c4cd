//! Masks: a picture of classes.

use forebay_codec::DType;
use forebay_codec::image::{Limits, Picture, decode_labels};
use serde::{Deserialize, Serialize};

use super::encoded;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Decodes a mask: a PNG whose palette places or grey values are classes, as they were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct DecodeMask {
    /// The most pixels a mask may have.
    pub pixels_max: usize,
}

impl Default for DecodeMask {
    fn default() -> Self {
        Self { pixels_max: Limits::default().pixels_max }
    }
}

impl Transform for DecodeMask {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.pixels_max > 0, "pixels-max", &self.pixels_max, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => Ok(FieldType::Tensor { dtype: DType::U8, dims: vec![None, None] }),
            _ => Err(Needs("encoded bytes".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let limits = Limits { pixels_max: self.pixels_max, ..Limits::default() };
        let picture = Picture::open(encoded(input)?)?;
        // The mask as it is decoded, and as it is packed in the file.
        let header = picture.header();
        output.working(header.width.saturating_mul(header.height).saturating_mul(2))?;
        let mask = decode_labels(&picture, &limits)?;
        output.tensor(*mask.spec())?.data.copy_from_slice(mask.data());
        Ok(())
    }
}
