//! Interleaved rANS decoding with NEON: vectors of 4 states. There is no gather, so entries are loaded one by one; all else is done for
//! four states at once, and no branch depends on which of them are refilled.

use std::arch::aarch64::{
    uint8x16_t, uint32x4_t, vaddq_u8, vaddvq_u16, vandq_u16, vandq_u32, vbslq_u32, vcltq_u32, vdupq_n_u8, vdupq_n_u32,
    vgetq_lane_u64, vld1q_lane_u32, vld1q_u8, vld1q_u16, vld1q_u32, vmaxq_u8, vmaxvq_u8, vminq_u8, vmlaq_u32,
    vqtbl1q_u8, vreinterpretq_u8_u32, vreinterpretq_u16_u32, vreinterpretq_u32_u8, vreinterpretq_u64_u32, vshrq_n_u32,
    vsliq_n_u32, vst1q_u8, vst1q_u32, vtrn1q_u16,
};

use super::{Coded, ESCAPE, LANES, Phase, Plane, SLOT_BITS, STATE_LOW, last_table, scalar};
use crate::{
    kernel::predict::{Part, neon as predict},
    sample::Sample,
    scratch::Rows,
};

/// Bytes that may be loaded for the words of 64 states: one word each, and the rest of the last load.
const WORDS_BYTES: usize = 2 * LANES + 16;

/// For each mask of eight words that are taken: the byte that each byte of the words takes, or none.
static EXPAND: [[u8; 16]; 256] = {
    let mut table = [[0xFF; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut word, mut taken) = (0, 0);
        while word < 8 {
            if mask >> word & 1 == 1 {
                table[mask][2 * word] = taken;
                table[mask][2 * word + 1] = taken + 1;
                taken += 2;
            }
            word += 1;
        }
        mask += 1;
    }
    table
};

/// For each mask, the bytes of the words that are taken.
static TAKEN: [u8; 256] = {
    let mut taken = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        taken[mask] = 2 * (mask as u8).count_ones() as u8;
        mask += 1;
    }
    taken
};

/// The bit of each word in a mask.
static BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

#[target_feature(enable = "neon")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    planes.iter_mut().zip(tables).zip(values).all(|((plane, tables), values)| {
        let (tables, last_tables) = tables[start..start + count].as_chunks::<LANES>();
        let (values, last_values) = values[start..start + count].as_chunks_mut::<LANES>();
        let whole = tables.iter().zip(values).try_for_each(|(tables, values)| {
            store(values, symbols::<false>(entries, data, plane, tables)?);
            Some(())
        });
        whole.and_then(|()| scalar::decode_plane(entries, data, plane, last_tables, last_values)).is_some()
    })
}

/// The same for the phases of `part`, which are not of a first row, with the choice of tables and the prediction.
#[target_feature(enable = "neon")]
pub(super) fn decode_narrow(
    coded: Coded<'_>,
    planes: &mut [Plane],
    part: Part<'_>,
    rows: &mut Rows<u8>,
    tables: &mut [Vec<u8>],
) -> bool {
    predict::prepare(part, coded.activities, tables, rows);
    let mut start = part.start;
    for &phase in part.phases {
        let count = part.counts[phase];
        let channels = planes.iter_mut().zip(&mut rows.current).zip(&*tables).take(part.channels);
        for ((plane, current), tables) in channels {
            let samples = current.at_mut(phase, count);
            if add_symbols(coded, plane, &tables[start..start + count], samples).is_none() {
                return false;
            }
            current.extend(phase, part.counts);
        }
        start += count;
    }
    true
}

/// Reads the symbols of a phase and adds them to the predictions.
#[target_feature(enable = "neon")]
#[inline]
fn add_symbols(coded: Coded<'_>, plane: &mut Plane, tables: &[u8], samples: &mut [u8]) -> Option<()> {
    let (tables, last_tables) = tables.as_chunks::<LANES>();
    let (samples, last_samples) = samples.as_chunks_mut::<LANES>();
    for (tables, samples) in tables.iter().zip(samples) {
        let [a, b, c, d] = symbols::<true>(coded.entries, coded.data, plane, tables)?;
        let before = load(samples);
        store(
            samples,
            [
                vaddq_u8(before[0], predict::unzigzag(a)),
                vaddq_u8(before[1], predict::unzigzag(b)),
                vaddq_u8(before[2], predict::unzigzag(c)),
                vaddq_u8(before[3], predict::unzigzag(d)),
            ],
        );
    }
    let mut values = [0; LANES];
    let values = &mut values[..last_samples.len()];
    scalar::decode_plane(coded.entries, coded.data, plane, last_tables, values)?;
    for (sample, value) in last_samples.iter_mut().zip(values) {
        *sample = sample.plus(value.unzigzag());
    }
    Some(())
}

