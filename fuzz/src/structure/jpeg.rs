//! JPEG: a part is a marker with its payload, or entropy-coded data up to the next marker, without its stuffed zeros.

use super::{Part, Structure};

/// JPEG files.
pub struct Jpeg;

/// Markers that stand alone.
fn is_alone(marker: u8) -> bool {
    matches!(marker, 0x01 | 0xD0..=0xD9)
}

impl Structure for Jpeg {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        if !file.starts_with(&[0xFF, 0xD8]) {
            return None;
        }
        let mut parts = Vec::new();
        let mut rest = file;
        while !rest.is_empty() {
            if let [0xFF, marker @ 1..=0xFE, after @ ..] = rest {
                if is_alone(*marker) {
                    parts.push(Part::new(&[*marker], &[]));
                    rest = after;
                    continue;
                }
                let length = after.first_chunk().map_or(0, |&bytes| usize::from(u16::from_be_bytes(bytes)));
                if let Some(payload) = after.get(2..length) {
                    parts.push(Part::new(&[*marker], payload));
                    rest = &after[length..];
                    continue;
                }
            }
            // At least a byte: what is no marker, and what a cut segment begins with.
            let next = rest.windows(2).skip(1).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF));
            let (data, after) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
            parts.push(Part { kind: Vec::new(), content: unstuffed(data) });
            rest = after;
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = Vec::new();
        for part in parts {
            let Some(&marker) = part.kind.first() else {
                for &byte in &part.content {
                    file.push(byte);
                    if byte == 0xFF {
                        file.push(0);
                    }
                }
                continue;
            };
            file.extend([0xFF, marker]);
            if !is_alone(marker) {
                let payload = &part.content[..part.content.len().min(65_533)];
                file.extend((payload.len() as u16 + 2).to_be_bytes());
                file.extend_from_slice(payload);
            }
        }
        file
    }
}

fn unstuffed(data: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(data.len());
    for &byte in data {
        if !(byte == 0 && plain.last() == Some(&0xFF)) {
            plain.push(byte);
        }
    }
    plain
}
