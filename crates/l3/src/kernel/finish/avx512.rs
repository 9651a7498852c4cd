//! Finishing a row with AVX-512: 64 pixels at a time.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_add_epi8, _mm512_and_si512, _mm512_cvtepu8_epi32, _mm512_loadu_si512,
    _mm512_mask_permutexvar_epi8, _mm512_or_si512, _mm512_permutex2var_epi8, _mm512_set1_epi8, _mm512_slli_epi32,
    _mm512_srli_epi16, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_xor_si512,
};

use crate::{
    header::ColourTransform,
    phases::{Phases, counts},
};

/// For each of three vectors of interleaved pixels, where red (0 to 63) and green (64 to 127) come from.
static RED_GREEN: [[u8; 64]; 3] = sources(false);
/// The same for blue.
static BLUE: [[u8; 64]; 3] = sources(true);
/// Which bytes of each of the three vectors are blue.
static IS_BLUE: [u64; 3] = {
    let mut masks = [0u64; 3];
    let mut byte = 0;
    while byte < 192 {
        if byte % 3 == 2 {
            masks[byte / 64] |= 1 << (byte % 64);
        }
        byte += 1;
    }
    masks
};

const fn sources(blue: bool) -> [[u8; 64]; 3] {
    let mut table = [[0; 64]; 3];
    let mut byte = 0;
    while byte < 192 {
        let pixel = (byte / 3) as u8;
        table[byte / 64][byte % 64] = if !blue && byte % 3 == 1 { pixel + 64 } else { pixel };
        byte += 1;
    }
    table
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// # Safety
/// 64 bytes must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn write(bytes: *mut u8, value: __m512i) {
    // SAFETY: the caller's promise; the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.cast(), value) };
}

/// 16 bytes, each in the low byte of a 32-bit lane.
///
/// # Safety
/// 16 bytes must be readable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn widen(row: *const u8) -> __m512i {
    // SAFETY: the caller's promise; the load needs no alignment.
    _mm512_cvtepu8_epi32(unsafe { _mm_loadu_si128(row.cast()) })
}

/// Four rows of 16 bytes, interleaved to 64.
///
/// # Safety
/// 16 bytes must be readable from each.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn interleave16(a: *const u8, b: *const u8, c: *const u8, d: *const u8) -> __m512i {
    // SAFETY: the caller's promise.
    let (a, b, c, d) = unsafe { (widen(a), widen(b), widen(c), widen(d)) };
    let (b, c, d) = (_mm512_slli_epi32::<8>(b), _mm512_slli_epi32::<16>(c), _mm512_slli_epi32::<24>(d));
    _mm512_or_si512(_mm512_or_si512(a, b), _mm512_or_si512(c, d))
}

/// 64 pixels of a plane, from sample `at` of each phase.
///
/// # Safety
/// 16 samples of each phase must be there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn merge((start, pitch): (*const u8, usize), at: usize) -> __m512i {
    // SAFETY: the caller's promise; the order of phases is 0, 2, 1, 3.
    unsafe {
        let start = start.add(at);
        interleave16(start, start.add(2 * pitch), start.add(pitch), start.add(3 * pitch))
    }
}

