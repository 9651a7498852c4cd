//! Crops and flips: pictures cut or mirrored, element type untouched.

use forebay_codec::{TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::geometry::{Frame, Kept, Rectangle, Reframe};
use super::pad::{check_fill, fill_pixels, filled_pixel, zero};
use super::size::Size;
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

/// Cuts the middle out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CenterCrop {
    /// Of what is cut out.
    pub size: Size,
    /// Zeros around the picture before it is cut, in pixels on each side.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding: usize,
}

/// Cuts out a random rectangle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomCrop {
    /// Of what is cut out.
    pub size: Size,
    /// A margin around the picture before it is cut, in pixels on each side.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub padding: usize,
    /// Whether a picture that is still too small gets as much margin on each side as it lacks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pad_if_needed: bool,
    /// The value of the margin, one for all channels or one for each.
    #[serde(default = "zero", skip_serializing_if = "is_black")]
    pub fill: Numbers,
    /// The class that a mask has there.
    #[serde(default, skip_serializing_if = "is_first_class")]
    pub mask_fill: u16,
}

fn is_black(fill: &Numbers) -> bool {
    *fill == zero()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first_class(class: &u16) -> bool {
    *class == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Mirrors left and right, at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomHorizontalFlip {
    /// How probable a flip is.
    pub p: f64,
}

impl Default for RandomHorizontalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

/// Mirrors top and bottom, at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomVerticalFlip {
    /// How probable a flip is.
    pub p: f64,
}

impl Default for RandomVerticalFlip {
    fn default() -> Self {
        Self { p: 0.5 }
    }
}

impl CenterCrop {
    /// What is cut out of a picture of this size.
    pub(crate) fn rectangle(&self, width: usize, height: usize) -> Result<Rectangle, StepError> {
        let [crop_height, crop_width] = fitting(width, height, self.size)?;
        // Odd margins round as torchvision's do: half of an odd margin goes to the even side.
        let margin = |length: usize, crop: usize| ((length - crop) as f64 / 2.0).round_ties_even() as usize;
        Ok(Rectangle {
            left: margin(width, crop_width),
            top: margin(height, crop_height),
            width: crop_width,
            height: crop_height,
        })
    }
}

impl RandomCrop {
    /// Of so many pixels, or of a height and width, without a margin.
    pub fn to(size: impl Into<Size>) -> Self {
        Self { size: size.into(), padding: 0, pad_if_needed: false, fill: zero(), mask_fill: 0 }
    }

    /// Whether there is any margin, so that it does more than to cut.
    pub(crate) fn pads(&self) -> bool {
        self.padding > 0 || self.pad_if_needed
    }

    /// What is cut out of a picture of this size, this time.
    pub(crate) fn rectangle(&self, width: usize, height: usize, random: &mut Random) -> Result<Rectangle, StepError> {
        let [crop_height, crop_width] = fitting(width, height, self.size)?;
        let top = random.below(height - crop_height + 1);
        let left = random.below(width - crop_width + 1);
        Ok(Rectangle { left, top, width: crop_width, height: crop_height })
    }
}

impl Reframe for CenterCrop {
    fn is_random(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_crop(self.size, self.padding)
    }

    fn padding(&self, _size: [usize; 2]) -> [usize; 2] {
        [self.padding; 2]
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        cropped_type(width, height, self.size)
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        fitting(width, height, self.size).map(|[height, width]| (width, height))
    }

    fn kept(&self, width: usize, height: usize, _random: &mut Random) -> Result<Kept, StepError> {
        self.rectangle(width, height).map(Kept::from)
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        copy_crop(view, frame, &zero(), &mut output);
        Ok(())
    }
}

impl Reframe for RandomCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_crop(self.size, self.padding)?;
        check_fill(&self.fill)
    }

    fn padding(&self, [width, height]: [usize; 2]) -> [usize; 2] {
        let [crop_height, crop_width] = self.size.height_and_width();
        let lacking = |length: usize, crop: usize| {
            let lacking = if self.pad_if_needed { crop.saturating_sub(length + 2 * self.padding) } else { 0 };
            self.padding + lacking
        };
        [lacking(width, crop_width), lacking(height, crop_height)]
    }

    fn mask_fill(&self) -> u16 {
        self.mask_fill
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        cropped_type(width, height, self.size)
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        fitting(width, height, self.size).map(|[height, width]| (width, height))
    }

    fn kept(&self, width: usize, height: usize, random: &mut Random) -> Result<Kept, StepError> {
        self.rectangle(width, height, random).map(Kept::from)
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        mut output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        copy_crop(view, frame, &self.fill, &mut output);
        Ok(())
    }
}

impl RandomHorizontalFlip {
    /// Whether this sample is flipped.
    pub(crate) fn draw(&self, random: &mut Random) -> bool {
        random.unit() < self.p
    }
}

