//! Interleaved rANS decoding with AVX2: eight vectors of 8 states per plane, the planes in turn, so that the latency of one
//! plane's table lookups is covered by the others.
//!
//! There are two ways to look entries up: the gather instruction, and loads one by one, which are faster on AMD's processors.

use super::{Coded, ESCAPE, LANES, Phase, Plane, SLOT_BITS, SLOTS, STATE_LOW, gathers, lane, last_table, unaligned};
use crate::{
    header::Predictor,
    kernel::predict::{
        Part,
        avx2::{between, level, read, top, unzigzag, write},
    },
    phases::Neighbors,
    scratch::Rows,
};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_insert_epi32, _mm_loadu_si128,
    _mm_shuffle_epi8, _mm256_add_epi8, _mm256_add_epi32, _mm256_adds_epu8, _mm256_and_si256, _mm256_avg_epu8,
    _mm256_blend_epi16, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cmpgt_epi32,
    _mm256_extracti128_si256, _mm256_i32gather_epi32, _mm256_max_epu8, _mm256_min_epu8, _mm256_movemask_epi8,
    _mm256_mullo_epi32, _mm256_or_si256, _mm256_packs_epi16, _mm256_set_m128i, _mm256_set1_epi8, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_slli_epi32,
    _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_sub_epi8,
};

/// Bytes that may be loaded for the words of 64 states: one word each, and the rest of the last load.
const WORDS_BYTES: usize = 2 * LANES + 16;

/// For each mask of eight words that are taken: the byte that each byte of the words takes, or none.
static EXPAND: [[u8; 16]; 256] = {
    let mut table = [[0x80; 16]; 256];
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

/// For each of four symbols: brings its table, in a byte of each lane, to the second byte, with zeros around.
static NUMBERS: [[u8; 32]; 4] = {
    let mut table = [[0x80; 32]; 4];
    let mut at = 0;
    while at < 32 {
        table[at % 4][at / 4 * 4 + 1] = (at % 16) as u8;
        at += 1;
    }
    table
};

/// Entries by their numbers.
///
/// # Safety
/// They must be there.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn gather<const GATHERS: bool>(entries: &[u32], index: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        if GATHERS {
            return _mm256_i32gather_epi32::<4>(entries.as_ptr().cast(), index);
        }
        let (low, high) = (_mm256_castsi256_si128(index), _mm256_extracti128_si256::<1>(index));
        _mm256_set_m128i(load_four(entries, high), load_four(entries, low))
    }
}

/// Four entries by loads. Two numbers leave a vector at a time.
///
/// # Safety
/// They must be there.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) unsafe fn load_four(entries: &[u32], index: __m128i) -> __m128i {
    let (low, high) = (_mm_cvtsi128_si64(index).cast_unsigned(), _mm_extract_epi64::<1>(index).cast_unsigned());
    // SAFETY: the caller's promise.
    let entry = |number: u64| unsafe { entries.get_unchecked(number as usize).cast_signed() };
    let (entry0, entry1, entry2, entry3) =
        (entry(low & 0xFFFF_FFFF), entry(low >> 32), entry(high & 0xFFFF_FFFF), entry(high >> 32));
    let entries = _mm_insert_epi32::<1>(_mm_cvtsi32_si128(entry0), entry1);
    _mm_insert_epi32::<3>(_mm_insert_epi32::<2>(entries, entry2), entry3)
}

/// The entries of 8 states, and the states that follow, not yet refilled. `numbers` are table numbers times [`SLOTS`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn look_up<const GATHERS: bool>(entries: &[u32], states: __m256i, numbers: __m256i) -> (__m256i, __m256i) {
    let index = _mm256_or_si256(numbers, _mm256_and_si256(states, _mm256_set1_epi32(SLOTS as i32 - 1)));
    // SAFETY: tables were clamped to the last, and a slot is below a table's length, so all indices are within `entries`.
    let entry = unsafe { gather::<GATHERS>(entries, index) };
    let frequency = _mm256_and_si256(_mm256_srli_epi32::<8>(entry), _mm256_set1_epi32(0xFFF));
    let product = _mm256_mullo_epi32(frequency, _mm256_srli_epi32::<{ SLOT_BITS as i32 }>(states));
    (entry, _mm256_add_epi32(product, _mm256_srli_epi32::<20>(entry)))
}

