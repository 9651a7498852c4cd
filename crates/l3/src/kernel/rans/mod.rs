//! Interleaved rANS decoding: what `dense` is made of.
//!
//! Each plane of a strip has 64 states of 31 bits with a lower bound of 2^15. The symbols of a phase are read 64 at a time:
//! symbol `i` with state `i % 4 * 16 + i % 64 / 4`, so that four vectors of sixteen states give four consecutive symbols in each
//! 32-bit lane. Then each state that fell below the bound takes one 16-bit word, in the order of [`refill_order`]. A table has
//! 2^10 slots; an entry holds the symbol (8 bits), its frequency (12 bits) and the slot's index among the symbol's slots (12 bits).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

use crate::{
    kernel::{
        Supported, dispatch,
        predict::{self, Activity, Part},
    },
    scratch::Scratch,
};

/// Interleaved states per plane.
pub(crate) const LANES: usize = 64;
/// The slots of a table are 2 to this power.
pub(crate) const SLOT_BITS: u32 = 10;
/// Slots of a table.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;
/// The lower bound of a state, and the state that encoding starts from. It never reaches this times 2^16: words have 16 bits.
pub(crate) const STATE_LOW: u32 = 1 << 15;
/// A state whose bits from here on are not below the frequency gives off a word before it is encoded with.
const EMIT_SHIFT: u32 = STATE_LOW.ilog2() + 16 - SLOT_BITS;
/// The symbol that stands for a value in the escape stream.
pub(crate) const ESCAPE: u8 = 255;

/// Where reading a plane stands.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Plane {
    pub(crate) states: [u32; LANES],
    /// Offset of the next word in the file.
    pub(crate) words: usize,
    /// Offset of the next escaped value in the file.
    pub(crate) escapes: usize,
}

/// The state of symbol `index` of a phase.
pub(crate) fn lane(index: usize) -> usize {
    index % 4 * 16 + index % LANES / 4
}

/// The states in the order in which they are refilled: the first and second sixteen in turn, then the third and fourth.
pub(crate) fn refill_order() -> impl DoubleEndedIterator<Item = usize> {
    (0..LANES).map(|index| index / 32 * 32 + index % 2 * 16 + index % 32 / 2)
}

/// Packs an entry of a table.
pub(crate) fn entry(symbol: u8, frequency: u32, index: u32) -> u32 {
    u32::from(symbol) | frequency << 8 | index << 20
}

/// Packs how to encode a value: the frequency of its symbol (11 bits), the slots before the symbol's first (20 bits), and whether
/// the symbol is the escape.
pub(crate) fn code(frequency: u32, start: u32, escaped: bool) -> u32 {
    frequency | start << 11 | u32::from(escaped) << 31
}

/// A plane of a strip to encode: rows of residuals in coding order, the context of each, and the table of each context.
pub(crate) struct Source<'a> {
    pub(crate) residuals: &'a [u8],
    pub(crate) contexts: &'a [u8],
    /// Contexts beyond those of a plane do not occur.
    pub(crate) map: &'a [u8; 64],
    /// What [`code`] makes of each value, 256 to a table; every table that `map` names is there.
    pub(crate) codes: &'a [u32],
    pub(crate) width: usize,
}

/// A plane's stream. It is written from the end, since rANS decodes in the reverse of the order of encoding.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) states: [u32; LANES],
    words: Vec<u16>,
    words_start: usize,
    escapes: Vec<u8>,
    escapes_start: usize,
}

impl Default for Stream {
    fn default() -> Self {
        let (words, escapes) = (Vec::new(), Vec::new());
        Self { states: [STATE_LOW; LANES], words, words_start: 0, escapes, escapes_start: 0 }
    }
}

impl Stream {
    /// Empties the stream, with space for as many symbols: none takes more than a word and an escaped value.
    fn reset(&mut self, symbols: usize) {
        self.states = [STATE_LOW; LANES];
        self.words.resize(symbols, 0);
        self.escapes.resize(symbols, 0);
        self.words_start = symbols;
        self.escapes_start = symbols;
    }

    /// The words, in the order of decoding.
    pub(crate) fn words(&self) -> &[u16] {
        &self.words[self.words_start..]
    }

