//! Interleaved rANS decoding with AVX-512: four vectors of 16 states per plane, the planes in turn, so that the latency of one
//! plane's table lookups is covered by the others. For 8-bit samples everything from activity to sample happens in registers.
//!
//! As with AVX2, entries are looked up by the gather instruction or by loads one by one, whichever is faster on the processor.

use std::arch::x86_64::{
    __m512i, _mm256_set_m128i, _mm512_add_epi8, _mm512_add_epi32, _mm512_adds_epu8, _mm512_and_si512, _mm512_avg_epu8,
    _mm512_castsi256_si512, _mm512_castsi512_si128, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu32_mask,
    _mm512_cmplt_epu32_mask, _mm512_cvtepu32_ps, _mm512_cvttps_epu32, _mm512_div_ps, _mm512_extracti32x4_epi32,
    _mm512_i32gather_epi32, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_add_epi32, _mm512_mask_blend_epi16,
    _mm512_mask_cmpge_epu32_mask, _mm512_mask_expand_epi8, _mm512_mask_i32gather_epi32, _mm512_mask_mov_epi32,
    _mm512_mask_shldi_epi32, _mm512_mask_srli_epi32, _mm512_mask_storeu_epi8, _mm512_mask_storeu_epi16,
    _mm512_mask_sub_epi32, _mm512_maskz_compress_epi8, _mm512_maskz_compress_epi16, _mm512_maskz_expand_epi16,
    _mm512_maskz_loadu_epi8, _mm512_max_epu8, _mm512_min_epu8, _mm512_movepi32_mask, _mm512_mullo_epi32,
    _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi16, _mm512_slli_epi32, _mm512_srli_epi32,
    _mm512_storeu_si512, _mm512_sub_epi8, _mm512_sub_epi32, _mm512_ternarylogic_epi32, _pdep_u32, _pdep_u64,
};

use super::{
    Coded, EMIT_SHIFT, ESCAPE, LANES, Phase, Plane, SLOT_BITS, SLOTS, STATE_LOW, Source, Stream, avx2::load_four,
    gathers, last_table, unaligned,
};
use crate::{
    header::Predictor,
    kernel::predict::{
        Part, THRESHOLDS,
        avx512::{between, load, read, top, unzigzag, write},
    },
    phases::{Neighbors, ORDER, counts},
    scratch::Rows,
};

/// For each of four symbols: brings its table, in a byte of each lane, to the second byte, with zeros around.
static NUMBERS: [[u8; 64]; 4] = {
    let mut table = [[0x80; 64]; 4];
    let mut at = 0;
    while at < 64 {
        table[at % 4][at / 4 * 4 + 1] = (at % 16) as u8;
        at += 1;
    }
    table
};

/// The entries of 64 states, and the states that follow, not yet refilled: those in `low` take a word each.
struct Looked {
    entries: [__m512i; 4],
    next: [__m512i; 4],
    low: [u16; 4],
}

/// Looks up what `count` states, at most 64, stand for; the bytes of `tables` are four times their tables.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn look_up<const WHOLE: bool, const GATHERS: bool, const SITE: usize>(
    entries: &[u32],
    plane: &Plane,
    tables: __m512i,
    count: usize,
) -> Looked {
    let tables = _mm512_min_epu8(tables, _mm512_set1_epi8((4 * last_table(entries).min(63)).cast_signed()));
    let slots = _mm512_set1_epi32((SLOTS - 1) as i32);
    let zero = _mm512_setzero_si512();
    let mut looked = Looked { entries: [zero; 4], next: [zero; 4], low: [0; 4] };
    for (k, numbers) in NUMBERS.iter().enumerate() {
        // SAFETY: 16 states are 64 readable bytes, and the load needs no alignment.
        let states = unsafe { _mm512_loadu_si512(plane.states.as_ptr().add(16 * k).cast()) };
        let numbers = _mm512_shuffle_epi8(tables, load(numbers));
        // `(states & slots) | numbers`.
        let index = _mm512_ternarylogic_epi32::<0xF8>(numbers, states, slots);
        // SAFETY: tables were clamped to the last, and a slot is below a table's length, so all indices are within `entries`.
        let entry = unsafe { gather::<GATHERS>(entries, index) };
        let frequency = _mm512_and_si512(_mm512_srli_epi32::<8>(entry), _mm512_set1_epi32(0xFFF));
        let product = _mm512_mullo_epi32(frequency, _mm512_srli_epi32::<SLOT_BITS>(states));
        let mut next = _mm512_add_epi32(product, _mm512_srli_epi32::<20>(entry));
        let mut low = _mm512_cmplt_epu32_mask(next, _mm512_set1_epi32(STATE_LOW as i32));
        if !WHOLE {
            let active = !(u32::MAX << ((count + 3 - k) / 4)) as u16;
            low &= active;
            next = _mm512_mask_mov_epi32(states, active, next);
        }
        (looked.entries[k], looked.next[k], looked.low[k]) = (entry, next, low);
    }
    looked
}

