//! The names of tensor encodings.
//!
//! ```text
//! name        = [ loss "-" ] scheme | "bfloat16" | rounding                         (rounding alone: with pco-8)
//! loss        = "bfloat16" | rounding
//! rounding    = "round-absolute-" bound | "round-relative-" bound                 a decimal number: 0.001
//! scheme      = { filter "-" } compressor | "pco" [ "-" 0 … 12 ] | "bitpack" | "sparse" | "rle"      (8)
//! filter      = "delta" | "shuffle"                                               in this order, each at most once
//! compressor  = "zstd" [ "-" 1 … 22 | "-fast-" 1 … 7 ]                            (3)
//!             | "lz4" [ "-fast-" 1 … 65537 | "-hc-" 2 … 12 ]                      (fast-1)
//! ```
//!
//! Without a loss, a compressor needs a filter: without one it is a compression of records.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Compressor, Loss, Scheme, TensorEncoding};
use crate::error::{Error, Result};

/// What there is, for messages.
pub const TENSOR_ENCODING_NAMES: &str = "shuffle-zstd-3, delta-zstd-3, delta-shuffle-lz4, pco-8, bitpack, sparse, rle, bfloat16, \
                                         round-absolute-0.001-pco-8, round-relative-0.01-shuffle-zstd-3";

/// The words that a name begins with.
const FIRST_WORDS: [&str; 8] = ["delta", "shuffle", "pco", "bitpack", "sparse", "rle", "bfloat16", "round"];

const PCO_LEVELS: RangeInclusive<u32> = 0..=12;
const PCO_LEVEL: u8 = 8;
const ZSTD_LEVELS: RangeInclusive<u32> = 1..=22;
const ZSTD_FAST_LEVELS: RangeInclusive<u32> = 1..=7;
const ZSTD_LEVEL: i8 = 3;
const LZ4_ACCELERATIONS: RangeInclusive<u32> = 1..=65_537;
const LZ4_LEVELS: RangeInclusive<u32> = 2..=12;

impl TensorEncoding {
    /// Whether `name` is meant to be one of an encoding of tensors, right or wrong: by its first word.
    pub fn is_meant_by(name: &str) -> bool {
        FIRST_WORDS.contains(&name.split('-').next().unwrap_or_default())
    }
}

/// The encoding of this name.
impl FromStr for TensorEncoding {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut words = Words { name, rest: name.split('-').collect() };
        let loss = loss(&mut words)?;
        let scheme = match loss {
            Some(Loss::Bfloat16) if words.rest.is_empty() => Scheme::Plain,
            Some(_) if words.rest.is_empty() => Scheme::Pco { level: PCO_LEVEL },
            _ => scheme(&mut words)?,
        };
        if let Some(word) = words.rest.first() {
            let expected = format!("nothing more; `{word}` says nothing to it");
            return Err(words.wrong("the tensor encoding has too many words", expected));
        }
        match (loss, scheme) {
            (Some(_), Scheme::BitPack) => {
                Err(words.wrong("bit packing holds integers, which lose nothing", "`bitpack` alone"))
            }
            (None, Scheme::Compressed { delta: false, shuffle: false, .. }) => Err(words.wrong(
                "a compressor alone is a compression of records, not an encoding of tensors",
                format!("`shuffle-{name}`, `delta-{name}`"),
            )),
            (loss, scheme) => Ok(Self { loss, scheme }),
        }
    }
}

/// The words of a name that were not yet understood.
struct Words<'n> {
    name: &'n str,
    rest: Vec<&'n str>,
}

impl<'n> Words<'n> {
    fn wrong(&self, problem: &'static str, expected: impl Into<String>) -> Error {
        Error::usage(problem, expected.into(), self.name)
    }

