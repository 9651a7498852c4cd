//! WebP through libwebp, lossy and lossless; of an animation the first frame.

use crate::error::{Error, Result};

use super::decoder::{Task, scratch_slice};
use super::format::Format;
use super::header::Header;
use super::layout::{self, Layout};
use super::orientation;
use super::sink::{self, Samples, SourceRows};

mod libwebp;

pub(crate) use libwebp::Settings;
use libwebp::{Features, WebPError};

const NAME: &str = Format::WebP.name();

/// WebP's own limit.
const SIDE_MAX: usize = 16_383;

fn explain(error: WebPError, bytes: &[u8]) -> Error {
    if error == WebPError::UnsupportedFeature {
        return Error::unsupported(NAME, "what the file asks for", "convert the file to a still WebP");
    }
    if let WebPError::OutOfMemory = error {
        return Error::Memory { bytes: bytes.len() as u64 };
    }
    let truncated = error == WebPError::NotEnoughData;
    let problem = match error {
        WebPError::NotEnoughData => "the pixels end too early".into(),
        other => other.to_string().into(),
    };
    let offset = truncated.then_some(bytes.len());
    Error::Format { format: NAME, problem, offset, truncated, source: Some(Box::new(error)) }
}

/// What the header says beyond [`Header`].
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) header: Header,
    features: Features,
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<File> {
    let features = libwebp::features(bytes).map_err(|error| explain(error, bytes))?;
    let header = Header {
        format: Format::WebP,
        width: features.width,
        height: features.height,
        channels: if features.alpha { 4 } else { 3 },
        bits: 8,
        orientation: exif(bytes).map(orientation::from_exif_block).unwrap_or_default(),
        progressive: false,
        animated: features.animated,
    };
    Ok(File { header, features })
}

/// The `EXIF` chunk. It comes after the pixels, so the chunks are skipped through by their lengths.
fn exif(bytes: &[u8]) -> Option<&[u8]> {
    const EXIF_FLAG: u8 = 8;
    let flags = bytes.get(12..21)?;
    if !flags.starts_with(b"VP8X") || flags[8] & EXIF_FLAG == 0 {
        return None;
    }
    let mut at = 12;
    loop {
        let [a, b, c, d, length @ ..] = *bytes.get(at..)?.first_chunk::<8>()?;
        let length = u32::from_le_bytes(length) as usize;
        let start = at + 8;
        if [a, b, c, d] == *b"EXIF" {
            return bytes.get(start..start + length);
        }
        at = start + length + length % 2;
    }
}

/// The memory for intermediate images, and what the library takes for it.
struct Working {
    /// The channels that the library gives.
    channels: usize,
    /// The full image, if it is not decoded directly to the output.
    scratch_bytes: usize,
    library_bytes: usize,
}

impl Working {
    fn new(&File { header, features }: &File, layout: &Layout) -> Self {
        // The library drops or adds alpha itself, but an animation's canvas always has it.
        let channels = if features.animated || layout.channels == 4 { 4 } else { 3 };
        let plain = layout.is_plain() && channels == layout.channels;
        let pixels = header.width * header.height;
        // A lossless image is decoded through a buffer of 4 bytes a pixel, and so may be the alpha of a lossy one, which
        // then takes a plane more; an animation goes through two canvases and its frame.
        let library_bytes = match features {
            Features { animated: true, .. } => pixels * 16,
            Features { lossless: true, .. } => pixels * 4,
            Features { alpha: true, .. } => pixels * 5,
            _ => 0,
        };
        Self { channels, scratch_bytes: if plain { 0 } else { pixels * channels }, library_bytes }
    }
}

/// The bytes that a decode takes in addition to its output.
pub(crate) fn working_bytes(file: &File, layout: &Layout) -> usize {
    let working = Working::new(file, layout);
    working.scratch_bytes + working.library_bytes
}

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(file: &File, task: &mut Task<'_>) -> Result<bool> {
    let layout = task.layout;
    let Working { channels, scratch_bytes, library_bytes } = Working::new(file, layout);
    let plain = scratch_bytes == 0;
    layout::require_bytes(layout, scratch_bytes + library_bytes, task.options)?;
    let picture = if plain { &mut *task.output } else { scratch_slice(task.scratch, scratch_bytes)? };
    let partial = decode_pixels(task.bytes, file.features, channels, task.options.allow_truncated, picture)?;
    if plain {
        return Ok(partial);
    }
    let (height, divisor) = (file.header.height, layout.divisor);
    let source = SourceRows { x: 0, height, channels, samples: Samples::Eight, divisor };
    let picture = &task.scratch[..scratch_bytes];
    let mut rows = sink::open(layout, source, task.output);
    for (y, row) in picture.chunks_exact(file.header.width * channels).enumerate() {
        rows.push(y, row);
    }
    Ok(partial)
}

fn decode_pixels(
    bytes: &[u8],
    features: Features,
    channels: usize,
    allow_truncated: bool,
    picture: &mut [u8],
) -> Result<bool> {
    let explained = |error| explain(error, bytes);
    if features.animated {
        return libwebp::decode_first_frame(bytes, features, picture).map(|()| false).map_err(explained);
    }
    match libwebp::decode(bytes, features, channels, picture) {
        Ok(()) => Ok(false),
        Err(WebPError::NotEnoughData | WebPError::Bitstream) if allow_truncated => {
            let rows = libwebp::decode_partial(bytes, features, channels, picture).map_err(explained)?;
            picture[rows * features.width * channels..].fill(0);
            Ok(true)
        }
        Err(error) => Err(explained(error)),
    }
}

/// Encodes packed RGB or RGBA pixels.
pub(crate) fn encode(pixels: &[u8], size: (usize, usize), channels: usize, settings: Settings) -> Result<Vec<u8>> {
    let longest = size.0.max(size.1);
    if longest > SIDE_MAX {
        return Err(Error::usage("the image is too large for a WebP", format!("at most {SIDE_MAX} a side"), longest));
    }
    match settings {
        Settings::Lossy(quality) if !(0.0..=100.0).contains(&quality) => {
            return Err(Error::usage("the WebP quality is out of range", "0 to 100", quality));
        }
        Settings::Lossless(effort) if effort > 9 => {
            return Err(Error::usage("the WebP effort is out of range", "0 to 9", effort));
        }
        _ => {}
    }
    libwebp::encode(pixels, size, channels, settings).map_err(|error| Error::Format {
        format: NAME,
        problem: "the image cannot be encoded".into(),
        offset: None,
        truncated: false,
        source: Some(Box::new(error)),
    })
}