/// Eight words, those of the mask from `words` one after the other, the others 0.
///
/// # Safety
/// 16 bytes must be readable.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn expand(words: *const u8, mask: u32) -> __m128i {
    // SAFETY: the caller's promise; the table has 16 bytes for each mask; the loads need no alignment.
    unsafe {
        let order = _mm_loadu_si128(EXPAND[mask as usize & 0xFF].as_ptr().cast());
        _mm_shuffle_epi8(_mm_loadu_si128(words.cast()), order)
    }
}

/// Which states take part in reading fewer than 64 symbols: all ones for each.
pub(super) type Active = [[i32; 8]; 8];

pub(super) fn activity(count: usize) -> Active {
    let mut active = [[0; 8]; 8];
    for index in 0..count.min(LANES) {
        active[lane(index) / 8][lane(index) % 8] = -1;
    }
    active
}

/// The entries of twice 8 states, those from `8 * half` of the vectors `2 * PAIR` and `2 * PAIR + 1`, and the states that follow.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn look_up_pair<const WHOLE: bool, const GATHERS: bool, const PAIR: usize>(
    entries: &[u32],
    states: &[u32; LANES],
    half: usize,
    tables: __m256i,
    active: &Active,
) -> Pair {
    let vectors = states.as_chunks::<8>().0;
    // SAFETY: vectors of states, of the table and of what takes part have 32 bytes.
    let before = |vector: usize| unsafe { read(vectors[vector].as_ptr().cast()) };
    let (before0, before1) = (before(4 * PAIR + half), before(4 * PAIR + 2 + half));
    // SAFETY: as above.
    let numbers = |symbol: usize| unsafe { _mm256_shuffle_epi8(tables, read(NUMBERS[symbol].as_ptr())) };
    let (entry0, mut next0) = look_up::<GATHERS>(entries, before0, numbers(2 * PAIR));
    let (entry1, mut next1) = look_up::<GATHERS>(entries, before1, numbers(2 * PAIR + 1));
    if !WHOLE {
        // SAFETY: as above.
        let active = |vector: usize| unsafe { read(active[vector].as_ptr().cast()) };
        next0 = _mm256_blendv_epi8(before0, next0, active(4 * PAIR + half));
        next1 = _mm256_blendv_epi8(before1, next1, active(4 * PAIR + 2 + half));
    }
    Pair { entries: [entry0, entry1], next: [next0, next1] }
}

/// Twice 8 states that follow, not yet refilled, and the entries that they follow from.
struct Pair {
    entries: [__m256i; 2],
    next: [__m256i; 2],
}

/// Refills twice 8 states, whose words come in turn, and puts them in their places. Returns the bytes of words that were taken.
///
/// # Safety
/// 48 bytes must be readable from `words`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn refill<const PAIR: usize>(
    states: &mut [u32; LANES],
    half: usize,
    [next0, next1]: [__m256i; 2],
    words: *const u8,
) -> usize {
    let (first, second) = (32 * PAIR + 8 * half, 32 * PAIR + 16 + 8 * half);
    // SAFETY: two times 8 states are writable, `first` and `second` being at most 40 and 56; of the words, 16 bytes from at most the
    // eighth are read twice.
    unsafe {
        // No state reaches 2^31, so that they compare as signed numbers.
        let bound = _mm256_set1_epi32(STATE_LOW as i32);
        let (low0, low1) = (_mm256_cmpgt_epi32(bound, next0), _mm256_cmpgt_epi32(bound, next1));
        // In the lower half of each lane what the first takes, above it the second: eight bits for each half of the vector.
        let zero = _mm256_setzero_si256();
        let low = _mm256_packs_epi16(_mm256_blend_epi16::<0xAA>(low0, low1), zero);
        let mask = _mm256_movemask_epi8(low).cast_unsigned();
        let (front, back) = (mask & 0xFF, mask >> 16);
        let middle = 2 * front.count_ones() as usize;
        let fresh = _mm256_set_m128i(expand(words.add(middle), back), expand(words, front));
        let sixteen = _mm256_set1_epi32(16);
        let next0 = _mm256_or_si256(
            _mm256_sllv_epi32(next0, _mm256_and_si256(low0, sixteen)),
            _mm256_blend_epi16::<0xAA>(fresh, zero),
        );
        let next1 =
            _mm256_or_si256(_mm256_sllv_epi32(next1, _mm256_and_si256(low1, sixteen)), _mm256_srli_epi32::<16>(fresh));
        write(states.as_mut_ptr().add(first).cast::<u8>(), next0);
        write(states.as_mut_ptr().add(second).cast::<u8>(), next1);
        middle + 2 * back.count_ones() as usize
    }
}

