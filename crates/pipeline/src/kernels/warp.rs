//! The bodies of the kernels of warps: where a row's pixels come from, a block of them at a time, and what is made of what is there.

#![expect(clippy::needless_bitwise_bool, reason = "vectors compare without jumps")]

use std::ops::Range;

use super::pixels::{WHOLE, floor};

/// So many pixels of a row at once.
pub(crate) const BLOCK: usize = 32;

/// What a block of RGB pixels takes, and what is written after it.
pub(crate) const BLOCK_RGB_BYTES: usize = 3 * BLOCK + 4;

/// The offset of a pixel that is outside of the picture.
pub(crate) const OUTSIDE: u32 = u32::MAX;

/// Where the pixels of a row come from: u / w and v / w, which change evenly along it, less a half, so that centers of pixels are whole
/// numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowCoordinates {
    /// u, v and w in the middle of the row: single precision is enough for the steps from there.
    pub(crate) start: [f32; 3],
    /// What they change by from pixel to pixel; w's is 0 if it is 1 everywhere.
    pub(crate) along: [f32; 3],
    /// The pixel in the middle.
    pub(crate) middle: f32,
}

impl RowCoordinates {
    fn is_affine(&self) -> bool {
        self.along[2].abs() <= 0.0
    }

    #[inline(always)]
    fn affine(&self, x: f32) -> (f32, f32) {
        let step = x - self.middle;
        (self.start[0] + self.along[0] * step, self.start[1] + self.along[1] * step)
    }

    #[inline(always)]
    fn projective(&self, x: f32) -> (f32, f32) {
        let step = x - self.middle;
        let scale = 1.0 / (self.start[2] + self.along[2] * step);
        let (u, v) = self.affine(x);
        (u * scale - 0.5, v * scale - 0.5)
    }

    /// Where the pixel at `x` comes from.
    pub(crate) fn at(&self, x: usize) -> (f32, f32) {
        if self.is_affine() { self.affine(x as f32) } else { self.projective(x as f32) }
    }

    /// Which pixels of a row of so many have their nearest one in a picture of this height and width. `None`, if that is not known to be a
    /// range.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only the kernels of x86-64 ask"))]
    pub(super) fn inside(&self, count: usize, [height, width]: [usize; 2]) -> Option<Range<usize>> {
        let numbers = [self.start[0], self.start[1], self.along[0], self.along[1]];
        if !self.is_affine() || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let across = self.inside_along(0, count, width as f32);
        let down = self.inside_along(1, count, height as f32);
        let start = across.start.max(down.start);
        Some(start..across.end.min(down.end).max(start))
    }

    /// The same for one of the two directions. What is computed for pixels, rounding included, only grows along a row, or only shrinks.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only the kernels of x86-64 ask"))]
    fn inside_along(&self, direction: usize, count: usize, length: f32) -> Range<usize> {
        let (start, along) = (self.start[direction], self.along[direction]);
        let nearest = |x: usize| ((start + along * (x as f32 - self.middle)) + WHOLE) - WHOLE;
        // Where a coordinate between two pixels is reached; that is only a first guess.
        let reached = |coordinate: f32| (self.middle + (coordinate - start) / along).max(0.0) as usize;
        let (begin, end) = (reached(-0.5), reached(length - 0.5));
        if along >= 0.0 {
            first(count, begin, |x| nearest(x) >= 0.0)..first(count, end, |x| nearest(x) >= length)
        } else {
            first(count, end, |x| nearest(x) < length)..first(count, begin, |x| nearest(x) < 0.0)
        }
    }

    /// The same for a block.
    #[inline(always)]
    fn block(&self, x: usize) -> ([f32; BLOCK], [f32; BLOCK]) {
        let (mut columns, mut rows) = ([0.0; BLOCK], [0.0; BLOCK]);
        // A number below 2²⁴ and small ones: exact.
        let first = x as f32;
        if self.is_affine() {
            for (index, (u, v)) in columns.iter_mut().zip(&mut rows).enumerate() {
                (*u, *v) = self.affine(first + index as i32 as f32);
            }
        } else {
            for (index, (u, v)) in columns.iter_mut().zip(&mut rows).enumerate() {
                (*u, *v) = self.projective(first + index as i32 as f32);
            }
        }
        (columns, rows)
    }
}

/// The first of `count` coordinates from which on `holds`, looked for from a guess on.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "only the kernels of x86-64 ask"))]
fn first(count: usize, guess: usize, holds: impl Fn(usize) -> bool) -> usize {
    if count == 0 || holds(0) {
        return 0;
    }
    if !holds(count - 1) {
        return count;
    }
    let mut index = guess.clamp(1, count - 1);
    while holds(index - 1) {
        index -= 1;
    }
    while !holds(index) {
        index += 1;
    }
    index
}

/// A number of at least −2²² and below 2²², rounded.
#[inline(always)]
fn whole(value: f32) -> u32 {
    (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits())
}

#[inline(always)]
pub(super) fn nearest_offsets_body(
    coordinates: &RowCoordinates,
    x: usize,
    [height, width]: [usize; 2],
    offsets: &mut [u32; BLOCK],
) {
    let (columns, rows) = coordinates.block(x);
    let (right, bottom) = (width as f32, height as f32);
    let width = width as u32;
    for ((offset, u), v) in offsets.iter_mut().zip(columns).zip(rows) {
        let (column, row) = ((u + WHOLE) - WHOLE, (v + WHOLE) - WHOLE);
        let inside = (column >= 0.0) & (row >= 0.0) & (column < right) & (row < bottom);
        let at = whole(v).wrapping_mul(width).wrapping_add(whole(u));
        *offset = if inside { at } else { OUTSIDE };
    }
}

