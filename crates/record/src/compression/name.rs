//! The names of compressions.
//!
//! ```text
//! name    = algorithm [ "-" level ] { "-" option } [ "-" scope ]
//! scope   = "block" | "record" | "stream"                                          (block, unless said)
//!
//! gzip, zlib   level   1 … 9                                                       (6)
//!              option  "filtered" | "huffman-only" | "rle" | "fixed"
//!                      "window-" 9 … 15   "memory-" 1 … 9                          (15, 8)
//! zstd         level   1 … 22 | "fast-" 1 … 7                                      (3)
//!              option  "fast" | "dfast" | "greedy" | "lazy" | "lazy2" | "btlazy2" | "btopt" | "btultra" | "btultra2"
//!                      "window-" 10 … 27   "long"   "checksum"
//!                      "dictionary"   (of records)   "workers-" 1 … 64   (of streams)
//! lz4          level   "fast-" 1 … 65537 | "hc-" 2 … 12                            (fast-1)
//! snappy       neither
//! ```
//!
//! Options may come in any order. They are written in the order above, what is as usual left out, but for a level that anything
//! follows and for that of `zstd`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Algorithm, DeflateOptions, DeflateStrategy, Lz4Mode, Scope, ShardCompression, ZstdOptions, ZstdStrategy};
use crate::error::UsageFault;

/// Every algorithm's name.
const ALGORITHMS: [&str; 5] = ["gzip", "zlib", "zstd", "lz4", "snappy"];

const SCOPES: [(&str, Scope); 3] = [("block", Scope::Block), ("record", Scope::Record), ("stream", Scope::Stream)];

/// zlib's strategies but for the usual one.
const DEFLATE_STRATEGIES: [(&str, DeflateStrategy); 4] = [
    ("filtered", DeflateStrategy::Filtered),
    ("huffman-only", DeflateStrategy::HuffmanOnly),
    ("rle", DeflateStrategy::Rle),
    ("fixed", DeflateStrategy::Fixed),
];

const ZSTD_STRATEGIES: [(&str, ZstdStrategy); 9] = [
    ("fast", ZstdStrategy::Fast),
    ("dfast", ZstdStrategy::DoubleFast),
    ("greedy", ZstdStrategy::Greedy),
    ("lazy", ZstdStrategy::Lazy),
    ("lazy2", ZstdStrategy::Lazy2),
    ("btlazy2", ZstdStrategy::BinaryTreeLazy2),
    ("btopt", ZstdStrategy::BinaryTreeOptimal),
    ("btultra", ZstdStrategy::BinaryTreeUltra),
    ("btultra2", ZstdStrategy::BinaryTreeUltra2),
];

/// `filtered` changes how lazy matching goes about, which the levels below this do not do.
const FILTERED_LEVEL_MIN: u8 = 4;

/// The smallest window that a whole dictionary fits into.
const DICTIONARY_WINDOW_LOG_MIN: u8 = 17;

impl ShardCompression {
    /// Whether `name` is meant to be one of a compression, right or wrong: it begins with an algorithm.
    pub fn is_meant_by(name: &str) -> bool {
        ALGORITHMS.contains(&name.split('-').next().unwrap_or_default())
    }
}

impl FromStr for ShardCompression {
    type Err = UsageFault;

    fn from_str(name: &str) -> Result<Self, UsageFault> {
        let mut words = Words { name, rest: name.split('-').collect() };
        let algorithm = words.next();
        let scope = words.scope();
        let algorithm = match algorithm {
            "gzip" => {
                let options = deflate(&mut words)?;
                check_gzip_window(&words, options)?;
                Algorithm::Gzip(options)
            }
            "zlib" => Algorithm::Zlib(deflate(&mut words)?),
            "zstd" => Algorithm::Zstd(zstd(&mut words, scope)?),
            "lz4" => Algorithm::Lz4(lz4(&mut words)?),
            "snappy" => Algorithm::Snappy,
            _ => return Err(UsageFault::UnknownCompression { found: name.into() }),
        };
        match words.rest.first() {
            None => Ok(Self { algorithm, scope }),
            Some(word) => Err(words.wrong(format!("`{word}` says nothing to it; {}", allowed(algorithm)))),
        }
    }
}

