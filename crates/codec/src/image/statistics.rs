//! What the pixels of an image are like: the means of its colors, whether it has any, and a hash that images which look alike share.

use std::f64::consts::PI;

use crate::error::{Error, Result};
use crate::tensor::{DType, TensorView};

/// What the pixels of one image are like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelStatistics {
    /// The means of red, green and blue, from 0 to 1.
    pub mean: [f64; 3],
    /// The means of their squares: with those of other images they give a standard deviation.
    pub mean_square: [f64; 3],
    /// Whether it has no color: in no pixel two channels are further apart than [`GRAY_LEVELS`].
    pub is_gray: bool,
    /// The perceptual hash, where there is something to see: of a plain area it would be made of noise.
    pub perceptual_hash: Option<u64>,
}

/// Channels may be so far apart in what counts as gray: JPEG rounds colors.
pub const GRAY_LEVELS: u8 = 8;

/// The hash is computed from this many rows and columns.
const SIDE: usize = 32;
/// And from this many of the lowest frequencies in each direction.
const FREQUENCIES: usize = 8;
/// A thumbnail whose brightness varies less, as a standard deviation of levels, shows nothing.
const FLAT_LEVELS: f64 = 2.0;

/// The statistics of an image of `uint8` with one channel (gray) or at least three (red, green, blue).
///
/// The hash is pHash as `ImageHash` defines it: of the 64 lowest frequencies of a gray thumbnail of 32 × 32 pixels, the bits say which are above their
/// median. The thumbnail is an average over boxes here. Images that differ in size, quality or brightness have hashes that differ in a few bits.
///
/// ```
/// use forebay_codec::image::pixel_statistics;
/// use forebay_codec::Tensor;
///
/// let pixels: Vec<u8> = (0..64 * 64).flat_map(|at| [(at % 64 * 4) as u8, (at / 64) as u8, 10]).collect();
/// let picture = Tensor::from_elements(&[64, 64, 3], &pixels).expect("as many as the shape says");
/// let found = pixel_statistics(picture.view())?;
/// assert!((found.mean[0] - 126.0 / 255.0).abs() < 1e-9);
/// assert!(!found.is_gray && found.perceptual_hash.is_some());
/// # Ok::<(), forebay_codec::Error>(())
/// ```
pub fn pixel_statistics(picture: TensorView<'_>) -> Result<PixelStatistics> {
    let (Some((height, width, channels)), DType::U8) = (picture.spec.as_picture(), picture.spec.dtype) else {
        return Err(Error::usage("this is not an image", "uint8 [height, width, channels]", picture.spec));
    };
    if height * width == 0 || !matches!(channels, 1 | 3 | 4) {
        return Err(Error::usage("this is not an image", "pixels of 1, 3 or 4 channels", picture.spec));
    }
    let totals = match channels {
        1 => Totals::of::<1>(picture.data),
        3 => Totals::of::<3>(picture.data),
        _ => Totals::of::<4>(picture.data),
    };
    let pixels = (height * width) as f64;
    let thumbnail = thumbnail(picture.data, channels, width, height);
    Ok(PixelStatistics {
        mean: totals.sums.map(|sum| sum as f64 / pixels / 255.0),
        mean_square: totals.squares.map(|sum| sum as f64 / pixels / (255.0 * 255.0)),
        is_gray: totals.spread <= GRAY_LEVELS,
        perceptual_hash: is_seen(&thumbnail).then(|| hash(&thumbnail)),
    })
}

/// What all pixels add up to.
struct Totals {
    sums: [u64; 3],
    squares: [u64; 3],
    /// How far two channels of a pixel are apart at most.
    spread: u8,
}

