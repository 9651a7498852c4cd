//! Finishing a row with NEON: phases are put in turn by pairs, and channels interleaved by the structure stores.

use std::arch::aarch64::{
    int8x16_t, uint8x16_t, uint8x16x3_t, uint8x16x4_t, vaddq_u8, vdupq_n_s8, vdupq_n_u8, veorq_u8, vld1q_u8, vshlq_u8,
    vst3q_u8, vst4q_u8, vsubq_u8, vzip1q_u8, vzip2q_u8,
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

/// How a color transform is undone, without branches: what is not done shifts all bits out.
#[derive(Clone, Copy)]
struct Inverse {
    /// By which `u` is shifted before it is added to `v`, and what is then too much.
    shift: int8x16_t,
    bias: uint8x16_t,
    /// The same for `u + v`, which is taken from the first.
    luma_shift: int8x16_t,
    luma_bias: uint8x16_t,
}

impl Inverse {
    #[target_feature(enable = "neon")]
    #[inline]
    fn of(transform: ColorTransform) -> Self {
        let (luma, shift) = transform.parameters();
        let (shift, bias) = if shift == 0 { (8, 0) } else { (shift, 0x80 >> shift) };
        let (luma_shift, luma_bias) = if luma { (2, 0x80 >> 2) } else { (8, 0) };
        Self {
            shift: vdupq_n_s8(-(shift as i8)),
            bias: vdupq_n_u8(bias),
            luma_shift: vdupq_n_s8(-luma_shift),
            luma_bias: vdupq_n_u8(luma_bias),
        }
    }

    /// 16 pixels.
    #[target_feature(enable = "neon")]
    #[inline]
    fn pixels(self, [first, u, third]: [uint8x16_t; 3]) -> [uint8x16_t; 3] {
        let half = vdupq_n_u8(0x80);
        let v = vaddq_u8(vsubq_u8(third, self.bias), vshlq_u8(u, self.shift));
        let sum = veorq_u8(vaddq_u8(u, v), half);
        let green = vsubq_u8(vaddq_u8(first, self.luma_bias), vshlq_u8(sum, self.luma_shift));
        [veorq_u8(vaddq_u8(u, green), half), green, veorq_u8(vaddq_u8(v, green), half)]
    }
}

/// Undoes the transform on 16 pixels.
#[target_feature(enable = "neon")]
#[inline]
fn inverse(transform: ColorTransform, planes: [uint8x16_t; 3]) -> [uint8x16_t; 3] {
    if transform == ColorTransform::None { planes } else { Inverse::of(transform).pixels(planes) }
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
    if transform == ColorTransform::None {
        finish3_with(|planes| planes, planes, out);
    } else {
        let inverse = Inverse::of(transform);
        finish3_with(|planes| inverse.pixels(planes), planes, out);
    }
}

#[target_feature(enable = "neon")]
#[inline]
fn finish3_with(inverse: impl Fn([uint8x16_t; 3]) -> [uint8x16_t; 3], planes: [&Phases<u8>; 3], out: &mut [u8]) {
    let counts = counts(out.len() / 3);
    assert!(planes.iter().all(|plane| plane.has_space(&counts)), "rows have space for the width");
    let starts = planes.map(Phases::start);
    let (pieces, rest) = out.as_chunks_mut::<192>();
    let whole = pieces.len();
    for (index, piece) in pieces.iter_mut().enumerate() {
        // SAFETY: the piece is of the row, for whose width the phases have space.
        unsafe { finish3_piece(&inverse, starts, index, piece) };
    }
    if !rest.is_empty() {
        let mut piece = [0; 192];
        // SAFETY: phases have space for whole vectors.
        unsafe { finish3_piece(&inverse, starts, whole, &mut piece) };
        rest.copy_from_slice(&piece[..rest.len()]);
    }
}

/// 64 pixels. The transform is undone while they are in phases; then these are put in turn.
///
/// # Safety
/// The phases, each given by where phase 0 begins and how far it is to the next, must have space for 16 samples from `16 * index`.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn finish3_piece(
    inverse: &impl Fn([uint8x16_t; 3]) -> [uint8x16_t; 3],
    planes: [(*const u8, usize); 3],
    index: usize,
    out: &mut [u8; 192],
) {
    // SAFETY: the caller's promise.
    let phase = |rank: usize| unsafe {
        let [first, second, third] = planes;
        inverse([
            vld1q_u8(first.0.add(rank * first.1 + 16 * index)),
            vld1q_u8(second.0.add(rank * second.1 + 16 * index)),
            vld1q_u8(third.0.add(rank * third.1 + 16 * index)),
        ])
    };
    // They lie in the order in which they are coded.
    let (phase0, phase2, phase1, phase3) = (phase(0), phase(1), phase(2), phase(3));
    let red = in_turn([phase0[0], phase1[0], phase2[0], phase3[0]]);
    let green = in_turn([phase0[1], phase1[1], phase2[1], phase3[1]]);
    let blue = in_turn([phase0[2], phase1[2], phase2[2], phase3[2]]);
    for (k, part) in out.as_chunks_mut::<48>().0.iter_mut().enumerate() {
        store3(part, uint8x16x3_t(red[k], green[k], blue[k]));
    }
}

/// Four phases as 64 samples.
#[target_feature(enable = "neon")]
#[inline]
fn in_turn([first, second, third, fourth]: [uint8x16_t; 4]) -> [uint8x16_t; 4] {
    let (even_low, even_high) = (vzip1q_u8(first, third), vzip2q_u8(first, third));
    let (odd_low, odd_high) = (vzip1q_u8(second, fourth), vzip2q_u8(second, fourth));
    [
        vzip1q_u8(even_low, odd_low),
        vzip2q_u8(even_low, odd_low),
        vzip1q_u8(even_high, odd_high),
        vzip2q_u8(even_high, odd_high),
    ]
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
