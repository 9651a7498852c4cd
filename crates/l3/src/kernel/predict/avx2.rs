//! The scalar definition, compiled for AVX2; and by hand, the tables of activities by shuffles, and for 8 bits all four phases in one
//! pass with what one phase needs of another kept in registers.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_alignr_epi8, _mm256_and_si256, _mm256_avg_epu8, _mm256_blendv_epi8,
    _mm256_loadu_si256, _mm256_max_epu8, _mm256_min_epu8, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi8,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_sign_epi8, _mm256_slli_epi16,
    _mm256_srli_epi16, _mm256_storeu_si256, _mm256_sub_epi8,
};

use super::{Activity, Part, THRESHOLDS, scalar};
use crate::{
    header::Predictor,
    phases::{ORDER, Phases, padded},
    sample::Sample,
    scratch::Rows,
};

/// Samples in a vector.
const LANES: usize = 32;

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode<S: Sample>(part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    scalar::decode(part, residuals, rows);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode<S: Sample>(part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    scalar::encode(part, residuals, rows);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn tables<S: Sample>(part: Part<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    let channels = rows.current.iter().zip(&rows.above).zip(out).zip(activities).take(part.channels);
    for (((current, above), out), activity) in channels {
        let mut start = part.start;
        for &phase in part.phases {
            // First the activities, then their tables, by shuffles: the compiler would add up the steps from level to level.
            let out = &mut out[start..start + padded(part.counts[phase])];
            scalar::for_each_activity(part, phase, activity.shift, out, (current, above), |activity| activity);
            for vector in out.as_chunks_mut::<LANES>().0 {
                // SAFETY: the reference is to 32 bytes.
                unsafe { write(vector.as_mut_ptr(), look_up(activity.tables, level(read(vector.as_ptr())))) };
            }
            start += part.counts[phase];
        }
    }
}

/// Of eight numbers, those that bytes below eight stand for.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn look_up(numbers: [u8; 8], bytes: __m256i) -> __m256i {
    _mm256_shuffle_epi8(_mm256_set1_epi64x(u64::from_le_bytes(numbers).cast_signed()), bytes)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    let count = out.len().min(high.len());
    let (vectors, rest) = high[..count].as_chunks::<LANES>();
    let (out, rest_out) = out[..count].as_chunks_mut::<LANES>();
    for (high, out) in vectors.iter().zip(out) {
        // SAFETY: both references are to 32 bytes.
        unsafe {
            let level = _mm256_min_epu8(read(high.as_ptr()), _mm256_set1_epi8(7));
            write(out.as_mut_ptr(), look_up(numbers, level));
        }
    }
    scalar::low_tables(numbers, rest, rest_out);
}

/// The level of each activity.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn level(activity: __m256i) -> __m256i {
    // SAFETY: the tables have 32 bytes.
    let (fine, coarse) = unsafe { (read(FINE.as_ptr()), read(COARSE.as_ptr())) };
    let below_16 = _mm256_min_epu8(activity, _mm256_set1_epi8(15));
    let quarter = _mm256_srli_epi16::<2>(_mm256_min_epu8(activity, _mm256_set1_epi8(63)));
    let quarter = _mm256_and_si256(quarter, _mm256_set1_epi8(15));
    _mm256_max_epu8(_mm256_shuffle_epi8(fine, below_16), _mm256_shuffle_epi8(coarse, quarter))
}

/// The levels of activities 0 to 15, twice.
static FINE: [u8; 32] = levels(1);
/// The levels of activities 0, 4, … 60, twice: what they are up to 15 is below that of every activity in between.
static COARSE: [u8; 32] = levels(4);

const fn levels(step: usize) -> [u8; 32] {
    let mut levels = [0; 32];
    let mut at = 0;
    while at < 32 {
        while levels[at] < 7 && at % 16 * step >= THRESHOLDS[levels[at] as usize] as usize {
            levels[at] += 1;
        }
        at += 1;
    }
    levels
}

/// Zigzag residuals to residuals: half of each, rounded up, and the opposite of that where it was odd.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn unzigzag(residuals: __m256i) -> __m256i {
    let half = _mm256_avg_epu8(residuals, _mm256_setzero_si256());
    // The lowest bit of each byte becomes its sign; that of its neighbor, which comes in below, does not matter. No byte is 0.
    let sign = _mm256_or_si256(_mm256_slli_epi16::<7>(residuals), _mm256_set1_epi8(1));
    _mm256_sign_epi8(half, sign)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn top<const SHARP: bool>(top_left: __m256i, top: __m256i, top_right: __m256i) -> __m256i {
    if SHARP { top } else { _mm256_avg_epu8(_mm256_avg_epu8(top_left, top_right), top) }
}

