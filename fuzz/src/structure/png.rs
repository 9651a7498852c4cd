//! PNG: a part is a chunk. Either the compressed pixels are mutated as they are, or the rows that they inflate to.

use std::io::{Read, Write};

use flate2::{Compression, Crc, read::ZlibDecoder, write::ZlibEncoder};

use super::{Part, Structure};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Rows are inflated up to here.
const ROWS_BYTES_MAX: u64 = 1 << 18;

/// PNG files by their chunks.
pub struct Png;

/// PNG files by their chunks, and the pixels inflated.
pub struct PngRows;

impl Structure for Png {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let mut rest = file.strip_prefix(SIGNATURE)?;
        let mut parts = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let content = &after[..length.min(after.len())];
            parts.push(Part::new(&head[4..], content));
            rest = after.get(length + 4..).unwrap_or_default();
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = SIGNATURE.to_vec();
        for part in parts {
            file.extend((part.content.len() as u32).to_be_bytes());
            file.extend_from_slice(&part.kind);
            file.extend_from_slice(&part.content);
            let mut checksum = Crc::new();
            checksum.update(&part.kind);
            checksum.update(&part.content);
            file.extend(checksum.sum().to_be_bytes());
        }
        file
    }
}

/// A chunk of this name holds the rows.
const ROWS: &[u8] = b"rows";

impl Structure for PngRows {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let chunks = Png::split(file)?;
        let is_pixels = |part: &Part| part.kind == b"IDAT";
        let pixels: Vec<u8> = chunks.iter().filter(|part| is_pixels(part)).flat_map(|part| part.content.clone()).collect();
        let mut rows = Vec::new();
        // Of a stream that is cut or damaged, as far as it goes.
        let _ = ZlibDecoder::new(&pixels[..]).take(ROWS_BYTES_MAX).read_to_end(&mut rows);
        let first = chunks.iter().position(is_pixels)?;
        let mut parts: Vec<Part> = chunks[..first].to_vec();
        parts.push(Part::new(ROWS, &rows));
        parts.extend(chunks[first..].iter().filter(|part| !is_pixels(part)).cloned());
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let packed = parts.iter().map(|part| {
            if part.kind != ROWS {
                return part.clone();
            }
            let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
            let pixels = stream.write_all(&part.content).and_then(|()| stream.finish());
            Part { kind: b"IDAT".to_vec(), content: pixels.expect("memory can be written to") }
        });
        Png::join(&packed.collect::<Vec<_>>())
    }
}
