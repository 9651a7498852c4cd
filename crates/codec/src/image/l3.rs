//! L3 through the `forebay-l3` crate: strips that are decoded each on its own, straight into the output where nothing is left
//! to convert.

use std::borrow::Cow;

use forebay_l3::{DecodeOptions as Settings, Depth, EncodeOptions, Mode, Pixels, Region, Scratch, Shape, Strips};

use crate::error::{Error, Result};
use crate::memory;

use super::decoder::{Task, scratch_slice};
use super::format::Format;
use super::header::Header;
use super::layout::{self, Layout};
use super::options::Limits;
use super::orientation::Orientation;
use super::sink::{self, Samples, SourceRows};

pub(super) use forebay_l3::SIDE_MAX as L3_SIDE_MAX;
pub use forebay_l3::{Mode as L3Mode, StripBatch as L3StripBatch};

const NAME: &str = Format::L3.name();

/// What the header says beyond [`Header`].
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) header: Header,
    own: forebay_l3::Header,
}

/// The library's decoders, which keep their working memory: through the cache, and past it. The limits are ours, and checked before
/// one is called.
pub(crate) struct Unpacker([forebay_l3::Decoder; 2]);

impl Default for Unpacker {
    fn default() -> Self {
        Self([false, true].map(|streaming| forebay_l3::Decoder::new(settings(streaming))))
    }
}

impl Unpacker {
    pub(crate) fn decoder(&mut self, streaming: bool) -> &mut forebay_l3::Decoder {
        &mut self.0[usize::from(streaming)]
    }
}

/// Without limits of the library's.
fn settings(streaming: bool) -> Settings {
    Settings { max_pixels: u64::MAX, streaming, ..Settings::default() }
}

