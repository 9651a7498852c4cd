//! Decoding audio of all formats.

use super::{AudioFormat, flac, mp3, wav};
use crate::memory::{self, MemoryGate};
use crate::{Error, Result};

/// What becomes of several channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mix {
    /// One channel: their mean.
    #[default]
    Mono,
    /// All of them, sample by sample: `[samples, channels]`.
    AsStored,
}

/// What a decode gives; the default is one channel, and an error where data is missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AudioOptions {
    /// What becomes of several channels.
    pub mix: Mix,
    /// Give what precedes missing or damaged data, and say so in [`AudioInfo`]; off unless switched on.
    pub allow_truncated: bool,
    /// The most samples, all channels together, that are decoded; 2^28 unless set, which is 50 minutes of CD audio. Checked
    /// against the header and again while decoding.
    pub max_samples: usize,
}

impl Default for AudioOptions {
    fn default() -> Self {
        Self { mix: Mix::Mono, allow_truncated: false, max_samples: 1 << 28 }
    }
}

/// What was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AudioInfo {
    /// The format.
    pub format: AudioFormat,
    /// Samples per second and channel.
    pub rate_hz: u32,
    /// Channels in the output.
    pub channels: usize,
    /// Channels in the file.
    pub stored_channels: usize,
    /// Whether data was missing, so that this is only the beginning.
    pub partial: bool,
}

/// What a file says about its audio, without decoding it.
#[derive(Debug)]
pub struct AudioHeader {
    /// The format.
    pub format: AudioFormat,
    /// Samples per second and channel.
    pub rate_hz: u32,
    /// Channels in the file.
    pub channels: usize,
    /// Samples per channel; `None` if only decoding can determine it.
    pub samples: Option<u64>,
    /// What is wrong with the frames of an MP3, whose headers are all looked at.
    pub damage: Option<Error>,
}

/// Reads what a file says about its audio. For an MP3 the headers of all frames are read, for a FLAC that of the file.
pub fn inspect(bytes: &[u8]) -> Result<AudioHeader> {
    let (format, start) = AudioFormat::detect(bytes)?;
    match format {
        AudioFormat::Flac => flac::inspect(bytes, start),
        AudioFormat::Mp3 => mp3::inspect(bytes, start),
        AudioFormat::Wav => wav::inspect(bytes, start),
    }
}

/// Decodes a file into `samples`, whose former content is dropped: channel after channel of each instant. After an error there
/// are none.
pub fn decode(bytes: &[u8], options: &AudioOptions, samples: &mut Vec<i16>) -> Result<AudioInfo> {
    decode_within(bytes, options, samples, &mut |_| true)
}

/// The same, where `gate` is asked for memory as the samples become more: a file of a few KB may hold hours.
pub fn decode_within(
    bytes: &[u8],
    options: &AudioOptions,
    samples: &mut Vec<i16>,
    gate: MemoryGate<'_>,
) -> Result<AudioInfo> {
    let result = decode_some(bytes, options, samples, gate);
    if result.is_err() {
        samples.clear();
    }
    result
}

fn decode_some(
    bytes: &[u8],
    options: &AudioOptions,
    samples: &mut Vec<i16>,
    gate: MemoryGate<'_>,
) -> Result<AudioInfo> {
    samples.clear();
    let (format, start) = AudioFormat::detect(bytes)?;
    let mut sink = Sink { samples, options, decoded: 0, channels: 0, rate_hz: 0, gate, granted: 0 };
    let result = match format {
        AudioFormat::Flac => flac::decode(bytes, start, &mut sink),
        AudioFormat::Mp3 => mp3::decode(bytes, start, &mut sink),
        AudioFormat::Wav => wav::decode(bytes, start, &mut sink),
    };
    let partial = match result {
        Ok(()) => false,
        // A limit is no damage, and where nothing was decoded there is nothing to accept.
        Err(Error::Format { .. }) if options.allow_truncated && sink.decoded > 0 => true,
        Err(error) => return Err(error),
    };
    let (stored_channels, rate_hz) = (sink.channels, sink.rate_hz);
    let channels = if options.mix == Mix::Mono { 1 } else { stored_channels };
    Ok(AudioInfo { format, rate_hz, channels, stored_channels, partial })
}