/// A row of RGB pixels, each the nearest to its coordinates.
#[inline(always)]
pub(super) fn nearest_rgb_body(
    coordinates: &RowCoordinates,
    from: &[u8],
    size: [usize; 2],
    fill: [u8; 3],
    to: &mut [u8],
) {
    let (from, _) = from.as_chunks::<3>();
    let mut offsets = [OUTSIDE; BLOCK];
    for (number, to) in to.as_chunks_mut::<3>().0.chunks_mut(BLOCK).enumerate() {
        nearest_offsets_body(coordinates, number * BLOCK, size, &mut offsets);
        for (to, &offset) in to.iter_mut().zip(&offsets) {
            *to = from.get(offset as usize).copied().unwrap_or(fill);
        }
    }
}

/// What is around a block's coordinates.
pub(crate) struct Surrounding {
    /// The upper left pixel of each.
    pub(crate) offsets: [u32; BLOCK],
    /// The weights of the upper two pixels of each, of 2¹⁴: the left one's in the lower half.
    pub(crate) upper: [u32; BLOCK],
    /// And of the lower two.
    pub(crate) lower: [u32; BLOCK],
    /// Whether all four pixels are in the picture, and so is what is read beside them: 1 or 0. If not, the offset and the weights are 0.
    pub(crate) within: [u32; BLOCK],
    /// Whether one of the four is: 1 or 0.
    pub(crate) touching: [u32; BLOCK],
    /// How many of the block's coordinates have all four.
    pub(crate) within_count: u32,
    /// How many have one of them.
    pub(crate) touching_count: u32,
}

impl Default for Surrounding {
    fn default() -> Self {
        let nothing = [0; BLOCK];
        Self {
            offsets: nothing,
            upper: nothing,
            lower: nothing,
            within: nothing,
            touching: nothing,
            within_count: 0,
            touching_count: 0,
        }
    }
}

/// Bits of a share: what it is off by is less than an eighth of a level.
const SHARE_BITS: u32 = 11;

/// Bits of a weight: two of them and bytes are what a vector multiplies and adds at once.
pub(super) const WEIGHT_BITS: u32 = 14;

/// Bytes that may be read from an upper left pixel on, and from the one below it.
pub(super) const READ_BYTES: usize = 16;

#[inline(always)]
pub(super) fn surrounding_body(
    coordinates: &RowCoordinates,
    x: usize,
    [height, width]: [usize; 2],
    block: &mut Surrounding,
) {
    const SHARE: f32 = (1 << SHARE_BITS) as f32;
    const SHIFT: u32 = WEIGHT_BITS - SHARE_BITS;
    const ROUND: u32 = 2 * SHARE_BITS - WEIGHT_BITS;
    let (columns, rows) = coordinates.block(x);
    let (right, bottom) = (width as f32, height as f32);
    // Beside the last pixels of the last row, there may be less to be read.
    let end = (width * height).saturating_sub(width + READ_BYTES - 1) as u32;
    let (mut within_count, mut touching_count) = (0, 0);
    for index in 0..BLOCK {
        let (u, v) = (columns[index], rows[index]);
        let (left, top) = (floor(u), floor(v));
        let (right_share, lower_share) = (whole((u - left) * SHARE), whole((v - top) * SHARE));
        let at = whole(top).wrapping_mul(width as u32).wrapping_add(whole(left));
        let within = (u >= 0.0) & (v >= 0.0) & (u < right - 1.0) & (v < bottom - 1.0) & (at < end);
        let touching = (u > -1.0) & (v > -1.0) & (u < right) & (v < bottom);
        // Whatever the weights were rounded to, their sum is one.
        let both = right_share.wrapping_mul(lower_share).wrapping_add(1 << (ROUND - 1)) >> ROUND;
        let (right_weight, lower_weight) = (right_share << SHIFT, lower_share << SHIFT);
        let upper_right = right_weight.wrapping_sub(both);
        let lower_left = lower_weight.wrapping_sub(both);
        let upper_left = (1_u32 << WEIGHT_BITS).wrapping_sub(lower_weight).wrapping_sub(upper_right);
        let keep = if within { u32::MAX } else { 0 };
        block.offsets[index] = at & keep;
        block.upper[index] = (upper_left | upper_right << 16) & keep;
        block.lower[index] = (lower_left | both << 16) & keep;
        block.within[index] = keep & 1;
        within_count += keep & 1;
        block.touching[index] = u32::from(touching);
        touching_count += u32::from(touching);
    }
    (block.within_count, block.touching_count) = (within_count, touching_count);
}

#[inline(always)]
pub(super) fn between_rgb_body(from: &[u8], width: usize, block: &Surrounding, to: &mut [u8; BLOCK_RGB_BYTES]) {
    let (pixels, _) = from.as_chunks::<3>();
    for (index, to) in to.as_chunks_mut::<3>().0.iter_mut().take(BLOCK).enumerate() {
        *to = between(pixels, width, block, index);
    }
}

/// The pixel between the four around a pair of coordinates.
#[inline(always)]
pub(crate) fn between<const N: usize>(from: &[[u8; N]], width: usize, block: &Surrounding, index: usize) -> [u8; N] {
    let at = block.offsets[index] as usize;
    let (above, below) = (&from[at..at + 2], &from[at + width..at + width + 2]);
    let (upper, lower) = (block.upper[index], block.lower[index]);
    let weights = [upper & 0xFFFF, upper >> 16, lower & 0xFFFF, lower >> 16];
    std::array::from_fn(|channel| {
        let corners = [above[0], above[1], below[0], below[1]].map(|pixel| u32::from(pixel[channel]));
        let sum: u32 = corners.iter().zip(weights).map(|(corner, weight)| corner * weight).sum();
        ((sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS) as u8
    })
}
