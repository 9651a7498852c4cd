//! WAV: PCM of 8 to 32 bit and floats of 32 bit, in Microsoft's RIFF.
//!
//! ```text
//! "RIFF" size "WAVE"   then chunks, each a name of four letters, its size (little endian) and its bytes, filled up to an even number:
//! "fmt "               tag (1: whole numbers, 3: floats, 0xfffe: as the tag 24 bytes further), channels, rate, …, bits
//! "data"               the samples, channel after channel of each instant
//! ```

use super::AudioFormat;
use super::decode::{AudioHeader, Sink};
use crate::{Error, Result};

const FORMAT: &str = "wav";

/// What the samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sample {
    U8,
    I16,
    I24,
    I32,
    F32,
}

impl Sample {
    const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::I16 => 2,
            Self::I24 => 3,
            Self::I32 | Self::F32 => 4,
        }
    }
}

/// The audio of a file, before it is decoded.
struct Wave<'a> {
    sample: Sample,
    channels: usize,
    rate_hz: u32,
    /// The samples in the file.
    data: &'a [u8],
    /// How many bytes of them the file says there are, where it does.
    claimed: Option<usize>,
    /// Where they begin.
    offset: usize,
}

/// The most channels that are decoded, as FLAC has them.
const CHANNELS_MAX: usize = 8;

fn number(bytes: &[u8], at: usize, count: usize) -> u32 {
    bytes[at..at + count].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn parse(bytes: &[u8], start: usize) -> Result<Wave<'_>> {
    let mut at = start + 12;
    let mut format = None;
    while let Some(header) = bytes.get(at..at + 8) {
        let (name, size) = (&header[..4], number(header, 4, 4) as usize);
        let content = &bytes[at + 8..];
        let content = &content[..content.len().min(size)];
        if name == b"fmt " {
            format = Some(samples(content, at)?);
        }
        if name == b"data" {
            let (sample, channels, rate_hz) =
                format.ok_or_else(|| Error::format_at(FORMAT, "the samples come before `fmt `", at))?;
            // What was written into a pipe does not know how long it became.
            let claimed = (!matches!(size, 0 | 0xffff_ffff)).then_some(size);
            let data = if claimed.is_some() { content } else { &bytes[at + 8..] };
            return Ok(Wave { sample, channels, rate_hz, data, claimed, offset: at + 8 });
        }
        at = at.saturating_add(8).saturating_add(size).saturating_add(size % 2);
    }
    Err(Error::truncated(FORMAT, "it has no chunk `data`", bytes.len()))
}

/// What a chunk `fmt ` says of the samples, their channels and rate.
fn samples(content: &[u8], at: usize) -> Result<(Sample, usize, u32)> {
    if content.len() < 16 {
        return Err(Error::truncated(FORMAT, "the chunk `fmt ` is too short", at));
    }
    let (mut tag, channels, bits) = (number(content, 0, 2), number(content, 2, 2) as usize, number(content, 14, 2));
    if tag == 0xfffe && content.len() >= 26 {
        tag = number(content, 24, 2);
    }
    let sample = match (tag, bits) {
        (1, 8) => Sample::U8,
        (1, 16) => Sample::I16,
        (1, 24) => Sample::I24,
        (1, 32) => Sample::I32,
        (3, 32) => Sample::F32,
        _ => {
            let feature = format!("samples of kind {tag} and {bits} bit");
            return Err(Error::unsupported(FORMAT, feature, "convert the file to FLAC, or to WAV of 16 bit"));
        }
    };
    let rate_hz = number(content, 4, 4);
    if !(1..=CHANNELS_MAX).contains(&channels) || rate_hz == 0 {
        return Err(Error::format_at(FORMAT, format!("it has {channels} channels at {rate_hz} Hz"), at));
    }
    Ok((sample, channels, rate_hz))
}

impl Wave<'_> {
    /// Samples per channel in the file.
    fn instants(&self) -> usize {
        self.data.len() / (self.sample.bytes() * self.channels)
    }

    /// An error where samples are missing at the end.
    fn cut(&self) -> Option<Error> {
        let claimed = self.claimed.filter(|claimed| *claimed > self.data.len())?;
        let problem = format!("it ends after `{}` of `{claimed}` bytes of samples", self.data.len());
        Some(Error::truncated(FORMAT, problem, self.offset + self.data.len()))
    }
}

/// What the file says whose RIFF starts at `start` of `bytes` (after a tag).
pub(super) fn inspect(bytes: &[u8], start: usize) -> Result<AudioHeader> {
    let wave = parse(bytes, start)?;
    let claimed = wave.claimed.map(|bytes| bytes / (wave.sample.bytes() * wave.channels));
    let samples = Some(claimed.unwrap_or_else(|| wave.instants()) as u64);
    let (rate_hz, channels, damage) = (wave.rate_hz, wave.channels, wave.cut());
    Ok(AudioHeader { format: AudioFormat::Wav, rate_hz, channels, samples, damage })
}

