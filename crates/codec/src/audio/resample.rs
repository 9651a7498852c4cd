//! Audio of one sample rate to audio of another.
//!
//! Each output sample is a weighted sum of the input around its instant; the weights are a low-pass filter, the sinc function under
//! a Hann window, which keeps what both rates can hold. With f = 0.99 · min(from, to) / from (in cycles of the input), r = 6 / f
//! and d the distance in input samples:
//!
//! ```text
//! weight(d) = f · sin(π d f) / (π d f) · cos²(π d f / 12)    where |d| < r, else 0
//! ```
//!
//! These are the weights of `torchaudio.functional.resample` with its defaults. The rates have a greatest common divisor, so there
//! are only `to / divisor` different fractions of a sample at which outputs lie, and their weights are made once.

use std::f64::consts::PI;

use bytemuck::Zeroable;

use crate::{Error, Result, memory};

/// The highest rate, from and to: what FLAC has bits for.
pub const RATE_MAX: u32 = (1 << 20) - 1;

/// So many zeros of the sinc function on each side count.
const ZEROS: f64 = 6.0;

/// Where the filter ends, as a share of the highest frequency that the lower rate can hold.
const ROLL_OFF: f64 = 0.99;

/// Sums are computed in that many lanes, which fills the vector units.
const LANES: usize = 8;

/// Resamples from one rate to another.
#[derive(Debug, Clone)]
pub struct Resampler {
    from_hz: u32,
    to_hz: u32,
    /// The rates over their greatest common divisor.
    from: usize,
    to: usize,
    /// How many input samples before an output's instant count.
    reach: usize,
    /// The weights at each fraction n / `to` of a sample, as many for each; the first is for the sample `reach` before.
    weights: Vec<f32>,
}

impl Resampler {
    /// Makes the weights.
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self> {
        for rate in [from_hz, to_hz] {
            if !(1..=RATE_MAX).contains(&rate) {
                return Err(Error::usage("audio of this rate is not resampled", format!("1 to {RATE_MAX} Hz"), rate));
            }
        }
        let divisor = greatest_common_divisor(from_hz, to_hz);
        let (from, to) = ((from_hz / divisor) as usize, (to_hz / divisor) as usize);
        let cutoff = ROLL_OFF * from.min(to) as f64 / from as f64;
        let reach = (ZEROS / cutoff).ceil() as usize;
        let taps = (2 * reach + 2).next_multiple_of(LANES);
        let weight = |fraction: usize, tap: usize| {
            let distance = tap as f64 - reach as f64 - fraction as f64 / to as f64;
            let turns = (distance * cutoff).clamp(-ZEROS, ZEROS);
            let window = (turns * PI / ZEROS / 2.0).cos().powi(2);
            let angle = turns * PI;
            let sinc = if angle == 0.0 { 1.0 } else { angle.sin() / angle };
            (sinc * window * cutoff) as f32
        };
        let weights = (0..to).flat_map(|fraction| (0..taps).map(move |tap| weight(fraction, tap))).collect();
        Ok(Self { from_hz, to_hz, from, to, reach, weights })
    }

    /// Whether it goes between these rates.
    pub fn is_between(&self, from_hz: u32, to_hz: u32) -> bool {
        (self.from_hz, self.to_hz) == (from_hz, to_hz)
    }

    /// The output samples per channel for that many input samples.
    pub fn output_samples(&self, samples: usize) -> u64 {
        (samples as u128 * self.to as u128).div_ceil(self.from as u128).try_into().unwrap_or(u64::MAX)
    }

    /// Replaces `samples`, `channels` at each instant, by what they are at the other rate; an error where that would be more than
    /// `max_samples`. `scratch` is where it works.
    pub fn run(
        &self,
        samples: &mut Vec<i16>,
        channels: usize,
        max_samples: usize,
        scratch: &mut Vec<f32>,
    ) -> Result<()> {
        // A cast from a float ends at the type's limits.
        self.run_as(samples, channels, max_samples, scratch, f32::from, |sum| sum.round_ties_even() as i16)
    }

    /// The same for samples that are floats.
    pub fn run_floats(
        &self,
        samples: &mut Vec<f32>,
        channels: usize,
        max_samples: usize,
        scratch: &mut Vec<f32>,
    ) -> Result<()> {
        self.run_as(samples, channels, max_samples, scratch, |sample| sample, |sum| sum)
    }

    fn run_as<T: Zeroable + Copy>(
        &self,
        samples: &mut Vec<T>,
        channels: usize,
        max_samples: usize,
        scratch: &mut Vec<f32>,
        to_float: impl Fn(T) -> f32,
        from_float: impl Fn(f32) -> T,
    ) -> Result<()> {
        let channels = channels.max(1);
        let instants = samples.len() / channels;
        let output = self.output_samples(instants).saturating_mul(channels as u64);
        if output > max_samples as u64 {
            return Err(Error::Limit { what: "audio samples, resampled", found: output, limit: max_samples as u64 });
        }
        let taps = self.weights.len() / self.to;
        let input = std::mem::take(samples);
        memory::grow(samples, output as usize)?;
        for channel in 0..channels {
            // Silence before the first sample and after the last.
            scratch.clear();
            memory::reserve(scratch, self.reach + instants + taps)?;
            scratch.resize(self.reach, 0.0);
            scratch.extend(input.iter().skip(channel).step_by(channels).take(instants).map(|&sample| to_float(sample)));
            scratch.resize(self.reach + instants + taps, 0.0);
            // An output's instant is `index + fraction / to` samples of the input.
            let (mut index, mut fraction) = (0, 0);
            for output in samples.iter_mut().skip(channel).step_by(channels) {
                let sum = dot(&scratch[index..][..taps], &self.weights[fraction * taps..][..taps]);
                *output = from_float(sum);
                fraction += self.from;
                index += fraction / self.to;
                fraction %= self.to;
            }
        }
        Ok(())
    }
}

fn dot(samples: &[f32], weights: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    for (samples, weights) in samples.as_chunks::<LANES>().0.iter().zip(weights.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            sums[lane] += samples[lane] * weights[lane];
        }
    }
    sums.iter().sum()
}

fn greatest_common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}