/// What an algorithm can be told, in words.
fn allowed(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Gzip(_) | Algorithm::Zlib(_) => {
            "it takes a level from 1 to 9, then one of `filtered`, `huffman-only`, `rle` and `fixed`, `window-9` to `window-15`, \
             `memory-1` to `memory-9`, and last `block`, `record` or `stream`"
        }
        Algorithm::Zstd(_) => {
            "it takes a level from 1 to 22 or `fast-1` to `fast-7`, then one of `fast`, `dfast`, `greedy`, `lazy`, `lazy2`, `btlazy2`, \
             `btopt`, `btultra` and `btultra2`, `window-10` to `window-27`, `long`, `checksum`, `dictionary` (with `record`), \
             `workers-1` to `workers-64` (with `stream`), and last `block`, `record` or `stream`"
        }
        Algorithm::Lz4(_) => {
            "it takes `fast-1` to `fast-65537` or `hc-2` to `hc-12`, and last `block`, `record` or `stream`"
        }
        Algorithm::Snappy => "it takes nothing but `block`, `record` or `stream`",
    }
}

/// The words of a name that were not yet understood.
struct Words<'n> {
    name: &'n str,
    rest: Vec<&'n str>,
}

impl<'n> Words<'n> {
    fn wrong(&self, problem: String) -> UsageFault {
        UsageFault::CompressionParameter { found: self.name.into(), problem: problem.into() }
    }

    fn next(&mut self) -> &'n str {
        if self.rest.is_empty() { "" } else { self.rest.remove(0) }
    }

    /// The scope, which is the last word.
    fn scope(&mut self) -> Scope {
        let scope = self.rest.last().and_then(|last| SCOPES.iter().find(|(name, _)| name == last));
        scope.map_or_else(Scope::default, |&(_, scope)| {
            self.rest.pop();
            scope
        })
    }

    /// Whether the next words are `words`, which are then understood.
    fn take(&mut self, words: &str) -> bool {
        let count = words.split('-').count();
        let found = self.rest.len() >= count && words.split('-').eq(self.rest[..count].iter().copied());
        if found {
            self.rest.drain(..count);
        }
        found
    }

    /// The number that the next word is, if it is one.
    fn number(&mut self, what: &str, range: &RangeInclusive<u32>) -> Result<Option<u32>, UsageFault> {
        let Some(word) = self.rest.first().filter(|word| word.starts_with(|first: char| first.is_ascii_digit())) else {
            return Ok(None);
        };
        // Written as it will be written again: `03` and `+3` are no numbers here.
        match word.parse::<u32>().ok().filter(|number| range.contains(number) && number.to_string() == **word) {
            Some(number) => {
                self.rest.remove(0);
                Ok(Some(number))
            }
            None => Err(self.wrong(format!("{what} is from {} to {}, not `{word}`", range.start(), range.end()))),
        }
    }

    /// The number after the next word, if that is `word`.
    fn numbered(&mut self, word: &str, what: &str, range: &RangeInclusive<u32>) -> Result<Option<u32>, UsageFault> {
        if !self.take(word) {
            return Ok(None);
        }
        match self.number(what, range)? {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(format!(
                "`{word}` needs a number: {what}, from {} to {}, as in `{word}-{}`",
                range.start(),
                range.end(),
                range.start()
            ))),
        }
    }

    /// Refuses what was said twice.
    fn once<T: PartialEq>(&self, before: &mut Option<T>, now: T, what: &str) -> Result<(), UsageFault> {
        match before.replace(now) {
            None => Ok(()),
            Some(_) => Err(self.wrong(format!("{what} is given twice"))),
        }
    }
}

fn wide(range: &RangeInclusive<u8>) -> RangeInclusive<u32> {
    u32::from(*range.start())..=u32::from(*range.end())
}