/// Undoes the transform on 64 pixels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn inverse<const TRANSFORM: u8>([first, u, third]: [__m512i; 3]) -> [__m512i; 3] {
    let transform = ColourTransform::ALL[TRANSFORM as usize];
    if TRANSFORM == 0 {
        return [first, u, third];
    }
    let (luma, shift) = transform.parameters();
    let half = _mm512_set1_epi8(-128);
    let v = match shift {
        1 => {
            let shifted = _mm512_and_si512(_mm512_srli_epi16::<1>(u), _mm512_set1_epi8(0x7F));
            _mm512_add_epi8(third, _mm512_sub_epi8(shifted, _mm512_set1_epi8(64)))
        }
        2 => {
            let shifted = _mm512_and_si512(_mm512_srli_epi16::<2>(u), _mm512_set1_epi8(0x3F));
            _mm512_add_epi8(third, _mm512_sub_epi8(shifted, _mm512_set1_epi8(32)))
        }
        _ => third,
    };
    let green = if luma {
        let sum = _mm512_xor_si512(_mm512_add_epi8(u, v), half);
        let shifted = _mm512_and_si512(_mm512_srli_epi16::<2>(sum), _mm512_set1_epi8(0x3F));
        _mm512_sub_epi8(first, _mm512_sub_epi8(shifted, _mm512_set1_epi8(32)))
    } else {
        first
    };
    let red = _mm512_xor_si512(_mm512_add_epi8(u, green), half);
    let blue = _mm512_xor_si512(_mm512_add_epi8(v, green), half);
    [red, green, blue]
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish1(plane: &Phases<u8>, out: &mut [u8]) {
    let width = out.len();
    assert!(plane.has_room(&counts(width)), "rows have room for the width");
    let plane = plane.start();
    let (blocks, last) = out.as_chunks_mut::<64>();
    for (index, out) in blocks.iter_mut().enumerate() {
        // SAFETY: the block has 64 pixels, 16 of each phase, and the plane has room for the width.
        unsafe { write(out.as_mut_ptr(), merge(plane, 16 * index)) };
    }
    if !last.is_empty() {
        let mut block = [0; 64];
        // SAFETY: rows have room for whole vectors after their last sample.
        unsafe { write(block.as_mut_ptr(), merge(plane, 16 * (width / 64))) };
        last.copy_from_slice(&block[..last.len()]);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish3(transform: ColourTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    match transform {
        ColourTransform::None => finish3_as::<0>(planes, out),
        ColourTransform::SubtractGreen => finish3_as::<1>(planes, out),
        ColourTransform::GreenHalf => finish3_as::<2>(planes, out),
        ColourTransform::LumaQuarter => finish3_as::<3>(planes, out),
        ColourTransform::Luma => finish3_as::<4>(planes, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn finish3_as<const TRANSFORM: u8>([first, second, third]: [&Phases<u8>; 3], out: &mut [u8]) {
    let width = out.len() / 3;
    let counts = counts(width);
    let room = first.has_room(&counts) && second.has_room(&counts) && third.has_room(&counts);
    assert!(room, "rows have room for the width");
    let planes = [first.start(), second.start(), third.start()];
    let (blocks, last) = out.as_chunks_mut::<192>();
    for (index, out) in blocks.iter_mut().enumerate() {
        // SAFETY: the block has 64 pixels, 16 of each phase, and the planes have room for the width.
        unsafe { block3::<TRANSFORM>(planes, 16 * index, out.as_mut_ptr()) };
    }
    if !last.is_empty() {
        let mut block = [0; 192];
        // SAFETY: rows have room for whole vectors after their last sample.
        unsafe { block3::<TRANSFORM>(planes, 16 * (width / 64), block.as_mut_ptr()) };
        last.copy_from_slice(&block[..last.len()]);
    }
}

/// 64 pixels of three channels.
///
/// # Safety
/// From `at`, 16 samples of each phase must be there, and 192 bytes must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn block3<const TRANSFORM: u8>(planes: [(*const u8, usize); 3], at: usize, out: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let merged = [merge(planes[0], at), merge(planes[1], at), merge(planes[2], at)];
        let [red, green, blue] = inverse::<TRANSFORM>(merged);
        for k in 0..3 {
            let two = _mm512_permutex2var_epi8(red, load(&RED_GREEN[k]), green);
            write(out.add(64 * k), _mm512_mask_permutexvar_epi8(two, IS_BLUE[k], load(&BLUE[k]), blue));
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish4(transform: ColourTransform, planes: [&Phases<u8>; 4], out: &mut [u8]) {
    match transform {
        ColourTransform::None => finish4_as::<0>(planes, out),
        ColourTransform::SubtractGreen => finish4_as::<1>(planes, out),
        ColourTransform::GreenHalf => finish4_as::<2>(planes, out),
        ColourTransform::LumaQuarter => finish4_as::<3>(planes, out),
        ColourTransform::Luma => finish4_as::<4>(planes, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn finish4_as<const TRANSFORM: u8>([first, second, third, fourth]: [&Phases<u8>; 4], out: &mut [u8]) {
    let width = out.len() / 4;
    let counts = counts(width);
    let room = first.has_room(&counts) && second.has_room(&counts);
    assert!(room && third.has_room(&counts) && fourth.has_room(&counts), "rows have room for the width");
    let planes = [first.start(), second.start(), third.start(), fourth.start()];
    let (blocks, last) = out.as_chunks_mut::<256>();
    for (index, out) in blocks.iter_mut().enumerate() {
        // SAFETY: the block has 64 pixels, 16 of each phase, and the planes have room for the width.
        unsafe { block4::<TRANSFORM>(planes, 16 * index, out.as_mut_ptr()) };
    }
    if !last.is_empty() {
        let mut block = [0; 256];
        // SAFETY: rows have room for whole vectors after their last sample.
        unsafe { block4::<TRANSFORM>(planes, 16 * (width / 64), block.as_mut_ptr()) };
        last.copy_from_slice(&block[..last.len()]);
    }
}

/// 64 pixels of four channels.
///
/// # Safety
/// From `at`, 16 samples of each phase must be there, and 256 bytes must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn block4<const TRANSFORM: u8>(planes: [(*const u8, usize); 4], at: usize, out: *mut u8) {
    let mut rows = [[0u8; 64]; 4];
    // SAFETY: the caller's promise; each row has 64 bytes, and 16 are read from four places in it.
    unsafe {
        let merged = [merge(planes[0], at), merge(planes[1], at), merge(planes[2], at)];
        let [red, green, blue] = inverse::<TRANSFORM>(merged);
        write(rows[0].as_mut_ptr(), red);
        write(rows[1].as_mut_ptr(), green);
        write(rows[2].as_mut_ptr(), blue);
        write(rows[3].as_mut_ptr(), merge(planes[3], at));
        for k in 0..4 {
            let at = 16 * k;
            let (red, green) = (rows[0].as_ptr().add(at), rows[1].as_ptr().add(at));
            let (blue, alpha) = (rows[2].as_ptr().add(at), rows[3].as_ptr().add(at));
            write(out.add(64 * k), interleave16(red, green, blue, alpha));
        }
    }
}