impl Reframe for RandomHorizontalFlip {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([width, height])
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        Ok((width, height))
    }

    fn kept(&self, width: usize, height: usize, random: &mut Random) -> Result<Kept, StepError> {
        Ok(Kept { mirrored: self.draw(random), ..Rectangle::whole(width, height).into() })
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let level = Supported::detect();
        if !frame.kept.mirrored {
            kernels::copy(level, view.data, output.data);
            return Ok(());
        }
        let &[_, width, channels] = view.spec.shape.dims() else { return Ok(()) };
        let pixel_bytes = channels * view.spec.dtype.bytes();
        let row_bytes = width * pixel_bytes;
        if pixel_bytes == 3 {
            kernels::mirror_rgb(level, view.data, output.data, row_bytes);
            return Ok(());
        }
        for (from, to) in view.data.chunks_exact(row_bytes).zip(output.data.chunks_exact_mut(row_bytes)) {
            if pixel_bytes == 12 {
                mirror::<12>(from, to);
            } else {
                let pixels = from.chunks_exact(pixel_bytes).rev();
                to.chunks_exact_mut(pixel_bytes).zip(pixels).for_each(|(to, from)| to.copy_from_slice(from));
            }
        }
        Ok(())
    }
}

impl Reframe for RandomVerticalFlip {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        Ok([width, height])
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        Ok((width, height))
    }

    fn kept(&self, width: usize, height: usize, random: &mut Random) -> Result<Kept, StepError> {
        Ok(Kept { upside_down: random.unit() < self.p, ..Rectangle::whole(width, height).into() })
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        if !frame.kept.upside_down {
            kernels::copy(Supported::detect(), view.data, output.data);
            return Ok(());
        }
        let &[height, ..] = view.spec.shape.dims() else { return Ok(()) };
        kernels::flip_rows(Supported::detect(), view.data, output.data, view.data.len() / height);
        Ok(())
    }
}

/// Mirrors one row of pixels of `N` bytes; a constant lets the compiler copy a pixel in one move.
fn mirror<const N: usize>(from: &[u8], to: &mut [u8]) {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    to.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
}

fn check_crop(size: Size, padding: usize) -> Result<(), BadParameter> {
    size.check()?;
    BadParameter::unless(padding <= PADDING_MAX, "padding", &padding, "up to 4096 pixels")
}

/// More than this is a mistake.
const PADDING_MAX: usize = 4096;

/// The type after a crop of a picture that, padded, has this size.
fn cropped_type(width: Option<usize>, height: Option<usize>, size: Size) -> Result<[Option<usize>; 2], Needs> {
    let [crop_height, crop_width] = size.height_and_width();
    let short = |length: Option<usize>, crop: usize| length.is_some_and(|length| length < crop);
    if short(height, crop_height) || short(width, crop_width) {
        return Err(Needs(format!("an image of at least {crop_width}x{crop_height}")));
    }
    Ok([Some(crop_width), Some(crop_height)])
}

/// Height and width of the crop, if it fits.
fn fitting(width: usize, height: usize, size: Size) -> Result<[usize; 2], StepError> {
    let [crop_height, crop_width] = size.height_and_width();
    if height < crop_height || width < crop_width {
        return Err(StepError::TooSmall { width, height, crop_width, crop_height });
    }
    Ok([crop_height, crop_width])
}

/// Copies the rectangle out of `input`; what of it lies outside is filled.
pub(super) fn copy_crop(input: TensorView<'_>, frame: &Frame, fill: &Numbers, output: &mut TensorMut<'_>) {
    let &[height, width, channels] = input.spec.shape.dims() else { return };
    let (fill, pixel_bytes) = filled_pixel(fill, input.spec.dtype, channels);
    let fill = &fill[..pixel_bytes];
    let Rectangle { left, top, width: crop_width, .. } = frame.kept.rectangle;
    let [across, down] = frame.padding;
    // Both in pixels of the padded picture.
    let inside = left.max(across)..(left + crop_width).min(across + width);
    for (y, to) in output.data.chunks_exact_mut(crop_width * pixel_bytes).enumerate() {
        let row = (top + y).checked_sub(down).filter(|&row| row < height);
        let Some(row) = row.filter(|_| !inside.is_empty()) else {
            fill_pixels(to, fill);
            continue;
        };
        let from = (row * width + inside.start - across) * pixel_bytes;
        let (before, rest) = to.split_at_mut((inside.start - left) * pixel_bytes);
        let (copied, after) = rest.split_at_mut(inside.len() * pixel_bytes);
        fill_pixels(before, fill);
        copied.copy_from_slice(&input.data[from..][..copied.len()]);
        fill_pixels(after, fill);
    }
}
