//! The chunks of a file (PNG, 5 and 11): what they say about the pixels, and where the pixels are.
//!
//! Whatever might be judged in two ways is refused.

use crate::error::{Error, Result};

const SIGNATURE: [u8; 8] = [137, 80, 78, 71, 13, 10, 26, 10];
/// The longest chunk before the pixels that is looked at; the `png` crate has a limit, too.
const METADATA_BYTES_MAX: usize = 1 << 20;

/// What a pixel is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Color {
    /// Brightness.
    Gray,
    /// Red, green and blue.
    Rgb,
    /// An index into a list of colors, of which some may be transparent.
    Palette {
        /// Whether the colors have an alpha.
        alpha: bool,
    },
    /// Brightness and alpha.
    GrayAlpha,
    /// Red, green, blue and alpha.
    Rgba,
}

/// What the header of an image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Pixels across, at least 1.
    pub width: usize,
    /// Pixels down, at least 1.
    pub height: usize,
    /// What a pixel is.
    pub color: Color,
    /// The bits of a sample in the file: 1, 2, 4, 8 or 16.
    pub bits: usize,
}

impl Header {
    /// The samples of a pixel that is given: 1 to 4. Of a palette, those of a color.
    pub fn channels(&self) -> usize {
        match self.color {
            Color::Gray => 1,
            Color::GrayAlpha => 2,
            Color::Rgb | Color::Palette { alpha: false } => 3,
            Color::Rgba | Color::Palette { alpha: true } => 4,
        }
    }

    /// The bytes of a row that is given. A sample has one byte, or two where 16 bits are stored.
    pub fn row_bytes(&self) -> usize {
        self.width * self.channels() * self.bits.div_ceil(8)
    }

    /// The bytes of all pixels.
    pub fn bytes(&self) -> usize {
        self.row_bytes().saturating_mul(self.height)
    }

    /// The memory that decoding takes in addition to the output, the file and a few rows: the filtered rows.
    pub fn working_bytes(&self) -> usize {
        (self.stored_row_bytes() + 1).saturating_mul(self.height)
    }

    fn stored_bits(&self) -> usize {
        self.bits * if matches!(self.color, Color::Palette { .. }) { 1 } else { self.channels() }
    }

    /// The bytes of a row in the file, without the one that says how it was filtered.
    pub(crate) fn stored_row_bytes(&self) -> usize {
        (self.width * self.stored_bits()).div_ceil(8)
    }

    /// The bytes of a pixel in the file, at least 1.
    pub(crate) fn stored_pixel_bytes(&self) -> usize {
        self.stored_bits().div_ceil(8)
    }

    /// Whether rows are given as they are stored.
    pub(crate) fn is_plain(&self) -> bool {
        self.bits >= 8 && !matches!(self.color, Color::Palette { .. })
    }
}

/// A file whose chunks were walked.
#[derive(Clone, Debug)]
pub(crate) struct File<'a> {
    pub(crate) header: Header,
    /// The colors of a palette; black where it has none.
    pub(crate) palette: Option<Box<[[u8; 4]; 256]>>,
    bytes: &'a [u8],
    /// Where the first chunk of pixels begins.
    pixels_at: usize,
}

/// A chunk: its kind, payload and where it begins.
#[derive(Clone, Copy, Debug)]
struct Chunk<'a> {
    kind: [u8; 4],
    payload: &'a [u8],
    /// Kind and payload, and their checksum.
    checked: (&'a [u8], u32),
    at: usize,
    next: usize,
}

impl<'a> Chunk<'a> {
    fn read(bytes: &'a [u8], at: usize) -> Result<Self> {
        Self::find(bytes, at).ok_or_else(|| Error::format("it ends within a chunk", bytes.len()))
    }

