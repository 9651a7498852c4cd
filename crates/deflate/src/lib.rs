//! DEFLATE (RFC 1951) by zlib, with all of its parameters, behind a safe stream.
//!
//! The study of record compression compares zlib's five strategies. The libraries written in Rust, and zlib-ng, accept
//! all five but do not distinguish some of them. zlib itself does, but its safe wrappers do not expose the strategy. So zlib is
//! called here, in a crate of its own, and its users need no `unsafe`.
//!
//! ```
//! use forebay_deflate::{Deflate, Flush, Parameters, Strategy, Wrapper};
//!
//! let parameters = Parameters { strategy: Strategy::Rle, ..Parameters::default() };
//! let mut stream = Deflate::new(parameters, Wrapper::Zlib)?;
//! let mut output = [0; 64];
//! let progress = stream.run(&[7; 1000], &mut output, Flush::Finish);
//! assert!(progress.ended && progress.read == 1000 && progress.written < 20);
//! # Ok::<(), forebay_deflate::Error>(())
//! ```
//!
//! # When not to use it
//!
//! For decompression: there are faster libraries, which are safe. For fast compression of small files: zlib-ng's algorithms take
//! about half the time.

mod stream;

pub use stream::{Deflate, Progress};

/// zlib's parameters of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// From 1, fast, to 9, small.
    pub level: u8,
    /// What matches are looked for.
    pub strategy: Strategy,
    /// The base-2 logarithm of the maximum match distance, from 9 to 15.
    pub window_bits: u8,
    /// How much memory the state takes, from 1 to 9.
    pub memory_level: u8,
}

impl Parameters {
    /// The levels.
    pub const LEVELS: std::ops::RangeInclusive<u8> = 1..=9;
    /// The window's sizes. (zlib makes 9 of 8, and not in every wrapper.)
    pub const WINDOW_BITS: std::ops::RangeInclusive<u8> = 9..=15;
    /// The memory levels.
    pub const MEMORY_LEVELS: std::ops::RangeInclusive<u8> = 1..=9;
}

/// As zlib has them.
impl Default for Parameters {
    fn default() -> Self {
        Self { level: 6, strategy: Strategy::Default, window_bits: 15, memory_level: 8 }
    }
}

/// What matches zlib looks for, and how it codes what it finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Any match.
    #[default]
    Default,
    /// No short ones: for small values that are somewhat random, such as the residues of a predictor.
    Filtered,
    /// None: bytes are coded by how often they occur.
    HuffmanOnly,
    /// Only runs of one byte. Nearly as fast as no matching, and better for filtered PNG images.
    Rle,
    /// Any match, coded by the table that the format fixes.
    Fixed,
}

/// The container around the compressed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrapper {
    /// Nothing.
    Raw,
    /// A header and a checksum, as RFC 1950 has them.
    Zlib,
}

/// How much of what was given has to come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flush {
    /// Whatever is ready.
    None,
    /// Everything, up to a byte boundary, after which nothing refers to earlier data.
    Full,
    /// All, and the end.
    Finish,
}

/// Why there is no stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A parameter is out of its range.
    #[error("zlib does not take these parameters")]
    Parameters,
    /// There is not enough memory for it.
    #[error("not enough memory for a DEFLATE stream")]
    Memory,
}
