//! TFRecord: a part is a record.

use forebay_record::masked_crc32c;

use super::{Part, Structure};

/// Shards that are not compressed.
pub struct TfRecord;

impl Structure for TfRecord {
    fn split(file: &[u8]) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut rest = file;
        while let Some((head, after)) = rest.split_first_chunk::<12>() {
            let length = u64::from_le_bytes(std::array::from_fn(|index| head[index]));
            let content = usize::try_from(length).ok().and_then(|length| after.get(..length))?;
            parts.push(Part::new(&[], content));
            rest = after.get(content.len() + 4..).unwrap_or_default();
        }
        Some(parts)
    }

    fn join(parts: &[Part]) -> Vec<u8> {
        let mut file = Vec::new();
        for Part { content, .. } in parts {
            let length = (content.len() as u64).to_le_bytes();
            file.extend(length);
            file.extend(masked_crc32c(&length).to_le_bytes());
            file.extend_from_slice(content);
            file.extend(masked_crc32c(content).to_le_bytes());
        }
        file
    }
}
