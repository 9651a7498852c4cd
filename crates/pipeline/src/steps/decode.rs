//! Decode: the bytes of an image file become a picture.

use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, EncodedImage, Limits, Scale};
use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};

use super::picture_of;
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Decodes an image of any known format: content decides, not the name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in a pipeline file")]
pub struct Decode {
    /// `rgb` or `gray`.
    pub color: Color,
    /// Whether 16-bit samples stay 16 bit; otherwise they are reduced to 8.
    pub keep_depth: bool,
    /// Whether the EXIF orientation is applied.
    pub orientation: bool,
    /// Whether a truncated picture is accepted, with its missing part filled; otherwise it is an error.
    pub allow_truncated: bool,
    /// Whether JPEG's fast inverse DCT is used, as TensorFlow does by default.
    pub fast_dct: bool,
    /// Decode smaller, at a half, a quarter or an eighth of the size, as long as the shorter side stays at least this long; whole
    /// unless given. Of a large JPEG that is resized anyway this saves work, and its pixels come out a little
    /// different. Not where masks or boxes go with the picture: those stay as large as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_shorter_side: Option<usize>,
    /// The most pixels a picture may have.
    pub max_pixels: usize,
}

/// The colors a picture is decoded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Color {
    /// Red, green, blue.
    Rgb,
    /// One channel.
    Gray,
}

impl Default for Decode {
    fn default() -> Self {
        Self {
            color: Color::Rgb,
            keep_depth: false,
            orientation: true,
            allow_truncated: false,
            fast_dct: false,
            min_shorter_side: None,
            max_pixels: Limits::default().max_pixels,
        }
    }
}

impl Decode {
    /// The codec's options for this picture.
    pub(crate) fn options(&self, picture: &EncodedImage<'_>) -> DecodeOptions {
        let shorter = picture.header().width.min(picture.header().height);
        let smaller = [Scale::Eighth, Scale::Quarter, Scale::Half];
        let scale =
            self.min_shorter_side.and_then(|least| smaller.into_iter().find(|scale| scale.apply(shorter) >= least));
        DecodeOptions {
            scale: scale.unwrap_or(Scale::Full),
            channels: match self.color {
                Color::Rgb => Channels::Rgb,
                Color::Gray => Channels::Gray,
            },
            depth: if self.keep_depth { Depth::AsStored } else { Depth::Eight },
            apply_orientation: self.orientation,
            allow_truncated: self.allow_truncated,
            fast_dct: self.fast_dct,
            limits: Limits { max_pixels: self.max_pixels, ..Limits::default() },
            ..DecodeOptions::default()
        }
    }
}

/// The bytes in `input`, which the schema check has promised.
pub(crate) fn encoded(input: ValueView<'_>) -> Result<&[u8], StepError> {
    match input {
        ValueView::Bytes(bytes) => Ok(bytes),
        _ => Err(StepError::NoField { field: "encoded bytes".to_owned() }),
    }
}

impl Transform for Decode {
    fn check(&self) -> Result<(), BadParameter> {
        let side_fits = self.min_shorter_side.is_none_or(|side| side > 0);
        BadParameter::unless(side_fits, "min_shorter_side", &self.min_shorter_side, "at least 1")?;
        BadParameter::unless(self.max_pixels > 0, "max_pixels", &self.max_pixels, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let channels = match self.color {
            Color::Rgb => 3,
            Color::Gray => 1,
        };
        // With `keep_depth` the type says 16 bit: 8-bit files are widened, since a data set has one element type.
        let dtype = if self.keep_depth { DType::U16 } else { DType::U8 };
        match input {
            FieldType::Bytes => Ok(picture_of(dtype, [None, None, Some(channels)])),
            _ => Err(Needs("encoded bytes".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let picture = EncodedImage::open(encoded(input)?)?;
        let plan = picture.plan(&self.options(&picture))?;
        let decoder: &mut Decoder = scope.scratch();
        let spec = plan.spec();
        // The output may be made beside the place that it goes to.
        let ample = output.working_or_least(plan.working_bytes(), plan.least_working_bytes(), 2 * spec.bytes())?;
        let plan = if ample { plan } else { plan.saving_memory() };
        let plan = if output.is_streamed(spec.bytes()) { plan.streaming() } else { plan };
        if spec.dtype == DType::U16 || !self.keep_depth {
            decoder.decode_into(&plan, output.tensor(spec)?)?;
            return Ok(());
        }
        // An 8-bit file in a 16-bit data set: it is decoded beside its slot, and 255 becomes 65535.
        output.working(spec.bytes())?;
        let (narrow, _) = decoder.decode_reporting(&plan)?;
        let spec = TensorSpec { dtype: DType::U16, ..spec };
        let unfit = StepError::Unfit { found: spec, expected: "an aligned 16-bit output" };
        let mut slot = output.tensor(spec)?;
        let wide = slot.elements_mut::<u16>().ok_or(unfit)?;
        for (wide, &narrow) in wide.iter_mut().zip(narrow.data()) {
            *wide = u16::from(narrow) * 257;
        }
        Ok(())
    }
}
