//! JPEG: sound baseline pictures through our own decoder, which is faster, and everything else through libjpeg-turbo, whose
//! judgement of damage counts. The header is read here as well: the library keeps neither EXIF nor what lies between the
//! segments.

use std::borrow::Cow;

use crate::error::{Error, Result};

use super::decoder::{Task, scratch_slice};
use super::format::Format;
use super::header::Header;
use super::layout::{self, Layout};
use super::options::Region;
use super::orientation::{self, Orientation};
use super::sink::{self, Samples, SourceRows};

mod turbo;

use turbo::{Decompressor, Job, Pixels, TurboError};

/// The most scans of one picture. Encoders write about ten; a hostile file of thousands, each of them nearly empty, takes
/// minutes for a few kilobytes.
pub const SCANS_MAX: usize = 100;

/// What the header says beyond [`Header`].
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// Four components: CMYK or YCCK.
    four: bool,
    /// Sampling factors of each component, horizontal and vertical.
    sampling: Vec<(usize, usize)>,
    /// Whether the coefficients of the whole picture are kept while decoding.
    multiple_scans: bool,
    /// Where the segments before the first scan lie, if bytes lie between them that belong to none.
    segments: Option<Vec<(usize, usize)>>,
    scan_at: usize,
}

/// Walks the segments up to the first scan.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    stray: bool,
}

const NAME: &str = Format::Jpeg.name();
const HINT: &str = "convert the file to an 8-bit baseline or progressive JPEG";

impl<'a> Walk<'a> {
    /// The next marker and the offset of its 0xFF, skipping fill bytes and bytes that belong to no segment, as libjpeg does.
    fn marker(&mut self) -> Result<(u8, usize)> {
        loop {
            match self.bytes.get(self.at..) {
                Some([0xFF, 0xFF, ..]) => self.at += 1,
                Some([0xFF, marker, ..]) if *marker != 0 => {
                    self.at += 2;
                    return Ok((*marker, self.at - 2));
                }
                Some([_, _, ..]) => {
                    self.stray = true;
                    self.at += 1;
                }
                _ => return Err(Error::truncated(NAME, "it ends within the header", self.bytes.len())),
            }
        }
    }

    /// The payload of the segment whose marker was just read.
    fn payload(&mut self) -> Result<&'a [u8]> {
        let cut = || Error::truncated(NAME, "it ends within a segment of the header", self.bytes.len());
        let length: [u8; 2] = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes(length));
        if length < 2 {
            return Err(Error::format_at(NAME, format!("a segment is `{length}` bytes long"), self.at));
        }
        let payload = self.bytes.get(self.at + 2..self.at + length).ok_or_else(cut)?;
        self.at += length;
        Ok(payload)
    }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<Frame> {
    let mut walk = Walk { bytes, at: 2, stray: false };
    let mut frame: Option<Frame> = None;
    let mut orientation: Option<Orientation> = None;
    let mut segments = Vec::new();
    loop {
        let (marker, start) = walk.marker()?;
        match marker {
            0x01 | 0xD0..=0xD7 => {}
            0xD8 => return Err(Error::format_at(NAME, "a second start of image inside the header", start)),
            0xD9 => return Err(Error::truncated(NAME, "it ends before the first scan", start)),
            0xDA => {
                let mut frame = frame.ok_or_else(|| Error::format_at(NAME, "a scan before any frame header", start))?;
                let components = walk.payload()?.first().copied().unwrap_or_default();
                frame.multiple_scans |= usize::from(components) < frame.sampling.len();
                frame.header.orientation = orientation.unwrap_or_default();
                frame.segments = walk.stray.then_some(segments);
                frame.scan_at = start;
                return Ok(frame);
            }
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let payload = walk.payload()?;
                if frame.is_none() {
                    frame = Some(read_frame(marker, payload, start)?);
                }
            }
            _ => {
                let payload = walk.payload()?;
                if marker == 0xE1 && orientation.is_none() {
                    orientation = payload.strip_prefix(b"Exif\0\0").map(orientation::from_tiff);
                }
            }
        }
        segments.push((start, walk.at));
    }
}

