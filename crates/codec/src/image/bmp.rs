//! Windows bitmaps: 1, 4 and 8 bit with a palette, 16, 24 and 32 bit with or without masks, either row order. Run-length
//! coding is not supported.
//!
//! ```text
//! 0   "BM", file size, 2 × 2 reserved, offset of the pixels (4)
//! 14  header size (4): 12 (OS/2: 16-bit sides), 40, 52, 56, 64, 108 or 124
//! 18  width (4), height (4, negative: top row first), planes (2), bits (2), compression (4), ..., palette size (4)
//! 54  masks of red, green, blue and alpha (after a 40-byte header only if the compression says so)
//! ..  palette (blue, green, red and, but for OS/2, one unused), then rows padded to 4 bytes
//! ```

use crate::error::{Error, Result};

use super::decoder::Task;
use super::format::Format;
use super::header::Header;
use super::layout;
use super::orientation::Orientation;
use super::sink::{self, Samples, SourceRows};

const NAME: &str = Format::Bmp.name();
const FILE_HEADER_BYTES: usize = 14;

/// What the header says beyond [`Header`].
#[derive(Debug, Clone)]
pub(crate) struct Bitmap {
    pub(crate) header: Header,
    bits: usize,
    bottom_up: bool,
    pixels_at: usize,
    pixels: Pixels,
}

#[derive(Debug, Clone)]
enum Pixels {
    /// Indices into colors; or, where the palette is the 256 grays in order, the grays themselves.
    Palette { colors: Vec<[u8; 3]>, gray: bool },
    /// 24 bit: blue, green, red.
    Bgr,
    /// 16 or 32 bit: red, green, blue and perhaps alpha behind masks.
    Masks([u32; 4]),
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn short(&self, at: usize) -> Result<u16> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|&bytes| u16::from_le_bytes(bytes)).ok_or_else(|| self.cut())
    }

    fn long(&self, at: usize) -> Result<u32> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|&bytes| u32::from_le_bytes(bytes)).ok_or_else(|| self.cut())
    }

    fn cut(&self) -> Error {
        Error::truncated(NAME, "it ends within the header", self.0.len())
    }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<Bitmap> {
    let fields = Fields(bytes);
    let header_bytes = fields.long(14)? as usize;
    let os2 = header_bytes == 12;
    let (width, height, bits, compression) = if os2 {
        (i32::from(fields.short(18)?), i32::from(fields.short(20)?), fields.short(24)?, 0)
    } else {
        (fields.long(18)? as i32, fields.long(22)? as i32, fields.short(28)?, fields.long(30)?)
    };
    if width < 1 || height == 0 {
        return Err(Error::format_at(NAME, format!("the image is `{width}` × `{height}` pixels"), 18));
    }
    let pixels = match (bits, compression) {
        (1 | 4 | 8, 0) => palette(&fields, header_bytes, usize::from(bits))?,
        (24, 0) => Pixels::Bgr,
        (16, 0) => Pixels::Masks([0x7C00, 0x03E0, 0x001F, 0]),
        (32, 0) => Pixels::Masks([0x00FF_0000, 0x0000_FF00, 0x0000_00FF, 0]),
        // 3: bit fields; 6: bit fields with alpha. Headers of 56 bytes and more always have an alpha mask.
        (16 | 32, 3 | 6) => {
            let alpha = if compression == 6 || header_bytes >= 56 { fields.long(66)? } else { 0 };
            Pixels::Masks([fields.long(54)?, fields.long(58)?, fields.long(62)?, alpha])
        }
        (4 | 8, 1 | 2) => return Err(Error::unsupported(NAME, "run-length coding", "save the file uncompressed")),
        _ => {
            let feature = format!("`{bits}` bit with compression `{compression}`");
            return Err(Error::unsupported(NAME, feature, "save the file as 24 or 32 bit, uncompressed"));
        }
    };
    if let Pixels::Masks(masks) = &pixels {
        require_masks(masks)?;
    }
    let header = Header {
        format: Format::Bmp,
        width: width as usize,
        height: height.unsigned_abs() as usize,
        channels: match &pixels {
            Pixels::Palette { gray: true, .. } => 1,
            Pixels::Masks([.., alpha]) if *alpha != 0 => 4,
            _ => 3,
        },
        bits: 8,
        orientation: Orientation::Normal,
        progressive: false,
        animated: false,
    };
    Ok(Bitmap { header, bits: usize::from(bits), bottom_up: height > 0, pixels_at: fields.long(10)? as usize, pixels })
}

