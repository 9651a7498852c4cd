//! Dictionaries of Zstandard: what small records have in common, said once.
//!
//! A record of a few hundred bytes has next to nothing before it that a match could point to. A dictionary is what the compressor takes to
//! have come before each of them. It is trained on some records, kept beside the shards, and needed to read any record: `zstd -D`.

use std::fmt;

use bytes::Bytes;
use zstd_safe::{DDict, train_from_buffer};

use crate::error::{Error, ErrorLocation, FormatFault, Result, UsageFault};

/// How large a trained dictionary is at most: as `zstd --train` has it.
const DICTIONARY_BYTES: usize = 112_640;

/// RFC 8878, section 5.
const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// A dictionary, ready to be used by any number of threads.
pub struct Dictionary {
    bytes: Bytes,
    prepared: DDict<'static>,
}

impl Dictionary {
    /// A larger one is never written.
    pub const BYTES_MAX: u64 = DICTIONARY_BYTES as u64;

    /// Records of so many bytes are enough to train with: more of them take longer and say little more.
    pub const TRAINING_BYTES: usize = 8 << 20;

    /// Trains one with `records`. The same records in the same order always give the same dictionary.
    pub fn train<'r>(records: impl IntoIterator<Item = &'r [u8]>) -> Result<Self> {
        let (mut samples, mut sizes) = (Vec::new(), Vec::new());
        for record in records {
            samples.extend_from_slice(record);
            sizes.push(record.len());
        }
        let mut trained = Vec::with_capacity(DICTIONARY_BYTES);
        train_from_buffer(&mut trained, &samples, &sizes).map_err(|code| {
            Error::usage(UsageFault::Dictionary {
                records: sizes.len() as u64,
                bytes: samples.len() as u64,
                problem: zstd_safe::get_error_name(code).into(),
            })
        })?;
        Self::parse(trained.into(), "the trained dictionary")
    }

    /// The dictionary in the file `name`, whose content is `bytes`.
    pub fn parse(bytes: Bytes, name: &str) -> Result<Self> {
        let fault = |fault| Error::Format {
            location: ErrorLocation { shard: Some(name.into()), ..ErrorLocation::default() },
            fault,
        };
        if !bytes.starts_with(&MAGIC) || bytes.len() > DICTIONARY_BYTES {
            return Err(fault(FormatFault::Dictionary));
        }
        let prepared = DDict::try_create(&bytes).ok_or_else(|| fault(FormatFault::Dictionary))?;
        Ok(Self { bytes, prepared })
    }

    /// The file's content.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn prepared(&self) -> &DDict<'static> {
        &self.prepared
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Dictionary").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}
