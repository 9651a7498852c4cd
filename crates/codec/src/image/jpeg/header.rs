//! The header of a JPEG. It is parsed here as well as by the library, which exposes neither EXIF nor the bytes between segments.

use crate::error::{Error, Result};
use crate::image::format::Format;
use crate::image::header::Header;
use crate::image::layout::Layout;
use crate::image::options::Region;
use crate::image::orientation::{self, Orientation};

use super::quiet::Oddities;
use super::{HINT, NAME};

/// What the header says beyond [`Header`].
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    /// Four components: CMYK or YCCK.
    pub(super) four: bool,
    /// The components' identifiers.
    pub(super) ids: Vec<u8>,
    /// Sampling factors of each component, horizontal and vertical.
    sampling: Vec<(usize, usize)>,
    /// Whether the coefficients of the entire image are buffered while decoding.
    pub(super) multiple_scans: bool,
    /// What libjpeg would warn of although it harms no pixel.
    pub(super) oddities: Oddities,
    /// Where the first scan begins: its marker.
    pub(super) scan_at: usize,
}

/// Walks the segments.
pub(crate) struct Walk<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Whether bytes were skipped that belong to no segment.
    stray: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, stray: false }
    }

    /// The next marker and the offset of its 0xFF, skipping fill bytes and bytes that belong to no segment, as libjpeg does.
    pub(crate) fn marker(&mut self) -> Result<(u8, usize)> {
        loop {
            match self.bytes.get(self.at..) {
                Some([0xFF, 0xFF, ..]) => self.at += 1,
                Some([0xFF, marker, ..]) if *marker != 0 => {
                    self.at += 2;
                    return Ok((*marker, self.at - 2));
                }
                Some([_, rest @ ..]) if !rest.is_empty() => {
                    if self.is_segment() {
                        return Err(Error::format_at(
                            NAME,
                            "the marker of a segment of the header is damaged",
                            self.at,
                        ));
                    }
                    self.stray = true;
                    self.at += 1 + rest.iter().position(|&byte| byte == 0xFF).unwrap_or(rest.len());
                }
                _ => return Err(Error::truncated(NAME, "it ends within the header", self.bytes.len())),
            }
        }
    }

    /// Whether what lies here would be a segment, up to the marker of the next, if only its first byte were 0xFF: then it most
    /// likely was one, and what it said of the pixels is lost.
    fn is_segment(&self) -> bool {
        let Some([_, 0xC0..=0xFE, high, low, ..]) = self.bytes.get(self.at..) else { return false };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        matches!(self.bytes.get(self.at + 2 + length..), Some([0xFF, 1..=0xFF, ..])) && length >= 2
    }

    /// The payload of the segment whose marker was just read.
    pub(crate) fn payload(&mut self) -> Result<&'a [u8]> {
        let cut = || Error::truncated(NAME, "it ends within a segment of the header", self.bytes.len());
        let length: [u8; 2] = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes(length));
        if length < 2 {
            return Err(Error::format_at(NAME, format!("a segment is `{length}` bytes long"), self.at));
        }
        let payload = self.bytes.get(self.at + 2..self.at + length).ok_or_else(cut)?;
        self.at += length;
        Ok(payload)
    }
}

/// Reads the header.
pub(crate) fn read(bytes: &[u8]) -> Result<Frame> {
    let mut walk = Walk::new(bytes, 2);
    let mut frame: Option<Frame> = None;
    let mut orientation: Option<Orientation> = None;
    let mut oddities = Oddities::default();
    loop {
        let (marker, start) = walk.marker()?;
        match marker {
            0x01 | 0xD0..=0xD7 => {}
            0xD8 => return Err(Error::format_at(NAME, "a second start of image inside the header", start)),
            0xD9 => return Err(Error::truncated(NAME, "it ends before the first scan", start)),
            0xDA => {
                let mut frame = frame.ok_or_else(|| Error::format_at(NAME, "a scan before any frame header", start))?;
                let components = walk.payload()?.first().copied().unwrap_or_default();
                frame.multiple_scans |= usize::from(components) < frame.sampling.len();
                frame.header.orientation = orientation.unwrap_or_default();
                oddities.end(walk.stray, frame.sampling.len());
                frame.oddities = oddities;
                frame.scan_at = start;
                return Ok(frame);
            }
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let payload = walk.payload()?;
                if frame.is_none() {
                    frame = Some(read_frame(marker, payload, start)?);
                }
            }
            _ => {
                let payload = walk.payload()?;
                oddities.look(marker, payload, walk.at);
                if marker == 0xE1 && orientation.is_none() {
                    orientation = payload.strip_prefix(b"Exif\0\0").map(orientation::from_tiff);
                }
            }
        }
        oddities.segments.push((start, walk.at));
    }
}