impl Totals {
    fn of<const CHANNELS: usize>(data: &[u8]) -> Self {
        // Which channel is read as red, green and blue.
        let [red, green, blue] = if CHANNELS < 3 { [0; 3] } else { [0, 1, 2] };
        let mut all = Self { sums: [0; 3], squares: [0; 3], spread: 0 };
        // For this many pixels the sums of squares fit into 32 bits, which are added faster.
        for part in data.as_chunks::<CHANNELS>().0.chunks(1 << 16) {
            let (mut sums, mut squares) = ([0_u32; 3], [0_u32; 3]);
            for pixel in part {
                let levels = [pixel[red], pixel[green], pixel[blue]];
                for (channel, level) in levels.into_iter().enumerate() {
                    sums[channel] += u32::from(level);
                    squares[channel] += u32::from(level) * u32::from(level);
                }
                let most = levels[0].max(levels[1]).max(levels[2]);
                let least = levels[0].min(levels[1]).min(levels[2]);
                all.spread = all.spread.max(most - least);
            }
            for channel in 0..3 {
                all.sums[channel] += u64::from(sums[channel]);
                all.squares[channel] += u64::from(squares[channel]);
            }
        }
        all
    }
}

/// The brightness of an image as 32 rows of 32 boxes, each the mean of the pixels in it. An image that is smaller repeats pixels.
fn thumbnail(data: &[u8], channels: usize, width: usize, height: usize) -> [[f64; SIDE]; SIDE] {
    let part = |number: usize, length: usize| {
        let start = number * length / SIDE;
        start..((number + 1) * length / SIDE).max(start + 1)
    };
    let mut boxes = [[0.0; SIDE]; SIDE];
    for (row, boxes) in boxes.iter_mut().enumerate() {
        let rows = part(row, height);
        for (column, brightness) in boxes.iter_mut().enumerate() {
            let columns = part(column, width);
            let pixels = (rows.len() * columns.len()) as f64;
            let mut sums = [0_u64; 3];
            for y in rows.clone() {
                let line = &data[(y * width + columns.start) * channels..(y * width + columns.end) * channels];
                for pixel in line.chunks_exact(channels) {
                    for (sum, channel) in sums.iter_mut().zip([0, 1, 2]) {
                        *sum += u64::from(pixel[channel.min(channels - 1)]);
                    }
                }
            }
            // ITU-R BT.601 luma.
            let luma = 0.299 * sums[0] as f64 + 0.587 * sums[1] as f64 + 0.114 * sums[2] as f64;
            *brightness = luma / pixels;
        }
    }
    boxes
}

/// Whether a thumbnail shows something.
fn is_seen(thumbnail: &[[f64; SIDE]; SIDE]) -> bool {
    let (count, all) = ((SIDE * SIDE) as f64, || thumbnail.iter().flatten());
    let mean = all().sum::<f64>() / count;
    let variance = all().map(|brightness| (brightness - mean).powi(2)).sum::<f64>() / count;
    variance.sqrt() >= FLAT_LEVELS
}

