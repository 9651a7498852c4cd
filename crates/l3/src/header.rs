//! The first bytes of a file, and the words for what they say. The specification is this package's `FORMAT.md`.
//!
//! ```text
//!  0  magic 8A 4C 33 0A      12  width, u32          28  checksum of header, strip table and model
//!  4  version                16  height, u32         32  strip table: length u32, checksum u32 per strip
//!  5  mode                   20  rows per strip, u32     model (dense: tables)
//!  6  flags (none yet)       24  model bytes, u32        payload of each strip
//!  7  channels, 1 to 4                                   64 zero bytes
//!  8  bits, 8 or 16
//!  9  color transform
//! 10  predictor
//! 11  patch side (classic)
//! ```

use crate::{
    error::{Error, Result},
    image::{Depth, SIDE_MAX, Shape},
};

/// The first four bytes.
pub(crate) const MAGIC: [u8; 4] = [0x8A, b'L', b'3', b'\n'];
/// The first four bytes of the layout that the paper's authors released.
pub(crate) const MAGIC_RELEASED: [u8; 4] = *b"LLL.";
/// The version written and read here.
pub(crate) const VERSION: u8 = 2;
/// Bytes before the strip table.
pub(crate) const HEADER_BYTES: usize = 32;
/// Where the header's checksum stands: it covers everything before it, the strip table and the model.
pub(crate) const CHECKSUM_OFFSET: usize = 28;
/// Bytes per entry of the strip table.
pub(crate) const STRIP_ENTRY_BYTES: usize = 8;
/// Zero bytes at the end of a file, so that kernels may load whole vectors anywhere in the payload.
pub(crate) const TAIL_BYTES: usize = 64;
/// Bytes of the released layout's header.
pub(crate) const HEADER_BYTES_RELEASED: usize = 13;

/// How residuals become bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The published format: custom Paeth and base-delta rows in patches.
    Classic,
    /// Bit-packed blocks with exceptions: the fastest to decode.
    Fast,
    /// Interleaved rANS with tables by activity: the smallest.
    Dense,
}

/// How pixels of three or four channels become planes. All sums are modulo the range; differences are stored with half the
/// range added. `u = red - green`, `v = blue - green`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColorTransform {
    /// Planes are the channels as they are.
    None,
    /// green, u, v.
    SubtractGreen,
    /// green, u, v - u/2.
    GreenHalf,
    /// green + (u + v)/4, u, v - u/4.
    LumaQuarter,
    /// green + (u + v)/4, u, v.
    Luma,
}

/// How a sample is predicted from those already known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predictor {
    /// For photographs: averages with the interpolation.
    Smooth,
    /// For drawings and screens: the sample above, and the median alone.
    Sharp,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Classic, Self::Fast, Self::Dense];

    /// The name used in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Fast => "fast",
            Self::Dense => "dense",
        }
    }
}

impl ColorTransform {
    /// All transforms; the position is the value in the file.
    pub const ALL: [Self; 5] = [Self::None, Self::SubtractGreen, Self::GreenHalf, Self::LumaQuarter, Self::Luma];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SubtractGreen => "subtract-green",
            Self::GreenHalf => "green-half",
            Self::LumaQuarter => "luma-quarter",
            Self::Luma => "luma",
        }
    }

    /// Whether `(u + v)/4` is added to green, and by how many bits `u` is shifted before it is taken from `v` (0: not at all).
    #[inline(always)]
    pub(crate) fn parameters(self) -> (bool, u32) {
        match self {
            Self::None | Self::SubtractGreen => (false, 0),
            Self::GreenHalf => (false, 1),
            Self::LumaQuarter => (true, 2),
            Self::Luma => (true, 0),
        }
    }
}

impl Predictor {
    /// Both predictors; the position plus one is the value in the file (0 is classic's).
    pub const ALL: [Self; 2] = [Self::Smooth, Self::Sharp];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Sharp => "sharp",
        }
    }
}

/// What a file says about itself before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Width, height, channels and depth.
    pub shape: Shape,
    /// How residuals are coded.
    pub mode: Mode,
    /// How pixels became planes.
    pub color: ColorTransform,
    /// How samples are predicted; `None` for classic, which has its own.
    pub predictor: Option<Predictor>,
    /// Rows of a strip; the last strip may have fewer.
    pub strip_rows: u32,
    /// The side of a patch in pixels (classic; otherwise 0).
    pub patch: u8,
    /// Whether this is the layout that the paper's authors released, which has no checksums.
    pub released: bool,
    /// Bytes of the model between strip table and payload.
    pub(crate) model_bytes: u32,
    /// The checksum of header, strip table and model.
    pub(crate) checksum: u32,
}

