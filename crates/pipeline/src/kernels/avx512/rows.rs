//! Rows of bytes, moved in vectors. Those that are written begin where lines of the cache do: one that lies in two of them takes twice as long.

use std::arch::x86_64::{
    __m512i, __mmask64, _mm512_and_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8, _mm512_set1_epi8,
    _mm512_setzero_si512, _mm512_xor_si512,
};

use super::{VECTOR, load_vector, store_vector};
use crate::kernels::avx2::rows::COPIED_BYTES_MAX;

/// So many vectors are read before they are written.
const AT_ONCE: usize = 4;

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::kernels) fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() > COPIED_BYTES_MAX {
        to.copy_from_slice(from);
    } else {
        move_row(from, to, _mm512_set1_epi8(-1), _mm512_setzero_si512());
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::kernels) fn flip_rows(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).rev().zip(to.chunks_exact_mut(row_bytes)) {
        move_row(from, to, _mm512_set1_epi8(-1), _mm512_setzero_si512());
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::kernels) fn bits(from: &[u8], to: &mut [u8], and: u8, xor: u8) {
    move_row(from, to, _mm512_set1_epi8(and.cast_signed()), _mm512_set1_epi8(xor.cast_signed()));
}

/// Moves as many bytes as there are in both, and changes their bits.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn move_row(from: &[u8], to: &mut [u8], and: __m512i, xor: __m512i) {
    let length = from.len().min(to.len());
    let (from, to) = (&from[..length], &mut to[..length]);
    let (Some(first), Some(last)) = (from.first_chunk::<VECTOR>(), from.last_chunk::<VECTOR>()) else {
        return move_few(from, to, and, xor);
    };
    if let Some(to) = to.first_chunk_mut::<VECTOR>() {
        store_vector(to, changed(load_vector(first), and, xor));
    }
    let line = to.as_ptr().align_offset(VECTOR).min(length);
    let (blocks, rest) = from[line..].as_chunks::<{ AT_ONCE * VECTOR }>();
    let (to_blocks, to_rest) = to[line..].as_chunks_mut::<{ AT_ONCE * VECTOR }>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let (from, to) = (from.as_chunks::<VECTOR>().0, to.as_chunks_mut::<VECTOR>().0);
        let values = [load_vector(&from[0]), load_vector(&from[1]), load_vector(&from[2]), load_vector(&from[3])];
        for place in 0..AT_ONCE {
            store_vector(&mut to[place], changed(values[place], and, xor));
        }
    }
    for (from, to) in rest.as_chunks::<VECTOR>().0.iter().zip(to_rest.as_chunks_mut::<VECTOR>().0) {
        store_vector(to, changed(load_vector(from), and, xor));
    }
    // The last vector again, as far as it is not there yet.
    if let Some(to) = to.last_chunk_mut::<VECTOR>() {
        store_vector(to, changed(load_vector(last), and, xor));
    }
}

/// The same for less than a vector; both have the same length.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn move_few(from: &[u8], to: &mut [u8], and: __m512i, xor: __m512i) {
    let length = from.len().min(to.len()).min(VECTOR - 1);
    let mask: __mmask64 = (1 << length) - 1;
    // SAFETY: the mask leaves bytes that are in both.
    unsafe {
        let values = _mm512_maskz_loadu_epi8(mask, from.as_ptr().cast());
        _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), mask, changed(values, and, xor));
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn changed(values: __m512i, and: __m512i, xor: __m512i) -> __m512i {
    _mm512_xor_si512(_mm512_and_si512(values, and), xor)
}
