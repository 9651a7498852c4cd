//! What an image says about itself before its pixels.

use std::cell::Cell;

use crate::error::Result;

use super::format::{self, Format};
use super::orientation::Orientation;
use super::{bmp, jpeg, l3, png, pnm, qoi, webp};

/// What the header of an image says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Header {
    /// The format, judged by content.
    pub format: Format,
    /// The width as stored, before any orientation.
    pub width: usize,
    /// The height as stored.
    pub height: usize,
    /// The channels that [`Channels::AsStored`](super::Channels::AsStored) gives: 1 to 4.
    pub channels: usize,
    /// The bits per sample that [`Depth::AsStored`](super::Depth::AsStored) gives: 8 or 16.
    pub bits: u8,
    /// How the image must be rotated to be upright.
    pub orientation: Orientation,
    /// Whether it is stored coarse to fine: a progressive JPEG, an interlaced PNG.
    pub progressive: bool,
    /// Whether more frames follow the one that is decoded (WebP, PNG).
    pub animated: bool,
}

/// A header with what else its decoder needs.
pub(crate) enum Parsed {
    Jpeg(jpeg::Frame),
    Png(Header),
    WebP(webp::File),
    Bmp(bmp::Bitmap),
    Pnm(pnm::Netpbm),
    Qoi(Header),
    L3(l3::File),
}

impl Parsed {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        HEADERS_READ.set(HEADERS_READ.get() + 1);
        Ok(match format::require(bytes)? {
            Format::Jpeg => Self::Jpeg(jpeg::read(bytes)?),
            Format::Png => Self::Png(png::read(bytes)?),
            Format::WebP => Self::WebP(webp::read(bytes)?),
            Format::Bmp => Self::Bmp(bmp::read(bytes)?),
            Format::Pnm => Self::Pnm(pnm::read(bytes)?),
            Format::Qoi => Self::Qoi(qoi::read(bytes)?),
            Format::L3 => Self::L3(l3::read(bytes)?),
        })
    }

    pub(crate) fn header(&self) -> &Header {
        match self {
            Self::Jpeg(frame) => &frame.header,
            Self::Bmp(bitmap) => &bitmap.header,
            Self::Pnm(netpbm) => &netpbm.header,
            Self::WebP(file) => &file.header,
            Self::L3(file) => &file.header,
            Self::Png(header) | Self::Qoi(header) => header,
        }
    }
}

thread_local! {
    static HEADERS_READ: Cell<u64> = const { Cell::new(0) };
}

/// How many headers this thread has read, for tests: an image that is decoded once has its header read once.
#[doc(hidden)]
pub fn headers_read() -> u64 {
    HEADERS_READ.get()
}
