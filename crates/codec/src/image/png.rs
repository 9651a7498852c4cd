//! PNG: valid images that are not interlaced through our own decoder, which is faster, and everything else through the `png`
//! crate, whose judgment of damage counts. The chunks are walked here too, for what must be known before and after the pixels.

use std::borrow::Cow;
use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, DecodingError, Transformations};

use crate::error::{Error, Result};

use super::decoder::{Task, scratch_slice};
use super::encode::PngEffort;
use super::format::Format;
use super::header::Header;
use super::layout::{self, Layout};
use super::metadata::Metadata;
use super::options::Limits;
use super::orientation::{self, Orientation};
use super::sink::{self, Samples, SourceRows};

const NAME: &str = Format::Png.name();
const SIGNATURE_BYTES: usize = 8;

/// A chunk: its type, payload and where it begins.
struct Chunk<'a> {
    kind: [u8; 4],
    payload: &'a [u8],
    at: usize,
}

/// The chunk at `at`, without its checksum verified, and where the next begins.
fn chunk(bytes: &[u8], at: usize) -> Result<(Chunk<'_>, usize)> {
    let cut = || Error::truncated(NAME, "it ends within a chunk", bytes.len());
    let [length @ .., a, b, c, d] = *bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or_else(cut)?;
    let start = at + 8;
    let end = start + u32::from_be_bytes(length) as usize;
    let payload = bytes.get(start..end).ok_or_else(cut)?;
    bytes.get(end..end + 4).ok_or_else(cut)?;
    Ok((Chunk { kind: [a, b, c, d], payload, at }, end + 4))
}

/// Reads the chunks before the pixels.
pub(crate) fn read(bytes: &[u8]) -> Result<Header> {
    let (first, mut at) = chunk(bytes, SIGNATURE_BYTES)?;
    let (b"IHDR", [w0, w1, w2, w3, h0, h1, h2, h3, bits, color, _, _, interlace]) = (&first.kind, first.payload) else {
        return Err(Error::format_at(NAME, "the header chunk is missing", first.at));
    };
    let mut header = Header {
        format: Format::Png,
        width: u32::from_be_bytes([*w0, *w1, *w2, *w3]) as usize,
        height: u32::from_be_bytes([*h0, *h1, *h2, *h3]) as usize,
        channels: match color {
            0 => 1,
            2 | 3 => 3,
            4 => 2,
            6 => 4,
            _ => return Err(Error::format_at(NAME, format!("the color type is `{color}`"), first.at)),
        },
        bits: if *bits == 16 { 16 } else { 8 },
        orientation: Orientation::Normal,
        progressive: *interlace == 1,
        animated: false,
    };
    loop {
        // The pixels may be cut off, and what is there of them still wanted.
        if bytes.get(at + 4..at + 8) == Some(b"IDAT") {
            return Ok(header);
        }
        let (next, end) = chunk(bytes, at)?;
        match &next.kind {
            // The crate takes a palette that ends within a color, or has too many, and panics when it looks a color up.
            b"PLTE" if *color == 3 && !matches!((next.payload.len() % 3, next.payload.len()), (0, 3..=768)) => {
                let problem =
                    format!("the palette has `{}` bytes, not 3 for each of 1 to 256 colors", next.payload.len());
                return Err(Error::format_at(NAME, problem, next.at));
            }
            b"tRNS" if matches!(color, 0 | 2 | 3) => header.channels = if *color == 0 { 2 } else { 4 },
            b"eXIf" => header.orientation = orientation::from_exif_block(next.payload),
            b"acTL" => header.animated = true,
            b"IEND" => return Err(Error::format_at(NAME, "there are no pixels", next.at)),
            _ => {}
        }
        at = end;
    }
}

/// Whether the chain of chunks runs to its end, so that the file was not cut off after the last pixel either.
pub(crate) fn require_end(bytes: &[u8]) -> Result<()> {
    let mut at = SIGNATURE_BYTES;
    loop {
        let (next, end) = chunk(bytes, at)?;
        if &next.kind == b"IEND" {
            return Ok(());
        }
        at = end;
    }
}

