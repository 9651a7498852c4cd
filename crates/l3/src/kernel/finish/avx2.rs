//! Finishing a row with AVX2: 32 pixels at a time.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadl_epi64, _mm_storeu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_castsi256_si128,
    _mm256_cvtepu8_epi32, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srli_epi16, _mm256_storeu_si256, _mm256_sub_epi8, _mm256_xor_si256,
};

use crate::{
    header::ColorTransform,
    phases::{Phases, counts},
};

/// For each of the three 16-byte parts of 16 interleaved pixels and for each channel: which pixel each byte takes, in both
/// halves of a vector (0x80: none).
static SOURCES: [[[u8; 32]; 3]; 3] = {
    let mut table = [[[0x80; 32]; 3]; 3];
    let mut byte = 0;
    while byte < 48 {
        table[byte / 16][byte % 3][byte % 16] = (byte / 3) as u8;
        table[byte / 16][byte % 3][16 + byte % 16] = (byte / 3) as u8;
        byte += 1;
    }
    table
};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is to 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn store(bytes: &mut [u8; 32], value: __m256i) {
    // SAFETY: the reference is to 32 writable bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), value) };
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn store_half(bytes: &mut [u8; 16], value: __m128i) {
    // SAFETY: the reference is to 16 writable bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) };
}

/// 8 bytes, each in the low byte of a 32-bit lane.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn widen(row: &[u8; 8]) -> __m256i {
    // SAFETY: the reference is to 8 readable bytes, and the load needs no alignment.
    _mm256_cvtepu8_epi32(unsafe { _mm_loadl_epi64(row.as_ptr().cast()) })
}

/// Four rows of 8 bytes, interleaved to 32.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn interleave8(rows: [&[u8; 8]; 4]) -> __m256i {
    let (a, b) = (widen(rows[0]), _mm256_slli_epi32::<8>(widen(rows[1])));
    let (c, d) = (_mm256_slli_epi32::<16>(widen(rows[2])), _mm256_slli_epi32::<24>(widen(rows[3])));
    _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d))
}

/// The four phases of a plane in pieces of 8.
type Pieces<'a> = [&'a [[u8; 8]]; 4];

#[inline(always)]
fn pieces(plane: &Phases<u8>, width: usize) -> Pieces<'_> {
    let count = counts(width)[0].next_multiple_of(8);
    [0, 1, 2, 3].map(|phase| plane.at(phase, 0, count).as_chunks::<8>().0)
}

/// 32 pixels of a plane.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn merge(pieces: &Pieces<'_>, index: usize) -> __m256i {
    interleave8([&pieces[0][index], &pieces[1][index], &pieces[2][index], &pieces[3][index]])
}

/// Undoes the transform on 32 pixels.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn inverse(transform: ColorTransform, [first, u, third]: [__m256i; 3]) -> [__m256i; 3] {
    if transform == ColorTransform::None {
        return [first, u, third];
    }
    let (luma, shift) = transform.parameters();
    let half = _mm256_set1_epi8(-128);
    let v = match shift {
        1 => {
            let shifted = _mm256_and_si256(_mm256_srli_epi16::<1>(u), _mm256_set1_epi8(0x7F));
            _mm256_add_epi8(third, _mm256_sub_epi8(shifted, _mm256_set1_epi8(64)))
        }
        2 => {
            let shifted = _mm256_and_si256(_mm256_srli_epi16::<2>(u), _mm256_set1_epi8(0x3F));
            _mm256_add_epi8(third, _mm256_sub_epi8(shifted, _mm256_set1_epi8(32)))
        }
        _ => third,
    };
    let green = if luma {
        let sum = _mm256_xor_si256(_mm256_add_epi8(u, v), half);
        let shifted = _mm256_and_si256(_mm256_srli_epi16::<2>(sum), _mm256_set1_epi8(0x3F));
        _mm256_sub_epi8(first, _mm256_sub_epi8(shifted, _mm256_set1_epi8(32)))
    } else {
        first
    };
    let restore = |difference| _mm256_xor_si256(_mm256_add_epi8(difference, green), half);
    [restore(u), green, restore(v)]
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish1(plane: &Phases<u8>, out: &mut [u8]) {
    let plane = pieces(plane, out.len());
    for (index, out) in out.chunks_mut(32).enumerate() {
        let pixels = merge(&plane, index);
        if let Some(whole) = out.first_chunk_mut() {
            store(whole, pixels);
        } else {
            let mut last = [0; 32];
            store(&mut last, pixels);
            out.copy_from_slice(&last[..out.len()]);
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish3(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    let width = out.len() / 3;
    let planes = [pieces(planes[0], width), pieces(planes[1], width), pieces(planes[2], width)];
    for (index, out) in out.chunks_mut(96).enumerate() {
        let merged = [merge(&planes[0], index), merge(&planes[1], index), merge(&planes[2], index)];
        let pixels = inverse(transform, merged);
        let mut last = [[0; 16]; 6];
        let (parts, whole) = match out.first_chunk_mut::<96>() {
            Some(whole) => (whole.as_chunks_mut::<16>().0, true),
            None => (last.as_mut_slice(), false),
        };
        for (k, sources) in SOURCES.iter().enumerate() {
            let red = _mm256_shuffle_epi8(pixels[0], load(&sources[0]));
            let green = _mm256_shuffle_epi8(pixels[1], load(&sources[1]));
            let blue = _mm256_shuffle_epi8(pixels[2], load(&sources[2]));
            let part = _mm256_or_si256(_mm256_or_si256(red, green), blue);
            // The low half has part `k` of the first 16 pixels, the high half that of the next 16.
            store_half(&mut parts[k], _mm256_castsi256_si128(part));
            store_half(&mut parts[k + 3], _mm256_extracti128_si256::<1>(part));
        }
        if !whole {
            out.copy_from_slice(&last.as_flattened()[..out.len()]);
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish4(transform: ColorTransform, planes: [&Phases<u8>; 4], out: &mut [u8]) {
    let width = out.len() / 4;
    let planes =
        [pieces(planes[0], width), pieces(planes[1], width), pieces(planes[2], width), pieces(planes[3], width)];
    for (index, out) in out.chunks_mut(128).enumerate() {
        let merged = [merge(&planes[0], index), merge(&planes[1], index), merge(&planes[2], index)];
        let mut rows = [[0; 32]; 4];
        for (row, vector) in rows.iter_mut().zip(inverse(transform, merged)) {
            store(row, vector);
        }
        store(&mut rows[3], merge(&planes[3], index));
        let [red, green, blue, alpha] = &rows;
        let (red, green, blue, alpha) =
            (red.as_chunks().0, green.as_chunks().0, blue.as_chunks().0, alpha.as_chunks().0);
        let mut last = [[0; 32]; 4];
        let (parts, whole) = match out.first_chunk_mut::<128>() {
            Some(whole) => (whole.as_chunks_mut::<32>().0, true),
            None => (last.as_mut_slice(), false),
        };
        for (k, part) in parts.iter_mut().enumerate() {
            store(part, interleave8([&red[k], &green[k], &blue[k], &alpha[k]]));
        }
        if !whole {
            out.copy_from_slice(&last.as_flattened()[..out.len()]);
        }
    }
}