/// Reads the symbols of 64 states; `tables` are their tables, times four and at most the last. Returns them and the bytes of
/// words that were taken.
///
/// # Safety
/// [`WORDS_BYTES`] must be readable from `words`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn symbols_from<const WHOLE: bool, const GATHERS: bool, const SITE: usize>(
    entries: &[u32],
    states: &mut [u32; LANES],
    tables: [__m256i; 2],
    words: *const u8,
    active: &Active,
) -> ([__m256i; 2], usize) {
    // SAFETY: the caller's promise: each refill takes at most 32 bytes.
    unsafe {
        if GATHERS {
            // The order that was measured on Intel's processors.
            let front0 = look_up_pair::<WHOLE, GATHERS, 0>(entries, states, 0, tables[0], active);
            let a = refill::<0>(states, 0, front0.next, words);
            let front1 = look_up_pair::<WHOLE, GATHERS, 0>(entries, states, 1, tables[1], active);
            let b = a + refill::<0>(states, 1, front1.next, words.add(a));
            let back0 = look_up_pair::<WHOLE, GATHERS, 1>(entries, states, 0, tables[0], active);
            let c = b + refill::<1>(states, 0, back0.next, words.add(b));
            let back1 = look_up_pair::<WHOLE, GATHERS, 1>(entries, states, 1, tables[1], active);
            let d = c + refill::<1>(states, 1, back1.next, words.add(c));
            return ([join(front0.entries, back0.entries), join(front1.entries, back1.entries)], d);
        }
        // Loads wait for nothing but the states: all of them come first, so that the processor has them in its window at once.
        let front0 = look_up_pair::<WHOLE, GATHERS, 0>(entries, states, 0, tables[0], active);
        let front1 = look_up_pair::<WHOLE, GATHERS, 0>(entries, states, 1, tables[1], active);
        let back0 = look_up_pair::<WHOLE, GATHERS, 1>(entries, states, 0, tables[0], active);
        let back1 = look_up_pair::<WHOLE, GATHERS, 1>(entries, states, 1, tables[1], active);
        let a = refill::<0>(states, 0, front0.next, words);
        let b = a + refill::<0>(states, 1, front1.next, words.add(a));
        let c = b + refill::<1>(states, 0, back0.next, words.add(b));
        let d = c + refill::<1>(states, 1, back1.next, words.add(c));
        ([join(front0.entries, back0.entries), join(front1.entries, back1.entries)], d)
    }
}

/// The low bytes of four vectors of entries, side by side.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn join(front: [__m256i; 2], back: [__m256i; 2]) -> __m256i {
    let even = _mm256_blend_epi16::<0xAA>(front[0], _mm256_slli_epi32::<16>(back[0]));
    let odd = _mm256_blend_epi16::<0xAA>(_mm256_slli_epi32::<8>(front[1]), _mm256_slli_epi32::<24>(back[1]));
    _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi32(0x00FF_00FF)), odd)
}

/// Reads the values of `count` states, at most 64; `tables` are table numbers times four. `None` if a stream leaves the file.
/// `SITE` is a number of its own for each caller, so that it is compiled into them (see `notes.md`).
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn symbols<const GATHERS: bool, const SITE: usize>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: [__m256i; 2],
    count: usize,
    active: &Active,
) -> Option<[__m256i; 2]> {
    let last = _mm256_set1_epi8((4 * last_table(entries).min(63)).cast_signed());
    let tables = [_mm256_min_epu8(tables[0], last), _mm256_min_epu8(tables[1], last)];
    // Near the end of the file whole vectors cannot be loaded, but from a copy.
    let (copy, rest) = (&mut None, data.get(plane.words..)?);
    let words = rest.first_chunk().unwrap_or_else(|| copy.insert(filled_up(rest)));
    // SAFETY: as many bytes as are needed are there.
    let (values, taken) = unsafe {
        if count >= LANES {
            symbols_from::<true, GATHERS, SITE>(entries, &mut plane.states, tables, words.as_ptr(), active)
        } else {
            symbols_from::<false, GATHERS, SITE>(entries, &mut plane.states, tables, words.as_ptr(), active)
        }
    };
    if taken > rest.len() {
        return None;
    }
    plane.words += taken;
    let all = _mm256_set1_epi8(ESCAPE.cast_signed());
    let masks = [
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(values[0], all)).cast_unsigned(),
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(values[1], all)).cast_unsigned(),
    ];
    let escaped = u64::from(masks[0]) | u64::from(masks[1]) << 32;
    let escaped = if count >= LANES { escaped } else { escaped & ((1 << count) - 1) };
    if escaped == 0 { Some(values) } else { with_escaped(data, plane, values, escaped) }
}