pub(crate) fn explain(error: DecodingError, bytes: &[u8]) -> Error {
    let truncated = matches!(&error, DecodingError::IoError(io) if io.kind() == ErrorKind::UnexpectedEof);
    if let DecodingError::LimitsExceeded = error {
        let limit = Limits::FIXED_BYTES as u64;
        return Error::Limit { what: "the size of a metadata chunk", found: limit + 1, limit };
    }
    let problem = if truncated {
        "the pixels end too early".into()
    } else {
        error.to_string().trim_end_matches('.').to_owned().into()
    };
    let offset = truncated.then_some(bytes.len());
    Error::Format { format: NAME, problem, offset, truncated, source: Some(Box::new(error)) }
}

type Reader<'a> = png::Reader<Cursor<&'a [u8]>>;

/// The filtered rows, which our own decoder has all at once; row by row it is one, or of an interlaced image all of them, where
/// they do not go straight to their output.
pub(crate) fn working_bytes(header: &Header, layout: &Layout, row_by_row: bool) -> usize {
    let plain =
        layout.is_plain() && header.channels == layout.channels && usize::from(header.bits) == layout.dtype.bytes() * 8;
    let row_bytes = header.width * header.channels * usize::from(header.bits / 8);
    let all_rows = if header.progressive { !plain } else { !row_by_row };
    if all_rows { (row_bytes + 1).saturating_mul(header.height) } else { row_bytes }
}

/// Begins to decode, within limits, and with every checksum looked at.
pub(crate) fn open<'a>(bytes: &'a [u8], header: &Header, transformations: Transformations) -> Result<Reader<'a>> {
    // The checksum of the pixels is left out unless asked for; that of their chunks says only how they were written.
    let mut options = png::DecodeOptions::default();
    options.set_ignore_adler32(false);
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    let mut decoder = png::Decoder::new_with_options(Cursor::new(bytes), options);
    // The crate counts one row against its limit too; no pixel takes more than 8 bytes.
    decoder.set_limits(png::Limits { bytes: Limits::FIXED_BYTES + header.width * 8 });
    decoder.set_transformations(transformations);
    decoder.read_info().map_err(|error| explain(error, bytes))
}

/// The EXIF data and the color profile, which is inflated within the crate's limit; what is damaged is left out.
pub(crate) fn metadata(bytes: &[u8]) -> Metadata {
    let mut decoder = png::Decoder::new(Cursor::new(bytes));
    decoder.set_limits(png::Limits { bytes: Limits::FIXED_BYTES });
    let Ok(reader) = decoder.read_info() else { return Metadata::default() };
    let owned = |part: &Option<Cow<'_, [u8]>>| part.as_ref().map(|part| part.to_vec());
    Metadata { exif: owned(&reader.info().exif_metadata), icc: owned(&reader.info().icc_profile) }
}

/// Decodes, by our own decoder if there is memory for that; `true` if data was missing and that was accepted.
pub(crate) fn decode(own: Option<&mut forebay_png::Decoder>, header: &Header, task: &mut Task<'_>) -> Result<bool> {
    if own.is_some_and(|own| decode_valid(own, header, task)) {
        return Ok(false);
    }
    decode_any(header, task)
}

/// Decodes what our own decoder can do, to the same pixels as the `png` crate; `false`, and nothing written, if the image is
/// damaged, of a kind that it does not do, or too large for its way of doing it.
fn decode_valid(own: &mut forebay_png::Decoder, header: &Header, task: &mut Task<'_>) -> bool {
    let layout = task.layout;
    // Without vector instructions the crate is faster.
    if header.progressive || own.level() == forebay_png::Level::Scalar {
        return false;
    }
    let Ok(found) = forebay_png::header(task.bytes) else { return false };
    let samples = if found.bits == 16 { Samples::SixteenBigEndian } else { Samples::Eight };
    let source =
        SourceRows { x: 0, height: header.height, channels: found.channels(), samples, divisor: layout.divisor };
    let same_header = (found.width, found.height, found.channels()) == (header.width, header.height, header.channels);
    if !same_header || layout::require_bytes(layout, found.working_bytes(), task.options).is_err() {
        return false;
    }
    let same = layout.is_plain() && source.channels == layout.channels && samples.bytes() == layout.dtype.bytes();
    if same && samples == Samples::Eight {
        return own.decode_into(task.bytes, task.output).is_ok();
    }
    let mut rows = sink::open(layout, source, task.output);
    let end = rows.end().min(header.height);
    let result = own.decode_rows(task.bytes, 0..end, |y, row| rows.push(y, row));
    if result.is_ok() {
        rows.finish();
    }
    result.is_ok()
}

