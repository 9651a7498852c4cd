//! Encodings by name, as people type them and as manifests keep them: `png`, `jpeg-90`, `l3-fast`.

use std::fmt;
use std::str::FromStr;

use super::encode::{Encoding, PngEffort};
use super::jpeg::Subsampling;
use super::l3::L3Mode;
use crate::error::Error;

/// What there is, for messages.
pub const ENCODING_NAMES: &str = "l3-fast, l3-dense, l3-classic, png, png-fast, qoi, webp-lossless, bmp, pnm, jpeg-1 to jpeg-100, webp-0 to \
                                  webp-100";

/// The effort of `webp-lossless`: libwebp's own default.
const WEBP_LOSSLESS_EFFORT: u8 = 6;

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jpeg { quality, .. } => write!(f, "jpeg-{quality}"),
            Self::Png { effort: PngEffort::Fastest | PngEffort::Fast } => f.write_str("png-fast"),
            Self::Png { .. } => f.write_str("png"),
            Self::WebP { quality } => write!(f, "webp-{quality}"),
            Self::WebPLossless { .. } => f.write_str("webp-lossless"),
            Self::Bmp => f.write_str("bmp"),
            Self::Pnm => f.write_str("pnm"),
            Self::Qoi => f.write_str("qoi"),
            Self::L3 { mode } => write!(f, "l3-{}", mode.name()),
        }
    }
}

/// The encoding of this name, with the settings that are usual for it.
impl FromStr for Encoding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let unknown = || Error::usage("there is no such encoding", ENCODING_NAMES, name);
        Ok(match name {
            "png" => Self::Png { effort: PngEffort::Balanced },
            "png-fast" => Self::Png { effort: PngEffort::Fast },
            "webp-lossless" => Self::WebPLossless { effort: WEBP_LOSSLESS_EFFORT },
            "bmp" => Self::Bmp,
            "pnm" => Self::Pnm,
            "qoi" => Self::Qoi,
            "l3-fast" => Self::L3 { mode: L3Mode::Fast },
            "l3-dense" => Self::L3 { mode: L3Mode::Dense },
            "l3-classic" => Self::L3 { mode: L3Mode::Classic },
            _ => {
                let (format, quality) = name.split_once('-').ok_or_else(unknown)?;
                let quality: u8 = quality.parse().map_err(|_| unknown())?;
                match format {
                    "jpeg" if (1..=100).contains(&quality) => {
                        Self::Jpeg { quality, subsampling: Subsampling::Both, progressive: false }
                    }
                    "webp" if quality <= 100 => Self::WebP { quality: f32::from(quality) },
                    _ => return Err(unknown()),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let names = "png png-fast qoi webp-lossless bmp pnm jpeg-1 jpeg-90 webp-0 webp-80 l3-fast l3-dense l3-classic";
        for name in names.split(' ') {
            assert_eq!(name.parse::<Encoding>().expect(name).to_string(), name);
        }
        for name in ["", "jpeg", "jpeg-0", "jpeg-101", "webp-101", "gif", "png-slow", "jpeg--1", "l3", "l3-90"] {
            let error = name.parse::<Encoding>().expect_err(name).to_string();
            assert!(error.contains("no such encoding") && error.contains("jpeg-1 to jpeg-100"), "{error}");
        }
    }
}
