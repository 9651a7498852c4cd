//! Tables of bytes, and the changes of single values that need none.
//!
//! A shuffle looks 16 bytes up in a table of 16. What follows from that for 256 values is in [`found`], and for straight lines in
//! [`Line`], which is three times as fast.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_adds_epu8, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_broadcastsi128_si256, _mm256_cmpgt_epi8, _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_srli_epi16,
    _mm256_subs_epi8, _mm256_subs_epu8, _mm256_xor_si256,
};

use super::{VECTOR, load_vector, store_vector};
use crate::kernels::pixels::{look_up_body, look_up_channels_body, scale_body};

/// Bytes of a table that a shuffle takes.
const ROW: usize = 16;

/// So many vectors are looked up while a part of the table is in a register.
const AT_ONCE: usize = 2;

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn look_up(from: &[u8], to: &mut [u8], table: &[u8; 256]) {
    let steps = steps(table);
    let (blocks, rest) = from.as_chunks::<{ AT_ONCE * VECTOR }>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<{ AT_ONCE * VECTOR }>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let (from, to) = (from.as_chunks::<VECTOR>().0, to.as_chunks_mut::<VECTOR>().0);
        let made = found(&steps, [load_vector(&from[0]), load_vector(&from[1])]);
        for place in 0..AT_ONCE {
            store_vector(&mut to[place], made[place]);
        }
    }
    look_up_body(rest, to_rest, table);
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn look_up_channels(from: &[u8], to: &mut [u8], tables: &[[u8; 256]; 3]) {
    let steps = [steps(&tables[0]), steps(&tables[1]), steps(&tables[2])];
    // Every third byte, from the first, the second or the third on.
    let thirds = [every_third(0), every_third(1), every_third(2)];
    let (blocks, rest) = from.as_chunks::<{ 6 * VECTOR }>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<{ 6 * VECTOR }>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let (from, to) = (from.as_chunks::<VECTOR>().0, to.as_chunks_mut::<VECTOR>().0);
        let mut of_channels = [[_mm256_set1_epi8(0); 2]; 3];
        for (channel, made) in of_channels.iter_mut().enumerate() {
            // Three vectors are whole pixels. A channel has other places in each of them, and so all of its values have a place in one.
            let places = [thirds[channel], thirds[(channel + 1) % 3], thirds[(channel + 2) % 3]];
            let values = [picked(&from[..3], places), picked(&from[3..], places)];
            *made = found(&steps[channel], values);
        }
        for (number, to) in to.iter_mut().enumerate() {
            let [red, green, blue] =
                [of_channels[0][number / 3], of_channels[1][number / 3], of_channels[2][number / 3]];
            let made = _mm256_blendv_epi8(red, green, thirds[(1 + number) % 3]);
            store_vector(to, _mm256_blendv_epi8(made, blue, thirds[(2 + number) % 3]));
        }
    }
    look_up_channels_body(rest, to_rest, tables);
}

/// The bytes at these places of three vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn picked(from: &[[u8; VECTOR]], places: [__m256i; 3]) -> __m256i {
    let made = _mm256_blendv_epi8(load_vector(&from[0]), load_vector(&from[1]), places[1]);
    _mm256_blendv_epi8(made, load_vector(&from[2]), places[2])
}

#[inline]
#[target_feature(enable = "avx2")]
fn every_third(first: usize) -> __m256i {
    let places: [u8; VECTOR] = std::array::from_fn(|place| if place % 3 == first { 0xFF } else { 0 });
    load_vector(&places)
}

/// A table as [`found`] wants it: the first row and the one in the middle as they are, of all others what they differ by from the row before.
fn steps(table: &[u8; 256]) -> [u8; 256] {
    std::array::from_fn(|value| if value % 128 < ROW { table[value] } else { table[value] ^ table[value - ROW] })
}

/// What a table has for each value. A shuffle gives 0 for negative numbers. So 16 is taken away again and again from a value below 128, and as
/// long as the rest is not negative the next row's difference is added: up to the value's own row, all of them together are that row. Of
/// values from 128 on the same is done to what is above 128, which is negative for all others.
#[inline]
#[target_feature(enable = "avx2")]
fn found<const N: usize>(steps: &[u8; 256], values: [__m256i; N]) -> [__m256i; N] {
    let (rows, _) = steps.as_chunks::<ROW>();
    let sixteen = _mm256_set1_epi8(ROW as i8);
    let mut left = values;
    let mut made = [_mm256_set1_epi8(0); N];
    for (number, row) in rows.iter().enumerate() {
        let row = load_row(row);
        for place in 0..N {
            if number == 8 {
                left[place] = _mm256_xor_si256(values[place], _mm256_set1_epi8(i8::MIN));
            } else if number > 0 {
                left[place] = _mm256_subs_epi8(left[place], sixteen);
            }
            made[place] = _mm256_xor_si256(made[place], _mm256_shuffle_epi8(row, left[place]));
        }
    }
    made
}

