//! The scalar definition, compiled for NEON; and by hand, all four phases in one pass with what one phase needs of another kept in
//! registers, the same code for both depths, and the tables of activities by one lookup.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, vabdq_u8, vdupq_n_u8, vld1q_u8, vminq_u8, vqaddq_u8, vqtbl1q_u8, vqtbl4q_u8, vrhaddq_u8,
    vst1q_u8,
};

use super::{Activity, Part, THRESHOLDS, scalar};
use crate::{
    header::Predictor,
    phases::{Neighbors, padded},
    sample::Sample,
    scratch::Rows,
};

pub(super) use narrow::decode as decode_narrow;
pub(in crate::kernel) use narrow::unzigzag;
use narrow::{between, top};
pub(super) use wide::decode as decode_wide;

/// Bytes in a vector.
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
    let channels = rows.current.iter().zip(&rows.above).zip(out).zip(activities).take(part.channels);
    for (((current, above), out), activity) in channels {
        let numbers = numbers(activity.tables);
        let mut start = part.start;
        for &phase in part.phases {
            // First the activities, then their tables, by lookups: the compiler would add up the steps from level to level.
            let out = &mut out[start..start + padded(part.counts[phase])];
            scalar::for_each_activity(part, phase, activity.shift, out, (current, above), |activity| activity);
            for vector in out.as_chunks_mut().0 {
                store(vector, look_up(numbers, load(vector)));
            }
            start += part.counts[phase];
        }
    }
}

#[target_feature(enable = "neon")]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    let count = out.len().min(high.len());
    let (vectors, rest) = high[..count].as_chunks();
    let (out, rest_out) = out[..count].as_chunks_mut();
    let table = eight(numbers);
    for (high, out) in vectors.iter().zip(out) {
        store(out, vqtbl1q_u8(table, vminq_u8(load(high), vdupq_n_u8(7))));
    }
    scalar::low_tables(numbers, rest, rest_out);
}

/// Eight numbers to look up in.
#[target_feature(enable = "neon")]
#[inline]
fn eight(numbers: [u8; 8]) -> uint8x16_t {
    let mut vector = [0; LANES];
    vector[..8].copy_from_slice(&numbers);
    load(&vector)
}

