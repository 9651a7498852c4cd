//! Finishing a row with AVX-512: 64 pixels at a time.

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_add_epi8, _mm512_and_si512, _mm512_castsi128_si512, _mm512_inserti32x4,
    _mm512_loadu_si512, _mm512_mask_blend_epi16, _mm512_mask_permutexvar_epi8, _mm512_mask_storeu_epi8,
    _mm512_permutex2var_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_srli_epi16, _mm512_storeu_si512,
    _mm512_stream_si512, _mm512_sub_epi8, _mm512_xor_si512,
};

use crate::{
    header::ColorTransform,
    phases::{Phases, counts},
};

/// Where pixel `pixel` of 64 is when 16 samples of each phase lie side by side, in coding order.
const fn position(pixel: usize) -> u8 {
    let rank = [0, 2, 1, 3][pixel % 4];
    (rank * 16 + pixel / 4) as u8
}

/// For each of three vectors of interleaved pixels, where red (0 to 63) and green (64 to 127) come from.
static RED_GREEN: [[u8; 64]; 3] = {
    let mut table = [[0; 64]; 3];
    let mut byte = 0;
    while byte < 192 {
        table[byte / 64][byte % 64] = position(byte / 3) + if byte % 3 == 1 { 64 } else { 0 };
        byte += 1;
    }
    table
};
/// The same for blue.
static BLUE: [[u8; 64]; 3] = {
    let mut table = [[0; 64]; 3];
    let mut byte = 0;
    while byte < 192 {
        table[byte / 64][byte % 64] = position(byte / 3);
        byte += 1;
    }
    table
};
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
/// For each of four vectors of pixels of four channels, where red or blue (0 to 63) and green or alpha (64 to 127) come from.
static PAIRS: [[u8; 64]; 4] = {
    let mut table = [[0; 64]; 4];
    let mut byte = 0;
    while byte < 256 {
        table[byte / 64][byte % 64] = position(byte / 4) + if byte % 2 == 1 { 64 } else { 0 };
        byte += 1;
    }
    table
};
/// For one channel.
static SINGLE: [u8; 64] = {
    let mut table = [0; 64];
    let mut pixel = 0;
    while pixel < 64 {
        table[pixel] = position(pixel);
        pixel += 1;
    }
    table
};

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

/// Writes 64 bytes, past the cache if that is wanted.
///
/// # Safety
/// They must be writable, and begin a line where they are streamed.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn put<const STREAMED: bool>(bytes: *mut u8, value: __m512i) {
    // SAFETY: the caller's promise.
    unsafe { if STREAMED { _mm512_stream_si512(bytes.cast(), value) } else { write(bytes, value) } }
}

/// Writes the first `count` of 64 bytes.
///
/// # Safety
/// As many bytes must be writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn write_first(bytes: *mut u8, value: __m512i, count: usize) {
    let mask = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    // SAFETY: the caller's promise: nothing is written where the mask is 0.
    unsafe { _mm512_mask_storeu_epi8(bytes.cast(), mask, value) };
}

/// 64 pixels of a plane, 16 samples of each phase side by side, from sample `at`. The last permutation brings them in order.
///
/// # Safety
/// 16 samples of each phase must be there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn gather((start, pitch): (*const u8, usize), at: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let start = start.add(at);
        let phases = _mm512_castsi128_si512(_mm_loadu_si128(start.cast()));
        let phases = _mm512_inserti32x4::<1>(phases, _mm_loadu_si128(start.add(pitch).cast()));
        let phases = _mm512_inserti32x4::<2>(phases, _mm_loadu_si128(start.add(2 * pitch).cast()));
        _mm512_inserti32x4::<3>(phases, _mm_loadu_si128(start.add(3 * pitch).cast()))
    }
}

