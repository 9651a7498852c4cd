//! Bounded loss: rounds floating point numbers to fewer significant bits, so that lossless compression has less to store.
//!
//! Infinities and NaNs do not change, a finite number stays finite, and zero keeps its sign.

use super::Loss;
use super::bits::Bits;
use crate::error::Result;
use crate::memory;
use crate::tensor::DType;

/// How far from what it was a number may come back: by no more than the larger of `absolute` and `relative` times its magnitude.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorBound {
    /// The same for all numbers.
    pub absolute: f64,
    /// In proportion to the number.
    pub relative: f64,
}

/// Half of what the last of bfloat16's eight significant bits is worth.
const BFLOAT16_RELATIVE: f64 = 1.0 / 256.0;

/// The exponent of half the distance between bfloat16's smallest numbers, which are 2^-133 apart.
const BFLOAT16_ABSOLUTE_EXPONENT: i32 = -134;

impl ErrorBound {
    pub(super) fn of(loss: Loss) -> Self {
        match loss {
            Loss::Bfloat16 => Self { absolute: scaled(1.0, BFLOAT16_ABSOLUTE_EXPONENT), relative: BFLOAT16_RELATIVE },
            Loss::Absolute(absolute) => Self { absolute, relative: 0.0 },
            Loss::Relative(relative) => Self { absolute: 0.0, relative },
        }
    }
}

/// The elements of `data` after rounding.
pub(super) fn apply(loss: Loss, data: &[u8], dtype: DType) -> Result<Vec<u8>> {
    if loss == Loss::Bfloat16 {
        let mut out = memory::zeroed(data.len() / 2)?;
        for (to, element) in out.chunks_exact_mut(2).zip(data.chunks_exact(4)) {
            bfloat16(u32::read(element)).write(to);
        }
        return Ok(out);
    }
    let mut out = memory::copied(data)?;
    match (loss, dtype) {
        (Loss::Absolute(bound), DType::F32) => {
            let exponent = step_exponent(bound);
            each(&mut out, |bits: u32| absolute_f32(f32::from_bits(bits), exponent).to_bits());
        }
        (Loss::Absolute(bound), _) => {
            let exponent = step_exponent(bound);
            each(&mut out, |bits: u64| absolute_f64(f64::from_bits(bits), exponent).to_bits());
        }
        (Loss::Relative(bound), DType::F32) => each(&mut out, relative_f32(bound)),
        (Loss::Relative(bound), _) => each(&mut out, relative_f64(bound)),
        (Loss::Bfloat16, _) => {}
    }
    Ok(out)
}

fn each<T: Bits>(data: &mut [u8], change: impl Fn(T) -> T) {
    for element in data.chunks_exact_mut(T::BYTES) {
        change(T::read(element)).write(element);
    }
}

/// The upper half of a `float32`, rounded to the nearest, of two as near to the even one.
fn bfloat16(bits: u32) -> u16 {
    const QUIET: u16 = 1 << 6;
    const LARGEST: u16 = 0x7f7f;
    let upper = (bits >> 16) as u16;
    let number = f32::from_bits(bits);
    if number.is_nan() {
        // The nonzero bits of a NaN may be in the lower half.
        return if upper.trailing_zeros() >= 7 { upper | QUIET } else { upper };
    }
    if number.is_infinite() {
        return upper;
    }
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    // The largest number stays finite, which is also within the bound.
    if rounded & 0x7fff > LARGEST { upper & 0x8000 | LARGEST } else { rounded }
}

/// The `float32`s whose upper halves these are.
pub(super) fn widen(halves: &[u8], out: &mut [u8]) {
    for (to, half) in out.chunks_exact_mut(4).zip(halves.chunks_exact(2)) {
        (u32::from(u16::read(half)) << 16).write(to);
    }
}

/// The exponent of the largest power of two that is no more than `number`, which is positive and finite.
fn exponent_of(number: f64) -> i32 {
    let field = (number.to_bits() >> 52) as i32;
    if field > 0 { field - 1023 } else { -1011 - number.to_bits().leading_zeros() as i32 }
}

