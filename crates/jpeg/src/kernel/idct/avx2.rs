//! Two blocks at a time.

use std::arch::x86_64::{
    __m256i, _mm_storeu_si128, _mm256_add_epi8 as add8, _mm256_add_epi16 as add16, _mm256_add_epi32 as add32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_load_si256, _mm256_madd_epi16 as multiply_add,
    _mm256_mullo_epi16, _mm256_or_si256, _mm256_packs_epi16 as pack16, _mm256_packs_epi32 as pack32,
    _mm256_permute4x64_epi64, _mm256_set1_epi8 as set8, _mm256_set1_epi16, _mm256_set1_epi32 as set32,
    _mm256_setzero_si256 as zero, _mm256_srai_epi32 as shift_right32, _mm256_sub_epi16 as subtract16,
    _mm256_sub_epi32 as subtract32, _mm256_testz_si256, _mm256_unpackhi_epi8 as unpack_high8,
    _mm256_unpackhi_epi16 as unpack_high16, _mm256_unpackhi_epi32 as unpack_high32,
    _mm256_unpacklo_epi8 as unpack_low8, _mm256_unpacklo_epi16 as unpack_low16, _mm256_unpacklo_epi32 as unpack_low32,
};

use super::vector::define_transform;
use super::{
    CONSTANT_BITS, CORNER_EXTENT, F_0_298, F_0_390, F_0_541, F_0_765, F_0_899, F_1_175, F_1_501, F_1_847, F_1_961,
    F_2_053, F_2_562, F_3_072, FIRST_SHIFT, Quantizers, SECOND_SHIFT,
};
use crate::entropy::Quad;

type Vector = __m256i;
type ShiftCount = i32;

define_transform!("avx2");

#[target_feature(enable = "avx2")]
pub(super) fn inverse(quad: &Quad, quantizers: &Quantizers, extent: u8, target: &mut [u8], stride: usize) -> bool {
    assert!(target.len() >= 7 * stride + 32, "the target must hold four blocks");
    let mut high = zero();
    for half in 0..2 {
        let mut rows = [zero(); 8];
        for (y, row) in rows.iter_mut().enumerate() {
            if y < 4 || extent > CORNER_EXTENT {
                let at = y * 32 + half * 16;
                // SAFETY: `at` is at most 240, so that 16 numbers lie within both quads; `at` is a multiple of 16 numbers,
                // 32 bytes, to which quads are aligned.
                *row = unsafe {
                    let coefficients = _mm256_load_si256(quad.0.as_ptr().add(at).cast());
                    _mm256_mullo_epi16(coefficients, _mm256_load_si256(quantizers.0.as_ptr().add(at).cast()))
                };
            }
        }
        high = _mm256_or_si256(high, add16(rows[0], _mm256_set1_epi16(8192)));
        let pairs = if extent > CORNER_EXTENT { transform::<false>(rows) } else { transform::<true>(rows) };
        for (index, pair) in pairs.into_iter().enumerate() {
            let pair = _mm256_permute4x64_epi64::<0xD8>(pair);
            // SAFETY: rows 0 to 7 of 32 bytes lie within the target, as checked above.
            unsafe {
                let row = target.as_mut_ptr().add(2 * index * stride + half * 16);
                _mm_storeu_si128(row.cast(), _mm256_castsi256_si128(pair));
                _mm_storeu_si128(row.add(stride).cast(), _mm256_extracti128_si256::<1>(pair));
            }
        }
    }
    _mm256_testz_si256(high, _mm256_set1_epi16(0xC000u16 as i16)) != 0
}
