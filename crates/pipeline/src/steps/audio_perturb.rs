//! Waveforms with the noise of other recordings behind them, and faster or slower.

use std::sync::{Arc, OnceLock};

use forebay_codec::audio::{RATE_MAX, Resampler};
use forebay_codec::{DType, TensorSpec, memory};
use serde::{Deserialize, Serialize};

use super::audio_augment::{WAVEFORM, change, check_range, loudness, waveform_type};
use super::tensor;
use super::text_files::load_noises;
use crate::error::StepError;
use crate::output::Output;
use crate::random::Random;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, Needs, StepFiles, Transform};

/// With probability `p`, adds a random part of a random recording of a folder, at a random ratio of signal to noise.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddBackgroundNoise {
    /// The folder of recordings, or one file.
    pub sounds_path: String,
    /// The sample rate of the audio, in hertz: recordings of another are resampled. As they are stored unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// The least ratio, in decibels.
    #[serde(default = "default_min_snr")]
    pub min_snr_db: f64,
    /// The largest.
    #[serde(default = "default_max_snr")]
    pub max_snr_db: f64,
    /// How probable it is.
    #[serde(default = "half")]
    pub p: f64,
    /// The recordings, had when first wanted.
    #[serde(skip)]
    loaded: OnceLock<Arc<Noises>>,
}

fn default_min_snr() -> f64 {
    3.0
}

fn default_max_snr() -> f64 {
    30.0
}

fn half() -> f64 {
    0.5
}

/// Recordings of noise, one channel each; none of them is empty.
#[derive(Debug, Default)]
pub(super) struct Noises(pub(super) Vec<Vec<i16>>);

impl AddBackgroundNoise {
    fn loaded(&self) -> Result<&Noises, StepError> {
        if let Some(noises) = self.loaded.get() {
            return Ok(noises);
        }
        let noises = load_noises(&self.sounds_path, self.sample_rate)?;
        Ok(self.loaded.get_or_init(|| noises))
    }
}

/// Up to `length` samples of a recording from a random position on.
fn excerpt<'a>(noise: &'a [i16], length: usize, random: &mut Random) -> &'a [i16] {
    let start = random.below(noise.len().saturating_sub(length) + 1);
    &noise[start..noise.len().min(start + length)]
}

impl Transform for AddBackgroundNoise {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(!self.sounds_path.is_empty(), "sounds_path", &self.sounds_path, "the path of a folder")?;
        let rate_fits = self.sample_rate.is_none_or(|rate| (1..=RATE_MAX).contains(&rate));
        BadParameter::unless(rate_fits, "sample_rate", &self.sample_rate, "1 to 1048575 hertz")?;
        check_range("min_snr_db", self.min_snr_db, self.max_snr_db, self.p)
    }

    fn files(&self) -> Option<&dyn StepFiles> {
        Some(self)
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        waveform_type(input)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, WAVEFORM)?;
        let noises = &self.loaded()?.0;
        let mut slot = output.tensor(view.spec)?;
        let (instants, channels) = match *view.spec.shape.dims() {
            [instants] => (instants, 1),
            [instants, channels] => (instants, channels),
            _ => return Err(StepError::Unfit { found: view.spec, expected: WAVEFORM }),
        };
        let random = &mut scope.random;
        if random.unit() >= self.p || noises.is_empty() || instants * channels == 0 {
            slot.data.copy_from_slice(view.data);
            return Ok(());
        }
        let ratio = random.between(self.min_snr_db, self.max_snr_db);
        let noise = excerpt(&noises[random.below(noises.len())], instants, random);
        // Of what is repeated, once: its last time may be cut.
        let squares: f64 = noise.iter().map(|value| f64::from(*value).powi(2)).sum();
        let noise_loudness = (squares / noise.len() as f64).sqrt();
        // Silence has no ratio to anything.
        let scale =
            if noise_loudness > 0.0 { loudness(view) / noise_loudness / 10_f64.powf(ratio / 20.0) } else { 0.0 };
        let mut added = noise.iter().cycle().flat_map(|value| std::iter::repeat_n(f64::from(*value) * scale, channels));
        change(view, &mut slot, |value| value + added.next().unwrap_or(0.0) as f32)
    }
}

