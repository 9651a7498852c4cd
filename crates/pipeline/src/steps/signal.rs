//! Electrical signals: read a recording whole or in windows, and make NILM features of a window.

use bytes::Bytes;
use forebay_codec::signal::{
    Channel, NilmFeatures, NilmPower, RawElement, Recording, SignalFormat, SignalOptions, read_within,
};
use forebay_codec::{DType, Tensor, TensorSpec, memory};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::tiles::PARTS_MAX;
use super::{encoded, tensor};
use crate::error::StepError;
use crate::output::{Output, within};
use crate::sample::{Field, Sample, Value, ValueView};
use crate::schema::FieldType;
use crate::scope::Scope;
use crate::step::{BadParameter, FlatMap, Needs, Parts, Transform};

/// Reads channels of a recording as `float64[channels, samples]`: HDF5 or CSV by content, raw numbers where asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DecodeSignal {
    /// What the files are: `auto` (HDF5 or CSV), `hdf5`, `csv`, `raw`.
    pub format: RecordingFormat,
    /// Which channels: names (HDF5, CSV with a header) or numbers from 0 (CSV, raw).
    pub channels: Vec<ChannelName>,
    /// Raw numbers: `i16`, `f32` or `f64`, little-endian.
    pub raw_element: RawNumber,
    /// Raw numbers: how many channels a file has, one after the other at each instant.
    pub raw_channels: usize,
    /// Whether the converter's offset is taken away, as PRESTO does it for CREAM: what it is, is found in the first channel (the
    /// voltage) over each `period` samples; from the others, whatever they hold, goes the same over √2.
    pub remove_offset: bool,
    /// Samples in a period of the mains.
    pub period: usize,
    /// What each channel is multiplied by; HDF5's attribute `calibration_factor` unless given, 1 where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<Vec<f64>>,
    /// The most samples that a file may have, all channels together.
    pub max_samples: usize,
}

/// What recordings are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingFormat {
    /// HDF5 if it starts like one, otherwise CSV.
    Auto,
    /// HDF5.
    Hdf5,
    /// Delimited text.
    Csv,
    /// Numbers and nothing else.
    Raw,
}

/// A channel by number or name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a channel by its name or its number from 0")]
pub enum ChannelName {
    /// By its index, from 0.
    Number(usize),
    /// By its name.
    Name(String),
}

/// The type of raw numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RawNumber {
    /// Signed 16 bit.
    I16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Default for DecodeSignal {
    fn default() -> Self {
        let options = SignalOptions::default();
        let channels = options.channels.into_iter().map(|channel| match channel {
            Channel::Number(number) => ChannelName::Number(number),
            Channel::Name(name) => ChannelName::Name(name),
        });
        Self {
            format: RecordingFormat::Auto,
            channels: channels.collect(),
            raw_element: RawNumber::F64,
            raw_channels: options.raw_channels,
            remove_offset: false,
            period: NilmFeatures::default().period,
            factors: None,
            max_samples: options.max_samples,
        }
    }
}

impl DecodeSignal {
    /// The codec's options for these parameters.
    pub fn options(&self) -> SignalOptions {
        let channels = self.channels.iter().map(|channel| match channel {
            ChannelName::Number(number) => Channel::Number(*number),
            ChannelName::Name(name) => Channel::Name(name.clone()),
        });
        SignalOptions {
            format: match self.format {
                RecordingFormat::Auto => SignalFormat::Auto,
                RecordingFormat::Hdf5 => SignalFormat::Hdf5,
                RecordingFormat::Csv => SignalFormat::Csv,
                RecordingFormat::Raw => SignalFormat::Raw,
            },
            channels: channels.collect(),
            raw_element: match self.raw_element {
                RawNumber::I16 => RawElement::I16,
                RawNumber::F32 => RawElement::F32,
                RawNumber::F64 => RawElement::F64,
            },
            raw_channels: self.raw_channels,
            max_samples: self.max_samples,
        }
    }

    fn read(
        &self,
        bytes: &[u8],
        reserve: &mut dyn FnMut(usize) -> Result<(), StepError>,
    ) -> Result<Recording, StepError> {
        let mut recording = within(reserve, |gate| read_within(bytes, &self.options(), gate))?;
        if self.remove_offset {
            recording.remove_offset(self.period)?;
        }
        recording.calibrate(self.factors.as_deref())?;
        Ok(recording)
    }

    fn type_of(&self, input: &FieldType, samples: Option<usize>) -> Result<FieldType, Needs> {
        match input {
            FieldType::Bytes => {
                Ok(FieldType::Tensor { dtype: DType::F64, dims: vec![Some(self.channels.len()), samples] })
            }
            _ => Err(Needs("the bytes of a recording".to_owned())),
        }
    }
}

impl Transform for DecodeSignal {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(!self.channels.is_empty(), "channels", &self.channels, "at least one")?;
        BadParameter::unless(self.period >= 2, "period", &self.period, "at least 2")?;
        BadParameter::unless(self.raw_channels > 0, "raw_channels", &self.raw_channels, "at least 1")?;
        BadParameter::unless(self.max_samples > 0, "max_samples", &self.max_samples, "at least 1")?;
        let fits = self.factors.as_ref().is_none_or(|factors| factors.len() == self.channels.len());
        BadParameter::unless(fits, "factors", &self.factors, "one for each channel")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.type_of(input, None)
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let recording = self.read(encoded(input)?, &mut |bytes| output.working(bytes))?;
        let spec = TensorSpec::new(DType::F64, &[recording.channels.len(), recording.samples()]);
        let slot = output.tensor(spec)?;
        // A recording without samples has no rows to fill.
        for (row, channel) in slot.data.chunks_exact_mut((recording.samples() * 8).max(1)).zip(&recording.channels) {
            row.copy_from_slice(bytemuck::cast_slice(channel));
        }
        Ok(())
    }
}

