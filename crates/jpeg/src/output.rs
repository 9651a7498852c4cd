//! From rows of samples to rows of pixels.

use crate::decoder::{Color, Layout};
use crate::error::{Result, grow};
use crate::header::{Sampling, Space};
use crate::kernel::color;
use crate::kernel::upsample::{Method, Rows, upsample};
use crate::level::Supported;
use crate::plane::Plane;

/// The last steps, with memory for a row of each color component.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    level: Supported,
    method: Method,
    rows: [Vec<u8>; 2],
}

impl Output {
    pub(crate) fn new(level: Supported) -> Self {
        Self { level, method: Method::None, rows: Default::default() }
    }

    /// Makes ready for an image.
    pub(crate) fn prepare(&mut self, layout: &Layout) -> Result<()> {
        // libjpeg has no neighbors to mix where there are but two samples.
        let narrow = layout.color_size().0 <= 2;
        self.method = match layout.header.sampling {
            Sampling::Gray | Sampling::Full => Method::None,
            Sampling::Horizontal | Sampling::Both if narrow => Method::Repeat,
            Sampling::Horizontal => Method::Across,
            Sampling::Vertical => Method::Down,
            Sampling::Both => Method::Both,
        };
        self.rows.iter_mut().try_for_each(|row| grow(row, layout.region.width + 2))
    }

    /// Writes the pixels that can be made once MCU row `mcu_row` is in the planes.
    pub(crate) fn emit(&mut self, layout: &Layout, planes: &mut [Plane; 3], mcu_row: usize, output: &mut [u8]) {
        let (across, down) = layout.factors;
        let color_width = layout.color_size().0;
        if layout.components() == 3 && across == 2 {
            for plane in &mut planes[1..] {
                plane.extend_edges(color_width, layout.columns.1 * 8);
            }
        }
        // The last row of pixels of an MCU row needs the color of the next one, where that is halved downwards.
        let delay = down - 1;
        let first_row = mcu_row * 8 * down;
        let start = first_row.saturating_sub(delay);
        let end = if mcu_row + 1 == layout.mcus.1 { layout.header.height } else { first_row + 8 * down - delay };
        let region = layout.region;
        let row_bytes = region.width * layout.color.channels();
        for y in start.max(region.y)..end.min(region.y + region.height) {
            let pixels = &mut output[(y - region.y) * row_bytes..][..row_bytes];
            self.emit_row(layout, planes, y, first_row, pixels);
        }
        if delay > 0 {
            for plane in &mut planes[..layout.components()] {
                plane.carry();
            }
        }
    }

    fn emit_row(&mut self, layout: &Layout, planes: &[Plane; 3], y: usize, first_row: usize, pixels: &mut [u8]) {
        let region = layout.region;
        let brightness = &planes[0].row(y + 1 - first_row, region.x)[1..];
        if layout.components() == 1 {
            match layout.color {
                Color::Gray => pixels.copy_from_slice(&brightness[..pixels.len()]),
                Color::Rgb => color::interleave([brightness; 3], pixels),
            }
            return;
        }
        let (across, down) = layout.factors;
        let first = region.x / across;
        let count = (region.x + region.width - 1) / across - first + 1;
        let index = |color_row: usize| color_row + 1 - first_row / down;
        let near = y / down;
        let below = !y.is_multiple_of(down);
        let last = layout.color_size().1 - 1;
        let far = if below { (near + 1).min(last) } else { near.saturating_sub(1) };
        // Without vertical interpolation there is no far row, and the one above may not be available.
        let far = if matches!(self.method, Method::Down | Method::Both) { far } else { near };
        for (row, plane) in self.rows.iter_mut().zip(&planes[1..]) {
            let rows = Rows { near: plane.row(index(near), first), far: plane.row(index(far), first), below };
            upsample(self.level, self.method, rows, &mut row[..count * across]);
        }
        let [second, third] = match self.method {
            Method::None => [&planes[1].row(index(near), first)[1..], &planes[2].row(index(near), first)[1..]],
            _ => self.rows.each_ref().map(|row| &row[region.x - first * across..]),
        };
        if layout.header.space == Space::Rgb {
            color::interleave([brightness, second, third], pixels);
        } else {
            color::convert(self.level, brightness, second, third, pixels);
        }
    }
}
