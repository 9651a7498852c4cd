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
    // Kernels of 3, 5, 7 and 9 pixels are what recipes blur with. With a number of weights that the compiler knows, they and where
    // the values begin stay in registers.
    match weights.len() {
        2 => weigh_few::<2>(from, sides, weights, to),
        3 => weigh_few::<3>(from, sides, weights, to),
        4 => weigh_few::<4>(from, sides, weights, to),
        5 => weigh_few::<5>(from, sides, weights, to),
        _ => {
            let Some(begins) = blocks::<{ SUMS * VALUES }>(to.len()) else {
                return weigh_body(from, sides, weights, to);
            };
            for begin in begins {
                store_sums(to, begin, sums::<false>(from, sides, weights, begin));
            }
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn weigh_levels(from: &[u16], sides: &[[usize; 2]], weights: &[u16], sums: &mut [u16], to: &mut [u8]) {
    match weights.len() {
        2 => weigh_levels_few::<2>(from, sides, weights, sums, to),
        3 => weigh_levels_few::<3>(from, sides, weights, sums, to),
        4 => weigh_levels_few::<4>(from, sides, weights, sums, to),
        5 => weigh_levels_few::<5>(from, sides, weights, sums, to),
        _ => {
            let Some(begins) = blocks::<{ SUMS * VALUES }>(to.len()) else {
                return weigh_levels_body(from, sides, weights, sums, to);
            };
            for begin in begins {
                store_levels(to, begin, self::sums::<true>(from, sides, weights, begin));
            }
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn weigh_few<const N: usize>(from: &[u16], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]) {
    let (Some(begins), Some(few)) =
        (blocks::<{ SUMS * VALUES }>(to.len()), Few::<N>::new(from, sides, weights, to.len()))
    else {
        return weigh_body(from, sides, weights, to);
    };
    for begin in begins {
        store_sums(to, begin, few.sums(begin));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn weigh_levels_few<const N: usize>(
    from: &[u16],
    sides: &[[usize; 2]],
    weights: &[u16],
    sums: &mut [u16],
    to: &mut [u8],
) {
    let (Some(begins), Some(few)) =
        (blocks::<{ SUMS * VALUES }>(to.len()), Few::<N>::new(from, sides, weights, to.len()))
    else {
        return weigh_levels_body(from, sides, weights, sums, to);
    };
    for begin in begins {
        store_levels(to, begin, few.sums(begin));
    }
}

/// So many weights, and the values that each is for.
struct Few<'a, const N: usize> {
    /// As many as there are sums, before and after.
    sides: [[&'a [u16]; 2]; N],
    weights: [__m256i; N],
}

impl<'a, const N: usize> Few<'a, N> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(from: &'a [u16], sides: &[[usize; 2]], weights: &[u16], count: usize) -> Option<Self> {
        let (sides, weights) = (sides.first_chunk::<N>()?, weights.first_chunk::<N>()?);
        let mut few = Self { sides: [[&[][..]; 2]; N], weights: [_mm256_set1_epi16(0); N] };
        for place in 0..N {
            let [before, after] = sides[place];
            few.sides[place] = [from.get(before..before + count)?, from.get(after..after + count)?];
            few.weights[place] = _mm256_set1_epi16(weights[place].cast_signed());
        }
        Some(few)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums(&self, begin: usize) -> [__m256i; SUMS] {
        let mut sums = [_mm256_set1_epi16(lost(N).cast_signed()); SUMS];
        for (number, ([before, after], &weight)) in self.sides.iter().zip(&self.weights).enumerate() {
            let (before, after) = (block(before, begin), block(after, begin));
            for place in 0..SUMS {
                let mut both = load_values(&before[place]);
                if number > 0 {
                    both = _mm256_add_epi16(both, load_values(&after[place]));
                }
                sums[place] = _mm256_add_epi16(sums[place], _mm256_mulhi_epu16(both, weight));
            }
        }
        sums
    }
}

/// The values of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn block(values: &[u16], begin: usize) -> &[[u16; VALUES]] {
    values[begin..][..SUMS * VALUES].as_chunks::<VALUES>().0
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_sums(to: &mut [u16], begin: usize, [a, b, c, d]: [__m256i; SUMS]) {
    let to = to[begin..][..SUMS * VALUES].as_chunks_mut::<VALUES>().0;
    store_values(&mut to[0], a);
    store_values(&mut to[1], b);
    store_values(&mut to[2], c);
    store_values(&mut to[3], d);
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_levels(to: &mut [u8], begin: usize, [a, b, c, d]: [__m256i; SUMS]) {
    let to = to[begin..][..SUMS * VALUES].as_chunks_mut::<VECTOR>().0;
    store_vector(&mut to[0], levels(a, b));
    store_vector(&mut to[1], levels(c, d));
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

/// A block of sums, of what lies `sides` from it on, for any number of weights. One of its own for either caller: the compiler puts a
/// function that is called once where it is called, and the sums stay in registers.
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
