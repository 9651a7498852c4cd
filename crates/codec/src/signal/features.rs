//! Features of appliances: power, effective current, and its cumulative sum, per period of the mains.
//!
//! With v and i the samples of one period of N:
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

use super::products::{each_period, squares};
use crate::level::Supported;
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

    /// How many complete periods `samples` hold; the rest is ignored.
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
            return Err(Error::usage("the features do not fit the output", Self::ROWS * periods, output.len()));
        }
        let (powers, rest) = output.split_at_mut(periods);
        let (currents, sums) = rest.split_at_mut(periods);
        // The rows hold the sums of products first, so that what is made of them is made of many periods at once.
        let mut slots = powers.iter_mut().zip(&mut *currents).zip(&mut *sums);
        each_period(Supported::detect(), voltage, current, self.period.max(1), |products| {
            if let Some(((mixed, current), voltage)) = slots.next() {
                (*mixed, *current, *voltage) = (products.mixed, products.current, products.voltage);
            }
        });
        let samples = self.period as f64;
        match self.power {
            NilmPower::Reactive => finish(powers, currents, sums, samples, reactive),
            NilmPower::Active => finish(powers, currents, sums, samples, |active, _| active),
            NilmPower::Apparent => {
                finish(powers, currents, sums, samples, |_, apparent_squared| apparent_squared.sqrt());
            }
            NilmPower::Factor => finish(powers, currents, sums, samples, factor),
        }
        cumulative_sum(currents, sums);
        Ok(())
    }
}

/// Turns Σ v·i into a power and Σ i² into the effective current of each period; `power` is given P and S².
fn finish(mixed: &mut [f64], current: &mut [f64], voltage: &[f64], samples: f64, power: impl Fn(f64, f64) -> f64) {
    for ((mixed, current), voltage) in mixed.iter_mut().zip(current).zip(voltage) {
        let current_squared = *current / samples;
        *mixed = power(*mixed / samples, voltage / samples * current_squared);
        *current = current_squared.sqrt();
    }
}

fn reactive(active: f64, apparent_squared: f64) -> f64 {
    (apparent_squared - active * active).max(0.0).sqrt()
}

fn factor(active: f64, apparent_squared: f64) -> f64 {
    if apparent_squared > 0.0 { active / apparent_squared.sqrt() } else { 0.0 }
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

/// The effective value of each complete period of `period` samples.
///
/// # Panics
/// If `period` is 0, or `output` does not hold one number per complete period.
pub fn root_mean_square(signal: &[f64], period: usize, output: &mut [f64]) {
    assert_eq!(output.len(), signal.len() / period, "each complete period has a value");
    for (value, samples) in output.iter_mut().zip(signal.chunks_exact(period)) {
        *value = (squares(samples) / period as f64).sqrt();
    }
}
