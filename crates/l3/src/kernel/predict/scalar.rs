//! The definition of prediction and activity.

use super::{ACTIVITY_UNKNOWN, Activity, Part, THRESHOLDS};
use crate::{
    header::Predictor,
    phases::{Neighbors, Phases, padded},
    sample::Sample,
    scratch::Rows,
};

/// Phase 0: from the row above alone.
#[inline(always)]
fn predict_top<S: Sample, const SHARP: bool>(top_left: S, top: S, top_right: S) -> S {
    if SHARP { top } else { top_left.average(top_right).average(top) }
}

/// Phases 1 to 3: between left and right, corrected by how the row above departs from the same interpolation.
#[inline(always)]
fn predict_between<S: Sample, const SHARP: bool>(left: S, right: S, top_left: S, top: S, top_right: S) -> S {
    let middle = left.average(right);
    let median = S::median(middle, top, top_left.average(top_right));
    if SHARP { median } else { middle.average(median) }
}

/// Calls `each(index, prediction)` for every sample of a phase but phase 0 of a first row.
#[inline(always)]
fn for_each_prediction<S: Sample, const SHARP: bool>(
    phase: usize,
    first: bool,
    count: usize,
    near: &Neighbors<'_, S>,
    mut each: impl FnMut(usize, S),
) {
    let (top_left, top, top_right) = (&near.top_left[..count], &near.top[..count], &near.top_right[..count]);
    if phase == 0 {
        for index in 0..count {
            each(index, predict_top::<S, SHARP>(top_left[index], top[index], top_right[index]));
        }
        return;
    }
    let (left, right) = (&near.left[..count], &near.right[..count]);
    if first {
        for index in 0..count {
            each(index, left[index].average(right[index]));
        }
    } else if phase == 2 {
        // The wider gap of phase 2 is crossed better without the smoothing.
        for index in 0..count {
            let sides = (left[index], right[index]);
            each(index, predict_between::<S, true>(sides.0, sides.1, top_left[index], top[index], top_right[index]));
        }
    } else {
        for index in 0..count {
            let sides = (left[index], right[index]);
            each(index, predict_between::<S, SHARP>(sides.0, sides.1, top_left[index], top[index], top_right[index]));
        }
    }
}

#[inline(always)]
pub(super) fn decode<S: Sample>(part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    // Phase by phase, and within it channel by channel: what a phase has stored is then far enough behind to be loaded again
    // at other offsets without waiting for it.
    let mut start = part.start;
    for &phase in part.phases {
        let channels = rows.current.iter_mut().zip(&rows.above).zip(residuals).take(part.channels);
        for ((current, above), residuals) in channels {
            decode_phase(part, phase, &residuals[start..], current, above);
        }
        start += part.counts[phase];
    }
}

#[inline(always)]
fn decode_phase<S: Sample>(part: Part<'_>, phase: usize, residuals: &[S], current: &mut Phases<S>, above: &Phases<S>) {
    let Part { counts, predictor, first, .. } = part;
    let count = padded(counts[phase]);
    if count > 0 {
        let residuals = &residuals[..count];
        let (out, near) = current.with_neighbors(phase, above, count);
        if phase == 0 && first {
            // The only case where a sample depends on the one before it: a quarter of one row of a strip.
            let mut previous = S::HALF;
            for (sample, residual) in out[..counts[0]].iter_mut().zip(residuals) {
                previous = previous.plus(residual.unzigzag());
                *sample = previous;
            }
        } else {
            let mut each = |index: usize, prediction: S| out[index] = prediction.plus(residuals[index].unzigzag());
            match predictor {
                Predictor::Smooth => for_each_prediction::<S, false>(phase, first, count, &near, &mut each),
                Predictor::Sharp => for_each_prediction::<S, true>(phase, first, count, &near, &mut each),
            }
        }
    }
    current.extend(phase, counts);
}

#[inline(always)]
pub(super) fn encode<S: Sample>(part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    for ((current, above), residuals) in rows.current.iter().zip(&rows.above).zip(residuals).take(part.channels) {
        let mut start = part.start;
        for &phase in part.phases {
            encode_phase(part, phase, &mut residuals[start..], current, above);
            start += part.counts[phase];
        }
    }
}

