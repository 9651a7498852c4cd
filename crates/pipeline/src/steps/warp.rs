//! Warps: pictures whose pixels come from places that a projection says.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::pad::filled_pixel;
use super::projection::Projection;
use crate::error::StepError;

/// How a pixel is made of those around the place it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarpInterpolation {
    /// The nearest.
    #[default]
    Nearest,
    /// The four around it, weighted.
    Bilinear,
}

/// A warp of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warp {
    /// Where pixels come from.
    pub projection: Projection,
    /// How they are made.
    pub interpolation: WarpInterpolation,
    /// What is outside of the picture, for each channel; `None` is black, of which `bilinear` edges have their share.
    pub fill: Option<[f32; 4]>,
}

/// Values of each channel, the last one repeated.
pub(super) fn channel_values(fill: &Numbers) -> [f32; 4] {
    let values = fill.as_slice();
    std::array::from_fn(|channel| values[channel.min(values.len() - 1)] as f32)
}

/// Height, width and channels.
type Dims = [usize; 3];

impl Warp {
    /// Warps a picture of bytes; both have these dimensions.
    pub(super) fn bytes(&self, from: &[u8], to: &mut [u8], [height, width, channels]: Dims) {
        match channels {
            1 => self.bytes_of::<1>(from, to, [height, width]),
            2 => self.bytes_of::<2>(from, to, [height, width]),
            3 => self.bytes_of::<3>(from, to, [height, width]),
            _ => self.bytes_of::<4>(from, to, [height, width]),
        }
    }

    fn bytes_of<const N: usize>(&self, from: &[u8], to: &mut [u8], [height, width]: [usize; 2]) {
        let from = from.as_chunks::<N>().0;
        let to = to.as_chunks_mut::<N>().0;
        if self.interpolation == WarpInterpolation::Nearest {
            let fill: [u8; N] = std::array::from_fn(|channel| self.fill.map_or(0, |fill| rounded(fill[channel])));
            nearest(&self.projection, from, to, [height, width], fill);
            return;
        }
        let fill = self.fill.map(|fill| std::array::from_fn(|channel| fill[channel]));
        let pixels = Pixels {
            float: |pixel: &[u8; N]| pixel.map(f32::from),
            made: |pixel: [f32; N]| pixel.map(rounded),
            between: weighted,
        };
        bilinear(&self.projection, from, to, [height, width], fill, &pixels);
    }

    /// Warps a picture of any type that `bilinear` can do, or of every type to the nearest.
    pub(super) fn picture(
        &self,
        view: TensorView<'_>,
        output: &mut TensorMut<'_>,
        fill: &Numbers,
    ) -> Result<(), StepError> {
        let &[height, width, channels] = view.spec.shape.dims() else { return Ok(()) };
        let dtype = view.spec.dtype;
        if dtype == DType::U8 {
            self.bytes(view.data, output.data, [height, width, channels]);
            return Ok(());
        }
        if self.interpolation == WarpInterpolation::Nearest {
            let (fill, bytes) = filled_pixel(fill, dtype, channels);
            nearest_bytes(&self.projection, view.data, output.data, [height, width], &fill[..bytes]);
            return Ok(());
        }
        let expected = "an image in uint8 or float32 for `bilinear`";
        if dtype != DType::F32 {
            return Err(StepError::Unfit { found: view.spec, expected });
        }
        match channels {
            1 => self.floats_of::<1>(view.data, output.data, [height, width]),
            2 => self.floats_of::<2>(view.data, output.data, [height, width]),
            3 => self.floats_of::<3>(view.data, output.data, [height, width]),
            _ => self.floats_of::<4>(view.data, output.data, [height, width]),
        }
        Ok(())
    }

    /// Works on bytes, so that alignment does not matter.
    fn floats_of<const N: usize>(&self, from: &[u8], to: &mut [u8], size: [usize; 2]) {
        let from = from.as_chunks::<4>().0.as_chunks::<N>().0;
        let to = to.as_chunks_mut::<4>().0.as_chunks_mut::<N>().0;
        let fill = self.fill.map(|fill| std::array::from_fn(|channel| fill[channel]));
        let float = |pixel: &[[u8; 4]; N]| pixel.map(f32::from_le_bytes);
        let pixels = Pixels {
            float,
            made: |pixel: [f32; N]| pixel.map(f32::to_le_bytes),
            between: |corners: [&[[u8; 4]; N]; 4], [right, bottom]: [f32; 2]| {
                let corners = corners.map(float);
                std::array::from_fn(|channel| {
                    let [a, b, c, d] = corners.map(|corner| corner[channel]);
                    let (upper, lower) = (a + (b - a) * right, c + (d - c) * right);
                    (upper + (lower - upper) * bottom).to_le_bytes()
                })
            },
        };
        bilinear(&self.projection, from, to, size, fill, &pixels);
    }
}

/// Warps a mask to the nearest classes.
pub(super) fn warp_mask(projection: &Projection, view: TensorView<'_>, output: &mut TensorMut<'_>, fill: u16) {
    let &[height, width] = view.spec.shape.dims() else { return };
    let (fill, bytes) = filled_pixel(&f64::from(fill).into(), view.spec.dtype, 1);
    nearest_bytes(projection, view.data, output.data, [height, width], &fill[..bytes]);
}

