//! FLAC, decoded by Symphonia.
//!
//! This module reads the metadata itself and hands Symphonia the stream information and the frames only: tags, pictures
//! and seek tables cannot do harm then, and a broken block is named with its place.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};

use symphonia_bundle_flac::{FlacDecoder, FlacReader};
use symphonia_core::audio::{Audio, GenericAudioBufferRef};
use symphonia_core::codecs::CodecParameters;
use symphonia_core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia_core::errors::Error as SymphoniaError;
use symphonia_core::formats::{FormatOptions, FormatReader};
use symphonia_core::io::{MediaSourceStream, MediaSourceStreamOptions, ReadOnlySource};

use super::decode::Sink;
use crate::{Error, Result};

const FORMAT: &str = "flac";
const MARKER: &[u8; 4] = b"fLaC";
/// The block type of the stream information, and how long it is (RFC 9639, section 8.2).
const STREAM_INFO_TYPE: u8 = 0;
const STREAM_INFO_BYTES: usize = 34;
const BLOCK_HEADER_BYTES: usize = 4;
const HEAD_BYTES: usize = MARKER.len() + BLOCK_HEADER_BYTES + STREAM_INFO_BYTES;
/// Deeper samples there are not, and their difference is one bit more than Symphonia reads.
const WIDEST_BITS: u32 = 32;
/// Of a block header: "this is the last one".
const LAST_BLOCK: u8 = 0x80;

/// Decodes the FLAC that starts at `start` of `bytes`.
pub(super) fn decode(bytes: &[u8], start: usize, sink: &mut Sink<'_>) -> Result<()> {
    let (info, frames_start) = read_metadata(bytes, start)?;
    sink.begin(info.rate_hz, info.channels, (info.samples > 0).then_some(info.samples))?;
    let frames = nanomp3::strip_trailing_tags(&bytes[frames_start..]);
    if frames.is_empty() {
        let problem = "it ends after the metadata, before the first frame";
        return if info.samples == 0 { Ok(()) } else { Err(Error::truncated(FORMAT, problem, frames_start)) };
    }
    let source = ReadOnlySource::new((&info.head[..]).chain(frames));
    let stream = MediaSourceStream::new(Box::new(source), MediaSourceStreamOptions::default());
    let mut reader = FlacReader::try_new(stream, FormatOptions::default())
        .map_err(|error| failure(error, "no frame can be found", frames_start, frames_start))?;
    let Some(CodecParameters::Audio(parameters)) =
        reader.tracks().first().and_then(|track| track.codec_params.as_ref())
    else {
        return Err(Error::format(FORMAT, "it has no track"));
    };
    let mut decoder = FlacDecoder::try_new(parameters, &AudioDecoderOptions::default())
        .map_err(|error| failure(error, "the stream information cannot be used", start, bytes.len()))?;
    decode_frames(&mut reader, &mut decoder, &info, (frames_start, frames.len()), sink)
}

fn decode_frames(
    reader: &mut FlacReader<'_>,
    decoder: &mut FlacDecoder,
    info: &StreamInfo,
    (frames_start, frames_bytes): (usize, usize),
    sink: &mut Sink<'_>,
) -> Result<()> {
    let end = frames_start + frames_bytes;
    let (mut instants, mut used_bytes) = (0_u64, 0);
    loop {
        let offset = frames_start + used_bytes;
        let lost =
            |error| failure(error, &format!("it ends after `{instants}` of `{}` samples", info.samples), offset, end);
        let Some(packet) = reader.next_packet().map_err(lost)? else { break };
        // Symphonia looks for the next good frame where one is damaged; a gap betrays it.
        if packet.pts.get() != instants as i64 {
            let problem = format!("a frame is damaged: after sample `{instants}` comes sample `{}`", packet.pts.get());
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        if info.samples == 0 && holds_second_frame(&packet.data) {
            let problem = "a frame has other channels, another rate or depth than the header says";
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        if info.bits == WIDEST_BITS
            && packet.data.get(3).is_some_and(|assignment| (8..=10).contains(&(assignment >> 4)))
        {
            let hint = "convert the file with `flac` to 24 bit, or without stereo decorrelation";
            return Err(Error::unsupported(FORMAT, "a difference of two channels of 32 bit", hint));
        }
        // A frame with the right checksum may hold numbers that overflow. Where arithmetic is checked, Symphonia panics.
        catch_unwind(AssertUnwindSafe(|| decoder.decode(&packet).map(drop)))
            .map_err(|_| Error::format_at(FORMAT, "a frame cannot be decoded: its samples overflow", offset))?
            .map_err(|error| failure(error, "a frame cannot be decoded", offset, end))?;
        let GenericAudioBufferRef::S32(planes) = decoder.last_decoded() else {
            return Err(Error::format_at(FORMAT, "a frame is not of whole numbers", offset));
        };
        sink.extend(planes.frames() * info.channels, |samples| {
            for (channel, plane) in (0..info.channels).filter_map(|channel| Some((channel, planes.plane(channel)?))) {
                for (sample, wide) in samples[channel..].iter_mut().step_by(info.channels).zip(plane) {
                    // The samples stand at the upper end of 32 bit, however deep they are.
                    *sample = (wide >> 16) as i16;
                }
            }
        })?;
        instants += planes.frames() as u64;
        used_bytes += packet.data.len();
    }
    if used_bytes < frames_bytes {
        let problem = format!("`{}` bytes are part of no whole frame", frames_bytes - used_bytes);
        return Err(Error::truncated(FORMAT, problem, frames_start + used_bytes));
    }
    if info.samples > 0 && instants != info.samples {
        let problem = format!("it has `{instants}` samples, but its header says `{}`", info.samples);
        return Err(Error::format(FORMAT, problem));
    }
    Ok(())
}

/// Whether a packet holds more than one frame.
///
/// Symphonia cuts where a frame follows that fits the stream information; one that does not fit stays with the frame before,
/// is not decoded, and is not noticed, since the checksum of two whole frames is right, too. Where the header says how many
/// samples there are, they are missed anyway.
fn holds_second_frame(packet: &[u8]) -> bool {
    let mut checksum = 0;
    packet.iter().enumerate().any(|(place, &byte)| {
        // The checksum over a frame and its own checksum is 0.
        let starts_like_one = byte == 0xff && packet.get(place + 1).is_some_and(|second| second & 0xfc == 0xf8);
        let second = place > 0 && checksum == 0 && starts_like_one;
        checksum = (checksum << 8) ^ CHECKSUMS[usize::from((checksum >> 8) as u8 ^ byte)];
        second
    })
}

/// The frame checksum's table: polynomial 0x8005 (RFC 9639, section 9.3).
const CHECKSUMS: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut checksum = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            checksum = if checksum & 0x8000 == 0 { checksum << 1 } else { (checksum << 1) ^ 0x8005 };
            bit += 1;
        }
        table[byte] = checksum;
        byte += 1;
    }
    table
};