/// The first bit of the hash, and of `ImageHash`'s text of it, is the highest.
fn hash(thumbnail: &[[f64; SIDE]; SIDE]) -> u64 {
    let wave = |frequency: usize, at: usize| (PI * frequency as f64 * (2 * at + 1) as f64 / (2 * SIDE) as f64).cos();
    let waves: [[f64; SIDE]; FREQUENCIES] =
        std::array::from_fn(|frequency| std::array::from_fn(|at| wave(frequency, at)));
    // First down the columns, then across: the discrete cosine transform, of which only the lowest frequencies are wanted.
    let down: [[f64; SIDE]; FREQUENCIES] = std::array::from_fn(|frequency| {
        std::array::from_fn(|column| (0..SIDE).map(|row| waves[frequency][row] * thumbnail[row][column]).sum())
    });
    let mut lowest = [0.0; FREQUENCIES * FREQUENCIES];
    for (at, value) in lowest.iter_mut().enumerate() {
        let (row, column) = (&down[at / FREQUENCIES], &waves[at % FREQUENCIES]);
        *value = row.iter().zip(column).map(|(value, wave)| value * wave).sum();
    }
    let mut sorted = lowest;
    sorted.sort_unstable_by(f64::total_cmp);
    let median = f64::midpoint(sorted[sorted.len() / 2 - 1], sorted[sorted.len() / 2]);
    lowest.iter().fold(0, |bits, &value| bits << 1 | u64::from(value > median))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Encoding, encode};
    use crate::tensor::Tensor;

    /// Spots, small enough that all frequencies of the hash are there, as photographs have them; `seed` says where.
    fn scene(side: usize, seed: usize) -> Tensor {
        let spot = |x: f64, y: f64, at: usize| {
            let place = |factor: usize| ((seed * 7919 + at * factor) % 97) as f64 / 97.0;
            let distance = (x - place(13)).powi(2) + (y - place(29)).powi(2);
            (place(41) - 0.4) * (-distance * 300.0).exp()
        };
        let middle = |at: usize| (at as f64 + 0.5) / side as f64;
        let level = |at: usize| {
            let sum: f64 = (1..=40).map(|number| spot(middle(at % side), middle(at / side), number)).sum();
            (128.0 + 200.0 * sum).clamp(0.0, 255.0) as u8
        };
        let pixels: Vec<u8> = (0..side * side).map(level).flat_map(|level| [level, level / 2, 90]).collect();
        Tensor::from_elements(&[side, side, 3], &pixels).expect("it fits")
    }

    fn hash_of(picture: &Tensor) -> u64 {
        pixel_statistics(picture.view()).expect("a picture").perceptual_hash.expect("something to see")
    }

    #[test]
    fn the_same_scene_is_near_and_another_far() {
        for seed in 1..6 {
            let whole = hash_of(&scene(200, seed));
            let small = hash_of(&scene(130, seed));
            assert!((whole ^ small).count_ones() <= 4, "{seed}: smaller");
            let file =
                encode(scene(200, seed).view(), &"jpeg-20".parse::<Encoding>().expect("a name")).expect("a file");
            let back =
                crate::image::Decoder::new().decode(&file, &crate::image::DecodeOptions::default()).expect("back");
            assert!((whole ^ hash_of(&back)).count_ones() <= 4, "{seed}: compressed");
            assert!((whole ^ hash_of(&scene(200, seed + 10))).count_ones() > 10, "{seed}: another");
        }
    }

    #[test]
    fn means_and_squares_are_those_of_the_pixels() {
        let pixels: Vec<u8> = (0..301 * 257 * 3).map(|at| (at * 31 % 253) as u8).collect();
        let picture = Tensor::from_elements(&[257, 301, 3], &pixels).expect("it fits");
        let found = pixel_statistics(picture.view()).expect("a picture");
        for channel in 0..3 {
            let levels = || pixels.iter().skip(channel).step_by(3).map(|&level| f64::from(level) / 255.0);
            let (count, sum) = (levels().count() as f64, levels().sum::<f64>());
            let squares: f64 = levels().map(|level| level * level).sum();
            assert!((found.mean[channel] - sum / count).abs() < 1e-12);
            assert!((found.mean_square[channel] - squares / count).abs() < 1e-12);
        }
    }

    #[test]
    fn gray_and_flat_pictures_are_told() {
        let gray = Tensor::from_elements(&[40, 40, 1], &(0..1600).map(|at| (at % 250) as u8).collect::<Vec<_>>());
        let found = pixel_statistics(gray.expect("it fits").view()).expect("a picture");
        assert!(found.is_gray && (found.mean[0] - found.mean[2]).abs() < 1e-12);
        for alpha in [0, 255] {
            let pixels: Vec<u8> = (0..16).flat_map(|_| [100, 100, 100 + GRAY_LEVELS, alpha]).collect();
            let flat = Tensor::from_elements(&[4, 4, 4], &pixels).expect("it fits");
            let found = pixel_statistics(flat.view()).expect("a picture");
            assert!(found.is_gray && found.perceptual_hash.is_none(), "alpha is not a color");
        }
        let colored = Tensor::from_elements(&[1, 1, 3], &[100_u8, 100, 101 + GRAY_LEVELS]).expect("it fits");
        assert!(!pixel_statistics(colored.view()).expect("a picture").is_gray);
        for shape in [&[0, 4, 3][..], &[4, 4, 2]] {
            let none = Tensor::from_elements(shape, &vec![0_u8; shape.iter().product()]).expect("it fits");
            assert!(pixel_statistics(none.view()).is_err());
        }
    }
}
