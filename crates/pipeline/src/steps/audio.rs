//! Audio: decode it, and make a log-mel spectrogram of it.

use std::sync::{Arc, OnceLock};

use forebay_codec::audio::{
    AudioInfo, AudioOptions, Mix, RATE_MAX, Resampler, Spectrogram, SpectrogramBuffers, SpectrogramOptions,
    decode_within,
};
use forebay_codec::{DType, TensorSpec};
use serde::{Deserialize, Serialize};

use super::{encoded, float_output, tensor};
use crate::error::StepError;
use crate::output::Output;
use crate::sample::ValueView;
use crate::schema::FieldType;
use crate::scope::{Scope, Scratch};
use crate::step::{BadParameter, Needs, Transform};

/// Decodes MP3, FLAC or WAV to `int16`: content decides, not the name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeAudio {
    /// `mono`: the mean of all channels, `[samples]`. `as-stored`: all of them, `[samples, channels]`.
    pub mix: AudioMix,
    /// The sample rate that comes out, in hertz: files of another are resampled. As stored unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Whether a truncated or damaged file is accepted as far as it goes; otherwise it is an error.
    pub allow_truncated: bool,
    /// The most samples that a file may have, all channels together.
    pub max_samples: usize,
}

/// What becomes of several channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AudioMix {
    /// Their mean.
    Mono,
    /// They stay.
    AsStored,
}

impl Default for DecodeAudio {
    fn default() -> Self {
        let max_samples = AudioOptions::default().max_samples;
        Self { mix: AudioMix::Mono, sample_rate: None, allow_truncated: false, max_samples }
    }
}

#[derive(Default)]
struct AudioScratch {
    samples: Vec<i16>,
    /// The resampler of the last sound that needed one, and what it works in.
    resampler: Option<Resampler>,
    floats: Vec<f32>,
}

impl Scratch for AudioScratch {
    fn capacity_bytes(&self) -> usize {
        self.samples.capacity_bytes() + self.floats.capacity_bytes()
    }

    fn trim(&mut self) {
        self.samples.trim();
        self.floats.trim();
    }
}

