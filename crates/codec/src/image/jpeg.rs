//! JPEG: valid baseline images through our own decoder, which is faster, and everything else through libjpeg-turbo, whose
//! judgment of damage counts.

use crate::error::{Error, Result};

use super::decoder::{Task, scratch_slice};
use super::format::Format;
use super::layout::{self, Layout};
use super::options::Region;
use super::orientation::Orientation;
use super::sink::{self, Samples, SourceRows};

mod header;
mod progressive;
mod quality;
mod quiet;
mod turbo;

pub(crate) use header::{Frame, Walk, read};
pub use progressive::{END_OF_IMAGE, SCAN_GROUPS, progressive_scans};
pub use quality::{JpegQuality, jpeg_quality};
use turbo::{Job, Pixels, TurboError};

const NAME: &str = Format::Jpeg.name();
const HINT: &str = "convert the file to an 8-bit baseline or progressive JPEG";

/// The most scans of one picture. Encoders write about ten; a hostile file of thousands, each of them nearly empty, takes
/// minutes for a few kilobytes.
pub const SCANS_MAX: usize = 100;

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(own: &mut forebay_jpeg::Decoder, frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    if decode_valid(own, frame, task)? {
        return Ok(false);
    }
    decode_any(frame, task)
}

/// The bytes that a decode takes in addition to its output, with either decoder: the coefficients of an image in several scans,
/// and all that is decoded where it must be turned, cut or converted.
pub(crate) fn working_bytes(frame: &Frame, layout: &Layout) -> usize {
    let decoded = frame.crop(layout).unwrap_or(Region { x: 0, y: 0, width: layout.scaled.0, height: layout.scaled.1 });
    let direct = !frame.four && layout.orientation == Orientation::Normal && decoded == layout.window;
    let channels = if frame.four { 4 } else { layout.channels };
    let scratch_bytes = if direct { 0 } else { decoded.width * decoded.height * channels };
    scratch_bytes.saturating_add(frame.coefficient_bytes())
}

/// Decodes what our own decoder can do, to the same pixels as libjpeg-turbo; `false` if the image is damaged, or of a kind
/// that it does not do.
fn decode_valid(own: &mut forebay_jpeg::Decoder, frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    let layout = task.layout;
    let possible = !frame.four && !frame.header.progressive && layout.divisor == 1 && !task.options.fast_dct;
    // Without vector instructions libjpeg-turbo is faster; what it skips in the header it knows best itself.
    if !possible || own.level() == forebay_jpeg::Level::Scalar || !frame.oddities.is_none() {
        return Ok(false);
    }
    let window = layout.window;
    let direct = layout.orientation == Orientation::Normal;
    let window_bytes = window.width * window.height * layout.channels;
    layout::require_bytes(layout, if direct { 0 } else { window_bytes }, task.options)?;
    let picture = if direct { &mut *task.output } else { scratch_slice(task.scratch, window_bytes)? };
    let Region { x, y, width, height } = window;
    let options = forebay_jpeg::Options {
        region: (!layout.is_whole()).then_some(forebay_jpeg::Region { x, y, width, height }),
        max_pixels: task.options.limits.max_pixels,
        ..forebay_jpeg::Options::new(match layout.channels {
            1 => forebay_jpeg::Color::Gray,
            _ => forebay_jpeg::Color::Rgb,
        })
    };
    if own.decode_into(task.bytes, &options, picture).is_err() {
        return Ok(false);
    }
    if !direct {
        let picture = &task.scratch[..window_bytes];
        let (channels, samples) = (layout.channels, Samples::Eight);
        let source = SourceRows { x, height: layout.scaled.1, channels, samples, divisor: 1 };
        let mut rows = sink::open(layout, source, task.output);
        let picture_rows = picture.chunks_exact(width * channels).enumerate();
        picture_rows.for_each(|(index, row)| rows.push(y + index, row));
    }
    Ok(true)
}