fn deflate(words: &mut Words<'_>) -> Result<DeflateOptions, UsageFault> {
    let usual = DeflateOptions::default();
    let level = words.number("the level", &wide(&DeflateOptions::LEVELS))?;
    let (mut strategy, mut window, mut memory) = (None, None, None);
    loop {
        if let Some(&(_, found)) = DEFLATE_STRATEGIES.iter().find(|(name, _)| words.take(name)) {
            words.once(&mut strategy, found, "the strategy")?;
        } else if let Some(bits) = words.numbered("window", "the window's bits", &wide(&DeflateOptions::WINDOW_BITS))? {
            words.once(&mut window, bits as u8, "the window")?;
        } else if let Some(level) =
            words.numbered("memory", "the memory level", &wide(&DeflateOptions::MEMORY_LEVELS))?
        {
            words.once(&mut memory, level as u8, "the memory level")?;
        } else {
            break;
        }
    }
    let level = level.map_or(usual.level, |level| level as u8);
    match strategy {
        Some(DeflateStrategy::Filtered) if level < FILTERED_LEVEL_MIN => {
            return Err(words.wrong(format!("`filtered` changes nothing below level {FILTERED_LEVEL_MIN}")));
        }
        Some(DeflateStrategy::HuffmanOnly | DeflateStrategy::Rle) if level != usual.level => {
            return Err(words
                .wrong(format!("`huffman-only` and `rle` do the same at every level; write level {}", usual.level)));
        }
        _ => {}
    }
    Ok(DeflateOptions {
        level,
        strategy: strategy.unwrap_or_default(),
        window_bits: window.unwrap_or(usual.window_bits),
        memory_level: memory.unwrap_or(usual.memory_level),
    })
}

/// Two strategies look back no further than one byte. ZLIB's header still says how much memory a reader needs for the window; GZIP's says nothing of it.
fn check_gzip_window(words: &Words<'_>, options: DeflateOptions) -> Result<(), UsageFault> {
    let looks_back = !matches!(options.strategy, DeflateStrategy::HuffmanOnly | DeflateStrategy::Rle);
    if looks_back || options.window_bits == DeflateOptions::default().window_bits {
        return Ok(());
    }
    Err(words.wrong("`huffman-only` and `rle` give the same with any window; omit it".to_owned()))
}

fn zstd(words: &mut Words<'_>, scope: Scope) -> Result<ZstdOptions, UsageFault> {
    let mut options = ZstdOptions::default();
    let (fastest, smallest) = (*ZstdOptions::LEVELS.start(), *ZstdOptions::LEVELS.end());
    // As the program `zstd` has it: `--fast=7` is level −7. `fast` without a number is a strategy.
    let is_level = matches!(words.rest[..], ["fast", number, ..] if number.starts_with(|c: char| c.is_ascii_digit()));
    if is_level {
        let range = 1..=u32::from(fastest.unsigned_abs());
        let level = words.numbered("fast", "the fast level", &range)?;
        options.level = level.map_or(options.level, |level| -(level as i8));
    } else if let Some(level) = words.number("the level", &(1..=smallest as u32))? {
        options.level = level as i8;
    }
    let (mut checksum, mut long, mut dictionary) = (None, None, None);
    loop {
        if let Some(&(_, found)) = ZSTD_STRATEGIES.iter().find(|(name, _)| words.take(name)) {
            words.once(&mut options.strategy, found, "the strategy")?;
        } else if let Some(log) =
            words.numbered("window", "the window's logarithm", &wide(&ZstdOptions::WINDOW_LOGS))?
        {
            words.once(&mut options.window_log, log as u8, "the window")?;
        } else if words.take("long") {
            words.once(&mut long, true, "`long`")?;
        } else if words.take("checksum") {
            words.once(&mut checksum, true, "`checksum`")?;
        } else if words.take("dictionary") {
            words.once(&mut dictionary, true, "`dictionary`")?;
        } else if let Some(workers) =
            words.numbered("workers", "the number of workers", &wide(&ZstdOptions::WORKERS))?
        {
            words.once(&mut options.workers, workers as u8, "the number of workers")?;
        } else {
            break;
        }
    }
    (options.long, options.checksum) = (long.is_some(), checksum.is_some());
    options.dictionary = dictionary.is_some();
    if options.dictionary && scope != Scope::Record {
        let problem = "a dictionary is for records that are compressed each by itself: others have what came before them; \
                       add `record`";
        return Err(words.wrong(problem.to_owned()));
    }
    if options.dictionary && options.window_log.is_some_and(|log| log < DICTIONARY_WINDOW_LOG_MIN) {
        return Err(words.wrong(format!(
            "a window below {DICTIONARY_WINDOW_LOG_MIN} does not reach back over all of a dictionary"
        )));
    }
    if options.workers.is_some() && scope != Scope::Stream {
        let problem = "workers share a stream; blocks and records are smaller than the part that one of them takes, and shards \
                       are compressed on all threads anyway; add `stream`";
        return Err(words.wrong(problem.to_owned()));
    }
    Ok(options)
}

