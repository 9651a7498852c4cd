//! What an audio file is, by its first bytes.

use super::{flac, mp3};
use crate::{Error, Result};

/// An audio format that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AudioFormat {
    /// Free Lossless Audio Codec, in its own container.
    Flac,
    /// MPEG audio: layer III, and its elders II and I.
    Mp3,
    /// Samples as they are, in Microsoft's RIFF.
    Wav,
}

/// Formats that are known but not decoded: name, signature and its offset.
const FOREIGN: [(&str, &[u8], usize); 5] = [
    ("ogg", b"OggS", 0),
    ("aiff", b"AIFF", 8),
    ("mp4", b"ftyp", 4),
    ("wma", b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", 0),
    ("matroska", b"\x1a\x45\xdf\xa3", 0),
];

impl AudioFormat {
    /// The short name, as in messages: `flac`, `mp3`, `wav`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flac => "flac",
            Self::Mp3 => "mp3",
            Self::Wav => "wav",
        }
    }

    /// The format of `bytes`, and where it starts: after an `ID3v2` tag, which may stand before either.
    pub(super) fn detect(bytes: &[u8]) -> Result<(Self, usize)> {
        let tag = nanomp3::id3v2_len(bytes);
        let Some(body) = bytes.get(tag..) else {
            return Err(Error::truncated("audio", format!("the tag `ID3v2` is `{tag}` bytes long"), bytes.len()));
        };
        if body.starts_with(flac::MARKER) || flac::begins_with_frame(body) {
            return Ok((Self::Flac, tag));
        }
        if body.starts_with(b"RIFF") && body.get(8..12) == Some(b"WAVE") {
            return Ok((Self::Wav, tag));
        }
        for (name, signature, offset) in FOREIGN {
            if body.get(offset..).is_some_and(|body| body.starts_with(signature)) {
                return Err(Error::unsupported(name, "this format", "convert the file to FLAC, MP3 or WAV"));
            }
        }
        if mp3::first_frame(body, 0).is_some() {
            return Ok((Self::Mp3, tag));
        }
        let problem = match body.len() {
            0 if tag > 0 => "nothing follows the tag `ID3v2`",
            0 => "the file is empty",
            _ => "it starts like no known audio format, and holds no MPEG audio frame",
        };
        Err(Error::format_at("audio", problem, tag))
    }
}
