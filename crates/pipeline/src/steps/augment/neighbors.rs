//! Changes that look at the pixels around: blur and sharpness.

use forebay_codec::memory;

use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::scope::Scratch;

/// Away from, or towards, a slightly blurred picture, as torchvision's `adjust_sharpness`: a kernel of 3 × 3, and edges that stay.
pub(super) fn sharpen(
    level: Supported,
    from: &[u8],
    to: &mut [u8],
    [height, width, channels]: [usize; 3],
    factor: f32,
) {
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

/// Values in a line of the processor's cache.
const LINE: usize = 32;

/// A Gaussian blur: rows, then columns.
#[derive(Default)]
pub(super) struct Blur {
    weights: [Vec<u16>; 2],
    /// A row of the image, with what is mirrored on both sides.
    row: Vec<u8>,
    /// The last rows after the first pass, as many as the second needs: each at its number modulo theirs.
    ring: Vec<u16>,
    /// What a row is after the second.
    sums: Vec<u16>,
    /// Where what is weighed lies: around a value of a row, and above and below one.
    across_sides: Vec<[usize; 2]>,
    down_sides: Vec<[usize; 2]>,
    /// Where the rows of the picture, and those around it, are in the ring.
    places: Vec<usize>,
}

impl Blur {
    pub(super) fn capacity_bytes(&self) -> usize {
        let rows = self.row.capacity_bytes() + self.ring.capacity_bytes() + self.sums.capacity_bytes();
        rows + self.across_sides.capacity_bytes() + self.down_sides.capacity_bytes() + self.places.capacity_bytes()
    }

    pub(super) fn run(
        &mut self,
        level: Supported,
        from: &[u8],
        to: &mut [u8],
        [height, width, channels]: [usize; 3],
        kernel_size: [usize; 2],
        sigma: [f32; 2],
    ) -> Result<(), StepError> {
        let Self { weights, row, ring, sums, across_sides, down_sides, places } = self;
        for ((weights, size), sigma) in weights.iter_mut().zip(kernel_size).zip(sigma) {
            gaussian(weights, size, sigma);
        }
        let [across, down] = weights;
        if across.len() == 1 && down.len() == 1 {
            // Nothing beside a pixel counts, so that it stays.
            kernels::copy(level, from, to);
            return Ok(());
        }
        let row_length = width * channels;
        let (margin, reach) = (across.len() - 1, down.len() - 1);
        let ring_rows = height.min(2 * reach + 1);
        // Rows begin where lines of the cache do, so that no vector is in two of them.
        let ring_step = row_length.next_multiple_of(LINE);
        memory::grow(ring, ring_rows * ring_step + LINE)?;
        let ring_begin = ring.as_ptr().align_offset(LINE * size_of::<u16>()).min(LINE);
        memory::grow(row, row_length + 2 * margin * channels)?;
        memory::grow(sums, row_length)?;
        let (row, sums) = (&mut row[..row_length + 2 * margin * channels], &mut sums[..row_length]);
        // Where each row is after the first pass, and so are those that are mirrored above and below.
        places.clear();
        let (first, last) = (-(reach as isize), (height + reach) as isize);
        let outside = |y| ring_begin + mirrored(y, height) % ring_rows * ring_step;
        places.extend((first..0).map(outside));
        places.extend((0..ring_rows).cycle().take(height).map(|slot| ring_begin + slot * ring_step));
        places.extend((height as isize..last).map(outside));
        across_sides.clear();
        across_sides.extend((0..=margin).map(|distance| [margin - distance, margin + distance].map(|x| x * channels)));
        let mut rows_from = from.chunks_exact(row_length.max(1)).enumerate();
        for (y, to) in to.chunks_exact_mut(row_length.max(1)).enumerate() {
            // Those rows that are needed from now on.
            for (next, from) in rows_from.by_ref().take(if y == 0 { reach + 1 } else { 1 }) {
                mirror(from, [width, channels, margin], row);
                let ring = &mut ring[places[next + reach]..][..row_length];
                kernels::weigh(level, row, across_sides, across, ring);
            }
            down_sides.clear();
            down_sides.extend((0..=reach).map(|distance| [places[y + reach - distance], places[y + reach + distance]]));
            kernels::weigh_levels(level, ring, down_sides, down, sums, to);
        }
        Ok(())
    }
}

/// A row with so many mirrored pixels on each side.
fn mirror(from: &[u8], [width, channels, margin]: [usize; 3], row: &mut [u8]) {
    /// Copies the pixels of the margins, each of a size that the compiler knows.
    fn margins<const N: usize>(row: &mut [u8], width: usize, margin: usize) {
        let (pixels, _) = row.as_chunks_mut::<N>();
        for place in (0..margin).chain(margin + width..width + 2 * margin) {
            pixels[place] = pixels[margin + mirrored(place as isize - margin as isize, width)];
        }
    }
    row[margin * channels..][..width * channels].copy_from_slice(from);
    if channels == 3 { margins::<3>(row, width, margin) } else { margins::<1>(row, width, margin) }
}

/// The place that is meant by one outside, mirrored about the first or the last pixel, which are not repeated.
pub(in crate::steps) fn mirrored(place: isize, length: usize) -> usize {
    let turn = (2 * length as isize - 2).max(1);
    // Nearly all are so near that nothing needs to be divided.
    let place = if (-turn..0).contains(&place) { place + turn } else { place };
    let place = if (0..turn).contains(&place) { place } else { place.rem_euclid(turn) } as usize;
    if place < length { place } else { turn as usize - place }
}

/// A Gaussian of `size` places and standard deviation `sigma`: the weight of the middle, and of each distance from it, times 2¹⁶. Their
/// sum, with both sides, is one less than 1, and places that have none are left away.
fn gaussian(weights: &mut Vec<u16>, size: usize, sigma: f32) {
    const ONE: f64 = 65_535.0;
    let weight = |distance: usize| (-0.5 * (distance as f64 / f64::from(sigma)).powi(2)).exp();
    let sum: f64 = weight(0) + 2.0 * (1..=size / 2).map(weight).sum::<f64>();
    weights.clear();
    weights.extend((0..=size / 2).map(|distance| (weight(distance) / sum * ONE).round() as u16));
    while weights.len() > 1 && weights.last() == Some(&0) {
        weights.pop();
    }
    let sides: u32 = weights[1..].iter().map(|&weight| 2 * u32::from(weight)).sum();
    weights[0] = (ONE as u32).saturating_sub(sides) as u16;
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

    #[test]
    fn weights_are_one_and_those_of_nothing_are_left_away() {
        let mut weights = Vec::new();
        for (size, sigma) in [(1, 1.0), (3, 0.1), (5, 1.1), (23, 0.3), (23, 2.0), (23, 40.0), (1001, 300.0)] {
            gaussian(&mut weights, size, sigma);
            let sum = u32::from(weights[0]) + weights[1..].iter().map(|&weight| 2 * u32::from(weight)).sum::<u32>();
            assert!((65_000..=65_535).contains(&sum) && weights.len() <= size / 2 + 1, "{size} {sigma}: {weights:?}");
        }
        gaussian(&mut weights, 23, 1.0);
        assert_eq!(weights.len(), 5, "what is further has less than half of 2⁻¹⁶");
    }
}
