//! The sums of products that everything about a period of the mains is made of.
//!
//! Sums run side by side in [`LANES`] lanes: that fills the vector units, and is more exact than one long sum. Every kernel adds the
//! same numbers in the same order and none fuses a multiplication with an addition, so the results are the same to the bit.

use crate::level::{Level, Supported};

/// Of the voltages v and currents i of one period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Products {
    /// Σ v·i
    pub(super) mixed: f64,
    /// Σ v²
    pub(super) voltage: f64,
    /// Σ i²
    pub(super) current: f64,
}

const LANES: usize = 16;

/// Σ v·i, Σ v² and Σ i², in lanes.
type Lanes = [[f64; LANES]; 3];

/// Passes the products of every complete period to `each`, in order: at [`Level::Scalar`] by a pass over the period for each sum, which compilers
/// turn into vector code of what every machine has, otherwise in one pass.
pub(super) fn each_period(
    supported: Supported,
    voltage: &[f64],
    current: &[f64],
    period: usize,
    each: impl FnMut(Products),
) {
    let periods = voltage.chunks_exact(period).zip(current.chunks_exact(period));
    match supported.level() {
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "code for a vector unit that not every machine has")]
        // SAFETY: a `Supported` is made only of a level that this machine has.
        Level::Avx2 => unsafe { x86::avx2(periods, each) },
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "code for a vector unit that not every machine has")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { x86::avx512(periods, each) },
        _ => periods.map(|(voltage, current)| scalar(voltage, current)).for_each(each),
    }
}

fn scalar(voltage: &[f64], current: &[f64]) -> Products {
    let (voltage_lanes, voltage_rest) = voltage.as_chunks();
    let (current_lanes, current_rest) = current.as_chunks();
    let sums =
        [lanes(voltage_lanes, current_lanes), lanes(voltage_lanes, voltage_lanes), lanes(current_lanes, current_lanes)];
    finish(sums, voltage_rest, current_rest)
}

/// The sum of squares of `signal`.
pub(super) fn squares(signal: &[f64]) -> f64 {
    let (signal_lanes, rest) = signal.as_chunks();
    total(lanes(signal_lanes, signal_lanes), rest, rest)
}

fn lanes(left: &[[f64; LANES]], right: &[[f64; LANES]]) -> [f64; LANES] {
    let mut sums = [0.0; LANES];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    sums
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it must become part of a function for each vector unit")]
fn finish([mixed, voltage, current]: Lanes, voltage_rest: &[f64], current_rest: &[f64]) -> Products {
    Products {
        mixed: total(mixed, voltage_rest, current_rest),
        voltage: total(voltage, voltage_rest, voltage_rest),
        current: total(current, current_rest, current_rest),
    }
}

/// Adds what did not fill the lanes, and the lanes to each other.
#[inline(always)]
#[expect(clippy::inline_always, reason = "it must become part of a function for each vector unit")]
fn total(mut sums: [f64; LANES], left_rest: &[f64], right_rest: &[f64]) -> f64 {
    for (sum, (left, right)) in sums.iter_mut().zip(left_rest.iter().zip(right_rest)) {
        *sum += left * right;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// One pass that holds all three sums in registers, which compilers do not generate from the plain code.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "vector registers are loaded and stored through pointers")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_add_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_setzero_pd, _mm256_storeu_pd, _mm512_add_pd,
        _mm512_loadu_pd, _mm512_mul_pd, _mm512_setzero_pd, _mm512_storeu_pd,
    };

    use super::{LANES, Lanes, Products, finish};

    macro_rules! kernel {
        ($name:ident, $feature:literal, $width:literal, $zero:ident, $load:ident, $store:ident, $add:ident, $multiply:ident) => {
            #[target_feature(enable = $feature)]
            pub(super) fn $name<'a>(
                periods: impl Iterator<Item = (&'a [f64], &'a [f64])>,
                mut each: impl FnMut(Products),
            ) {
                for (voltage, current) in periods {
                    let mut sums = [[$zero(); LANES / $width]; 3];
                    let (voltage, voltage_rest) = voltage.as_chunks::<LANES>();
                    let (current, current_rest) = current.as_chunks::<LANES>();
                    for (voltage, current) in voltage.iter().zip(current) {
                        let parts = voltage.as_chunks::<$width>().0.iter().zip(current.as_chunks::<$width>().0);
                        for (part, (voltage, current)) in parts.enumerate() {
                            // SAFETY: both arrays hold the numbers that are loaded.
                            let (v, i) = unsafe { ($load(voltage.as_ptr()), $load(current.as_ptr())) };
                            sums[0][part] = $add(sums[0][part], $multiply(v, i));
                            sums[1][part] = $add(sums[1][part], $multiply(v, v));
                            sums[2][part] = $add(sums[2][part], $multiply(i, i));
                        }
                    }
                    let mut lanes = Lanes::default();
                    for (lanes, sums) in lanes.iter_mut().zip(&sums) {
                        for (lanes, sum) in lanes.as_chunks_mut::<$width>().0.iter_mut().zip(sums) {
                            // SAFETY: the array has space for the numbers that are stored.
                            unsafe { $store(lanes.as_mut_ptr(), *sum) };
                        }
                    }
                    each(finish(lanes, voltage_rest, current_rest));
                }
            }
        };
    }

    kernel!(avx2, "avx2", 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd, _mm256_mul_pd);
    kernel!(avx512, "avx512f", 8, _mm512_setzero_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd, _mm512_mul_pd);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_same_bits() {
        let wave = |n: usize, phase: f64| (n as f64 * 0.049 - phase).sin() * 300.0;
        let voltage: Vec<f64> = (0..2000).map(|n| wave(n, 0.0)).collect();
        let current: Vec<f64> = (0..2000).map(|n| wave(n, 0.4) + 0.1).collect();
        for period in [1, 7, 15, 16, 17, 100, 128, 2000, 2001] {
            let of = |supported| {
                let mut all = Vec::new();
                each_period(supported, &voltage, &current, period, |products| all.push(products));
                all
            };
            let scalar = of(Supported::SCALAR);
            assert_eq!(scalar.len(), 2000 / period);
            for supported in Supported::all() {
                assert_eq!(of(supported), scalar, "{supported:?}, periods of {period}");
            }
        }
    }

    #[test]
    fn the_sums_are_those_of_the_definition() {
        let (voltage, current) = ([3.0; 20], [-2.0; 20]);
        for supported in Supported::all() {
            each_period(supported, &voltage, &current, 20, |products| {
                assert_eq!(products, Products { mixed: -120.0, voltage: 180.0, current: 80.0 }, "{supported:?}");
            });
        }
        assert_eq!(squares(&voltage).to_bits(), 180.0_f64.to_bits());
    }
}
