//! FLAC: metadata and frames are found here, the frames' samples are decoded by Symphonia.
//!
//! Symphonia sees one frame at a time and nothing else of the file: tags, pictures and seek tables cannot do harm then, and
//! a broken block or frame is named with its offset.

use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia_bundle_flac::FlacDecoder;
use symphonia_core::audio::{Audio, GenericAudioBufferRef};
use symphonia_core::codecs::audio::well_known::CODEC_ID_FLAC;
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia_core::errors::Error as SymphoniaError;
use symphonia_core::packet::PacketRef;
use symphonia_core::units::{Duration, Timestamp};

use super::AudioFormat;
use super::decode::{AudioHeader, Sink};
use crate::{Error, Result};

mod frames;

use frames::FrameHeader;

const FORMAT: &str = "flac";
pub(super) const MARKER: &[u8; 4] = b"fLaC";
/// The block type of the stream information, and how long it is (RFC 9639, section 8.2).
const STREAM_INFO_TYPE: u8 = 0;
const STREAM_INFO_BYTES: usize = 34;
const BLOCK_HEADER_BYTES: usize = 4;
/// The least and most samples of a frame that the stream information can say, and Symphonia decodes.
const BLOCK_SAMPLES: [u16; 2] = [16, 65_535];
/// Deeper samples there are not, and their difference is one bit more than Symphonia reads.
const WIDEST_BITS: u32 = 32;
/// Of a block header: "this is the last one".
const LAST_BLOCK: u8 = 0x80;
const HINT: &str = "convert the file with `flac`";

/// Whether these bytes begin with a frame, as a FLAC does that has lost all before.
pub(super) fn begins_with_frame(bytes: &[u8]) -> bool {
    frames::read_header(bytes).is_some()
}

/// What the FLAC that starts at `start` of `bytes` says of itself, or its first frame does.
pub(super) fn inspect(bytes: &[u8], start: usize) -> Result<AudioHeader> {
    let (stated, frames_start) = read_metadata(bytes, start)?;
    let info = stream_info(stated, frames::read_header(&bytes[frames_start..]), frames_start)?;
    Ok(AudioHeader {
        format: AudioFormat::Flac,
        rate_hz: info.rate_hz,
        channels: info.channels,
        samples: (info.samples > 0).then_some(info.samples),
        damage: None,
    })
}

/// What is known of the stream: as it is stated, or as the first frame has it.
fn stream_info(stated: Option<StreamInfo>, first: Option<FrameHeader>, frames_start: usize) -> Result<StreamInfo> {
    match (stated, first) {
        (Some(info), _) => Ok(info),
        (None, Some(first)) => StreamInfo::of_frame(&first, frames_start),
        (None, None) => {
            let problem = "it has no stream information, and no frame follows the metadata";
            Err(Error::format_at(FORMAT, problem, frames_start))
        }
    }
}

/// Decodes the FLAC that starts at `start` of `bytes`.
pub(super) fn decode(bytes: &[u8], start: usize, sink: &mut Sink<'_>) -> Result<()> {
    let (stated, frames_start) = read_metadata(bytes, start)?;
    let frames = nanomp3::strip_trailing_tags(&bytes[frames_start..]);
    let first = frames::read_header(frames);
    let info = stream_info(stated, first, frames_start)?;
    sink.begin(info.rate_hz, info.channels, (info.samples > 0).then_some(info.samples))?;
    if frames.is_empty() {
        let problem = "it ends after the metadata, before the first frame";
        return if info.samples == 0 { Ok(()) } else { Err(Error::truncated(FORMAT, problem, frames_start)) };
    }
    let mut parameters = AudioCodecParameters::new();
    parameters.for_codec(CODEC_ID_FLAC).with_extra_data(info.for_symphonia().into());
    let mut decoder = FlacDecoder::try_new(&parameters, &AudioDecoderOptions::default())
        .map_err(|error| failure(error, "the stream information cannot be used", start))?;
    // Without stream information it may be the middle of a file, whose numbers go on.
    let number = first.filter(|_| stated.is_none()).map_or(0, |first| first.number);
    decode_frames(&bytes[..frames_start + frames.len()], frames_start, &info, number, &mut decoder, sink)
}

