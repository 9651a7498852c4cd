//! Flip, convert and separate the channels as one pass.

use forebay_codec::{DType, TensorMut, TensorSpec, memory};

use crate::error::StepError;
use crate::kernels::{self, Conversion, Level};
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{Needs, Transform};
use crate::steps::{Centre, HorizontalFlip, Normalise, ToChw, float_output, picture};

/// How bytes become numbers.
#[derive(Debug)]
pub(super) enum Convert {
    Centre,
    Normalise(Normalise, Conversion),
}

impl Convert {
    /// A normalisation of three channels; others are done step by step.
    pub(super) fn normalise(step: &Normalise) -> Option<Self> {
        step.conversion().map(|conversion| Self::Normalise(step.clone(), conversion))
    }

    fn conversion(&self) -> Conversion {
        match self {
            Self::Centre => Conversion::Centre,
            Self::Normalise(_, conversion) => *conversion,
        }
    }

    fn transform(&self) -> &dyn Transform {
        match self {
            Self::Centre => &Centre {},
            Self::Normalise(step, _) => step,
        }
    }
}

#[derive(Debug)]
pub(super) struct Finish {
    /// The flip and its number, which seeds its draw.
    pub(super) flip: Option<(HorizontalFlip, usize)>,
    pub(super) convert: Convert,
}

impl Finish {
    /// The steps one after another, for pictures that the kernel does not do.
    fn step_by_step(
        &self,
        mirrored: bool,
        input: ValueView<'_>,
        output: TensorMut<'_>,
        scope: &mut Scope,
    ) -> Result<(), StepError> {
        let convert = self.convert.transform();
        let flipped = if mirrored { Some(mirror(input, scope)?) } else { None };
        let input = flipped.as_ref().map_or(input, |tensor| ValueView::Tensor(tensor.view()));
        let spec = convert.output_spec(input, scope)?;
        let mut converted = memory::zeroed::<u64>(spec.bytes().div_ceil(size_of::<u64>()))?;
        let converted = &mut bytemuck::cast_slice_mut(&mut converted)[..spec.bytes()];
        convert.run(input, TensorMut { spec, data: converted }, scope)?;
        let view = forebay_codec::TensorView { spec, data: converted };
        ToChw {}.run(ValueView::Tensor(view), output, scope)
    }
}

fn mirror(input: ValueView<'_>, scope: &mut Scope) -> Result<forebay_codec::Tensor, StepError> {
    let always = HorizontalFlip { probability: 1.0 };
    let spec = always.output_spec(input, scope)?;
    let mut data = memory::zeroed(spec.bytes())?;
    always.run(input, TensorMut { spec, data: &mut data }, scope)?;
    let unfit = StepError::Unfit { found: spec, expected: "a picture" };
    forebay_codec::Tensor::new(spec, data).ok_or(unfit)
}

impl Transform for Finish {
    fn is_random(&self) -> bool {
        self.flip.is_some()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        ToChw {}.output_type(&self.convert.transform().output_type(input)?)
    }

    fn output_spec(&self, input: ValueView<'_>, scope: &mut Scope) -> Result<TensorSpec, StepError> {
        let (_, [height, width, channels]) = picture(input)?;
        let dtype = self.convert.transform().output_spec(input, scope)?.dtype;
        Ok(TensorSpec::new(dtype, &[channels, height, width]))
    }

    fn run(&self, input: ValueView<'_>, mut output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let mirrored = self.flip.as_ref().is_some_and(|(flip, number)| {
            scope.begin_step(*number);
            flip.draw(&mut scope.random)
        });
        let (view, [height, width, channels]) = picture(input)?;
        if view.spec.dtype != DType::U8 || channels != 3 {
            return self.step_by_step(mirrored, input, output, scope);
        }
        let level = Level::best();
        let conversion = self.convert.conversion();
        let planes = float_output(&mut output)?;
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