fn read_frame(marker: u8, payload: &[u8], at: usize) -> Result<Frame> {
    match marker {
        0xC0..=0xC2 | 0xC9 | 0xCA => {}
        0xC3 | 0xCB => return Err(Error::unsupported(NAME, "lossless coding", HINT)),
        _ => return Err(Error::unsupported(NAME, "hierarchical coding", HINT)),
    }
    let [bits, height_high, height_low, width_high, width_low, count, components @ ..] = payload else {
        return Err(Error::format_at(NAME, "the frame header is too short", at));
    };
    if *bits != 8 {
        return Err(Error::unsupported(NAME, format!("a sample depth of `{bits}` bit"), HINT));
    }
    if !matches!(count, 1 | 3 | 4) {
        return Err(Error::unsupported(NAME, format!("a picture of `{count}` components"), HINT));
    }
    let (components, _) = components.as_chunks::<3>();
    if components.len() < usize::from(*count) {
        return Err(Error::format_at(NAME, "the frame header is too short", at));
    }
    let sampling: Vec<_> = components[..usize::from(*count)]
        .iter()
        .map(|&[_, factors, _]| (usize::from(factors >> 4), usize::from(factors & 15)))
        .collect();
    if sampling.iter().any(|&(x, y)| !(1..=4).contains(&x) || !(1..=4).contains(&y)) {
        return Err(Error::format_at(NAME, "a sampling factor is not 1 to 4", at));
    }
    let progressive = matches!(marker, 0xC2 | 0xCA);
    let header = Header {
        format: Format::Jpeg,
        width: usize::from(u16::from_be_bytes([*width_high, *width_low])),
        height: usize::from(u16::from_be_bytes([*height_high, *height_low])),
        channels: if *count == 1 { 1 } else { 3 },
        bits: 8,
        orientation: Orientation::Normal,
        progressive,
        animated: false,
    };
    Ok(Frame { header, four: *count == 4, sampling, multiple_scans: progressive, segments: None, scan_at: 0 })
}

impl Frame {
    /// Width and height of an iMCU, in pixels of the full picture.
    fn unit(&self) -> (usize, usize) {
        if self.sampling.len() == 1 {
            return (8, 8);
        }
        let most = |side: fn(&(usize, usize)) -> usize| self.sampling.iter().map(side).max().unwrap_or(1) * 8;
        (most(|factors| factors.0), most(|factors| factors.1))
    }

    /// Bytes of the coefficient buffer that more than one scan needs: 2 per coefficient, whole iMCUs.
    fn coefficient_bytes(&self) -> usize {
        if !self.multiple_scans {
            return 0;
        }
        let (unit_width, unit_height) = self.unit();
        let units = self.header.width.div_ceil(unit_width) * self.header.height.div_ceil(unit_height);
        let blocks =
            self.sampling.iter().map(|&(x, y)| if self.sampling.len() == 1 { 1 } else { x * y }).sum::<usize>();
        units.saturating_mul(blocks * 64 * 2)
    }

    /// What to have the library decode for `window`, or `None` for the whole picture.
    ///
    /// The library smooths colour across the pixels that it decodes, so at the edge of a crop it would invent other
    /// neighbours than the full decode has: the crop is wider by 8 pixels and an iMCU, and trimmed. Rows need no such
    /// margin, because the library keeps the context of skipped rows.
    fn crop(&self, layout: &Layout) -> Option<Region> {
        let window = layout.window;
        // Factors of 3 and mixed ones: the library refuses to crop these.
        let common = self.sampling.len() == 1
            || (self.sampling[1..self.sampling.len().min(3)].iter().all(|&factors| factors == (1, 1))
                && (!self.four || self.sampling[3] == self.sampling[0])
                && matches!(self.sampling[0], (1, 1 | 2 | 4) | (2, 1 | 2) | (4, 1)));
        if layout.is_whole() || !common {
            return None;
        }
        let width = layout.scaled.0;
        if window.width == width {
            return Some(window);
        }
        let unit = (self.unit().0 / layout.divisor).max(1);
        let left = window.x.saturating_sub(8) / unit * unit;
        let right = (window.x + window.width + 8).next_multiple_of(unit).min(width);
        Some(Region { x: left, y: window.y, width: right - left, height: window.height })
    }

    /// The bytes without what lies between the segments of the header: libjpeg reports that as damage, and reports only
    /// the first damage, so that it would hide any in the picture itself.
    fn clean<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(segments) = &self.segments else {
            return Cow::Borrowed(bytes);
        };
        let mut clean = bytes[..2].to_vec();
        for &(start, end) in segments {
            clean.extend_from_slice(&bytes[start..end]);
        }
        clean.extend_from_slice(&bytes[self.scan_at..]);
        Cow::Owned(clean)
    }
}

/// The two decoders.
#[derive(Default)]
pub(crate) struct Decompressors {
    own: forebay_jpeg::Decoder,
    turbo: Decompressor,
}

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(decompressors: &mut Decompressors, frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    if decode_sound(&mut decompressors.own, frame, task)? {
        return Ok(false);
    }
    decode_any(&mut decompressors.turbo, frame, task)
}

