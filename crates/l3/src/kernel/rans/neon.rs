//! Interleaved rANS decoding with NEON: vectors of 4 states. There is no gather, so entries are loaded one by one; all else is done for
//! four states at once, and no branch depends on which of them are refilled.

use std::arch::aarch64::{
    uint8x16_t, uint32x4_t, vaddq_u8, vceqq_u8, vdupq_n_u8, vdupq_n_u32, vget_lane_u64, vld1q_u8, vld1q_u16, vld1q_u32,
    vmaxq_u8, vmaxvq_u8, vminq_u8, vreinterpret_u64_u8, vreinterpretq_u8_u32, vreinterpretq_u16_u8,
    vreinterpretq_u32_u8, vshrn_n_u16, vshrq_n_u32, vsliq_n_u32, vst1q_u8, vst1q_u32,
};
use std::arch::asm;

use super::{Coded, ESCAPE, LANES, Phase, Plane, SLOT_BITS, STATE_LOW, last_table, scalar};
use crate::{
    kernel::predict::{Part, neon as predict},
    sample::Sample,
    scratch::Rows,
};

/// Bytes that may be loaded for the words of 64 states: one word each, and the rest of the last load.
const WORDS_BYTES: usize = 2 * LANES + 16;

/// For each mask of eight states that are refilled, four of one vector in the low half and four of another in the high one: where the
/// bytes of both vectors come from. The first vector is looked up in itself (0 to 15) and the words (16 to 31), the second in the words
/// (0 to 15) and itself (16 to 31), so that three registers in a row serve both. The words go to the two vectors in turn.
static REFILLS: [[[u8; 16]; 2]; 256] = {
    let mut refills = [[[0; 16]; 2]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut taken) = (0, 0);
        while lane < 4 {
            let mut half = 0;
            while half < 2 {
                let (itself, words) = (16 * half as u8 + 4 * lane as u8, 16 - 16 * half as u8 + taken);
                refills[mask][half][4 * lane] = itself;
                refills[mask][half][4 * lane + 1] = itself + 1;
                refills[mask][half][4 * lane + 2] = itself + 2;
                refills[mask][half][4 * lane + 3] = itself + 3;
                if mask >> (4 * half + lane) & 1 == 1 {
                    refills[mask][half][4 * lane] = words;
                    refills[mask][half][4 * lane + 1] = words + 1;
                    refills[mask][half][4 * lane + 2] = itself;
                    refills[mask][half][4 * lane + 3] = itself + 1;
                    taken += 2;
                }
                half += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    refills
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

/// The bit of each state in a mask.
static BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The states of a plane, in registers.
type States = [uint32x4_t; LANES / 4];

#[target_feature(enable = "neon")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    planes.iter_mut().zip(tables).zip(values).all(|((plane, tables), values)| {
        let (tables, last_tables) = tables[start..start + count].as_chunks::<LANES>();
        let (values, last_values) = values[start..start + count].as_chunks_mut::<LANES>();
        let whole =
            for_each_chunk::<false>(entries, data, plane, tables, values, |target, values| store(target, values));
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
    for_each_chunk::<true>(coded.entries, coded.data, plane, tables, samples, |target, values| add(target, values))?;
    let mut values = [0; LANES];
    let values = &mut values[..last_samples.len()];
    scalar::decode_plane(coded.entries, coded.data, plane, last_tables, values)?;
    for (sample, value) in last_samples.iter_mut().zip(values) {
        *sample = sample.plus(value.unzigzag());
    }
    Some(())
}

/// Adds residuals to predictions.
#[target_feature(enable = "neon")]
#[inline]
fn add(samples: &mut [u8; LANES], [a, b, c, d]: [uint8x16_t; 4]) {
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

/// Reads 64 values at a time, and does with each 64 and their target what `put` says. `None` if a stream leaves the file. It is compiled
/// for each of its two callers; the states are in registers all the while.
#[target_feature(enable = "neon")]
#[inline]
fn for_each_chunk<const PREDICTED: bool>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[[u8; LANES]],
    targets: &mut [[u8; LANES]],
    put: impl Fn(&mut [u8; LANES], [uint8x16_t; 4]),
) -> Option<()> {
    let last = vdupq_n_u8(last_table(entries).min(63));
    let mut states = load_states(&plane.states);
    let mut chunks = tables.iter().zip(targets);
    while let Some(words) = data.get(plane.words..).and_then(|words| words.first_chunk()) {
        let Some((tables, target)) = chunks.next() else { break };
        let (symbols, taken) = symbols::<PREDICTED>(entries, &mut states, tables, last, words);
        plane.words += taken;
        let highest = vmaxq_u8(vmaxq_u8(symbols[0], symbols[1]), vmaxq_u8(symbols[2], symbols[3]));
        if vmaxvq_u8(highest) < ESCAPE {
            put(target, symbols);
        } else {
            put(target, with_escaped(data, &mut plane.escapes, symbols)?);
        }
    }
    store_states(&mut plane.states, states);
    // Near the end of the file, whole vectors of words cannot be loaded.
    for (tables, target) in chunks {
        let mut values = [0; LANES];
        scalar::decode_plane(entries, data, plane, tables, &mut values)?;
        put(target, load(&values));
    }
    Some(())
}

/// Puts escaped values in their places. Inlined, since a call would have to save the states.
#[target_feature(enable = "neon")]
#[inline]
fn with_escaped(data: &[u8], escapes: &mut usize, symbols: [uint8x16_t; 4]) -> Option<[uint8x16_t; 4]> {
    let mut values = [0; LANES];
    store(&mut values, symbols);
    for (symbols, values) in symbols.into_iter().zip(values.as_chunks_mut::<16>().0) {
        // Four bits for each symbol.
        let equal = vreinterpretq_u16_u8(vceqq_u8(symbols, vdupq_n_u8(ESCAPE)));
        let mut mask = vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(equal)));
        while mask != 0 {
            let bit = mask.trailing_zeros();
            values[bit as usize / 4] = *data.get(*escapes)?;
            *escapes += 1;
            mask &= !(0xF << bit);
        }
    }
    Some(load(&values))
}

