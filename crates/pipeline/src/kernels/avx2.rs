//! What AVX2 does better by hand.

pub(super) mod blur;
pub(super) mod colors;
pub(super) mod rows;
pub(super) mod tables;
pub(super) mod warp;

use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};

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
