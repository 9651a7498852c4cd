//! What AVX2 does better by hand.

pub(super) mod colors;
pub(super) mod rows;
pub(super) mod tables;
pub(super) mod warp;

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_loadu_si256, _mm256_mulhi_epu16, _mm256_packus_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi16, _mm256_srli_epi16, _mm256_storeu_si256,
};

use super::blur::{FRACTION_BITS, blocks, lost, weigh_body, weigh_levels_body};

/// Bytes of a vector.
const VECTOR: usize = 32;

#[inline]
#[target_feature(enable = "avx2")]
fn load_vector(from: &[u8; VECTOR]) -> __m256i {
    // SAFETY: an array of a vector's length.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_vector(to: &mut [u8; VECTOR], values: __m256i) {
    // SAFETY: an array of a vector's length.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), values) }
}

/// Values of a vector.
const VALUES: usize = 16;

/// So many vectors of sums stay in registers while the weights are gone through.
const SUMS: usize = 4;

#[target_feature(enable = "avx2")]
pub(super) fn weigh(from: &[u16], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]) {
    let Some(begins) = blocks::<{ SUMS * VALUES }>(to.len()) else { return weigh_body(from, sides, weights, to) };
    for begin in begins {
        let to = &mut to[begin..][..SUMS * VALUES];
        let to = to.as_chunks_mut::<VALUES>().0;
        let [a, b, c, d] = sums::<false>(from, sides, weights, begin);
        store_values(&mut to[0], a);
        store_values(&mut to[1], b);
        store_values(&mut to[2], c);
        store_values(&mut to[3], d);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn weigh_levels(from: &[u16], sides: &[[usize; 2]], weights: &[u16], sums: &mut [u16], to: &mut [u8]) {
    let Some(begins) = blocks::<{ SUMS * VALUES }>(to.len()) else {
        return weigh_levels_body(from, sides, weights, sums, to);
    };
    for begin in begins {
        let to = &mut to[begin..][..SUMS * VALUES];
        let to = to.as_chunks_mut::<VECTOR>().0;
        let [a, b, c, d] = self::sums::<true>(from, sides, weights, begin);
        store_vector(&mut to[0], levels(a, b));
        store_vector(&mut to[1], levels(c, d));
    }
}

/// Values as bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn levels(a: __m256i, b: __m256i) -> __m256i {
    let half = _mm256_set1_epi16(1 << (FRACTION_BITS - 1));
    let a = _mm256_srli_epi16::<{ FRACTION_BITS as i32 }>(_mm256_add_epi16(a, half));
    let b = _mm256_srli_epi16::<{ FRACTION_BITS as i32 }>(_mm256_add_epi16(b, half));
    // Packing clamps, and takes the halves of both in turns.
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(a, b))
}

/// A block of sums, of what lies `sides` from it on. One of its own for either caller: the compiler puts a function that is called once
/// where it is called, and the sums stay in registers.
#[inline]
#[target_feature(enable = "avx2")]
fn sums<const LEVELS: bool>(from: &[u16], sides: &[[usize; 2]], weights: &[u16], begin: usize) -> [__m256i; SUMS] {
    let nothing = _mm256_set1_epi16(lost(weights.len()).cast_signed());
    let mut sums = [nothing, nothing, nothing, nothing];
    for (number, (&[before, after], &weight)) in sides.iter().zip(weights).enumerate() {
        let weight = _mm256_set1_epi16(weight.cast_signed());
        let mut both = values(&from[begin + before..]);
        if number > 0 {
            let after = values(&from[begin + after..]);
            for place in 0..SUMS {
                both[place] = _mm256_add_epi16(both[place], after[place]);
            }
        }
        for place in 0..SUMS {
            sums[place] = _mm256_add_epi16(sums[place], _mm256_mulhi_epu16(both[place], weight));
        }
    }
    sums
}

/// Vectors of the first values.
#[inline]
#[target_feature(enable = "avx2")]
fn values(from: &[u16]) -> [__m256i; SUMS] {
    let from = &from[..SUMS * VALUES];
    let from = from.as_chunks::<VALUES>().0;
    [load_values(&from[0]), load_values(&from[1]), load_values(&from[2]), load_values(&from[3])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_values(from: &[u16; VALUES]) -> __m256i {
    // SAFETY: an array of a vector's length.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_values(to: &mut [u16; VALUES], values: __m256i) {
    // SAFETY: an array of a vector's length.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), values) }
}
