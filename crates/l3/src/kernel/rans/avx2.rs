//! Interleaved rANS decoding with AVX2: eight vectors of 8 states per plane, the planes in turn.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm256_add_epi32, _mm256_and_si256,
    _mm256_blendv_epi8, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cvtepu8_epi32,
    _mm256_cvtepu16_epi32, _mm256_i32gather_epi32, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_ps,
    _mm256_mullo_epi32, _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_shuffle_ps, _mm256_sll_epi32, _mm256_slli_epi32, _mm256_srl_epi32, _mm256_srli_epi32,
    _mm256_storeu_si256, _pdep_u32,
};

use super::{ESCAPE, LANES, Phase, Plane, SLOT_BITS, SLOTS, lane, last_table};

/// For each mask of lanes that read a word: which of the next words each lane takes.
static EXPAND: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut taken) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][lane] = taken;
                taken += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// One step of 8 states: the entries, and the states that follow, not yet refilled. `numbers` are table numbers.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn look_up(entries: &[u32], states: __m256i, numbers: __m256i) -> (__m256i, __m256i) {
    let slots = _mm256_and_si256(states, _mm256_set1_epi32(SLOTS as i32 - 1));
    let last = _mm256_set1_epi32(i32::from(last_table(entries)));
    let numbers = _mm256_min_epu32(numbers, last);
    let index = _mm256_or_si256(_mm256_slli_epi32::<{ SLOT_BITS as i32 }>(numbers), slots);
    // SAFETY: tables were clamped to the last, and a slot is below a table's length, so all indices are within `entries`.
    let entry = unsafe { _mm256_i32gather_epi32::<4>(entries.as_ptr().cast(), index) };
    let frequency = _mm256_and_si256(_mm256_srli_epi32::<8>(entry), _mm256_set1_epi32(0xFFF));
    let product = _mm256_mullo_epi32(frequency, _mm256_srli_epi32::<{ SLOT_BITS as i32 }>(states));
    (entry, _mm256_add_epi32(product, _mm256_srli_epi32::<20>(entry)))
}

/// The words from `offset`, at most 16, at the lanes of a mask.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn expand(words: &[u8; 32], offset: usize, mask: u32) -> __m256i {
    debug_assert!(offset <= 16, "within the words");
    // SAFETY: `offset` is made to be at most 16, so 16 bytes follow it; the other reference is to 8 bytes; the loads need no
    // alignment.
    let (words, order) = unsafe {
        (
            _mm_loadu_si128(words.as_ptr().add(offset.min(16)).cast()),
            _mm_loadl_epi64(EXPAND[mask as usize & 0xFF].as_ptr().cast()),
        )
    };
    _mm256_permutevar8x32_epi32(_mm256_cvtepu16_epi32(words), _mm256_cvtepu8_epi32(order))
}

/// Gives each of twice 8 states below the bound a word, the first and second eight in turn; returns the bytes read.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn refill(next: [__m256i; 2], words: &[u8; 32], active: [__m256i; 2]) -> ([__m256i; 2], usize) {
    // Below 2^16: nothing in the upper half.
    let zero = _mm256_setzero_si256();
    let low = [
        _mm256_and_si256(_mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(next[0]), zero), active[0]),
        _mm256_and_si256(_mm256_cmpeq_epi32(_mm256_srli_epi32::<16>(next[1]), zero), active[1]),
    ];
    let masks = [
        _mm256_movemask_ps(_mm256_castsi256_ps(low[0])) as u32,
        _mm256_movemask_ps(_mm256_castsi256_ps(low[1])) as u32,
    ];
    let mask = _pdep_u32(masks[0], 0x5555) | _pdep_u32(masks[1], 0xAAAA);
    // The first eight positions take the first words; the other eight begin where those end.
    let split = (mask & 0xFF).count_ones() as usize;
    let (first, last) = (expand(words, 0, mask & 0xFF), expand(words, 2 * split, mask >> 8 & 0xFF));
    let (first, last) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(last));
    // Positions alternate between the two vectors: even ones are the first's.
    let even = _mm256_castps_si256(_mm256_shuffle_ps::<0x88>(first, last));
    let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0xDD>(first, last));
    let fresh = [_mm256_permute4x64_epi64::<0xD8>(even), _mm256_permute4x64_epi64::<0xD8>(odd)];
    let refilled = [
        _mm256_or_si256(_mm256_slli_epi32::<16>(next[0]), fresh[0]),
        _mm256_or_si256(_mm256_slli_epi32::<16>(next[1]), fresh[1]),
    ];
    let next = [_mm256_blendv_epi8(next[0], refilled[0], low[0]), _mm256_blendv_epi8(next[1], refilled[1], low[1])];
    (next, mask.count_ones() as usize * 2)
}

