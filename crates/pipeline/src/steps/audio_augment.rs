//! Augmentations of audio: waveforms `[samples]` or `[samples, channels]`, and spectrograms `[frames, bands]`.

use forebay_codec::{DType, TensorMut, TensorSpec, TensorView};
use serde::{Deserialize, Serialize};

use super::pad::filled_pixel;
use super::tensor;
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, Transform};
use crate::steps::float_output;

/// Cuts a random part of a fixed length out of a waveform or a spectrogram; what is shorter is padded at its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomTimeCrop {
    /// In samples, or frames.
    pub length: usize,
    /// What is put behind audio that is shorter.
    #[serde(default)]
    pub pad_value: f64,
}

/// Longer than this is a mistake.
const LENGTH_MAX: usize = 1 << 30;

const AUDIO: &str = "audio: a tensor of one or two dimensions, time first";

impl Transform for RandomTimeCrop {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((1..=LENGTH_MAX).contains(&self.length), "length", &self.length, "from 1 to 2^30")?;
        BadParameter::unless(self.pad_value.is_finite(), "pad_value", &self.pad_value, "a finite number")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype, dims } if matches!(dims.len(), 1 | 2) => {
                let mut dims = dims.clone();
                dims[0] = Some(self.length);
                Ok(FieldType::Tensor { dtype: *dtype, dims })
            }
            _ => Err(Needs(AUDIO.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, AUDIO)?;
        let dtype = view.spec.dtype;
        let (time, spec) = match *view.spec.shape.dims() {
            [time] => (time, TensorSpec::new(dtype, &[self.length])),
            [time, channels] => (time, TensorSpec::new(dtype, &[self.length, channels])),
            _ => return Err(StepError::Unfit { found: view.spec, expected: AUDIO }),
        };
        let start = random_start(time, self.length, &mut scope.random);
        let step = spec.bytes() / self.length;
        let slot = output.tensor(spec)?;
        let (copied, rest) = slot.data.split_at_mut(time.min(self.length) * step);
        copied.copy_from_slice(&view.data[start * step..][..copied.len()]);
        let (value, bytes) = filled_pixel(&self.pad_value.into(), dtype, 1);
        for to in rest.chunks_exact_mut(bytes) {
            to.copy_from_slice(&value[..bytes]);
        }
        Ok(())
    }
}

fn random_start(time: usize, length: usize, random: &mut Random) -> usize {
    random.below(time.saturating_sub(length) + 1)
}

/// With probability `p`, makes a waveform louder or softer by a random number of decibels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RandomGain {
    /// The least gain, in decibels.
    pub min_gain_db: f64,
    /// The most.
    pub max_gain_db: f64,
    /// How probable it is.
    pub p: f64,
}

impl Default for RandomGain {
    fn default() -> Self {
        Self { min_gain_db: -12.0, max_gain_db: 12.0, p: 0.5 }
    }
}

/// With probability `p`, adds white noise at a random ratio of signal to noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AddGaussianSnr {
    /// The least ratio, in decibels.
    pub min_snr_db: f64,
    /// The largest.
    pub max_snr_db: f64,
    /// How probable it is.
    pub p: f64,
}

impl Default for AddGaussianSnr {
    fn default() -> Self {
        Self { min_snr_db: 5.0, max_snr_db: 40.0, p: 0.5 }
    }
}

pub(super) const WAVEFORM: &str = "a waveform [samples] or [samples, channels] in int16 or float32";

pub(super) fn waveform_type(input: &FieldType) -> Result<FieldType, Needs> {
    match input {
        FieldType::Tensor { dtype: DType::I16 | DType::F32, dims } if matches!(dims.len(), 1 | 2) => Ok(input.clone()),
        _ => Err(Needs(WAVEFORM.to_owned())),
    }
}

pub(super) fn check_range(parameter: &'static str, low: f64, high: f64, p: f64) -> Result<(), BadParameter> {
    let valid = low <= high && low.is_finite() && high.is_finite();
    BadParameter::unless(valid, parameter, &low, "a number that is not above the largest")?;
    BadParameter::unless((0.0..=1.0).contains(&p), "p", &p, "between 0 and 1")
}

