//! Crops and flips: pictures cut or mirrored, element type untouched.

use forebay_codec::{TensorMut, TensorSpec, TensorView};
use serde::{Deserialize, Serialize};

use super::{Rectangle, SIDE_MAX, picture, picture_of, picture_type};
use crate::error::StepError;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};

/// Cuts the middle out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CentreCrop {
    /// Width and height in pixels.
    pub size: usize,
}

/// Cuts out a random place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RandomCrop {
    /// Width and height in pixels.
    pub size: usize,
}

/// Mirrors left and right, at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HorizontalFlip {
    /// How probable a flip is.
    pub probability: f64,
}

impl Default for HorizontalFlip {
    fn default() -> Self {
        Self { probability: 0.5 }
    }
}

/// A size that can be cut.
pub(super) fn check_size(size: usize) -> Result<(), BadParameter> {
    BadParameter::unless((1..=SIDE_MAX).contains(&size), "size", &size, "from 1 to 65536 pixels")
}

impl CentreCrop {
    /// What is cut out of a picture of this size.
    pub(crate) fn rectangle(&self, width: usize, height: usize) -> Result<Rectangle, StepError> {
        let size = require_room(width, height, self.size)?;
        // Odd margins round as torchvision's do: half of an odd margin goes to the even side.
        let margin = |length: usize| ((length - size) as f64 / 2.0).round_ties_even() as usize;
        Ok(Rectangle { left: margin(width), top: margin(height), width: size, height: size })
    }
}

impl RandomCrop {
    /// What is cut out of a picture of this size, this time.
    pub(crate) fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        let size = require_room(width, height, self.size)?;
        let top = random.below(height - size + 1);
        let left = random.below(width - size + 1);
        Ok(Rectangle { left, top, width: size, height: size })
    }
}

impl Transform for CentreCrop {
    fn check(&self) -> Result<(), BadParameter> {
        check_size(self.size)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        cropped_type(input, self.size)
    }

    fn output_spec(&self, input: ValueView<'_>, _scope: &mut Scope) -> Result<TensorSpec, StepError> {
        cropped_spec(input, self.size)
    }

    fn run(&self, input: ValueView<'_>, mut output: TensorMut<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let (view, [height, width, _]) = picture(input)?;
        copy_crop(view, self.rectangle(width, height)?, &mut output);
        Ok(())
    }
}

impl Transform for RandomCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_size(self.size)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        cropped_type(input, self.size)
    }

    fn output_spec(&self, input: ValueView<'_>, _scope: &mut Scope) -> Result<TensorSpec, StepError> {
        cropped_spec(input, self.size)
    }

    fn run(&self, input: ValueView<'_>, mut output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let (view, [height, width, _]) = picture(input)?;
        copy_crop(view, self.rectangle(width, height, &mut scope.random)?, &mut output);
        Ok(())
    }
}

impl HorizontalFlip {
    /// Whether this sample is flipped.
    pub(crate) fn draw(&self, random: &mut Random) -> bool {
        random.unit() < self.probability
    }
}

impl Transform for HorizontalFlip {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        let sound = (0.0..=1.0).contains(&self.probability);
        BadParameter::unless(sound, "probability", &self.probability, "between 0 and 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        picture_type(input).map(|(dtype, dims)| picture_of(dtype, dims))
    }

    fn output_spec(&self, input: ValueView<'_>, _scope: &mut Scope) -> Result<TensorSpec, StepError> {
        picture(input).map(|(view, _)| view.spec)
    }

    fn run(&self, input: ValueView<'_>, output: TensorMut<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let (view, [_, width, channels]) = picture(input)?;
        if !self.draw(&mut scope.random) {
            output.data.copy_from_slice(view.data);
            return Ok(());
        }
        let pixel_bytes = channels * view.spec.dtype.bytes();
        let row_bytes = width * pixel_bytes;
        for (from, to) in view.data.chunks_exact(row_bytes).zip(output.data.chunks_exact_mut(row_bytes)) {
            match pixel_bytes {
                3 => mirror::<3>(from, to),
                12 => mirror::<12>(from, to),
                _ => {
                    let pixels = from.chunks_exact(pixel_bytes).rev();
                    to.chunks_exact_mut(pixel_bytes).zip(pixels).for_each(|(to, from)| to.copy_from_slice(from));
                }
            }
        }
        Ok(())
    }
}

/// Mirrors one row of pixels of `N` bytes; a constant lets the compiler copy a pixel in one move.
fn mirror<const N: usize>(from: &[u8], to: &mut [u8]) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
}

fn cropped_type(input: &FieldType, size: usize) -> Result<FieldType, Needs> {
    let (dtype, [height, width, channels]) = picture_type(input)?;
    if [height, width].into_iter().flatten().any(|length| length < size) {
        return Err(Needs(format!("a picture of at least {size}x{size}")));
    }
    Ok(picture_of(dtype, [Some(size), Some(size), channels]))
}

fn cropped_spec(input: ValueView<'_>, size: usize) -> Result<TensorSpec, StepError> {
    let (view, [height, width, channels]) = picture(input)?;
    let size = require_room(width, height, size)?;
    Ok(TensorSpec::new(view.spec.dtype, &[size, size, channels]))
}

/// The size, if a square of it fits.
fn require_room(width: usize, height: usize, size: usize) -> Result<usize, StepError> {
    if height < size || width < size {
        return Err(StepError::TooSmall { width, height, crop_width: size, crop_height: size });
    }
    Ok(size)
}

/// Copies the rectangle out of `input`.
fn copy_crop(input: TensorView<'_>, rectangle: Rectangle, output: &mut TensorMut<'_>) {
    let &[_, width, channels] = input.spec.shape.dims() else { return };
    let pixel_bytes = channels * input.spec.dtype.bytes();
    let (left_bytes, row_bytes) = (rectangle.left * pixel_bytes, rectangle.width * pixel_bytes);
    let rows = input.data.chunks_exact(width * pixel_bytes).skip(rectangle.top);
    for (to, from) in output.data.chunks_exact_mut(row_bytes).zip(rows) {
        to.copy_from_slice(&from[left_bytes..][..row_bytes]);
    }
}
