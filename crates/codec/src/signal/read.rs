//! Reading recordings of all formats.

use std::fmt;

use super::raw::RawElement;
use super::{csv, hdf5, raw};
use crate::memory::{self, MemoryGate};
use crate::{Error, Result};

/// The format of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SignalFormat {
    /// HDF5 if it starts like one, otherwise CSV; raw bytes look like nothing, so they must be asked for.
    #[default]
    Auto,
    /// HDF5: each channel a data set of one dimension.
    Hdf5,
    /// Delimited text: each channel a column.
    Csv,
    /// Numbers and nothing else, channel after channel of each instant.
    Raw,
}

/// Which channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Channel {
    /// By its index, from 0: a column of CSV, or a channel of raw numbers.
    Number(usize),
    /// By its name: a data set of HDF5 (with `/` between groups), or a column of CSV that has a header.
    Name(String),
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

/// What to read of a recording; the default is what CREAM's files have: `voltage` and `current1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalOptions {
    /// Its format.
    pub format: SignalFormat,
    /// Which channels, in the order in which they are given.
    pub channels: Vec<Channel>,
    /// Raw numbers: of what type they are.
    pub raw_element: RawElement,
    /// Raw numbers: how many channels the file has.
    pub raw_channels: usize,
    /// The most samples, all chosen channels together; 2^28 unless set (CREAM's hours have 46,080,000).
    pub max_samples: usize,
}

impl Default for SignalOptions {
    fn default() -> Self {
        Self {
            format: SignalFormat::Auto,
            channels: vec![Channel::Name("voltage".to_owned()), Channel::Name("current1".to_owned())],
            raw_element: RawElement::F64,
            raw_channels: 2,
            max_samples: 1 << 28,
        }
    }
}

/// The chosen channels of a recording, all equally long.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// Their samples.
    pub channels: Vec<Vec<f64>>,
    /// What each must be multiplied by to be in volts or amperes: HDF5's attribute `calibration_factor`, otherwise 1.
    pub factors: Vec<f64>,
}

impl Recording {
    /// How many samples a channel has.
    pub fn samples(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }

    pub(super) fn uncalibrated(channels: Vec<Vec<f64>>) -> Self {
        Self { factors: vec![1.0; channels.len()], channels }
    }
}

/// What to do about a recording with gaps or faults.
pub(super) const FINITE_HINT: &str = "fill gaps and leave out faults before, or skip the file (`--on-error skip`): one such number spoils all that is computed of it";

/// Reads the chosen channels of a recording. All numbers are finite: what is not is an error that names its position.
pub fn read(bytes: &[u8], options: &SignalOptions) -> Result<Recording> {
    read_within(bytes, options, &mut |_| true)
}

/// The same, where `gate` is asked for the memory that it takes before anything is read.
pub fn read_within(bytes: &[u8], options: &SignalOptions, gate: MemoryGate<'_>) -> Result<Recording> {
    let Some(first) = options.channels.first() else {
        return Err(Error::usage("no channel was requested", "at least one channel", "none"));
    };
    let format = match options.format {
        SignalFormat::Auto if hdf5::is_hdf5(bytes) => SignalFormat::Hdf5,
        format => format,
    };
    let recording = match format {
        SignalFormat::Hdf5 => hdf5::read(bytes, options, gate)?,
        SignalFormat::Raw => raw::read(bytes, options, gate)?,
        SignalFormat::Auto | SignalFormat::Csv => csv::read(bytes, options, gate)?,
    };
    let samples = recording.samples();
    for (channel, name) in recording.channels.iter().zip(&options.channels) {
        if let Some(index) = first_not_finite(channel) {
            let feature =
                format!("a number that is not finite, `{}` in channel `{name}` at sample `{index}`,", channel[index]);
            return Err(Error::unsupported("signal", feature, FINITE_HINT));
        }
    }
    for (channel, name) in recording.channels.iter().zip(&options.channels) {
        if channel.len() != samples {
            let problem =
                format!("channel `{name}` has `{}` samples, but channel `{first}` has `{samples}`", channel.len());
            return Err(Error::format("signal", problem));
        }
    }
    Ok(recording)
}

/// Where the first number is that is not finite. Looked for in blocks, which vector instructions can do.
fn first_not_finite(samples: &[f64]) -> Option<usize> {
    const BLOCK: usize = 1024;
    let block =
        samples.chunks(BLOCK).position(|block| block.iter().fold(false, |found, value| found | !value.is_finite()))?;
    samples.iter().skip(block * BLOCK).position(|value| !value.is_finite()).map(|index| block * BLOCK + index)
}

/// `Ok` if there is memory for `samples` in each of `channels`, and `beside` more bytes.
pub(super) fn ask_for(samples: u64, channels: usize, beside: u64, gate: MemoryGate<'_>) -> Result<()> {
    let bytes = samples.saturating_mul(channels as u64).saturating_mul(size_of::<f64>() as u64).saturating_add(beside);
    memory::ask(gate, usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// `Ok` if `samples` in each of the chosen channels are within the limit.
pub(super) fn check_limit(samples: u64, options: &SignalOptions) -> Result<()> {
    let found = samples.saturating_mul(options.channels.len() as u64);
    let limit = options.max_samples as u64;
    if found > limit { Err(Error::Limit { what: "samples of a recording", found, limit }) } else { Ok(()) }
}