/// Refills the states that [`look_up`] left, and gives the values of `count` of them. `None` if a stream leaves the file.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn refill<const WHOLE: bool, const SITE: usize>(
    data: &[u8],
    plane: &mut Plane,
    looked: &Looked,
    count: usize,
) -> Option<__m512i> {
    let Looked { entries, next, low } = *looked;
    // Vectors are refilled in pairs, lane by lane: the words of one land in the lower halves of the lanes, of the other above.
    let first = spread(low[0]) | spread(low[1]) << 1;
    let second = spread(low[2]) | spread(low[3]) << 1;
    let middle = plane.words + 2 * first.count_ones() as usize;
    let end = middle + 2 * second.count_ones() as usize;
    if end.max(plane.escapes) + 64 > data.len() {
        return None;
    }
    // SAFETY: 64 bytes are there even after the last word.
    let fresh = unsafe {
        (
            _mm512_maskz_expand_epi16(first, read(data.as_ptr().add(plane.words))),
            _mm512_maskz_expand_epi16(second, read(data.as_ptr().add(middle))),
        )
    };
    plane.words = end;
    let fresh = [_mm512_slli_epi32::<16>(fresh.0), fresh.0, _mm512_slli_epi32::<16>(fresh.1), fresh.1];
    for k in 0..4 {
        // The state moves up by 16 bits, and the upper half of `fresh` comes in below.
        let state = _mm512_mask_shldi_epi32::<16>(next[k], low[k], next[k], fresh[k]);
        // SAFETY: 16 states are 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(plane.states.as_mut_ptr().add(16 * k).cast(), state) };
    }
    // The low bytes of four entries, side by side; `0xCA` takes the second or third operand where the first is 1 or 0.
    let (byte0, low_half) = (_mm512_set1_epi32(0xFF), _mm512_set1_epi32(0xFFFF));
    let even = _mm512_ternarylogic_epi32::<0xCA>(byte0, entries[0], _mm512_slli_epi32::<8>(entries[1]));
    let odd = _mm512_ternarylogic_epi32::<0xCA>(byte0, entries[2], _mm512_slli_epi32::<8>(entries[3]));
    let symbols = _mm512_ternarylogic_epi32::<0xCA>(low_half, even, _mm512_slli_epi32::<16>(odd));
    let escaped = _mm512_cmpeq_epi8_mask(symbols, _mm512_set1_epi8(ESCAPE as i8));
    let escaped = if WHOLE { escaped } else { escaped & u64::MAX >> (LANES - count) };
    // SAFETY: 64 bytes are there, as seen above.
    let values = unsafe { _mm512_loadu_si512(data.as_ptr().add(plane.escapes).cast()) };
    plane.escapes += escaped.count_ones() as usize;
    Some(_mm512_mask_expand_epi8(symbols, escaped, values))
}

/// Reads however many symbols are left, at most 64; the bytes of `tables` are four times their tables. `None` if a stream leaves the file.
///
/// `SITE` is a number of its own for each caller. What has one caller is compiled into it, and vectors stay in registers; what has two is
/// called, and hands them over in memory (see `notes.md`).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn symbols_of<const GATHERS: bool, const SITE: usize>(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: __m512i,
    left: usize,
) -> Option<__m512i> {
    if left >= LANES {
        let looked = look_up::<true, GATHERS, SITE>(entries, plane, tables, LANES);
        refill::<true, SITE>(data, plane, &looked, LANES)
    } else {
        let looked = look_up::<false, GATHERS, SITE>(entries, plane, tables, left);
        refill::<false, SITE>(data, plane, &looked, left)
    }
}

