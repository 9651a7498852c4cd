//! QOI through the `rapid-qoi` crate.

use rapid_qoi::{Colors, DecodeError, Qoi};

use crate::error::{Error, Result};

use super::decoder::{Task, scratch_slice};
use super::format::Format;
use super::header::Header;
use super::layout::{self, Layout};
use super::orientation::Orientation;
use super::sink::{self, Samples, SourceRows};

const NAME: &str = Format::Qoi.name();
const HEADER_BYTES: usize = 14;
const END: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

fn explain(error: DecodeError, bytes: &[u8]) -> Error {
    match error {
        DecodeError::NotEnoughData => Error::truncated(NAME, "the pixels end too early", bytes.len()),
        other => Error::Format {
            format: NAME,
            problem: "the header is wrong".into(),
            offset: Some(0),
            truncated: false,
            source: Some(Box::new(other)),
        },
    }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<Header> {
    let qoi = Qoi::decode_header(bytes).map_err(|error| explain(error, bytes))?;
    Ok(Header {
        format: Format::Qoi,
        width: qoi.width as usize,
        height: qoi.height as usize,
        channels: qoi.colors.channels(),
        bits: 8,
        orientation: Orientation::Normal,
        progressive: false,
        animated: false,
    })
}

/// The bytes of the full image, if it is not decoded directly to the output.
pub(crate) fn working_bytes(header: &Header, layout: &Layout) -> usize {
    let plain = layout.is_plain() && header.channels == layout.channels;
    if plain { 0 } else { header.width * header.channels * header.height }
}

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(header: &Header, task: &mut Task<'_>) -> Result<bool> {
    let (layout, allow_truncated) = (task.layout, task.options.allow_truncated);
    let row_bytes = header.width * header.channels;
    let scratch_bytes = working_bytes(header, layout);
    let plain = scratch_bytes == 0;
    layout::require_bytes(layout, scratch_bytes, task.options)?;
    let picture = if plain { &mut *task.output } else { scratch_slice(task.scratch, scratch_bytes)? };
    if allow_truncated {
        picture.fill(0);
    }
    let body = &task.bytes[HEADER_BYTES..];
    let consumed = match header.channels {
        4 => Qoi::decode_range(&mut [[0; 4]; 64], &mut [0, 0, 0, 255], &mut 0, body, picture),
        _ => Qoi::decode_range(&mut [[0; 3]; 64], &mut [0, 0, 0], &mut 0, body, picture),
    };
    let result = match consumed {
        // The end marker distinguishes a complete file from one that was truncated where a run happened to reach the last pixel.
        Ok(consumed) if !body[consumed..].starts_with(&END) => {
            Err(Error::truncated(NAME, "the end marker is missing", task.bytes.len()))
        }
        other => other.map_err(|error| explain(error, task.bytes)),
    };
    let partial = match result {
        Err(error) if !(allow_truncated && error.is_truncated()) => return Err(error),
        other => other.is_err(),
    };
    if plain {
        return Ok(partial);
    }
    let (channels, divisor) = (header.channels, layout.divisor);
    let source = SourceRows { x: 0, height: header.height, channels, samples: Samples::Eight, divisor };
    let picture = &task.scratch[..scratch_bytes];
    let mut rows = sink::open(layout, source, task.output);
    for (y, row) in picture.chunks_exact(row_bytes).enumerate() {
        rows.push(y, row);
    }
    Ok(partial)
}

/// Encodes packed RGB or RGBA pixels.
pub(crate) fn encode(pixels: &[u8], (width, height): (u32, u32), channels: usize) -> Result<Vec<u8>> {
    let colors = if channels == 4 { Colors::SrgbLinA } else { Colors::Srgb };
    let qoi = Qoi { width, height, colors };
    qoi.encode_alloc(pixels).map_err(|error| Error::Format {
        format: NAME,
        problem: "the image cannot be encoded".into(),
        offset: None,
        truncated: false,
        source: Some(Box::new(error)),
    })
}
