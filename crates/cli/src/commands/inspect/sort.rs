//! What a file is, by its first bytes; where those say nothing, by its name too.

use std::path::Path;

use forebay_codec::image::{EncodedImage, Format};
use forebay_codec::{Error as CodecError, audio, npy, signal};
use forebay_record::masked_crc32c;
use forebay_record::{arrow, parquet};

use super::arrays::IdxHeader;

/// The number of bytes that is enough to determine the type of a file.
pub(super) const HEAD_BYTES: u64 = 4096;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Image(Format),
    /// FLAC, MP3 or WAV: its name.
    Audio(&'static str),
    Tar,
    Parquet,
    Arrow,
    /// Something else that is compressed, by its name: `.tar.gz`, `.html.gz`.
    Compressed,
    /// TFRecord, plain or compressed.
    Records,
    Npy,
    Hdf5,
    /// As MNIST's files are.
    Idx,
    /// Where the records of a shard, or the samples of a tar, are.
    Index,
    /// A web page.
    Html,
    /// A JSON file, of ours or not.
    Json,
    Pipeline,
    Text,
    /// A format that is known by name and not read.
    Foreign(&'static str),
    Empty,
    Unknown,
}

impl Sort {
    /// What a file of `bytes` bytes is that begins with `head`.
    pub(super) fn of(path: &Path, head: &[u8], bytes: u64) -> Self {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        if head.is_empty() {
            return Self::Empty;
        }
        if let Some(format) = Format::detect(head) {
            return Self::Image(format);
        }
        let starts: [(bool, Self); 15] = [
            (head.starts_with(parquet::MAGIC), Self::Parquet),
            (head.starts_with(arrow::MAGIC) || is_arrow_stream(head), Self::Arrow),
            (npy::begins(head), Self::Npy),
            (signal::is_hdf5(head), Self::Hdf5),
            (head.starts_with(b"fLaC") || head.starts_with(b"ID3") && ends(&[".flac"]), Self::Audio("flac")),
            (head.starts_with(b"ID3"), Self::Audio("mp3")),
            (head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WAVE"), Self::Audio("wav")),
            (head.get(257..262) == Some(b"ustar"), Self::Tar),
            (is_compressed(head) && has_compressed_name(&name), Self::Compressed),
            (is_record_header(head) || is_compressed(head), Self::Records),
            (IdxHeader::parse(head).is_some_and(|header| header.file_bytes() == Some(bytes)), Self::Idx),
            (head.trim_ascii_start().first() == Some(&b'{'), Self::Json),
            (ends(&[".toml"]), Self::Pipeline),
            (is_html(head, ends(&[".html", ".htm"])), Self::Html),
            (ends(&[".tar"]) && is_old_tar(head), Self::Tar),
        ];
        if let Some((_, sort)) = starts.into_iter().find(|(is, _)| *is) {
            return sort;
        }
        if let Some(name) = foreign(head) {
            return Self::Foreign(name);
        }
        // Its mark passes for the start of an MPEG frame.
        if is_utf16(head) && !ends(&[".mp3"]) {
            return if ends(&[".html", ".htm"]) { Self::Html } else { Self::Text };
        }
        // Any two bytes may pass for the start of an MPEG frame, so that two frames must follow each other, or the name say so.
        let frames = matches!(head, [0xFF, second, ..] if second & 0xE0 == 0xE0) && audio::inspect(head).is_ok();
        if frames || ends(&[".mp3"]) {
            return Self::Audio("mp3");
        }
        match (is_text(head), promised(path)) {
            (true, None) if ends(&[".idx", ".index"]) && is_index(head) => Self::Index,
            (true, None) => Self::Text,
            _ if name.rsplit('.').next().is_some_and(|last| last.starts_with("tfrec")) => Self::Records,
            _ => Self::Unknown,
        }
    }

    /// The short name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Image(format) => format.name(),
            Self::Audio(name) | Self::Foreign(name) => name,
            Self::Tar => "tar",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Compressed => "gzip",
            Self::Records => "tfrecord",
            Self::Npy => "npy",
            Self::Hdf5 => "hdf5",
            Self::Idx => "idx",
            Self::Index => "index",
            Self::Html => "html",
            Self::Json => "json",
            Self::Pipeline => "toml",
            Self::Text => "text",
            Self::Empty | Self::Unknown => "unknown",
        }
    }

    /// Whether pipelines read samples from it. (Of text they do where it is CSV.)
    pub(super) fn is_sample(self) -> bool {
        matches!(
            self,
            Self::Image(_)
                | Self::Audio(_)
                | Self::Tar
                | Self::Parquet
                | Self::Arrow
                | Self::Records
                | Self::Npy
                | Self::Hdf5
                | Self::Html
        )
    }

    /// Whether it is known and no pipeline reads it as it is.
    pub(super) fn is_unsupported(self) -> bool {
        matches!(self, Self::Foreign(_) | Self::Compressed | Self::Idx)
    }
}

