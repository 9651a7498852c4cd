//! Pixels to bytes.

use std::{marker::PhantomData, ops::Range};

use crate::{
    choose, classic, dense,
    error::{Error, Result, reserve},
    fast,
    header::{CHECKSUM_OFFSET, ColorTransform, HEADER_BYTES, Header, Mode, Predictor, STRIP_ENTRY_BYTES, TAIL_BYTES},
    image::{Depth, Pixels, SIDE_MAX, Shape},
    kernel::{
        Level, Supported,
        checksum::checksum,
        predict::{self, Activity, Part},
    },
    model::{LEVELS, kind},
    phases::{ORDER, counts},
    scratch::{Deep, Scratch},
};

/// About how many pixels a strip has unless the caller says otherwise: few enough that threads share an image well, many
/// enough that what each strip repeats (a first row without a row above, 32 states per plane) does not count.
const STRIP_PIXELS: u64 = 1 << 17;
/// The patch of the paper.
const PATCH: u8 = 64;

/// How to encode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// How residuals become bits.
    pub mode: Mode,
    /// Rows per strip; `None` chooses strips of about 131,072 pixels. Must be `None` for classic, whose strips are as high as a
    /// patch.
    pub strip_rows: Option<u32>,
    /// The color transform; `None` chooses by a sample of the image.
    pub color: Option<ColorTransform>,
    /// The predictor; `None` chooses by a sample of the image.
    pub predictor: Option<Predictor>,
    /// The side of a patch (classic): 64 as in the paper, 32 below HD.
    pub patch: u8,
    /// The instructions to use. The bytes are the same with all.
    pub level: Level,
}

impl EncodeOptions {
    /// The defaults for a mode.
    pub fn new(mode: Mode) -> Self {
        Self { mode, strip_rows: None, color: None, predictor: None, patch: PATCH, level: Level::detect() }
    }

    /// Refuses options that the mode or the image has no use for.
    fn check(&self, shape: Shape) -> Result<()> {
        let usage = |what, expected: u64, found: u64| Err(Error::Usage { what, expected, found });
        if self.mode == Mode::Classic {
            if self.patch == 0 {
                return usage("patch side", u64::from(PATCH), 0);
            }
            if let Some(rows) = self.strip_rows {
                return usage(
                    "rows per strip of classic, which are the patch's",
                    u64::from(self.patch),
                    u64::from(rows),
                );
            }
            if let Some(predictor) = self.predictor {
                return usage("predictor of classic, which has its own", 0, predictor as u64 + 1);
            }
        } else if self.patch != PATCH {
            return usage("patch side without mode classic", u64::from(PATCH), u64::from(self.patch));
        }
        if self.strip_rows.is_some_and(|rows| rows == 0 || rows > SIDE_MAX) {
            return usage("rows per strip", u64::from(shape.height()), u64::from(self.strip_rows.unwrap_or(0)));
        }
        let colorful = shape.channels() >= 3 && self.mode != Mode::Classic;
        match self.color {
            Some(color) if color != ColorTransform::None && !colorful => {
                usage("color transform without three channels or with classic", 0, color as u64)
            }
            _ => Ok(()),
        }
    }
}

impl EncodeOptions {
    /// The rows per strip that an image of this shape is encoded with: those asked for, or as many as make strips about as high as each
    /// other. In classic they are the patch's.
    pub fn rows_per_strip(&self, shape: Shape) -> u32 {
        if self.mode == Mode::Classic {
            return u32::from(self.patch);
        }
        self.strip_rows.unwrap_or_else(|| {
            let strips = (shape.pixels() + STRIP_PIXELS / 2) / STRIP_PIXELS;
            let strips = strips.clamp(1, u64::from(shape.height())) as u32;
            shape.height().div_ceil(strips)
        })
    }
}

/// Encodes an image. The bytes depend on the pixels and the options only, not on the machine.
pub fn encode(pixels: &Pixels<'_>, options: &EncodeOptions) -> Result<Vec<u8>> {
    let shape = pixels.shape();
    options.check(shape)?;
    let level = Supported::new(options.level)?;
    if options.mode == Mode::Classic {
        let patch = options.patch;
        let mut file = File::new(header(shape, options, ColorTransform::None, None, u32::from(patch)), &[], level)?;
        while let Some(rows) = file.next_rows()? {
            classic::encode_strip(pixels, usize::from(patch), rows, &mut file.bytes);
            file.end_strip()?;
        }
        return Ok(file.finish());
    }
    match shape.depth() {
        Depth::Eight => encode_rows::<u8>(pixels, options, level),
        Depth::Sixteen => encode_rows::<u16>(pixels, options, level),
    }
}