/// Changes each value of a waveform; whole numbers are rounded, and stay within their range.
pub(super) fn change(
    view: TensorView<'_>,
    output: &mut TensorMut<'_>,
    mut each: impl FnMut(f32) -> f32,
) -> Result<(), StepError> {
    match view.spec.dtype {
        DType::I16 => {
            let (from, to) = (view.data.as_chunks::<2>().0, output.data.as_chunks_mut::<2>().0);
            for (to, from) in to.iter_mut().zip(from) {
                *to = (each(f32::from(i16::from_le_bytes(*from))).round() as i16).to_le_bytes();
            }
        }
        DType::F32 => {
            let (from, to) = (view.data.as_chunks::<4>().0, output.data.as_chunks_mut::<4>().0);
            for (to, from) in to.iter_mut().zip(from) {
                *to = each(f32::from_le_bytes(*from)).to_le_bytes();
            }
        }
        _ => return Err(StepError::Unfit { found: view.spec, expected: WAVEFORM }),
    }
    Ok(())
}

/// How loud a waveform is: the root of the mean square, as the mean of its channels. Ratios of signal to noise are of this, as audiomentations'.
pub(super) fn loudness(view: TensorView<'_>) -> f64 {
    let channels = if let [_, channels] = *view.spec.shape.dims() { channels } else { 1 };
    let instants = view.spec.shape.elements() / channels.max(1);
    let of_channel = |channel: usize| {
        let squares: f64 = if view.spec.dtype == DType::I16 {
            let values = view.data.as_chunks::<2>().0.iter().skip(channel).step_by(channels);
            values.map(|value| f64::from(i16::from_le_bytes(*value)).powi(2)).sum()
        } else {
            let values = view.data.as_chunks::<4>().0.iter().skip(channel).step_by(channels);
            values.map(|value| f64::from(f32::from_le_bytes(*value)).powi(2)).sum()
        };
        (squares / instants.max(1) as f64).sqrt()
    };
    (0..channels).map(of_channel).sum::<f64>() / channels.max(1) as f64
}

impl Transform for RandomGain {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_range("min_gain_db", self.min_gain_db, self.max_gain_db, self.p)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        waveform_type(input)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, WAVEFORM)?;
        let mut slot = output.tensor(view.spec)?;
        if scope.random.unit() >= self.p {
            slot.data.copy_from_slice(view.data);
            return Ok(());
        }
        let gain = scope.random.between(self.min_gain_db, self.max_gain_db);
        let factor = 10_f64.powf(gain / 20.0) as f32;
        change(view, &mut slot, |value| value * factor)
    }
}

impl Transform for AddGaussianSnr {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        check_range("min_snr_db", self.min_snr_db, self.max_snr_db, self.p)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        waveform_type(input)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, WAVEFORM)?;
        let mut slot = output.tensor(view.spec)?;
        if scope.random.unit() >= self.p {
            slot.data.copy_from_slice(view.data);
            return Ok(());
        }
        let ratio = scope.random.between(self.min_snr_db, self.max_snr_db);
        let deviation = loudness(view) / 10_f64.powf(ratio / 20.0);
        let random = &mut scope.random;
        change(view, &mut slot, |value| value + (random.normal() * deviation) as f32)
    }
}

/// Masks random ranges of time and of frequency in a spectrogram (Park and others, 2019).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecAugment {
    /// How many time masks.
    pub n_time_masks: usize,
    /// How many frames one has at most.
    pub time_mask_param: usize,
    /// How many frequency masks.
    pub n_freq_masks: usize,
    /// How many bands one has at most.
    pub freq_mask_param: usize,
    /// The most of all frames, or bands, that one may have.
    #[serde(default = "one")]
    pub p: f64,
    /// Whether they become 0; otherwise the mean of the spectrogram.
    #[serde(default)]
    pub zero_masking: bool,
}

fn one() -> f64 {
    1.0
}

/// More masks than this are a mistake.
const MASKS_MAX: usize = 1000;

const SPECTROGRAM: &str = "a spectrogram, float32[frames, bands]";

impl SpecAugment {
    /// A range of up to `longest` of so many frames or bands.
    fn draw(&self, length: usize, longest: usize, random: &mut Random) -> std::ops::Range<usize> {
        let longest = longest.min((length as f64 * self.p) as usize);
        let masked = random.unit() * longest as f64;
        let start = (random.unit() * (length as f64 - masked)) as usize;
        start..(start + masked as usize).min(length)
    }
}

