//! Padding: a picture with a margin around it.

use forebay_codec::{DType, TensorMut, TensorSpec, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::geometry::{Frame, Kept, Rectangle, Reframe};
use super::projection::Projection;
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::random::Random;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs};

/// Puts a margin around a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pad {
    /// In pixels: on each side; left and right, top and bottom; or left, top, right, bottom.
    pub padding: Numbers,
    /// The value of the margin, one for all channels or one for each.
    #[serde(default = "zero")]
    pub fill: Numbers,
    /// The class that a mask has in the margin.
    #[serde(default)]
    pub mask_fill: u16,
    /// What the margin is made of.
    #[serde(default)]
    pub padding_mode: PaddingMode,
}

pub(super) fn zero() -> Numbers {
    0.0.into()
}

/// What a margin is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaddingMode {
    /// `fill`.
    #[default]
    Constant,
    /// The last pixel, again and again.
    Edge,
    /// The picture mirrored, its last pixel not repeated.
    Reflect,
    /// The picture mirrored, its last pixel repeated.
    Symmetric,
}

impl Pad {
    /// Left, top, right, bottom.
    fn sides(&self) -> [usize; 4] {
        match *self.padding.as_slice() {
            [all] => [all; 4],
            [across, down] => [across, down, across, down],
            [left, top, right, bottom] => [left, top, right, bottom],
            _ => [0.0; 4],
        }
        .map(|side| side as usize)
    }

    /// Where the pixel at `place` of the new row or column comes from; `None` if it is filled.
    fn origin(&self, place: usize, before: usize, length: usize) -> Option<usize> {
        let place = place as isize - before as isize;
        let last = length as isize - 1;
        if (0..=last).contains(&place) {
            return Some(place as usize);
        }
        match self.padding_mode {
            PaddingMode::Constant => None,
            PaddingMode::Edge => Some(place.clamp(0, last) as usize),
            PaddingMode::Reflect => {
                let turned = place.rem_euclid((2 * last).max(1));
                Some(turned.min(2 * last - turned).max(0) as usize)
            }
            PaddingMode::Symmetric => {
                let turned = place.rem_euclid(2 * last + 2);
                Some(turned.min(2 * last + 1 - turned) as usize)
            }
        }
    }

    /// Copies what is inside, and fills the margin; a pixel of `input` has as many bytes as `fill`.
    fn copy(&self, input: &[u8], (width, height): (usize, usize), output: &mut [u8], new_width: usize, fill: &[u8]) {
        if self.padding_mode == PaddingMode::Constant {
            let [left, top, ..] = self.sides();
            return surround(input, [width, height], output, [new_width, left, top], fill);
        }
        let [left, top, ..] = self.sides();
        let pixel_bytes = fill.len();
        let row_bytes = new_width * pixel_bytes;
        for (y, to) in output.chunks_exact_mut(row_bytes).enumerate() {
            let Some(row) = self.origin(y, top, height) else { continue };
            let from = &input[row * width * pixel_bytes..][..width * pixel_bytes];
            to[left * pixel_bytes..][..from.len()].copy_from_slice(from);
            for x in (0..left).chain(left + width..new_width) {
                let pixel = self.origin(x, left, width).map_or(fill, |x| &from[x * pixel_bytes..][..pixel_bytes]);
                to[x * pixel_bytes..][..pixel_bytes].copy_from_slice(pixel);
            }
        }
    }
}

/// Puts a picture of this width and height into one of another width, so far from its left and upper edge, and fills what is around it,
/// which is one run of pixels from each row to the next.
pub(super) fn surround(
    input: &[u8],
    [width, height]: [usize; 2],
    output: &mut [u8],
    [new_width, left, top]: [usize; 3],
    fill: &[u8],
) {
    let (row_bytes, pixel_bytes) = (width * fill.len(), fill.len());
    let between = (new_width - width) * pixel_bytes;
    let (before, mut rest) = output.split_at_mut((top * new_width + left) * pixel_bytes);
    fill_pixels(before, fill);
    if let Some(value) = single_value(fill).filter(|_| row_bytes > 0 && height > 0) {
        // The last row has all of the margin below behind it.
        let (rows, last) = rest.split_at_mut((height - 1) * (row_bytes + between));
        let (input_rows, last_row) = input.split_at((height - 1) * row_bytes);
        kernels::pad_rows(Supported::detect(), input_rows, row_bytes, rows, between, value);
        let (row, after) = last.split_at_mut(row_bytes);
        row.copy_from_slice(last_row);
        after.fill(value);
        return;
    }
    for (y, from) in input.chunks_exact(row_bytes.max(1)).take(height).enumerate() {
        let (row, after) = rest.split_at_mut(row_bytes);
        row.copy_from_slice(from);
        let margin = if y + 1 == height { after.len() } else { between };
        let (margin, next) = after.split_at_mut(margin);
        fill_pixels(margin, fill);
        rest = next;
    }
}