#[inline(always)]
fn encode_phase<S: Sample>(part: Part<'_>, phase: usize, residuals: &mut [S], current: &Phases<S>, above: &Phases<S>) {
    let Part { counts, predictor, first, .. } = part;
    let count = padded(counts[phase]);
    if count == 0 {
        return;
    }
    let residuals = &mut residuals[..count];
    let (samples, near) = current.and_neighbors(phase, above, count);
    if phase == 0 && first {
        let mut previous = S::HALF;
        for (residual, &sample) in residuals.iter_mut().zip(&samples[..counts[0]]) {
            *residual = sample.minus(previous).zigzag();
            previous = sample;
        }
        return;
    }
    let mut each = |index: usize, prediction: S| residuals[index] = samples[index].minus(prediction).zigzag();
    match predictor {
        Predictor::Smooth => for_each_prediction::<S, false>(phase, first, count, &near, &mut each),
        Predictor::Sharp => for_each_prediction::<S, true>(phase, first, count, &near, &mut each),
    }
}

/// The table of an activity: the sum of the steps between the tables of the levels that it reaches.
#[inline(always)]
fn table(activity: u8, first: u8, steps: [u8; 7]) -> u8 {
    table_at(activity, first, steps, THRESHOLDS)
}

/// The same with other thresholds. Written out, since the compiler turns a loop over the levels into no vectors.
#[inline(always)]
fn table_at(activity: u8, first: u8, steps: [u8; 7], thresholds: [u8; 7]) -> u8 {
    first
        .wrapping_add(step_at(activity, thresholds[0], steps[0]))
        .wrapping_add(step_at(activity, thresholds[1], steps[1]))
        .wrapping_add(step_at(activity, thresholds[2], steps[2]))
        .wrapping_add(step_at(activity, thresholds[3], steps[3]))
        .wrapping_add(step_at(activity, thresholds[4], steps[4]))
        .wrapping_add(step_at(activity, thresholds[5], steps[5]))
        .wrapping_add(step_at(activity, thresholds[6], steps[6]))
}

/// The step, if the activity reaches the threshold.
#[inline(always)]
fn step_at(activity: u8, threshold: u8, step: u8) -> u8 {
    u8::from(activity >= threshold).wrapping_neg() & step
}

#[inline(always)]
pub(super) fn tables<S: Sample>(part: Part<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    let channels = rows.current.iter().zip(&rows.above).zip(out).zip(activities).take(part.channels);
    for (((current, above), out), activity) in channels {
        let mut start = part.start;
        for &phase in part.phases {
            tables_of_phase(part, phase, activity, &mut out[start..], current, above);
            start += part.counts[phase];
        }
    }
}

/// From the table of each level to that of the next.
#[inline(always)]
fn steps(numbers: [u8; 8]) -> [u8; 7] {
    std::array::from_fn(|level| numbers[level + 1].wrapping_sub(numbers[level]))
}

#[inline(always)]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    let steps = steps(numbers);
    for (table, &high) in out.iter_mut().zip(high) {
        *table = table_at(high, numbers[0], steps, [1, 2, 3, 4, 5, 6, 7]);
    }
}

#[inline(always)]
fn tables_of_phase<S: Sample>(
    part: Part<'_>,
    phase: usize,
    activity: &Activity,
    out: &mut [u8],
    current: &Phases<S>,
    above: &Phases<S>,
) {
    let (base, steps) = (activity.tables[0], steps(activity.tables));
    for_each_activity(part, phase, activity.shift, out, (current, above), |activity| table(activity, base, steps));
}

/// Writes what `each` makes of the activity of every sample of a phase, and of those up to a whole vector beyond it.
#[inline(always)]
pub(super) fn for_each_activity<S: Sample>(
    part: Part<'_>,
    phase: usize,
    shift: u32,
    out: &mut [u8],
    (current, above): (&Phases<S>, &Phases<S>),
    each: impl Fn(u8) -> u8,
) {
    let Part { counts, first, .. } = part;
    let count = padded(counts[phase]);
    let out = &mut out[..count];
    if phase == 0 && first {
        out.fill(each(ACTIVITY_UNKNOWN));
        return;
    }
    let (_, near) = current.and_neighbors(phase, above, count);
    let (top_left, top, top_right) = (&near.top_left[..count], &near.top[..count], &near.top_right[..count]);
    if phase == 0 {
        for index in 0..count {
            let here = top[index];
            let sum = here.distance(top_left[index]).plus_saturating(here.distance(top_right[index]));
            out[index] = each(sum.activity(shift));
        }
        return;
    }
    let (left, right) = (&near.left[..count], &near.right[..count]);
    if first {
        for index in 0..count {
            out[index] = each(left[index].distance(right[index]).activity(shift));
        }
        return;
    }
    for index in 0..count {
        let (middle, middle_above) = (left[index].average(right[index]), top_left[index].average(top_right[index]));
        let sum = left[index]
            .distance(right[index])
            .average(middle.distance(middle_above))
            .plus_saturating(top[index].distance(middle_above));
        out[index] = each(sum.activity(shift));
    }
}
