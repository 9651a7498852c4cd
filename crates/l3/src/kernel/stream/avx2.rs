//! Copies past the cache with AVX2: a line in two stores, which the processor puts together.

use std::arch::x86_64::{_mm256_loadu_si256, _mm256_stream_si256};

use super::LINE_BYTES;

/// # Safety
/// `to` must be aligned to [`LINE_BYTES`], and a fence must follow before anybody is told of it.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn copy(from: &[[u8; LINE_BYTES]], to: &mut [[u8; LINE_BYTES]]) {
    for (from, to) in from.iter().zip(to) {
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        // SAFETY: both are twice 32 bytes; the stores' are aligned by the caller's promise, and the loads need no alignment.
        unsafe {
            let halves = [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())];
            _mm256_stream_si256(to.cast(), halves[0]);
            _mm256_stream_si256(to.add(32).cast(), halves[1]);
        }
    }
}
