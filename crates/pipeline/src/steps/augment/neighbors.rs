//! Changes that look at the pixels around: blur and sharpness.

use forebay_codec::memory;

use crate::error::StepError;
use crate::kernels::{self, Level};
use crate::scope::Scratch;

/// Away from, or towards, a slightly blurred picture, as torchvision's `adjust_sharpness`: a kernel of 3 × 3, and edges that stay.
pub(super) fn sharpen(level: Level, from: &[u8], to: &mut [u8], [height, width, channels]: [usize; 3], factor: f32) {
    if height <= 2 || width <= 2 {
        to.copy_from_slice(from);
        return;
    }
    let row_bytes = width * channels;
    let row = |y: usize| &from[y * row_bytes..][..row_bytes];
    for (y, to) in to.chunks_exact_mut(row_bytes).enumerate() {
        if y == 0 || y + 1 == height {
            to.copy_from_slice(row(y));
            continue;
        }
        kernels::sharpen_row(level, [row(y - 1), row(y), row(y + 1)], to, channels, factor);
    }
}

/// A Gaussian blur: rows, then columns.
#[derive(Default)]
pub(super) struct Blur {
    weights: [Vec<f32>; 2],
    /// A row of the picture, with what is mirrored on both sides.
    row: Vec<f32>,
    /// All rows after the first pass.
    rows: Vec<f32>,
}

impl Blur {
    pub(super) fn capacity_bytes(&self) -> usize {
        self.row.capacity_bytes() + self.rows.capacity_bytes()
    }

    pub(super) fn run(
        &mut self,
        level: Level,
        from: &[u8],
        to: &mut [u8],
        [height, width, channels]: [usize; 3],
        kernel_size: [usize; 2],
        sigma: [f32; 2],
    ) -> Result<(), StepError> {
        let Self { weights, row, rows } = self;
        for ((weights, size), sigma) in weights.iter_mut().zip(kernel_size).zip(sigma) {
            gaussian(weights, size, sigma);
        }
        let [across, down] = weights;
        let row_length = width * channels;
        let margin = across.len() / 2;
        memory::grow(rows, from.len())?;
        memory::grow(row, row_length + 2 * margin * channels)?;
        let row = &mut row[..row_length + 2 * margin * channels];
        for (from, to) in from.chunks_exact(row_length).zip(rows.chunks_exact_mut(row_length)) {
            let inside = &mut row[margin * channels..][..row_length];
            inside.iter_mut().zip(from).for_each(|(to, &value)| *to = f32::from(value));
            for place in (0..margin).chain(margin + width..width + 2 * margin) {
                let mirrored = mirrored(place as isize - margin as isize, width);
                for channel in 0..channels {
                    row[place * channels + channel] = f32::from(from[mirrored * channels + channel]);
                }
            }
            kernels::weigh_row(level, row, channels, across, to);
        }
        let margin = down.len() / 2;
        for (y, to) in to.chunks_exact_mut(row_length).enumerate() {
            let first = y as isize - margin as isize;
            let row = |place: usize| mirrored(first + place as isize, height) * row_length;
            kernels::weigh_rows(level, rows, &row, down, to);
        }
        Ok(())
    }
}

/// The place that is meant by one outside, mirrored about the first or the last pixel, which are not repeated.
fn mirrored(place: isize, length: usize) -> usize {
    let turn = (2 * length as isize - 2).max(1);
    let place = place.rem_euclid(turn) as usize;
    if place < length { place } else { turn as usize - place }
}

/// A Gaussian of `size` places and standard deviation `sigma`, whose sum is 1.
fn gaussian(weights: &mut Vec<f32>, size: usize, sigma: f32) {
    let middle = (size / 2) as f64;
    let weight = |place: usize| (-0.5 * ((place as f64 - middle) / f64::from(sigma)).powi(2)).exp();
    let sum: f64 = (0..size).map(weight).sum();
    weights.clear();
    weights.extend((0..size).map(|place| (weight(place) / sum) as f32));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_outside_are_mirrored() {
        let places: Vec<usize> = (-4..8).map(|place| mirrored(place, 4)).collect();
        assert_eq!(places, [2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0, 1]);
        assert_eq!(mirrored(-3, 1), 0);
    }
}