fn nearest_bytes(projection: &Projection, from: &[u8], to: &mut [u8], size: [usize; 2], fill: &[u8]) {
    fn by<const N: usize>(projection: &Projection, from: &[u8], to: &mut [u8], size: [usize; 2], fill: &[u8]) {
        let fill = std::array::from_fn(|byte| fill[byte]);
        nearest(projection, from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0, size, fill);
    }
    match fill.len() {
        1 => by::<1>(projection, from, to, size, fill),
        2 => by::<2>(projection, from, to, size, fill),
        3 => by::<3>(projection, from, to, size, fill),
        4 => by::<4>(projection, from, to, size, fill),
        6 => by::<6>(projection, from, to, size, fill),
        8 => by::<8>(projection, from, to, size, fill),
        12 => by::<12>(projection, from, to, size, fill),
        16 => by::<16>(projection, from, to, size, fill),
        24 => by::<24>(projection, from, to, size, fill),
        _ => by::<32>(projection, from, to, size, fill),
    }
}

/// Each pixel of `to` is the one of `from` under its center.
fn nearest<P: Copy>(projection: &Projection, from: &[P], to: &mut [P], [height, width]: [usize; 2], fill: P) {
    for (y, to) in to.chunks_exact_mut(width.max(1)).enumerate() {
        projection.along_row(y, width, |x, u, v| {
            // Rounded by an addition: without SSE4.1 the function is a call.
            let (column, row) = ((u + WHOLE) - WHOLE, (v + WHOLE) - WHOLE);
            let inside = column >= 0.0 && row >= 0.0 && column < width as f32 && row < height as f32;
            to[x] = if inside { from[row as usize * width + column as usize] } else { fill };
        });
    }
}

/// How pixels `P` of `N` channels are worked on.
struct Pixels<F, M, B> {
    /// `&P` to numbers.
    float: F,
    /// And back.
    made: M,
    /// The pixel between four, upper left, upper right, lower left and lower right, by the shares of the right and of the lower ones.
    between: B,
}

/// Bits of a share: what it is off by is less than an eighth of a level.
const SHARE_BITS: u32 = 11;

/// The pixel between four, in whole numbers, without a conversion of each value.
fn weighted<const N: usize>(corners: [&[u8; N]; 4], shares: [f32; 2]) -> [u8; N] {
    const ONE: u32 = 1 << SHARE_BITS;
    let [right, bottom] = shares.map(|share| (share * ONE as f32 + 0.5) as i32 as u32);
    let (left, top) = (ONE - right, ONE - bottom);
    let weights = [left * top, right * top, left * bottom, right * bottom];
    std::array::from_fn(|channel| {
        let sum: u32 = (0..4).map(|corner| u32::from(corners[corner][channel]) * weights[corner]).sum();
        ((sum + (1 << (2 * SHARE_BITS - 1))) >> (2 * SHARE_BITS)) as u8
    })
}

/// Each pixel of `to` is made of the four of `from` around the place it comes from, as `grid_sample` makes it: what of them is
/// outside counts as 0. With a `fill`, torchvision weighs the result with the share that is inside once more.
fn bilinear<P, const N: usize, F, M, B>(
    projection: &Projection,
    from: &[P],
    to: &mut [P],
    [height, width]: [usize; 2],
    fill: Option<[f32; N]>,
    Pixels { float, made, between }: &Pixels<F, M, B>,
) where
    P: Copy,
    F: Fn(&P) -> [f32; N],
    M: Fn([f32; N]) -> P,
    B: Fn([&P; 4], [f32; 2]) -> P,
{
    let outside = made(fill.unwrap_or([0.0; N]));
    for (y, to) in to.chunks_exact_mut(width.max(1)).enumerate() {
        projection.along_row(y, width, |x, u, v| {
            // Far outside, or no number at all.
            if !(u > -1.0 && v > -1.0 && u < width as f32 && v < height as f32) {
                to[x] = outside;
                return;
            }
            // Above −1, so that cutting off what is one larger is rounding down.
            let (left, top) = ((u + 1.0) as i32 as isize - 1, (v + 1.0) as i32 as isize - 1);
            let (right_share, bottom_share) = (u - left as f32, v - top as f32);
            if left >= 0 && top >= 0 && (left as usize) + 1 < width && (top as usize) + 1 < height {
                let at = top as usize * width + left as usize;
                let (above, below) = (&from[at..at + 2], &from[at + width..at + width + 2]);
                to[x] = between([&above[0], &above[1], &below[0], &below[1]], [right_share, bottom_share]);
                return;
            }
            let mut sums = [0.0; N];
            let mut inside = 0.0;
            for (row, down) in [(top, 1.0 - bottom_share), (top + 1, bottom_share)] {
                for (column, across) in [(left, 1.0 - right_share), (left + 1, right_share)] {
                    if (0..height as isize).contains(&row) && (0..width as isize).contains(&column) {
                        let weight = down * across;
                        inside += weight;
                        let pixel = float(&from[row as usize * width + column as usize]);
                        sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value * weight);
                    }
                }
            }
            if let Some(fill) = fill {
                sums.iter_mut().zip(fill).for_each(|(sum, fill)| *sum = (*sum - fill) * inside + fill);
            }
            to[x] = made(sums);
        });
    }
}

/// Numbers of this size have no fraction: what is added to it is rounded, to even where it is between two.
const WHOLE: f32 = 12_582_912.0;

fn rounded(value: f32) -> u8 {
    (value + 0.5) as u8
}
