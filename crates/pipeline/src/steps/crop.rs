//! Crops and flips: pictures cut or mirrored, element type untouched.

use forebay_codec::{TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::SIDE_MAX;
use super::geometry::{Frame, Rectangle, Reframe};
use crate::error::StepError;
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

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

impl Reframe for CentreCrop {
    fn is_random(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_size(self.size)
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        cropped_type(width, height, self.size)
    }

    fn size(&self, width: usize, height: usize) -> Result<(usize, usize), StepError> {
        require_room(width, height, self.size).map(|size| (size, size))
    }

    fn place(&self, width: usize, height: usize, _random: &mut Random) -> Result<(Rectangle, bool), StepError> {
        self.rectangle(width, height).map(|rectangle| (rectangle, false))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        copy_crop(view, frame.rectangle, &mut output);
        Ok(())
    }
}

impl Reframe for RandomCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_size(self.size)
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        cropped_type(width, height, self.size)
    }

    fn size(&self, width: usize, height: usize) -> Result<(usize, usize), StepError> {
        require_room(width, height, self.size).map(|size| (size, size))
    }

    fn place(&self, width: usize, height: usize, random: &mut Random) -> Result<(Rectangle, bool), StepError> {
        self.rectangle(width, height, random).map(|rectangle| (rectangle, false))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        copy_crop(view, frame.rectangle, &mut output);
        Ok(())
    }
}

impl HorizontalFlip {
    /// Whether this sample is flipped.
    pub(crate) fn draw(&self, random: &mut Random) -> bool {
        random.unit() < self.probability
    }
}

impl Reframe for HorizontalFlip {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        let sound = (0.0..=1.0).contains(&self.probability);
        BadParameter::unless(sound, "probability", &self.probability, "between 0 and 1")
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([width, height])
    }

    fn size(&self, width: usize, height: usize) -> Result<(usize, usize), StepError> {
        Ok((width, height))
    }

    fn place(&self, width: usize, height: usize, random: &mut Random) -> Result<(Rectangle, bool), StepError> {
        Ok((Rectangle::whole(width, height), self.draw(random)))
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        if !frame.mirrored {
            output.data.copy_from_slice(view.data);
            return Ok(());
        }
        let &[_, width, channels] = view.spec.shape.dims() else { return Ok(()) };
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

fn cropped_type(width: Option<usize>, height: Option<usize>, size: usize) -> Result<[Option<usize>; 2], Needs> {
    if [height, width].into_iter().flatten().any(|length| length < size) {
        return Err(Needs(format!("a picture of at least {size}x{size}")));
    }
    Ok([Some(size), Some(size)])
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