/// Decodes through the `png` crate.
fn decode_any(header: &Header, task: &mut Task<'_>) -> Result<bool> {
    let allow_truncated = task.options.allow_truncated;
    if !allow_truncated {
        require_end(task.bytes)?;
    }
    let mut reader = open(task.bytes, header, Transformations::EXPAND)?;
    let info = reader.info();
    if (info.width as usize, info.height as usize, info.interlaced) != (header.width, header.height, header.progressive)
    {
        return Err(Error::format(NAME, "the header has two readings"));
    }
    let (color, depth) = reader.output_color_type();
    let source = SourceRows {
        x: 0,
        height: header.height,
        channels: color.samples(),
        samples: if depth == BitDepth::Sixteen { Samples::SixteenBigEndian } else { Samples::Eight },
        divisor: task.layout.divisor,
    };
    match decode_rows(&mut reader, header, source, task) {
        Ok(()) => Ok(allow_truncated && require_end(task.bytes).is_err()),
        Err(Error::Format { .. }) if allow_truncated => Ok(true),
        Err(error) => Err(error),
    }
}

fn decode_rows(reader: &mut Reader<'_>, header: &Header, source: SourceRows, task: &mut Task<'_>) -> Result<()> {
    let layout = task.layout;
    let row_bytes = header.width * source.channels * source.samples.bytes();
    let same =
        layout.is_plain() && source.channels == layout.channels && source.samples.bytes() == layout.dtype.bytes();
    if same {
        layout::require_bytes(layout, 0, task.options)?;
        let result = reader.next_frame(task.output).map_err(|error| explain(error, task.bytes));
        if source.samples == Samples::SixteenBigEndian {
            for pair in task.output.as_chunks_mut::<2>().0 {
                *pair = u16::from_be_bytes(*pair).to_ne_bytes();
            }
        }
        return result.map(|_| ());
    }
    let scratch_bytes = if header.progressive { row_bytes.saturating_mul(header.height) } else { row_bytes };
    layout::require_bytes(layout, scratch_bytes, task.options)?;
    let scratch = scratch_slice(task.scratch, scratch_bytes)?;
    let mut rows = sink::open(layout, source, task.output);
    let mut result = Ok(());
    if header.progressive {
        // What a cut-off image lacks must be zero, not what the scratch held before.
        if task.options.allow_truncated {
            scratch.fill(0);
        }
        result = reader.next_frame(scratch).map(|_| ()).map_err(|error| explain(error, task.bytes));
        for (y, row) in scratch.chunks_exact(row_bytes).enumerate() {
            rows.push(y, row);
        }
    } else {
        // To the last row, whichever are wanted: wrong data may show only in the checksums at the end.
        for y in 0..=header.height {
            match reader.read_row(scratch) {
                Ok(Some(_)) => rows.push(y, scratch),
                Ok(None) => break,
                Err(error) => {
                    result = Err(explain(error, task.bytes));
                    break;
                }
            }
        }
    }
    rows.finish();
    result
}

/// Encodes packed samples, which are big-endian where they are `deep`.
pub(crate) fn encode(
    samples: &[u8],
    (width, height): (u32, u32),
    channels: usize,
    deep: bool,
    effort: PngEffort,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_depth(if deep { BitDepth::Sixteen } else { BitDepth::Eight });
    encoder.set_compression(match effort {
        PngEffort::Fastest => png::Compression::Fastest,
        PngEffort::Fast => png::Compression::Fast,
        PngEffort::Balanced => png::Compression::Balanced,
        PngEffort::High => png::Compression::High,
    });
    let write = || -> Result<(), png::EncodingError> {
        let mut writer = encoder.write_header()?;
        writer.write_image_data(samples)?;
        writer.finish()
    };
    write().map_err(|error| Error::Format {
        format: NAME,
        problem: "the image cannot be encoded".into(),
        offset: None,
        truncated: false,
        source: Some(Box::new(error)),
    })?;
    Ok(bytes)
}