/// The value of all bytes of a pixel, if it is one.
fn single_value(pixel: &[u8]) -> Option<u8> {
    let (first, others) = pixel.split_first()?;
    others.iter().all(|byte| byte == first).then_some(*first)
}

/// Makes all pixels these bytes.
pub(super) fn fill_pixels(to: &mut [u8], pixel: &[u8]) {
    if let Some(value) = single_value(pixel) {
        to.fill(value);
        return;
    }
    let first = pixel.len().min(to.len());
    to[..first].copy_from_slice(&pixel[..first]);
    // What is there already is copied behind itself, twice as much each time.
    let mut done = first;
    while done < to.len() {
        let more = done.min(to.len() - done);
        to.copy_within(..more, done);
        done += more;
    }
}

/// The most bytes that a pixel has: four channels of double precision.
pub(super) const PIXEL_BYTES_MAX: usize = 32;

/// The bytes of a pixel that has this value in each of its channels (the last one repeated), and how many they are.
pub(super) fn filled_pixel(fill: &Numbers, dtype: DType, channels: usize) -> ([u8; PIXEL_BYTES_MAX], usize) {
    let mut pixel = [0; PIXEL_BYTES_MAX];
    let (values, bytes) = (fill.as_slice(), channels * dtype.bytes());
    let of_channels = (0..channels).map(|channel| values[channel.min(values.len() - 1)]);
    let spec = TensorSpec::new(dtype, &[channels]);
    crate::stored::fill(of_channels, &mut TensorMut { spec, data: &mut pixel[..bytes] });
    (pixel, bytes)
}

/// Whether these are values for one channel each, or one for all.
pub(super) fn check_fill(fill: &Numbers) -> Result<(), BadParameter> {
    let valid = fill.as_slice().len() <= 4 && fill.as_slice().iter().all(|value| value.is_finite());
    BadParameter::unless(valid, "fill", fill, "a number, or one for each channel")
}

/// More than this is a mistake.
const PADDING_MAX: f64 = 4096.0;

impl Reframe for Pad {
    fn is_random(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), BadParameter> {
        let sides = self.padding.as_slice();
        let whole = |side: &f64| (0.0..=PADDING_MAX).contains(side) && side.fract() == 0.0;
        let valid = matches!(sides.len(), 1 | 2 | 4) && sides.iter().all(whole);
        BadParameter::unless(valid, "padding", &self.padding, "one, two or four integers up to 4096")?;
        check_fill(&self.fill)
    }

    fn size_type(&self, width: Option<usize>, height: Option<usize>) -> Result<[Option<usize>; 2], Needs> {
        let [left, top, right, bottom] = self.sides();
        Ok([width.map(|width| left + width + right), height.map(|height| top + height + bottom)])
    }

    fn size(&self, width: usize, height: usize, _random: &mut Random) -> Result<(usize, usize), StepError> {
        let [left, top, right, bottom] = self.sides();
        Ok((left + width + right, top + height + bottom))
    }

    fn kept(&self, width: usize, height: usize, _random: &mut Random) -> Result<Kept, StepError> {
        let [left, top, ..] = self.sides();
        let projection = Some(Projection::margin(left, top));
        Ok(Kept { projection, ..Rectangle::whole(width, height).into() })
    }

    fn picture(
        &self,
        view: TensorView<'_>,
        frame: &Frame,
        output: TensorMut<'_>,
        _scope: &mut Scope,
    ) -> Result<(), StepError> {
        let &[_, _, channels] = view.spec.shape.dims() else { return Ok(()) };
        let (fill, bytes) = filled_pixel(&self.fill, view.spec.dtype, channels);
        self.copy(view.data, frame.from, output.data, frame.to.0, &fill[..bytes]);
        Ok(())
    }

    fn mask(&self, view: TensorView<'_>, frame: &Frame, output: &mut TensorMut<'_>) {
        let (fill, bytes) = filled_pixel(&f64::from(self.mask_fill).into(), view.spec.dtype, 1);
        self.copy(view.data, frame.from, output.data, frame.to.0, &fill[..bytes]);
    }
}
