//! Masks: a picture of classes.

use forebay_codec::image::{EncodedImage, Limits, decode_labels};
use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};

use super::encoded;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Decodes a mask: a PNG whose palette indexes or gray values are classes, as they were stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeMask {
    /// Whether values of 16 bits stay so, as ids of instances have them: masks are `uint16` then, those of up to 8 bits too, with the same
    /// values. Otherwise masks are `uint8`, and one of 16 bits is refused.
    pub keep_depth: bool,
    /// The most pixels a mask may have.
    pub max_pixels: usize,
}

impl Default for DecodeMask {
    fn default() -> Self {
        Self { keep_depth: false, max_pixels: Limits::default().max_pixels }
    }
}

impl Transform for DecodeMask {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.max_pixels > 0, "max_pixels", &self.max_pixels, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => Ok(FieldType::Tensor { dtype: self.dtype(), dims: vec![None, None] }),
            _ => Err(Needs("encoded bytes".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let limits = Limits { max_pixels: self.max_pixels, ..Limits::default() };
        let picture = EncodedImage::open(encoded(input)?)?;
        let header = picture.header();
        if header.bits == 16 && !self.keep_depth {
            return Err(StepError::DeepMask);
        }
        // The mask as it is decoded, and as it is packed in the file.
        output.working(header.width.saturating_mul(header.height).saturating_mul(2 * self.dtype().bytes()))?;
        let mask = decode_labels(&picture, &limits)?;
        let slot = output.tensor(TensorSpec { dtype: self.dtype(), ..*mask.spec() })?;
        if mask.spec().dtype == self.dtype() {
            slot.data.copy_from_slice(mask.data());
        } else {
            // Classes are no shades: a wider type changes none of them.
            let (words, _) = slot.data.as_chunks_mut::<2>();
            words.iter_mut().zip(mask.data()).for_each(|(to, &class)| *to = u16::from(class).to_le_bytes());
        }
        Ok(())
    }
}

impl DecodeMask {
    fn dtype(&self) -> DType {
        if self.keep_depth { DType::U16 } else { DType::U8 }
    }
}