/// What the library says of a file, in our words.
fn explain(error: forebay_l3::Error) -> Error {
    use forebay_l3::Error as Own;
    let (problem, offset, truncated) = match error {
        Own::Truncated { what, needed, found } => {
            (format!("{what} needs `{needed}` bytes, there are `{found}`"), found, true)
        }
        Own::Format { what, expected, found, .. } if what == "length of the file" && found < expected => {
            (format!("the file needs `{expected}` bytes, there are `{found}`"), found, true)
        }
        Own::Format { what, offset, expected, found } => {
            (format!("{what}: expected `{expected}`, found `{found}`"), offset, false)
        }
        Own::Checksum { what, strip, offset, expected, found } => {
            let what = strip.map_or_else(|| what.to_owned(), |strip| format!("strip `{strip}`"));
            (format!("the checksum of {what} is `{expected:08x}`, its bytes give `{found:08x}`"), offset, false)
        }
        Own::Unsupported { what, found, hint } => return Error::unsupported(NAME, format!("{what} `{found}`"), hint),
        // The format's own limits, which no option raises.
        Own::Limit { what, limit, found, hint } => {
            return Error::unsupported(NAME, format!("{what} of `{found}`, over `{limit}`,"), hint);
        }
        Own::Memory { bytes } => return Error::Memory { bytes },
        Own::Usage { what, expected, found } => return Error::usage(what, expected, found),
        other => {
            let source = Some(other.into());
            return Error::Format {
                format: NAME,
                problem: "it cannot be decoded".into(),
                offset: None,
                truncated: false,
                source,
            };
        }
    };
    let (problem, offset) = (problem.into(), Some(offset as usize));
    Error::Format { format: NAME, problem, offset, truncated, source: Some(error.into()) }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<File> {
    let own = forebay_l3::Header::parse(bytes).map_err(explain)?;
    let header = Header {
        format: Format::L3,
        width: own.shape.width() as usize,
        height: own.shape.height() as usize,
        channels: usize::from(own.shape.channels()),
        bits: own.shape.depth().bits(),
        orientation: Orientation::Normal,
        progressive: false,
        animated: false,
    };
    Ok(File { header, own })
}

/// Whether a header says that a file was encoded so.
pub(crate) fn made(head: &[u8], mode: Mode, strip_rows: Option<u32>) -> bool {
    let Ok(own) = forebay_l3::Header::parse(head) else { return false };
    let options = EncodeOptions { strip_rows, ..EncodeOptions::new(mode) };
    !own.released && own.mode == mode && (mode == Mode::Classic || own.strip_rows == options.rows_per_strip(own.shape))
}

impl File {
    /// What the library holds of the picture at once: the rows of one patch where there are patches, else a few rows, which
    /// are not counted.
    fn working_bytes(&self) -> usize {
        if self.own.mode == Mode::Classic { usize::from(self.own.patch) * self.own.shape.row_bytes() } else { 0 }
    }

    fn samples(&self) -> Samples {
        if self.header.bits == 16 { Samples::SixteenLittleEndian } else { Samples::Eight }
    }
}

/// What the library holds, and what is wanted of the picture where it does not go straight to its output.
pub(crate) fn working_bytes(file: &File, layout: &Layout) -> usize {
    let (header, window, divisor) = (&file.header, layout.window, layout.divisor);
    let sample_bytes = file.samples().bytes();
    if header.channels == layout.channels && sample_bytes == layout.dtype.bytes() && divisor == 1 {
        return file.working_bytes();
    }
    let pixels = (window.width * divisor).saturating_mul(window.height * divisor);
    pixels.saturating_mul(header.channels * sample_bytes).saturating_add(file.working_bytes())
}

/// Decodes the strips that the window touches. Nothing is accepted in part.
pub(crate) fn decode(decoder: &mut forebay_l3::Decoder, file: &File, task: &mut Task<'_>) -> Result<bool> {
    let (layout, header) = (task.layout, &file.header);
    let (window, divisor) = (layout.window, layout.divisor);
    let samples = file.samples();
    let pixel_bytes = header.channels * samples.bytes();
    let same = header.channels == layout.channels && samples.bytes() == layout.dtype.bytes();
    let (x, y) = (window.x * divisor, window.y * divisor);
    let width = (window.width * divisor).min(header.width - x);
    let height = (window.height * divisor).min(header.height - y);
    let region = Region { x: x as u32, y: y as u32, width: width as u32, height: height as u32 };
    let row_bytes = width * pixel_bytes;
    if same && divisor == 1 {
        layout::require_bytes(layout, file.working_bytes(), task.options)?;
        decoder.decode_region_into(task.bytes, region, task.output, row_bytes).map_err(explain)?;
        if cfg!(target_endian = "big") && samples == Samples::SixteenLittleEndian {
            task.output.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.reverse());
        }
        return Ok(false);
    }
    let scratch_bytes = row_bytes.saturating_mul(height);
    layout::require_bytes(layout, scratch_bytes.saturating_add(file.working_bytes()), task.options)?;
    let scratch = scratch_slice(task.scratch, scratch_bytes)?;
    decoder.decode_region_into(task.bytes, region, scratch, row_bytes).map_err(explain)?;
    let source = SourceRows { x, height: header.height, channels: header.channels, samples, divisor };
    let mut rows = sink::open(layout, source, task.output);
    for (number, row) in scratch.chunks_exact(row_bytes).enumerate() {
        rows.push(y + number, row);
    }
    rows.finish();
    Ok(false)
}

/// Encodes packed samples in the machine's byte order.
pub(crate) fn encode(
    samples: &[u8],
    (width, height): (u32, u32),
    channels: usize,
    deep: bool,
    mode: Mode,
    strip_rows: Option<u32>,
) -> Result<Vec<u8>> {
    let depth = if deep { Depth::Sixteen } else { Depth::Eight };
    let write = || {
        let shape = Shape::new(width, height, channels as u8, depth)?;
        let options = EncodeOptions { strip_rows, ..EncodeOptions::new(mode) };
        forebay_l3::encode(&Pixels::new(shape, &little_endian(samples, deep))?, &options)
    };
    write().map_err(|error| match error {
        forebay_l3::Error::Limit { what, limit, found, .. } => {
            Error::usage("the image cannot be encoded as L3", format!("{what} of at most {limit}"), found)
        }
        other => explain(other),
    })
}