/// The last words of a file, and zeros.
#[cold]
fn filled_up(rest: &[u8]) -> [u8; WORDS_BYTES] {
    let mut words = [0; WORDS_BYTES];
    words[..rest.len()].copy_from_slice(rest);
    words
}

/// Puts escaped values in their places.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn with_escaped(data: &[u8], plane: &mut Plane, values: [__m256i; 2], mut escaped: u64) -> Option<[__m256i; 2]> {
    let mut bytes = [0u8; LANES];
    let from = data.get(plane.escapes..plane.escapes + escaped.count_ones() as usize)?;
    plane.escapes += from.len();
    // SAFETY: the array has 64 bytes.
    unsafe {
        write(bytes.as_mut_ptr(), values[0]);
        write(bytes.as_mut_ptr().add(32), values[1]);
    }
    for &value in from {
        bytes[escaped.trailing_zeros() as usize & 63] = value;
        escaped &= escaped - 1;
    }
    // SAFETY: as above.
    unsafe { Some([read(bytes.as_ptr()), read(bytes.as_ptr().add(32))]) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    if gathers() {
        decode_by::<true>(entries, data, planes, phase)
    } else {
        decode_by::<false>(entries, data, planes, phase)
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn decode_by<const GATHERS: bool>(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    let active = activity(count % LANES);
    for position in (0..count).step_by(LANES) {
        for ((plane, tables), values) in planes.iter_mut().zip(tables).zip(values.iter_mut()) {
            let (Some(tables), Some(values)) = (
                tables.get(start + position..).and_then(<[u8]>::first_chunk::<LANES>),
                values.get_mut(start + position..).and_then(<[u8]>::first_chunk_mut::<LANES>),
            ) else {
                return false;
            };
            // SAFETY: the references are to 64 readable and writable bytes.
            unsafe {
                let tables = [four_times(read(tables.as_ptr())), four_times(read(tables.as_ptr().add(32)))];
                let Some(symbols) = symbols::<GATHERS, 0>(entries, data, plane, tables, count - position, &active)
                else {
                    return false;
                };
                write(values.as_mut_ptr(), symbols[0]);
                write(values.as_mut_ptr().add(32), symbols[1]);
            }
        }
    }
    true
}

/// Four times each byte, which is below 64.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn four_times(bytes: __m256i) -> __m256i {
    _mm256_and_si256(_mm256_slli_epi16::<2>(bytes), _mm256_set1_epi8(-4))
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode_narrow(
    coded: Coded<'_>,
    planes: &mut [Plane],
    part: Part<'_>,
    rows: &mut Rows<u8>,
    tables: &mut [Vec<u8>],
) -> bool {
    // First the predictions and tables of all samples, then the symbols: so nothing but symbols is in the processor's window
    // while it waits for them.
    let sharp = part.predictor == Predictor::Sharp;
    let mut start = 0;
    for &phase in part.phases {
        // How to predict: 0 and 1 from above, 2 and 3 between neighbors; odd numbers sharply.
        match phase {
            0 if sharp => prepare::<1>(coded, part, phase, start, rows, tables),
            0 => prepare::<0>(coded, part, phase, start, rows, tables),
            2 => prepare::<3>(coded, part, phase, start, rows, tables),
            _ if sharp => prepare::<3>(coded, part, phase, start, rows, tables),
            _ => prepare::<2>(coded, part, phase, start, rows, tables),
        }
        start += part.counts[phase].next_multiple_of(LANES);
    }
    let mut start = 0;
    for &phase in part.phases {
        let good = if gathers() {
            add_symbols::<true>(coded, planes, part, phase, start, rows, tables)
        } else {
            add_symbols::<false>(coded, planes, part, phase, start, rows, tables)
        };
        if !good {
            return false;
        }
        start += part.counts[phase].next_multiple_of(LANES);
    }
    true
}

/// Puts the predictions of a phase where its samples will be, and four times the tables of its symbols into `tables`, from
/// `start`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn prepare<const HOW: usize>(
    coded: Coded<'_>,
    part: Part<'_>,
    phase: usize,
    start: usize,
    rows: &mut Rows<u8>,
    tables: &mut [Vec<u8>],
) {
    let count = part.counts[phase].next_multiple_of(32);
    for channel in 0..part.channels {
        let numbers = u64::from_le_bytes(coded.activities[channel].tables);
        let by_level = four_times(_mm256_set1_epi64x(numbers.cast_signed()));
        let (out, near) = rows.current[channel].with_neighbors(phase, &rows.above[channel], count);
        let Neighbors { left, right, top, top_left, top_right } = near;
        let near = [top.as_ptr(), top_left.as_ptr(), top_right.as_ptr(), left.as_ptr(), right.as_ptr()];
        let skipped = start + unaligned(&tables[channel]);
        let tables = &mut tables[channel][skipped..skipped + count];
        for position in (0..count).step_by(32) {
            // SAFETY: all rows have `count` bytes, a multiple of 32; `left` and `right` are read only when there are such (not
            // in phase 0, whose `HOW` is below 2).
            unsafe {
                let (prediction, activity) = predict::<HOW>(&near, position);
                write(tables.as_mut_ptr().add(position), _mm256_shuffle_epi8(by_level, level(activity)));
                write(out.as_mut_ptr().add(position), prediction);
            }
        }
    }
}

/// Reads the symbols of a phase and adds them to the predictions.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn add_symbols<const GATHERS: bool>(
    coded: Coded<'_>,
    planes: &mut [Plane],
    part: Part<'_>,
    phase: usize,
    start: usize,
    rows: &mut Rows<u8>,
    tables: &[Vec<u8>],
) -> bool {
    let (count, padded) = (part.counts[phase], part.counts[phase].next_multiple_of(LANES));
    let channels = part.channels.min(planes.len());
    let active = activity(count % LANES);
    let mut buffers = [(std::ptr::null_mut(), std::ptr::null()); 4];
    for (channel, buffers) in buffers.iter_mut().enumerate().take(channels) {
        let samples = rows.current[channel].at_mut(phase, padded);
        let start = start + unaligned(&tables[channel]);
        *buffers = (samples.as_mut_ptr(), tables[channel][start..start + padded].as_ptr());
    }
    for position in (0..count).step_by(LANES) {
        for (&(samples, tables), plane) in buffers.iter().zip(&mut planes[..channels]) {
            // SAFETY: both buffers have the count rounded up to 64.
            unsafe {
                let (samples, tables) = (samples.add(position), tables.add(position));
                let tables = [read(tables), read(tables.add(32))];
                let Some(symbols) =
                    symbols::<GATHERS, 1>(coded.entries, coded.data, plane, tables, count - position, &active)
                else {
                    return false;
                };
                write(samples, _mm256_add_epi8(read(samples), unzigzag(symbols[0])));
                let samples = samples.add(32);
                write(samples, _mm256_add_epi8(read(samples), unzigzag(symbols[1])));
            }
        }
    }
    for current in &mut rows.current[..channels] {
        current.extend(phase, part.counts);
    }
    true
}