fn require_masks(masks: &[u32; 4]) -> Result<()> {
    for &mask in masks {
        // A run of ones: shifted to the bottom, one more is a power of two.
        let run = mask.checked_shr(mask.trailing_zeros()).unwrap_or(0);
        if run & run.wrapping_add(1) != 0 {
            return Err(Error::format_at(NAME, format!("the mask `{mask:#010x}` has gaps"), 54));
        }
    }
    Ok(())
}

fn palette(fields: &Fields<'_>, header_bytes: usize, bits: usize) -> Result<Pixels> {
    let os2 = header_bytes == 12;
    let most = 1 << bits;
    let count = match if os2 { 0 } else { fields.long(46)? as usize } {
        0 => most,
        // More are allowed to be stored, but cannot be referred to.
        count => count.min(most),
    };
    let entry = if os2 { 3 } else { 4 };
    let start = FILE_HEADER_BYTES + header_bytes;
    let stored = fields.0.get(start..start + count * entry).ok_or_else(|| fields.cut())?;
    let colors: Vec<_> = stored.chunks_exact(entry).map(|color| [color[2], color[1], color[0]]).collect();
    let gray = bits == 8 && count == 256 && colors.iter().enumerate().all(|(index, &rgb)| rgb == [index as u8; 3]);
    Ok(Pixels::Palette { colors, gray })
}

/// What of `value` the mask covers, stretched to 8 bit (rounded down, as Pillow does).
fn unmask(value: u32, mask: u32) -> u8 {
    if mask == 0 {
        return 0;
    }
    let shift = mask.trailing_zeros();
    (u64::from((value & mask) >> shift) * 255 / u64::from(mask >> shift)) as u8
}

impl Bitmap {
    fn row_bytes(&self) -> usize {
        (self.header.width * self.bits).div_ceil(32) * 4
    }

    /// Row `y` from the top, as stored.
    fn stored_row<'a>(&self, bytes: &'a [u8], y: usize) -> Result<&'a [u8]> {
        let index = if self.bottom_up { self.header.height - 1 - y } else { y };
        let start = self.pixels_at.saturating_add(index.saturating_mul(self.row_bytes()));
        let used = (self.header.width * self.bits).div_ceil(8);
        // The padding of the very last row is often left out.
        bytes
            .get(start..start.saturating_add(used))
            .ok_or_else(|| Error::truncated(NAME, format!("row `{y}` is cut off"), bytes.len()))
    }

    fn unpack(&self, stored: &[u8], row: &mut Vec<u8>) -> Result<()> {
        row.clear();
        match &self.pixels {
            Pixels::Palette { gray: true, .. } => row.extend_from_slice(stored),
            Pixels::Palette { colors, .. } => {
                let per_byte = 8 / self.bits;
                for x in 0..self.header.width {
                    let shift = 8 - self.bits * (x % per_byte + 1);
                    let index = usize::from(stored[x / per_byte] >> shift) & ((1 << self.bits) - 1);
                    let color = colors.get(index).ok_or_else(|| {
                        Error::format(NAME, format!("a pixel refers to color `{index}` of `{}`", colors.len()))
                    })?;
                    row.extend_from_slice(color);
                }
            }
            Pixels::Bgr => row.extend(stored.as_chunks::<3>().0.iter().flat_map(|&[b, g, r]| [r, g, b])),
            Pixels::Masks(masks) => {
                let channels = self.header.channels;
                for pixel in stored.chunks_exact(self.bits / 8) {
                    let value = pixel.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
                    row.extend(masks[..channels].iter().map(|&mask| unmask(value, mask)));
                }
            }
        }
        Ok(())
    }
}