/// For each state, all ones if it takes part in reading `count` symbols.
#[inline(always)]
fn activity(count: usize) -> [[i32; 8]; 8] {
    let mut active = [[0; 8]; 8];
    for index in 0..count.min(LANES) {
        active[lane(index) / 8][lane(index) % 8] = -1;
    }
    active
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(words: &[i32; 8]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Reads the symbols of 64 states. `None` if the words leave the file.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn symbols(
    entries: &[u32],
    data: &[u8],
    plane: &mut Plane,
    tables: &[u8; LANES],
    values: &mut [u8; LANES],
    active: &[[i32; 8]; 8],
) -> Option<()> {
    // Lane `j` of the two halves holds symbols `4 j` to `4 j + 3`.
    let mut out = [_mm256_setzero_si256(); 2];
    for step in 0..4 {
        let (pair, half) = (step / 2, step % 2);
        // SAFETY: 32 bytes of the tables are readable, and the load needs no alignment.
        let numbers = unsafe { _mm256_loadu_si256(tables.as_ptr().add(32 * half).cast()) };
        let groups = [4 * pair + half, 4 * pair + 2 + half];
        let zero = _mm256_setzero_si256();
        let (mut states, mut next) = ([zero; 2], [zero; 2]);
        for which in 0..2 {
            let shift = _mm_cvtsi32_si128(8 * (2 * pair + which) as i32);
            let numbers = _mm256_and_si256(_mm256_srl_epi32(numbers, shift), _mm256_set1_epi32(0xFF));
            // SAFETY: 8 states are 32 readable bytes, and the load needs no alignment.
            states[which] = unsafe { _mm256_loadu_si256(plane.states.as_ptr().add(8 * groups[which]).cast()) };
            let entry;
            (entry, next[which]) = look_up(entries, states[which], numbers);
            let symbol = _mm256_and_si256(entry, _mm256_set1_epi32(0xFF));
            out[half] = _mm256_or_si256(out[half], _mm256_sll_epi32(symbol, shift));
        }
        let active = [load(&active[groups[0]]), load(&active[groups[1]])];
        let words = data.get(plane.words..)?.first_chunk::<32>()?;
        let (next, read) = refill(next, words, active);
        plane.words += read;
        for which in 0..2 {
            let next = _mm256_blendv_epi8(states[which], next[which], active[which]);
            // SAFETY: 8 states are 32 writable bytes, and the store needs no alignment.
            unsafe { _mm256_storeu_si256(plane.states.as_mut_ptr().add(8 * groups[which]).cast(), next) };
        }
    }
    for (half, out) in out.into_iter().enumerate() {
        // SAFETY: 32 bytes of the values are writable, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(values.as_mut_ptr().add(32 * half).cast(), out) };
    }
    Some(())
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    let Phase { tables, values, start, count } = phase;
    let (whole, last) = (activity(LANES), activity(count % LANES));
    for position in (0..count).step_by(LANES) {
        let active = if count - position >= LANES { &whole } else { &last };
        for ((plane, tables), values) in planes.iter_mut().zip(tables).zip(values.iter_mut()) {
            let (Some(tables), Some(values)) = (
                tables.get(start + position..).and_then(<[u8]>::first_chunk),
                values.get_mut(start + position..).and_then(<[u8]>::first_chunk_mut),
            ) else {
                return false;
            };
            if symbols(entries, data, plane, tables, values, active).is_none() {
                return false;
            }
        }
    }
    for (plane, values) in planes.iter_mut().zip(values) {
        for value in values[start..start + count].iter_mut().filter(|value| **value == ESCAPE) {
            let Some(&escaped) = data.get(plane.escapes) else { return false };
            *value = escaped;
            plane.escapes += 1;
        }
    }
    true
}
