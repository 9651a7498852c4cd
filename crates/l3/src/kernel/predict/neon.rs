//! The scalar definition, compiled for NEON; and by hand, for 8 bits, all four phases in one pass with what one phase needs of another
//! kept in registers, and the tables of activities by one lookup.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, vabdq_u8, vaddq_u8, vbslq_u8, vdupq_n_u8, veorq_u8, vextq_u8, vld1q_u8, vmaxq_u8,
    vminq_u8, vqaddq_u8, vqtbl1q_u8, vqtbl4q_u8, vrhaddq_u8, vshrq_n_u8, vst1q_u8, vsubq_u8, vtstq_u8,
};

use super::{Activity, Part, THRESHOLDS, scalar};
use crate::{
    header::Predictor,
    phases::{Neighbors, ORDER, Phases, padded},
    sample::Sample,
    scratch::Rows,
};

/// Samples in a vector.
const LANES: usize = 16;

#[target_feature(enable = "neon")]
pub(super) fn decode<S: Sample>(part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    scalar::decode(part, residuals, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn encode<S: Sample>(part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    scalar::encode(part, residuals, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn tables<S: Sample>(part: Part<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    scalar::tables(part, activities, out, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    scalar::low_tables(numbers, high, out);
}

/// Zigzag residuals to residuals: half of each, inverted where it was odd.
#[target_feature(enable = "neon")]
#[inline]
pub(in crate::kernel) fn unzigzag(residuals: uint8x16_t) -> uint8x16_t {
    veorq_u8(vshrq_n_u8::<1>(residuals), vtstq_u8(residuals, vdupq_n_u8(1)))
}

#[target_feature(enable = "neon")]
#[inline]
fn top<const SHARP: bool>(top_left: uint8x16_t, top: uint8x16_t, top_right: uint8x16_t) -> uint8x16_t {
    if SHARP { top } else { vrhaddq_u8(vrhaddq_u8(top_left, top_right), top) }
}

/// From the interpolation in this row, the sample above, and the same interpolation above.
#[target_feature(enable = "neon")]
#[inline]
fn between<const SHARP: bool>(middle: uint8x16_t, top: uint8x16_t, middle_above: uint8x16_t) -> uint8x16_t {
    let (low, high) = (vminq_u8(middle, top), vmaxq_u8(middle, top));
    let held = vminq_u8(vmaxq_u8(middle_above, low), high);
    let median = vsubq_u8(vaddq_u8(middle, top), held);
    if SHARP { median } else { vrhaddq_u8(middle, median) }
}

#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
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
    let lacking = if counts[2] < counts[0] { lane(last - 1) } else { vdupq_n_u8(0) };
    // SAFETY: `at` is at most 16 * (blocks - 1), and that the rows have space for that was just asserted; phases are in the order
    // 0, 2, 1, 3, and neighbors are at most one sample before or after.
    unsafe {
        let above = [above, above.add(pitch), above.add(2 * pitch), above.add(3 * pitch)];
        let out = [out, out.add(out_pitch), out.add(2 * out_pitch), out.add(3 * out_pitch)];
        let residuals = [residuals, residuals.add(residuals2), residuals.add(residuals1), residuals.add(residuals3)];
        let mut here = phase0::<SHARP>(above, residuals, 0);
        let end = LANES * (blocks - 1);
        for at in (0..end).step_by(LANES) {
            let next = phase0::<SHARP>(above, residuals, at + LANES);
            decode_block::<SHARP>(above, residuals, out, at, [here, vextq_u8::<1>(here, next)], vdupq_n_u8(0));
            here = next;
        }
        let (here, next) = repeat_last(here, last);
        decode_block::<SHARP>(above, residuals, out, end, [here, vextq_u8::<1>(here, next)], lacking);
    }
    for phase in ORDER {
        current.extend(phase, counts);
    }
}

/// 16 samples of each phase from `at`, given those of phase 0 and the ones that follow them. Rows are given phase by phase, in coding
/// order; phase 0 stands in for what phase 2 lacks.
///
/// # Safety
/// As in [`decode_row`].
#[target_feature(enable = "neon")]
#[inline]
unsafe fn decode_block<const SHARP: bool>(
    above: [*const u8; 4],
    residuals: [*const u8; 4],
    out: [*mut u8; 4],
    at: usize,
    [here, right]: [uint8x16_t; 2],
    lacking: uint8x16_t,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let (top0, top0_next) = (vld1q_u8(above[0].add(at)), vld1q_u8(above[0].add(at + 1)));
        let (top2, top1, top3) = (vld1q_u8(above[1].add(at)), vld1q_u8(above[2].add(at)), vld1q_u8(above[3].add(at)));
        let middle = between::<true>(vrhaddq_u8(here, right), top2, vrhaddq_u8(top0, top0_next));
        let middle = vaddq_u8(middle, unzigzag(vld1q_u8(residuals[1].add(at))));
        let middle = vbslq_u8(lacking, here, middle);
        let first = between::<SHARP>(vrhaddq_u8(here, middle), top1, vrhaddq_u8(top0, top2));
        let third = between::<SHARP>(vrhaddq_u8(middle, right), top3, vrhaddq_u8(top2, top0_next));
        vst1q_u8(out[0].add(at), here);
        vst1q_u8(out[1].add(at), middle);
        vst1q_u8(out[2].add(at), vaddq_u8(first, unzigzag(vld1q_u8(residuals[2].add(at)))));
        vst1q_u8(out[3].add(at), vaddq_u8(third, unzigzag(vld1q_u8(residuals[3].add(at)))));
    }
}

/// 16 samples of phase 0 from `at`.
///
/// # Safety
/// As in [`decode_row`].
#[target_feature(enable = "neon")]
#[inline]
unsafe fn phase0<const SHARP: bool>(above: [*const u8; 4], residuals: [*const u8; 4], at: usize) -> uint8x16_t {
    // SAFETY: the caller's promise: phases 1 and 3 are the third and fourth.
    unsafe {
        let (left, right) = (vld1q_u8(above[3].add(at).sub(1)), vld1q_u8(above[2].add(at)));
        let prediction = top::<SHARP>(left, vld1q_u8(above[0].add(at)), right);
        vaddq_u8(prediction, unzigzag(vld1q_u8(residuals[0].add(at))))
    }
}

/// The first `count` samples followed by copies of the last of them, and a vector of such copies.
#[target_feature(enable = "neon")]
#[inline]
fn repeat_last(samples: uint8x16_t, count: usize) -> (uint8x16_t, uint8x16_t) {
    let mut bytes = [0u8; LANES];
    // SAFETY: the array has 16 bytes.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), samples) };
    let last = bytes[count - 1];
    bytes[count..].fill(last);
    // SAFETY: the array has 16 bytes.
    (unsafe { vld1q_u8(bytes.as_ptr()) }, vdupq_n_u8(last))
}

/// All ones in one lane.
#[target_feature(enable = "neon")]
#[inline]
fn lane(index: usize) -> uint8x16_t {
    let mut bytes = [0u8; LANES];
    bytes[index] = 0xFF;
    // SAFETY: the array has 16 bytes.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// The level of each activity below 64, from which on all have the last.
static LEVELS: [u8; 64] = {
    let mut levels = [0; 64];
    let mut at = 0;
    while at < 64 {
        while levels[at] < 7 && at >= THRESHOLDS[levels[at] as usize] as usize {
            levels[at] += 1;
        }
        at += 1;
    }
    levels
};

/// For phases that do not depend on each other, of a row that has a row above: the tables of all samples, written from `part.start`, and
/// the predictions, in the place of the samples.
#[target_feature(enable = "neon")]
pub(in crate::kernel) fn prepare(
    part: Part<'_>,
    activities: &[Activity; 4],
    tables: &mut [Vec<u8>],
    rows: &mut Rows<u8>,
) {
    let channels = rows.current.iter_mut().zip(&rows.above).zip(tables).zip(activities).take(part.channels);
    for (((current, above), tables), activity) in channels {
        let numbers = numbers(activity.tables);
        let mut start = part.start;
        for &phase in part.phases {
            let count = padded(part.counts[phase]);
            let (samples, near) = current.with_neighbors(phase, above, count);
            let tables = &mut tables[start..start + count];
            match (phase, part.predictor) {
                (0, Predictor::Smooth) => prepare_top::<false>(numbers, &near, samples, tables),
                (0, Predictor::Sharp) => prepare_top::<true>(numbers, &near, samples, tables),
                (1 | 3, Predictor::Smooth) => prepare_between::<false>(numbers, &near, samples, tables),
                _ => prepare_between::<true>(numbers, &near, samples, tables),
            }
            start += part.counts[phase];
        }
    }
}

/// The table of each activity below 64.
#[target_feature(enable = "neon")]
#[inline]
fn numbers(tables: [u8; 8]) -> uint8x16x4_t {
    let mut numbers = [0; LANES];
    numbers[..8].copy_from_slice(&tables);
    let (numbers, levels) = (load(&numbers), LEVELS.as_chunks().0);
    let look_up = |levels: &[u8; LANES]| vqtbl1q_u8(numbers, load(levels));
    uint8x16x4_t(look_up(&levels[0]), look_up(&levels[1]), look_up(&levels[2]), look_up(&levels[3]))
}

#[target_feature(enable = "neon")]
#[inline]
fn prepare_top<const SHARP: bool>(
    numbers: uint8x16x4_t,
    near: &Neighbors<'_, u8>,
    samples: &mut [u8],
    tables: &mut [u8],
) {
    let rows = [near.top, near.top_left, near.top_right];
    let (samples, tables, count) = begin(&rows, samples, tables);
    for at in (0..count).step_by(LANES) {
        // SAFETY: all rows have as many bytes, a multiple of 16.
        unsafe {
            let [here, left, right] = rows.map(|row| vld1q_u8(row.as_ptr().add(at)));
            vst1q_u8(samples.add(at), top::<SHARP>(left, here, right));
            let activity = vqaddq_u8(vabdq_u8(here, left), vabdq_u8(here, right));
            vst1q_u8(tables.add(at), look_up(numbers, activity));
        }
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn prepare_between<const SHARP: bool>(
    numbers: uint8x16x4_t,
    near: &Neighbors<'_, u8>,
    samples: &mut [u8],
    tables: &mut [u8],
) {
    let rows = [near.top, near.top_left, near.top_right, near.left, near.right];
    let (samples, tables, count) = begin(&rows, samples, tables);
    for at in (0..count).step_by(LANES) {
        // SAFETY: all rows have as many bytes, a multiple of 16.
        unsafe {
            let [here, top_left, top_right, left, right] = rows.map(|row| vld1q_u8(row.as_ptr().add(at)));
            let (middle, middle_above) = (vrhaddq_u8(left, right), vrhaddq_u8(top_left, top_right));
            vst1q_u8(samples.add(at), between::<SHARP>(middle, here, middle_above));
            let activity = vrhaddq_u8(vabdq_u8(left, right), vabdq_u8(middle, middle_above));
            let activity = vqaddq_u8(activity, vabdq_u8(here, middle_above));
            vst1q_u8(tables.add(at), look_up(numbers, activity));
        }
    }
}

/// Where samples and tables begin, and their count, which is a multiple of 16 and that of all rows.
#[inline(always)]
fn begin(rows: &[&[u8]], samples: &mut [u8], tables: &mut [u8]) -> (*mut u8, *mut u8, usize) {
    let count = samples.len();
    assert!(
        count.is_multiple_of(LANES) && tables.len() == count && rows.iter().all(|row| row.len() == count),
        "rows are as long as each other"
    );
    (samples.as_mut_ptr(), tables.as_mut_ptr(), count)
}

#[target_feature(enable = "neon")]
#[inline]
fn look_up(numbers: uint8x16x4_t, activity: uint8x16_t) -> uint8x16_t {
    vqtbl4q_u8(numbers, vminq_u8(activity, vdupq_n_u8(63)))
}

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[u8; LANES]) -> uint8x16_t {
    // SAFETY: the reference is to 16 readable bytes.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}
