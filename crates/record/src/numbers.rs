//! Files of one number for each record of a shard, in order: four bytes each, little endian.

use crate::error::{Error, ErrorLocation, FormatFault, Result};

/// The numbers in `bytes`; `name` is the file's own name, for errors.
pub(crate) fn parse(bytes: &[u8], name: &str) -> Result<Vec<u32>> {
    let (entries, rest) = bytes.as_chunks();
    if !rest.is_empty() {
        return Err(Error::Format {
            location: ErrorLocation { shard: Some(name.into()), ..ErrorLocation::default() },
            fault: FormatFault::NumbersCut { found: bytes.len() as u64 },
        });
    }
    Ok(entries.iter().map(|entry| u32::from_le_bytes(*entry)).collect())
}

/// The content of such a file.
pub(crate) fn to_bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
