//! RIFF, which WebP is kept in: a part is a chunk.

use super::{Part, Structure};

/// WebP files.
pub struct Riff;

impl Structure for Riff {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let (head, mut rest) = file.split_first_chunk::<12>()?;
        if &head[..4] != b"RIFF" || &head[8..] != b"WEBP" {
            return None;
        }
        let mut parts = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
            parts.push(Part::new(&head[..4], &after[..length.min(after.len())]));
            rest = after.get(length.saturating_add(length % 2)..).unwrap_or_default();
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = b"RIFF\0\0\0\0WEBP".to_vec();
        for part in parts {
            file.extend_from_slice(&part.kind);
            file.extend((part.content.len() as u32).to_le_bytes());
            file.extend_from_slice(&part.content);
            file.extend(vec![0; part.content.len() % 2]);
        }
        let length = file.len() as u32 - 8;
        file[4..8].copy_from_slice(&length.to_le_bytes());
        file
    }
}