/// Reads the values of 64 states. `None` if a stream leaves the file. It is compiled for each of its two callers, and so becomes part of
/// their loops.
#[target_feature(enable = "neon")]
#[inline]
fn symbols<const NARROW: bool>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8; LANES],
) -> Option<[uint8x16_t; 4]> {
    let Some(words) = data.get(plane.words..).and_then(|words| words.first_chunk()) else {
        return at_the_end(entries, data, plane, tables);
    };
    let symbols = symbols_from::<NARROW>(entries, plane, tables, words);
    let highest = vmaxq_u8(vmaxq_u8(symbols[0], symbols[1]), vmaxq_u8(symbols[2], symbols[3]));
    if vmaxvq_u8(highest) < ESCAPE { Some(symbols) } else { with_escaped(data, plane, symbols) }
}

/// The same near the end of the file, where whole vectors cannot be loaded.
#[cold]
#[target_feature(enable = "neon")]
fn at_the_end(entries: &[u32], data: &[u8], plane: &mut Plane, tables: &[u8; LANES]) -> Option<[uint8x16_t; 4]> {
    let mut values = [0; LANES];
    scalar::decode_plane(entries, data, plane, tables, &mut values)?;
    Some(load(&values))
}

/// Puts escaped values in their places.
#[inline(never)]
#[target_feature(enable = "neon")]
fn with_escaped(data: &[u8], plane: &mut Plane, symbols: [uint8x16_t; 4]) -> Option<[uint8x16_t; 4]> {
    let mut values = [0; LANES];
    store(&mut values, symbols);
    for (symbols, values) in symbols.into_iter().zip(values.as_chunks_mut::<16>().0) {
        if vmaxvq_u8(symbols) == ESCAPE {
            scalar::replace_escaped(data, plane, values)?;
        }
    }
    Some(load(&values))
}

/// Reads the symbols of 64 states.
#[target_feature(enable = "neon")]
#[inline]
fn symbols_from<const NARROW: bool>(
    entries: &[u32],
    plane: &mut Plane,
    tables: &[u8; LANES],
    words: &[u8; WORDS_BYTES],
) -> [uint8x16_t; 4] {
    let last = vdupq_n_u8(last_table(entries).min(63));
    let [a, b, c, d] = load(tables);
    let tables = [vminq_u8(a, last), vminq_u8(b, last), vminq_u8(c, last), vminq_u8(d, last)];
    let tables = tables.map(|tables| vreinterpretq_u32_u8(tables));
    let (states, start) = (&mut plane.states, words.as_ptr());
    // SAFETY: tables are at most the last; each step takes at most 16 bytes of words, and there are 16 more than those of all steps.
    unsafe {
        let (front0, words) = step::<0>(entries, states, tables[0], start);
        let (front1, words) = step::<4>(entries, states, tables[1], words);
        let (front2, words) = step::<8>(entries, states, tables[2], words);
        let (front3, words) = step::<12>(entries, states, tables[3], words);
        let (back0, words) = step::<32>(entries, states, vshrq_n_u32::<16>(tables[0]), words);
        let (back1, words) = step::<36>(entries, states, vshrq_n_u32::<16>(tables[1]), words);
        let (back2, words) = step::<40>(entries, states, vshrq_n_u32::<16>(tables[2]), words);
        let (back3, words) = step::<44>(entries, states, vshrq_n_u32::<16>(tables[3]), words);
        plane.words += words.offset_from_unsigned(start);
        [
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front0, back0)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front1, back1)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front2, back2)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front3, back3)),
        ]
    }
}