/// Decodes the frames from `start` to the end; `first_number` is that of the first.
fn decode_frames(
    bytes: &[u8],
    start: usize,
    info: &StreamInfo,
    first_number: u64,
    decoder: &mut FlacDecoder,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let (mut instants, mut count, mut offset) = (0_u64, 0_u64, start);
    while offset < bytes.len() {
        let rest = &bytes[offset..];
        let found = frames::read_header(rest).and_then(|header| Some((header, frames::length(rest, &header)?)));
        let Some((header, length)) = found else { return Err(lost(bytes, offset, instants, info)) };
        check(&header, info, offset, count == 0)?;
        let (by_frames, by_samples) = (header.number == first_number + count, header.number == first_number + instants);
        // Streams of old numbered frames by samples without saying so; the sizes of their blocks vary (libFLAC does this, too).
        let either = by_frames || info.sizes_vary && by_samples;
        let valid = if header.numbered_by_samples { by_samples } else { either };
        if !valid {
            let problem =
                format!("a frame is missing: after `{count}` frames of `{instants}` samples comes `{}`", header.number);
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        let packet = PacketRef::new(0, Timestamp::new(0), Duration::new(header.samples), &rest[..length]);
        // A frame with the right checksum may hold numbers that overflow. Where arithmetic is checked, Symphonia panics.
        catch_unwind(AssertUnwindSafe(|| decoder.decode_ref(&packet).map(drop)))
            .map_err(|_| Error::format_at(FORMAT, "a frame cannot be decoded: its samples overflow", offset))?
            .map_err(|error| failure(error, "a frame cannot be decoded", offset))?;
        let GenericAudioBufferRef::S32(planes) = decoder.last_decoded() else {
            return Err(Error::format_at(FORMAT, "a frame is not of integers", offset));
        };
        sink.extend(planes.frames() * info.channels, |samples| {
            for (channel, plane) in (0..info.channels).filter_map(|channel| Some((channel, planes.plane(channel)?))) {
                for (sample, wide) in samples[channel..].iter_mut().step_by(info.channels).zip(plane) {
                    // The samples stand at the upper end of 32 bit, however deep they are.
                    *sample = (wide >> 16) as i16;
                }
            }
        })?;
        instants += header.samples;
        count += 1;
        offset += length;
    }
    if info.samples > 0 && instants != info.samples {
        let problem = format!("it has `{instants}` samples, but its header says `{}`", info.samples);
        let truncated = instants < info.samples;
        return Err(Error::Format {
            format: FORMAT,
            problem: problem.into(),
            offset: Some(offset),
            truncated,
            source: None,
        });
    }
    Ok(())
}

/// No whole frame at `offset`: damage if another follows, else the end is missing.
fn lost(bytes: &[u8], offset: usize, instants: u64, info: &StreamInfo) -> Error {
    let next = offset + 1 + frames::next_header(&bytes[offset + 1..]);
    if next < bytes.len() {
        let problem = format!("a frame is damaged, after `{instants}` samples");
        return Error::format_at(FORMAT, problem, offset);
    }
    let of = if info.samples > 0 { format!(" of `{}`", info.samples) } else { String::new() };
    let problem = format!("`{}` bytes are not a complete frame, after `{instants}`{of} samples", bytes.len() - offset);
    Error::truncated(FORMAT, problem, offset)
}

/// `Ok` if a frame is what the stream is.
fn check(header: &FrameHeader, info: &StreamInfo, offset: usize, is_first: bool) -> Result<()> {
    let differences = [
        ("channels", info.channels as u64, header.channels as u64),
        ("samples a second", u64::from(info.rate_hz), u64::from(header.rate_hz.unwrap_or(info.rate_hz))),
        ("bits a sample", u64::from(info.bits), u64::from(header.bits.unwrap_or(info.bits))),
    ];
    for (what, stated, found) in differences {
        if stated == found {
            continue;
        }
        if is_first {
            let problem = format!("the stream information says `{stated}` {what}, the first frame `{found}`");
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        let feature = format!("audio whose {what} change from `{stated}` to `{found}` at byte `{offset}`");
        return Err(Error::unsupported(FORMAT, feature, HINT));
    }
    if header.samples > u64::from(BLOCK_SAMPLES[1]) {
        return Err(Error::unsupported(FORMAT, format!("a frame of `{}` samples", header.samples), HINT));
    }
    if info.bits == WIDEST_BITS && header.difference {
        let hint = "convert the file with `flac` to 24 bit, or without stereo decorrelation";
        return Err(Error::unsupported(FORMAT, "a difference of two channels of 32 bit", hint));
    }
    Ok(())
}

/// What the stream information says.
#[derive(Debug, Clone, Copy)]
struct StreamInfo {
    rate_hz: u32,
    channels: usize,
    bits: u32,
    /// Samples per channel, or 0 where it is not known.
    samples: u64,
    /// Whether it says that blocks differ in size.
    sizes_vary: bool,
}

impl StreamInfo {
    fn read(body: &[u8], offset: usize) -> Result<Self> {
        let body: &[u8; STREAM_INFO_BYTES] = body.try_into().map_err(|_| {
            let problem = format!("the stream information is `{}` bytes long, not `{STREAM_INFO_BYTES}`", body.len());
            Error::format_at(FORMAT, problem, offset)
        })?;
        // From bit 80: 20 bit rate, 3 bit channels - 1, 5 bit depth - 1, 36 bit samples.
        let packed =
            u64::from_be_bytes([body[10], body[11], body[12], body[13], body[14], body[15], body[16], body[17]]);
        let rate_hz = (packed >> 44) as u32;
        if rate_hz == 0 {
            return Err(Error::format_at(FORMAT, "the sample rate is `0`", offset));
        }
        Ok(Self {
            rate_hz,
            channels: ((packed >> 41) & 7) as usize + 1,
            bits: ((packed >> 36) & 31) as u32 + 1,
            samples: packed & ((1 << 36) - 1),
            sizes_vary: body[..2] != body[2..4],
        })
    }

    /// What a frame says of the stream, where nothing else does.
    fn of_frame(header: &FrameHeader, offset: usize) -> Result<Self> {
        let (Some(rate_hz), Some(bits)) = (header.rate_hz.filter(|&rate| rate > 0), header.bits) else {
            let problem = "neither stream information nor the first frame says the sample rate and depth";
            return Err(Error::format_at(FORMAT, problem, offset));
        };
        Ok(Self { rate_hz, channels: header.channels, bits, samples: 0, sizes_vary: true })
    }

    /// Stream information for Symphonia, which refuses frames and numbers that it does not foresee: any block will do.
    fn for_symphonia(&self) -> [u8; STREAM_INFO_BYTES] {
        let mut body = [0; STREAM_INFO_BYTES];
        body[..2].copy_from_slice(&BLOCK_SAMPLES[0].to_be_bytes());
        body[2..4].copy_from_slice(&BLOCK_SAMPLES[1].to_be_bytes());
        let packed = u64::from(self.rate_hz) << 44 | (self.channels as u64 - 1) << 41 | u64::from(self.bits - 1) << 36;
        body[10..18].copy_from_slice(&packed.to_be_bytes());
        body
    }
}

/// Reads the stream information, if there is some, and skips all other metadata; also where the frames start.
fn read_metadata(bytes: &[u8], start: usize) -> Result<(Option<StreamInfo>, usize)> {
    let mut offset = start;
    let mut info = None;
    if !bytes[start..].starts_with(MARKER) {
        return Ok((None, start));
    }
    offset += MARKER.len();
    loop {
        let cut = |what: &str| Error::truncated(FORMAT, format!("{what} is cut off"), offset);
        let header = bytes.get(offset..offset + BLOCK_HEADER_BYTES).ok_or_else(|| cut("a metadata block's header"))?;
        let kind = header[0] & !LAST_BLOCK;
        let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        let body_start = offset + BLOCK_HEADER_BYTES;
        let body = bytes.get(body_start..body_start + length).ok_or_else(|| {
            cut(&format!("the metadata block of type `{kind}`, `{length}` bytes long by its header,"))
        })?;
        if kind == STREAM_INFO_TYPE {
            if info.is_some() {
                return Err(Error::format_at(FORMAT, "the stream information comes twice", offset));
            }
            info = Some(StreamInfo::read(body, offset)?);
        }
        offset = body_start + length;
        if header[0] & LAST_BLOCK != 0 {
            return Ok((info, offset));
        }
    }
}

/// Symphonia's error as ours.
fn failure(error: SymphoniaError, problem: &str, offset: usize) -> Error {
    match error {
        SymphoniaError::Unsupported(feature) => Error::unsupported(FORMAT, feature.trim_start_matches("flac: "), HINT),
        error => Error::Format {
            format: FORMAT,
            problem: format!("{problem}: {}", detail(&error)).into(),
            offset: Some(offset),
            truncated: false,
            source: Some(Box::new(error)),
        },
    }
}

fn detail(error: &SymphoniaError) -> String {
    match error {
        SymphoniaError::DecodeError(text) | SymphoniaError::LimitError(text) => {
            text.trim_start_matches("flac: ").to_owned()
        }
        other => other.to_string(),
    }
}