/// Reads the symbols of 64 states, and says how many bytes of words that took. A table number beyond the last means the last.
#[target_feature(enable = "neon")]
#[inline]
fn symbols<const PREDICTED: bool>(
    entries: &[u32],
    states: &mut States,
    tables: &[u8; LANES],
    last: uint8x16_t,
    words: &[u8; WORDS_BYTES],
) -> ([uint8x16_t; 4], usize) {
    let [a, b, c, d] = load(tables);
    let tables = [vminq_u8(a, last), vminq_u8(b, last), vminq_u8(c, last), vminq_u8(d, last)];
    let tables = tables.map(|tables| vreinterpretq_u32_u8(tables));
    let start = words.as_ptr();
    // SAFETY: tables are at most the last; each step takes at most 16 bytes of words, and there are 16 more than those of all steps.
    unsafe {
        let (front0, words) = step::<0>(entries, states, tables[0], start);
        let (front1, words) = step::<1>(entries, states, tables[1], words);
        let (front2, words) = step::<2>(entries, states, tables[2], words);
        let (front3, words) = step::<3>(entries, states, tables[3], words);
        let (back0, words) = step::<8>(entries, states, vshrq_n_u32::<16>(tables[0]), words);
        let (back1, words) = step::<9>(entries, states, vshrq_n_u32::<16>(tables[1]), words);
        let (back2, words) = step::<10>(entries, states, vshrq_n_u32::<16>(tables[2]), words);
        let (back3, words) = step::<11>(entries, states, vshrq_n_u32::<16>(tables[3]), words);
        let symbols = [
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front0, back0)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front1, back1)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front2, back2)),
            vreinterpretq_u8_u32(vsliq_n_u32::<16>(front3, back3)),
        ];
        (symbols, words.offset_from_unsigned(start))
    }
}

