//! Rows of bytes, moved in vectors.

use std::arch::x86_64::{__m256i, _mm256_or_si256, _mm256_set1_epi8, _mm256_shuffle_epi8};

use super::colors::{BLOCK, HALF, NOTHING, both, store_halves, two_halves};
use super::{VECTOR, load_vector, store_vector};
use crate::kernels::rows::mirror_rgb_body;

/// So many vectors are read before they are written.
const AT_ONCE: usize = 4;

/// From so many bytes on, both do not stay in a processor's own cache, and the C library knows better.
pub(in crate::kernels) const COPIED_BYTES_MAX: usize = 1 << 18;

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn copy(from: &[u8], to: &mut [u8]) {
    if from.len() > COPIED_BYTES_MAX {
        to.copy_from_slice(from);
    } else {
        copy_row(from, to);
    }
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn flip_rows(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).rev().zip(to.chunks_exact_mut(row_bytes)) {
        copy_row(from, to);
    }
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn pad_rows(from: &[u8], row_bytes: usize, to: &mut [u8], margin_bytes: usize, value: u8) {
    let values = _mm256_set1_epi8(value.cast_signed());
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes + margin_bytes)) {
        let (row, margin) = to.split_at_mut(row_bytes);
        copy_row(from, row);
        fill_row(margin, values, value);
    }
}

/// Where in one of three halves the bytes of another are, if the 16 pixels of all three are mirrored.
static MIRRORED: [[[u8; HALF]; 3]; 3] = {
    let mut places = [[[NOTHING; HALF]; 3]; 3];
    let mut byte = 0;
    while byte < 3 * HALF {
        let from = 3 * (HALF - 1 - byte / 3) + byte % 3;
        places[byte / HALF][from / HALF][byte % HALF] = (from % HALF) as u8;
        byte += 1;
    }
    places
};

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn mirror_rgb(from: &[u8], to: &mut [u8], row_bytes: usize) {
    for (from, to) in from.chunks_exact(row_bytes).zip(to.chunks_exact_mut(row_bytes)) {
        mirror_row(from, to);
    }
}

/// 32 pixels at a time.
#[inline]
#[target_feature(enable = "avx2")]
fn mirror_row(from: &[u8], to: &mut [u8]) {
    let (rest, blocks) = from.as_rchunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    for (from, to) in blocks.iter().rev().zip(to_blocks) {
        let (first, second) = from.split_at(BLOCK / 2);
        let a = two_halves(second, first);
        let b = two_halves(&second[HALF..], &first[HALF..]);
        let c = two_halves(&second[2 * HALF..], &first[2 * HALF..]);
        let [[_, of_b, of_c], [from_a, from_b, from_c], [last_a, last_b, _]] = &MIRRORED;
        let made = _mm256_or_si256(_mm256_shuffle_epi8(b, both(of_b)), _mm256_shuffle_epi8(c, both(of_c)));
        store_halves(to, 0, made);
        let made = _mm256_or_si256(_mm256_shuffle_epi8(a, both(from_a)), _mm256_shuffle_epi8(b, both(from_b)));
        store_halves(to, HALF, _mm256_or_si256(made, _mm256_shuffle_epi8(c, both(from_c))));
        let made = _mm256_or_si256(_mm256_shuffle_epi8(a, both(last_a)), _mm256_shuffle_epi8(b, both(last_b)));
        store_halves(to, 2 * HALF, made);
    }
    if !rest.is_empty() {
        mirror_rgb_body(rest, to_rest, rest.len());
    }
}

/// Copies as many bytes as there are in both.
#[inline]
#[target_feature(enable = "avx2")]
fn copy_row(from: &[u8], to: &mut [u8]) {
    let length = from.len().min(to.len());
    let (from, to) = (&from[..length], &mut to[..length]);
    let (blocks, rest) = from.as_chunks::<{ AT_ONCE * VECTOR }>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<{ AT_ONCE * VECTOR }>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let (from, to) = (from.as_chunks::<VECTOR>().0, to.as_chunks_mut::<VECTOR>().0);
        let values = [load_vector(&from[0]), load_vector(&from[1]), load_vector(&from[2]), load_vector(&from[3])];
        for place in 0..AT_ONCE {
            store_vector(&mut to[place], values[place]);
        }
    }
    let (vectors, _) = rest.as_chunks::<VECTOR>();
    for (from, to) in vectors.iter().zip(to_rest.as_chunks_mut::<VECTOR>().0) {
        store_vector(to, load_vector(from));
    }
    // The last vector again, as far as it is not there yet.
    if !length.is_multiple_of(VECTOR) {
        match (from.last_chunk::<VECTOR>(), to.last_chunk_mut::<VECTOR>()) {
            (Some(from), Some(to)) => store_vector(to, load_vector(from)),
            _ => to.copy_from_slice(from),
        }
    }
}

/// Fills a row with a value that a vector has in all of its bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn fill_row(to: &mut [u8], values: __m256i, value: u8) {
    for to in to.as_chunks_mut::<VECTOR>().0 {
        store_vector(to, values);
    }
    if !to.len().is_multiple_of(VECTOR) {
        match to.last_chunk_mut::<VECTOR>() {
            Some(to) => store_vector(to, values),
            None => to.fill(value),
        }
    }
}