/// Decodes; `true` if data was missing and that was accepted.
pub(crate) fn decode(bitmap: &Bitmap, task: &mut Task<'_>) -> Result<bool> {
    let header = &bitmap.header;
    layout::require_bytes(task.layout, 0, task.options)?;
    let (height, channels, divisor) = (header.height, header.channels, task.layout.divisor);
    let source = SourceRows { x: 0, height, channels, samples: Samples::Eight, divisor };
    let mut rows = sink::open(task.layout, source, task.output);
    let mut row = Vec::new();
    let mut partial = false;
    for y in 0..rows.end() {
        match bitmap.stored_row(task.bytes, y).and_then(|stored| bitmap.unpack(stored, &mut row)) {
            Ok(()) => rows.push(y, &row),
            // Most bitmaps begin with their last row, so the missing rows are the top ones.
            Err(_) if task.options.allow_truncated => partial = true,
            Err(error) => return Err(error),
        }
    }
    rows.finish();
    Ok(partial)
}

/// Encodes packed pixels: gray as 8 bit with a palette, RGB as 24 bit, RGBA as 32 bit with masks; the bottom row first.
pub(crate) fn encode(pixels: &[u8], (width, height): (usize, usize), channels: usize) -> Result<Vec<u8>> {
    let (Ok(columns), Ok(lines)) = (i32::try_from(width), i32::try_from(height)) else {
        return Err(Error::usage(
            "the image is too large for a BMP",
            "sides below 2^31",
            format!("{width} × {height}"),
        ));
    };
    let (header_bytes, palette_bytes): (usize, usize) = match channels {
        1 => (40, 1024),
        4 => (108, 0),
        _ => (40, 0),
    };
    let row_bytes = (width * channels).next_multiple_of(4);
    let pixels_at = FILE_HEADER_BYTES + header_bytes + palette_bytes;
    let total = pixels_at + row_bytes * height;
    let Ok(total_field) = u32::try_from(total) else {
        return Err(Error::usage("the image is too large for a BMP", "below 4 GiB", total));
    };
    let mut bytes = Vec::with_capacity(total);
    let mut put = |value: u32| bytes.extend_from_slice(&value.to_le_bytes());
    let bits = channels as u32 * 8;
    put(total_field);
    put(0);
    put(pixels_at as u32);
    put(header_bytes as u32);
    put(columns as u32);
    put(lines as u32);
    put(1 | bits << 16);
    put(if channels == 4 { 3 } else { 0 });
    for _ in 0..5 {
        put(0);
    }
    if channels == 4 {
        for mask in [0x00FF_0000, 0x0000_FF00, 0x0000_00FF, 0xFF00_0000] {
            put(mask);
        }
        // The name of the color space, sRGB, then its end points and gammas, which that makes void.
        put(u32::from_be_bytes(*b"sRGB"));
        for _ in 0..12 {
            put(0);
        }
    } else if channels == 1 {
        for gray in 0..256 {
            put(gray * 0x0001_0101);
        }
    }
    bytes.splice(0..0, *b"BM");
    for row in pixels.chunks_exact(width * channels).rev() {
        match channels {
            1 => bytes.extend_from_slice(row),
            4 => bytes.extend(row.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, a]| [b, g, r, a])),
            _ => bytes.extend(row.as_chunks::<3>().0.iter().flat_map(|&[r, g, b]| [b, g, r])),
        }
        bytes.resize(bytes.len() + row_bytes - row.len(), 0);
    }
    Ok(bytes)
}
