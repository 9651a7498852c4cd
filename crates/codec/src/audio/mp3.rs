//! MP3, decoded by nanomp3.
//!
//! A decoder for players hides damage: it looks for the next good frames and continues. This module therefore parses the
//! headers of all frames first, which costs little, and passes on only complete frames.

use nanomp3::{Channels, SliceReader};

use super::AudioFormat;
use super::decode::{AudioHeader, Sink};
use crate::{Error, Result};

const FORMAT: &str = "mp3";

/// What the frames of the MPEG audio say that starts at `start` of `bytes` (after a tag).
pub(super) fn inspect(bytes: &[u8], start: usize) -> Result<AudioHeader> {
    let whole = walk(bytes, start)?;
    let reader = SliceReader::<f32>::new(&bytes[whole.start..whole.end]);
    let channels = channels(&reader).ok_or_else(|| no_whole_frame(start))?;
    let (rate_hz, samples) = (reader.sample_rate(), reader.total_samples());
    Ok(AudioHeader { format: AudioFormat::Mp3, rate_hz, channels, samples, damage: whole.damage })
}

fn channels(reader: &SliceReader<'_, f32>) -> Option<usize> {
    Some(match reader.channels()? {
        Channels::Mono => 1,
        Channels::Stereo => 2,
    })
}

fn no_whole_frame(start: usize) -> Error {
    Error::format_at(FORMAT, "it holds no complete frame", start)
}

/// Decodes the MPEG audio that starts at `start` of `bytes` (after a tag).
pub(super) fn decode(bytes: &[u8], start: usize, sink: &mut Sink<'_>) -> Result<()> {
    let whole = walk(bytes, start)?;
    let mut reader = SliceReader::<f32>::new(&bytes[whole.start..whole.end]);
    let Some(channels) = channels(&reader) else {
        return Err(whole.damage.unwrap_or_else(|| no_whole_frame(start)));
    };
    // Without a VBR header the length is counted, not claimed; with one it may be anything, so it is no reason to refuse.
    let claimed = reader.has_vbr_tag().then(|| reader.total_samples()).flatten();
    sink.begin(reader.sample_rate(), channels, if claimed.is_some() { None } else { reader.total_samples() })?;
    loop {
        match reader.read_frame() {
            Ok(Some(floats)) => sink.extend(floats.len(), |samples| to_int16(floats, samples))?,
            Ok(None) => break,
            Err(_) => {
                let feature = "audio whose sample rate or number of channels changes midway";
                return Err(Error::unsupported(FORMAT, feature, "convert the file with `ffmpeg`"));
            }
        }
    }
    if let Some(error) = whole.damage {
        return Err(error);
    }
    let found = (sink.decoded() / channels) as u64;
    match claimed {
        Some(claimed) if found < claimed => {
            let problem = format!("it ends after `{found}` of `{claimed}` samples");
            Err(Error::truncated(FORMAT, problem, whole.end))
        }
        _ if found == 0 => Err(Error::format_at(FORMAT, "no frame of it can be decoded", start)),
        _ => Ok(()),
    }
}

/// Where the first frame is, if there is one: at `start`, or where two frames follow each other.
pub(super) fn first_frame(bytes: &[u8], start: usize) -> Option<usize> {
    if frame_at(bytes, start).is_some() { Some(start) } else { find_pair(bytes, start) }
}

/// This many bytes before the first frame, or after the last, may be something else: the rest of a frame where a stream was cut, padding, an
/// unknown tag. More must have been audio.
const OTHER_BYTES_MAX: usize = 4096;

/// The extent of the complete frames.
struct Whole {
    start: usize,
    end: usize,
    /// What is wrong after it.
    damage: Option<Error>,
}

