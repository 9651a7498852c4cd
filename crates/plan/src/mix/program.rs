//! The linear program that finds the best shares.
//!
//! Of the shares `x` it minimizes `t`, the seconds that a sample takes:
//!
//! ```text
//! c·x / cores <= t,  read(b·x) / bandwidth <= t,  1 / trainer <= t,  sum of x = 1,  b·x <= capacity,  lossy·x <= most
//! read(b) = b (1 - h) = b - M b / (N (b + e)), or 0 where all stay in memory
//! ```
//!
//! `read` is linear but for `e`, what a sample in memory takes in addition to its own bytes. It is convex, so a tangent is below it, and the program with the tangent is at
//! least as fast as any mix. It is solved with the tangent at the average of the solution before, until the mix that it finds is as fast as it says: a few
//! times, as in Newton's method.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

use super::{MixFormat, MixLimits, capacity_per_sample, mean_bytes, rates};
use crate::cache::STORED_ENTRY_BYTES;
use crate::error::{Error, Result};

/// A mix that is slower than the program says by no more than this is the best one: the solver is not more precise.
const AGREES: f64 = 1e-7;

/// It is solved no more often than this.
const STEPS_MAX: usize = 32;

/// The shares of `formats` that give the most.
pub(super) fn best_shares(formats: &[MixFormat], limits: &MixLimits) -> Result<Vec<f64>> {
    let alone = formats.iter().map(|format| seconds(std::slice::from_ref(format), &[1.0], limits));
    // Seconds are counted in those of the fastest format alone, so that numbers are about 1, and the solver's tolerances small.
    let fastest = alone.filter(|seconds| *seconds > 0.0).fold(f64::INFINITY, f64::min);
    let unit = if fastest.is_finite() { fastest } else { 1.0 };
    let mut at = formats.iter().map(|format| format.bytes).fold(f64::INFINITY, f64::min);
    let mut best = (f64::INFINITY, Vec::new());
    for _ in 0..STEPS_MAX {
        let (shares, bound) = solved(formats, limits, unit, read(limits, at))?;
        let found = seconds(formats, &shares, limits) / unit;
        at = mean_bytes(formats, &shares);
        if found < best.0 {
            best = (found, shares);
        }
        if found <= bound * (1.0 + AGREES) {
            break;
        }
    }
    // What takes no time has no best rate.
    if best.0 > 0.0 { Ok(best.1) } else { Err(unsolved("a rate without any bound".to_owned())) }
}

/// A line: its value where the average sample has no bytes, and what each byte adds.
#[derive(Clone, Copy)]
struct Tangent {
    offset: f64,
    slope: f64,
}

/// The tangent to the bytes read per sample, at an average sample of `bytes`.
fn read(limits: &MixLimits, bytes: f64) -> Tangent {
    let (kept, taken) = (limits.kept_bytes_per_sample(), bytes + STORED_ENTRY_BYTES as f64);
    if kept >= taken {
        return Tangent { offset: 0.0, slope: 0.0 };
    }
    let slope = 1.0 - kept * STORED_ENTRY_BYTES as f64 / (taken * taken);
    Tangent { offset: bytes * (1.0 - kept / taken) - slope * bytes, slope }
}

/// What a sample takes in this mix; 0 where nothing bounds it.
fn seconds(formats: &[MixFormat], shares: &[f64], limits: &MixLimits) -> f64 {
    let rate = rates(formats, shares, limits).samples_per_second;
    if rate > 0.0 { 1.0 / rate } else { 0.0 }
}

/// The shares that take the least time where `tangent` is what is read, and that time in `unit` seconds.
fn solved(formats: &[MixFormat], limits: &MixLimits, unit: f64, tangent: Tangent) -> Result<(Vec<f64>, f64)> {
    let mut program = Problem::new(OptimizationDirection::Minimize);
    let least = limits.trainer_samples_per_second.map_or(0.0, |rate| 1.0 / (rate * unit));
    let time = program.add_var(1.0, (least, f64::INFINITY));
    let variables: Vec<Variable> = formats.iter().map(|_| program.add_var(0.0, (0.0, 1.0))).collect();
    let terms = |cost: &dyn Fn(&MixFormat) -> f64| -> Vec<(Variable, f64)> {
        variables.iter().copied().zip(formats.iter().map(cost)).filter(|(_, cost)| *cost != 0.0).collect()
    };
    let mut limit = |mut terms: Vec<(Variable, f64)>, is_time: bool, most: f64| {
        if is_time {
            terms.push((time, -1.0));
        }
        if !terms.is_empty() {
            program.add_constraint(&terms, ComparisonOp::Le, most);
        }
    };
    let (cores, bandwidth) = (limits.cores * unit, limits.read_bytes_per_second * unit);
    limit(terms(&|format| format.cpu_seconds / cores), true, 0.0);
    limit(terms(&|format| tangent.slope * format.bytes / bandwidth), true, -tangent.offset / bandwidth);
    if let Some(most) = capacity_per_sample(limits) {
        limit(terms(&|format| format.bytes / most), false, 1.0);
    }
    limit(terms(&|format| f64::from(u8::from(format.lossy))), false, limits.max_lossy_share);
    program.add_constraint(terms(&|_| 1.0), ComparisonOp::Eq, 1.0);
    let outcome = program.solve().map_err(|error| unsolved(error.to_string()))?;
    let solution = outcome.into_solution().map_err(|_| unsolved("unsolved".to_owned()))?;
    let parts: Vec<f64> = variables.iter().map(|&variable| solution.var_value(variable).max(0.0)).collect();
    let sum: f64 = parts.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(unsolved("no format".to_owned()));
    }
    Ok((parts.iter().map(|part| part / sum).collect(), solution.var_value(time)))
}

fn unsolved(found: String) -> Error {
    Error::Argument { name: "mix", found, expected: "limits that some format satisfies, and that bound the rate" }
}
