//! Which format some bytes are, judged by the bytes alone.

use crate::error::{Error, Result};

/// An image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JPEG (baseline, progressive, arithmetic-coded; 8 bit).
    Jpeg,
    /// PNG, 1 to 16 bit.
    Png,
    /// WebP, lossy and lossless.
    WebP,
    /// Windows bitmap.
    Bmp,
    /// PBM, PGM and PPM, ASCII and binary.
    Pnm,
    /// Quite OK Image.
    Qoi,
    /// L3, Forebay's own, and the layout that the authors of its paper released.
    L3,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Jpeg, Self::Png, Self::WebP, Self::Bmp, Self::Pnm, Self::Qoi, Self::L3];

    /// The format that `bytes` begin like, or `None`. No file name is consulted: an extension is often wrong.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xFF, 0xD8, 0xFF, ..] | [0xFF, 0xD8] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Self::Png),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            // Two letters are too few to go by: the size of the second header must be one that exists.
            [b'B', b'M', rest @ ..] => match rest.get(12..16)? {
                [12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0] => Some(Self::Bmp),
                _ => None,
            },
            [b'P', b'1'..=b'7', white, ..] if white.is_ascii_whitespace() || *white == b'#' => Some(Self::Pnm),
            [b'q', b'o', b'i', b'f', ..] => Some(Self::Qoi),
            [0x8A, b'L', b'3', b'\n', ..] | [b'L', b'L', b'L', b'.', ..] => Some(Self::L3),
            _ => None,
        }
    }

    /// The short name: `jpeg`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::WebP => "webp",
            Self::Bmp => "bmp",
            Self::Pnm => "pnm",
            Self::Qoi => "qoi",
            Self::L3 => "l3",
        }
    }

    /// The usual file name extension, without the dot: `jpg`.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            _ => self.name(),
        }
    }

    /// The format of a short name or a usual extension, in any case: `jpeg`, `JPG`, `ppm`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "jpeg" | "jpg" | "jpe" | "jfif" => Self::Jpeg,
            "png" | "apng" => Self::Png,
            "webp" => Self::WebP,
            "bmp" | "dib" => Self::Bmp,
            "pnm" | "pbm" | "pgm" | "ppm" => Self::Pnm,
            "qoi" => Self::Qoi,
            "l3" => Self::L3,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of `bytes`, or the error that says what they look like instead.
pub(crate) fn require(bytes: &[u8]) -> Result<Format> {
    Format::detect(bytes).ok_or_else(|| unrecognized(bytes))
}

const CONVERT: &str = "convert the file to JPEG, PNG, WebP, BMP, PNM, QOI or L3";

fn unrecognized(bytes: &[u8]) -> Error {
    let known = match bytes {
        [] => return Error::truncated("image", "the file has zero bytes", 0),
        [b'G', b'I', b'F', b'8', ..] => Some(("gif", "GIF")),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(("tiff", "TIFF")),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(("isobmff", "AVIF, HEIC or another ISO media file")),
        [0xFF, 0x0A, ..] | [0, 0, 0, 12, b'J', b'X', b'L', b' ', ..] => Some(("jxl", "JPEG XL")),
        [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xFF, 0x4F, 0xFF, 0x51, ..] => Some(("jp2", "JPEG 2000")),
        [0, 0, 1 | 2, 0, ..] => Some(("ico", "a Windows icon")),
        [b'%', b'P', b'D', b'F', ..] => Some(("pdf", "PDF")),
        _ => None,
    };
    if let Some((format, feature)) = known {
        return Error::unsupported(format, feature, CONVERT);
    }
    let what = match bytes {
        [0x89, b'P', b'N', b'G', ..] => "it begins like PNG, but the signature is damaged".to_owned(),
        [0x1F, 0x8B, ..] => "it looks like gzip data".to_owned(),
        [b'P', b'K', 3 | 5, ..] => "it looks like a zip archive".to_owned(),
        _ => text_or_bytes(bytes),
    };
    Error::format_at("image", format!("no known image format: {what}"), 0)
}

fn text_or_bytes(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(64)];
    if head.iter().all(|&byte| byte == 0) {
        return "it begins with nothing but zeros".to_owned();
    }
    let trimmed = head.trim_ascii_start();
    if trimmed.first() == Some(&b'<') {
        return "it looks like HTML or XML, perhaps an error page saved as an image".to_owned();
    }
    if head.iter().all(|&byte| (byte.is_ascii() && !byte.is_ascii_control()) || byte.is_ascii_whitespace()) {
        return "it looks like text".to_owned();
    }
    let hex: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("it begins with `{}`", hex.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_format() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
            assert_eq!(Format::from_name(&format.extension().to_uppercase()), Some(format));
        }
        assert_eq!(Format::from_name("gif"), None);
    }

    #[test]
    fn unknown_content_is_described() {
        let message = |bytes: &[u8]| require(bytes).unwrap_err().to_string();
        assert!(message(b"").contains("zero bytes"));
        assert!(message(b"GIF89a").contains("GIF is not supported\nhint: convert"));
        assert!(message(b"  <!DOCTYPE html>").contains("HTML"));
        assert!(message(b"404 not found").contains("text"));
        assert!(message(b"BMW is a car maker, not a bitmap").contains("text"));
        assert!(message(&[0; 30]).contains("zeros"));
        assert!(message(&[1, 2, 255]).contains("`01 02 ff`"));
    }
}