/// Where decoders put their samples: counts, limits and mixes them.
pub(super) struct Sink<'a> {
    samples: &'a mut Vec<i16>,
    options: &'a AudioOptions,
    decoded: usize,
    channels: usize,
    rate_hz: u32,
    gate: MemoryGate<'a>,
    /// For how many samples memory was granted.
    granted: usize,
}

/// Memory is requested in pieces of this many samples, so that the requests cost little compared with decoding.
const GRANT_SAMPLES: usize = 1 << 18;

impl Sink<'_> {
    /// The header is read: `expected` samples per channel, where it says so.
    pub(super) fn begin(&mut self, rate_hz: u32, channels: usize, expected: Option<u64>) -> Result<()> {
        self.channels = channels;
        self.rate_hz = rate_hz;
        if let Some(expected) = expected {
            self.check(expected.saturating_mul(channels as u64))?;
        }
        Ok(())
    }

    /// How many samples were decoded, all channels together.
    pub(super) fn decoded(&self) -> usize {
        self.decoded
    }

    fn check(&self, found: u64) -> Result<()> {
        let limit = self.options.max_samples as u64;
        if found > limit { Err(Error::Limit { what: "audio samples", found, limit }) } else { Ok(()) }
    }

    /// Makes space for `count` samples (all channels together) if the limit allows, lets `fill` write them, and mixes.
    pub(super) fn extend(&mut self, count: usize, fill: impl FnOnce(&mut [i16])) -> Result<()> {
        self.check(self.decoded as u64 + count as u64)?;
        self.decoded += count;
        let start = self.samples.len();
        if start + count > self.granted {
            // A buffer that grows takes twice of what it holds at the most.
            let more =
                (start + count - self.granted).max(self.granted).max(GRANT_SAMPLES.min(self.options.max_samples));
            memory::ask(self.gate, more * size_of::<i16>())?;
            self.granted += more;
        }
        memory::reserve(self.samples, count)?;
        self.samples.resize(start + count, 0);
        let fresh = &mut self.samples[start..];
        fill(fresh);
        if self.options.mix == Mix::Mono && self.channels > 1 {
            let mixed = mix_down(fresh, self.channels);
            self.samples.truncate(start + mixed);
        }
        Ok(())
    }
}

/// The mean of each `channels` samples, in place at the front; how many there are.
fn mix_down(samples: &mut [i16], channels: usize) -> usize {
    let count = samples.len() / channels;
    for index in 0..count {
        let instant = &samples[index * channels..][..channels];
        let sum: i32 = instant.iter().map(|&sample| i32::from(sample)).sum();
        samples[index] = match channels {
            // Half the sum; where that is odd and a half, one more makes it even.
            2 => ((sum + ((sum >> 1) & 1)) >> 1) as i16,
            _ => (f64::from(sum) / channels as f64).round_ties_even() as i16,
        };
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_averaged_and_rounded_to_even() {
        let cases = [([1, 2], 2), ([3, 2], 2), ([-1, -2], -2), ([-3, -2], -2), ([4, 2], 3), ([-4, -2], -3)];
        for (instant, mean) in cases.into_iter().chain([([i16::MIN; 2], i16::MIN), ([i16::MAX; 2], i16::MAX)]) {
            let mut samples = instant;
            assert_eq!(mix_down(&mut samples, 2), 1);
            assert_eq!(samples[0], mean, "{instant:?}");
        }
        let mut samples = [1, 2, 3, -1, -1, 0];
        assert_eq!(mix_down(&mut samples, 3), 2);
        assert_eq!(samples[..2], [2, -1]);
    }
}
