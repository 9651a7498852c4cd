//! Packed shards: TFRecord shards whose bytes are compressed, and which can still be read from the middle.
//!
//! TensorFlow compresses a shard as one stream, which has to be inflated from its start to reach any record. Here the stream
//! is the same to every reader of GZIP or ZLIB, but is flushed completely between some of the records: what lies between two
//! such places, a *packed block*, inflates on its own. The blocks are listed beside the shard ([`Blocks`]), so that a loader
//! reads and inflates them in any order and on several threads.

mod blocks;
mod inflate;
mod packer;

use std::fmt;
use std::str::FromStr;

pub use blocks::{BLOCKS_SUFFIX, Blocks, PackedBlock};
pub use inflate::inflate_block;
pub use packer::Packer;

use crate::error::UsageFault;

/// How a shard is packed: the stream's format, and how much work is put into making it small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packing {
    /// The format.
    pub format: PackFormat,
    /// From 1, fast, to 9, small.
    pub level: u8,
}

/// The format of a packed shard's stream. Both are DEFLATE and differ in header and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PackFormat {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// The level that zlib and TensorFlow take where none is asked for.
const LEVEL_DEFAULT: u8 = 6;

impl PackFormat {
    /// Every format, with its name.
    const NAMES: [(Self, &str); 2] = [(Self::Gzip, "gzip"), (Self::Zlib, "zlib")];

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
        }
    }
}

/// `gzip`, `zlib`, and with another level than the usual `gzip-1`.
impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.format.name())?;
        if self.level == LEVEL_DEFAULT { Ok(()) } else { write!(f, "-{}", self.level) }
    }
}

impl FromStr for Packing {
    type Err = UsageFault;

    fn from_str(name: &str) -> Result<Self, UsageFault> {
        let unknown = || UsageFault::UnknownPacking { found: name.into() };
        let (format, level) = name.split_once('-').map_or((name, None), |(format, level)| (format, Some(level)));
        let (format, _) = *PackFormat::NAMES.iter().find(|(_, known)| *known == format).ok_or_else(unknown)?;
        let level = match level.map(str::as_bytes) {
            None => LEVEL_DEFAULT,
            Some(&[digit @ b'1'..=b'9']) => digit - b'0',
            Some(_) => return Err(unknown()),
        };
        Ok(Self { format, level })
    }
}
