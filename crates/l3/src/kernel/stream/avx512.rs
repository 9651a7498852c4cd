//! Copies past the cache with AVX-512: a line in one store.

use std::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};

use super::LINE_BYTES;

/// # Safety
/// `to` must be aligned to [`LINE_BYTES`], and a fence must follow before anybody is told of it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn copy(from: &[[u8; LINE_BYTES]], to: &mut [[u8; LINE_BYTES]]) {
    for (from, to) in from.iter().zip(to) {
        // SAFETY: both are 64 bytes; the store's are aligned by the caller's promise, and the load needs no alignment.
        unsafe { _mm512_stream_si512(to.as_mut_ptr().cast(), _mm512_loadu_si512(from.as_ptr().cast())) };
    }
}