fn read_frame(marker: u8, payload: &[u8], at: usize) -> Result<Frame> {
    match marker {
        0xC0..=0xC2 | 0xC9 | 0xCA => {}
        0xC3 | 0xCB => return Err(Error::unsupported(NAME, "lossless coding", HINT)),
        _ => return Err(Error::unsupported(NAME, "hierarchical coding", HINT)),
    }
    let [bits, height_high, height_low, width_high, width_low, count, components @ ..] = payload else {
        return Err(Error::format_at(NAME, "the frame header is too short", at));
    };
    if *bits != 8 {
        return Err(Error::unsupported(NAME, format!("a sample depth of `{bits}` bit"), HINT));
    }
    if !matches!(count, 1 | 3 | 4) {
        return Err(Error::unsupported(NAME, format!("an image of `{count}` components"), HINT));
    }
    let (components, _) = components.as_chunks::<3>();
    let Some(components) = components.get(..usize::from(*count)) else {
        return Err(Error::format_at(NAME, "the frame header is too short", at));
    };
    let factors = |&[_, factors, _]: &[u8; 3]| (usize::from(factors >> 4), usize::from(factors & 15));
    let sampling: Vec<_> = components.iter().map(factors).collect();
    if sampling.iter().any(|&(x, y)| !(1..=4).contains(&x) || !(1..=4).contains(&y)) {
        return Err(Error::format_at(NAME, "a sampling factor is not 1 to 4", at));
    }
    let progressive = matches!(marker, 0xC2 | 0xCA);
    let header = Header {
        format: Format::Jpeg,
        width: usize::from(u16::from_be_bytes([*width_high, *width_low])),
        height: usize::from(u16::from_be_bytes([*height_high, *height_low])),
        channels: if *count == 1 { 1 } else { 3 },
        bits: 8,
        orientation: Orientation::Normal,
        progressive,
        animated: false,
    };
    Ok(Frame {
        header,
        four: *count == 4,
        ids: components.iter().map(|component| component[0]).collect(),
        sampling,
        multiple_scans: progressive,
        oddities: Oddities::default(),
        scan_at: 0,
    })
}

impl Frame {
    /// Width and height of an iMCU, in pixels of the full picture.
    fn unit(&self) -> (usize, usize) {
        if self.sampling.len() == 1 {
            return (8, 8);
        }
        let most = |side: fn(&(usize, usize)) -> usize| self.sampling.iter().map(side).max().unwrap_or(1) * 8;
        (most(|factors| factors.0), most(|factors| factors.1))
    }

    /// Bytes of the coefficient buffer that more than one scan needs: 2 per coefficient, whole iMCUs.
    pub(super) fn coefficient_bytes(&self) -> usize {
        if !self.multiple_scans {
            return 0;
        }
        let (unit_width, unit_height) = self.unit();
        let units = self.header.width.div_ceil(unit_width) * self.header.height.div_ceil(unit_height);
        let blocks =
            self.sampling.iter().map(|&(x, y)| if self.sampling.len() == 1 { 1 } else { x * y }).sum::<usize>();
        units.saturating_mul(blocks * 64 * 2)
    }

    /// What to have the library decode for `window`, or `None` for the whole picture.
    ///
    /// The library smooths color across the pixels that it decodes, so at the edge of a crop it would invent other
    /// neighbors than the full decode has: the crop is wider by 8 pixels and an iMCU, and trimmed. Rows need no such
    /// margin, because the library retains the context of skipped rows.
    pub(super) fn crop(&self, layout: &Layout) -> Option<Region> {
        let window = layout.window;
        // Factors of 3 and mixed ones: the library refuses to crop these.
        let common = self.sampling.len() == 1
            || (self.sampling[1..self.sampling.len().min(3)].iter().all(|&factors| factors == (1, 1))
                && (!self.four || self.sampling[3] == self.sampling[0])
                && matches!(self.sampling[0], (1, 1 | 2 | 4) | (2, 1 | 2) | (4, 1)));
        // Where scans leave coefficients out the library smooths a progressive image across blocks, and knows none beyond a crop.
        if layout.is_whole() || !common || self.header.progressive {
            return None;
        }
        let width = layout.scaled.0;
        // Damage may show only at the end of the data, and the library does not look at rows that nobody wants.
        let height = layout.scaled.1 - window.y;
        if window.width == width {
            return Some(Region { height, ..window });
        }
        let unit = (self.unit().0 / layout.divisor).max(1);
        let left = window.x.saturating_sub(8) / unit * unit;
        let right = (window.x + window.width + 8).next_multiple_of(unit).min(width);
        Some(Region { x: left, y: window.y, width: right - left, height })
    }
}
