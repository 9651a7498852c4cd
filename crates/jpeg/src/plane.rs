//! Samples of one component, as many rows as are at work.

use crate::error::{Result, grow};

/// Bytes before the first sample of a row, so that the sample left of it has a slot and vectors stay within cache lines.
const MARGIN: usize = 64;

/// Rows of one MCU row, after the last row of the MCU row before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plane {
    samples: Vec<u8>,
    stride: usize,
    rows: usize,
    /// The image's column that is the first of a row here.
    first_column: usize,
}

impl Plane {
    /// Makes space for `rows` rows of `width` samples from `first_column` of the image on, and one row before.
    pub(crate) fn prepare(&mut self, first_column: usize, width: usize, rows: usize) -> Result<()> {
        self.stride = MARGIN + width.next_multiple_of(64) + MARGIN;
        self.rows = rows;
        self.first_column = first_column;
        grow(&mut self.samples, self.stride * (rows + 1))
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Everything from one sample on. Row 0 is the last one of the MCU row before.
    pub(crate) fn samples_mut(&mut self, row: usize, column_here: usize) -> &mut [u8] {
        &mut self.samples[row * self.stride + MARGIN + column_here..self.stride * (self.rows + 1)]
    }

    /// A row from the sample left of `column` of the image on.
    pub(crate) fn row(&self, row: usize, column: usize) -> &[u8] {
        let start = row * self.stride;
        &self.samples[start + MARGIN + column - self.first_column - 1..start + self.stride]
    }

    /// Repeats the first and the last column of the image outwards, where they are here.
    pub(crate) fn extend_edges(&mut self, picture_width: usize, end_column: usize) {
        for row in self.samples.chunks_exact_mut(self.stride).take(self.rows + 1).skip(1) {
            if self.first_column == 0 {
                row[MARGIN - 1] = row[MARGIN];
            }
            if end_column >= picture_width {
                let end = MARGIN + picture_width - self.first_column;
                row[end] = row[end - 1];
            }
        }
    }

    /// Keeps the last row for the next MCU row.
    pub(crate) fn carry(&mut self) {
        let last = self.rows * self.stride;
        self.samples.copy_within(last..last + self.stride, 0);
    }
}