impl Header {
    /// Reads the header from the first bytes of a file: 32 are enough. The checksum is not verified here, because it also covers
    /// the strip table and the model; opening the file with [`crate::Strips`] or decoding it does that.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.starts_with(&MAGIC_RELEASED) {
            return Self::parse_released(bytes);
        }
        let magic = bytes.get(..4).unwrap_or_default();
        if magic != &MAGIC[..magic.len()] || magic.is_empty() {
            let mut found = [0; 4];
            found[..magic.len()].copy_from_slice(magic);
            let (expected, found) = (u64::from(u32::from_le_bytes(MAGIC)), u64::from(u32::from_le_bytes(found)));
            return Err(Error::Format { what: "magic number", offset: 0, expected, found });
        }
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(Error::Truncated {
                what: "the header",
                needed: HEADER_BYTES as u64,
                found: bytes.len() as u64,
            });
        };
        let unsupported =
            |what, offset: usize, hint| Error::Unsupported { what, found: u64::from(fixed[offset]), hint };
        if fixed[4] != VERSION {
            return Err(unsupported("L3 version", 4, "a newer version of this library may read it"));
        }
        if fixed[6] != 0 {
            return Err(unsupported("L3 flags", 6, "a newer version of this library may read it"));
        }
        let Some(&mode) = Mode::ALL.get(usize::from(fixed[5])) else {
            return Err(unsupported("L3 mode", 5, "a newer version of this library may read it"));
        };
        let depth = match fixed[8] {
            8 => Depth::Eight,
            16 => Depth::Sixteen,
            _ => return Err(unsupported("bits per sample", 8, "L3 has 8 and 16 bits")),
        };
        let Some(&color) = ColorTransform::ALL.get(usize::from(fixed[9])) else {
            return Err(unsupported("color transform", 9, "a newer version of this library may read it"));
        };
        let predictor = match (mode, fixed[10]) {
            (Mode::Classic, 0) => None,
            (Mode::Fast | Mode::Dense, value @ 1..=2) => Some(Predictor::ALL[usize::from(value) - 1]),
            _ => return Err(unsupported("predictor", 10, "a newer version of this library may read it")),
        };
        let word = |offset: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| fixed[offset + i]));
        let header = Self {
            shape: shape(word(12), word(16), fixed[7], depth)?,
            mode,
            color,
            predictor,
            strip_rows: word(20),
            patch: fixed[11],
            released: false,
            model_bytes: word(24),
            checksum: word(CHECKSUM_OFFSET),
        };
        header.check()?;
        Ok(header)
    }

    fn parse_released(bytes: &[u8]) -> Result<Self> {
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES_RELEASED>() else {
            let (needed, found) = (HEADER_BYTES_RELEASED as u64, bytes.len() as u64);
            return Err(Error::Truncated { what: "the header", needed, found });
        };
        let word = |offset: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| fixed[offset + i]));
        let header = Self {
            shape: shape(word(4), word(8), 3, Depth::Eight)?,
            mode: Mode::Classic,
            color: ColorTransform::None,
            predictor: None,
            strip_rows: u32::from(fixed[12]),
            patch: fixed[12],
            released: true,
            model_bytes: 0,
            checksum: 0,
        };
        header.check()?;
        // The released encoder drops what lies beyond a multiple of the patch: the file does not have it.
        for side in [header.shape.width(), header.shape.height()] {
            if side % u32::from(header.patch) != 0 {
                let hint = "the encoder that wrote it dropped the edges: encode the original again";
                return Err(Error::Unsupported {
                    what: "side that is not a multiple of the patch",
                    found: u64::from(side),
                    hint,
                });
            }
        }
        Ok(header)
    }

    /// What must hold between the fields.
    fn check(&self) -> Result<()> {
        let format = |what, offset, expected: u32, found: u32| {
            Err(Error::Format { what, offset, expected: u64::from(expected), found: u64::from(found) })
        };
        let rows = self.strip_rows;
        if rows == 0 || rows > SIDE_MAX {
            return format("rows per strip", 20, self.shape.height(), rows);
        }
        if self.mode == Mode::Classic && (self.patch == 0 || rows != u32::from(self.patch)) {
            return format("patch side", 11, rows, u32::from(self.patch));
        }
        if self.mode != Mode::Classic && self.patch != 0 {
            return format("patch side", 11, 0, u32::from(self.patch));
        }
        if self.mode != Mode::Dense && self.model_bytes != 0 {
            return format("model bytes", 24, 0, self.model_bytes);
        }
        let colorless = self.shape.channels() < 3 || self.mode == Mode::Classic;
        if colorless && self.color != ColorTransform::None {
            return format("color transform", 9, 0, self.color as u32);
        }
        Ok(())
    }

    /// How many strips the image has.
    pub fn strip_count(&self) -> u32 {
        self.shape.height().div_ceil(self.strip_rows)
    }

    /// The header's bytes, with a checksum of zero: the checksum is known when table and model are.
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.mode as u8;
        bytes[7] = self.shape.channels();
        bytes[8] = self.shape.depth().bits();
        bytes[9] = self.color as u8;
        bytes[10] = self.predictor.map_or(0, |predictor| predictor as u8 + 1);
        bytes[11] = self.patch;
        bytes[12..16].copy_from_slice(&self.shape.width().to_le_bytes());
        bytes[16..20].copy_from_slice(&self.shape.height().to_le_bytes());
        bytes[20..24].copy_from_slice(&self.strip_rows.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.model_bytes.to_le_bytes());
        bytes
    }
}

/// A shape from a file: what is the caller's mistake elsewhere is damage here.
fn shape(width: u32, height: u32, channels: u8, depth: Depth) -> Result<Shape> {
    Shape::new(width, height, channels, depth).map_err(|error| match error {
        Error::Usage { what, expected, found } => Error::Format { what, offset: 4, expected, found },
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::{CHECKSUM_OFFSET, HEADER_BYTES, MAGIC, STRIP_ENTRY_BYTES, TAIL_BYTES, VERSION};

    /// The numbers of `FORMAT.md`.
    #[test]
    fn constants_are_those_of_the_specification() {
        assert_eq!(MAGIC, [0x8A, 0x4C, 0x33, 0x0A]);
        assert_eq!((VERSION, HEADER_BYTES, CHECKSUM_OFFSET, STRIP_ENTRY_BYTES, TAIL_BYTES), (2, 32, 28, 8, 64));
    }
}