/// A row of a table, for both halves of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn load_row(row: &[u8; ROW]) -> __m256i {
    // SAFETY: 16 bytes are half of a vector.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(row.as_ptr().cast()) })
}

/// A change value · factor + offset, cut off, as five shuffles. With a value's upper four bits h and its lower four bits l that is
/// 16 · factor · h + offset and factor · l. Of each the whole number is in a table. Whether their fractions together are another one
/// follows from the order of the fractions: 16 of either kind, so that ranks of a few bits say it exactly.
struct Line {
    /// What the upper bits add.
    added: [u8; ROW],
    /// What the upper bits take away, where that is below 0.
    taken: [u8; ROW],
    /// How many of the lower bits' fractions do not make another whole number of this one.
    least_ranks: [u8; ROW],
    /// What the lower bits add, and one.
    lower: [u8; ROW],
    /// How many of the others' fractions are smaller.
    ranks: [u8; ROW],
}

impl Line {
    /// `None`, where a line of bytes would be another one: single precision may round to the next whole number.
    #[target_feature(enable = "avx2")]
    fn new(factor: f32, offset: f32) -> Option<Self> {
        // What 15 times the factor adds must be a byte.
        if !(0.0..=16.0).contains(&factor) || !offset.is_finite() {
            return None;
        }
        let (factor, offset) = (f64::from(factor), f64::from(offset));
        let upper: [f64; ROW] = std::array::from_fn(|bits| (ROW * bits) as f64 * factor + offset);
        let lower: [f64; ROW] = std::array::from_fn(|bits| bits as f64 * factor);
        let (whole_upper, whole_lower) = (upper.map(f64::floor), lower.map(f64::floor));
        let fractions: [f64; ROW] = std::array::from_fn(|bits| lower[bits] - whole_lower[bits]);
        let below = |limit: f64| fractions.iter().map(|fraction| u8::from(*fraction < limit)).sum::<u8>();
        let line = Self {
            added: whole_upper.map(|whole| whole.clamp(0.0, 255.0) as u8),
            taken: whole_upper.map(|whole| (-whole).clamp(0.0, 255.0) as u8),
            least_ranks: std::array::from_fn(|bits| below(1.0 - (upper[bits] - whole_upper[bits]))),
            lower: whole_lower.map(|whole| whole as u8 + 1),
            ranks: fractions.map(below),
        };
        let values: [u8; 256] = std::array::from_fn(|value| value as u8);
        let (mut made, mut defined) = ([0; 256], [0; 256]);
        line.apply(values.as_chunks::<VECTOR>().0, made.as_chunks_mut::<VECTOR>().0);
        scale_body(&values, &mut defined, factor as f32, offset as f32);
        (made == defined).then_some(line)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn apply(&self, from: &[[u8; VECTOR]], to: &mut [[u8; VECTOR]]) {
        let (added, taken, least_ranks) = (load_row(&self.added), load_row(&self.taken), load_row(&self.least_ranks));
        let (lower, ranks) = (load_row(&self.lower), load_row(&self.ranks));
        let four_bits = _mm256_set1_epi8(0x0F);
        for (from, to) in from.iter().zip(to) {
            let values = load_vector(from);
            let l = _mm256_and_si256(values, four_bits);
            let h = _mm256_and_si256(_mm256_srli_epi16::<4>(values), four_bits);
            // −1 where the fractions are no whole number together.
            let less = _mm256_cmpgt_epi8(_mm256_shuffle_epi8(least_ranks, h), _mm256_shuffle_epi8(ranks, l));
            let sum = _mm256_add_epi8(_mm256_shuffle_epi8(lower, l), less);
            let sum = _mm256_subs_epu8(sum, _mm256_shuffle_epi8(taken, h));
            store_vector(to, _mm256_adds_epu8(sum, _mm256_shuffle_epi8(added, h)));
        }
    }
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn scale(from: &[u8], to: &mut [u8], factor: f32, offset: f32) {
    let Some(line) = Line::new(factor, offset) else { return scale_body(from, to, factor, offset) };
    let (vectors, rest) = from.as_chunks::<VECTOR>();
    let (to_vectors, to_rest) = to.as_chunks_mut::<VECTOR>();
    line.apply(vectors, to_vectors);
    scale_body(rest, to_rest, factor, offset);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_changes_are_lines() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        let factors = (1..1000).map(|step| step as f32 * 0.0019);
        // SAFETY: AVX2 is there, as just asked.
        let lines = factors.filter(|&factor| unsafe { Line::new(factor, 128.0 - 100.3 * factor) }.is_some()).count();
        assert!(lines > 980, "{lines} of 999");
    }
}