/// One step of twice 4 states, those from `FIRST` and those sixteen after them, whose words come in turn. The table of each is the lowest
/// byte of its lane, and the one above that. Returns their symbols, in the lowest two bytes of each lane, and the words that follow.
///
/// # Safety
/// 16 bytes must be readable from `words`, and no table may be beyond the last, or 63.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn step<const FIRST: usize>(
    entries: &[u32],
    states: &mut [u32; LANES],
    tables: uint32x4_t,
    words: *const u8,
) -> (uint32x4_t, *const u8) {
    const { assert!(FIRST + 16 + 4 <= LANES, "states are there") };
    let bound = vdupq_n_u32(STATE_LOW);
    // SAFETY: the states are there; a mask of eight bits is within the tables; the rest is the caller's promise.
    unsafe {
        let (first, second) = (states.as_mut_ptr().add(FIRST), states.as_mut_ptr().add(FIRST + 16));
        let (entry0, next0) = look_up(entries, vld1q_u32(first), tables);
        let (entry1, next1) = look_up(entries, vld1q_u32(second), vshrq_n_u32::<8>(tables));
        let (low0, low1) = (vcltq_u32(next0, bound), vcltq_u32(next1, bound));
        // In the lower half of each lane what the first takes, above it the second.
        let low = vtrn1q_u16(vreinterpretq_u16_u32(low0), vreinterpretq_u16_u32(low1));
        let mask = usize::from(vaddvq_u16(vandq_u16(low, vld1q_u16(BITS.as_ptr()))));
        let fresh = vqtbl1q_u8(vld1q_u8(words), vld1q_u8(EXPAND.get_unchecked(mask).as_ptr()));
        let fresh = vreinterpretq_u32_u8(fresh);
        vst1q_u32(first, vbslq_u32(low0, vsliq_n_u32::<16>(fresh, next0), next0));
        vst1q_u32(second, vbslq_u32(low1, vsliq_n_u32::<16>(vshrq_n_u32::<16>(fresh), next1), next1));
        (vsliq_n_u32::<8>(entry0, entry1), words.add(usize::from(*TAKEN.get_unchecked(mask))))
    }
}

/// The entries of 4 states, and the states that follow, not yet refilled. The table of each is the lowest byte of its lane.
///
/// # Safety
/// No table may be beyond the last, or 63.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn look_up(entries: &[u32], states: uint32x4_t, tables: uint32x4_t) -> (uint32x4_t, uint32x4_t) {
    // The slot, and from its ten bits on the table, of six: what lies above those sixteen bits is left out.
    let index = vreinterpretq_u64_u32(vsliq_n_u32::<{ SLOT_BITS as i32 }>(states, tables));
    let (low, high) = (vgetq_lane_u64::<0>(index), vgetq_lane_u64::<1>(index));
    let from = entries.as_ptr();
    // SAFETY: a slot is below a table's length, and the tables are there by the caller's promise.
    let entry = unsafe {
        let entry = vld1q_lane_u32::<0>(from.add(usize::from(low as u16)), vdupq_n_u32(0));
        let entry = vld1q_lane_u32::<1>(from.add(usize::from((low >> 32) as u16)), entry);
        let entry = vld1q_lane_u32::<2>(from.add(usize::from(high as u16)), entry);
        vld1q_lane_u32::<3>(from.add(usize::from((high >> 32) as u16)), entry)
    };
    let frequency = vandq_u32(vshrq_n_u32::<8>(entry), vdupq_n_u32(0xFFF));
    let next = vmlaq_u32(vshrq_n_u32::<20>(entry), frequency, vshrq_n_u32::<{ SLOT_BITS as i32 }>(states));
    (entry, next)
}

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[u8; LANES]) -> [uint8x16_t; 4] {
    let from = bytes.as_ptr();
    // SAFETY: the reference is to 64 readable bytes.
    unsafe { [vld1q_u8(from), vld1q_u8(from.add(16)), vld1q_u8(from.add(32)), vld1q_u8(from.add(48))] }
}

#[target_feature(enable = "neon")]
#[inline]
fn store(bytes: &mut [u8; LANES], [a, b, c, d]: [uint8x16_t; 4]) {
    let to = bytes.as_mut_ptr();
    // SAFETY: the reference is to 64 writable bytes.
    unsafe {
        vst1q_u8(to, a);
        vst1q_u8(to.add(16), b);
        vst1q_u8(to.add(32), c);
        vst1q_u8(to.add(48), d);
    }
}
