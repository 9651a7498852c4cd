//! The scalar definition, compiled for AVX-512; and by hand, for three channels of 8 bits, 64 pixels at a time.

use std::arch::x86_64::{
    __m512i, _mm_storeu_si128, _mm512_add_epi8, _mm512_and_si512, _mm512_castsi512_si128, _mm512_extracti32x4_epi32,
    _mm512_loadu_si512, _mm512_mask_permutexvar_epi8, _mm512_permutex2var_epi8, _mm512_permutexvar_epi8,
    _mm512_set1_epi8, _mm512_srli_epi16, _mm512_sub_epi8, _mm512_xor_si512,
};

use super::scalar;
use crate::{
    header::ColorTransform,
    phases::{ORDER, Phases, counts},
    sample::Sample,
};

/// For each channel, where its 64 samples are in the first 128 of 192 bytes (or anywhere, for those that are not there).
static FRONT: [[u8; 64]; 3] = {
    let mut table = [[0; 64]; 3];
    let mut byte = 0;
    while byte < 128 {
        table[byte % 3][byte / 3] = byte as u8;
        byte += 1;
    }
    table
};

/// For each channel, where its samples are in the last 64 of 192 bytes.
static BACK: [[u8; 64]; 3] = {
    let mut table = [[0; 64]; 3];
    let mut byte = 128;
    while byte < 192 {
        table[byte % 3][byte / 3] = byte as u8 - 128;
        byte += 1;
    }
    table
};

/// For each channel, which samples are in the last 64 of 192 bytes.
static IN_BACK: [u64; 3] = {
    let mut masks = [0; 3];
    let mut byte = 128;
    while byte < 192 {
        masks[byte % 3] |= 1 << (byte / 3);
        byte += 1;
    }
    masks
};

/// Brings 16 samples of each phase together, in coding order.
static BY_PHASE: [u8; 64] = {
    let mut table = [0; 64];
    let mut index = 0;
    while index < 64 {
        table[index] = (index % 16 * 4 + ORDER[index / 16]) as u8;
        index += 1;
    }
    table
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn start<S: Sample>(transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<S>]) {
    scalar::start(transform, row, width, planes);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn start3(transform: ColorTransform, row: &[u8], width: usize, planes: [&mut Phases<u8>; 3]) {
    match transform {
        ColorTransform::None => start3_as::<0>(row, width, planes),
        ColorTransform::SubtractGreen => start3_as::<1>(row, width, planes),
        ColorTransform::GreenHalf => start3_as::<2>(row, width, planes),
        ColorTransform::LumaQuarter => start3_as::<3>(row, width, planes),
        ColorTransform::Luma => start3_as::<4>(row, width, planes),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn start3_as<const TRANSFORM: u8>(row: &[u8], width: usize, [first, second, third]: [&mut Phases<u8>; 3]) {
    let counts = counts(width);
    let fits = first.has_space(&counts) && second.has_space(&counts) && third.has_space(&counts);
    assert!(fits && row.len() == 3 * width, "rows have space for the width");
    let out = [first.start_mut(), second.start_mut(), third.start_mut()];
    let (blocks, last) = row.as_chunks::<192>();
    for (index, block) in blocks.iter().enumerate() {
        // SAFETY: the block has 64 pixels, 16 of each phase, and the planes have space for the width.
        unsafe { block3::<TRANSFORM>(block, out, 16 * index) };
    }
    if !last.is_empty() {
        let mut block = [0; 192];
        block[..last.len()].copy_from_slice(last);
        // SAFETY: rows have space for whole vectors after their last sample.
        unsafe { block3::<TRANSFORM>(&block, out, 16 * (width / 64)) };
    }
    for plane in [first, second, third] {
        for phase in ORDER {
            plane.extend(phase, &counts);
        }
    }
}

/// 64 pixels.
///
/// # Safety
/// From `at`, there must be space for 16 samples of each phase.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn block3<const TRANSFORM: u8>(block: &[u8; 192], out: [(*mut u8, usize); 3], at: usize) {
    let (parts, _) = block.as_chunks::<64>();
    let parts = [load(&parts[0]), load(&parts[1]), load(&parts[2])];
    let channels = [channel(&parts, 0), channel(&parts, 1), channel(&parts, 2)];
    let planes = forward::<TRANSFORM>(channels);
    for (plane, (start, pitch)) in planes.into_iter().zip(out) {
        let phases = _mm512_permutexvar_epi8(load(&BY_PHASE), plane);
        // SAFETY: the caller's promise.
        unsafe {
            let start = start.add(at);
            _mm_storeu_si128(start.cast(), _mm512_castsi512_si128(phases));
            _mm_storeu_si128(start.add(pitch).cast(), _mm512_extracti32x4_epi32::<1>(phases));
            _mm_storeu_si128(start.add(2 * pitch).cast(), _mm512_extracti32x4_epi32::<2>(phases));
            _mm_storeu_si128(start.add(3 * pitch).cast(), _mm512_extracti32x4_epi32::<3>(phases));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// One channel of 64 pixels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn channel(parts: &[__m512i; 3], channel: usize) -> __m512i {
    let front = _mm512_permutex2var_epi8(parts[0], load(&FRONT[channel]), parts[1]);
    _mm512_mask_permutexvar_epi8(front, IN_BACK[channel], load(&BACK[channel]), parts[2])
}

/// Applies the transform to 64 pixels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn forward<const TRANSFORM: u8>([red, green, blue]: [__m512i; 3]) -> [__m512i; 3] {
    if TRANSFORM == 0 {
        return [red, green, blue];
    }
    let (luma, shift) = ColorTransform::ALL[TRANSFORM as usize].parameters();
    let half = _mm512_set1_epi8(-128);
    let u = _mm512_xor_si512(_mm512_sub_epi8(red, green), half);
    let v = _mm512_xor_si512(_mm512_sub_epi8(blue, green), half);
    let first = if luma {
        let sum = _mm512_xor_si512(_mm512_add_epi8(u, v), half);
        let shifted = _mm512_and_si512(_mm512_srli_epi16::<2>(sum), _mm512_set1_epi8(0x3F));
        _mm512_add_epi8(green, _mm512_sub_epi8(shifted, _mm512_set1_epi8(32)))
    } else {
        green
    };
    let third = match shift {
        1 => {
            let shifted = _mm512_and_si512(_mm512_srli_epi16::<1>(u), _mm512_set1_epi8(0x7F));
            _mm512_sub_epi8(v, _mm512_sub_epi8(shifted, _mm512_set1_epi8(64)))
        }
        2 => {
            let shifted = _mm512_and_si512(_mm512_srli_epi16::<2>(u), _mm512_set1_epi8(0x3F));
            _mm512_sub_epi8(v, _mm512_sub_epi8(shifted, _mm512_set1_epi8(32)))
        }
        _ => v,
    };
    [first, u, third]
}
