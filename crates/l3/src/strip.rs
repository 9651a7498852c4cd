//! Decoding one strip: rows of residuals in, pixels out.

use std::ops::Range;

use crate::{
    classic, dense,
    error::{Error, Result, resize},
    fast,
    header::{Header, Mode, Predictor},
    image::Depth,
    kernel::{Supported, predict, stream::Stream},
    model::Model,
    phases::{ORDER, counts},
    scratch::{Deep, Scratch},
};

/// One strip to decode, and what of it is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) header: &'a Header,
    pub(crate) model: &'a Model,
    /// The whole file: kernels may load, though not use, bytes beyond the payload.
    pub(crate) data: &'a [u8],
    /// Where the strip's payload is.
    pub(crate) payload: Range<usize>,
    /// Rows of this strip.
    pub(crate) rows: usize,
    /// Rows wanted, from the strip's first.
    pub(crate) wanted: Range<usize>,
    /// Columns wanted.
    pub(crate) columns: Range<usize>,
    /// The parts of the released layout, if it is that.
    pub(crate) released: Option<classic::Released>,
    pub(crate) level: Supported,
    /// Whether pixels are written past the cache.
    pub(crate) streaming: bool,
}

impl Job<'_> {
    pub(crate) fn width(&self) -> usize {
        self.header.shape.width() as usize
    }

    pub(crate) fn channels(&self) -> usize {
        usize::from(self.header.shape.channels())
    }

    /// An error about this strip's payload.
    pub(crate) fn error(&self, what: &'static str, expected: usize, found: usize) -> Error {
        Error::Format { what, offset: self.payload.start as u64, expected: expected as u64, found: found as u64 }
    }

    /// Where row `y` of the strip goes in `out`, if it is wanted.
    pub(crate) fn target<'o>(&self, y: usize, out: &'o mut [u8], stride_bytes: usize) -> Option<&'o mut [u8]> {
        let row_bytes = self.columns.len() * self.header.shape.pixel_bytes();
        let start = y.checked_sub(self.wanted.start)? * stride_bytes;
        Some(&mut out[start..start + row_bytes])
    }
}

/// What decodes a row of samples: `fast` all phases at once, `dense` one after the other.
pub(crate) trait Source {
    /// Decodes the samples of the next row, which is `part`, to the current row.
    fn row<S: Deep>(&mut self, job: &Job<'_>, scratch: &mut Scratch, part: predict::Part<'_>) -> Result<()>;
    /// Called when all rows were read: everything must be used up.
    fn end(&self, job: &Job<'_>) -> Result<()>;
}

/// Decodes the wanted part of a strip to `out`, whose size the caller has checked.
pub(crate) fn decode(job: &Job<'_>, scratch: &mut Scratch, out: &mut [u8], stride_bytes: usize) -> Result<()> {
    match (job.header.mode, job.header.shape.depth()) {
        (Mode::Classic, _) => classic::decode_strip(job, scratch, out, stride_bytes),
        (Mode::Fast, Depth::Eight) => rows::<u8>(job, &mut fast::Source::new(job)?, scratch, out, stride_bytes),
        (Mode::Fast, Depth::Sixteen) => rows::<u16>(job, &mut fast::Source::new(job)?, scratch, out, stride_bytes),
        (Mode::Dense, Depth::Eight) => rows::<u8>(job, &mut dense::Source::new(job)?, scratch, out, stride_bytes),
        (Mode::Dense, Depth::Sixteen) => rows::<u16>(job, &mut dense::Source::new(job)?, scratch, out, stride_bytes),
    }
}

fn rows<S: Deep>(
    job: &Job<'_>,
    source: &mut impl Source,
    scratch: &mut Scratch,
    out: &mut [u8],
    stride_bytes: usize,
) -> Result<()> {
    scratch.resize::<S>(job.header.shape)?;
    let stream = job.streaming.then(|| Stream::new(job.level));
    if job.columns.len() < job.width() || stream.is_some() {
        resize(&mut scratch.row, job.header.shape.row_bytes())?;
    }
    let (width, channels) = (job.width(), job.channels());
    let counts = counts(width);
    let predictor = job.header.predictor.unwrap_or(Predictor::Smooth);
    for y in 0..job.wanted.end {
        let part = predict::Part { phases: &ORDER, start: 0, counts: &counts, channels, predictor, first: y == 0 };
        source.row::<S>(job, scratch, part)?;
        if let Some(target) = job.target(y, out, stride_bytes) {
            finish::<S>(job, scratch, target, stream.as_ref());
        }
        S::rows(scratch).advance();
    }
    if job.wanted.end == job.rows { source.end(job) } else { Ok(()) }
}

/// Writes the current row, or its wanted columns, as pixels.
fn finish<S: Deep>(job: &Job<'_>, scratch: &mut Scratch, target: &mut [u8], stream: Option<&Stream>) {
    let (width, channels, transform) = (job.width(), job.channels(), job.header.color);
    let is_whole = job.columns.len() == width;
    if is_whole
        && let Some(stream) = stream
        && S::finish_streamed(stream, transform, S::rows(scratch), channels, target)
    {
        return;
    }
    if is_whole && stream.is_none() {
        S::finish(job.level, transform, S::rows(scratch), channels, width, target);
    } else {
        let mut row = std::mem::take(&mut scratch.row);
        S::finish(job.level, transform, S::rows(scratch), channels, width, &mut row);
        let start = job.columns.start * job.header.shape.pixel_bytes();
        let wanted = &row[start..start + target.len()];
        match stream {
            Some(stream) => stream.copy(wanted, target),
            None => target.copy_from_slice(wanted),
        }
        scratch.row = row;
    }
}
