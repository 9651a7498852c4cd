//! Tars as people keep them, plain or compressed: the parts are those of the tar, and one that says how it is compressed. So mutations get past
//! the checksums of streams, and a plain tar becomes a compressed one.

use std::io::{Read, Write};

use forebay_record::{Compression, InflateReader, ShardCompressor};

use super::{Part, Structure, Tar};

/// Tars, compressed or not.
pub struct PackedTar;

/// How they are compressed, by the first byte of the part that says so. Nobody compresses tars by ZLIB, and the first name in one may begin as that
/// does.
const KINDS: [(Compression, &str); 5] = [
    (Compression::None, ""),
    (Compression::Gzip, "gzip-1-stream"),
    (Compression::Zstd, "zstd-1-stream"),
    (Compression::Lz4, "lz4-stream"),
    (Compression::Snappy, "snappy-stream"),
];

/// What inflates to more is left out: the time is for other things.
pub const INFLATED_BYTES_MAX: u64 = 1 << 20;

/// How a tar is compressed, by its first bytes: a number in the list of how they are.
fn kind(file: &[u8]) -> usize {
    let compression = Compression::of(&file[..file.len().min(12)]);
    KINDS.iter().position(|(kind, _)| *kind == compression).unwrap_or(0)
}

/// What a compressed file inflates to, up to the limit and a byte, and whether its stream is sound that far; `None` where it is not compressed.
pub fn unpack(file: &[u8]) -> Option<(Vec<u8>, bool)> {
    let (compression, _) = KINDS[kind(file)];
    if compression == Compression::None {
        return None;
    }
    let mut tar = Vec::new();
    let stream = InflateReader::new(file, compression);
    let read = stream.and_then(|stream| stream.take(INFLATED_BYTES_MAX + 1).read_to_end(&mut tar));
    Some((tar, read.is_ok()))
}

impl Structure for PackedTar {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let unpacked = unpack(file).map(|(tar, _)| tar);
        let mut parts = vec![Part::new(&[kind(file) as u8], &[])];
        parts.extend(Tar::split(unpacked.as_deref().unwrap_or(file))?);
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let says_how = |part: &&Part| part.kind.len() == 1;
        let number = parts.iter().find(says_how).map_or(0, |part| part.kind[0]);
        let members: Vec<Part> = parts.iter().filter(|part| !says_how(part)).cloned().collect();
        let tar = Tar::join(&members);
        let (compression, name) = KINDS[usize::from(number) % KINDS.len()];
        if compression == Compression::None {
            return tar;
        }
        let mut compressor = ShardCompressor::new(Vec::new(), name.parse().expect("a name")).expect("memory");
        compressor.write_all(&tar).expect("memory can be written to");
        compressor.finish().expect("memory can be written to").0
    }
}
