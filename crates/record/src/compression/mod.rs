//! Compressed shards.
//!
//! TensorFlow compresses a shard as one stream, which has to be inflated from its start to reach any record. Here there are three
//! [scopes](Scope). In that of a *block* the shard is one stream to every reader of its format, too, but between some of the
//! records it begins anew: what lies between two such points, a *compressed block*, inflates on its own. The blocks are listed
//! beside the shard ([`Blocks`]), so that a loader reads and inflates them in any order and on several threads. In the scope of
//! a *record* the shard is a plain one whose records are compressed each by itself. In that of a *stream* it is what TensorFlow
//! writes.
//!
//! What an algorithm can be told is in its name, which is what strategies and manifests have: `zlib-6-rle`, `zstd-19-record`. A
//! name that asks for what cannot be is refused, and says what can.

mod blocks;
mod compressor;
mod decoder;
mod deflate_reader;
mod dictionary;
mod encoder;
mod lz4_frame;
mod name;
mod sizes;
mod snappy_frame;
mod stream;
mod zstd;

pub use blocks::{BLOCKS_SUFFIX, Blocks, CompressedBlock};
pub use compressor::ShardCompressor;
pub use decoder::{inflate_block, inflate_record};
pub use dictionary::Dictionary;
pub use encoder::RecordCompressor;
pub use forebay_deflate::{Parameters as DeflateOptions, Strategy as DeflateStrategy};
pub use sizes::{SIZES_SUFFIX, Sizes};

pub(crate) use decoder::inflate_framed;
pub(crate) use deflate_reader::DeflateReader;
pub(crate) use lz4_frame::{Lz4Reader, MAGIC as LZ4_MAGIC, is_ours as is_lz4_like_ours};
pub(crate) use zstd::{MAGIC as ZSTD_MAGIC, ZstdReader};

/// How a shard is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardCompression {
    /// The algorithm, with all that it is told.
    pub algorithm: Algorithm,
    /// What is compressed together.
    pub scope: Scope,
}

/// What is compressed together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Neighboring records, of about half a MiB.
    #[default]
    Block,
    /// Each record by itself: the shard is a plain one to everybody, and any record can be read without its neighbors.
    Record,
    /// All records of a shard.
    Stream,
}

/// An algorithm, with all that it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// DEFLATE as RFC 1952 wraps it.
    Gzip(DeflateOptions),
    /// DEFLATE as RFC 1950 wraps it.
    Zlib(DeflateOptions),
    /// Zstandard, RFC 8878.
    Zstd(ZstdOptions),
    /// LZ4's frames.
    Lz4(Lz4Mode),
    /// Snappy: its framing format, or of a record its raw one.
    Snappy,
}

/// What Zstandard is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ZstdOptions {
    /// From −7, fast, to 22, small; there is no 0.
    pub level: i8,
    /// How matches are looked for, where it is not what the level says.
    pub strategy: Option<ZstdStrategy>,
    /// The logarithm to the base 2 of how far back a match may lie, from 10 to 27, where it is not what the level says.
    pub window_log: Option<u8>,
    /// Whether each frame has a checksum of its content, besides those that records have.
    pub checksum: bool,
    /// Whether matches are looked for over long distances, too.
    pub long: bool,
    /// Whether records are compressed with a [`Dictionary`] that was trained on some of them.
    pub dictionary: bool,
    /// How many threads the library starts to compress a stream, where it starts any. What comes out is the same with any number of them,
    /// but not the same as with none: the stream is cut into parts.
    pub workers: Option<u8>,
}

impl ZstdOptions {
    /// The levels.
    pub const LEVELS: std::ops::RangeInclusive<i8> = -7..=22;
    /// The window's sizes. Above 27 the format goes on, but its readers do not unless they are told to.
    pub const WINDOW_LOGS: std::ops::RangeInclusive<u8> = 10..=27;
    /// The numbers of workers.
    pub const WORKERS: std::ops::RangeInclusive<u8> = 1..=64;
}

/// As the library has them.
impl Default for ZstdOptions {
    fn default() -> Self {
        Self {
            level: 3,
            strategy: None,
            window_log: None,
            checksum: false,
            long: false,
            dictionary: false,
            workers: None,
        }
    }
}

/// How Zstandard looks for matches, from the fastest to the most thorough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the library's, and say all there is to say")]
pub enum ZstdStrategy {
    Fast,
    DoubleFast,
    Greedy,
    Lazy,
    Lazy2,
    BinaryTreeLazy2,
    BinaryTreeOptimal,
    BinaryTreeUltra,
    BinaryTreeUltra2,
}

/// Which of LZ4's two compressors, and what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lz4Mode {
    /// The fast one, faster still with an acceleration from 2 to 65,537.
    Fast {
        /// From 1.
        acceleration: u32,
    },
    /// The thorough one.
    HighCompression {
        /// From 2 to 12.
        level: u8,
    },
}

impl Lz4Mode {
    /// What the fast compressor can be told.
    pub const ACCELERATIONS: std::ops::RangeInclusive<u32> = 1..=65_537;
    /// The levels of the thorough one.
    pub const LEVELS: std::ops::RangeInclusive<u8> = 2..=12;
}

/// How compressed bytes are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A piece of a DEFLATE stream from one full flush to the next: no header, no checksum, no end.
    Deflate,
    Gzip,
    Zlib,
    Zstd,
    Lz4,
    SnappyFramed,
    SnappyRaw,
}

impl ShardCompression {
    /// Whether its records are compressed with a [`Dictionary`].
    pub const fn has_dictionary(&self) -> bool {
        matches!(self.algorithm, Algorithm::Zstd(ZstdOptions { dictionary: true, .. }))
    }

    /// How what is compressed together is to be read.
    fn framing(self) -> Framing {
        match (self.algorithm, self.scope) {
            // The header of the stream is before the first block, and its checksum after the last.
            (Algorithm::Gzip(_) | Algorithm::Zlib(_), Scope::Block | Scope::Stream) => Framing::Deflate,
            (Algorithm::Gzip(_), Scope::Record) => Framing::Gzip,
            (Algorithm::Zlib(_), Scope::Record) => Framing::Zlib,
            (Algorithm::Zstd(_), _) => Framing::Zstd,
            (Algorithm::Lz4(_), _) => Framing::Lz4,
            (Algorithm::Snappy, Scope::Block | Scope::Stream) => Framing::SnappyFramed,
            (Algorithm::Snappy, Scope::Record) => Framing::SnappyRaw,
        }
    }
}

impl Algorithm {
    /// Its family: the algorithms of one look for repetitions in the same way, about as far back.
    pub fn family(self) -> &'static str {
        match self {
            Self::Gzip(_) | Self::Zlib(_) => "deflate",
            Self::Zstd(_) => "zstd",
            Self::Lz4(_) | Self::Snappy => "lz4",
        }
    }

    /// How many bytes one compressed byte can give at most, so that a file cannot ask for more memory than this times its own
    /// size.
    pub fn inflation_max(self) -> u64 {
        match self {
            // RFC 1951: 258 bytes from two bits.
            Self::Gzip(_) | Self::Zlib(_) => 1032,
            // RFC 8878: a block is a header of three bytes, and of one byte that is repeated at most 128 KiB.
            Self::Zstd(_) => (128 << 10) / 4,
            // A byte of 255 lengthens a match by as much.
            Self::Lz4(_) => 255,
            // A copy of up to 64 bytes takes three.
            Self::Snappy => 22,
        }
    }
}
