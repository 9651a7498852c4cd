//! What the caller wants of a decode.

/// How many channels to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Channels {
    /// Three: red, green, blue. Gray is repeated, alpha is dropped (not blended), CMYK is converted.
    #[default]
    Rgb,
    /// One: ITU-R BT.601 luma, 0.299 R + 0.587 G + 0.114 B, rounded; for a JPEG its own Y channel. Alpha is dropped.
    Gray,
    /// What is stored: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA. A palette counts as its colors, CMYK as RGB.
    AsStored,
}

/// How deep the samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Depth {
    /// `uint8`; of 16-bit samples the high byte, as `libpng` strips them and so TensorFlow and OpenCV give them (and Pillow those
    /// of color; 16-bit gray it clips).
    #[default]
    Eight,
    /// `uint16` where 16 bit are stored, else `uint8`.
    AsStored,
}

/// A rectangle of the image that decoding would give without it: after orientation and scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region {
    /// Its left column.
    pub x: usize,
    /// Its top row.
    pub y: usize,
    /// Its width, at least 1.
    pub width: usize,
    /// Its height, at least 1.
    pub height: usize,
}

/// Decode smaller: each side is divided and rounded up.
///
/// JPEG does it inside the inverse transform, which is faster than decoding at full size; the other formats average boxes of
/// 2×2, 4×4 or 8×8 pixels (cut off at the right and lower edge).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scale {
    /// As stored.
    #[default]
    Full,
    /// Half the side.
    Half,
    /// A quarter of the side.
    Quarter,
    /// An eighth of the side.
    Eighth,
}

impl Scale {
    /// By how much a side is divided: 1, 2, 4 or 8.
    pub const fn divisor(self) -> usize {
        match self {
            Self::Full => 1,
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => 8,
        }
    }

    /// What a side of `length` becomes.
    pub const fn apply(self, length: usize) -> usize {
        length.div_ceil(self.divisor())
    }
}

/// The maximum size of an image. Both limits are checked against the header, before anything is allocated for the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The most pixels that an image may have as stored; 2^28 (16,384 × 16,384) unless set.
    pub max_pixels: usize,
    /// The most bytes that one decode may take: the output, this crate's scratch and the library's image-sized buffers
    /// together; 2^31 unless set. Beyond it come only buffers of a few rows and at most [`Limits::FIXED_BYTES`]; and, for a
    /// lossless WebP, code tables, for which libwebp knows no limit: 20 KB for each group of codes, of which a file may
    /// have one in 16 pixels, but no more than 65,536.
    pub max_bytes: usize,
}

impl Limits {
    /// What a decode may take beyond [`Limits::max_bytes`] and a few rows: Huffman tables, inflate windows, one metadata
    /// chunk.
    pub const FIXED_BYTES: usize = 4 << 20;
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_pixels: 1 << 28, max_bytes: 1 << 31 }
    }
}

/// The output of a decode; the default is what training needs: upright 8-bit RGB, and an error if data is missing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DecodeOptions {
    /// How many channels.
    pub channels: Channels,
    /// How deep.
    pub depth: Depth,
    /// Rotate the image according to its EXIF orientation; on by default.
    pub apply_orientation: bool,
    /// If data is missing or damaged, return what could be decoded, and say so in [`Decoded`](super::Decoded); off
    /// by default. A damaged L3 is an error in any case.
    pub allow_truncated: bool,
    /// Use JPEG's fast, less exact inverse DCT; off by default. TensorFlow uses it by default, so it is required to reproduce its
    /// pixels exactly. (With SIMD, it is hardly faster.)
    pub fast_dct: bool,
    /// How much smaller.
    pub scale: Scale,
    /// Only this part.
    pub region: Option<Region>,
    /// How large at most.
    pub limits: Limits,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self {
            channels: Channels::Rgb,
            depth: Depth::Eight,
            apply_orientation: true,
            allow_truncated: false,
            fast_dct: false,
            scale: Scale::Full,
            region: None,
            limits: Limits::default(),
        }
    }
}
