//! From a file to pixels.

use std::ops::Range;

use libdeflater::Decompressor;

use crate::chunks::{File, Header};
use crate::error::{Error, Result, grow};
use crate::expand::expand;
use crate::kernel::{self, Filter, Filtered};
use crate::level::{Level, Supported};

/// DEFLATE makes no more than this of a byte: 258 bytes of two bits.
const RATIO_MAX: usize = 1032;

/// Reads the header of an image that this crate decodes; refuses all others.
pub fn header(bytes: &[u8]) -> Result<Header> {
    File::read(bytes).map(|file| file.header)
}

/// Decodes images, reusing its memory from one to the next.
pub struct Decoder {
    level: Supported,
    inflater: Decompressor,
    /// The compressed pixels, if they are split over several chunks.
    joined: Vec<u8>,
    /// The filtered rows of the whole image.
    filtered: Vec<u8>,
    rows: Rows,
}

/// A few rows at work.
#[derive(Default)]
struct Rows {
    /// Unfiltered, as they are stored.
    stored: Vec<u8>,
    /// The row above them.
    above: Vec<u8>,
    /// One row as it is given.
    given: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Decoder").field("level", &self.level.level()).finish_non_exhaustive()
    }
}

impl Decoder {
    /// A decoder that uses the fastest instructions of this machine.
    pub fn new() -> Self {
        Self::of(Supported::detect())
    }

    /// A decoder that uses certain instructions; refused if this machine lacks them.
    pub fn with_level(level: Level) -> Result<Self> {
        Supported::new(level).map(Self::of)
    }

    fn of(level: Supported) -> Self {
        let (joined, filtered) = (Vec::new(), Vec::new());
        Self { level, inflater: Decompressor::new(), joined, filtered, rows: Rows::default() }
    }

    /// The instructions that it uses.
    pub fn level(&self) -> Level {
        self.level.level()
    }

    /// The bytes of memory that it holds.
    pub fn capacity_bytes(&self) -> usize {
        let rows = &self.rows;
        [&self.joined, &self.filtered, &rows.stored, &rows.above, &rows.given].map(Vec::capacity).iter().sum()
    }

    /// Gives the memory back.
    pub fn trim(&mut self) {
        *self = Self::of(self.level);
    }

    /// Decodes an image into `output`, which must have [`Header::bytes`]. Nothing is written unless all of
    /// the image is undamaged.
    ///
    /// Samples of 16 bits have the high byte first, as in the file.
    pub fn decode_into(&mut self, bytes: &[u8], output: &mut [u8]) -> Result<()> {
        let file = File::read(bytes)?;
        let header = file.header;
        if output.len() != header.bytes() {
            let (expected, found) = (header.bytes() as u64, output.len() as u64);
            return Err(Error::Usage { problem: "the output does not fit the image", expected, found });
        }
        if !header.is_plain() {
            let row_bytes = header.row_bytes();
            return self.give_rows(&file, 0..header.height, |y, row| {
                output[y * row_bytes..][..row_bytes].copy_from_slice(row);
            });
        }
        let filtered = self.inflate(&file)?;
        grow(&mut self.rows.above, filtered.0)?;
        self.rows.above[..filtered.0].fill(0);
        let rows = Filtered {
            bytes: &self.filtered[..filtered.1],
            row_bytes: filtered.0,
            pixel_bytes: header.stored_pixel_bytes(),
        };
        kernel::unfilter(self.level, rows, &self.rows.above, output);
        Ok(())
    }

    /// Gives certain rows of an image, in order, each of [`Header::row_bytes`]. The rows after them cost less, since they
    /// are only checked.
    ///
    /// None is given unless all of the image is undamaged. Samples of 16 bits have the high byte first, as in the file.
    pub fn decode_rows(&mut self, bytes: &[u8], rows: Range<usize>, give: impl FnMut(usize, &[u8])) -> Result<()> {
        let file = File::read(bytes)?;
        if rows.start > rows.end || rows.end > file.header.height {
            let (expected, found) = (file.header.height as u64, rows.end as u64);
            return Err(Error::Usage { problem: "the rows reach beyond the image", expected, found });
        }
        self.give_rows(&file, rows, give)
    }

    fn give_rows(&mut self, file: &File<'_>, wanted: Range<usize>, mut give: impl FnMut(usize, &[u8])) -> Result<()> {
        let header = &file.header;
        let (row_bytes, filtered_bytes) = self.inflate(file)?;
        let Rows { stored, above, given } = &mut self.rows;
        grow(stored, row_bytes * kernel::ROWS)?;
        grow(above, row_bytes)?;
        grow(given, header.row_bytes())?;
        let (above, given) = (&mut above[..row_bytes], &mut given[..header.row_bytes()]);
        above.fill(0);
        for y in (0..wanted.end).step_by(kernel::ROWS) {
            let count = kernel::ROWS.min(wanted.end - y);
            let rows = Filtered {
                bytes: &self.filtered[y * (row_bytes + 1)..filtered_bytes],
                row_bytes,
                pixel_bytes: header.stored_pixel_bytes(),
            };
            let stored = &mut stored[..count * row_bytes];
            kernel::unfilter(self.level, rows, above, stored);
            for (y, row) in (y..).zip(stored.chunks_exact(row_bytes)).filter(|(y, _)| wanted.contains(y)) {
                if header.is_plain() {
                    give(y, row);
                } else {
                    expand(header, file.palette.as_deref(), row, given);
                    give(y, given);
                }
            }
            above.copy_from_slice(&stored[(count - 1) * row_bytes..]);
        }
        Ok(())
    }

    /// Inflates all rows, and checks how each was filtered. Gives the bytes of a row without its first, and of all rows.
    fn inflate(&mut self, file: &File<'_>) -> Result<(usize, usize)> {
        let (row_bytes, filtered_bytes) = (file.header.stored_row_bytes(), file.header.working_bytes());
        let data = file.pixels(&mut self.joined)?;
        if filtered_bytes / RATIO_MAX > data.len() {
            return Err(Error::format("there are too few compressed bytes for this many pixels", data.len()));
        }
        grow(&mut self.filtered, filtered_bytes)?;
        let filtered = &mut self.filtered[..filtered_bytes];
        let damage = |problem| Error::format(problem, 0);
        let found = self.inflater.zlib_decompress(data, filtered);
        let found = found.map_err(|_| damage("the compressed pixels are damaged, or too many"))?;
        if found != filtered_bytes {
            return Err(damage("there are too few pixels"));
        }
        if filtered.iter().step_by(row_bytes + 1).any(|&filter| Filter::new(filter).is_none()) {
            return Err(damage("a row was filtered in an unknown way"));
        }
        Ok((row_bytes, filtered_bytes))
    }
}