/// Entries by their numbers.
///
/// # Safety
/// They must be there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn gather<const GATHERS: bool>(entries: &[u32], index: __m512i) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        if GATHERS {
            return _mm512_i32gather_epi32::<4>(index, entries.as_ptr().cast());
        }
        let low = load_four(entries, _mm512_castsi512_si128(index));
        let low = _mm256_set_m128i(load_four(entries, _mm512_extracti32x4_epi32::<1>(index)), low);
        let high = load_four(entries, _mm512_extracti32x4_epi32::<2>(index));
        let high = _mm256_set_m128i(load_four(entries, _mm512_extracti32x4_epi32::<3>(index)), high);
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

/// Puts each bit of a mask at twice its index.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn spread(mask: u16) -> u32 {
    _pdep_u32(u32::from(mask), 0x5555_5555)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    if gathers() {
        decode_by::<true>(entries, data, planes, phase)
    } else {
        decode_by::<false>(entries, data, planes, phase)
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn decode_by<const GATHERS: bool>(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    for position in (0..count).step_by(LANES) {
        for ((plane, tables), values) in planes.iter_mut().zip(tables).zip(values.iter_mut()) {
            let (Some(tables), Some(values)) = (
                tables.get(start + position..).and_then(<[u8]>::first_chunk),
                values.get_mut(start + position..).and_then(<[u8]>::first_chunk_mut::<LANES>),
            ) else {
                return false;
            };
            let left = count - position;
            let tables = four_times(load(tables));
            let Some(symbols) = symbols_of::<GATHERS, 0>(entries, data, plane, tables, left) else { return false };
            // SAFETY: the reference is to 64 writable bytes.
            unsafe { write(values.as_mut_ptr(), symbols) };
        }
    }
    true
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
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

/// Four times each byte, which is below 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
pub(super) fn four_times(bytes: __m512i) -> __m512i {
    _mm512_and_si512(_mm512_slli_epi16::<2>(bytes), _mm512_set1_epi8(-4))
}

/// Puts the predictions of a phase where its samples will be, and four times the tables of its symbols into `tables`, from
/// `start`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn prepare<const HOW: usize>(
    coded: Coded<'_>,
    part: Part<'_>,
    phase: usize,
    start: usize,
    rows: &mut Rows<u8>,
    tables: &mut [Vec<u8>],
) {
    let count = part.counts[phase].next_multiple_of(LANES);
    for channel in 0..part.channels {
        let numbers = u64::from_le_bytes(coded.activities[channel].tables).cast_signed();
        let by_activity = four_times(_mm512_permutexvar_epi8(load(&LEVELS), _mm512_set1_epi64(numbers)));
        let (out, near) = rows.current[channel].with_neighbors(phase, &rows.above[channel], count);
        let Neighbors { left, right, top, top_left, top_right } = near;
        let near = [top.as_ptr(), top_left.as_ptr(), top_right.as_ptr(), left.as_ptr(), right.as_ptr()];
        let skipped = start + unaligned(&tables[channel]);
        let tables = &mut tables[channel][skipped..skipped + count];
        for position in (0..count).step_by(LANES) {
            // SAFETY: all rows have `count` bytes, a multiple of 64; `left` and `right` are read only when there are such (not
            // in phase 0, whose `HOW` is below 2).
            unsafe {
                let (prediction, activity) = predict::<HOW>(&near, position);
                let activity = _mm512_min_epu8(activity, _mm512_set1_epi8(63));
                write(tables.as_mut_ptr().add(position), _mm512_permutexvar_epi8(activity, by_activity));
                write(out.as_mut_ptr().add(position), prediction);
            }
        }
    }
}

/// Reads the symbols of a phase and adds them to the predictions.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
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
    let mut buffers = [(std::ptr::null_mut(), std::ptr::null()); 4];
    for (channel, buffers) in buffers.iter_mut().enumerate().take(channels) {
        let samples = rows.current[channel].at_mut(phase, padded);
        let start = start + unaligned(&tables[channel]);
        *buffers = (samples.as_mut_ptr(), tables[channel][start..start + padded].as_ptr());
    }
    for position in (0..count).step_by(LANES) {
        for (&(samples, tables), plane) in buffers.iter().zip(&mut planes[..channels]) {
            // SAFETY: both buffers have the count rounded up to 64.
            let (samples, tables) = unsafe { (samples.add(position), read(tables.add(position))) };
            let Some(symbols) = symbols_of::<GATHERS, 1>(coded.entries, coded.data, plane, tables, count - position)
            else {
                return false;
            };
            // SAFETY: as above.
            unsafe { write(samples, _mm512_add_epi8(read(samples), unzigzag(symbols))) };
        }
    }
    for current in &mut rows.current[..channels] {
        current.extend(phase, part.counts);
    }
    true
}

