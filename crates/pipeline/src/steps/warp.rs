//! Warps: pictures whose pixels come from coordinates that a projection says.

use forebay_codec::{DType, TensorMut, TensorView};
use serde::{Deserialize, Serialize};

use super::Numbers;
use super::pad::filled_pixel;
use super::projection::Projection;
use crate::error::StepError;
use crate::kernels::{self, BLOCK, BLOCK_RGB_BYTES, OUTSIDE, Supported, Surrounding};

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
    /// Warps a picture of bytes, which has these dimensions, to one of this width.
    pub(super) fn bytes(&self, from: &[u8], to: &mut [u8], [height, width, channels]: Dims, new_width: usize) {
        match channels {
            1 => self.bytes_of::<1>(from, to, [height, width], new_width),
            2 => self.bytes_of::<2>(from, to, [height, width], new_width),
            3 => self.bytes_of::<3>(from, to, [height, width], new_width),
            _ => self.bytes_of::<4>(from, to, [height, width], new_width),
        }
    }

    fn bytes_of<const N: usize>(&self, from: &[u8], to: &mut [u8], [height, width]: [usize; 2], new_width: usize) {
        let from = from.as_chunks::<N>().0;
        let to = to.as_chunks_mut::<N>().0;
        if self.interpolation == WarpInterpolation::Nearest {
            let fill: [u8; N] = std::array::from_fn(|channel| self.fill.map_or(0, |fill| rounded(fill[channel])));
            let (from, to) = (from.as_flattened(), to.as_flattened_mut());
            nearest_bytes(&self.projection, from, to, [height, width], new_width, &fill);
            return;
        }
        let fill = self.fill.map(|fill| std::array::from_fn(|channel| fill[channel]));
        let edge = Edge { from, size: [height, width], fill, float: |pixel: &[u8; N]| pixel.map(f32::from) };
        let outside = edge.outside().map(rounded);
        let level = Supported::detect();
        let mut block = Surrounding::default();
        for (y, to) in to.chunks_exact_mut(new_width.max(1)).enumerate() {
            let coordinates = self.projection.coordinates(y, new_width);
            for (number, to) in to.chunks_mut(BLOCK).enumerate() {
                let x = number * BLOCK;
                kernels::surrounding(level, &coordinates, x, [height, width], &mut block);
                if block.within_count == 0 {
                    fill_with(to, outside);
                } else {
                    all_between(level, from, width, &block, to);
                    // What has no weights is black already.
                    if outside != [0; N] && block.within_count < BLOCK as u32 {
                        let beside = to.iter_mut().zip(block.touching).filter(|(_, touching)| *touching == 0);
                        beside.for_each(|(to, _)| *to = outside);
                    }
                }
                if block.touching_count > block.within_count {
                    for (index, to) in to.iter_mut().enumerate() {
                        if block.touching[index] != block.within[index] {
                            *to = edge.made(coordinates.at(x + index)).map(rounded);
                        }
                    }
                }
            }
        }
    }

    /// Warps a picture of any type that `bilinear` can do, or of every type to the nearest.
    pub(super) fn picture(
        &self,
        view: TensorView<'_>,
        output: &mut TensorMut<'_>,
        fill: &Numbers,
    ) -> Result<(), StepError> {
        let (&[height, width, channels], &[_, new_width, _]) = (view.spec.shape.dims(), output.spec.shape.dims())
        else {
            return Ok(());
        };
        let dtype = view.spec.dtype;
        if dtype == DType::U8 {
            self.bytes(view.data, output.data, [height, width, channels], new_width);
            return Ok(());
        }
        if self.interpolation == WarpInterpolation::Nearest {
            let (fill, bytes) = filled_pixel(fill, dtype, channels);
            let size = [height, width];
            nearest_bytes(&self.projection, view.data, output.data, size, new_width, &fill[..bytes]);
            return Ok(());
        }
        let expected = "an image in uint8 or float32 for `bilinear`";
        if dtype != DType::F32 {
            return Err(StepError::Unfit { found: view.spec, expected });
        }
        match channels {
            1 => self.floats_of::<1>(view.data, output.data, [height, width], new_width),
            2 => self.floats_of::<2>(view.data, output.data, [height, width], new_width),
            3 => self.floats_of::<3>(view.data, output.data, [height, width], new_width),
            _ => self.floats_of::<4>(view.data, output.data, [height, width], new_width),
        }
        Ok(())
    }

    /// Works on bytes, so that alignment does not matter.
    fn floats_of<const N: usize>(&self, from: &[u8], to: &mut [u8], size: [usize; 2], new_width: usize) {
        let from = from.as_chunks::<4>().0.as_chunks::<N>().0;
        let to = to.as_chunks_mut::<4>().0.as_chunks_mut::<N>().0;
        let fill = self.fill.map(|fill| std::array::from_fn(|channel| fill[channel]));
        let edge = Edge { from, size, fill, float: |pixel: &[[u8; 4]; N]| pixel.map(f32::from_le_bytes) };
        for (y, to) in to.chunks_exact_mut(new_width.max(1)).enumerate() {
            let coordinates = self.projection.coordinates(y, new_width);
            for (x, to) in to.iter_mut().enumerate() {
                *to = edge.made(coordinates.at(x)).map(f32::to_le_bytes);
            }
        }
    }
}