/// Decodes what our own decoder can do, to the same pixels as libjpeg-turbo; `false` if the picture is damaged, or of a kind
/// that it does not do.
fn decode_sound(own: &mut forebay_jpeg::Decoder, frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    let layout = task.layout;
    let possible = !frame.four && !frame.header.progressive && layout.divisor == 1 && !task.options.fast_dct;
    // Without vector instructions libjpeg-turbo is faster; what it skips in the header it knows best itself.
    if !possible || own.level() == forebay_jpeg::Level::Scalar || frame.segments.is_some() {
        return Ok(false);
    }
    let window = layout.window;
    let direct = layout.orientation == Orientation::Normal;
    let window_bytes = window.width * window.height * layout.channels;
    layout::require_bytes(layout, if direct { 0 } else { window_bytes }, task.options)?;
    let picture = if direct { &mut *task.output } else { scratch_slice(task.scratch, window_bytes) };
    let Region { x, y, width, height } = window;
    let options = forebay_jpeg::Options {
        region: (!layout.is_whole()).then_some(forebay_jpeg::Region { x, y, width, height }),
        pixels_max: task.options.limits.pixels_max,
        ..forebay_jpeg::Options::new(match layout.channels {
            1 => forebay_jpeg::Colour::Grey,
            _ => forebay_jpeg::Colour::Rgb,
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
fn decode_any(turbo: &mut Decompressor, frame: &Frame, task: &mut Task<'_>) -> Result<bool> {
    let layout = task.layout;
    let bytes = &*frame.clean(task.bytes);
    let pixels = match (frame.four, layout.channels) {
        (true, _) => Pixels::Cmyk,
        (false, 1) => Pixels::Grey,
        _ => Pixels::Rgb,
    };
    let crop = frame.crop(layout);
    let decoded = crop.unwrap_or(Region { x: 0, y: 0, width: layout.scaled.0, height: layout.scaled.1 });
    let direct = !frame.four && layout.orientation == Orientation::Normal && decoded == layout.window;
    let decoded_bytes = decoded.width * decoded.height * pixels.channels();
    let scratch_bytes = if direct { 0 } else { decoded_bytes };
    layout::require_bytes(layout, scratch_bytes + frame.coefficient_bytes(), task.options)?;
    let picture = if direct { &mut *task.output } else { scratch_slice(task.scratch, decoded_bytes) };
    let job = Job {
        pixels,
        divisor: layout.divisor,
        crop,
        stop_on_warning: !task.options.accept_partial,
        fast_dct: task.options.fast_dct,
        memory_megabytes_max: (task.options.limits.bytes_max >> 20) + 1,
        scans_max: SCANS_MAX,
    };
    let scan = &bytes[bytes.len() - (task.bytes.len() - frame.scan_at)..];
    let size = (frame.header.width, frame.header.height);
    let partial = run(turbo, bytes, scan, &job, size, picture)?;
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

/// Runs the job; warnings that touch no pixel are let pass. `scan` is the part of `bytes` from the first scan on.
fn run(
    turbo: &mut Decompressor,
    bytes: &[u8],
    scan: &[u8],
    job: &Job,
    size: (usize, usize),
    output: &mut [u8],
) -> Result<bool> {
    match turbo.run(bytes, job, size, output) {
        Ok(()) => Ok(false),
        Err(error) if error.warning && is_harmless(&error.message) => {
            let lenient = Job { stop_on_warning: false, ..*job };
            match turbo.run(bytes, &lenient, size, output) {
                // Only the first warning is told, so what it may hide is looked for here.
                Err(again) if !again.warning => Err(explain(again, bytes)),
                _ if has_end(scan) => Ok(false),
                _ if job.stop_on_warning => Err(Error::truncated(NAME, "the end of image is missing", bytes.len())),
                _ => Ok(true),
            }
        }
        Err(error) if error.warning && !job.stop_on_warning => Ok(true),
        Err(error) => Err(explain(error, bytes)),
    }
}

/// Warnings about a header that is odd, but means one thing.
fn is_harmless(message: &str) -> bool {
    ["Unknown Adobe color transform", "unknown JFIF revision", "Invalid SOS parameters for sequential"]
        .iter()
        .any(|harmless| message.contains(harmless))
}

fn explain(error: TurboError, bytes: &[u8]) -> Error {
    if error.message.contains("more than") && error.message.contains("scans") {
        return Error::Limit { what: "the number of scans", found: SCANS_MAX as u64 + 1, limit: SCANS_MAX as u64 };
    }
    if ["not implemented", "Unsupported color conversion"].iter().any(|part| error.message.contains(part)) {
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

/// Whether the end of the image is there: entropy-coded data has 0xFF only before 0x00 or a restart marker.
fn has_end(scan: &[u8]) -> bool {
    scan.windows(2).any(|pair| pair == [0xFF, 0xD9])
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

/// How much less often the colour is sampled than the brightness.
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

/// Encodes packed grey or RGB pixels.
pub(crate) fn encode(
    pixels: &[u8],
    size: (usize, usize),
    channels: usize,
    quality: u8,
    subsampling: Subsampling,
    progressive: bool,
) -> Result<Vec<u8>> {
    let kind = match channels {
        1 => Pixels::Grey,
        3 => Pixels::Rgb,
        _ => return Err(Error::usage("a JPEG holds no alpha", "1 or 3 channels", channels)),
    };
    if !(1..=100).contains(&quality) {
        return Err(Error::usage("the JPEG quality is out of range", "1 to 100", quality));
    }
    let longest = size.0.max(size.1);
    if longest > SIDE_MAX {
        return Err(Error::usage("the picture is too large for a JPEG", format!("at most {SIDE_MAX} a side"), longest));
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
