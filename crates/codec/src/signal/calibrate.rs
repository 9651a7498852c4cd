//! Counts of a converter to volts and amperes.

use std::f64::consts::FRAC_1_SQRT_2;

use super::read::Recording;
use crate::{Error, Result};

impl Recording {
    /// Takes away the slowly moving offset of the converter, as the reader of the CREAM data set does it.
    ///
    /// The offset is the mean of the first channel, the voltage, over each `period` samples (a period of the mains). The
    /// means stand evenly from the first sample to the last (their indices rounded down to whole samples), and between them
    /// the offset is interpolated. All other channels, currents, have that offset over √2.
    ///
    /// To get whole periods the voltage is padded with zeros, and, as in the reference, by a whole period where it has whole
    /// periods already: the offset of the last period therefore falls off towards 0.
    pub fn remove_offset(&mut self, period: usize) -> Result<()> {
        let samples = self.samples();
        let Some((voltage, currents)) = self.channels.split_first_mut() else { return Ok(()) };
        if period < 2 || samples < 2 || currents.iter().any(|current| current.len() != samples) {
            let expected = "a period of at least 2 samples, and channels of at least 2, all equally long";
            return Err(Error::usage("the offset cannot be found", expected, format!("{period} and {samples}")));
        }
        let means = period_means(voltage, period);
        if means.len() < 2 {
            // Less than a period: one mean, nothing to interpolate between.
            shift(voltage, currents, 0..samples, |_| means[0]);
            return Ok(());
        }
        // The reference counts from 1 and rounds down; what rounding makes of a product is kept by doing the same.
        let step = (samples - 1) as f64 / (means.len() - 1) as f64;
        let last = means.len() - 1;
        let index = |mean: usize| if mean == last { samples - 1 } else { (mean as f64 * step + 1.0) as usize - 1 };
        for (segment, pair) in means.windows(2).enumerate() {
            let (start, end) = (index(segment), index(segment + 1));
            let slope = (pair[1] - pair[0]) / (end - start) as f64;
            // The last segment includes its end.
            let behind = if segment + 1 == last { end + 1 } else { end };
            shift(voltage, currents, start..behind, |distance| slope * distance as f64 + pair[0]);
        }
        Ok(())
    }

    /// Multiplies each channel by its factor, or by `factors` instead, where they are given: as many as there are channels.
    pub fn calibrate(&mut self, factors: Option<&[f64]>) -> Result<()> {
        let factors = factors.unwrap_or(&self.factors);
        if factors.len() != self.channels.len() {
            return Err(Error::usage("each channel needs a factor", self.channels.len(), factors.len()));
        }
        for (channel, &factor) in self.channels.iter_mut().zip(factors) {
            // Exactly 1 is the usual case for what was calibrated before, and a pass over memory.
            if (factor - 1.0).abs() > 0.0 {
                for sample in channel {
                    *sample *= factor;
                }
            }
        }
        Ok(())
    }
}

/// Takes the offset away from an extent of all channels; what it is depends on how far into the extent a sample stands.
fn shift(
    voltage: &mut [f64],
    currents: &mut [Vec<f64>],
    extent: std::ops::Range<usize>,
    offset: impl Fn(usize) -> f64,
) {
    for (distance, sample) in voltage[extent.clone()].iter_mut().enumerate() {
        *sample -= offset(distance);
    }
    for current in currents {
        for (distance, sample) in current[extent.clone()].iter_mut().enumerate() {
            *sample -= offset(distance) * FRAC_1_SQRT_2;
        }
    }
}

fn period_means(voltage: &[f64], period: usize) -> Vec<f64> {
    let periods = voltage.len() / period + 1;
    let mut means = Vec::with_capacity(periods);
    means.extend(voltage.chunks(period).map(|samples| samples.iter().sum::<f64>() / period as f64));
    means.resize(periods, 0.0);
    means
}
