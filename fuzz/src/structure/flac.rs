//! FLAC (RFC 9639): the parts are the stream's mark, its blocks of metadata, and its frames without their two checksums.

use super::{Part, Structure};

/// FLAC files.
pub struct Flac;

const MAGIC: &[u8] = b"fLaC";
/// Where a frame's header, whose last byte is a checksum, ends and its subframes begin is told by these: a block of metadata
/// has one byte of kind, a frame has its header.
const METADATA_KIND_BYTES: usize = 1;

fn checksum8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ byte, |sum: u8, _| (sum << 1) ^ if sum & 0x80 == 0 { 0 } else { 0x07 })
    })
}

fn checksum16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, &byte| {
        (0..8).fold(sum ^ u16::from(byte) << 8, |sum: u16, _| (sum << 1) ^ if sum & 0x8000 == 0 { 0 } else { 0x8005 })
    })
}

/// The length of a frame's header without its checksum, if one begins here.
fn frame_header(bytes: &[u8]) -> Option<usize> {
    let [0xFF, 0xF8 | 0xF9, sizes, ..] = bytes else { return None };
    let number_bytes = match bytes.get(4)?.leading_ones() {
        0 => 1,
        more @ 2..=7 => more as usize,
        _ => return None,
    };
    let block = match sizes >> 4 {
        6 => 1,
        7 => 2,
        _ => 0,
    };
    let rate = match sizes & 15 {
        12 => 1,
        13 | 14 => 2,
        _ => 0,
    };
    let length = 4 + number_bytes + block + rate;
    (checksum8(bytes.get(..length)?) == *bytes.get(length)?).then_some(length)
}

impl Structure for Flac {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let mut rest = file.strip_prefix(MAGIC)?;
        let mut parts = Vec::new();
        while let [kind, high, middle, low, after @ ..] = rest {
            let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
            parts.push(Part::new(&[*kind], after.get(..length)?));
            rest = &after[length..];
            if kind & 0x80 != 0 {
                break;
            }
        }
        while let Some(length) = frame_header(rest) {
            let next = (length + 1..rest.len()).find(|&at| frame_header(&rest[at..]).is_some());
            let (frame, after) = rest.split_at(next.unwrap_or(rest.len()));
            parts.push(Part::new(&frame[..length], frame.get(length + 1..frame.len() - 2).unwrap_or_default()));
            rest = after;
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        for Part { kind, content } in parts {
            if kind.len() == METADATA_KIND_BYTES {
                file.extend_from_slice(kind);
                file.extend(&(content.len() as u32).to_be_bytes()[1..]);
                file.extend_from_slice(content);
                continue;
            }
            let start = file.len();
            file.extend_from_slice(kind);
            file.push(checksum8(kind));
            file.extend_from_slice(content);
            let checksum = checksum16(&file[start..]);
            file.extend(checksum.to_be_bytes());
        }
        file
    }
}
