//! Flip, convert and separate the channels as one pass.

use forebay_codec::{DType, TensorSpec};

use crate::error::StepError;
use crate::kernels::{self, Conversion, Supported};
use crate::output::{Buffer, Made, Output};
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};
use crate::steps::{Center, Normalize, RandomHorizontalFlip, ToChw, float_output, picture};

/// How bytes become numbers.
#[derive(Debug)]
pub(super) enum Convert {
    Center,
    Normalize(Normalize, Conversion),
}

impl Convert {
    /// A normalization of three channels; others are done step by step.
    pub(super) fn normalize(step: &Normalize) -> Option<Self> {
        step.conversion().map(|conversion| Self::Normalize(step.clone(), conversion))
    }

    fn conversion(&self) -> Conversion {
        match self {
            Self::Center => Conversion::Center,
            Self::Normalize(_, conversion) => *conversion,
        }
    }

    fn transform(&self) -> &dyn Transform {
        match self {
            Self::Center => &Center {},
            Self::Normalize(step, _) => step,
        }
    }
}

#[derive(Debug)]
pub(super) struct Finish {
    /// The flip and its number, which seeds its draw.
    pub(super) flip: Option<(RandomHorizontalFlip, usize)>,
    pub(super) convert: Convert,
}

impl Finish {
    /// The steps one after another, for pictures that the kernel does not do.
    fn step_by_step(
        &self,
        mirrored: bool,
        input: ValueView<'_>,
        output: &mut Output<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let always = RandomHorizontalFlip { p: 1.0 };
        let flip = |between: &mut Output<'_>| always.run(input, between, scope);
        let flipped = if mirrored { Some(output.between(Buffer::default(), flip)?) } else { None };
        let input = flipped.as_ref().map_or(input, Made::view);
        let convert = |between: &mut Output<'_>| self.convert.transform().run(input, between, scope);
        let converted = output.between(Buffer::default(), convert)?;
        ToChw {}.run(converted.view(), output, scope)
    }
}

impl Transform for Finish {
    fn is_random(&self) -> bool {
        self.flip.is_some()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        ToChw {}.output_type(&self.convert.transform().output_type(input)?)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let mirrored = self.flip.as_ref().is_some_and(|(flip, number)| {
            scope.begin_step(*number);
            flip.draw(&mut scope.random)
        });
        let (view, [height, width, channels]) = picture(input)?;
        if view.spec.dtype != DType::U8 || channels != 3 {
            return self.step_by_step(mirrored, input, output, scope);
        }
        let level = Supported::detect();
        let conversion = self.convert.conversion();
        let mut slot = output.tensor(TensorSpec::new(DType::F32, &[channels, height, width]))?;
        let planes = float_output(&mut slot)?;
        let (red, rest) = planes.split_at_mut(height * width);
        let (green, blue) = rest.split_at_mut(height * width);
        let rows = red.chunks_exact_mut(width).zip(green.chunks_exact_mut(width)).zip(blue.chunks_exact_mut(width));
        for (from, ((red, green), blue)) in view.data.chunks_exact(width * 3).zip(rows) {
            if mirrored {
                kernels::to_planes_mirrored(level, from, [red, green, blue], conversion);
            } else {
                kernels::to_planes(level, from, [red, green, blue], conversion);
            }
        }
        Ok(())
    }
}