/// Defines prediction, and the decoding of whole rows, for the vectors and operations that the module around it names.
macro_rules! rows {
    () => {
        use super::super::{Part, scalar};
        use crate::{
            header::Predictor,
            phases::{ORDER, Phases},
            scratch::Rows,
        };

        /// Samples in a vector.
        const LANES: usize = 16 / size_of::<Sample>();

        /// Zigzag residuals to residuals: half of each, inverted where it was odd.
        #[target_feature(enable = "neon")]
        #[inline]
        pub(in crate::kernel) fn unzigzag(residuals: Vector) -> Vector {
            xor(shifted_right::<1>(residuals), test(residuals, all(1)))
        }

        #[target_feature(enable = "neon")]
        #[inline]
        pub(super) fn top<const SHARP: bool>(top_left: Vector, top: Vector, top_right: Vector) -> Vector {
            if SHARP { top } else { average(average(top_left, top_right), top) }
        }

        /// From the interpolation in this row, the sample above, and the same interpolation above.
        #[target_feature(enable = "neon")]
        #[inline]
        pub(super) fn between<const SHARP: bool>(middle: Vector, top: Vector, middle_above: Vector) -> Vector {
            let (low, high) = (min(middle, top), max(middle, top));
            let held = min(max(middle_above, low), high);
            let median = sub(add(middle, top), held);
            if SHARP { median } else { average(middle, median) }
        }

        #[target_feature(enable = "neon")]
        pub(in crate::kernel) fn decode(part: Part<'_>, residuals: &[Vec<Sample>], rows: &mut Rows<Sample>) {
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
        fn decode_row<const SHARP: bool>(
            counts: &[usize; 4],
            residuals: &[Sample],
            current: &mut Phases<Sample>,
            above: &Phases<Sample>,
        ) {
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
            let lacking = if counts[2] < counts[0] { lane(last - 1) } else { all(0) };
            // SAFETY: `at` is at most a vector less than `blocks` of them, and that the rows have space for that was just asserted;
            // phases are in the order 0, 2, 1, 3, and neighbors are at most one sample before or after.
            unsafe {
                let above = [above, above.add(pitch), above.add(2 * pitch), above.add(3 * pitch)];
                let out = [out, out.add(out_pitch), out.add(2 * out_pitch), out.add(3 * out_pitch)];
                let residuals =
                    [residuals, residuals.add(residuals2), residuals.add(residuals1), residuals.add(residuals3)];
                let mut here = phase0::<SHARP>(above, residuals, 0);
                let end = LANES * (blocks - 1);
                for at in (0..end).step_by(LANES) {
                    let next = phase0::<SHARP>(above, residuals, at + LANES);
                    decode_block::<SHARP>(above, residuals, out, at, [here, following::<1>(here, next)], all(0));
                    here = next;
                }
                let (here, next) = repeat_last(here, last);
                decode_block::<SHARP>(above, residuals, out, end, [here, following::<1>(here, next)], lacking);
            }
            for phase in ORDER {
                current.extend(phase, counts);
            }
        }

        /// A vector of each phase from `at`, given those of phase 0 and the ones that follow them. Rows are given phase by phase, in coding
        /// order; phase 0 stands in for what phase 2 lacks.
        ///
        /// # Safety
        /// As in [`decode_row`].
        #[target_feature(enable = "neon")]
        #[inline]
        unsafe fn decode_block<const SHARP: bool>(
            above: [*const Sample; 4],
            residuals: [*const Sample; 4],
            out: [*mut Sample; 4],
            at: usize,
            [here, right]: [Vector; 2],
            lacking: Vector,
        ) {
            // SAFETY: the caller's promise.
            unsafe {
                let (top0, top0_next) = (load(above[0].add(at)), load(above[0].add(at + 1)));
                let (top2, top1, top3) = (load(above[1].add(at)), load(above[2].add(at)), load(above[3].add(at)));
                let middle = between::<true>(average(here, right), top2, average(top0, top0_next));
                let middle = add(middle, unzigzag(load(residuals[1].add(at))));
                let middle = select(lacking, here, middle);
                let first = between::<SHARP>(average(here, middle), top1, average(top0, top2));
                let third = between::<SHARP>(average(middle, right), top3, average(top2, top0_next));
                store(out[0].add(at), here);
                store(out[1].add(at), middle);
                store(out[2].add(at), add(first, unzigzag(load(residuals[2].add(at)))));
                store(out[3].add(at), add(third, unzigzag(load(residuals[3].add(at)))));
            }
        }

        /// A vector of phase 0 from `at`.
        ///
        /// # Safety
        /// As in [`decode_row`].
        #[target_feature(enable = "neon")]
        #[inline]
        unsafe fn phase0<const SHARP: bool>(
            above: [*const Sample; 4],
            residuals: [*const Sample; 4],
            at: usize,
        ) -> Vector {
            // SAFETY: the caller's promise: phases 1 and 3 are the third and fourth.
            unsafe {
                let (left, right) = (load(above[3].add(at).sub(1)), load(above[2].add(at)));
                let prediction = top::<SHARP>(left, load(above[0].add(at)), right);
                add(prediction, unzigzag(load(residuals[0].add(at))))
            }
        }

        /// The first `count` samples followed by copies of the last of them, and a vector of such copies.
        #[target_feature(enable = "neon")]
        #[inline]
        fn repeat_last(samples: Vector, count: usize) -> (Vector, Vector) {
            let mut lanes = [0; LANES];
            // SAFETY: the array is as long as a vector.
            unsafe { store(lanes.as_mut_ptr(), samples) };
            let last = lanes[count - 1];
            lanes[count..].fill(last);
            // SAFETY: the array is as long as a vector.
            (unsafe { load(lanes.as_ptr()) }, all(last))
        }

        /// All ones in one lane.
        #[target_feature(enable = "neon")]
        #[inline]
        fn lane(index: usize) -> Vector {
            let mut lanes = [0; LANES];
            lanes[index] = Sample::MAX;
            // SAFETY: the array is as long as a vector.
            unsafe { load(lanes.as_ptr()) }
        }
    };
}

/// Samples of 8 bits.
pub(in crate::kernel) mod narrow {
    use std::arch::aarch64::{
        uint8x16_t as Vector, vaddq_u8 as add, vbslq_u8 as select, vdupq_n_u8 as all, veorq_u8 as xor,
        vextq_u8 as following, vld1q_u8 as load, vmaxq_u8 as max, vminq_u8 as min, vrhaddq_u8 as average,
        vshrq_n_u8 as shifted_right, vst1q_u8 as store, vsubq_u8 as sub, vtstq_u8 as test,
    };

    type Sample = u8;

    rows!();
}

/// Samples of 16 bits.
pub(in crate::kernel) mod wide {
    use std::arch::aarch64::{
        uint16x8_t as Vector, vaddq_u16 as add, vbslq_u16 as select, vdupq_n_u16 as all, veorq_u16 as xor,
        vextq_u16 as following, vld1q_u16 as load, vmaxq_u16 as max, vminq_u16 as min, vrhaddq_u16 as average,
        vshrq_n_u16 as shifted_right, vst1q_u16 as store, vsubq_u16 as sub, vtstq_u16 as test,
    };

    type Sample = u16;

    rows!();
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
    let (numbers, levels) = (eight(tables), LEVELS.as_chunks().0);
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

#[target_feature(enable = "neon")]
#[inline]
fn store(bytes: &mut [u8; LANES], vector: uint8x16_t) {
    // SAFETY: the reference is to 16 writable bytes.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) };
}