/// Plays a waveform faster or slower by one of several factors, which changes its pitch, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpeedPerturbation {
    /// The factors, of which one is drawn: 1.1 is faster, and shorter. Each counts in thousandths.
    pub factors: Vec<f64>,
    /// What changes by each of them, made when first wanted.
    #[serde(skip)]
    resamplers: OnceLock<Vec<Option<Resampler>>>,
}

impl Default for SpeedPerturbation {
    /// Those of Kaldi's recipes.
    fn default() -> Self {
        Self { factors: vec![0.9, 1.0, 1.1], resamplers: OnceLock::new() }
    }
}

/// A factor in thousandths: a rate of so many against one of a thousand.
const UNIT_RATE: u32 = 1000;

/// The most samples that come out, all channels together.
const SAMPLES_MAX: usize = 1 << 30;

impl SpeedPerturbation {
    /// What changes by each factor; nothing where it is 1.
    fn resamplers(&self) -> Result<&[Option<Resampler>], StepError> {
        if let Some(made) = self.resamplers.get() {
            return Ok(made);
        }
        let made = self.factors.iter().map(|factor| {
            let rate = (factor * f64::from(UNIT_RATE)).round() as u32;
            (rate != UNIT_RATE).then(|| Resampler::new(rate, UNIT_RATE)).transpose()
        });
        let made = made.collect::<Result<_, _>>()?;
        Ok(self.resamplers.get_or_init(|| made))
    }
}

impl Transform for SpeedPerturbation {
    fn is_random(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), BadParameter> {
        let valid =
            (1..=64).contains(&self.factors.len()) && self.factors.iter().all(|factor| (0.1..=10.0).contains(factor));
        BadParameter::unless(valid, "factors", &self.factors, "from 1 to 64 numbers between 0.1 and 10")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let mut output = waveform_type(input)?;
        if let FieldType::Tensor { dims, .. } = &mut output {
            dims[0] = None;
        }
        Ok(output)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, WAVEFORM)?;
        let unfit = StepError::Unfit { found: view.spec, expected: WAVEFORM };
        let channels = match (view.spec.dtype, view.spec.shape.dims()) {
            (DType::I16 | DType::F32, [_]) => 1,
            (DType::I16 | DType::F32, [_, channels]) => *channels,
            _ => return Err(unfit),
        };
        let resamplers = self.resamplers()?;
        let Some(resampler) = &resamplers[scope.random.below(resamplers.len())] else {
            output.tensor(view.spec)?.data.copy_from_slice(view.data);
            return Ok(());
        };
        let instants = view.spec.shape.dims()[0];
        let made = resampler.output_samples(instants).saturating_mul(channels as u64);
        // The sound again, a channel of it as floats, and what comes out.
        let bytes = (view.spec.bytes() as u64 * 3).saturating_add(made.saturating_mul(view.spec.dtype.bytes() as u64));
        output.working(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        let (whole, floats): (Vec<i16>, Vec<f32>);
        let made: &[u8] = if view.spec.dtype == DType::I16 {
            let mut samples = memory::copied(view.elements_or_copy::<i16>(&mut Vec::new()).ok_or(unfit)?)?;
            resampler.run(&mut samples, channels, SAMPLES_MAX, &mut Vec::new())?;
            whole = samples;
            bytemuck::cast_slice(&whole)
        } else {
            let mut samples = memory::copied(view.elements_or_copy::<f32>(&mut Vec::new()).ok_or(unfit)?)?;
            resampler.run_floats(&mut samples, channels, SAMPLES_MAX, &mut Vec::new())?;
            floats = samples;
            bytemuck::cast_slice(&floats)
        };
        let samples = made.len() / view.spec.dtype.bytes();
        let spec = match *view.spec.shape.dims() {
            [_] => TensorSpec::new(view.spec.dtype, &[samples]),
            _ => TensorSpec::new(view.spec.dtype, &[samples / channels.max(1), channels]),
        };
        output.tensor(spec)?.data.copy_from_slice(made);
        Ok(())
    }
}