impl Transform for SpecAugment {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.n_time_masks <= MASKS_MAX, "n_time_masks", &self.n_time_masks, "up to 1000")?;
        BadParameter::unless(self.n_freq_masks <= MASKS_MAX, "n_freq_masks", &self.n_freq_masks, "up to 1000")?;
        BadParameter::unless((0.0..=1.0).contains(&self.p), "p", &self.p, "between 0 and 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::F32, dims } if dims.len() == 2 => Ok(input.clone()),
            _ => Err(Needs(SPECTROGRAM.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, SPECTROGRAM)?;
        let &[frames, bands] = view.spec.shape.dims() else {
            return Err(StepError::Unfit { found: view.spec, expected: SPECTROGRAM });
        };
        let mut slot = output.tensor(view.spec)?;
        slot.data.copy_from_slice(view.data);
        let values = float_output(&mut slot)?;
        let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
        let mean = (sum / values.len().max(1) as f64) as f32;
        let masked = if self.zero_masking { 0.0 } else { mean };
        for _ in 0..self.n_time_masks {
            let range = self.draw(frames, self.time_mask_param, &mut scope.random);
            values[range.start * bands..range.end * bands].fill(masked);
        }
        for _ in 0..self.n_freq_masks {
            let range = self.draw(bands, self.freq_mask_param, &mut scope.random);
            for frame in values.chunks_exact_mut(bands.max(1)) {
                frame[range.clone()].fill(masked);
            }
        }
        Ok(())
    }
}

/// The cepstral coefficients of a log-mel spectrogram: an orthonormal cosine transform (type 2) of each frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mfcc {
    /// How many coefficients are kept.
    pub n_mfcc: usize,
}

impl Default for Mfcc {
    fn default() -> Self {
        Self { n_mfcc: 40 }
    }
}

/// The weights of a transform of `bands` to `coefficients`, row by row.
fn cosines(weights: &mut Vec<f32>, coefficients: usize, bands: usize) {
    let weight = |coefficient: usize, band: usize| {
        let angle = std::f64::consts::PI / bands as f64 * (band as f64 + 0.5) * coefficient as f64;
        let scale = if coefficient == 0 { 1.0 } else { 2.0 };
        angle.cos() * (scale / bands as f64).sqrt()
    };
    weights.clear();
    weights.extend((0..coefficients).flat_map(|c| (0..bands).map(move |band| weight(c, band) as f32)));
}

/// The weights that were used last.
#[derive(Default)]
struct MfccScratch {
    shape: (usize, usize),
    weights: Vec<f32>,
    input: Vec<f32>,
}

impl crate::scope::Scratch for MfccScratch {
    fn capacity_bytes(&self) -> usize {
        self.weights.capacity_bytes() + self.input.capacity_bytes()
    }

    fn trim(&mut self) {
        *self = Self::default();
    }
}

impl Transform for Mfcc {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless((1..=4096).contains(&self.n_mfcc), "n_mfcc", &self.n_mfcc, "from 1 to 4096")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::F32, dims } => match **dims {
                [frames, Some(bands)] if bands >= self.n_mfcc => {
                    Ok(FieldType::Tensor { dtype: DType::F32, dims: vec![frames, Some(self.n_mfcc)] })
                }
                _ => Err(Needs(format!("a log-mel spectrogram of at least {} bands", self.n_mfcc))),
            },
            _ => Err(Needs(SPECTROGRAM.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, SPECTROGRAM)?;
        let unfit = StepError::Unfit { found: view.spec, expected: SPECTROGRAM };
        let &[frames, bands] = view.spec.shape.dims() else { return Err(unfit) };
        let MfccScratch { shape, weights, input } = scope.scratch();
        if *shape != (self.n_mfcc, bands) {
            cosines(weights, self.n_mfcc, bands);
            *shape = (self.n_mfcc, bands);
        }
        let values = view.elements_or_copy::<f32>(input).ok_or(unfit)?;
        let mut slot = output.tensor(TensorSpec::new(DType::F32, &[frames, self.n_mfcc]))?;
        let made = float_output(&mut slot)?.chunks_exact_mut(self.n_mfcc);
        for (to, frame) in made.zip(values.chunks_exact(bands.max(1))) {
            for (to, weights) in to.iter_mut().zip(weights.chunks_exact(bands.max(1))) {
                *to = weights.iter().zip(frame).map(|(weight, value)| weight * value).sum();
            }
        }
        Ok(())
    }
}
