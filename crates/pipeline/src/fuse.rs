//! Steps that are cheaper done together.
//!
//! A pipeline says what is to be done; this module decides how. Where some neighboring steps give the same pixels for
//! less work when they are done as one, the runner does them as one:
//!
//! - *decode, then cut* (`decode`, then any crop): only the part of the picture that is cut out is decoded;
//! - *convert, then cut* (`center_pixels` or `normalize`, then a crop): what is thrown away is not converted;
//! - *color, then color* (`color_jitter`, `random_grayscale`, …): changes of single values are one table;
//! - *flip, convert, separate* (`random_horizontal_flip`, `center_pixels` or `normalize`, `to_chw`): one pass over the pixels.
//!
//! The result is the same to the bit, which tests check; profiles measure steps one by one, and strategies as they run.

mod convert_crop;
mod decode_crop;
mod finish;

use std::sync::Arc;

use crate::step::{Action, Step, Transform};
use crate::steps::{Augment, Center, Decode, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToChw};
use convert_crop::{ConvertCrop, Crop};
use decode_crop::{Cut, DecodeCrop};
use finish::{Convert, Finish};

/// A step, or several done as one, and its number in the pipeline (the last one's).
pub(crate) struct Fused {
    pub(crate) number: usize,
    pub(crate) step: Step,
}

/// Every step by itself.
pub(crate) fn one_by_one(steps: &[Step], first_step: usize) -> Vec<Fused> {
    let numbered = |(index, step): (usize, &Step)| Fused { number: first_step.wrapping_add(index), step: step.clone() };
    steps.iter().enumerate().map(numbered).collect()
}

/// Steps that fit are done as one.
pub(crate) fn fused(steps: &[Step], first_step: usize) -> Vec<Fused> {
    let mut fused_steps = Vec::new();
    let mut index = 0;
    while index < steps.len() {
        let number = first_step.wrapping_add(index);
        let found = decode_crop(&steps[index..], number)
            .or_else(|| convert_crop(&steps[index..], number))
            .or_else(|| augment(&steps[index..], number))
            .or_else(|| finish(&steps[index..], number));
        let (count, step) = found.unwrap_or_else(|| (1, steps[index].clone()));
        index += count;
        fused_steps.push(Fused { number: first_step.wrapping_add(index - 1), step });
    }
    fused_steps
}

/// The step as the type `T`, if it is one and works on one field.
fn only<T: Transform>(step: Option<&Step>) -> Option<&T> {
    step.filter(|step| step.fields.len() == 1)?.action.transform_as()
}

/// Whether all of these work on the same field.
fn same_field(steps: &[Step]) -> bool {
    steps.windows(2).all(|pair| pair[0].fields == pair[1].fields)
}

/// One step in place of `steps`.
fn joined(steps: &[Step], transform: impl Transform) -> (usize, Step) {
    let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    let last = &steps[steps.len() - 1];
    let step = Step {
        name: names.join(" + "),
        stage: last.stage.clone(),
        fields: last.fields.clone(),
        action: Action::Transform(Arc::new(transform)),
        spec: None,
    };
    (steps.len(), step)
}

fn decode_crop(steps: &[Step], number: usize) -> Option<(usize, Step)> {
    let decode: &Decode = only(steps.first())?;
    let resized = only::<RandomResizedCrop>(steps.get(1)).map(|crop| Cut::Resized(crop.clone()));
    let cut = resized.or_else(|| Crop::of(steps.get(1)).map(Cut::AsIs))?;
    let steps = &steps[..2];
    let fused = DecodeCrop { decode: decode.clone(), cut, crop_step: number.wrapping_add(1) };
    (same_field(steps) && !decode.keep_depth).then(|| joined(steps, fused))
}

fn augment(steps: &[Step], number: usize) -> Option<(usize, Step)> {
    let fields = &steps.first()?.fields;
    let augments = steps.iter().map_while(|step| only::<Augment>(Some(step)).filter(|_| step.fields == *fields));
    let augments: Vec<&Augment> = augments.collect();
    let numbered = augments.iter().enumerate().map(|(index, step)| (number.wrapping_add(index), *step));
    (augments.len() > 1).then(|| joined(&steps[..augments.len()], Augment::joined(numbered)))
}

fn convert_crop(steps: &[Step], number: usize) -> Option<(usize, Step)> {
    let convert: Arc<dyn Transform> = match &steps.first()?.action {
        Action::Transform(convert) if converts(steps.first()) => Arc::clone(convert),
        _ => return None,
    };
    let crop = Crop::of(steps.get(1))?;
    let steps = &steps[..2];
    same_field(steps).then(|| joined(steps, ConvertCrop { convert, crop, crop_step: number.wrapping_add(1) }))
}

fn converts(step: Option<&Step>) -> bool {
    only::<Center>(step).is_some() || only::<Normalize>(step).is_some()
}

fn finish(steps: &[Step], number: usize) -> Option<(usize, Step)> {
    let flip = only::<RandomHorizontalFlip>(steps.first());
    let rest = if flip.is_some() { &steps[1..] } else { steps };
    let convert = only::<Center>(rest.first())
        .map(|_| Convert::Center)
        .or_else(|| only::<Normalize>(rest.first()).and_then(Convert::normalize))?;
    only::<ToChw>(rest.get(1))?;
    let steps = &steps[..usize::from(flip.is_some()) + 2];
    let fused = Finish { flip: flip.map(|flip| (flip.clone(), number)), convert };
    same_field(steps).then(|| joined(steps, fused))
}
