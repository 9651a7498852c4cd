//! DEFLATE (RFC 1951) as zlib makes it, with all that zlib can be told, behind a safe stream.
//!
//! The studies of compressed records compare zlib's five strategies. The libraries that are written in Rust, and zlib-ng, take
//! all five and treat some of them alike; zlib itself does not, and its safe wrappers do not pass the strategy on. So zlib is
//! called here, in a room of its own, and whoever compresses stays without `unsafe`.
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
//! For inflating: there are faster libraries, which are safe. For making small files fast: zlib-ng's algorithms take about half
//! the time.

mod stream;

pub use stream::{Deflate, Progress};

/// What zlib can be told about a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// From 1, fast, to 9, small.
    pub level: u8,
    /// What matches are looked for.
    pub strategy: Strategy,
    /// The logarithm to the base 2 of how far back a match may lie, from 9 to 15.
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
    /// Runs of one byte. Nearly as fast as no match, and better for pictures as PNG filters them.
    Rle,
    /// Any match, coded by the table that the format fixes.
    Fixed,
}

/// What stands around the compressed bytes.
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
    /// All, up to a whole byte, after which nothing refers to what came before it.
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
