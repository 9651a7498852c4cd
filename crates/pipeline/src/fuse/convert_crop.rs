//! Convert and crop as one: cut first, so that what is thrown away is not converted.

use std::sync::Arc;

use super::only;
use crate::error::StepError;
use crate::output::{Buffer, Output};
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Step, Transform};
use crate::steps::{CenterCrop, RandomCrop, Rectangle};

/// Either crop.
#[derive(Debug)]
pub(super) enum Crop {
    Random(RandomCrop),
    Center(CenterCrop),
}

impl Crop {
    /// The crop in `step`, if it is one of what is there: zeros around a picture are neither decoded nor converted.
    pub(super) fn of(step: Option<&Step>) -> Option<Self> {
        let random = only::<RandomCrop>(step).filter(|crop| !crop.pads()).map(|crop| Self::Random(crop.clone()));
        let center = only::<CenterCrop>(step).filter(|crop| crop.padding == 0);
        random.or_else(|| center.map(|crop| Self::Center(crop.clone())))
    }

    pub(super) fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        match self {
            Self::Random(crop) => crop.rectangle(width, height, random),
            Self::Center(crop) => crop.rectangle(width, height),
        }
    }

    pub(super) fn transform(&self) -> &dyn Transform {
        match self {
            Self::Random(crop) => crop,
            Self::Center(crop) => crop,
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

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let buffer = std::mem::take(scope.scratch::<Buffer>());
        scope.begin_step(self.crop_step);
        let cropped = output.between(buffer, |between| self.crop.transform().run(input, between, scope))?;
        self.convert.run(cropped.view(), output, scope)?;
        *scope.scratch() = cropped.into_buffer();
        Ok(())
    }
}
