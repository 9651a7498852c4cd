//! The scalar definition, compiled for AVX-512; and by hand, for 8 bits, all four phases in one pass with what one phase needs
//! of another kept in registers.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi8, _mm512_alignr_epi8, _mm512_alignr_epi32, _mm512_avg_epu8, _mm512_gf2p8affine_epi64_epi8,
    _mm512_loadu_si512, _mm512_mask_mov_epi8, _mm512_max_epu8, _mm512_min_epu8, _mm512_permutexvar_epi8,
    _mm512_set1_epi8, _mm512_set1_epi64, _mm512_storeu_si512, _mm512_sub_epi8,
};

use super::{Activity, Part, scalar};
use crate::{
    header::Predictor,
    phases::{ORDER, Phases},
    sample::Sample,
    scratch::Rows,
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode<S: Sample>(part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    scalar::decode(part, residuals, rows);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode<S: Sample>(part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    scalar::encode(part, residuals, rows);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn tables<S: Sample>(part: Part<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    scalar::tables(part, activities, out, rows);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    scalar::low_tables(numbers, high, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Zigzag residuals to residuals. It is linear in the bits (each but the last is the next higher bit, exclusive-or the lowest),
/// so one matrix does it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn unzigzag(residuals: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(residuals, _mm512_set1_epi64(0x0305_0911_2141_8101))
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn top<const SHARP: bool>(top_left: __m512i, top: __m512i, top_right: __m512i) -> __m512i {
    if SHARP { top } else { _mm512_avg_epu8(_mm512_avg_epu8(top_left, top_right), top) }
}

/// From the interpolation in this row, the sample above, and the same interpolation above.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn between<const SHARP: bool>(middle: __m512i, top: __m512i, middle_above: __m512i) -> __m512i {
    let (low, high) = (_mm512_min_epu8(middle, top), _mm512_max_epu8(middle, top));
    let held = _mm512_min_epu8(_mm512_max_epu8(middle_above, low), high);
    let median = _mm512_sub_epi8(_mm512_add_epi8(middle, top), held);
    if SHARP { median } else { _mm512_avg_epu8(middle, median) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode_narrow(part: Part<'_>, residuals: &[Vec<u8>], rows: &mut Rows<u8>) {
    if part.first || part.phases != ORDER {
        scalar::decode(part, residuals, rows);
        return;
    }
    let channels = rows.current.iter_mut().zip(&rows.above).zip(residuals).take(part.channels);
    for ((current, above), residuals) in channels {
        match part.predictor {
            Predictor::Smooth => decode_row::<false>(part.counts, residuals, current, above),
            Predictor::Sharp => decode_row::<true>(part.counts, residuals, current, above),
        }
    }
}

/// All phases of a row that has a row above.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn decode_row<const SHARP: bool>(counts: &[usize; 4], residuals: &[u8], current: &mut Phases<u8>, above: &Phases<u8>) {
    let blocks = counts[0].div_ceil(64);
    // Where the residuals of each phase begin.
    let (residuals2, residuals1) = (counts[0], counts[0] + counts[2]);
    let residuals3 = residuals1 + counts[1];
    assert!(
        current.has_space(counts) && above.has_space(counts) && residuals.len() >= residuals3 + 64 * blocks,
        "rows have space for the width"
    );
    let (above, pitch) = above.start();
    let (out, out_pitch) = current.start_mut();
    let residuals = residuals.as_ptr();
    // Samples of the last block; beyond them phase 0 repeats its last sample.
    let last = counts[0] - (blocks - 1) * 64;
    let repeat = _mm512_min_epu8(load(&IOTA), _mm512_set1_epi8(last as i8 - 1));
    // Where phase 2 lacks its last sample, phase 0's stands in.
    let lacking = if counts[2] < counts[0] { 1u64 << (last - 1) } else { 0 };
    // SAFETY: `at` is at most 64 * (blocks - 1), and that the rows have space for that was just asserted; phases are in the order
    // 0, 2, 1, 3, and neighbors are at most one sample before or after.
    unsafe {
        let mut next = phase0::<SHARP>(above, pitch, residuals);
        for block in 0..blocks {
            let at = 64 * block;
            let is_last = block + 1 == blocks;
            let (above, out, residuals) = (above.add(at), out.add(at), residuals.add(at));
            let mut here = next;
            if is_last {
                here = _mm512_permutexvar_epi8(repeat, here);
                next = _mm512_permutexvar_epi8(_mm512_set1_epi8(63), here);
            } else {
                next = phase0::<SHARP>(above.add(64), pitch, residuals.add(64));
            }
            // The samples of phase 0 that follow these.
            let right = _mm512_alignr_epi8::<1>(_mm512_alignr_epi32::<4>(next, here), here);
            let (top0, top0_next, top2) = (read(above), read(above.add(1)), read(above.add(pitch)));
            let middle = between::<true>(_mm512_avg_epu8(here, right), top2, _mm512_avg_epu8(top0, top0_next));
            let middle = _mm512_add_epi8(middle, unzigzag(read(residuals.add(residuals2))));
            let middle = _mm512_mask_mov_epi8(middle, if is_last { lacking } else { 0 }, here);
            let (from_left, above_left) = (_mm512_avg_epu8(here, middle), _mm512_avg_epu8(top0, top2));
            let first = between::<SHARP>(from_left, read(above.add(2 * pitch)), above_left);
            let (from_right, above_right) = (_mm512_avg_epu8(middle, right), _mm512_avg_epu8(top2, top0_next));
            let third = between::<SHARP>(from_right, read(above.add(3 * pitch)), above_right);
            let first = _mm512_add_epi8(first, unzigzag(read(residuals.add(residuals1))));
            let third = _mm512_add_epi8(third, unzigzag(read(residuals.add(residuals3))));
            write(out, here);
            write(out.add(out_pitch), middle);
            write(out.add(2 * out_pitch), first);
            write(out.add(3 * out_pitch), third);
        }
    }
    for phase in ORDER {
        current.extend(phase, counts);
    }
}

/// 64 samples of phase 0.
///
/// # Safety
/// As in [`decode_row`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn phase0<const SHARP: bool>(above: *const u8, pitch: usize, residuals: *const u8) -> __m512i {
    // SAFETY: the caller's promise: phases 1 and 3 are the third and fourth.
    unsafe {
        let prediction = top::<SHARP>(read(above.add(3 * pitch).sub(1)), read(above), read(above.add(2 * pitch)));
        _mm512_add_epi8(prediction, unzigzag(read(residuals)))
    }
}

/// # Safety
/// 64 bytes must be readable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) unsafe fn read(bytes: *const u8) -> __m512i {
    // SAFETY: the caller's promise; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.cast()) }
}

/// # Safety
/// 64 bytes must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) unsafe fn write(bytes: *mut u8, value: __m512i) {
    // SAFETY: the caller's promise; the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.cast(), value) };
}

/// 0, 1, 2, ….
static IOTA: [u8; 64] = {
    let mut table = [0; 64];
    let mut index = 0;
    while index < 64 {
        table[index] = index as u8;
        index += 1;
    }
    table
};