/// Undoes the transform on 64 pixels.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn inverse<const TRANSFORM: u8>([first, u, third]: [__m512i; 3]) -> [__m512i; 3] {
    let transform = ColorTransform::ALL[TRANSFORM as usize];
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
    assert!(plane.has_space(&counts(out.len())), "rows have space for the width");
    let plane = plane.start();
    let order = load(&SINGLE);
    for (index, out) in out.chunks_mut(64).enumerate() {
        // SAFETY: the plane has space for the width, rounded up to 64; no more than the chunk is written.
        unsafe {
            let pixels = _mm512_permutexvar_epi8(order, gather(plane, 16 * index));
            write_first(out.as_mut_ptr(), pixels, out.len());
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish3(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    finish3_by::<false>(transform, planes, out);
}

/// The same past the cache, from a place that a line begins at; a fence must follow before anybody is told of it.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish3_streamed(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    finish3_by::<true>(transform, planes, out);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn finish3_by<const STREAMED: bool>(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    match transform {
        ColorTransform::None => finish3_as::<STREAMED, 0>(planes, out),
        ColorTransform::SubtractGreen => finish3_as::<STREAMED, 1>(planes, out),
        ColorTransform::GreenHalf => finish3_as::<STREAMED, 2>(planes, out),
        ColorTransform::LumaQuarter => finish3_as::<STREAMED, 3>(planes, out),
        ColorTransform::Luma => finish3_as::<STREAMED, 4>(planes, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn finish3_as<const STREAMED: bool, const TRANSFORM: u8>([first, second, third]: [&Phases<u8>; 3], out: &mut [u8]) {
    let width = out.len() / 3;
    let counts = counts(width);
    let fits = first.has_space(&counts) && second.has_space(&counts) && third.has_space(&counts);
    assert!(fits, "rows have space for the width");
    assert!(!STREAMED || out.as_ptr().align_offset(64) == 0, "a line begins where it is streamed to");
    let planes = [first.start(), second.start(), third.start()];
    let (blocks, last) = out.as_chunks_mut::<192>();
    for (index, out) in blocks.iter_mut().enumerate() {
        // SAFETY: the planes have space for the width, rounded up to 64; the block has three times 64 bytes, and is aligned where
        // it must be.
        unsafe {
            let [first, second, third] = block3::<TRANSFORM>(planes, 16 * index);
            put::<STREAMED>(out.as_mut_ptr(), first);
            put::<STREAMED>(out.as_mut_ptr().add(64), second);
            put::<STREAMED>(out.as_mut_ptr().add(128), third);
        }
    }
    if !last.is_empty() {
        // SAFETY: the planes have space for the width, rounded up to 64.
        let vectors = unsafe { block3::<TRANSFORM>(planes, 16 * (width / 64)) };
        for (out, vector) in last.chunks_mut(64).zip(vectors) {
            // SAFETY: no more than the chunk is written.
            unsafe { write_first(out.as_mut_ptr(), vector, out.len()) };
        }
    }
}

/// 64 pixels of three channels.
///
/// # Safety
/// From `at`, 16 samples of each phase must be there.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn block3<const TRANSFORM: u8>(planes: [(*const u8, usize); 3], at: usize) -> [__m512i; 3] {
    // SAFETY: the caller's promise.
    let planes = unsafe { [gather(planes[0], at), gather(planes[1], at), gather(planes[2], at)] };
    let [red, green, blue] = inverse::<TRANSFORM>(planes);
    let mut vectors = [red; 3];
    for (k, vector) in vectors.iter_mut().enumerate() {
        let two = _mm512_permutex2var_epi8(red, load(&RED_GREEN[k]), green);
        *vector = _mm512_mask_permutexvar_epi8(two, IS_BLUE[k], load(&BLUE[k]), blue);
    }
    vectors
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn finish4(transform: ColorTransform, planes: [&Phases<u8>; 4], out: &mut [u8]) {
    match transform {
        ColorTransform::None => finish4_as::<0>(planes, out),
        ColorTransform::SubtractGreen => finish4_as::<1>(planes, out),
        ColorTransform::GreenHalf => finish4_as::<2>(planes, out),
        ColorTransform::LumaQuarter => finish4_as::<3>(planes, out),
        ColorTransform::Luma => finish4_as::<4>(planes, out),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn finish4_as<const TRANSFORM: u8>([first, second, third, fourth]: [&Phases<u8>; 4], out: &mut [u8]) {
    let counts = counts(out.len() / 4);
    let fits = first.has_space(&counts) && second.has_space(&counts);
    assert!(fits && third.has_space(&counts) && fourth.has_space(&counts), "rows have space for the width");
    let planes = [first.start(), second.start(), third.start()];
    for (index, out) in out.chunks_mut(256).enumerate() {
        let at = 16 * index;
        // SAFETY: the planes have space for the width, rounded up to 64.
        let (planes, alpha) = unsafe {
            ([gather(planes[0], at), gather(planes[1], at), gather(planes[2], at)], gather(fourth.start(), at))
        };
        let [red, green, blue] = inverse::<TRANSFORM>(planes);
        for (out, pairs) in out.chunks_mut(64).zip(&PAIRS) {
            let front = _mm512_permutex2var_epi8(red, load(pairs), green);
            let back = _mm512_permutex2var_epi8(blue, load(pairs), alpha);
            let pixels = _mm512_mask_blend_epi16(0xAAAA_AAAA, front, back);
            // SAFETY: no more than the chunk is written.
            unsafe { write_first(out.as_mut_ptr(), pixels, out.len()) };
        }
    }
}
