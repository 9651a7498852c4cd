//! Weighted sums of what is around each value.

use std::arch::asm;
use std::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm512_add_epi16, _mm512_cvtepu8_epi16, _mm512_loadu_si512, _mm512_mulhi_epu16,
    _mm512_packus_epi16, _mm512_permutexvar_epi64, _mm512_set_epi64, _mm512_set1_epi16, _mm512_slli_epi16,
    _mm512_srli_epi16, _mm512_storeu_si512,
};

use super::{VECTOR, store_vector};
use crate::kernels::blur::{FRACTION_BITS, Value, blocks, lost, weigh_body, weigh_levels_body};

/// Values of a vector.
const VALUES: usize = 32;

/// So many vectors of sums stay in registers while the weights are gone through.
const SUMS: usize = 4;

/// So many, where the weights are in registers, too.
const FEW_SUMS: usize = 2;

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::kernels) fn weigh(from: &[u8], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]) {
    // Kernels of 3, 5, 7 and 9 pixels are what recipes blur with. With a number of weights that the compiler knows, they and where
    // the values begin stay in registers.
    let is_done = match weights.len() {
        2 => few::<_, 2>(from, sides, weights, to, &mut []),
        3 => few::<_, 3>(from, sides, weights, to, &mut []),
        4 => few::<_, 4>(from, sides, weights, to, &mut []),
        5 => few::<_, 5>(from, sides, weights, to, &mut []),
        _ => many(from, sides, weights, to, &mut []),
    };
    if !is_done {
        weigh_body(from, sides, weights, to);
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::kernels) fn weigh_levels(
    from: &[u16],
    sides: &[[usize; 2]],
    weights: &[u16],
    sums: &mut [u16],
    to: &mut [u8],
) {
    let is_done = match weights.len() {
        2 => few::<_, 2>(from, sides, weights, &mut [], to),
        3 => few::<_, 3>(from, sides, weights, &mut [], to),
        4 => few::<_, 4>(from, sides, weights, &mut [], to),
        5 => few::<_, 5>(from, sides, weights, &mut [], to),
        _ => many(from, sides, weights, &mut [], to),
    };
    if !is_done {
        weigh_levels_body(from, sides, weights, sums, to);
    }
}

/// Sums of bytes, or the levels of sums, of `N` weights; `false`, where they are too few for vectors.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn few<T: Value, const N: usize>(
    from: &[T],
    sides: &[[usize; 2]],
    weights: &[u16],
    to: &mut [u16],
    to_levels: &mut [u8],
) -> bool {
    let count = if T::IS_SUM { to_levels.len() } else { to.len() };
    let (Some(begins), Some(sides), Some(given)) =
        (blocks::<{ FEW_SUMS * VALUES }>(count), sides.first_chunk::<N>(), weights.first_chunk::<N>())
    else {
        return false;
    };
    // Without closures, which would be functions of their own.
    let mut values = [[from; 2]; N];
    for (values, &side) in values.as_flattened_mut().iter_mut().zip(sides.as_flattened()) {
        *values = &from[side..][..count];
    }
    let mut weights = [_mm512_set1_epi16(0); N];
    for (weight, given) in weights.iter_mut().zip(given) {
        *weight = _mm512_set1_epi16(given.cast_signed());
    }
    let first = first_sum::<T>(N);
    for begin in begins {
        let mut sums = [first; FEW_SUMS];
        for number in 0..N {
            let [before, after] = values[number];
            let (before, after) = (block(before, begin), block(after, begin));
            let weight = opaque(weights[number]);
            for place in 0..FEW_SUMS {
                let mut both = load_wide(&before[place]);
                if number > 0 {
                    both = _mm512_add_epi16(both, load_wide(&after[place]));
                }
                sums[place] = _mm512_add_epi16(sums[place], _mm512_mulhi_epu16(value_of::<T>(both), weight));
            }
        }
        if T::IS_SUM {
            store_vector(&mut to_levels[begin..].as_chunks_mut().0[0], levels(sums[0], sums[1]));
        } else {
            let to = to[begin..].as_chunks_mut().0;
            store_values(&mut to[0], sums[0]);
            store_values(&mut to[1], sums[1]);
        }
    }
    true
}

