//! Huffman tables, laid out for lookup.
//!
//! An entry of [`Ac::fast`] covers all bits of a lookup, and holds up to two symbols: a first one, whose value is
//! entirely within those bits and is stored decoded, and a last one, whose code and sign are within them, while its value may
//! extend beyond. So one step of the chain "look up, shift, look up", which is what limits a decoder, yields nearly two
//! coefficients of an ordinary photograph.
//!
//! ```text
//! bit  0..8   bits to consume
//!      8..16  positions to advance: to behind the last symbol; END more at an end of block; LONG if the lookup does not see
//!             enough of the first symbol, and then nothing is consumed
//!     16..24  positions to skip before the first symbol's value
//!     32..48  the first symbol's value, signed; 0 if there is no first symbol, which is harmless to store
//!     48..64  what to subtract from the consumed bits, as a number, to get the last symbol's value
//! ```
//!
//! The last of these is what makes a step short: of the consumed bits, all before the value's own are known to the entry, and
//! so is the value's sign, whose excess (T.81, figure F.12) is subtracted along with them, modulo 2 to the power of 16.

use crate::error::{Error, Result};
use crate::header::Codes;

/// Bits that a lookup of an AC code sees. More bits hold more pairs of symbols, but the tables must stay in the first-level
/// cache together with the rows at work: 11 bits are 16 KiB each for brightness and for color.
pub(crate) const AC_BITS: u32 = 11;
/// Bits that a lookup of a DC code sees.
pub(crate) const DC_BITS: u32 = 9;
/// What an end of block adds to the position. More than any position that coefficients can reach.
pub(crate) const END: u32 = 128;
/// What a code beyond the lookup adds to the position. More than any position that an end of block can reach.
pub(crate) const LONG: u32 = 224;
/// The most bits that one entry of [`Ac::fast`] or [`Dc::fast`] consumes.
pub(crate) const STEP_BITS_MAX: u32 = AC_BITS + VALUE_BITS_MAX;

/// The most bits of a value in an entry; longer ones, which no 8-bit image has, are left to the slow path.
const VALUE_BITS_MAX: u32 = 11;

/// The codes by length, to find those that are longer than a lookup.
#[derive(Clone, Debug)]
pub(crate) struct Lengths {
    /// The first code that is longer, of 16 bits.
    ends: [u32; 17],
    /// What to add to a code of this length to get the index of its symbol.
    offsets: [i32; 17],
    symbols: [u8; 256],
}

impl Lengths {
    fn new(codes: &Codes) -> Result<Self> {
        let mut lengths = Self { ends: [0; 17], offsets: [0; 17], symbols: codes.symbols };
        let (mut code, mut index) = (0u32, 0u32);
        for length in 1..=16 {
            let count = u32::from(codes.counts[length - 1]);
            lengths.offsets[length] = index as i32 - code as i32;
            code += count;
            index += count;
            // No code may be all ones, as in libjpeg.
            if count > 0 && code >= 1 << length {
                return Err(Error::format("a Huffman table with more codes than there can be", index as usize));
            }
            lengths.ends[length] = code << (16 - length);
            code <<= 1;
        }
        Ok(lengths)
    }

    /// The symbol of the code at the start of `bits`, and its length; `None` if there is no such code.
    #[inline]
    pub(crate) fn find(&self, bits: u64) -> Option<(u8, u32)> {
        let next = (bits >> 48) as u32;
        let length = (1..=16).find(|&length| next < self.ends[length as usize])?;
        let code = (next >> (16 - length)) as i32;
        let index = (code + self.offsets[length as usize]) as usize;
        Some((self.symbols[index & 255], length))
    }
}

/// The first `1 << bits` numbers as the beginnings of codes of up to `bits` bits, and what `entry` makes of each code's
/// symbol and length.
fn spread<T: Copy>(codes: &Codes, bits: u32, table: &mut [T], entry: impl Fn(u8, u32) -> T) {
    let (mut at, mut index) = (0, 0);
    for length in 1..=bits {
        let each = 1 << (bits - length);
        for _ in 0..codes.counts[length as usize - 1] {
            table[at..at + each].fill(entry(codes.symbols[index], length));
            at += each;
            index += 1;
        }
    }
}

/// The codes of differences of DC coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Dc {
    codes: Codes,
    /// Bits to consume in the low byte, bits of the value in the high one; 0 if the code is longer than the lookup.
    pub(crate) fast: Box<[u16; 1 << DC_BITS]>,
    pub(crate) lengths: Lengths,
}