    /// The escaped values, in the order of decoding.
    pub(crate) fn escapes(&self) -> &[u8] {
        &self.escapes[self.escapes_start..]
    }
}

/// Encodes a plane of a strip.
pub(crate) fn encode(level: Supported, source: &Source<'_>, stream: &mut Stream) {
    stream.reset(source.residuals.len());
    let tables = source.map.iter().copied().max().map_or(0, |last| usize::from(last) + 1);
    assert!(source.codes.len() >= tables * 256, "a code for every value of every table");
    match level.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx512 => unsafe { avx512::encode(source, stream) },
        _ => scalar::encode(source, stream),
    }
}

/// The buffers of one phase: for each plane the table of each symbol, and space for the values. Both reach a whole vector
/// beyond the phase.
pub(crate) struct Phase<'a> {
    pub(crate) tables: &'a [Vec<u8>],
    pub(crate) values: &'a mut [Vec<u8>],
    /// Where the phase begins in both.
    pub(crate) start: usize,
    pub(crate) count: usize,
}

/// Reads the `count` symbols of a phase for each of `planes` (at most 4). A table number beyond the last means the last, so
/// that kernels may look entries up without checking; a validated model has none.
/// False if a stream leaves the file.
#[must_use]
pub(crate) fn decode(level: Supported, entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    if entries.len() < SLOTS {
        return false;
    }
    dispatch!(level, decode(entries, data, planes, phase))
}

/// Decodes the phases of `part`, which must not depend on each other, for 8-bit samples: chooses tables by activity, reads
/// symbols and adds the prediction.
#[must_use]
pub(crate) fn decode_narrow(
    level: Supported,
    coded: Coded<'_>,
    planes: &mut [Plane],
    part: Part<'_>,
    scratch: &mut Scratch,
) -> bool {
    match level.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx512 if !part.first && coded.entries.len() >= SLOTS => unsafe {
            avx512::decode_narrow(coded, planes, part, &mut scratch.narrow, &mut scratch.tables)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx2 if !part.first && coded.entries.len() >= SLOTS => unsafe {
            avx2::decode_narrow(coded, planes, part, &mut scratch.narrow, &mut scratch.tables)
        },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Neon if !part.first && coded.entries.len() >= SLOTS => unsafe {
            neon::decode_narrow(coded, planes, part, &mut scratch.narrow, &mut scratch.tables)
        },
        _ => {
            let Scratch { narrow: rows, tables, residuals, .. } = scratch;
            predict::tables(level, part, coded.activities, tables, rows);
            let mut start = part.start;
            let good = part.phases.iter().all(|&phase| {
                let count = part.counts[phase];
                let phase = Phase { tables, values: residuals, start, count };
                start += count;
                decode(level, coded.entries, coded.data, planes, phase)
            });
            predict::decode(level, part, residuals, rows);
            good
        }
    }
}

/// What symbols are read from: the tables, the file, and how activity chooses tables in these phases.
#[derive(Clone, Copy)]
pub(crate) struct Coded<'a> {
    pub(crate) entries: &'a [u32],
    pub(crate) data: &'a [u8],
    pub(crate) activities: &'a [Activity; 4],
}

/// Whether entries are looked up by the gather instruction. AMD's processors make forty operations of one of eight: with loads the loop of
/// symbols takes two thirds of the time on a Zen 3, while Intel's are built for gathers (see `notes.md`).
#[cfg(target_arch = "x86_64")]
fn gathers() -> bool {
    static GATHERS: LazyLock<bool> = LazyLock::new(|| {
        #[allow(
            unused_unsafe,
            reason = "safe to call with this compiler, and not with the oldest one that is promised"
        )]
        // SAFETY: every processor of this architecture has the instruction, and leaf 0.
        let vendor = unsafe { std::arch::x86_64::__cpuid(0) };
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).as_flattened() != b"AuthenticAMD"
    });
    *GATHERS
}

/// The number of the last table.
#[inline(always)]
fn last_table(entries: &[u32]) -> u8 {
    (entries.len() / SLOTS - 1).min(255) as u8
}

/// How many bytes come before the first cache line that is wholly in a buffer.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn unaligned(buffer: &[u8]) -> usize {
    buffer.as_ptr().align_offset(64).min(63)
}
