//! Buffers that decoding and encoding reuse from row to row and from image to image.

use std::ops::Range;

use crate::{
    error::{Result, resize},
    header::ColorTransform,
    image::Shape,
    kernel::{
        Supported,
        finish::{finish_row, finish_row_streamed, finish_row_wide},
        predict::{self, Part},
        start::{start_row, start_row_narrow},
        stream::Stream,
    },
    phases::{PAD, Phases, padded},
    sample::Sample,
};

/// The row being coded and the one above it, for each channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows<S> {
    pub(crate) current: [Phases<S>; 4],
    pub(crate) above: [Phases<S>; 4],
}

impl<S: Sample> Rows<S> {
    fn resize(&mut self, width: usize, channels: usize) -> Result<()> {
        let mut rows = self.current[..channels].iter_mut().chain(&mut self.above[..channels]);
        rows.try_for_each(|phases| phases.resize(width))
    }

    /// Makes the current row the one above.
    pub(crate) fn advance(&mut self) {
        std::mem::swap(&mut self.current, &mut self.above);
    }
}

/// Working memory for one thread. It grows to what the widest image needs, a few bytes per sample of one row (in classic, of one
/// row of patches), and is then reused without further allocation.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(crate) narrow: Rows<u8>,
    pub(crate) wide: Rows<u16>,
    /// Zigzag residuals of one row, byte plane by byte plane: the channels, for 16 bits first their high then their low bytes.
    pub(crate) residuals: Vec<Vec<u8>>,
    /// The table of each symbol of one phase, channel by channel.
    pub(crate) tables: Vec<Vec<u8>>,
    /// 16-bit residuals joined from their bytes, channel by channel.
    pub(crate) joined: [Vec<u16>; 4],
    /// One whole row of pixels, where only some columns are wanted.
    pub(crate) row: Vec<u8>,
    /// A patch row of planes (classic).
    pub(crate) patches: Vec<u8>,
}

impl Scratch {
    /// Makes space for the rows of an image.
    pub(crate) fn resize<S: Deep>(&mut self, shape: Shape) -> Result<()> {
        let (width, channels) = (shape.width() as usize, usize::from(shape.channels()));
        S::rows(self).resize(width, channels)?;
        let planes = channels * shape.depth().bytes();
        if self.residuals.len() < planes {
            self.residuals.resize(planes, Vec::new());
            self.tables.resize(planes, Vec::new());
        }
        for buffer in self.residuals.iter_mut().chain(&mut self.tables) {
            resize(buffer, padded(width) + 4 * PAD)?;
        }
        for buffer in self.joined.iter_mut().take(if S::BYTES == 2 { channels } else { 0 }) {
            resize(buffer, padded(width) + 4 * PAD)?;
        }
        Ok(())
    }
}

/// Samples of 8 or 16 bits with what differs between them outside the kernels.
pub(crate) trait Deep: Sample {
    /// Byte planes per channel.
    const BYTES: usize;

    /// This depth's rows.
    fn rows(scratch: &mut Scratch) -> &mut Rows<Self>;

    /// This depth's rows and residuals, channel by channel. Those in `range` are joined from their byte planes first.
    fn joined(scratch: &mut Scratch, channels: usize, range: Range<usize>) -> (&mut Rows<Self>, &[Vec<Self>]);

    /// Turns residuals into samples of the current row.
    fn predict(level: Supported, part: Part<'_>, residuals: &[Vec<Self>], rows: &mut Rows<Self>);

    /// This depth's rows and residuals, to write; [`Deep::split`] then makes the byte planes.
    fn residuals_mut(scratch: &mut Scratch) -> (&mut Rows<Self>, &mut [Vec<Self>]);

    /// Cuts a row of residuals into byte planes.
    fn split(scratch: &mut Scratch, channels: usize, width: usize);

    /// Takes a row of pixels apart, to the current rows.
    fn start(level: Supported, transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<Self>]) {
        start_row(level, transform, row, width, planes);
    }

