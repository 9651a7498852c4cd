//! Augmentations: 8-bit pictures that become other ones of the same size.
//!
//! A step draws what is to be done to a sample ([`Augmentation::draw`]) as a list of [`PixelOp`]s, whose parameters are fixed. Lists
//! of neighboring steps are done as one: changes of single values become one table, and nothing is copied in between.

mod aug_mix;
mod auto_augment;
mod chain;
mod drawn;
mod neighbors;
mod policies;
mod tables;
#[cfg(test)]
mod tests;
mod timm;

use std::fmt;
use std::sync::Arc;

use forebay_codec::{DType, TensorView};

pub use aug_mix::AugMix;
pub use auto_augment::AutoAugmentPolicy;
pub use chain::PixelOp;
pub use drawn::{
    ColorJitter, GaussianBlur, RandomAdjustSharpness, RandomAutocontrast, RandomEqualize, RandomGrayscale,
    RandomInvert, RandomPhotometricDistort, RandomPosterize, RandomSolarize,
};
pub(super) use neighbors::mirrored;
pub use policies::{AutoAugment, RandAugment, TrivialAugmentWide};
pub use timm::{RandAugmentTransform, RandConfig};

use super::geometry::{Frame, followed, frame_before, rider_type};
use super::{Warp, picture, picture_type};
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, FOLLOWS_IF_NAMED, Needs, Transform};
use chain::ChainScratch;

/// What decides, at random or not, which changes are made to a picture.
pub trait Augmentation: fmt::Debug + Send + Sync {
    /// Whether it draws random numbers.
    fn is_random(&self) -> bool {
        true
    }

    /// Whether its parameters make sense; asked when a pipeline is made.
    fn check(&self) -> Result<(), BadParameter> {
        Ok(())
    }

    /// Whether pixels may be moved about ([`PixelOp::Warp`]): then masks, boxes and key points go with them.
    fn is_geometric(&self) -> bool {
        false
    }

    /// The class of a mask where pixels come from outside.
    fn mask_fill(&self) -> u16 {
        0
    }

    /// Adds what is done to a picture of this size (width, height) this time to `ops`; nothing, if nothing is.
    fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>);
}

/// The step of one augmentation, or of several that are done as one.
#[derive(Debug, Clone)]
pub struct Augment {
    /// Each with its number in the pipeline, which seeds its draw, where they are several.
    steps: Vec<(Option<usize>, Arc<dyn Augmentation>)>,
}

const EXPECTED: &str = "an image of 1 or 3 channels in uint8";

/// What comes in goes out, if it is an 8-bit picture.
fn output_type(input: &FieldType) -> Result<FieldType, Needs> {
    match picture_type(input)? {
        (DType::U8, [_, _, Some(1 | 3)]) => Ok(input.clone()),
        _ => Err(Needs(EXPECTED.to_owned())),
    }
}

impl Augment {
    /// The step of one augmentation.
    pub fn new(step: impl Augmentation + 'static) -> Self {
        Self { steps: vec![(None, Arc::new(step))] }
    }

    /// The class of a mask where pixels come from outside.
    pub(super) fn mask_fill(&self) -> u16 {
        self.steps.iter().map(|(_, step)| step.mask_fill()).max().unwrap_or(0)
    }

    /// A mask, boxes or key points go where the picture before them went: it is drawn once more, which gives the same.
    fn follow(&self, view: TensorView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let size = frame_before(scope)?.from;
        let mut ops = Vec::new();
        self.draw_numbered(size, scope, &mut ops);
        output.working(view.spec.bytes().saturating_mul(2))?;
        let mut made = followed(view, &Frame::whole(size), 0)?;
        for op in ops {
            if let PixelOp::Warp(Warp { projection, .. }) = op {
                made = followed(made.view(), &Frame::projected(size, projection), self.mask_fill())?;
            }
        }
        output.tensor(*made.spec())?.data.copy_from_slice(made.data());
        Ok(())
    }

    fn draw_numbered(&self, size: (usize, usize), scope: &mut Scope, ops: &mut Vec<PixelOp>) {
        for (number, step) in &self.steps {
            if let Some(number) = *number {
                scope.begin_step(number);
            }
            step.draw(size, &mut scope.random, ops);
        }
    }

    /// Adds what is done to a picture of this size this time, to `ops`.
    pub(super) fn draw(&self, size: (usize, usize), random: &mut Random, ops: &mut Vec<PixelOp>) {
        self.steps.iter().for_each(|(_, step)| step.draw(size, random, ops));
    }

    /// Several as one, each with its number in the pipeline.
    pub(crate) fn joined<'a>(steps: impl Iterator<Item = (usize, &'a Self)>) -> Self {
        let numbered = steps.flat_map(|(number, step)| step.steps.iter().map(move |(_, step)| (number, step)));
        Self { steps: numbered.map(|(number, step)| (Some(number), Arc::clone(step))).collect() }
    }
}

impl Transform for Augment {
    fn is_random(&self) -> bool {
        self.steps.iter().any(|(_, step)| step.is_random())
    }

    fn check(&self) -> Result<(), BadParameter> {
        self.steps.iter().try_for_each(|(_, step)| step.check())
    }

    fn is_geometric(&self) -> bool {
        self.steps.iter().any(|(_, step)| step.is_geometric())
    }

    fn riders_left(&self) -> Option<&'static str> {
        self.is_geometric().then_some(FOLLOWS_IF_NAMED)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match rider_type(input, None) {
            Some(rider) if self.is_geometric() => Ok(rider),
            _ => output_type(input),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        if let ValueView::Tensor(view) = input
            && self.is_geometric()
            && view.spec.shape.dims().len() == 2
        {
            return self.follow(view, output, scope);
        }
        let (view, [height, width, channels]) = picture(input)?;
        if view.spec.dtype != DType::U8 || !matches!(channels, 1 | 3) {
            return Err(StepError::Unfit { found: view.spec, expected: EXPECTED });
        }
        let mut scratch = std::mem::take(scope.scratch::<ChainScratch>());
        scratch.ops.clear();
        self.draw_numbered((width, height), scope, &mut scratch.ops);
        scope.frame = Some(Frame::whole((width, height)));
        // As if everything were drawn: whether there is memory for a sample does not hang on its draw.
        output.working(chain::working_bytes(view.spec.bytes()))?;
        let slot = output.tensor(view.spec)?;
        chain::run(&mut scratch, view.data, [height, width, channels], slot.data)?;
        *scope.scratch() = scratch;
        Ok(())
    }
}