fn lz4(words: &mut Words<'_>) -> Result<Lz4Mode, UsageFault> {
    if let Some(level) = words.numbered("hc", "the level of `hc`", &wide(&Lz4Mode::LEVELS))? {
        return Ok(Lz4Mode::HighCompression { level: level as u8 });
    }
    let acceleration = words.numbered("fast", "the acceleration", &Lz4Mode::ACCELERATIONS)?;
    Ok(Lz4Mode::Fast { acceleration: acceleration.unwrap_or(1) })
}

/// The name that [`FromStr`] takes.
impl fmt::Display for ShardCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithm {
            Algorithm::Gzip(options) => write_deflate(f, "gzip", options, self.scope)?,
            Algorithm::Zlib(options) => write_deflate(f, "zlib", options, self.scope)?,
            Algorithm::Zstd(options) => write_zstd(f, options)?,
            Algorithm::Lz4(Lz4Mode::Fast { acceleration: 1 }) => f.write_str("lz4")?,
            Algorithm::Lz4(Lz4Mode::Fast { acceleration }) => write!(f, "lz4-fast-{acceleration}")?,
            Algorithm::Lz4(Lz4Mode::HighCompression { level }) => write!(f, "lz4-hc-{level}")?,
            Algorithm::Snappy => f.write_str("snappy")?,
        }
        match SCOPES.iter().find(|(_, scope)| *scope == self.scope) {
            Some((name, scope)) if *scope != Scope::default() => write!(f, "-{name}"),
            _ => Ok(()),
        }
    }
}

fn write_deflate(f: &mut fmt::Formatter<'_>, name: &str, options: DeflateOptions, scope: Scope) -> fmt::Result {
    let usual = DeflateOptions::default();
    f.write_str(name)?;
    if options != usual || scope != Scope::default() {
        write!(f, "-{}", options.level)?;
    }
    if let Some((strategy, _)) = DEFLATE_STRATEGIES.iter().find(|(_, strategy)| *strategy == options.strategy) {
        write!(f, "-{strategy}")?;
    }
    if options.window_bits != usual.window_bits {
        write!(f, "-window-{}", options.window_bits)?;
    }
    if options.memory_level != usual.memory_level {
        write!(f, "-memory-{}", options.memory_level)?;
    }
    Ok(())
}

fn write_zstd(f: &mut fmt::Formatter<'_>, options: ZstdOptions) -> fmt::Result {
    match options.level {
        level @ ..0 => write!(f, "zstd-fast-{}", level.unsigned_abs())?,
        level => write!(f, "zstd-{level}")?,
    }
    if let Some((strategy, _)) = ZSTD_STRATEGIES.iter().find(|(_, strategy)| Some(*strategy) == options.strategy) {
        write!(f, "-{strategy}")?;
    }
    if let Some(log) = options.window_log {
        write!(f, "-window-{log}")?;
    }
    f.write_str(if options.long { "-long" } else { "" })?;
    f.write_str(if options.checksum { "-checksum" } else { "" })?;
    f.write_str(if options.dictionary { "-dictionary" } else { "" })?;
    options.workers.map_or(Ok(()), |workers| write!(f, "-workers-{workers}"))
}
