//! Decode and cut as one: only the rectangle that is cut out is decoded.

use forebay_codec::image::{Decoder, EncodedImage, Region};
use forebay_codec::{TensorMut, TensorSpec, TensorView, memory};
use forebay_resize::Resizer;

use super::convert_crop::Crop;
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::{Scope, Scratch};
use crate::step::{Needs, Transform};
use crate::steps::{Decode, RandomResizedCrop, Rectangle, encoded, resize_rectangle};

#[derive(Debug)]
pub(super) struct DecodeCrop {
    pub(super) decode: Decode,
    pub(super) cut: Cut,
    /// The number of the crop, which seeds its draw.
    pub(super) crop_step: usize,
}

/// What is cut out.
#[derive(Debug)]
pub(super) enum Cut {
    /// A rectangle that is resized then.
    Resized(RandomResizedCrop),
    /// A rectangle as it is.
    AsIs(Crop),
}

impl Cut {
    fn transform(&self) -> &dyn Transform {
        match self {
            Self::Resized(crop) => crop,
            Self::AsIs(crop) => crop.transform(),
        }
    }

    fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        match self {
            Self::Resized(crop) => Ok(crop.draw(width, height, random)),
            Self::AsIs(crop) => crop.rectangle(width, height, random),
        }
    }
}

#[derive(Default)]
struct DecodeCropScratch {
    decoder: Decoder,
    pixels: Vec<u8>,
    resizer: Resizer,
}

impl Scratch for DecodeCropScratch {
    fn capacity_bytes(&self) -> usize {
        self.decoder.capacity_bytes() + self.pixels.capacity() + self.resizer.capacity_bytes()
    }

    fn trim(&mut self) {
        self.decoder.trim();
        self.pixels.trim();
        self.resizer.trim();
    }
}

impl Transform for DecodeCrop {
    fn is_random(&self) -> bool {
        self.cut.transform().is_random()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.cut.transform().output_type(&self.decode.output_type(input)?)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let picture = EncodedImage::open(encoded(input)?)?;
        let mut options = self.decode.options(&picture);
        let whole = picture.plan(&options)?;
        let Some((height, width, channels)) = whole.spec().as_picture() else {
            return Err(StepError::Unfit { found: whole.spec(), expected: "an image" });
        };
        scope.begin_step(self.crop_step);
        let Rectangle { left, top, width, height } = self.cut.rectangle(width, height, &mut scope.random)?;
        options.region = Some(Region { x: left, y: top, width, height });
        let part = picture.plan(&options)?;
        let spec = part.spec();
        // As if all of the picture were cut out: whether there is memory for a sample does not hang on its draw.
        let with_pixels = |bytes: usize| bytes.saturating_add(2 * whole.spec().bytes());
        let (best_bytes, least_bytes) = (with_pixels(whole.working_bytes()), with_pixels(whole.least_working_bytes()));
        let ample = output.working_or_least(best_bytes, least_bytes, 0)?;
        let part = if ample { part } else { part.saving_memory() };
        let DecodeCropScratch { decoder, pixels, resizer } = scope.scratch();
        let Cut::Resized(crop) = &self.cut else {
            decoder.decode_into(&part, output.tensor(spec)?)?;
            return Ok(());
        };
        let [crop_height, crop_width] = crop.size.height_and_width();
        let mut slot = output.tensor(TensorSpec::new(spec.dtype, &[crop_height, crop_width, channels]))?;
        memory::grow(pixels, spec.bytes())?;
        let pixels = &mut pixels[..spec.bytes()];
        decoder.decode_into(&part, TensorMut { spec, data: pixels })?;
        let rectangle = Rectangle::whole(width, height);
        let pixels = TensorView { spec, data: pixels };
        resize_rectangle(pixels, rectangle, crop.interpolation, crop.antialias, &mut slot, resizer)
    }
}