impl Transform for DecodeAudio {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.max_samples > 0, "max_samples", &self.max_samples, "at least 1")?;
        let rate_fits = self.sample_rate.is_none_or(|rate| (1..=RATE_MAX).contains(&rate));
        BadParameter::unless(rate_fits, "sample_rate", &self.sample_rate, "1 to 1048575 hertz")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        let dims = match self.mix {
            AudioMix::Mono => vec![None],
            AudioMix::AsStored => vec![None, None],
        };
        match input {
            FieldType::Bytes => Ok(FieldType::Tensor { dtype: DType::I16, dims }),
            _ => Err(Needs("encoded bytes".to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let mix = match self.mix {
            AudioMix::Mono => Mix::Mono,
            AudioMix::AsStored => Mix::AsStored,
        };
        let options = AudioOptions { mix, allow_truncated: self.allow_truncated, max_samples: self.max_samples };
        let bytes = encoded(input)?;
        let scratch: &mut AudioScratch = scope.scratch();
        let info = output.within(|gate| decode_within(bytes, &options, &mut scratch.samples, gate))?;
        if let Some(rate) = self.sample_rate.filter(|&rate| rate != info.rate_hz) {
            self.resample(info, rate, output, scratch)?;
        }
        let samples = &scratch.samples;
        let spec = match self.mix {
            AudioMix::Mono => TensorSpec::new(DType::I16, &[samples.len()]),
            AudioMix::AsStored => TensorSpec::new(DType::I16, &[samples.len() / info.channels.max(1), info.channels]),
        };
        output.tensor(spec)?.data.copy_from_slice(bytemuck::cast_slice(samples));
        Ok(())
    }
}

impl DecodeAudio {
    /// Brings the samples to another rate.
    fn resample(
        &self,
        info: AudioInfo,
        rate: u32,
        output: &mut Output<'_>,
        scratch: &mut AudioScratch,
    ) -> Result<(), StepError> {
        let fitting = scratch.resampler.take().filter(|resampler| resampler.is_between(info.rate_hz, rate));
        let resampler = match fitting {
            Some(resampler) => resampler,
            None => Resampler::new(info.rate_hz, rate)?,
        };
        let resampler = scratch.resampler.insert(resampler);
        let instants = scratch.samples.len() / info.channels.max(1);
        let output_samples = resampler.output_samples(instants).saturating_mul(info.channels as u64);
        // A channel as floats, and all of them as they will be.
        let bytes = (instants as u64 * size_of::<f32>() as u64).saturating_add(output_samples.saturating_mul(2));
        output.working(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        Ok(resampler.run(&mut scratch.samples, info.channels, self.max_samples, &mut scratch.floats)?)
    }
}

/// The log-mel spectrogram of one channel: `int16` samples to `float32[frames, bands]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogMelSpectrogram {
    /// Samples per second.
    pub sample_rate: u32,
    /// How long a frame is.
    pub window_milliseconds: u32,
    /// How far from one frame to the next.
    pub hop_milliseconds: u32,
    /// The length of the Fourier transform.
    pub n_fft: usize,
    /// How many mel bands.
    pub n_mels: usize,
    /// Where the lowest band starts, in hertz.
    pub f_min: f64,
    /// Where the highest band ends, in hertz.
    pub f_max: f64,
    /// What is added before the logarithm is taken.
    pub log_offset: f32,
    /// The plan, made when it is first wanted.
    #[serde(skip)]
    plan: OnceLock<Arc<Spectrogram>>,
}

impl Default for LogMelSpectrogram {
    fn default() -> Self {
        Self::from_options(&SpectrogramOptions::default())
    }
}

impl LogMelSpectrogram {
    /// The step that makes this kind of spectrogram.
    pub fn from_options(options: &SpectrogramOptions) -> Self {
        Self {
            sample_rate: options.rate_hz,
            window_milliseconds: options.window_milliseconds,
            hop_milliseconds: options.hop_milliseconds,
            n_fft: options.fft_length,
            n_mels: options.mel_bands,
            f_min: options.lowest_hz,
            f_max: options.highest_hz,
            log_offset: options.log_offset,
            plan: OnceLock::new(),
        }
    }

    /// The codec's options for these parameters.
    pub fn options(&self) -> SpectrogramOptions {
        SpectrogramOptions {
            rate_hz: self.sample_rate,
            window_milliseconds: self.window_milliseconds,
            hop_milliseconds: self.hop_milliseconds,
            fft_length: self.n_fft,
            mel_bands: self.n_mels,
            lowest_hz: self.f_min,
            highest_hz: self.f_max,
            log_offset: self.log_offset,
        }
    }

    fn plan(&self) -> Result<&Spectrogram, StepError> {
        if let Some(plan) = self.plan.get() {
            return Ok(plan);
        }
        let plan = Arc::new(Spectrogram::new(&self.options())?);
        Ok(self.plan.get_or_init(|| plan))
    }
}

#[derive(Default)]
struct SpectrogramScratch {
    /// For samples that lie unaligned in a record.
    samples: Vec<i16>,
    buffers: SpectrogramBuffers,
}

impl Scratch for SpectrogramScratch {
    fn capacity_bytes(&self) -> usize {
        self.samples.capacity_bytes()
    }

    fn trim(&mut self) {
        self.samples.trim();
    }
}

const SAMPLES: &str = "one channel of audio, int16[samples]";

impl Transform for LogMelSpectrogram {
    fn check(&self) -> Result<(), BadParameter> {
        let (frame, step) = (self.options().frame_samples(), self.options().step_samples());
        BadParameter::unless(step > 0, "hop_milliseconds", &self.hop_milliseconds, "at least one sample")?;
        let fits = (1..=self.n_fft).contains(&frame);
        BadParameter::unless(fits, "window_milliseconds", &self.window_milliseconds, "1 to `n_fft` samples")?;
        let range = 0.0 <= self.f_min && self.f_min < self.f_max && self.f_max <= f64::from(self.sample_rate) / 2.0;
        BadParameter::unless(range, "f_max", &self.f_max, "above `f_min`, up to half the rate")?;
        let offset = self.log_offset.is_finite() && self.log_offset > 0.0;
        BadParameter::unless(offset, "log_offset", &self.log_offset, "above 0")?;
        BadParameter::unless((1..=self.n_fft).contains(&self.n_mels), "n_mels", &self.n_mels, "1 to `n_fft`")?;
        // All that is left to object to.
        BadParameter::unless(self.plan().is_ok(), "n_fft", &self.n_fft, "an even number up to 65536")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::I16, dims } if dims.len() == 1 => {
                let frames = dims[0].and_then(|samples| Some(self.plan().ok()?.frames(samples)));
                Ok(FieldType::Tensor { dtype: DType::F32, dims: vec![frames, Some(self.n_mels)] })
            }
            _ => Err(Needs(SAMPLES.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, SAMPLES)?;
        let SpectrogramScratch { samples, buffers } = scope.scratch();
        let Some(samples) = view.elements_or_copy(samples) else {
            return Err(StepError::Unfit { found: view.spec, expected: SAMPLES });
        };
        let plan = self.plan()?;
        let mut slot = output.tensor(TensorSpec::new(DType::F32, &[plan.frames(samples.len()), self.n_mels]))?;
        Ok(plan.run(samples, float_output(&mut slot)?, buffers)?)
    }
}