/// What the stream information says.
struct StreamInfo {
    rate_hz: u32,
    channels: usize,
    bits: u32,
    /// Samples per channel, or 0 where it is not known.
    samples: u64,
    /// A FLAC head with this one block.
    head: [u8; HEAD_BYTES],
}

/// Reads the stream information and skips all other metadata; also where the frames start.
fn read_metadata(bytes: &[u8], start: usize) -> Result<(StreamInfo, usize)> {
    let mut place = start + MARKER.len();
    let mut info = None;
    loop {
        let cut = |what: &str| Error::truncated(FORMAT, format!("{what} is cut off"), place);
        let header = bytes.get(place..place + BLOCK_HEADER_BYTES).ok_or_else(|| cut("a metadata block's header"))?;
        let kind = header[0] & !LAST_BLOCK;
        let length = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
        let body_start = place + BLOCK_HEADER_BYTES;
        let body = bytes.get(body_start..body_start + length).ok_or_else(|| {
            cut(&format!("the metadata block of type `{kind}`, `{length}` bytes long by its header,"))
        })?;
        if kind == STREAM_INFO_TYPE && info.is_some() {
            return Err(Error::format_at(FORMAT, "the stream information comes twice", place));
        }
        let known = match info {
            Some(info) => info,
            None if kind == STREAM_INFO_TYPE => read_stream_info(body, place)?,
            None => {
                let problem = format!("it starts with metadata of type `{kind}` instead of the stream information");
                return Err(Error::format_at(FORMAT, problem, place));
            }
        };
        place = body_start + length;
        if header[0] & LAST_BLOCK != 0 {
            return Ok((known, place));
        }
        info = Some(known);
    }
}

fn read_stream_info(body: &[u8], place: usize) -> Result<StreamInfo> {
    let body: &[u8; STREAM_INFO_BYTES] = body.try_into().map_err(|_| {
        let problem = format!("the stream information is `{}` bytes long, not `{STREAM_INFO_BYTES}`", body.len());
        Error::format_at(FORMAT, problem, place)
    })?;
    // From bit 80: 20 bit rate, 3 bit channels - 1, 5 bit depth - 1, 36 bit samples.
    let packed = u64::from_be_bytes([body[10], body[11], body[12], body[13], body[14], body[15], body[16], body[17]]);
    let rate_hz = (packed >> 44) as u32;
    if rate_hz == 0 {
        return Err(Error::format_at(FORMAT, "the sample rate is `0`", place));
    }
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(MARKER);
    head[4] = STREAM_INFO_TYPE | LAST_BLOCK;
    head[7] = STREAM_INFO_BYTES as u8;
    head[8..].copy_from_slice(body);
    Ok(StreamInfo {
        rate_hz,
        channels: ((packed >> 41) & 7) as usize + 1,
        bits: ((packed >> 36) & 31) as u32 + 1,
        samples: packed & ((1 << 36) - 1),
        head,
    })
}

/// Symphonia's error as ours: the end of the data (at `end`) is truncation, anything else is damage at `offset`.
fn failure(error: SymphoniaError, problem: &str, offset: usize, end: usize) -> Error {
    match error {
        SymphoniaError::IoError(_) => Error::truncated(FORMAT, problem.to_owned(), end),
        SymphoniaError::Unsupported(feature) => {
            Error::unsupported(FORMAT, feature.trim_start_matches("flac: "), "convert the file with `flac`")
        }
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
