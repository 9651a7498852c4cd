//! Tar: a part is a member; its header is the kind.

use super::{Part, Structure};

/// Tars.
pub struct Tar;

const BLOCK_BYTES: usize = 512;
/// Where size and checksum are in a header (POSIX.1-1988, ustar).
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: std::ops::Range<usize> = 148..156;

impl Structure for Tar {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut rest = file;
        while let Some((head, after)) = rest.split_at_checked(BLOCK_BYTES) {
            let digits: String = head[SIZE].iter().map(|&byte| char::from(byte)).collect();
            let size = usize::from_str_radix(digits.trim_matches(['\0', ' ']), 8).unwrap_or(0);
            parts.push(Part::new(head, &after[..size.min(after.len())]));
            rest = after.get(size.next_multiple_of(BLOCK_BYTES)..).unwrap_or_default();
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = Vec::new();
        for Part { kind, content } in parts {
            let mut head = kind.clone();
            head.resize(BLOCK_BYTES, 0);
            // The end of a tar is blocks of zeros.
            if head.iter().any(|&byte| byte != 0) {
                if !content.is_empty() {
                    head[SIZE].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
                }
                head[CHECKSUM].fill(b' ');
                let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
                head[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            }
            file.extend(head);
            file.extend_from_slice(content);
            file.resize(file.len().next_multiple_of(BLOCK_BYTES), 0);
        }
        file
    }
}
