//! The root mean square of each period of a signal: √(Σ x² / N).
//!
//! Bit-identical to `NumPy`'s `sqrt(mean(square(x)))`: sums are computed pairwise by halves as in NumPy, in single precision of
//! `float32` and in double precision of all others. Whole numbers are made `float64` first, since their squares do not fit their type
//! (PRESTO squares `uint8` as it is, which wraps around).

use std::ops::Add;

use half::{bf16, f16};

use crate::error::{Error, Result};
use crate::tensor::{DType, Element, TensorMut, TensorSpec, TensorView};

/// The shape of the result of [`rms()`]: a number for each complete period of the elements, whatever the dimensions.
///
/// # Panics
/// If `period` is 0.
pub fn rms_spec(input: &TensorSpec, period: usize) -> TensorSpec {
    TensorSpec::new(rms_dtype(input.dtype), &[input.shape.elements() / period])
}

/// The type of the root mean square of elements of this type: single precision of single precision, else double.
pub const fn rms_dtype(input: DType) -> DType {
    match input {
        DType::F32 => DType::F32,
        _ => DType::F64,
    }
}

/// Writes the root mean square of each period. What is left over at the end counts for nothing.
pub fn rms(input: TensorView<'_>, period: usize, output: TensorMut<'_>) -> Result<()> {
    if period == 0 {
        return Err(Error::usage("a period has no elements", "at least 1", period));
    }
    let expected = rms_spec(&input.spec, period);
    if output.spec != expected {
        return Err(Error::usage("the root mean squares do not fit the output", expected, output.spec));
    }
    let out = output.data;
    let finish = |sum: f64| (sum / period as f64).sqrt();
    match input.spec.dtype {
        DType::U8 => periods(input, period, out, |value: u8| square(f64::from(value)), finish),
        DType::U16 => periods(input, period, out, |value: u16| square(f64::from(value)), finish),
        DType::I16 => periods(input, period, out, |value: i16| square(f64::from(value)), finish),
        DType::I32 => periods(input, period, out, |value: i32| square(f64::from(value)), finish),
        DType::I64 => periods(input, period, out, |value: i64| square(value as f64), finish),
        DType::F64 => periods(input, period, out, square, finish),
        DType::F16 => periods(input, period, out, |value: f16| square(value.to_f64()), finish),
        DType::BF16 => periods(input, period, out, |value: bf16| square(value.to_f64()), finish),
        DType::F32 => {
            let finish = |sum: f32| (sum / period as f32).sqrt();
            periods(input, period, out, |value: f32| value * value, finish);
        }
    }
    Ok(())
}

fn square(value: f64) -> f64 {
    value * value
}

/// Each period of `input`, squared, summed and finished.
fn periods<T: Element, F: Element + Default + Add<Output = F>>(
    input: TensorView<'_>,
    period: usize,
    output: &mut [u8],
    square: impl Fn(T) -> F + Copy,
    finish: impl Fn(F) -> F,
) {
    // A tensor in a record may be unaligned, so each period is copied to an aligned buffer, which stays in the cache.
    let mut aligned = vec![T::zeroed(); period.min(input.spec.shape.elements())];
    let parts = input.data.chunks_exact(period.saturating_mul(size_of::<T>()));
    for (part, out) in parts.zip(output.chunks_exact_mut(size_of::<F>())) {
        bytemuck::cast_slice_mut(&mut aligned).copy_from_slice(part);
        out.copy_from_slice(bytemuck::bytes_of(&finish(pairwise(&aligned, square))));
    }
}

/// Up to this many numbers are summed in groups of eight; longer ranges are split into halves.
const BLOCK: usize = 128;

/// The sum of squares in the order in which `NumPy` takes it.
fn pairwise<T: Copy, F: Copy + Default + Add<Output = F>>(values: &[T], square: impl Fn(T) -> F + Copy) -> F {
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (front, back) = values.split_at(half - half % 8);
        return pairwise(front, square) + pairwise(back, square);
    }
    let (eights, rest) = values.as_chunks::<8>();
    let mut total = F::default();
    if let Some((first, others)) = eights.split_first() {
        let mut sums = first.map(square);
        for eight in others {
            for (sum, &value) in sums.iter_mut().zip(eight) {
                *sum = *sum + square(value);
            }
        }
        let four = |at: usize| (sums[at] + sums[at + 1]) + (sums[at + 2] + sums[at + 3]);
        total = four(0) + four(4);
    }
    rest.iter().fold(total, |sum, &value| sum + square(value))
}