/// A picture or a mask of this height and width, whose pixels come from so far beside their own places, along x and y. What is outside is a pixel, or
/// these values of each channel.
pub(super) fn displaced(
    view: TensorView<'_>,
    output: &mut TensorMut<'_>,
    size: [usize; 2],
    places: (&[f32], &[f32]),
    interpolation: WarpInterpolation,
    (pixel, fill): (&[u8], [f32; 4]),
) -> Result<(), StepError> {
    fn bytes<const N: usize>(
        (from, to): (&[u8], &mut [u8]),
        size: [usize; 2],
        coordinates: impl Iterator<Item = (f32, f32)>,
        fill: [f32; 4],
    ) {
        let fill = Some(std::array::from_fn(|channel| fill[channel]));
        let edge = Edge { from: from.as_chunks().0, size, fill, float: |pixel: &[u8; N]| pixel.map(f32::from) };
        let to = to.as_chunks_mut::<N>().0.iter_mut();
        to.zip(coordinates).for_each(|(to, place)| *to = edge.made(place).map(rounded));
    }
    fn floats<const N: usize>(
        (from, to): (&[u8], &mut [u8]),
        size: [usize; 2],
        coordinates: impl Iterator<Item = (f32, f32)>,
        fill: [f32; 4],
    ) {
        let fill = Some(std::array::from_fn(|channel| fill[channel]));
        let from = from.as_chunks::<4>().0.as_chunks::<N>().0;
        let edge = Edge { from, size, fill, float: |pixel: &[[u8; 4]; N]| pixel.map(f32::from_le_bytes) };
        let to = to.as_chunks_mut::<4>().0.as_chunks_mut::<N>().0.iter_mut();
        to.zip(coordinates).for_each(|(to, place)| *to = edge.made(place).map(f32::to_le_bytes));
    }
    let [height, width] = size;
    let own = (0..height).flat_map(|y| (0..width).map(move |x| (x as f32, y as f32)));
    let coordinates = own.zip(places.0.iter().zip(places.1)).map(|((x, y), (across, down))| (x + across, y + down));
    let (from, to) = (view.data, &mut *output.data);
    if interpolation == WarpInterpolation::Nearest {
        for (to, (u, v)) in to.chunks_exact_mut(pixel.len()).zip(coordinates) {
            let (column, row) = (u.round_ties_even(), v.round_ties_even());
            let inside = (0.0..width as f32).contains(&column) && (0.0..height as f32).contains(&row);
            let at = (row.max(0.0) as usize * width + column.max(0.0) as usize) * pixel.len();
            to.copy_from_slice(if inside { &from[at..at + pixel.len()] } else { pixel });
        }
        return Ok(());
    }
    let channels = pixel.len() / view.spec.dtype.bytes();
    match (view.spec.dtype, channels) {
        (DType::U8, 1) => bytes::<1>((from, to), size, coordinates, fill),
        (DType::U8, 2) => bytes::<2>((from, to), size, coordinates, fill),
        (DType::U8, 3) => bytes::<3>((from, to), size, coordinates, fill),
        (DType::U8, _) => bytes::<4>((from, to), size, coordinates, fill),
        (DType::F32, 1) => floats::<1>((from, to), size, coordinates, fill),
        (DType::F32, 2) => floats::<2>((from, to), size, coordinates, fill),
        (DType::F32, 3) => floats::<3>((from, to), size, coordinates, fill),
        (DType::F32, _) => floats::<4>((from, to), size, coordinates, fill),
        _ => {
            let expected = "an image in uint8 or float32 for `bilinear`";
            return Err(StepError::Unfit { found: view.spec, expected });
        }
    }
    Ok(())
}

