//! L3 (docs/formats/l3.md): the parts are the header without its checksum, the model, and each strip's payload.

use super::{Part, Structure};

/// L3 files, not those of the released layout, which has no checksums.
pub struct L3;

const MAGIC: &[u8] = &[0x8A, b'L', b'3', b'\n'];
const HEADER_BYTES: usize = 32;
const MODEL_BYTES_AT: usize = 24;
const CHECKSUM_AT: usize = 28;
const TAIL_BYTES: usize = 64;
const HEADER: &[u8] = b"h";
const MODEL: &[u8] = b"m";
const STRIP: &[u8] = b"s";

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(at..)?.first_chunk().map(|&word| u32::from_le_bytes(word) as usize)
}

impl Structure for L3 {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let header = file.get(..MODEL_BYTES_AT).filter(|header| header.starts_with(MAGIC))?;
        let strips = word(file, 16)?.div_ceil(word(file, 20)?.max(1));
        let model = HEADER_BYTES.checked_add(strips.checked_mul(8)?)?;
        let mut at = model.checked_add(word(file, MODEL_BYTES_AT)?)?;
        let mut parts = vec![Part::new(HEADER, header), Part::new(MODEL, file.get(model..at)?)];
        for strip in 0..strips {
            let end = at.checked_add(word(file, HEADER_BYTES + 8 * strip)?)?;
            parts.push(Part::new(STRIP, file.get(at..end)?));
            at = end;
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let named = |kind| parts.iter().filter(move |part| part.kind == kind).map(|part| &*part.content);
        let mut file: Vec<u8> = named(HEADER).flatten().copied().take(MODEL_BYTES_AT).collect();
        file.resize(MODEL_BYTES_AT, 0);
        let model = named(MODEL).next().unwrap_or_default();
        file.extend((model.len() as u32).to_le_bytes());
        file.extend([0; 4]);
        for strip in named(STRIP) {
            file.extend((strip.len() as u32).to_le_bytes());
            file.extend(crc32c::crc32c(strip).to_le_bytes());
        }
        file.extend_from_slice(model);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&file[..CHECKSUM_AT]), &file[HEADER_BYTES..]);
        file[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        named(STRIP).for_each(|strip| file.extend_from_slice(strip));
        file.extend([0; TAIL_BYTES]);
        file
    }
}