/// Adds the strips of a file that a region touches (or all of them) to a batch for a GPU, verified as far as that goes without decoding them.
pub fn push_l3(
    batch: &mut L3StripBatch,
    bytes: &[u8],
    region: Option<super::options::Region>,
    limits: &Limits,
) -> Result<Header> {
    let file = match Format::detect(bytes) {
        Some(Format::L3) | None => read(bytes)?,
        Some(other) => {
            let hint = "build the data set with `l3-fast` or `l3-dense`, or decode on the CPU";
            return Err(Error::unsupported(other.name(), "decoding on a GPU", hint));
        }
    };
    let (found, limit) = (file.own.shape.pixels(), limits.max_pixels as u64);
    if found > limit {
        return Err(Error::Limit { what: "the number of pixels", found, limit });
    }
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let region = region.map(|region| Region {
        x: number(region.x),
        y: number(region.y),
        width: number(region.width),
        height: number(region.height),
    });
    batch.push(bytes, region, settings(false)).map_err(explain)?;
    Ok(file.header)
}

/// The samples with the low byte first where they are 16 bit.
fn little_endian(data: &[u8], deep: bool) -> Cow<'_, [u8]> {
    if !deep || cfg!(target_endian = "little") {
        return Cow::Borrowed(data);
    }
    Cow::Owned(data.as_chunks::<2>().0.iter().flat_map(|&pair| u16::from_ne_bytes(pair).to_le_bytes()).collect())
}

/// What an L3 file is made of.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct L3Details {
    /// How it is coded.
    pub mode: L3Mode,
    /// Whether it is the layout that the authors of the paper released, which has no checksums.
    pub released: bool,
    /// The name of the color transform.
    pub color_transform: &'static str,
    /// The name of the predictor; classic has its own.
    pub predictor: &'static str,
    /// Rows of each strip; the last may have fewer.
    pub strip_rows: usize,
    /// The strips, from the top.
    pub strips: Vec<L3Strip>,
}

/// One strip of an L3 file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct L3Strip {
    /// Its payload; `None` in the released layout, where it lies in three pieces.
    pub bytes: Option<u64>,
    /// What is wrong with it, where it was verified and something is.
    pub damage: Option<String>,
}

/// Says what an L3 file is made of; with `verify`, every strip is decoded, and damage to one does not hide the others. Damage
/// to the header or the strip table is an error.
pub fn inspect_l3(bytes: &[u8], verify: bool, limits: &Limits) -> Result<L3Details> {
    let max_pixels = limits.max_pixels as u64;
    let limit = |error| match error {
        forebay_l3::Error::Limit { found, limit, .. } if limit == max_pixels => {
            Error::Limit { what: "the number of pixels", found, limit }
        }
        other => explain(other),
    };
    let opened = Strips::open(bytes, Settings { max_pixels, ..Settings::default() }).map_err(limit)?;
    let header = *opened.header();
    let row_bytes = header.shape.row_bytes();
    let strip_rows = header.strip_rows.min(header.shape.height()) as usize;
    let mut rows = Vec::new();
    if verify {
        let (found, limit) = (row_bytes.saturating_mul(strip_rows), limits.max_bytes);
        if found > limit {
            let what = "the memory to decode a strip, in bytes,";
            return Err(Error::Limit { what, found: found as u64, limit: limit as u64 });
        }
        memory::grow(&mut rows, found)?;
    }
    let mut scratch = Scratch::default();
    let mut strip = |number| {
        let decoded =
            if verify { opened.decode_strip_into(number, &mut scratch, &mut rows, row_bytes) } else { Ok(()) };
        let damage = decoded.err().map(|error| explain(error).to_string());
        L3Strip { bytes: opened.payload_bytes(number), damage }
    };
    Ok(L3Details {
        mode: header.mode,
        released: header.released,
        color_transform: header.color.name(),
        predictor: header.predictor.map_or(Mode::Classic.name(), forebay_l3::Predictor::name),
        strip_rows,
        strips: (0..opened.count()).map(&mut strip).collect(),
    })
}
