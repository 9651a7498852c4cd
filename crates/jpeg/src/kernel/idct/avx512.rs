//! Four blocks at a time.

use std::arch::x86_64::{
    __m512i, _mm256_storeu_si256, _mm512_add_epi8 as add8, _mm512_add_epi16 as add16, _mm512_add_epi32 as add32,
    _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_load_si512, _mm512_madd_epi16 as multiply_add,
    _mm512_mullo_epi16, _mm512_packs_epi16 as pack16, _mm512_packs_epi32 as pack32, _mm512_permutexvar_epi64,
    _mm512_set1_epi8 as set8, _mm512_set1_epi16, _mm512_set1_epi32 as set32, _mm512_setr_epi64,
    _mm512_setzero_si512 as zero, _mm512_srai_epi32 as shift_right32, _mm512_sub_epi16 as subtract16,
    _mm512_sub_epi32 as subtract32, _mm512_test_epi16_mask, _mm512_unpackhi_epi8 as unpack_high8,
    _mm512_unpackhi_epi16 as unpack_high16, _mm512_unpackhi_epi32 as unpack_high32,
    _mm512_unpacklo_epi8 as unpack_low8, _mm512_unpacklo_epi16 as unpack_low16, _mm512_unpacklo_epi32 as unpack_low32,
};

use super::vector::define_transform;
use super::{
    CONSTANT_BITS, CORNER_EXTENT, F_0_298, F_0_390, F_0_541, F_0_765, F_0_899, F_1_175, F_1_501, F_1_847, F_1_961,
    F_2_053, F_2_562, F_3_072, FIRST_SHIFT, Quantizers, SECOND_SHIFT,
};
use crate::entropy::Quad;

type Vector = __m512i;
type ShiftCount = u32;

define_transform!("avx512f,avx512bw,avx512vl");

#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn inverse(quad: &Quad, quantizers: &Quantizers, extent: u8, target: &mut [u8], stride: usize) -> bool {
    assert!(target.len() >= 7 * stride + 32, "the target must hold four blocks");
    let mut rows = [zero(); 8];
    for (y, row) in rows.iter_mut().enumerate() {
        if y < 4 || extent > CORNER_EXTENT {
            // SAFETY: each row of a quad is 32 numbers, 64 bytes, to which quads are aligned; both have 8 rows.
            *row = unsafe {
                let coefficients = _mm512_load_si512(quad.0.as_ptr().add(y * 32).cast());
                _mm512_mullo_epi16(coefficients, _mm512_load_si512(quantizers.0.as_ptr().add(y * 32).cast()))
            };
        }
    }
    let high = add16(rows[0], _mm512_set1_epi16(8192));
    let pairs = if extent > CORNER_EXTENT { transform::<false>(rows) } else { transform::<true>(rows) };
    let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    for (index, pair) in pairs.into_iter().enumerate() {
        let pair = _mm512_permutexvar_epi64(order, pair);
        // SAFETY: rows 0 to 7 of 32 bytes lie within the target, as checked above.
        unsafe {
            let row = target.as_mut_ptr().add(2 * index * stride);
            _mm256_storeu_si256(row.cast(), _mm512_castsi512_si256(pair));
            _mm256_storeu_si256(row.add(stride).cast(), _mm512_extracti64x4_epi64::<1>(pair));
        }
    }
    _mm512_test_epi16_mask(high, _mm512_set1_epi16(0xC000u16 as i16)) == 0
}
