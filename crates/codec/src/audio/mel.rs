//! The mel filterbank: triangles over the bins of a spectrum, stored without their zeros.
//!
//! As TensorFlow's `linear_to_mel_weight_matrix` defines it: the HTK scale, mel = 1127 ln(1 + f / 700); the corners of the
//! triangles are evenly spaced on that scale between the lowest and the highest frequency, and their slopes are straight on
//! it (librosa draws them straight in hertz); no triangle is scaled to equal area; the bin of frequency 0 counts nowhere.

use std::ops::Range;

/// One triangle: which of the used bins it covers, and where their weights are.
#[derive(Debug, Clone)]
struct Band {
    bins: Range<usize>,
    weights: Range<usize>,
}

/// The filterbank.
#[derive(Debug, Clone)]
pub(super) struct Mel {
    bands: Vec<Band>,
    weights: Vec<f32>,
    /// All bins that any triangle covers.
    pub(super) used: Range<usize>,
}

fn mel_of(frequency_hz: f64) -> f64 {
    1127.0 * (frequency_hz / 700.0).ln_1p()
}

impl Mel {
    /// Triangles `bands` between two frequencies, over `bins` bins of which the last is half the sample rate. Each weight is
    /// multiplied by `scale`.
    pub(super) fn new(bands: usize, lowest_hz: f64, highest_hz: f64, bins: usize, rate_hz: u32, scale: f64) -> Self {
        let bin_hz = f64::from(rate_hz) / 2.0 / (bins - 1) as f64;
        let (lowest, highest) = (mel_of(lowest_hz), mel_of(highest_hz));
        let corner = |index: usize| lowest + (highest - lowest) * index as f64 / (bands + 1) as f64;
        let mut weights = Vec::new();
        let mut triangles = Vec::with_capacity(bands);
        for band in 0..bands {
            let (left, center, right) = (corner(band), corner(band + 1), corner(band + 2));
            let first_weight = weights.len();
            let mut covered = 0..0;
            for bin in 1..bins {
                let mel = mel_of(bin as f64 * bin_hz);
                let weight = ((mel - left) / (center - left)).min((right - mel) / (right - center));
                if weight > 0.0 {
                    covered = if covered.is_empty() { bin..bin + 1 } else { covered.start..bin + 1 };
                    weights.push((weight * scale) as f32);
                }
            }
            triangles.push(Band { bins: covered, weights: first_weight..weights.len() });
        }
        let covering = || triangles.iter().map(|band| &band.bins).filter(|bins| !bins.is_empty());
        let start = covering().map(|bins| bins.start).min().unwrap_or(0);
        let end = covering().map(|bins| bins.end).max().unwrap_or(0);
        for band in &mut triangles {
            band.bins = band.bins.start.saturating_sub(start)..band.bins.end.saturating_sub(start);
        }
        Self { bands: triangles, weights, used: start..end }
    }

    /// How many bands.
    pub(super) fn bands(&self) -> usize {
        self.bands.len()
    }

    /// The weighted sums of `magnitudes`, which are those of the bins [`Mel::used`].
    pub(super) fn apply(&self, magnitudes: &[f32], sums: &mut [f32]) {
        for (band, sum) in self.bands.iter().zip(sums) {
            let terms = magnitudes[band.bins.clone()].iter().zip(&self.weights[band.weights.clone()]);
            *sum = terms.map(|(magnitude, weight)| magnitude * weight).sum();
        }
    }
}
