//! Where decoded rows go: each is cut, converted, averaged down, turned and written to its position in the output.
//!
//! With this, decoders that yield rows in order need no image-sized buffer, whatever the options.

use crate::tensor::DType;

use super::layout::Layout;
use super::orientation::Orientation;

/// How the samples of source rows are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    Eight,
    /// Two bytes, the high one first, as PNG and PNM store them.
    SixteenBigEndian,
    /// Two bytes, the low one first, as L3 stores them.
    SixteenLittleEndian,
}

impl Samples {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Eight => 1,
            Self::SixteenBigEndian | Self::SixteenLittleEndian => 2,
        }
    }
}

/// The rows that a decoder yields: their position and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceRows {
    /// The column of the (scaled, for JPEG) stored image at which they begin.
    pub(crate) x: usize,
    /// The image's height in the same coordinates.
    pub(crate) height: usize,
    pub(crate) channels: usize,
    pub(crate) samples: Samples,
    /// By how much they must yet be averaged down.
    pub(crate) divisor: usize,
}

/// Takes rows.
pub(crate) trait Rows {
    /// Takes row `y` of the source; rows that are not wanted are ignored. Rows must come in ascending order.
    fn push(&mut self, y: usize, row: &[u8]);
    /// The first source row that is not wanted any more.
    fn end(&self) -> usize;
    /// Writes what has been averaged of a last, incomplete group of rows.
    fn finish(&mut self);
}

/// The sink that fits `layout`.
pub(crate) fn open<'a>(layout: &Layout, source: SourceRows, output: &'a mut [u8]) -> Box<dyn Rows + 'a> {
    match layout.dtype {
        DType::U16 => Box::new(Sink::<u16>::new(*layout, source, output)),
        _ => Box::new(Sink::<u8>::new(*layout, source, output)),
    }
}

/// A sample of the output.
trait Sample: bytemuck::Pod + Into<u32> {
    const MAX: Self;
    /// Appends the samples of a source row.
    fn read(bytes: &[u8], samples: Samples, into: &mut Vec<Self>);
    fn narrow(value: u32) -> Self;
}

impl Sample for u8 {
    const MAX: Self = u8::MAX;

    fn read(bytes: &[u8], samples: Samples, into: &mut Vec<Self>) {
        match samples {
            Samples::Eight => into.extend_from_slice(bytes),
            Samples::SixteenBigEndian => into.extend(bytes.iter().step_by(2)),
            Samples::SixteenLittleEndian => into.extend(bytes.iter().skip(1).step_by(2)),
        }
    }

    fn narrow(value: u32) -> Self {
        value as Self
    }
}

impl Sample for u16 {
    const MAX: Self = u16::MAX;

    fn read(bytes: &[u8], samples: Samples, into: &mut Vec<Self>) {
        match samples {
            // A deep output of shallow rows does not occur; repeating the byte would be the right widening.
            Samples::Eight => into.extend(bytes.iter().map(|&byte| u16::from(byte) * 257)),
            Samples::SixteenBigEndian => {
                into.extend(bytes.as_chunks::<2>().0.iter().map(|&pair| Self::from_be_bytes(pair)));
            }
            Samples::SixteenLittleEndian => {
                into.extend(bytes.as_chunks::<2>().0.iter().map(|&pair| Self::from_le_bytes(pair)));
            }
        }
    }

    fn narrow(value: u32) -> Self {
        value as Self
    }
}

/// ITU-R BT.601 luma in 16-bit fixed point, rounded: weights 19595, 38470 and 7471 of 65536. A full-scale 16-bit white
/// still fits 32 bits.
fn luma<T: Sample>(red: T, green: T, blue: T) -> T {
    T::narrow((19595 * red.into() + 38470 * green.into() + 7471 * blue.into() + 0x8000) >> 16)
}

/// Appends the pixels of `from` with another number of channels (1 gray, 2 gray + alpha, 3 RGB, 4 RGBA).
fn convert<T: Sample>(from: &[T], from_channels: usize, to_channels: usize, into: &mut Vec<T>) {
    match (from_channels, to_channels) {
        (4, 3) => into.extend(from.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [r, g, b])),
        (1, 3) => into.extend(from.iter().flat_map(|&gray| [gray; 3])),
        (2, 3) => into.extend(from.as_chunks::<2>().0.iter().flat_map(|&[gray, _]| [gray; 3])),
        (2, 1) => into.extend(from.iter().step_by(2)),
        (3, 1) => into.extend(from.as_chunks::<3>().0.iter().map(|&[r, g, b]| luma(r, g, b))),
        (4, 1) => into.extend(from.as_chunks::<4>().0.iter().map(|&[r, g, b, _]| luma(r, g, b))),
        // The rest occurs only where a PNG announces a transparency chunk that then proves unreadable: alpha is opaque.
        (1, 2) => into.extend(from.iter().flat_map(|&gray| [gray, T::MAX])),
        (1, 4) => into.extend(from.iter().flat_map(|&gray| [gray, gray, gray, T::MAX])),
        (2, 4) => into.extend(from.as_chunks::<2>().0.iter().flat_map(|&[gray, a]| [gray, gray, gray, a])),
        (3, 4) => into.extend(from.as_chunks::<3>().0.iter().flat_map(|&[r, g, b]| [r, g, b, T::MAX])),
        (3, 2) => into.extend(from.as_chunks::<3>().0.iter().flat_map(|&[r, g, b]| [luma(r, g, b), T::MAX])),
        (4, 2) => into.extend(from.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, a]| [luma(r, g, b), a])),
        _ => into.extend_from_slice(from),
    }
}