/// Makes all pixels this one; black, which nearly all are, a vector at a time.
fn fill_with<const N: usize>(to: &mut [[u8; N]], pixel: [u8; N]) {
    if pixel == [0; N] { to.as_flattened_mut().fill(0) } else { to.fill(pixel) }
}

/// The pixels of a block that are all there is around.
fn all_between<const N: usize>(
    level: Supported,
    from: &[[u8; N]],
    width: usize,
    block: &Surrounding,
    to: &mut [[u8; N]],
) {
    if N == 3 {
        let mut made = [0; BLOCK_RGB_BYTES];
        kernels::between_rgb(level, from.as_flattened(), width, block, &mut made);
        let to = to.as_flattened_mut();
        to.copy_from_slice(&made[..to.len()]);
    } else {
        to.iter_mut().enumerate().for_each(|(index, to)| *to = kernels::between(from, width, block, index));
    }
}

/// Warps a mask to the nearest classes.
pub(super) fn warp_mask(projection: &Projection, view: TensorView<'_>, output: &mut TensorMut<'_>, fill: u16) {
    let (&[height, width], &[_, new_width]) = (view.spec.shape.dims(), output.spec.shape.dims()) else { return };
    let (fill, bytes) = filled_pixel(&f64::from(fill).into(), view.spec.dtype, 1);
    nearest_bytes(projection, view.data, output.data, [height, width], new_width, &fill[..bytes]);
}

/// Each pixel of `to`, whose rows have so many, is the one of `from`, of this height and width, under its center.
fn nearest_bytes(projection: &Projection, from: &[u8], to: &mut [u8], size: [usize; 2], new_width: usize, fill: &[u8]) {
    let rows = Rows { projection, size, new_width };
    match fill.len() {
        3 => rows.nearest_rgb(from, to, [fill[0], fill[1], fill[2]]),
        1 => rows.nearest_of::<1>(from, to, fill),
        2 => rows.nearest_of::<2>(from, to, fill),
        4 => rows.nearest_of::<4>(from, to, fill),
        6 => rows.nearest_of::<6>(from, to, fill),
        8 => rows.nearest_of::<8>(from, to, fill),
        12 => rows.nearest_of::<12>(from, to, fill),
        16 => rows.nearest_of::<16>(from, to, fill),
        24 => rows.nearest_of::<24>(from, to, fill),
        _ => rows.nearest_of::<32>(from, to, fill),
    }
}

/// The rows of a new picture of this width, whose pixels come from one of this height and width.
struct Rows<'a> {
    projection: &'a Projection,
    size: [usize; 2],
    new_width: usize,
}

