//! Decode and random-resized-crop as one: only the rectangle that is cut out is decoded.

use fast_image_resize::ResizeAlg;
use forebay_codec::image::Region;
use forebay_codec::{TensorMut, TensorSpec, TensorView};

use crate::error::StepError;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};
use crate::steps::{Decode, RandomResizedCrop, Rectangle, encoded, resize_rectangle};

#[derive(Debug)]
pub(super) struct DecodeCrop {
    pub(super) decode: Decode,
    pub(super) crop: RandomResizedCrop,
    /// The number of the crop, which seeds its draw.
    pub(super) crop_step: usize,
}

impl Transform for DecodeCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.crop.output_type(&self.decode.output_type(input)?)
    }

    fn output_spec(&self, input: ValueView<'_>, scope: &mut Scope) -> Result<TensorSpec, StepError> {
        let whole = self.decode.output_spec(input, scope)?;
        let channels = whole.as_picture().map_or(0, |(_, _, channels)| channels);
        Ok(TensorSpec::new(whole.dtype, &[self.crop.size, self.crop.size, channels]))
    }

    fn run(&self, input: ValueView<'_>, mut output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let bytes = encoded(input)?;
        let mut options = self.decode.options();
        let whole = scope.decoder.output_spec(bytes, &options)?;
        let unfit = StepError::Unfit { found: whole, expected: "a picture" };
        let (height, width, channels) =
            whole.as_picture().filter(|(height, width, _)| height * width > 0).ok_or(unfit)?;
        scope.begin_step(self.crop_step);
        let Rectangle { left, top, width, height } = self.crop.draw(width, height, &mut scope.random);
        options.region = Some(Region { x: left, y: top, width, height });
        let spec = TensorSpec::new(whole.dtype, &[height, width, channels]);
        if scope.pixels.len() < spec.bytes() {
            scope.pixels.resize(spec.bytes(), 0);
        }
        let pixels = &mut scope.pixels[..spec.bytes()];
        scope.decoder.decode_into(bytes, &options, TensorMut { spec, data: pixels })?;
        let algorithm = ResizeAlg::Convolution(self.crop.filter.kernel());
        let part = Rectangle { left: 0, top: 0, width, height };
        resize_rectangle(TensorView { spec, data: pixels }, part, algorithm, &mut output, &mut scope.resizer)
    }
}