/// The same vector, which the compiler takes for another one each time, as with AVX2, and for the same reason.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn opaque(mut vector: __m512i) -> __m512i {
    // SAFETY: without an instruction nothing changes.
    unsafe { asm!("/* {0} */", inout(zmm_reg) vector, options(nomem, nostack, preserves_flags)) };
    vector
}

/// The values of a block of few sums.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn block<T>(values: &[T], begin: usize) -> &[[T; VALUES]] {
    values[begin..][..FEW_SUMS * VALUES].as_chunks().0
}

/// The same for any number of weights.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn many<T: Value>(from: &[T], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16], to_levels: &mut [u8]) -> bool {
    let count = if T::IS_SUM { to_levels.len() } else { to.len() };
    let Some(begins) = blocks::<{ SUMS * VALUES }>(count) else { return false };
    for begin in begins {
        let [a, b, c, d] = sums(from, sides, weights, begin);
        if T::IS_SUM {
            let to = to_levels[begin..][..SUMS * VALUES].as_chunks_mut::<VECTOR>().0;
            store_vector(&mut to[0], levels(a, b));
            store_vector(&mut to[1], levels(c, d));
        } else {
            let to = to[begin..][..SUMS * VALUES].as_chunks_mut::<VALUES>().0;
            store_values(&mut to[0], a);
            store_values(&mut to[1], b);
            store_values(&mut to[2], c);
            store_values(&mut to[3], d);
        }
    }
    true
}

/// A block of sums, of what lies `sides` from it on. One of its own for either caller: the compiler puts a function that is called once where
/// it is called, and the sums stay in registers.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn sums<T: Value>(from: &[T], sides: &[[usize; 2]], weights: &[u16], begin: usize) -> [__m512i; SUMS] {
    let first = first_sum::<T>(weights.len());
    let mut sums = [first, first, first, first];
    for (number, (&[before, after], &weight)) in sides.iter().zip(weights).enumerate() {
        let weight = _mm512_set1_epi16(weight.cast_signed());
        let mut both = values(&from[begin + before..]);
        if number > 0 {
            let after = values(&from[begin + after..]);
            for place in 0..SUMS {
                both[place] = _mm512_add_epi16(both[place], after[place]);
            }
        }
        for place in 0..SUMS {
            sums[place] = _mm512_add_epi16(sums[place], _mm512_mulhi_epu16(value_of::<T>(both[place]), weight));
        }
    }
    sums
}

/// What sums of so many products begin with: half of what they cut off, and half of a level where levels are what comes of them.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn first_sum<T: Value>(weights: usize) -> __m512i {
    let half = if T::IS_SUM { 1 << (FRACTION_BITS - 1) } else { 0 };
    _mm512_set1_epi16((lost(weights) + half).cast_signed())
}

/// Values as bytes, which are rounded already.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn levels(a: __m512i, b: __m512i) -> __m512i {
    let a = _mm512_srli_epi16::<FRACTION_BITS>(a);
    let b = _mm512_srli_epi16::<FRACTION_BITS>(b);
    // Packing clamps, and takes the quarters of both in turns.
    _mm512_permutexvar_epi64(_mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0), _mm512_packus_epi16(a, b))
}

/// Vectors of the first values.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn values<T: Value>(from: &[T]) -> [__m512i; SUMS] {
    let from = &from[..SUMS * VALUES];
    let from = from.as_chunks::<VALUES>().0;
    [load_wide(&from[0]), load_wide(&from[1]), load_wide(&from[2]), load_wide(&from[3])]
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn load_wide<T: Value>(from: &[T; VALUES]) -> __m512i {
    if T::IS_SUM {
        // SAFETY: an array of a vector's length: sums have 16 bits.
        return unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
    }
    // SAFETY: an array of half a vector's length: what is no sum is a byte.
    let bytes = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
    _mm512_cvtepu8_epi16(bytes)
}

/// What was so loaded, or is the sum of two such, as a value: bytes are shifted only here, once for both.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn value_of<T: Value>(wide: __m512i) -> __m512i {
    if T::IS_SUM { wide } else { _mm512_slli_epi16::<FRACTION_BITS>(wide) }
}

#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn store_values(to: &mut [u16; VALUES], values: __m512i) {
    // SAFETY: an array of a vector's length.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), values) }
}