/// The predictions and activities of 32 samples, given the rows above, above to the left and right, left and right.
///
/// # Safety
/// From `position`, 32 bytes of each row must be readable; those to the left and right only if `HOW` is 2 or 3.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn predict<const HOW: usize>(near: &[*const u8; 5], position: usize) -> (__m256i, __m256i) {
    // SAFETY: the caller's promise.
    let (here, top_left, top_right) =
        unsafe { (read(near[0].add(position)), read(near[1].add(position)), read(near[2].add(position))) };
    if HOW < 2 {
        let activity = _mm256_adds_epu8(distance(here, top_left), distance(here, top_right));
        let prediction =
            if HOW == 1 { top::<true>(top_left, here, top_right) } else { top::<false>(top_left, here, top_right) };
        return (prediction, activity);
    }
    // SAFETY: the caller's promise.
    let (left, right) = unsafe { (read(near[3].add(position)), read(near[4].add(position))) };
    let (middle, middle_above) = (_mm256_avg_epu8(left, right), _mm256_avg_epu8(top_left, top_right));
    let activity = _mm256_avg_epu8(distance(left, right), distance(middle, middle_above));
    let activity = _mm256_adds_epu8(activity, distance(here, middle_above));
    let prediction = if HOW == 3 {
        between::<true>(middle, here, middle_above)
    } else {
        between::<false>(middle, here, middle_above)
    };
    (prediction, activity)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn distance(a: __m256i, b: __m256i) -> __m256i {
    _mm256_sub_epi8(_mm256_max_epu8(a, b), _mm256_min_epu8(a, b))
}
