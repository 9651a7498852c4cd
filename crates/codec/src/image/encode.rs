//! Tensors to files in memory.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::tensor::{DType, TensorView};

use super::format::Format;
use super::jpeg::{self, Subsampling};
use super::l3::{self, L3Mode};
use super::{bmp, png, pnm, qoi, webp};

/// How hard to compress a PNG.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PngEffort {
    /// The fastest.
    Fastest,
    /// Fast, and smaller.
    Fast,
    /// As small as usual tools make them, at their speed.
    #[default]
    Balanced,
    /// The smallest.
    High,
}

/// A format to encode to, with its settings.
///
/// An image is `uint8` or, for PNG, PNM and L3, `uint16`, of 1 (gray), 2 (gray and alpha), 3 (RGB) or 4 (RGBA) channels. JPEG
/// and PNM hold no alpha and refuse it; WebP, BMP and QOI know gray with alpha only as RGBA, and WebP and QOI gray only as
/// RGB: it is repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// JPEG.
    Jpeg {
        /// 1 to 100.
        quality: u8,
        /// The chroma subsampling.
        subsampling: Subsampling,
        /// Coarse to fine: smaller, and slower to decode.
        progressive: bool,
    },
    /// PNG, as deep as the samples.
    Png {
        /// How hard to compress.
        effort: PngEffort,
    },
    /// WebP, lossy.
    WebP {
        /// 0 to 100.
        quality: f32,
    },
    /// Lossless WebP, which preserves the color of transparent pixels.
    WebPLossless {
        /// 0 (fast) to 9 (small).
        effort: u8,
    },
    /// Windows bitmap, uncompressed.
    Bmp,
    /// PGM or PPM, binary, as deep as the samples.
    Pnm,
    /// Quite OK Image.
    Qoi,
    /// L3, as deep as the samples.
    L3 {
        /// Fast to decode, small, or as published.
        mode: L3Mode,
        /// Rows that are decoded each on their own; `None` for strips of about 131,072 pixels. Few of them give a GPU more to do at
        /// once, and a slightly larger file. Not for `classic`.
        strip_rows: Option<u32>,
    },
}

impl Encoding {
    /// The format that it writes.
    pub const fn format(&self) -> Format {
        match self {
            Self::Jpeg { .. } => Format::Jpeg,
            Self::Png { .. } => Format::Png,
            Self::WebP { .. } | Self::WebPLossless { .. } => Format::WebP,
            Self::Bmp => Format::Bmp,
            Self::Pnm => Format::Pnm,
            Self::Qoi => Format::Qoi,
            Self::L3 { .. } => Format::L3,
        }
    }

    /// Whether it supports `uint16` samples.
    pub const fn holds_sixteen_bits(&self) -> bool {
        matches!(self, Self::Png { .. } | Self::Pnm | Self::L3 { .. })
    }

    /// Whether decoding gives back every sample.
    pub const fn is_lossless(&self) -> bool {
        !matches!(self, Self::Jpeg { .. } | Self::WebP { .. })
    }
}

/// Encodes an image, `[height, width, channels]` of `uint8` or `uint16`.
pub fn encode(picture: TensorView<'_>, encoding: &Encoding) -> Result<Vec<u8>> {
    let spec = picture.spec;
    let Some((height, width, channels @ 1..=4)) = spec.as_picture() else {
        return Err(Error::usage("this is not an image", "[height, width, 1 to 4 channels]", spec));
    };
    let sides = (u32::try_from(width), u32::try_from(height));
    let (Ok(columns @ 1..), Ok(rows @ 1..)) = sides else {
        return Err(Error::usage("the image cannot be encoded", "sides of 1 to 2^32 - 1", spec));
    };
    if picture.data.len() != spec.bytes() {
        return Err(Error::usage("the image's bytes do not fit its shape", spec.bytes(), picture.data.len()));
    }
    let deep = match (spec.dtype, encoding) {
        (DType::U8, _) => false,
        (DType::U16, _) if encoding.holds_sixteen_bits() => true,
        (DType::U16, _) => {
            let format = encoding.format().name();
            return Err(Error::usage(
                "this format holds 8 bit only",
                "uint8, or PNG, PNM or L3",
                format!("uint16 to {format}"),
            ));
        }
        (other, _) => return Err(Error::usage("the image cannot be encoded", "uint8 or uint16", other)),
    };
    match *encoding {
        Encoding::Jpeg { quality, subsampling, progressive } => {
            jpeg::encode(picture.data, (width, height), channels, quality, subsampling, progressive)
        }
        Encoding::Png { effort } => {
            png::encode(&big_endian(picture.data, deep), (columns, rows), channels, deep, effort)
        }
        Encoding::Pnm => pnm::encode(&big_endian(picture.data, deep), (width, height), channels, deep),
        Encoding::L3 { mode, strip_rows } => {
            l3::encode(picture.data, (columns, rows), channels, deep, mode, strip_rows)
        }
        Encoding::WebP { quality } => {
            let (pixels, channels) = color(picture.data, channels);
            webp::encode(&pixels, (width, height), channels, webp::Settings::Lossy(quality))
        }
        Encoding::WebPLossless { effort } => {
            let (pixels, channels) = color(picture.data, channels);
            webp::encode(&pixels, (width, height), channels, webp::Settings::Lossless(effort))
        }
        Encoding::Qoi => {
            let (pixels, channels) = color(picture.data, channels);
            qoi::encode(&pixels, (columns, rows), channels)
        }
        Encoding::Bmp if channels == 1 => bmp::encode(picture.data, (width, height), 1),
        Encoding::Bmp => {
            let (pixels, channels) = color(picture.data, channels);
            bmp::encode(&pixels, (width, height), channels)
        }
    }
}

/// The samples with the high byte first where they are 16 bit.
fn big_endian(data: &[u8], deep: bool) -> Cow<'_, [u8]> {
    if !deep {
        return Cow::Borrowed(data);
    }
    Cow::Owned(data.as_chunks::<2>().0.iter().flat_map(|&pair| u16::from_ne_bytes(pair).to_be_bytes()).collect())
}

/// Gray repeated to RGB, with its alpha if it has one; color as it is.
fn color(data: &[u8], channels: usize) -> (Cow<'_, [u8]>, usize) {
    match channels {
        1 => (Cow::Owned(data.iter().flat_map(|&gray| [gray; 3]).collect()), 3),
        2 => (
            Cow::Owned(data.as_chunks::<2>().0.iter().flat_map(|&[gray, alpha]| [gray, gray, gray, alpha]).collect()),
            4,
        ),
        _ => (Cow::Borrowed(data), channels),
    }
}