    /// Writes the current rows as one row of pixels.
    fn finish(
        level: Supported,
        transform: ColorTransform,
        rows: &Rows<Self>,
        channels: usize,
        width: usize,
        out: &mut [u8],
    );

    /// The same past the cache; false, and nothing is written, where that cannot be.
    #[must_use]
    fn finish_streamed(
        _stream: &Stream,
        _transform: ColorTransform,
        _rows: &Rows<Self>,
        _channels: usize,
        _out: &mut [u8],
    ) -> bool {
        false
    }
}

impl Deep for u8 {
    const BYTES: usize = 1;

    fn rows(scratch: &mut Scratch) -> &mut Rows<Self> {
        &mut scratch.narrow
    }

    fn joined(scratch: &mut Scratch, _channels: usize, _range: Range<usize>) -> (&mut Rows<Self>, &[Vec<Self>]) {
        (&mut scratch.narrow, &scratch.residuals)
    }

    fn predict(level: Supported, part: Part<'_>, residuals: &[Vec<Self>], rows: &mut Rows<Self>) {
        predict::decode_narrow(level, part, residuals, rows);
    }

    fn residuals_mut(scratch: &mut Scratch) -> (&mut Rows<Self>, &mut [Vec<Self>]) {
        (&mut scratch.narrow, &mut scratch.residuals)
    }

    fn split(_scratch: &mut Scratch, _channels: usize, _width: usize) {}

    fn start(level: Supported, transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<Self>]) {
        start_row_narrow(level, transform, row, width, planes);
    }

    fn finish(
        level: Supported,
        transform: ColorTransform,
        rows: &Rows<Self>,
        channels: usize,
        width: usize,
        out: &mut [u8],
    ) {
        finish_row(level, transform, &rows.current[..channels], width, out);
    }

    fn finish_streamed(
        stream: &Stream,
        transform: ColorTransform,
        rows: &Rows<Self>,
        channels: usize,
        out: &mut [u8],
    ) -> bool {
        finish_row_streamed(stream, transform, &rows.current[..channels], out)
    }
}

impl Deep for u16 {
    const BYTES: usize = 2;

    fn rows(scratch: &mut Scratch) -> &mut Rows<Self> {
        &mut scratch.wide
    }

    fn joined(scratch: &mut Scratch, channels: usize, range: Range<usize>) -> (&mut Rows<Self>, &[Vec<Self>]) {
        let (high, low) = scratch.residuals.split_at(channels);
        for ((joined, high), low) in scratch.joined.iter_mut().zip(high).zip(low) {
            let (high, low) = (&high[range.clone()], &low[range.clone()]);
            for ((joined, &high), &low) in joined[range.clone()].iter_mut().zip(high).zip(low) {
                *joined = u16::from_be_bytes([high, low]);
            }
        }
        (&mut scratch.wide, &scratch.joined)
    }

    fn predict(level: Supported, part: Part<'_>, residuals: &[Vec<Self>], rows: &mut Rows<Self>) {
        predict::decode_wide(level, part, residuals, rows);
    }

    fn residuals_mut(scratch: &mut Scratch) -> (&mut Rows<Self>, &mut [Vec<Self>]) {
        (&mut scratch.wide, &mut scratch.joined)
    }

    fn split(scratch: &mut Scratch, channels: usize, width: usize) {
        let (high, low) = scratch.residuals.split_at_mut(channels);
        for ((joined, high), low) in scratch.joined.iter().zip(high).zip(low) {
            for ((joined, high), low) in joined[..width].iter().zip(&mut high[..width]).zip(&mut low[..width]) {
                [*high, *low] = joined.to_be_bytes();
            }
        }
    }

    fn finish(
        level: Supported,
        transform: ColorTransform,
        rows: &Rows<Self>,
        channels: usize,
        width: usize,
        out: &mut [u8],
    ) {
        finish_row_wide(level, transform, &rows.current[..channels], width, out);
    }
}