/// Decodes through libjpeg-turbo.
fn decode_any(frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    let layout = task.layout;
    let pixels = match (frame.four, layout.channels) {
        (true, _) => Pixels::Cmyk,
        (false, 1) => Pixels::Gray,
        _ => Pixels::Rgb,
    };
    let crop = frame.crop(layout);
    let decoded = crop.unwrap_or(Region { x: 0, y: 0, width: layout.scaled.0, height: layout.scaled.1 });
    let direct = !frame.four && layout.orientation == Orientation::Normal && decoded == layout.window;
    let decoded_bytes = decoded.width * decoded.height * pixels.channels();
    let scratch_bytes = if direct { 0 } else { decoded_bytes };
    layout::require_bytes(layout, scratch_bytes + frame.coefficient_bytes(), task.options)?;
    let picture = if direct { &mut *task.output } else { scratch_slice(task.scratch, decoded_bytes)? };
    let job = Job {
        pixels,
        divisor: layout.divisor,
        crop,
        accept_warnings: task.options.allow_truncated,
        fast_dct: task.options.fast_dct,
        memory_megabytes_max: (task.options.limits.max_bytes >> 20) + 1,
        scans_max: SCANS_MAX,
    };
    let quiet = quiet::prepare(frame, task.bytes);
    if let Some(component) = quiet.absent.filter(|_| !task.options.allow_truncated) {
        let problem = format!("no scan holds component `{component}`");
        return Err(Error::truncated(NAME, problem, task.bytes.len()));
    }
    let size = (frame.header.width, frame.header.height);
    let silent = turbo::decompress(&quiet.bytes, &job, size, picture).map_err(|error| explain(error, task.bytes))?;
    let partial = !silent || quiet.absent.is_some();
    if direct {
        return Ok(partial);
    }
    let picture = &mut task.scratch[..decoded_bytes];
    let channels = if frame.four { 3 } else { pixels.channels() };
    let source = SourceRows { x: decoded.x, height: layout.scaled.1, channels, samples: Samples::Eight, divisor: 1 };
    let mut rows = sink::open(layout, source, task.output);
    for (index, row) in picture.chunks_exact_mut(decoded.width * pixels.channels()).enumerate() {
        if frame.four {
            cmyk_to_rgb(row);
        }
        rows.push(decoded.y + index, &row[..decoded.width * channels]);
    }
    Ok(partial)
}

fn explain(error: TurboError, bytes: &[u8]) -> Error {
    if error.message.contains("more than") && error.message.contains("scans") {
        return Error::Limit { what: "the number of scans", found: SCANS_MAX as u64 + 1, limit: SCANS_MAX as u64 };
    }
    let unsupported =
        ["not implemented", "Unsupported ", "Maximum supported image dimension", "omitted at compile time"];
    if unsupported.iter().any(|part| error.message.contains(part)) {
        return Error::unsupported(NAME, format!("what the file asks for (`{}`)", error.message), HINT);
    }
    let truncated = error.message.contains("Premature end of JPEG file");
    Error::Format {
        format: NAME,
        problem: error.message.clone().into(),
        offset: truncated.then_some(bytes.len()),
        truncated,
        source: Some(Box::new(error)),
    }
}

/// Converts a row of CMYK to RGB in place, in its first three quarters.
///
/// The inks are stored inverted (255 is no ink), as Adobe writes them and as Pillow and OpenCV assume of every file. The
/// arithmetic is Pillow's, so that the result is the same to the last bit: with `key` the inverted black, a channel is
/// `key - ink * key / 255`, the quotient rounded.
fn cmyk_to_rgb(row: &mut [u8]) {
    for pixel in 0..row.len() / 4 {
        let key = u32::from(row[pixel * 4 + 3]);
        for channel in 0..3 {
            let product = u32::from(255 - row[pixel * 4 + channel]) * key + 128;
            row[pixel * 3 + channel] = (key - ((product >> 8) + product).wrapping_shr(8).min(key)) as u8;
        }
    }
}

/// How much less often the color is sampled than the brightness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Subsampling {
    /// As often: 4:4:4.
    None,
    /// Half as often across: 4:2:2.
    Horizontal,
    /// Half as often across and down: 4:2:0, the usual.
    #[default]
    Both,
    /// Half as often down: 4:4:0.
    Vertical,
}

/// Encodes packed gray or RGB pixels.
pub(crate) fn encode(
    pixels: &[u8],
    size: (usize, usize),
    channels: usize,
    quality: u8,
    subsampling: Subsampling,
    progressive: bool,
) -> Result<Vec<u8>> {
    let kind = match channels {
        1 => Pixels::Gray,
        3 => Pixels::Rgb,
        _ => return Err(Error::usage("a JPEG holds no alpha", "1 or 3 channels", channels)),
    };
    if !(1..=100).contains(&quality) {
        return Err(Error::usage("the JPEG quality is out of range", "1 to 100", quality));
    }
    let longest = size.0.max(size.1);
    if longest > SIDE_MAX {
        return Err(Error::usage("the image is too large for a JPEG", format!("at most {SIDE_MAX} a side"), longest));
    }
    let settings = turbo::Settings { quality, subsampling, progressive };
    turbo::compress(pixels, size, kind, settings).map_err(|error| Error::format(NAME, error.to_string()))
}

/// libjpeg's own limit.
const SIDE_MAX: usize = 65_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cmyk_without_ink_is_white_and_full_black_is_black() {
        let mut row = [255, 255, 255, 255, 0, 255, 255, 255, 9, 9, 9, 0];
        cmyk_to_rgb(&mut row);
        assert_eq!(row[..9], [255, 255, 255, 0, 255, 255, 0, 0, 0]);
    }
}
