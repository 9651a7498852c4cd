//! Convert and crop as one: cut first, so that what is thrown away is not converted.

use std::sync::Arc;

use forebay_codec::{TensorMut, TensorSpec, TensorView, memory};

use super::only;
use crate::error::StepError;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Step, Transform};
use crate::steps::{CentreCrop, RandomCrop, Rectangle};

/// Either crop.
#[derive(Debug)]
pub(super) enum Crop {
    Random(RandomCrop),
    Centre(CentreCrop),
}

impl Crop {
    /// The crop in `step`, if it is one.
    pub(super) fn of(step: Option<&Step>) -> Option<Self> {
        let random = only::<RandomCrop>(step).map(|crop| Self::Random(crop.clone()));
        random.or_else(|| only::<CentreCrop>(step).map(|crop| Self::Centre(crop.clone())))
    }

    pub(super) fn size(&self) -> usize {
        match self {
            Self::Random(crop) => crop.size,
            Self::Centre(crop) => crop.size,
        }
    }

    pub(super) fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        match self {
            Self::Random(crop) => crop.rectangle(width, height, random),
            Self::Centre(crop) => crop.rectangle(width, height),
        }
    }

    pub(super) fn transform(&self) -> &dyn Transform {
        match self {
            Self::Random(crop) => crop,
            Self::Centre(crop) => crop,
        }
    }
}

#[derive(Debug)]
pub(super) struct ConvertCrop {
    /// A conversion of each pixel by itself.
    pub(super) convert: Arc<dyn Transform>,
    pub(super) crop: Crop,
    /// The number of the crop, which seeds its draw.
    pub(super) crop_step: usize,
}

impl Transform for ConvertCrop {
    fn is_random(&self) -> bool {
        self.crop.transform().is_random()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.crop.transform().output_type(&self.convert.output_type(input)?)
    }

    fn output_spec(&self, input: ValueView<'_>, scope: &mut Scope) -> Result<TensorSpec, StepError> {
        let converted = self.convert.output_spec(input, scope)?;
        let cropped = self.crop.transform().output_spec(input, scope)?;
        Ok(TensorSpec { dtype: converted.dtype, ..cropped })
    }

    fn run(&self, input: ValueView<'_>, output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let crop = self.crop.transform();
        let spec = crop.output_spec(input, scope)?;
        let mut pixels = std::mem::take(&mut scope.pixels);
        memory::grow(&mut pixels, spec.bytes())?;
        scope.begin_step(self.crop_step);
        let done = crop.run(input, TensorMut { spec, data: &mut pixels[..spec.bytes()] }, scope).and_then(|()| {
            let cropped = TensorView { spec, data: &pixels[..spec.bytes()] };
            self.convert.run(ValueView::Tensor(cropped), output, scope)
        });
        scope.pixels = pixels;
        done
    }
}