/// The format that the name of a file promises, where that is one that is known by its first bytes.
pub(super) fn promised(path: &Path) -> Option<&'static str> {
    const NAMES: [(&str, &str); 13] = [
        ("flac", "flac"),
        ("mp3", "mp3"),
        ("npy", "npy"),
        ("h5", "hdf5"),
        ("hdf5", "hdf5"),
        ("tar", "tar"),
        ("parquet", "parquet"),
        ("arrow", "arrow"),
        ("feather", "arrow"),
        ("tfrecord", "tfrecord"),
        ("tfrecords", "tfrecord"),
        ("gif", "gif"),
        ("tiff", "tiff"),
    ];
    let extension = path.extension()?.to_string_lossy().to_ascii_lowercase();
    let named = NAMES.iter().find(|(name, _)| *name == extension).map(|(_, format)| *format);
    named.or_else(|| Format::from_name(&extension).map(Format::name))
}

/// Formats that neither the image nor the audio decoders read, but know by name.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let named = |error| if let CodecError::Unsupported { format, .. } = error { Some(format) } else { None };
    EncodedImage::open(head).err().and_then(named).or_else(|| audio::inspect(head).err().and_then(named))
}

fn is_compressed(head: &[u8]) -> bool {
    const FRAMES: [&[u8]; 3] = [b"\x28\xB5\x2F\xFD", b"\x04\x22\x4D\x18", b"\xFF\x06\0\0sNaPpY"];
    matches!(head, [0x1F, 0x8B, ..] | [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..])
        || FRAMES.iter().any(|magic| head.starts_with(magic))
}

/// Whether the name of a compressed file says that it is something other than records, which can have any name.
fn has_compressed_name(name: &str) -> bool {
    let mut parts = name.rsplit('.');
    match parts.next() {
        Some("tgz") => true,
        // The first part is a name, not a kind.
        Some("gz" | "zst" | "lz4" | "sz") => {
            parts.next().is_some_and(|kind| parts.next().is_some() && !kind.starts_with("tfrec"))
        }
        _ => false,
    }
}

/// Whether these bytes begin as messages of Arrow do: with a mark, and a length of up to some MB that is a multiple of eight.
fn is_arrow_stream(head: &[u8]) -> bool {
    let length = head.strip_prefix(arrow::CONTINUATION).and_then(|rest| rest.first_chunk::<4>());
    length.is_some_and(|length| {
        let length = u32::from_le_bytes(*length);
        (8..=arrow::MESSAGE_BYTES_MAX as u32).contains(&length) && length.is_multiple_of(8)
    })
}

/// Whether these bytes begin with a record's length and the checksum of it.
fn is_record_header(head: &[u8]) -> bool {
    head.first_chunk::<8>().zip(head.get(8..12)).is_some_and(|(length, sum)| masked_crc32c(length).to_le_bytes() == sum)
}

/// A tar of before 1988 has no mark; its first header has a checksum all the same.
fn is_old_tar(head: &[u8]) -> bool {
    let Some(block) = head.get(..512) else { return false };
    let digits = std::str::from_utf8(&block[148..156]).unwrap_or_default();
    let stated = u64::from_str_radix(digits.trim_matches(|letter: char| letter == ' ' || letter == '\0'), 8).ok();
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    stated == Some(sum(&block[..148]) + 8 * u64::from(b' ') + sum(&block[156..]))
}

fn is_html(head: &[u8], by_name: bool) -> bool {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    text.starts_with('<') && (by_name || text.starts_with("<!doctype html") || text.contains("<html"))
        || by_name && is_text(head)
}

/// Whether this looks like text: UTF-8 (cut anywhere) without control bytes.
fn is_text(head: &[u8]) -> bool {
    let valid = match std::str::from_utf8(head) {
        Ok(_) => head,
        // A letter may be cut off where the head ends.
        Err(error) if error.error_len().is_none() => &head[..error.valid_up_to()],
        Err(_) => return false,
    };
    !valid.iter().any(|&byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
}

/// Whether this begins with the mark of UTF-16, and with a letter of it that is no control character.
fn is_utf16(head: &[u8]) -> bool {
    let letter = match head {
        [0xFF, 0xFE, low, high, ..] | [0xFE, 0xFF, high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => return false,
    };
    char::decode_utf16([letter]).any(|letter| letter.is_ok_and(|letter| !letter.is_control() || letter.is_whitespace()))
}

/// Whether the first line is an offset and a length.
fn is_index(head: &[u8]) -> bool {
    // DALI's, of a tar.
    if head.starts_with(b"v1.") {
        return true;
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut numbers =
        line.split(|&byte| byte == b' ').map(|number| std::str::from_utf8(number).ok()?.trim().parse().ok());
    let pair: [Option<Option<u64>>; 3] = [numbers.next(), numbers.next(), numbers.next()];
    matches!(pair, [Some(Some(_)), Some(Some(_)), None])
}