    /// Whether the next word is `word`, which is then understood.
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest.first() == Some(&word);
        if found {
            self.rest.remove(0);
        }
        found
    }

    /// The number that the next word must be, written as it will be written again: `03` and `+3` are none.
    fn number(&mut self, what: &'static str, range: &RangeInclusive<u32>) -> Result<u32> {
        let number = self.rest.first().and_then(|word| {
            word.parse().ok().filter(|number: &u32| range.contains(number) && number.to_string() == *word)
        });
        let number =
            number.ok_or_else(|| self.wrong(what, format!("a number from {} to {}", range.start(), range.end())))?;
        self.rest.remove(0);
        Ok(number)
    }

    /// A decimal number above 0, written as it will be written again.
    fn bound(&mut self) -> Result<f64> {
        let bound = self.rest.first().and_then(|word: &&'n str| {
            let bound = word.parse::<f64>().ok()?;
            (bound > 0.0 && bound.is_finite() && bound.to_string() == *word).then_some(bound)
        });
        let bound = bound.ok_or_else(|| {
            self.wrong("the error bound is not a number", "a decimal number above 0, without exponent, as `0.001`")
        })?;
        self.rest.remove(0);
        Ok(bound)
    }
}

fn loss(words: &mut Words<'_>) -> Result<Option<Loss>> {
    if words.take("bfloat16") {
        return Ok(Some(Loss::Bfloat16));
    }
    if !words.take("round") {
        return Ok(None);
    }
    if words.take("absolute") {
        return Ok(Some(Loss::Absolute(words.bound()?)));
    }
    if !words.take("relative") {
        return Err(words.wrong("it does not say how to round", "`round-absolute-0.001` or `round-relative-0.01`"));
    }
    let bound = words.bound()?;
    if bound >= 1.0 {
        return Err(words.wrong("a relative error of 1 leaves nothing of a number", "a bound below 1"));
    }
    Ok(Some(Loss::Relative(bound)))
}

fn scheme(words: &mut Words<'_>) -> Result<Scheme> {
    if words.take("pco") {
        let level =
            if words.rest.is_empty() { u32::from(PCO_LEVEL) } else { words.number("pco's level", &PCO_LEVELS)? };
        return Ok(Scheme::Pco { level: level as u8 });
    }
    let alone = [("bitpack", Scheme::BitPack), ("sparse", Scheme::Sparse), ("rle", Scheme::RunLength)];
    if let Some(&(_, scheme)) = alone.iter().find(|(name, _)| words.take(name)) {
        return Ok(scheme);
    }
    let (delta, shuffle) = (words.take("delta"), words.take("shuffle"));
    let compressor = if words.take("zstd") {
        zstd(words)?
    } else if words.take("lz4") {
        lz4(words)?
    } else {
        return Err(words.wrong("there is no such tensor encoding", TENSOR_ENCODING_NAMES));
    };
    Ok(Scheme::Compressed { delta, shuffle, compressor })
}

fn zstd(words: &mut Words<'_>) -> Result<Compressor> {
    if words.rest.is_empty() {
        return Ok(Compressor::Zstd { level: ZSTD_LEVEL });
    }
    if words.take("fast") {
        // As the program `zstd` has it: `--fast=7` is level −7.
        let level = words.number("zstd's fast level", &ZSTD_FAST_LEVELS)?;
        return Ok(Compressor::Zstd { level: -(level as i8) });
    }
    Ok(Compressor::Zstd { level: words.number("zstd's level", &ZSTD_LEVELS)? as i8 })
}

fn lz4(words: &mut Words<'_>) -> Result<Compressor> {
    if words.take("hc") {
        return Ok(Compressor::Lz4HighCompression { level: words.number("the level of `hc`", &LZ4_LEVELS)? as u8 });
    }
    if words.take("fast") {
        return Ok(Compressor::Lz4 { acceleration: words.number("lz4's acceleration", &LZ4_ACCELERATIONS)? });
    }
    Ok(Compressor::Lz4 { acceleration: 1 })
}