fn header(
    shape: Shape,
    options: &EncodeOptions,
    color: ColorTransform,
    predictor: Option<Predictor>,
    strip_rows: u32,
) -> Header {
    let patch = if options.mode == Mode::Classic { options.patch } else { 0 };
    Header {
        shape,
        mode: options.mode,
        color,
        predictor,
        strip_rows,
        patch,
        released: false,
        model_bytes: 0,
        checksum: 0,
    }
}

fn encode_rows<S: Deep>(pixels: &Pixels<'_>, options: &EncodeOptions, level: Supported) -> Result<Vec<u8>> {
    let shape = pixels.shape();
    let mut rows = RowEncoder::<S>::new(shape, level)?;
    let choice = choose::choose(pixels, options, &mut rows);
    rows.color = choice.color;
    rows.predictor = choice.predictor;
    let header = header(shape, options, choice.color, Some(choice.predictor), options.rows_per_strip(shape));
    let (width, channels) = (shape.width() as usize, usize::from(shape.channels()));
    let planes = channels * S::BYTES;
    if options.mode == Mode::Fast {
        let mut file = File::new(header, &[], level)?;
        let mut sink = fast::Sink::default();
        while let Some(strip) = file.next_rows()? {
            for y in strip.clone() {
                rows.encode(pixels.row(y), y == strip.start, None);
                for plane in &rows.scratch.residuals[..planes] {
                    sink.plane_row(level, plane, width);
                }
            }
            sink.finish(&mut file.bytes);
            file.end_strip()?;
        }
        return Ok(file.finish());
    }
    let mut sink = dense::Sink::new(width, planes, shape.height() as usize)?;
    for y in 0..shape.height() as usize {
        rows.encode(pixels.row(y), y.is_multiple_of(header.strip_rows as usize), Some(choice.shifts));
        for plane in 0..planes {
            let scratch = &rows.scratch;
            sink.plane_row(plane, &scratch.residuals[plane][..width], &scratch.tables[plane][..width]);
        }
    }
    let draft = sink.draft(choice.shifts[..channels].to_vec());
    let codes = dense::codes(&draft.tables);
    let mut file = File::new(header, &draft.write(), level)?;
    while let Some(strip) = file.next_rows()? {
        sink.strip(level, &draft, &codes, strip, &mut file.bytes);
        file.end_strip()?;
    }
    Ok(file.finish())
}

/// Turns rows of pixels into residuals, and for `dense` contexts.
pub(crate) struct RowEncoder<S> {
    pub(crate) scratch: Scratch,
    pub(crate) color: ColorTransform,
    pub(crate) predictor: Predictor,
    shape: Shape,
    level: Supported,
    depth: PhantomData<S>,
}

impl<S: Deep> RowEncoder<S> {
    fn new(shape: Shape, level: Supported) -> Result<Self> {
        let mut scratch = Scratch::default();
        scratch.resize::<S>(shape)?;
        let (color, predictor) = (ColorTransform::None, Predictor::Smooth);
        Ok(Self { scratch, color, predictor, shape, level, depth: PhantomData })
    }

    /// Takes a row of pixels; its residuals are then in `scratch.residuals`, and if `shifts` is given, their contexts within
    /// their planes in `scratch.tables`.
    pub(crate) fn encode(&mut self, row: &[u8], first: bool, shifts: Option<[u8; 4]>) {
        let (width, channels) = (self.shape.width() as usize, usize::from(self.shape.channels()));
        let counts = counts(width);
        let rows = S::rows(&mut self.scratch);
        rows.advance();
        S::start(self.level, self.color, row, width, &mut rows.current[..channels]);
        let part = Part { phases: &ORDER, start: 0, counts: &counts, channels, predictor: self.predictor, first };
        let (rows, residuals) = S::residuals_mut(&mut self.scratch);
        predict::encode(self.level, part, residuals, rows);
        S::split(&mut self.scratch, channels, width);
        if let Some(shifts) = shifts {
            self.contexts(part, shifts);
        }
    }