/// From the interpolation in this row, the sample above, and the same interpolation above.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) fn between<const SHARP: bool>(middle: __m256i, top: __m256i, middle_above: __m256i) -> __m256i {
    let (low, high) = (_mm256_min_epu8(middle, top), _mm256_max_epu8(middle, top));
    let held = _mm256_min_epu8(_mm256_max_epu8(middle_above, low), high);
    let median = _mm256_sub_epi8(_mm256_add_epi8(middle, top), held);
    if SHARP { median } else { _mm256_avg_epu8(middle, median) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn decode_row<const SHARP: bool>(counts: &[usize; 4], residuals: &[u8], current: &mut Phases<u8>, above: &Phases<u8>) {
    let blocks = counts[0].div_ceil(LANES);
    // Where the residuals of each phase begin.
    let (residuals2, residuals1) = (counts[0], counts[0] + counts[2]);
    let residuals3 = residuals1 + counts[1];
    assert!(
        current.has_space(counts) && above.has_space(counts) && residuals.len() >= residuals3 + LANES * blocks,
        "rows have space for the width"
    );
    let (above, pitch) = above.start();
    let (out, out_pitch) = current.start_mut();
    let residuals = residuals.as_ptr();
    // Samples of the last block; beyond them phase 0 repeats its last sample.
    let last = counts[0] - (blocks - 1) * LANES;
    // Where phase 2 lacks its last sample, phase 0's stands in.
    let lacking = if counts[2] < counts[0] { lane(last - 1) } else { _mm256_setzero_si256() };
    // SAFETY: `at` is at most 32 * (blocks - 1), and that the rows have space for that was just asserted; phases are in the order
    // 0, 2, 1, 3, and neighbors are at most one sample before or after.
    unsafe {
        let mut next = phase0::<SHARP>(above, pitch, residuals);
        for block in 0..blocks {
            let at = LANES * block;
            let is_last = block + 1 == blocks;
            let (above, out, residuals) = (above.add(at), out.add(at), residuals.add(at));
            let mut here = next;
            if is_last {
                (here, next) = repeat_last(here, last);
            } else {
                next = phase0::<SHARP>(above.add(LANES), pitch, residuals.add(LANES));
            }
            // The samples of phase 0 that follow these.
            let right = _mm256_alignr_epi8::<1>(_mm256_permute2x128_si256::<0x21>(here, next), here);
            let (top0, top0_next, top2) = (read(above), read(above.add(1)), read(above.add(pitch)));
            let middle = between::<true>(_mm256_avg_epu8(here, right), top2, _mm256_avg_epu8(top0, top0_next));
            let mut middle = _mm256_add_epi8(middle, unzigzag(read(residuals.add(residuals2))));
            if is_last {
                middle = _mm256_blendv_epi8(middle, here, lacking);
            }
            let (from_left, above_left) = (_mm256_avg_epu8(here, middle), _mm256_avg_epu8(top0, top2));
            let first = between::<SHARP>(from_left, read(above.add(2 * pitch)), above_left);
            let (from_right, above_right) = (_mm256_avg_epu8(middle, right), _mm256_avg_epu8(top2, top0_next));
            let third = between::<SHARP>(from_right, read(above.add(3 * pitch)), above_right);
            let first = _mm256_add_epi8(first, unzigzag(read(residuals.add(residuals1))));
            let third = _mm256_add_epi8(third, unzigzag(read(residuals.add(residuals3))));
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

/// 32 samples of phase 0.
///
/// # Safety
/// As in [`decode_row`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn phase0<const SHARP: bool>(above: *const u8, pitch: usize, residuals: *const u8) -> __m256i {
    // SAFETY: the caller's promise: phases 1 and 3 are the third and fourth.
    unsafe {
        let prediction = top::<SHARP>(read(above.add(3 * pitch).sub(1)), read(above), read(above.add(2 * pitch)));
        _mm256_add_epi8(prediction, unzigzag(read(residuals)))
    }
}

/// The first `count` samples followed by copies of the last of them, and a vector of such copies.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn repeat_last(samples: __m256i, count: usize) -> (__m256i, __m256i) {
    let mut bytes = [0u8; LANES];
    // SAFETY: the array has 32 bytes.
    unsafe { write(bytes.as_mut_ptr(), samples) };
    let last = _mm256_set1_epi8(bytes[count - 1].cast_signed());
    // SAFETY: 32 bytes are there from any place up to the 32nd.
    let beyond = unsafe { read(BEYOND.as_ptr().add(LANES - count.min(LANES))) };
    (_mm256_blendv_epi8(samples, last, beyond), last)
}

/// 32 zeros and 32 times all ones.
static BEYOND: [u8; 2 * LANES] = {
    let mut bytes = [0; 2 * LANES];
    let mut at = LANES;
    while at < 2 * LANES {
        bytes[at] = 0xFF;
        at += 1;
    }
    bytes
};

/// All ones in one lane.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn lane(index: usize) -> __m256i {
    let mut bytes = [0u8; LANES];
    bytes[index] = 0xFF;
    // SAFETY: the array has 32 bytes.
    unsafe { read(bytes.as_ptr()) }
}

/// # Safety
/// 32 bytes must be readable.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) unsafe fn read(bytes: *const u8) -> __m256i {
    // SAFETY: the caller's promise; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.cast()) }
}

/// # Safety
/// 32 bytes must be writable.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(in crate::kernel) unsafe fn write(bytes: *mut u8, value: __m256i) {
    // SAFETY: the caller's promise; the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.cast(), value) };
}
