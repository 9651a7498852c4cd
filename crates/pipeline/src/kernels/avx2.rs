//! What AVX2 does better by hand.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi32, _mm_madd_epi16, _mm_packs_epi32, _mm_packus_epi16, _mm_set_epi64x, _mm_set1_epi32,
    _mm_setr_epi8, _mm_shuffle_epi8, _mm_srli_epi32, _mm_storeu_si128, _mm256_add_epi16, _mm256_loadu_si256,
    _mm256_mulhi_epu16, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::blur::{lost, weigh_body};
use super::warp::{BLOCK, BLOCK_RGB_BYTES, READ_BYTES, Surrounding, WEIGHT_BITS};

/// Vectors go through no closures, see `avx512.rs`.
#[target_feature(enable = "avx2")]
pub(super) fn between_rgb(from: &[u8], width: usize, block: &Surrounding, to: &mut [u8; BLOCK_RGB_BYTES]) {
    let close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    for first in (0..BLOCK).step_by(4) {
        let (a, b) = (made(from, width, block, first), made(from, width, block, first + 1));
        let (c, d) = (made(from, width, block, first + 2), made(from, width, block, first + 3));
        let pixels = _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
        let to = &mut to[3 * first..][..16];
        // SAFETY: 16 bytes, as just asserted.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_shuffle_epi8(pixels, close)) };
    }
}

/// The channels of the pixel between four, a number each.
#[inline]
#[target_feature(enable = "avx2")]
fn made(from: &[u8], width: usize, block: &Surrounding, index: usize) -> __m128i {
    let at = 3 * block.offsets[index] as usize;
    let above = weighed(&from[at..], block.upper[index]);
    let below = weighed(&from[at + 3 * width..], block.lower[index]);
    let half = _mm_set1_epi32(1 << (WEIGHT_BITS - 1));
    _mm_srli_epi32::<{ WEIGHT_BITS as i32 }>(_mm_add_epi32(_mm_add_epi32(above, below), half))
}

/// The sums of two pixels' channels by two weights: the same channel of the left and the right one side by side, in 16 bit, so that one
/// instruction weighs and adds them.
#[inline]
#[target_feature(enable = "avx2")]
fn weighed(from: &[u8], weights: u32) -> __m128i {
    let pairs = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let (pixels, _) = from.split_first_chunk::<READ_BYTES>().expect("only what may be read is within");
    let pixels = _mm_set_epi64x(0, i64::from_le_bytes(*pixels));
    _mm_madd_epi16(_mm_shuffle_epi8(pixels, pairs), _mm_set1_epi32(weights.cast_signed()))
}

/// Values of a vector.
const VALUES: usize = 16;

/// So many vectors of sums stay in registers while the weights are gone through.
const SUMS: usize = 4;

#[target_feature(enable = "avx2")]
pub(super) fn weigh(from: &[u16], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]) {
    let (Some((&middle, others)), Some((&[middle_side, _], other_sides))) =
        (weights.split_first(), sides.split_first())
    else {
        return;
    };
    let rounding = _mm256_set1_epi16(lost(weights.len()).cast_signed());
    let (blocks, rest) = to.as_chunks_mut::<{ SUMS * VALUES }>();
    for (block, to) in blocks.iter_mut().enumerate() {
        let begin = block * SUMS * VALUES;
        let weight = _mm256_set1_epi16(middle.cast_signed());
        let mut sums = values(&from[begin + middle_side..]);
        for sum in &mut sums {
            *sum = _mm256_add_epi16(_mm256_mulhi_epu16(*sum, weight), rounding);
        }
        for (&[before, after], &weight) in other_sides.iter().zip(others) {
            let (before, after) = (values(&from[begin + before..]), values(&from[begin + after..]));
            let weight = _mm256_set1_epi16(weight.cast_signed());
            for place in 0..SUMS {
                let both = _mm256_add_epi16(before[place], after[place]);
                sums[place] = _mm256_add_epi16(sums[place], _mm256_mulhi_epu16(both, weight));
            }
        }
        for (to, sum) in to.as_chunks_mut::<VALUES>().0.iter_mut().zip(sums) {
            // SAFETY: an array of a vector's length.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), sum) };
        }
    }
    weigh_body(&from[blocks.len() * SUMS * VALUES..], sides, weights, rest);
}

/// Vectors of the first values.
#[inline]
#[target_feature(enable = "avx2")]
fn values(from: &[u16]) -> [__m256i; SUMS] {
    let from = &from[..SUMS * VALUES];
    let mut vectors = [_mm256_setzero_si256(); SUMS];
    for (vector, from) in vectors.iter_mut().zip(from.as_chunks::<VALUES>().0) {
        // SAFETY: an array of a vector's length.
        *vector = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
    }
    vectors
}