/// Reads a recording like [`DecodeSignal`], and cuts it into windows of `float64[channels, window]`, one sample each. What is
/// left over at the end is dropped.
///
/// The windows of a recording share one block of memory: an hour of CREAM is 369 MB, and is kept once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SignalWindows {
    /// Samples in a window.
    pub window: usize,
    /// How the recording is read.
    #[serde(flatten)]
    pub decode: DecodeSignal,
}

impl Default for SignalWindows {
    fn default() -> Self {
        // 10 s at 6.4 kHz.
        Self { window: 64_000, decode: DecodeSignal::default() }
    }
}

/// By hand, because a derived one would let through parameters that are not known.
impl<'de> Deserialize<'de> for SignalWindows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let window = table.remove("window").map(toml::Value::try_into).transpose().map_err(D::Error::custom)?;
        let decode = table.try_into().map_err(|error: toml::de::Error| {
            // What is left of the table is the other's, which does not know of this one's own.
            D::Error::custom(error.message().replacen("expected one of ", "expected one of `window`, ", 1))
        })?;
        Ok(Self { window: window.unwrap_or(Self::default().window), decode })
    }
}

impl FlatMap for SignalWindows {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.window > 0, "window", &self.window, "at least 1")?;
        self.decode.check()
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        self.decode.type_of(input, Some(self.window))
    }

    fn flat_map(&self, sample: &Sample, fields: &[String], parts: &mut Parts<'_>) -> Result<(), StepError> {
        let (field, value) = super::first_field(sample, fields)?;
        let recording = self.decode.read(encoded(value.view())?, parts.reserve)?;
        let channels = recording.channels.len();
        let windows = recording.samples() / self.window;
        let spec = TensorSpec::new(DType::F64, &[channels, self.window]);
        let mut block: Vec<u8> = Vec::new();
        (parts.reserve)(windows.saturating_mul(spec.bytes()))?;
        memory::reserve(&mut block, windows * spec.bytes())?;
        for window in 0..windows {
            for channel in &recording.channels {
                block.extend_from_slice(bytemuck::cast_slice(&channel[window * self.window..][..self.window]));
            }
        }
        let block = Bytes::from(block);
        drop(recording);
        for window in 0..windows {
            let data = block.slice(window * spec.bytes()..(window + 1) * spec.bytes());
            let mut fields = sample.fields.clone();
            if let Some(Field { value, .. }) = fields.iter_mut().find(|other| &*other.name == field) {
                *value = Value::Tensor(Tensor::new(spec, data).expect("cut to the spec"));
            }
            (parts.emit)(Sample {
                key: format!("{}#{window}", sample.key).into(),
                index: sample.index.wrapping_mul(PARTS_MAX).wrapping_add(window as u64),
                fields,
            });
        }
        Ok(())
    }
}

/// Makes NILM features of a window of voltage and current: `float64[2, samples]` to `float64[3, periods]`, whose rows are
/// power, effective current, and its cumulative sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AggregateSignal {
    /// Samples in a period of the mains.
    pub period: usize,
    /// Which power: `reactive` (as PRESTO's paper says), `active` (as its code does), `apparent`, or the power `factor`.
    pub power: Power,
}

/// Which power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Power {
    /// Reactive power.
    Reactive,
    /// Active power.
    Active,
    /// Apparent power.
    Apparent,
    /// The power factor.
    Factor,
}

impl Default for AggregateSignal {
    fn default() -> Self {
        Self { period: NilmFeatures::default().period, power: Power::Reactive }
    }
}

const WINDOW: &str = "voltage and current, float64[2, samples]";

impl AggregateSignal {
    fn features(&self) -> NilmFeatures {
        let power = match self.power {
            Power::Reactive => NilmPower::Reactive,
            Power::Active => NilmPower::Active,
            Power::Apparent => NilmPower::Apparent,
            Power::Factor => NilmPower::Factor,
        };
        NilmFeatures { period: self.period, power }
    }
}

impl Transform for AggregateSignal {
    fn check(&self) -> Result<(), BadParameter> {
        BadParameter::unless(self.period > 0, "period", &self.period, "at least 1")
    }

    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        match input {
            FieldType::Tensor { dtype: DType::F64, dims }
                if dims.len() == 2 && dims[0].is_none_or(|rows| rows == 2) =>
            {
                let periods = dims[1].map(|samples| self.features().periods(samples));
                if periods == Some(0) {
                    return Err(Needs(format!("windows of at least a period, {} samples", self.period)));
                }
                Ok(FieldType::Tensor { dtype: DType::F64, dims: vec![Some(NilmFeatures::ROWS), periods] })
            }
            _ => Err(Needs(WINDOW.to_owned())),
        }
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, scope: &mut Scope) -> Result<(), StepError> {
        let view = tensor(input, WINDOW)?;
        let unfit = || StepError::Unfit { found: view.spec, expected: WINDOW };
        let &[2, samples] = view.spec.shape.dims() else { return Err(unfit()) };
        let (voltage, current) = view.elements_or_copy(scope.scratch()).ok_or_else(unfit)?.split_at(samples);
        let spec = TensorSpec::new(DType::F64, &[NilmFeatures::ROWS, self.features().periods(samples)]);
        let mut slot = output.tensor(spec)?;
        let unaligned = StepError::Unfit { found: spec, expected: "an output aligned for float64" };
        Ok(self.features().run(voltage, current, slot.elements_mut().ok_or(unaligned)?)?)
    }
}