fn walk(bytes: &[u8], start: usize) -> Result<Whole> {
    let bytes = nanomp3::strip_trailing_tags(bytes);
    let none = || Error::format_at(FORMAT, "it holds no frame", start);
    let begins = first_frame(bytes, start).ok_or_else(none)?;
    if begins - start > OTHER_BYTES_MAX {
        let problem = format!("`{}` bytes before the first frame are not a frame", begins - start);
        return Err(Error::format_at(FORMAT, problem, start));
    }
    let start = begins;
    let first = frame_at(bytes, start).ok_or_else(none)?;
    let mut end = start;
    let mut damage = None;
    while let Some(frame) = frame_at(bytes, end).filter(|frame| frame.follows(&first)) {
        // The length of a frame of free format is not in its header; the decoder finds it, and is trusted with the rest.
        let Some(length) = frame.length else { return Ok(Whole { start, end: bytes.len(), damage: None }) };
        if length > bytes.len() - end {
            let problem = format!("the last frame has only `{}` of `{length}` bytes", bytes.len() - end);
            damage = Some(Error::truncated(FORMAT, problem, end));
            break;
        }
        end += length;
    }
    // A little that follows the last frame and holds no more frames is left alone.
    if damage.is_none()
        && let Some(next) = find_pair(bytes, end)
    {
        let problem = format!("`{}` bytes between two frames are not a frame", next - end);
        damage = Some(Error::format_at(FORMAT, problem, end));
    } else if damage.is_none() && bytes.len() - end > OTHER_BYTES_MAX {
        let problem = format!("`{}` bytes after the last frame are not a frame", bytes.len() - end);
        damage = Some(Error::format_at(FORMAT, problem, end));
    }
    Ok(Whole { start, end, damage })
}

/// The first offset from `start` on at which a frame is followed by another, or by the end.
fn find_pair(bytes: &[u8], start: usize) -> Option<usize> {
    (start..bytes.len()).find(|&offset| {
        let Some(frame) = frame_at(bytes, offset) else { return false };
        let Some(next) = frame.length.map(|length| offset + length) else { return false };
        next == bytes.len() || frame_at(bytes, next).is_some_and(|next| next.follows(&frame))
    })
}

/// What the header of a frame says (ISO 11172-3, section 2.4.1.3, and 13818-3).
struct Frame {
    header: [u8; 4],
    /// Its length in bytes, unless it is of free format.
    length: Option<usize>,
}

impl Frame {
    /// Whether it can follow `other` in one stream: the same version, layer and sample rate.
    fn follows(&self, other: &Self) -> bool {
        (self.header[1] ^ other.header[1]) & 0xfe == 0 && (self.header[2] ^ other.header[2]) & 0x0c == 0
    }
}

/// Bit rates in kbit/s by index: MPEG-1 layers I, II, III; then MPEG-2 (and 2.5) layer I, and layers II and III.
const KILOBITS: [[usize; 15]; 5] = [
    [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

fn frame_at(bytes: &[u8], offset: usize) -> Option<Frame> {
    let header: [u8; 4] = *bytes.get(offset..)?.first_chunk()?;
    let (version, layer) = ((header[1] >> 3) & 3, (header[1] >> 1) & 3);
    let synchronized = header[0] == 0xff && header[1] & 0xe0 == 0xe0;
    if !synchronized || version == 1 || layer == 0 {
        return None;
    }
    let layer = 4 - usize::from(layer);
    let first_version = version == 3;
    let row = if first_version { layer - 1 } else { 3 + usize::from(layer > 1) };
    let kilobits = *KILOBITS[row].get(usize::from(header[2] >> 4))?;
    let divisor = match version {
        3 => 1,
        2 => 2,
        _ => 4,
    };
    let rate_hz = [44_100, 48_000, 32_000].get(usize::from((header[2] >> 2) & 3))? / divisor;
    let padding = usize::from((header[2] >> 1) & 1);
    let length = match layer {
        1 => (12_000 * kilobits / rate_hz + padding) * 4,
        3 if !first_version => 72_000 * kilobits / rate_hz + padding,
        _ => 144_000 * kilobits / rate_hz + padding,
    };
    Some(Frame { header, length: (kilobits > 0).then_some(length) })
}

/// Floats of ±1 to 16 bit: rounded to nearest, ties to even, clamped.
fn to_int16(floats: &[f32], samples: &mut [i16]) {
    /// 1.5 × 2^23: added to a number below 2^22, it leaves the rounded whole number in the lowest bits of the sum. Rounding
    /// so needs no call of a function where the machine has no instruction for it, and becomes vector code.
    const ROUND: f32 = 12_582_912.0;
    for (sample, float) in samples.iter_mut().zip(floats) {
        let scaled = (float * 32768.0).clamp(-32768.0, 32767.0);
        *sample = (scaled + ROUND).to_bits().wrapping_sub(ROUND.to_bits()) as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_rounded_to_even_and_clamped() {
        let floats = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.499, -32768.0, 32767.4, 40000.0, -40000.0];
        let floats: Vec<f32> = floats.iter().map(|float| float / 32768.0).collect();
        let mut samples = vec![7; floats.len()];
        to_int16(&floats, &mut samples);
        assert_eq!(samples, [0, 0, 2, 2, 0, -2, -2, 0, -32768, 32767, 32767, -32768]);
    }
}