/// The name that [`FromStr`] takes.
impl fmt::Display for TensorEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.loss {
            None => {}
            Some(Loss::Bfloat16) => f.write_str("bfloat16")?,
            Some(Loss::Absolute(bound)) => write!(f, "round-absolute-{bound}")?,
            Some(Loss::Relative(bound)) => write!(f, "round-relative-{bound}")?,
        }
        if self.scheme != Scheme::Plain && self.loss.is_some() {
            f.write_str("-")?;
        }
        match self.scheme {
            Scheme::Plain => Ok(()),
            Scheme::Pco { level } => write!(f, "pco-{level}"),
            Scheme::BitPack => f.write_str("bitpack"),
            Scheme::Sparse => f.write_str("sparse"),
            Scheme::RunLength => f.write_str("rle"),
            Scheme::Compressed { delta, shuffle, compressor } => {
                f.write_str(if delta { "delta-" } else { "" })?;
                f.write_str(if shuffle { "shuffle-" } else { "" })?;
                match compressor {
                    Compressor::Zstd { level: level @ ..0 } => write!(f, "zstd-fast-{}", level.unsigned_abs()),
                    Compressor::Zstd { level } => write!(f, "zstd-{level}"),
                    Compressor::Lz4 { acceleration: 1 } => f.write_str("lz4"),
                    Compressor::Lz4 { acceleration } => write!(f, "lz4-fast-{acceleration}"),
                    Compressor::Lz4HighCompression { level } => write!(f, "lz4-hc-{level}"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let names = "shuffle-zstd-3 delta-zstd-fast-7 delta-shuffle-lz4 shuffle-lz4-hc-9 delta-lz4-fast-2 pco-0 pco-12 bitpack sparse rle \
                     bfloat16 bfloat16-zstd-3 bfloat16-shuffle-zstd-19 bfloat16-sparse round-absolute-0.001-pco-8 \
                     round-absolute-250-lz4 round-relative-0.01-shuffle-zstd-3 round-relative-0.000000001-rle";
        for name in names.split_whitespace() {
            assert!(TensorEncoding::is_meant_by(name));
            assert_eq!(name.parse::<TensorEncoding>().expect(name).to_string(), name);
        }
        for (short, name) in [
            ("pco", "pco-8"),
            ("shuffle-zstd", "shuffle-zstd-3"),
            ("round-absolute-0.5", "round-absolute-0.5-pco-8"),
            ("round-relative-0.5-zstd", "round-relative-0.5-zstd-3"),
        ] {
            assert_eq!(short.parse::<TensorEncoding>().expect(short).to_string(), name);
        }
    }

    #[test]
    fn what_cannot_be_or_would_be_ignored_is_refused() {
        for (name, part) in [
            ("", "no such tensor encoding"),
            ("shuffle", "no such tensor encoding"),
            ("shuffle-delta-zstd-3", "no such tensor encoding"),
            ("shuffle-gzip", "no such tensor encoding"),
            ("zstd-3", "compression of records"),
            ("lz4", "compression of records"),
            ("pco-13", "a number from 0 to 12"),
            ("pco-08", "a number from 0 to 12"),
            ("shuffle-zstd-23", "a number from 1 to 22"),
            ("shuffle-zstd-fast", "a number from 1 to 7"),
            ("shuffle-lz4-hc-1", "a number from 2 to 12"),
            ("bitpack-3", "too many words"),
            ("sparse-zstd-3", "too many words"),
            ("bfloat16-bitpack", "integers"),
            ("round", "how to round"),
            ("round-absolute", "not a number"),
            ("round-absolute-0", "not a number"),
            ("round-absolute-1e", "not a number"),
            ("round-absolute-1.0", "not a number"),
            ("round-absolute-NaN", "not a number"),
            ("round-absolute-inf", "not a number"),
            ("round-relative-1", "below 1"),
        ] {
            let error = name.parse::<TensorEncoding>().expect_err(name).to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