/// The predictions and activities of 64 samples, given the rows above, above to the left and right, left and right.
///
/// # Safety
/// From `position`, 64 bytes of each row must be readable; those to the left and right only if `HOW` is 2 or 3.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn predict<const HOW: usize>(near: &[*const u8; 5], position: usize) -> (__m512i, __m512i) {
    // SAFETY: the caller's promise.
    let (here, top_left, top_right) =
        unsafe { (read(near[0].add(position)), read(near[1].add(position)), read(near[2].add(position))) };
    if HOW < 2 {
        let activity = _mm512_adds_epu8(distance(here, top_left), distance(here, top_right));
        return (top_of::<HOW>(top_left, here, top_right), activity);
    }
    // SAFETY: the caller's promise.
    let (left, right) = unsafe { (read(near[3].add(position)), read(near[4].add(position))) };
    let (middle, middle_above) = (_mm512_avg_epu8(left, right), _mm512_avg_epu8(top_left, top_right));
    let activity = _mm512_avg_epu8(distance(left, right), distance(middle, middle_above));
    let activity = _mm512_adds_epu8(activity, distance(here, middle_above));
    (between_of::<HOW>(middle, here, middle_above), activity)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn top_of<const HOW: usize>(top_left: __m512i, here: __m512i, top_right: __m512i) -> __m512i {
    if HOW == 1 { top::<true>(top_left, here, top_right) } else { top::<false>(top_left, here, top_right) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn between_of<const HOW: usize>(middle: __m512i, here: __m512i, middle_above: __m512i) -> __m512i {
    if HOW == 3 { between::<true>(middle, here, middle_above) } else { between::<false>(middle, here, middle_above) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn distance(a: __m512i, b: __m512i) -> __m512i {
    _mm512_sub_epi8(_mm512_max_epu8(a, b), _mm512_min_epu8(a, b))
}

/// The level of each activity up to 63: no threshold lies higher.
static LEVELS: [u8; 64] = {
    let mut levels = [0; 64];
    let mut activity = 0;
    while activity < 64 {
        let mut level = 0;
        while level < 7 && activity >= THRESHOLDS[level] as usize {
            level += 1;
        }
        levels[activity] = level as u8;
        activity += 1;
    }
    levels
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode(source: &Source<'_>, stream: &mut Stream) {
    let Source { residuals, contexts, width, .. } = *source;
    let counts = counts(width);
    let map = load(source.map);
    for (residuals, contexts) in residuals.chunks_exact(width).zip(contexts.chunks_exact(width)).rev() {
        let mut end = width;
        for phase in ORDER.into_iter().rev() {
            let start = end - counts[phase];
            for chunk in (start..end).step_by(LANES).rev() {
                let count = (end - chunk).min(LANES);
                let active = u64::MAX >> (LANES - count);
                // SAFETY: only the bytes of the chunk are loaded.
                let (values, contexts) = unsafe {
                    (
                        _mm512_maskz_loadu_epi8(active, residuals[chunk..chunk + count].as_ptr().cast()),
                        _mm512_maskz_loadu_epi8(active, contexts[chunk..chunk + count].as_ptr().cast()),
                    )
                };
                let tables = _mm512_permutexvar_epi8(contexts, map);
                encode_chunk(source.codes, tables, values, count, stream);
            }
            end = start;
        }
    }
}

/// Encodes `count` symbols, at most 64.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn encode_chunk(codes: &[u32], tables: __m512i, values: __m512i, count: usize, stream: &mut Stream) {
    let byte = _mm512_set1_epi32(0xFF);
    let zero = _mm512_setzero_si512();
    let (mut words, mut emit) = ([zero; 4], [0u16; 4]);
    let (mut tables, mut rest, mut escaped) = (tables, values, 0u64);
    for k in 0..4 {
        let active = !(u32::MAX << ((count + 3 - k) / 4)) as u16;
        let index =
            _mm512_or_si512(_mm512_slli_epi32::<8>(_mm512_and_si512(tables, byte)), _mm512_and_si512(rest, byte));
        (tables, rest) = (_mm512_srli_epi32::<8>(tables), _mm512_srli_epi32::<8>(rest));
        // SAFETY: `encode` in the parent module has asserted that there is a code for every value of every table in the map,
        // and lanes that are not active are not loaded.
        let code = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, active, index, codes.as_ptr().cast()) };
        // SAFETY: 16 states are 64 readable bytes, and the load needs no alignment.
        let state = unsafe { _mm512_loadu_si512(stream.states.as_ptr().add(16 * k).cast()) };
        let frequency = _mm512_and_si512(code, _mm512_set1_epi32(0x7FF));
        let high = _mm512_srli_epi32::<EMIT_SHIFT>(state);
        emit[k] = _mm512_mask_cmpge_epu32_mask(active, high, frequency);
        words[k] = state;
        let shifted = _mm512_mask_srli_epi32::<16>(state, emit[k], state);
        let (quotient, remainder) = divide(shifted, frequency);
        let start = _mm512_and_si512(_mm512_srli_epi32::<11>(code), _mm512_set1_epi32(0xF_FFFF));
        let next = _mm512_add_epi32(_mm512_slli_epi32::<SLOT_BITS>(quotient), _mm512_add_epi32(remainder, start));
        let next = _mm512_mask_mov_epi32(state, active, next);
        // SAFETY: 16 states are 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(stream.states.as_mut_ptr().add(16 * k).cast(), next) };
        escaped |= _pdep_u64(u64::from(_mm512_movepi32_mask(code) & active), 0x1111_1111_1111_1111 << k);
    }
    for pair in [1, 0] {
        let [first, second] = [2 * pair, 2 * pair + 1];
        let both = _mm512_mask_blend_epi16(0xAAAA_AAAA, words[first], _mm512_slli_epi32::<16>(words[second]));
        let mask = spread(emit[first]) | spread(emit[second]) << 1;
        let packed = _mm512_maskz_compress_epi16(mask, both);
        let taken = mask.count_ones() as usize;
        stream.words_start -= taken;
        let out = &mut stream.words[stream.words_start..][..taken];
        // SAFETY: only the words of the slice are written.
        unsafe { _mm512_mask_storeu_epi16(out.as_mut_ptr().cast(), ones(taken) as u32, packed) };
    }
    if escaped != 0 {
        let taken = escaped.count_ones() as usize;
        stream.escapes_start -= taken;
        let out = &mut stream.escapes[stream.escapes_start..][..taken];
        let packed = _mm512_maskz_compress_epi8(escaped, values);
        // SAFETY: only the bytes of the slice are written.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), ones(taken), packed) };
    }
}

/// As many ones, at most 64.
#[inline(always)]
fn ones(count: usize) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (64 - count) }
}

/// Quotient and remainder of 32-bit numbers where the quotient is below 2^22. The quotient of rounded floats is then off by at
/// most one, which the remainder tells.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn divide(number: __m512i, by: __m512i) -> (__m512i, __m512i) {
    let quotient = _mm512_cvttps_epu32(_mm512_div_ps(_mm512_cvtepu32_ps(number), _mm512_cvtepu32_ps(by)));
    let remainder = _mm512_sub_epi32(number, _mm512_mullo_epi32(quotient, by));
    let one = _mm512_set1_epi32(1);
    let below = _mm512_movepi32_mask(remainder);
    let quotient = _mm512_mask_sub_epi32(quotient, below, quotient, one);
    let remainder = _mm512_mask_add_epi32(remainder, below, remainder, by);
    let above = _mm512_cmpge_epu32_mask(remainder, by);
    let quotient = _mm512_mask_add_epi32(quotient, above, quotient, one);
    (quotient, _mm512_mask_sub_epi32(remainder, above, remainder, by))
}