    fn find(bytes: &'a [u8], at: usize) -> Option<Self> {
        let (length, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let length = u32::from_be_bytes(*length) as usize;
        let checked = rest.get(..length + 4)?;
        let (kind, payload) = checked.split_first_chunk::<4>()?;
        let checksum = u32::from_be_bytes(*rest.get(length + 4..)?.first_chunk()?);
        Some(Self { kind: *kind, payload, checked: (checked, checksum), at, next: at + 12 + length })
    }

    /// Compares the checksum.
    fn check(&self) -> Result<()> {
        let (bytes, checksum) = self.checked;
        if libdeflater::crc32(bytes) != checksum {
            return Err(Error::format("the checksum of a chunk is wrong", self.at));
        }
        Ok(())
    }
}

impl<'a> File<'a> {
    /// Walks the chunks before the pixels.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        if !bytes.starts_with(&SIGNATURE) {
            return Err(Error::format("it does not begin as a PNG", 0));
        }
        let first = Chunk::read(bytes, SIGNATURE.len())?;
        first.check()?;
        let mut header = read_header(&first)?;
        let (mut colors, mut alphas): (Option<Chunk<'_>>, Option<Chunk<'_>>) = (None, None);
        let mut at = first.next;
        loop {
            // The pixels may be cut off, which is not this function's business.
            if bytes.get(at + 4..at + 8) == Some(b"IDAT") {
                break;
            }
            let chunk = Chunk::read(bytes, at)?;
            match &chunk.kind {
                b"PLTE" if colors.is_none() => colors = Some(chunk),
                b"tRNS" if alphas.is_none() && colors.is_some() && matches!(header.color, Color::Palette { .. }) => {
                    alphas = Some(chunk);
                }
                // More than one image; what the `png` crate may refuse; and what changes colors in other ways.
                b"acTL" | b"fcTL" | b"fdAT" | b"cICP" | b"mDCV" | b"cLLI" | b"tRNS" => {
                    return Err(Error::unsupported("a chunk of this kind", u32::from_be_bytes(chunk.kind)));
                }
                [first, ..] if first.is_ascii_lowercase() && chunk.payload.len() <= METADATA_BYTES_MAX => {}
                _ => return Err(Error::unsupported("a chunk of this kind", u32::from_be_bytes(chunk.kind))),
            }
            chunk.check()?;
            at = chunk.next;
        }
        let mut palette = None;
        if let Some(chunk) = colors
            && !matches!((chunk.payload.len() % 3, chunk.payload.len()), (0, 3..=768))
        {
            return Err(Error::format("the palette ends within a color", chunk.at));
        }
        if let Color::Palette { alpha } = &mut header.color {
            let Some(colors) = colors else { return Err(Error::format("there is no palette", at)) };
            *alpha = alphas.is_some();
            palette = Some(read_palette(&colors, alphas.as_ref())?);
        }
        Ok(Self { header, palette, bytes, pixels_at: at })
    }

    /// The compressed pixels: from the file, or from `joined` if they are split over several chunks.
    pub(crate) fn pixels<'b>(&self, joined: &'b mut Vec<u8>) -> Result<&'b [u8]>
    where
        'a: 'b,
    {
        let first = Chunk::read(self.bytes, self.pixels_at)?;
        first.check()?;
        let mut chunk = Chunk::read(self.bytes, first.next)?;
        let several = &chunk.kind == b"IDAT";
        if several {
            joined.clear();
            joined.extend_from_slice(first.payload);
        }
        while &chunk.kind == b"IDAT" {
            chunk.check()?;
            joined.extend_from_slice(chunk.payload);
            chunk = Chunk::read(self.bytes, chunk.next)?;
        }
        while &chunk.kind != b"IEND" {
            if &chunk.kind == b"IDAT" {
                return Err(Error::format("other chunks lie between those of the pixels", chunk.at));
            }
            chunk = Chunk::read(self.bytes, chunk.next)?;
        }
        Ok(if several { joined } else { first.payload })
    }
}

fn read_header(chunk: &Chunk<'_>) -> Result<Header> {
    let (b"IHDR", [w0, w1, w2, w3, h0, h1, h2, h3, bits, color, method, filters, interlace]) =
        (&chunk.kind, chunk.payload)
    else {
        return Err(Error::format("the header is missing", chunk.at));
    };
    let (width, height) = (u32::from_be_bytes([*w0, *w1, *w2, *w3]), u32::from_be_bytes([*h0, *h1, *h2, *h3]));
    if width == 0 || height == 0 || width >= 1 << 31 || height >= 1 << 31 {
        return Err(Error::format("the image has no pixels, or too many", chunk.at));
    }
    let (color, depths): (Color, &[u8]) = match color {
        0 => (Color::Gray, &[1, 2, 4, 8, 16]),
        2 => (Color::Rgb, &[8, 16]),
        3 => (Color::Palette { alpha: false }, &[1, 2, 4, 8]),
        4 => (Color::GrayAlpha, &[8, 16]),
        6 => (Color::Rgba, &[8, 16]),
        _ => return Err(Error::unsupported("the color type", *color)),
    };
    if !depths.contains(bits) {
        return Err(Error::unsupported("the depth", *bits));
    }
    if (*method, *filters) != (0, 0) {
        return Err(Error::unsupported("the kind of compression or filters", *method.max(filters)));
    }
    if *interlace != 0 {
        return Err(Error::unsupported("interlacing", *interlace));
    }
    Ok(Header { width: width as usize, height: height as usize, color, bits: usize::from(*bits) })
}

fn read_palette(colors: &Chunk<'_>, alphas: Option<&Chunk<'_>>) -> Result<Box<[[u8; 4]; 256]>> {
    let mut palette = Box::new([[0, 0, 0, 255]; 256]);
    let colors = colors.payload.as_chunks::<3>().0;
    for (entry, &[red, green, blue]) in palette.iter_mut().zip(colors) {
        *entry = [red, green, blue, 255];
    }
    if let Some(alphas) = alphas {
        if alphas.payload.is_empty() || alphas.payload.len() > colors.len() {
            return Err(Error::format("there are more alphas than colors, or none", alphas.at));
        }
        for (entry, &alpha) in palette.iter_mut().zip(alphas.payload) {
            entry[3] = alpha;
        }
    }
    Ok(palette)
}
