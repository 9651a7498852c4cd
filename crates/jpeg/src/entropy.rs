//! From bits to coefficients: the serial part of a decoder, and most of its time.
#![expect(unsafe_code, reason = "the loop loads and stores without bounds checks, for the reasons given at each")]

use crate::header::NATURAL;
use crate::huffman::{AC_BITS, Ac, DC_BITS, Dc, END, LONG, STEP_BITS_MAX, extend};
#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::Supported;
use crate::scan::{BLOCK_BYTES_MAX, PADDING};

/// Coefficients of four blocks side by side: row 0 of each, then row 1 of each, and so on, so that a vector holds a row of
/// several blocks.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Quad(pub(crate) [i16; 256]);

/// The MCUs that are decoded together; their blocks fill complete quads.
pub(crate) const GROUP: usize = 4;
/// The most blocks of an MCU: 4:2:0.
pub(crate) const MCU_BLOCKS_MAX: usize = 6;
/// The most quads of a group.
pub(crate) const QUADS_MAX: usize = MCU_BLOCKS_MAX;

/// Why the data is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Bits that are no code.
    NoCode,
    /// More coefficients than a block has.
    Overflow,
    /// The data ends within a block, or goes on after the last.
    Length,
}

/// A block of an MCU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) component: usize,
    /// Whether its coefficients are wanted.
    pub(crate) stored: bool,
    /// The position of the block in the quads, for each MCU of a group.
    pub(crate) at: [u16; GROUP],
}

/// What an MCU is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) dc: [&'a Dc; 3],
    pub(crate) ac: [&'a Ac; 3],
    pub(crate) blocks: [BlockPlan; MCU_BLOCKS_MAX],
    pub(crate) count: usize,
}

/// The decoder's position in the data.
#[derive(Clone, Debug)]
pub(crate) struct Position<'a> {
    bytes: &'a [u8],
    ends: &'a [usize],
    /// The byte to load next.
    next: usize,
    /// The next bits, the first one at the top. Below the loaded ones there may be some that are loaded again.
    bits: u64,
    /// How many bits are loaded.
    loaded: u32,
    previous: [i32; 3],
    /// MCUs left of the interval.
    left: usize,
    interval: usize,
}

/// The position in a quad of each coefficient in file order. Positions behind the last one are those of an
/// end of block; a zero is stored for it, at the offset of the DC coefficient, which is stored last.
static OFFSETS: [u8; 320] = {
    let mut offsets = [0; 320];
    let mut index = 0;
    while index < 64 {
        offsets[index] = NATURAL[index] / 8 * 32 + NATURAL[index] % 8;
        index += 1;
    }
    offsets
};
const _: () = assert!(PADDING >= BLOCK_BYTES_MAX + 16);
const _: () = assert!(OFFSETS.len() > 63 + LONG as usize);
// Two entries are looked up after each load, and a slow symbol of up to 31 bits may follow the first of them.
const _: () = assert!(2 * STEP_BITS_MAX <= 56 && STEP_BITS_MAX + 31 <= 56);

impl<'a> Position<'a> {
    /// `bytes` must hold [`PADDING`] bytes after the last of `ends`.
    pub(crate) fn new(bytes: &'a [u8], ends: &'a [usize], interval: usize) -> Self {
        Self { bytes, ends, next: 0, bits: 0, loaded: 0, previous: [0; 3], left: interval, interval }
    }

    /// Bits consumed so far.
    fn consumed(&self) -> usize {
        self.next * 8 - self.loaded as usize
    }