    /// The context of each residual within its plane.
    fn contexts(&mut self, part: Part<'_>, shifts: [u8; 4]) {
        let mut tables = std::mem::take(&mut self.scratch.tables);
        let mut start = 0;
        for phase in ORDER {
            let base = (kind(phase) * LEVELS) as u8;
            let numbers = std::array::from_fn(|level| base + level as u8);
            let activities = shifts.map(|shift| Activity { tables: numbers, shift: u32::from(shift) });
            let part = Part { phases: &[phase], start, ..part };
            predict::tables(self.level, part, &activities, &mut tables, S::rows(&mut self.scratch));
            start += part.counts[phase];
        }
        self.scratch.tables = tables;
        if S::BYTES == 2 {
            for channel in 0..part.channels {
                self.low_contexts(channel, part.channels, part.counts);
            }
        }
    }

    /// The context of a low byte is its high byte.
    fn low_contexts(&mut self, channel: usize, channels: usize, counts: &[usize; 4]) {
        let Scratch { residuals, tables, .. } = &mut self.scratch;
        let mut start = 0;
        for phase in ORDER {
            let base = (kind(phase) * LEVELS) as u8;
            let range = start..start + counts[phase];
            for (context, &high) in tables[channels + channel][range.clone()].iter_mut().zip(&residuals[channel][range])
            {
                *context = base + high.min(LEVELS as u8 - 1);
            }
            start += counts[phase];
        }
    }
}

/// A file under construction: header, strip table and model first, then strips one by one.
struct File {
    bytes: Vec<u8>,
    header: Header,
    level: Supported,
    /// Where the current strip begins.
    strip_start: usize,
    strip: u32,
    /// Where the strips begin.
    payload: usize,
}

impl File {
    fn new(mut header: Header, model: &[u8], level: Supported) -> Result<Self> {
        header.model_bytes = model.len() as u32;
        let mut bytes = Vec::new();
        reserve(&mut bytes, header.shape.bytes() / 2 + 1024)?;
        bytes.extend_from_slice(&header.to_bytes());
        bytes.resize(HEADER_BYTES + STRIP_ENTRY_BYTES * header.strip_count() as usize, 0);
        bytes.extend_from_slice(model);
        let payload = bytes.len();
        Ok(Self { bytes, header, level, strip_start: payload, strip: 0, payload })
    }

    /// The rows of the strip to write next, with space for them: no mode makes more of a byte than four.
    fn next_rows(&mut self) -> Result<Option<Range<usize>>> {
        let start = u64::from(self.strip) * u64::from(self.header.strip_rows);
        let height = u64::from(self.header.shape.height());
        if start >= height {
            return Ok(None);
        }
        let rows = start as usize..(start + u64::from(self.header.strip_rows)).min(height) as usize;
        reserve(&mut self.bytes, 4 * rows.len() * self.header.shape.row_bytes() + 1024)?;
        Ok(Some(rows))
    }

    /// Enters the strip just written into the table.
    fn end_strip(&mut self) -> Result<()> {
        let strip = &self.bytes[self.strip_start..];
        let Ok(length) = u32::try_from(strip.len()) else {
            let hint = "use fewer rows per strip";
            return Err(Error::Limit {
                what: "bytes of a strip",
                limit: u64::from(u32::MAX),
                found: strip.len() as u64,
                hint,
            });
        };
        let checksum = checksum(self.level, strip);
        let entry = HEADER_BYTES + STRIP_ENTRY_BYTES * self.strip as usize;
        self.bytes[entry..entry + 4].copy_from_slice(&length.to_le_bytes());
        self.bytes[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        self.strip_start = self.bytes.len();
        self.strip += 1;
        Ok(())
    }

    fn finish(mut self) -> Vec<u8> {
        let checksum = crc32c::crc32c(&self.bytes[..CHECKSUM_OFFSET]);
        let checksum = crc32c::crc32c_append(checksum, &self.bytes[HEADER_BYTES..self.payload]);
        self.bytes[CHECKSUM_OFFSET..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        self.bytes.extend_from_slice(&[0; TAIL_BYTES]);
        self.bytes
    }
}
