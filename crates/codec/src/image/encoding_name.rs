//! Encodings by name, as they are typed and as they are in manifests: `png`, `jpeg-90`, `l3-fast`.

use std::fmt;
use std::str::FromStr;

use super::encode::{Encoding, PngEffort};
use super::jpeg::Subsampling;
use super::l3::{L3_SIDE_MAX, L3Mode};
use crate::error::Error;

/// What there is, for messages.
pub const ENCODING_NAMES: &str = "l3-fast, l3-dense, l3-classic, l3-fast-rows-16 (rows per strip), png, png-fast, qoi, webp-lossless, bmp, pnm, jpeg-1 to jpeg-100, webp-0 to \
                                  webp-100";

/// The prefix of L3 encodings, and the separator before the rows per strip.
const L3: &str = "l3-";
const ROWS: &str = "-rows-";

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
            Self::L3 { mode, strip_rows: None } => write!(f, "l3-{}", mode.name()),
            Self::L3 { mode, strip_rows: Some(rows) } => write!(f, "l3-{}{ROWS}{rows}", mode.name()),
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
            _ if name.starts_with(L3) => l3(&name[L3.len()..]).ok_or_else(unknown)?,
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

/// `fast`, `dense-rows-16`.
fn l3(name: &str) -> Option<Encoding> {
    let (mode, rows) = name.split_once(ROWS).map_or((name, None), |(mode, rows)| (mode, Some(rows)));
    let mode = L3Mode::ALL.into_iter().find(|known| known.name() == mode)?;
    let Some(rows) = rows else { return Some(Encoding::L3 { mode, strip_rows: None }) };
    let strip_rows: u32 = rows.parse().ok()?;
    // One name for one encoding: no sign, no leading zeros.
    let usual = strip_rows.to_string() == rows && (1..=L3_SIDE_MAX).contains(&strip_rows);
    (usual && mode != L3Mode::Classic).then_some(Encoding::L3 { mode, strip_rows: Some(strip_rows) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let names = "png png-fast qoi webp-lossless bmp pnm jpeg-1 jpeg-90 webp-0 webp-80 l3-fast l3-dense l3-classic l3-fast-rows-16 \
                     l3-dense-rows-1";
        for name in names.split(' ') {
            assert_eq!(name.parse::<Encoding>().expect(name).to_string(), name);
        }
        for name in [
            "",
            "jpeg",
            "jpeg-0",
            "jpeg-101",
            "webp-101",
            "gif",
            "png-slow",
            "jpeg--1",
            "l3",
            "l3-90",
            "l3-",
            "l3-fast-rows-0",
            "l3-fast-rows-+1",
            "l3-fast-rows-01",
            "l3-classic-rows-8",
            "l3-fast-16",
        ] {
            let error = name.parse::<Encoding>().expect_err(name).to_string();
            assert!(error.contains("no such encoding") && error.contains("jpeg-1 to jpeg-100"), "{error}");
        }
    }
}