impl Dc {
    pub(crate) fn new(codes: &Codes) -> Result<Self> {
        let lengths = Lengths::new(codes)?;
        let count: usize = codes.counts.iter().map(|&count| usize::from(count)).sum();
        if codes.symbols[..count].iter().any(|&symbol| symbol > 15) {
            return Err(Error::format("a DC code for an invalid number of bits", count));
        }
        let mut fast = Box::new([0; 1 << DC_BITS]);
        spread(codes, DC_BITS, &mut fast[..], |symbol, length| {
            let fits = u32::from(symbol) <= VALUE_BITS_MAX;
            if fits { u16::from(symbol) << 8 | (u16::from(symbol) + length as u16) } else { 0 }
        });
        Ok(Self { codes: codes.clone(), fast, lengths })
    }

    pub(crate) fn is_of(&self, codes: &Codes) -> bool {
        self.codes == *codes
    }
}

/// The codes of AC coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Ac {
    codes: Codes,
    pub(crate) fast: Box<[u64; 1 << AC_BITS]>,
    pub(crate) lengths: Lengths,
}

impl Ac {
    pub(crate) fn new(codes: &Codes) -> Result<Self> {
        let lengths = Lengths::new(codes)?;
        let mut fast = Box::new([u64::from(LONG) << 8; 1 << AC_BITS]);
        fill(codes, &mut fast);
        Ok(Self { codes: codes.clone(), fast, lengths })
    }

    pub(crate) fn is_of(&self, codes: &Codes) -> bool {
        self.codes == *codes
    }
}

/// What one symbol means: positions to advance, bits of its value.
fn meaning(symbol: u8) -> (u32, u32) {
    let (run, value_bits) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    // Runs of less than 15 without a value are an end of block to libjpeg, though only 0 means it in a sequential file.
    if value_bits == 0 && run != 15 { (END, 0) } else { (run + 1, value_bits) }
}

/// Figure F.12 of T.81: of the numbers with that many bits, the upper half is positive and the lower half negative.
#[inline(always)]
pub(crate) fn extend(number: u32, bits: u32) -> i32 {
    let mask = (1 << bits) - 1;
    number as i32 - if 2 * number <= mask { mask as i32 } else { 0 }
}

/// An entry with one symbol. `prefix` is the part of it that the lookup covers, up to and including its sign.
fn alone(prefix: u32, consumed: u32, advance: u32, value_bits: u32) -> u64 {
    let above = prefix >> u32::from(value_bits > 0) << value_bits;
    let excess = if prefix & 1 == 0 { (1 << value_bits) - 1 } else { 0 };
    u64::from(consumed) | u64::from(advance) << 8 | u64::from((above + excess) as u16) << 48
}

fn fill(codes: &Codes, fast: &mut [u64; 1 << AC_BITS]) {
    // The entries of one symbol, and how many bits of the lookup each depends on.
    let mut seens = [0u8; 1 << AC_BITS];
    let (mut code, mut index) = (0u32, 0);
    for length in 1..=AC_BITS {
        for _ in 0..codes.counts[length as usize - 1] {
            let (advance, value_bits) = meaning(codes.symbols[index]);
            let seen = length + u32::from(value_bits > 0);
            if seen <= AC_BITS && value_bits <= VALUE_BITS_MAX {
                for sign in 0..1 << (seen - length) {
                    let prefix = code << (seen - length) | sign;
                    let (at, each) = ((prefix << (AC_BITS - seen)) as usize, 1 << (AC_BITS - seen));
                    seens[at..at + each].fill(seen as u8);
                    fast[at..at + each].fill(alone(prefix, length + value_bits, advance, value_bits));
                }
            }
            code += 1;
            index += 1;
        }
        code <<= 1;
    }
    // Both symbols, if the lookup covers the first one entirely and enough of the second.
    let single = *fast;
    let shortest = (1..=AC_BITS).find(|&length| codes.counts[length as usize - 1] > 0).unwrap_or(AC_BITS);
    for (index, entry) in fast.iter_mut().enumerate() {
        let first = single[index];
        let (consumed, advance) = (first as u32 & 0xFF, first as u32 >> 8 & 0xFF);
        if advance >= END || consumed + shortest > AC_BITS {
            continue;
        }
        let left = AC_BITS - consumed;
        let rest = index << consumed & ((1 << AC_BITS) - 1);
        let next = single[rest];
        let (next_consumed, next_advance) = (next as u32 & 0xFF, next as u32 >> 8 & 0xFF);
        if next_advance >= LONG || u32::from(seens[rest]) > left {
            continue;
        }
        let value = (index >> left) as u16;
        let value = value.wrapping_sub((first >> 48) as u16);
        // The bits before the next symbol's are consumed too, and so must be subtracted too.
        let before = (index as u64 >> left) << next_consumed;
        *entry = u64::from(consumed + next_consumed)
            | u64::from(advance + next_advance) << 8
            | u64::from(advance - 1) << 16
            | u64::from(value) << 32
            | ((next >> 48) + before) << 48;
    }
}