/// Decodes the file whose RIFF starts at `start` of `bytes` (after a tag).
pub(super) fn decode(bytes: &[u8], start: usize, sink: &mut Sink<'_>) -> Result<()> {
    let wave = parse(bytes, start)?;
    let count = wave.instants() * wave.channels;
    sink.begin(wave.rate_hz, wave.channels, Some(wave.instants() as u64))?;
    let whole = &wave.data[..count * wave.sample.bytes()];
    // In pieces of complete frames, so that downmixing takes no more memory than necessary.
    for piece in whole.chunks(wave.sample.bytes() * wave.channels * (1 << 15)) {
        sink.extend(piece.len() / wave.sample.bytes(), |samples| to_int16(wave.sample, piece, samples))?;
    }
    wave.cut().map_or(Ok(()), Err)
}

fn to_int16(sample: Sample, from: &[u8], to: &mut [i16]) {
    let from = from.chunks_exact(sample.bytes());
    for (to, bytes) in to.iter_mut().zip(from) {
        *to = match (sample, bytes) {
            (Sample::U8, [byte]) => (i16::from(*byte) - 128) << 8,
            // The upper 16 bit, whatever comes below.
            (Sample::I16, [low, high]) | (Sample::I24, [_, low, high]) | (Sample::I32, [_, _, low, high]) => {
                i16::from_le_bytes([*low, *high])
            }
            (Sample::F32, &[a, b, c, d]) => (f32::from_le_bytes([a, b, c, d]) * 32768.0).round_ties_even() as i16,
            _ => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::{AudioOptions, Mix, decode as decode_any};

    fn chunk(name: &[u8], content: &[u8]) -> Vec<u8> {
        let mut chunk = [name, &(content.len() as u32).to_le_bytes(), content].concat();
        chunk.resize(chunk.len().next_multiple_of(2), 0);
        chunk
    }

    fn file(tag: u16, channels: u16, bits: u16, data: &[u8]) -> Vec<u8> {
        let block = channels * bits / 8;
        let format = [
            &tag.to_le_bytes()[..],
            &channels.to_le_bytes(),
            &8000_u32.to_le_bytes(),
            &(8000 * u32::from(block)).to_le_bytes(),
            &block.to_le_bytes(),
            &bits.to_le_bytes(),
        ]
        .concat();
        let chunks = [chunk(b"fmt ", &format), chunk(b"LIST", b"odd"), chunk(b"data", data)].concat();
        [&b"RIFF"[..], &(4 + chunks.len() as u32).to_le_bytes(), b"WAVE", &chunks].concat()
    }

    fn samples(file: &[u8], allow_truncated: bool) -> Result<(Vec<i16>, usize)> {
        let mut samples = Vec::new();
        let options = AudioOptions { mix: Mix::AsStored, allow_truncated, ..AudioOptions::default() };
        let info = decode_any(file, &options, &mut samples)?;
        assert_eq!((info.format, info.rate_hz), (AudioFormat::Wav, 8000));
        Ok((samples, info.channels))
    }

    #[test]
    fn samples_of_any_depth_become_16_bit() {
        assert_eq!(samples(&file(1, 1, 8, &[0, 128, 255]), false).unwrap(), (vec![-32768, 0, 32512], 1));
        assert_eq!(samples(&file(1, 2, 16, &[1, 0, 255, 255]), false).unwrap(), (vec![1, -1], 2));
        assert_eq!(samples(&file(1, 1, 24, &[9, 1, 0, 9, 255, 255]), false).unwrap(), (vec![1, -1], 1));
        assert_eq!(samples(&file(1, 1, 32, &[9, 9, 1, 0]), false).unwrap(), (vec![1], 1));
        let floats: Vec<u8> = [0.5_f32, -2.0, 1.5 / 32768.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(samples(&file(3, 1, 32, &floats), false).unwrap(), (vec![16384, -32768, 2], 1));
        let mut endless = file(1, 1, 16, &[7, 0]);
        let size = endless.len() - 6;
        endless[size..size + 4].fill(255);
        assert_eq!(samples(&endless, false).unwrap().0, [7]);
    }

    #[test]
    fn what_is_missing_or_unknown_is_an_error() {
        let whole = file(1, 1, 16, &[1, 0, 2, 0, 3, 0]);
        let short = &whole[..whole.len() - 3];
        assert!(samples(short, false).unwrap_err().is_truncated());
        assert_eq!(samples(short, true).unwrap().0, [1]);
        for cut in 0..whole.len() - 6 {
            assert!(samples(&whole[..cut], false).is_err(), "{cut}");
        }
        for unknown in
            [file(2, 1, 16, &[0, 0]), file(1, 1, 12, &[0, 0]), file(1, 0, 16, &[0, 0]), file(1, 9, 16, &[0, 0])]
        {
            assert!(samples(&unknown, true).is_err());
        }
    }
}
