//! What tells appliances apart: power, effective current, and its cumulative sum, per period of the mains.
//!
//! With v and i the samples of one period of N (inventory §1.5):
//!
//! ```text
//! P = Σ v·i / N     active power
//! V = √(Σ v² / N)   effective voltage          I = √(Σ i² / N)   effective current
//! S = V·I           apparent power             Q = √(S² − P²)    reactive power
//! C_n = Σ_{m ≤ n} (I_m − mean of I)            cumulative sum (CUSUM)
//! ```
//!
//! Where a load is purely resistive S² − P² is 0 but for rounding, and may come out below; Q is 0 then. (The reference
//! gives NaN.)

use crate::{Error, Result};

/// Which power is the first row of the features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NilmPower {
    /// Reactive power Q, as PRESTO's paper says (§3.2.4).
    #[default]
    Reactive,
    /// Active power P, as PRESTO's code does it.
    Active,
    /// Apparent power S.
    Apparent,
    /// The power factor P / S, or 0 where S is 0.
    Factor,
}

/// Makes features of windows: three rows (power, effective current, its cumulative sum) of one number per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NilmFeatures {
    /// Samples in a period of the mains: 128 at 6.4 kHz and 50 Hz.
    pub period: usize,
    /// Which power.
    pub power: NilmPower,
}

impl Default for NilmFeatures {
    fn default() -> Self {
        Self { period: 128, power: NilmPower::Reactive }
    }
}

impl NilmFeatures {
    /// How many rows there are.
    pub const ROWS: usize = 3;

    /// How many whole periods `samples` hold; what is left over counts for nothing.
    pub fn periods(&self, samples: usize) -> usize {
        samples.checked_div(self.period).unwrap_or(0)
    }

    /// Writes the features of a window, row after row.
    pub fn run(&self, voltage: &[f64], current: &[f64], output: &mut [f64]) -> Result<()> {
        if voltage.len() != current.len() {
            return Err(Error::usage("voltage and current are not equally long", voltage.len(), current.len()));
        }
        let periods = self.periods(voltage.len());
        if output.len() != Self::ROWS * periods {
            return Err(Error::usage("the features do not fit their place", Self::ROWS * periods, output.len()));
        }
        let (powers, rest) = output.split_at_mut(periods);
        let (currents, sums) = rest.split_at_mut(periods);
        aggregate(voltage, current, *self, powers, currents);
        cumulative_sum(currents, sums);
        Ok(())
    }
}

/// The power and the effective current of each period.
fn aggregate(voltage: &[f64], current: &[f64], features: NilmFeatures, powers: &mut [f64], currents: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "code for a vector unit that not every machine has")]
        // SAFETY: the machine has AVX2, which is all that the function asks for.
        unsafe {
            aggregate_avx2(voltage, current, features, powers, currents);
        }
        return;
    }
    aggregate_here(voltage, current, features, powers, currents);
}

/// The same code for a wider vector unit. The sums run in the same lanes, so the results are the same to the bit.
/// (AVX-512 was tried and is no faster: the samples come from the second-level cache no sooner.)
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn aggregate_avx2(voltage: &[f64], current: &[f64], features: NilmFeatures, powers: &mut [f64], currents: &mut [f64]) {
    aggregate_here(voltage, current, features, powers, currents);
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "it must become part of a function for each vector unit")]
fn aggregate_here(voltage: &[f64], current: &[f64], features: NilmFeatures, powers: &mut [f64], currents: &mut [f64]) {
    let period = features.period.max(1);
    let windows = voltage.chunks_exact(period).zip(current.chunks_exact(period));
    for ((power, effective), (voltage, current)) in powers.iter_mut().zip(currents).zip(windows) {
        let moments = Moments::of(voltage, current, features.power != NilmPower::Active);
        *power = moments.power(features.power);
        *effective = moments.current;
    }
}

/// What one period amounts to.
struct Moments {
    active: f64,
    /// 0 where it is not wanted: active power needs none.
    voltage: f64,
    current: f64,
}

impl Moments {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it must become part of a function for each vector unit")]
    fn of(voltage: &[f64], current: &[f64], with_voltage: bool) -> Self {
        let samples = voltage.len() as f64;
        Self {
            active: dot(voltage, current) / samples,
            voltage: if with_voltage { (dot(voltage, voltage) / samples).sqrt() } else { 0.0 },
            current: (dot(current, current) / samples).sqrt(),
        }
    }

    fn power(&self, power: NilmPower) -> f64 {
        let apparent = self.voltage * self.current;
        match power {
            NilmPower::Reactive => (apparent * apparent - self.active * self.active).max(0.0).sqrt(),
            NilmPower::Active => self.active,
            NilmPower::Apparent => apparent,
            NilmPower::Factor if apparent > 0.0 => self.active / apparent,
            NilmPower::Factor => 0.0,
        }
    }
}

/// The sum of products. A period stays in the nearest cache, so three passes over it cost less than one that keeps all sums,
/// which the compiler does not turn into vector code.
#[inline(always)]
fn dot(left: &[f64], right: &[f64]) -> f64 {
    /// So many sums run side by side: they fill the vector units, and are more exact than one long sum.
    const LANES: usize = 16;
    let mut sums = [0.0; LANES];
    let (left_lanes, left_rest) = left.as_chunks::<LANES>();
    let (right_lanes, right_rest) = right.as_chunks::<LANES>();
    for (left, right) in left_lanes.iter().zip(right_lanes) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
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

/// The running sum of what each value is above the mean of all.
///
/// # Panics
/// If `sums` is not as long as `values`.
pub fn cumulative_sum(values: &[f64], sums: &mut [f64]) {
    assert_eq!(values.len(), sums.len(), "each value has a sum");
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let mut sum = 0.0;
    for (value, slot) in values.iter().zip(sums) {
        sum += value - mean;
        *slot = sum;
    }
}

/// The effective value of each whole period of `period` samples.
///
/// # Panics
/// If `period` is 0, or `output` does not hold one number per whole period.
pub fn root_mean_square(signal: &[f64], period: usize, output: &mut [f64]) {
    assert_eq!(output.len(), signal.len() / period, "each whole period has a value");
    for (value, samples) in output.iter_mut().zip(signal.chunks_exact(period)) {
        *value = (dot(samples, samples) / period as f64).sqrt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_unit_gives_the_same_bits() {
        let wave = |n: usize, phase: f64| (n as f64 * 0.049 - phase).sin() * 300.0;
        let voltage: Vec<f64> = (0..2000).map(|n| wave(n, 0.0)).collect();
        let current: Vec<f64> = (0..2000).map(|n| wave(n, 0.4) + 0.1).collect();
        for period in [1, 7, 100, 128] {
            let features = NilmFeatures { period, power: NilmPower::Reactive };
            let periods = features.periods(voltage.len());
            let (mut powers, mut currents) = (vec![0.0; periods], vec![0.0; periods]);
            aggregate_here(&voltage, &current, features, &mut powers, &mut currents);
            let mut output = vec![0.0; NilmFeatures::ROWS * periods];
            features.run(&voltage, &current, &mut output).expect("equally long");
            assert_eq!(output[..periods], powers);
            assert_eq!(output[periods..2 * periods], currents);
        }
    }
}