impl Rows<'_> {
    /// Three bytes each.
    fn nearest_rgb(&self, from: &[u8], to: &mut [u8], fill: [u8; 3]) {
        let level = Supported::detect();
        for (y, to) in to.chunks_exact_mut((3 * self.new_width).max(1)).enumerate() {
            kernels::nearest_rgb(level, &self.projection.coordinates(y, self.new_width), from, self.size, fill, to);
        }
    }

    /// `N` bytes each.
    fn nearest_of<const N: usize>(&self, from: &[u8], to: &mut [u8], fill: &[u8]) {
        let fill: [u8; N] = std::array::from_fn(|byte| fill[byte]);
        let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
        let level = Supported::detect();
        let mut offsets = [OUTSIDE; BLOCK];
        for (y, to) in to.chunks_exact_mut(self.new_width.max(1)).enumerate() {
            let coordinates = self.projection.coordinates(y, self.new_width);
            for (number, to) in to.chunks_mut(BLOCK).enumerate() {
                kernels::nearest_offsets(level, &coordinates, number * BLOCK, self.size, &mut offsets);
                for (to, &offset) in to.iter_mut().zip(&offsets) {
                    *to = from.get(offset as usize).copied().unwrap_or(fill);
                }
            }
        }
    }
}

/// A picture whose pixels `P` have `N` channels, and what is outside of it.
struct Edge<'a, P, const N: usize, F> {
    from: &'a [P],
    /// Height and width.
    size: [usize; 2],
    fill: Option<[f32; N]>,
    /// A pixel as numbers.
    float: F,
}

impl<P, const N: usize, F: Fn(&P) -> [f32; N]> Edge<'_, P, N, F> {
    fn outside(&self) -> [f32; N] {
        self.fill.unwrap_or([0.0; N])
    }

    /// The pixel at a place, made of the four around it as `grid_sample` makes it: what of them is outside counts as 0. With a `fill`,
    /// torchvision weighs the result with the share that is inside once more.
    fn made(&self, (u, v): (f32, f32)) -> [f32; N] {
        let [height, width] = self.size;
        // Far outside, or no number at all.
        if !(u > -1.0 && v > -1.0 && u < width as f32 && v < height as f32) {
            return self.outside();
        }
        // Above −1, so that cutting off what is one larger is rounding down.
        let (left, top) = ((u + 1.0) as i32 as isize - 1, (v + 1.0) as i32 as isize - 1);
        let (right_share, bottom_share) = (u - left as f32, v - top as f32);
        if left >= 0 && top >= 0 && (left as usize) + 1 < width && (top as usize) + 1 < height {
            let at = top as usize * width + left as usize;
            let corners = [at, at + 1, at + width, at + width + 1].map(|at| (self.float)(&self.from[at]));
            return std::array::from_fn(|channel| {
                let between =
                    |left: [f32; N], right: [f32; N]| left[channel] + (right[channel] - left[channel]) * right_share;
                let (upper, lower) = (between(corners[0], corners[1]), between(corners[2], corners[3]));
                upper + (lower - upper) * bottom_share
            });
        }
        let mut sums = [0.0; N];
        let mut inside = 0.0;
        for (row, down) in [(top, 1.0 - bottom_share), (top + 1, bottom_share)] {
            for (column, across) in [(left, 1.0 - right_share), (left + 1, right_share)] {
                if (0..height as isize).contains(&row) && (0..width as isize).contains(&column) {
                    let weight = down * across;
                    inside += weight;
                    let pixel = (self.float)(&self.from[row as usize * width + column as usize]);
                    sums.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value * weight);
                }
            }
        }
        if let Some(fill) = self.fill {
            sums.iter_mut().zip(fill).for_each(|(sum, fill)| *sum = (*sum - fill) * inside + fill);
        }
        sums
    }
}

fn rounded(value: f32) -> u8 {
    (value + 0.5) as u8
}
