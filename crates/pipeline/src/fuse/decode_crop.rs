//! Decode and cut as one: only the rectangle that is cut out is decoded.

use forebay_codec::image::{Picture, Region};
use forebay_codec::{TensorMut, TensorSpec, TensorView, memory};

use super::convert_crop::Crop;
use crate::error::StepError;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
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
    /// A square as it is.
    AsIs(Crop),
}

impl Cut {
    fn transform(&self) -> &dyn Transform {
        match self {
            Self::Resized(crop) => crop,
            Self::AsIs(crop) => crop.transform(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Resized(crop) => crop.size,
            Self::AsIs(crop) => crop.size(),
        }
    }

    fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        match self {
            Self::Resized(crop) => Ok(crop.draw(width, height, random)),
            Self::AsIs(crop) => crop.rectangle(width, height, random),
        }
    }
}

impl DecodeCrop {
    /// The whole picture's spec, with its height, width and channels.
    fn whole(&self, input: ValueView<'_>, scope: &mut Scope) -> Result<(TensorSpec, [usize; 3]), StepError> {
        let spec = self.decode.output_spec(input, scope)?;
        match spec.as_picture() {
            Some((height, width, channels)) if height * width > 0 => Ok((spec, [height, width, channels])),
            _ => Err(StepError::Unfit { found: spec, expected: "a picture" }),
        }
    }
}

impl Transform for DecodeCrop {
    fn is_random(&self) -> bool {
        self.cut.transform().is_random()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.cut.transform().output_type(&self.decode.output_type(input)?)
    }

    fn output_spec(&self, input: ValueView<'_>, scope: &mut Scope) -> Result<TensorSpec, StepError> {
        let (whole, [_, _, channels]) = self.whole(input, scope)?;
        Ok(TensorSpec::new(whole.dtype, &[self.cut.size(), self.cut.size(), channels]))
    }

    /// As if all of the picture were cut out: a bound that needs no draw.
    fn working_bytes(&self, input: ValueView<'_>, _output: &TensorSpec, scope: &mut Scope) -> Result<usize, StepError> {
        let whole = self.decode.output_spec(input, scope)?;
        Ok(self.decode.working_bytes(input, &whole, scope)?.saturating_add(2 * whole.bytes()))
    }

    fn run(&self, input: ValueView<'_>, mut output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let picture = Picture::open(encoded(input)?)?;
        let (whole, [height, width, channels]) = self.whole(input, scope)?;
        scope.begin_step(self.crop_step);
        let Rectangle { left, top, width, height } = self.cut.rectangle(width, height, &mut scope.random)?;
        let mut options = self.decode.options(&picture);
        options.region = Some(Region { x: left, y: top, width, height });
        let spec = TensorSpec::new(whole.dtype, &[height, width, channels]);
        let plan = picture.plan(&options)?;
        let Cut::Resized(crop) = &self.cut else {
            scope.decoder.decode_into(&plan, output)?;
            return Ok(());
        };
        memory::grow(&mut scope.pixels, spec.bytes())?;
        let pixels = &mut scope.pixels[..spec.bytes()];
        scope.decoder.decode_into(&plan, TensorMut { spec, data: pixels })?;
        let part = Rectangle { left: 0, top: 0, width, height };
        resize_rectangle(TensorView { spec, data: pixels }, part, crop.filter, true, &mut output, &mut scope.resizer)
    }
}