    /// Whether the interval is used up but for the bits that fill its last byte.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ends.first().is_some_and(|&end| (self.consumed()..self.consumed() + 8).contains(&(end * 8)))
    }

    /// The byte of the data, without stuffed ones, that is read next.
    pub(crate) fn next_byte(&self) -> usize {
        self.next
    }

    /// Skips the first `mcus` MCUs; complete restart intervals are not even parsed.
    pub(crate) fn jump(&mut self, level: Supported, plan: &Plan<'_>, mcus: usize) -> Result<(), Damage> {
        let intervals = mcus / self.interval;
        if let Some((passed, rest)) = self.ends.split_at_checked(intervals)
            && let (Some(&end), false) = (passed.last(), rest.is_empty())
        {
            (self.ends, self.next) = (rest, end);
        }
        self.skip(level, plan, mcus % self.interval)
    }

    /// Skips the rest of the interval, of the `mcus` remaining MCUs; returns whether it ends where its data ends.
    pub(crate) fn finish(&mut self, level: Supported, plan: &Plan<'_>, mcus: usize) -> Result<bool, Damage> {
        self.skip(level, plan, mcus.min(self.left))?;
        Ok(self.is_at_end())
    }

    /// Goes on behind the restart marker.
    #[cold]
    fn restart(&mut self) -> Result<(), Damage> {
        let (true, Some((&end, rest))) = (self.is_at_end(), self.ends.split_first()) else {
            return Err(Damage::Length);
        };
        *self = Self { ends: rest, next: end, ..Self::new(self.bytes, rest, self.interval) };
        Ok(())
    }

    /// Decodes `mcus` MCUs of a group into `quads`, which must be zero; `extents` gets for each quad the position behind
    /// the last coefficient that is not zero.
    pub(crate) fn decode(
        &mut self,
        level: Supported,
        plan: &Plan<'_>,
        mcus: usize,
        quads: &mut [Quad; QUADS_MAX],
        extents: &mut [u8; QUADS_MAX],
    ) -> Result<(), Damage> {
        match level.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` level is one that this machine was seen to have.
            Level::Avx2 | Level::Avx512 => unsafe { decode_bmi2(self, plan, mcus, quads, extents) },
            _ => decode_any(self, plan, mcus, quads, extents),
        }
    }

    /// Passes over `mcus` MCUs.
    pub(crate) fn skip(&mut self, level: Supported, plan: &Plan<'_>, mcus: usize) -> Result<(), Damage> {
        match level.level() {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Supported` level is one that this machine was seen to have.
            Level::Avx2 | Level::Avx512 => unsafe { skip_bmi2(self, plan, mcus) },
            _ => skip_any(self, plan, mcus),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn decode_bmi2(
    position: &mut Position<'_>,
    plan: &Plan<'_>,
    mcus: usize,
    quads: &mut [Quad; QUADS_MAX],
    extents: &mut [u8; QUADS_MAX],
) -> Result<(), Damage> {
    decode_any(position, plan, mcus, quads, extents)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
fn skip_bmi2(position: &mut Position<'_>, plan: &Plan<'_>, mcus: usize) -> Result<(), Damage> {
    skip_any(position, plan, mcus)
}

#[inline(always)]
fn decode_any(
    position: &mut Position<'_>,
    plan: &Plan<'_>,
    mcus: usize,
    quads: &mut [Quad; QUADS_MAX],
    extents: &mut [u8; QUADS_MAX],
) -> Result<(), Damage> {
    let mut bits = Bits::new(position);
    for mcu in 0..mcus {
        if position.left == 0 {
            bits.save(position);
            position.restart()?;
            bits = Bits::new(position);
        }
        position.left -= 1;
        for block in &plan.blocks[..plan.count] {
            let at = usize::from(block.at[mcu]);
            let (dc, ac) = (plan.dc[block.component], plan.ac[block.component]);
            let previous = &mut position.previous[block.component];
            if block.stored {
                let (quad, lane) = (at / 256, at % 256);
                let extent = decode_block::<true>(&mut bits, previous, dc, ac, &mut quads[quad].0[lane..])?;
                let most = &mut extents[quad];
                *most = (*most).max(extent as u8);
            } else {
                decode_block::<false>(&mut bits, previous, dc, ac, &mut [])?;
            }
        }
    }
    bits.save(position);
    Ok(())
}

#[inline(always)]
fn skip_any(position: &mut Position<'_>, plan: &Plan<'_>, mcus: usize) -> Result<(), Damage> {
    let mut bits = Bits::new(position);
    for _ in 0..mcus {
        if position.left == 0 {
            bits.save(position);
            position.restart()?;
            bits = Bits::new(position);
        }
        position.left -= 1;
        for block in &plan.blocks[..plan.count] {
            let (dc, ac) = (plan.dc[block.component], plan.ac[block.component]);
            decode_block::<false>(&mut bits, &mut position.previous[block.component], dc, ac, &mut [])?;
        }
    }
    bits.save(position);
    Ok(())
}

/// The bits at hand, in registers.
struct Bits {
    start: *const u8,
    length: usize,
    next: usize,
    ahead: u64,
    loaded: u32,
}

impl Bits {
    #[inline(always)]
    fn new(position: &Position<'_>) -> Self {
        let (start, length) = (position.bytes.as_ptr(), position.bytes.len());
        Self { start, length, next: position.next, ahead: position.bits, loaded: position.loaded }
    }

    #[inline(always)]
    fn save(&self, position: &mut Position<'_>) {
        (position.next, position.bits, position.loaded) = (self.next, self.ahead, self.loaded);
    }

    /// Loads so that at least 56 bits are at hand.
    ///
    /// # Safety
    ///
    /// Eight bytes can be read at `start + next`.
    #[inline(always)]
    unsafe fn load(&mut self) {
        // SAFETY: as the caller promises.
        let word = unsafe { self.start.add(self.next).cast::<u64>().read_unaligned() };
        self.ahead |= u64::from_be(word) >> self.loaded;
        self.next += ((63 - self.loaded) >> 3) as usize;
        self.loaded |= 0x38;
    }

    #[inline(always)]
    fn consume(&mut self, count: u32) {
        self.ahead = self.ahead.wrapping_shl(count);
        self.loaded = self.loaded.wrapping_sub(count);
    }

    /// The value in the last `value_bits` of the next `count` bits.
    #[inline(always)]
    fn value(&self, count: u32, value_bits: u32) -> i32 {
        let number = self.ahead.wrapping_shr(0u32.wrapping_sub(count)) as u32 & ((1 << value_bits) - 1);
        extend(number, value_bits)
    }
}

/// Decodes a block, and returns the position behind the last coefficient that is not zero. If `STORE`, `block` must hold the
/// offsets of a quad's block.
#[inline(always)]
fn decode_block<const STORE: bool>(
    bits: &mut Bits,
    previous: &mut i32,
    dc: &Dc,
    ac: &Ac,
    block: &mut [i16],
) -> Result<u32, Damage> {
    // This keeps the loads of this block within the padding: they run ahead of the consumed bits by up to eight bytes.
    if bits.next + BLOCK_BYTES_MAX + 8 > bits.length || (STORE && block.len() < 7 * 32 + 8) {
        return Err(Damage::Length);
    }
    let block = block.as_mut_ptr();
    let difference = decode_difference(bits, dc)?;
    let value = previous.wrapping_add(difference);
    *previous = value;

    let mut at = 1u32;
    let extent = loop {
        let mut entry;
        let mut before;
        loop {
            (entry, before) = (ac.fast[(bits.ahead >> (64 - AC_BITS)) as usize], bits.ahead);
            // SAFETY: `at` is at most 63, and `block` as asked for above.
            at = unsafe { step::<STORE>(bits, entry, at, block) };
            if at > 63 {
                break;
            }
            // SAFETY: as said above, there is enough padding for the loads of a block.
            unsafe { bits.load() };
            (entry, before) = (ac.fast[(bits.ahead >> (64 - AC_BITS)) as usize], bits.ahead);
            // SAFETY: as before.
            at = unsafe { step::<STORE>(bits, entry, at, block) };
            if at > 63 {
                break;
            }
        }
        if at == 64 {
            break 64;
        }
        if at.wrapping_sub(END + 1) < 63 {
            break at - END;
        }
        // Either the code is longer than the lookup, or the first of two symbols was the last of the block: back to before
        // the lookup, and one symbol alone.
        bits.ahead = before;
        bits.loaded += entry as u32 & 0xFF;
        at -= entry as u32 >> 8 & 0xFF;
        let (symbol, length) = ac.lengths.find(bits.ahead).ok_or(Damage::NoCode)?;
        let (run, value_bits) = (u32::from(symbol >> 4), u32::from(symbol & 15));
        if value_bits == 0 && run != 15 {
            bits.consume(length);
            break at;
        }
        at += run;
        if at > 63 {
            return Err(Damage::Overflow);
        }
        let coefficient = bits.value(length + value_bits, value_bits);
        bits.consume(length + value_bits);
        if STORE {
            // SAFETY: `at` is at most 63, and offsets are within the block.
            unsafe { *block.add(usize::from(OFFSETS[at as usize])) = coefficient as i16 };
        }
        at += 1;
        if at == 64 {
            break 64;
        }
        // SAFETY: as before.
        unsafe { bits.load() };
    };
    if STORE {
        // SAFETY: the block is not empty.
        unsafe { *block = value as i16 };
    }
    Ok(extent)
}

/// Leaves at least 31 bits loaded.
#[inline(always)]
fn decode_difference(bits: &mut Bits, dc: &Dc) -> Result<i32, Damage> {
    // SAFETY: the caller saw that the padding suffices for a block.
    unsafe { bits.load() };
    let entry = u32::from(dc.fast[(bits.ahead >> (64 - DC_BITS)) as usize]);
    if entry != 0 {
        let difference = bits.value(entry & 0xFF, entry >> 8);
        bits.consume(entry & 0xFF);
        return Ok(difference);
    }
    let (value_bits, length) = dc.lengths.find(bits.ahead).ok_or(Damage::NoCode)?;
    let difference = bits.value(length + u32::from(value_bits), u32::from(value_bits));
    bits.consume(length + u32::from(value_bits));
    // SAFETY: as before.
    unsafe { bits.load() };
    Ok(difference)
}

/// Executes an entry of the table, and returns the new position.
///
/// # Safety
///
/// `at` is at most 63. If `STORE`, `block` is valid for writes at all of [`OFFSETS`].
#[inline(always)]
unsafe fn step<const STORE: bool>(bits: &mut Bits, entry: u64, at: u32, block: *mut i16) -> u32 {
    let count = entry as u32 & 0xFF;
    let after = at + (entry as u32 >> 8 & 0xFF);
    if STORE {
        let first = (at + (entry as u32 >> 16 & 0xFF)) as usize;
        let number = bits.ahead.wrapping_shr(0u32.wrapping_sub(count)) as u16;
        // SAFETY: `first` is at most 63 + 15, and `after` at most 63 + 255, but at least 1: no entry advances by less. Both
        // are within `OFFSETS`, and its values are within the block.
        unsafe {
            *block.add(usize::from(*OFFSETS.get_unchecked(first))) = (entry >> 32) as i16;
            let last = block.add(usize::from(*OFFSETS.get_unchecked(after as usize - 1)));
            *last = number.wrapping_sub((entry >> 48) as u16) as i16;
        }
    }
    bits.consume(count);
    after
}