struct Sink<'a, T> {
    layout: Layout,
    source: SourceRows,
    output: &'a mut [u8],
    samples: Vec<T>,
    converted: Vec<T>,
    /// Sums of the boxes of the current group of rows, and how many rows they hold.
    sums: Vec<u32>,
    sums_rows: usize,
    /// The output row, within the window, that the sums belong to.
    sums_row: usize,
}

impl<'a, T: Sample> Sink<'a, T> {
    fn new(layout: Layout, source: SourceRows, output: &'a mut [u8]) -> Self {
        let sums = if source.divisor > 1 { vec![0; layout.window.width * layout.channels] } else { Vec::new() };
        let (samples, converted) = (Vec::new(), Vec::new());
        Self { layout, source, output, samples, converted, sums, sums_rows: 0, sums_row: 0 }
    }

    /// Adds the converted row to the sums of its group.
    fn add(&mut self) {
        let channels = self.layout.channels;
        let box_samples = self.source.divisor * channels;
        let boxes = self.converted.chunks(box_samples).zip(self.sums.chunks_exact_mut(channels));
        for (pixels, sums) in boxes {
            for pixel in pixels.chunks_exact(channels) {
                for (sum, &sample) in sums.iter_mut().zip(pixel) {
                    *sum += sample.into();
                }
            }
        }
        self.sums_rows += 1;
    }

    /// Writes the averages of the group, rounded, and clears it.
    fn flush(&mut self) {
        if self.sums_rows == 0 {
            return;
        }
        let (channels, divisor) = (self.layout.channels, self.source.divisor);
        let width = self.converted.len() / channels;
        let mut averaged = std::mem::take(&mut self.samples);
        averaged.clear();
        for (column, sums) in self.sums.chunks_exact(channels).enumerate() {
            let count = ((width - column * divisor).min(divisor) * self.sums_rows) as u32;
            averaged.extend(sums.iter().map(|sum| T::narrow((sum + count / 2) / count)));
        }
        write_row(&self.layout, self.sums_row, bytemuck::cast_slice(&averaged), self.output);
        self.samples = averaged;
        self.sums.fill(0);
        self.sums_rows = 0;
    }
}

impl<T: Sample> Rows for Sink<'_, T> {
    fn push(&mut self, y: usize, row: &[u8]) {
        let (window, source) = (self.layout.window, self.source);
        let divisor = source.divisor;
        if y < window.y * divisor || y >= self.end() {
            return;
        }
        let pixel_bytes = source.channels * source.samples.bytes();
        let left = (window.x * divisor - source.x) * pixel_bytes;
        let right = (((window.x + window.width) * divisor - source.x) * pixel_bytes).min(row.len());
        let row = &row[left..right];
        let same = source.channels == self.layout.channels;
        if same && divisor == 1 && source.samples == Samples::Eight {
            write_row(&self.layout, y - window.y, row, self.output);
            return;
        }
        self.samples.clear();
        T::read(row, source.samples, &mut self.samples);
        if same {
            std::mem::swap(&mut self.samples, &mut self.converted);
        } else {
            self.converted.clear();
            convert(&self.samples, source.channels, self.layout.channels, &mut self.converted);
        }
        if divisor == 1 {
            write_row(&self.layout, y - window.y, bytemuck::cast_slice(&self.converted), self.output);
            return;
        }
        self.sums_row = y / divisor - window.y;
        self.add();
        if (y + 1).is_multiple_of(divisor) || y + 1 == source.height {
            self.flush();
        }
    }

    fn end(&self) -> usize {
        let window = self.layout.window;
        ((window.y + window.height) * self.source.divisor).min(self.source.height)
    }

    fn finish(&mut self) {
        self.flush();
    }
}

/// Writes row `y` of the window to its position in the turned output.
fn write_row(layout: &Layout, y: usize, row: &[u8], output: &mut [u8]) {
    let (width, height) = (layout.window.width, layout.window.height);
    let pixel_bytes = layout.channels * layout.dtype.bytes();
    let (out_width, _) = layout.orientation.size(width, height);
    let stride = out_width * pixel_bytes;
    let upward = matches!(
        layout.orientation,
        Orientation::Rotate180 | Orientation::FlipVertical | Orientation::Rotate90 | Orientation::Transverse
    );
    let line = if upward { height - 1 - y } else { y };
    match layout.orientation {
        Orientation::Normal | Orientation::FlipVertical => output[line * stride..][..stride].copy_from_slice(row),
        Orientation::FlipHorizontal | Orientation::Rotate180 => {
            let target = &mut output[line * stride..][..stride];
            for (to, from) in target.chunks_exact_mut(pixel_bytes).rev().zip(row.chunks_exact(pixel_bytes)) {
                to.copy_from_slice(from);
            }
        }
        Orientation::Transpose | Orientation::Rotate90 => {
            let targets = output.chunks_exact_mut(stride);
            for (target, from) in targets.zip(row.chunks_exact(pixel_bytes)) {
                target[line * pixel_bytes..][..pixel_bytes].copy_from_slice(from);
            }
        }
        Orientation::Transverse | Orientation::Rotate270 => {
            let targets = output.chunks_exact_mut(stride).rev();
            for (target, from) in targets.zip(row.chunks_exact(pixel_bytes)) {
                target[line * pixel_bytes..][..pixel_bytes].copy_from_slice(from);
            }
        }
    }
}