/// 2 to the power of `exponent` times `number`: exact, unless it is too large or too small for that.
fn scaled(number: f64, exponent: i32) -> f64 {
    // A power of two whose exponent is a normal one.
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    match exponent {
        1001.. => number * power(exponent - 1000) * power(1000),
        ..-1000 => number * power(exponent + 1000) * power(-1000),
        _ => number * power(exponent),
    }
}

/// Numbers become multiples of 2 to this power, which is at most twice the bound: so they move by at most the bound. Powers of two, because
/// then all of this is exact.
fn step_exponent(bound: f64) -> i32 {
    (exponent_of(bound) + 1).min(1023)
}

fn absolute_f64(number: f64, step: i32) -> f64 {
    let steps = scaled(number, -step);
    // From 2^52 on all numbers are integers: it is a multiple already.
    if steps.is_nan() || steps.abs() >= 4_503_599_627_370_496.0 {
        return number;
    }
    let rounded = scaled(steps.round_ties_even(), step);
    if rounded.is_finite() { rounded } else { number }
}

fn absolute_f32(number: f32, step: i32) -> f32 {
    let rounded = absolute_f64(f64::from(number), step) as f32;
    // A NaN may change on its way through wider numbers; the largest ones may not become infinite.
    if rounded.is_finite() { rounded } else { number }
}

/// How many bits of a significand to retain in addition to the first: as few as the bound allows.
fn kept_bits(bound: f64) -> u32 {
    (-exponent_of(bound) - 1).max(0) as u32
}

fn relative_f32(bound: f64) -> impl Fn(u32) -> u32 {
    let dropped = 23_u32.saturating_sub(kept_bits(bound));
    move |bits| {
        let exponent = bits & 0x7f80_0000;
        // Those too small to be normal have fewer bits already.
        if dropped == 0 || exponent == 0 || exponent == 0x7f80_0000 {
            return bits;
        }
        let half = (1 << (dropped - 1)) - 1 + (bits >> dropped & 1);
        let rounded = (bits + half) >> dropped << dropped;
        if f32::from_bits(rounded).is_finite() { rounded } else { bits }
    }
}

fn relative_f64(bound: f64) -> impl Fn(u64) -> u64 {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    let dropped = 52_u32.saturating_sub(kept_bits(bound));
    move |bits| {
        let exponent = bits & EXPONENT;
        if dropped == 0 || exponent == 0 || exponent == EXPONENT {
            return bits;
        }
        let half = (1 << (dropped - 1)) - 1 + (bits >> dropped & 1);
        let rounded = (bits + half) >> dropped << dropped;
        if f64::from_bits(rounded).is_finite() { rounded } else { bits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_exact() {
        for exponent in [-1074, -1022, -500, 0, 3, 1000, 1023] {
            assert_eq!(exponent_of(scaled(1.0, exponent)), exponent);
        }
        assert_eq!(scaled(f64::from_bits(1), 1074).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exponent_of(0.001), -10);
        assert_eq!((step_exponent(0.5), step_exponent(f64::MAX)), (0, 1023));
    }

    #[test]
    fn bfloat16_is_what_others_make_of_it() {
        let halves = |number: f32| bfloat16(number.to_bits());
        assert_eq!(halves(1.0), 0x3f80);
        assert_eq!(halves(std::f32::consts::PI), 0x4049);
        assert_eq!(halves(-0.0), 0x8000);
        // Ties go to the even one.
        assert_eq!((bfloat16(0x3f80_8000), bfloat16(0x3f81_8000)), (0x3f80, 0x3f82));
        assert_eq!((halves(f32::MAX), halves(f32::NEG_INFINITY)), (0x7f7f, 0xff80));
        assert_eq!((bfloat16(0x7f80_0001), bfloat16(0xffc1_2345)), (0x7fc0, 0xffc1));
    }
}