/// One step of twice 4 states, those of vector `FIRST` and those four vectors after it, whose words come in turn. The table of each is the
/// lowest byte of its lane, and the one above that. Returns their symbols, in the lowest two bytes of each lane, and the words that follow.
///
/// It is written in instructions. As intrinsics, whichever way, the compiler makes a load to a lane of each entry, which needs an address
/// by itself, and does what it can of all steps first, for which there are not enough registers (see `notes.md`).
///
/// # Safety
/// 16 bytes must be readable from `words`, and no table may be beyond the last, or 63.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn step<const FIRST: usize>(
    entries: &[u32],
    states: &mut States,
    tables: uint32x4_t,
    mut words: *const u8,
) -> (uint32x4_t, *const u8) {
    const { assert!(FIRST + 4 < LANES / 4, "states are there") };
    let (mut first, mut second) = (states[FIRST], states[FIRST + 4]);
    let symbols: uint32x4_t;
    // SAFETY: it reads only. Entries: a slot is below a table's length, and the tables are there by the caller's promise. Words: the same
    // promise. The other two tables have 256 elements of 32 bytes and of one, and a mask has eight bits.
    unsafe {
        asm!(
            // What is left of the states, and in their place the numbers of their entries, in the lower half of each lane: the slot, and
            // from its ten bits on the table, of six.
            "ushr v0.4s, {first:v}.4s, #{slot_bits}",
            "sli {first:v}.4s, {tables:v}.4s, #{slot_bits}",
            "ushr {work:v}.4s, {tables:v}.4s, #8",
            "ushr v2.4s, {second:v}.4s, #{slot_bits}",
            "sli {second:v}.4s, {work:v}.4s, #{slot_bits}",
            // The entries of the first four.
            "umov {at0:w}, {first:v}.h[0]",
            "umov {at1:w}, {first:v}.h[2]",
            "umov {at2:w}, {first:v}.h[4]",
            "umov {at3:w}, {first:v}.h[6]",
            "ldr {symbols:s}, [{entries}, {at0}, lsl #2]",
            "ldr {work:s}, [{entries}, {at1}, lsl #2]",
            "ldr {first:s}, [{entries}, {at2}, lsl #2]",
            "ldr {entry1:s}, [{entries}, {at3}, lsl #2]",
            "zip1 {symbols:v}.4s, {symbols:v}.4s, {work:v}.4s",
            "zip1 {first:v}.4s, {first:v}.4s, {entry1:v}.4s",
            "zip1 {symbols:v}.2d, {symbols:v}.2d, {first:v}.2d",
            // And of the second four.
            "umov {at0:w}, {second:v}.h[0]",
            "umov {at1:w}, {second:v}.h[2]",
            "umov {at2:w}, {second:v}.h[4]",
            "umov {at3:w}, {second:v}.h[6]",
            "ldr {entry1:s}, [{entries}, {at0}, lsl #2]",
            "ldr {work:s}, [{entries}, {at1}, lsl #2]",
            "ldr {second:s}, [{entries}, {at2}, lsl #2]",
            "ldr {first:s}, [{entries}, {at3}, lsl #2]",
            "zip1 {entry1:v}.4s, {entry1:v}.4s, {work:v}.4s",
            "zip1 {second:v}.4s, {second:v}.4s, {first:v}.4s",
            "zip1 {entry1:v}.2d, {entry1:v}.2d, {second:v}.2d",
            // The states that follow: times the frequency, and the index among the symbol's slots.
            "shl {first:v}.4s, {symbols:v}.4s, #12",
            "shl {second:v}.4s, {entry1:v}.4s, #12",
            "ushr {first:v}.4s, {first:v}.4s, #20",
            "ushr {second:v}.4s, {second:v}.4s, #20",
            "mul v0.4s, v0.4s, {first:v}.4s",
            "mul v2.4s, v2.4s, {second:v}.4s",
            "usra v0.4s, {symbols:v}.4s, #20",
            "usra v2.4s, {entry1:v}.4s, #20",
            "sli {symbols:v}.4s, {entry1:v}.4s, #8",
            // Which of them are below the bound, as a mask.
            "cmhi {first:v}.4s, {bound:v}.4s, v0.4s",
            "cmhi {second:v}.4s, {bound:v}.4s, v2.4s",
            "uzp1 {work:v}.8h, {first:v}.8h, {second:v}.8h",
            "and {work:v}.16b, {work:v}.16b, {bits:v}.16b",
            "addv {work:h}, {work:v}.8h",
            "fmov {at0:w}, {work:s}",
            // Those take words.
            "ldr q1, [{words}]",
            "ldrb {at1:w}, [{taken}, {at0}]",
            "add {at0}, {refills}, {at0}, lsl #5",
            "ldp {first:q}, {second:q}, [{at0}]",
            "add {words}, {words}, {at1}",
            "tbl {first:v}.16b, {{ v0.16b, v1.16b }}, {first:v}.16b",
            "tbl {second:v}.16b, {{ v1.16b, v2.16b }}, {second:v}.16b",
            slot_bits = const SLOT_BITS,
            first = inout(vreg) first,
            second = inout(vreg) second,
            symbols = out(vreg) symbols,
            tables = in(vreg) tables,
            bound = in(vreg) vdupq_n_u32(STATE_LOW),
            bits = in(vreg) vld1q_u16(BITS.as_ptr()),
            words = inout(reg) words,
            entries = in(reg) entries.as_ptr(),
            refills = in(reg) REFILLS.as_ptr(),
            taken = in(reg) TAKEN.as_ptr(),
            at0 = out(reg) _,
            at1 = out(reg) _,
            at2 = out(reg) _,
            at3 = out(reg) _,
            work = out(vreg) _,
            entry1 = out(vreg) _,
            out("v0") _,
            out("v1") _,
            out("v2") _,
            options(readonly, nostack, preserves_flags),
        );
    }
    (states[FIRST], states[FIRST + 4]) = (first, second);
    (symbols, words)
}

#[target_feature(enable = "neon")]
#[inline]
fn load_states(states: &[u32; LANES]) -> States {
    let (vectors, _) = states.as_chunks::<4>();
    // SAFETY: each reference is to four numbers.
    std::array::from_fn(|index| unsafe { vld1q_u32(vectors[index].as_ptr()) })
}

#[target_feature(enable = "neon")]
#[inline]
fn store_states(states: &mut [u32; LANES], vectors: States) {
    for (states, vector) in states.as_chunks_mut::<4>().0.iter_mut().zip(vectors) {
        // SAFETY: the reference is to four numbers.
        unsafe { vst1q_u32(states.as_mut_ptr(), vector) };
    }
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
