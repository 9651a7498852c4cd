//! What an image is here: a shape, and pixels seen through a stride.

use crate::error::{Error, Result};

/// The largest width and height of the format, in pixels.
pub const SIDE_MAX: u32 = 1 << 20;

/// Bits per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// One byte per sample.
    Eight,
    /// Two bytes per sample, little-endian.
    Sixteen,
}

impl Depth {
    /// 8 or 16.
    pub fn bits(self) -> u8 {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    /// 1 or 2.
    pub fn bytes(self) -> usize {
        usize::from(self.bits() / 8)
    }
}

/// Width, height, channels and depth of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    width: u32,
    height: u32,
    channels: u8,
    depth: Depth,
}

impl Shape {
    /// A shape, if its sides are 1 to [`SIDE_MAX`] and its channels 1 to 4.
    pub fn new(width: u32, height: u32, channels: u8, depth: Depth) -> Result<Self> {
        for (what, side) in [("image width", width), ("image height", height)] {
            if side == 0 {
                return Err(Error::Usage { what, expected: 1, found: 0 });
            }
            if side > SIDE_MAX {
                let hint = "cut the image into tiles";
                return Err(Error::Limit { what, limit: u64::from(SIDE_MAX), found: u64::from(side), hint });
            }
        }
        if !(1..=4).contains(&channels) {
            return Err(Error::Usage { what: "channels (1 to 4)", expected: 4, found: u64::from(channels) });
        }
        Ok(Self { width, height, channels, depth })
    }

    /// Pixels in a row.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Samples in a pixel, 1 to 4.
    pub fn channels(&self) -> u8 {
        self.channels
    }

    /// Bits per sample.
    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// Width times height.
    pub fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Bytes of one pixel.
    pub fn pixel_bytes(&self) -> usize {
        usize::from(self.channels) * self.depth.bytes()
    }

    /// Bytes of one row without padding.
    pub fn row_bytes(&self) -> usize {
        self.width as usize * self.pixel_bytes()
    }

    /// Bytes of all rows without padding.
    pub fn bytes(&self) -> usize {
        self.row_bytes() * self.height as usize
    }
}

/// Pixels to encode: rows of interleaved samples, `stride_bytes` apart.
#[derive(Clone, Copy, Debug)]
pub struct Pixels<'a> {
    shape: Shape,
    data: &'a [u8],
    stride_bytes: usize,
}

impl<'a> Pixels<'a> {
    /// Rows that follow each other without a gap.
    pub fn new(shape: Shape, data: &'a [u8]) -> Result<Self> {
        Self::with_stride(shape, data, shape.row_bytes())
    }

    /// Rows that begin `stride_bytes` apart.
    pub fn with_stride(shape: Shape, data: &'a [u8], stride_bytes: usize) -> Result<Self> {
        check_buffer(shape.row_bytes(), shape.height as usize, data.len(), stride_bytes)?;
        Ok(Self { shape, data, stride_bytes })
    }

    /// The shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// One row's samples.
    pub(crate) fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.stride_bytes..][..self.shape.row_bytes()]
    }
}

/// Refuses a buffer that is too small for `rows` rows of `row_bytes`, `stride_bytes` apart.
pub(crate) fn check_buffer(row_bytes: usize, rows: usize, buffer_bytes: usize, stride_bytes: usize) -> Result<()> {
    if stride_bytes < row_bytes {
        let (expected, found) = (row_bytes as u64, stride_bytes as u64);
        return Err(Error::Usage { what: "stride in bytes", expected, found });
    }
    let needed = (rows as u64).saturating_sub(1).saturating_mul(stride_bytes as u64).saturating_add(row_bytes as u64);
    if rows > 0 && (buffer_bytes as u64) < needed {
        return Err(Error::Usage { what: "pixel buffer in bytes", expected: needed, found: buffer_bytes as u64 });
    }
    Ok(())
}

/// A decoded image: interleaved samples, rows without gaps; 16-bit samples are little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// `shape.bytes()` bytes.
    pub data: Vec<u8>,
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Region {
    /// The whole of an image.
    pub fn whole(shape: Shape) -> Self {
        Self { x: 0, y: 0, width: shape.width, height: shape.height }
    }

    /// Refuses a region that is empty or reaches outside the image.
    pub(crate) fn check(&self, shape: Shape) -> Result<()> {
        let sides = [
            ("region's last column", self.x, self.width, shape.width),
            ("region's last row", self.y, self.height, shape.height),
        ];
        for (what, start, length, side) in sides {
            let end = u64::from(start) + u64::from(length);
            if length == 0 || end > u64::from(side) {
                return Err(Error::Usage { what, expected: u64::from(side), found: end });
            }
        }
        Ok(())
    }
}
