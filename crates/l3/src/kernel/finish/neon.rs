//! Finishing a row with NEON: 16 pixels at a time, interleaved by the structure stores.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x3_t, uint8x16x4_t, vaddq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vshrq_n_u8, vst3q_u8, vst4q_u8,
    vsubq_u8,
};

use crate::{
    header::ColorTransform,
    phases::{Phases, counts},
};

#[target_feature(enable = "neon")]
#[inline]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is to 16 readable bytes.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[target_feature(enable = "neon")]
#[inline]
fn store4(bytes: &mut [u8; 64], rows: uint8x16x4_t) {
    // SAFETY: the reference is to 64 writable bytes.
    unsafe { vst4q_u8(bytes.as_mut_ptr(), rows) };
}

#[target_feature(enable = "neon")]
#[inline]
fn store3(bytes: &mut [u8; 48], rows: uint8x16x3_t) {
    // SAFETY: the reference is to 48 writable bytes.
    unsafe { vst3q_u8(bytes.as_mut_ptr(), rows) };
}

/// The four phases of a plane in pieces of 16.
type Pieces<'a> = [&'a [[u8; 16]]; 4];

#[inline(always)]
fn pieces(plane: &Phases<u8>, width: usize) -> Pieces<'_> {
    let count = counts(width)[0].next_multiple_of(16);
    [0, 1, 2, 3].map(|phase| plane.at(phase, 0, count).as_chunks::<16>().0)
}

/// 64 pixels of a plane.
#[target_feature(enable = "neon")]
#[inline]
fn merge(pieces: &Pieces<'_>, index: usize, out: &mut [u8; 64]) {
    let rows = uint8x16x4_t(
        load(&pieces[0][index]),
        load(&pieces[1][index]),
        load(&pieces[2][index]),
        load(&pieces[3][index]),
    );
    store4(out, rows);
}

/// Undoes the transform on 16 pixels.
#[target_feature(enable = "neon")]
#[inline]
fn inverse(transform: ColorTransform, [first, u, third]: [uint8x16_t; 3]) -> [uint8x16_t; 3] {
    if transform == ColorTransform::None {
        return [first, u, third];
    }
    let (luma, shift) = transform.parameters();
    let half = vdupq_n_u8(0x80);
    let v = match shift {
        1 => vaddq_u8(third, vsubq_u8(vshrq_n_u8::<1>(u), vdupq_n_u8(64))),
        2 => vaddq_u8(third, vsubq_u8(vshrq_n_u8::<2>(u), vdupq_n_u8(32))),
        _ => third,
    };
    let green = if luma {
        let sum = veorq_u8(vaddq_u8(u, v), half);
        vsubq_u8(first, vsubq_u8(vshrq_n_u8::<2>(sum), vdupq_n_u8(32)))
    } else {
        first
    };
    [veorq_u8(vaddq_u8(u, green), half), green, veorq_u8(vaddq_u8(v, green), half)]
}

#[target_feature(enable = "neon")]
pub(super) fn finish1(plane: &Phases<u8>, out: &mut [u8]) {
    let plane = pieces(plane, out.len());
    for (index, out) in out.chunks_mut(64).enumerate() {
        let mut merged = [0; 64];
        merge(&plane, index, &mut merged);
        out.copy_from_slice(&merged[..out.len()]);
    }
}

#[target_feature(enable = "neon")]
pub(super) fn finish3(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    let width = out.len() / 3;
    let planes = [pieces(planes[0], width), pieces(planes[1], width), pieces(planes[2], width)];
    for (index, out) in out.chunks_mut(192).enumerate() {
        let mut merged = [[0; 64]; 3];
        for (plane, merged) in planes.iter().zip(&mut merged) {
            merge(plane, index, merged);
        }
        let mut pixels = [[0; 48]; 4];
        for (k, part) in pixels.iter_mut().enumerate() {
            let [first, second, third] = &merged;
            let piece = [load(&first.as_chunks().0[k]), load(&second.as_chunks().0[k]), load(&third.as_chunks().0[k])];
            let [red, green, blue] = inverse(transform, piece);
            store3(part, uint8x16x3_t(red, green, blue));
        }
        out.copy_from_slice(&pixels.as_flattened()[..out.len()]);
    }
}

#[target_feature(enable = "neon")]
pub(super) fn finish4(transform: ColorTransform, planes: [&Phases<u8>; 4], out: &mut [u8]) {
    let width = out.len() / 4;
    let planes =
        [pieces(planes[0], width), pieces(planes[1], width), pieces(planes[2], width), pieces(planes[3], width)];
    for (index, out) in out.chunks_mut(256).enumerate() {
        let mut merged = [[0; 64]; 4];
        for (plane, merged) in planes.iter().zip(&mut merged) {
            merge(plane, index, merged);
        }
        let mut pixels = [[0; 64]; 4];
        for (k, part) in pixels.iter_mut().enumerate() {
            let [first, second, third, fourth] = &merged;
            let piece = [load(&first.as_chunks().0[k]), load(&second.as_chunks().0[k]), load(&third.as_chunks().0[k])];
            let [red, green, blue] = inverse(transform, piece);
            store4(part, uint8x16x4_t(red, green, blue, load(&fourth.as_chunks().0[k])));
        }
        out.copy_from_slice(&pixels.as_flattened()[..out.len()]);
    }
}
