//! Colors of RGB pixels, whose channels are taken apart and put together by shuffles within each half of a vector.

use std::arch::x86_64::{
    __m256, __m256i, _CMP_LE_OQ, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32, _mm256_add_ps, _mm256_adds_epi16,
    _mm256_and_ps, _mm256_blendv_ps, _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_ps,
    _mm256_castsi256_si128, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvttps_epi32, _mm256_div_ps,
    _mm256_extracti128_si256, _mm256_floor_ps, _mm256_inserti128_si256, _mm256_madd_epi16, _mm256_max_ps,
    _mm256_min_ps, _mm256_mul_ps, _mm256_mulhrs_epi16, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set1_epi16,
    _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_srai_epi16, _mm256_srli_epi16, _mm256_srli_epi32, _mm256_sub_epi16, _mm256_sub_ps,
};

use super::VECTOR;
use crate::kernels::pixels::{
    GRAY_BITS, GRAY_WEIGHTS, SATURATION_BITS, TO_BYTE, gray_body, gray_sum_body, saturate_body, saturation_share,
    turn_hue_body,
};

/// Bytes of half of a vector.
pub(super) const HALF: usize = 16;

/// Bytes of four pixels: what a half has of the channels of, if each is a number of 32 bit.
const FOUR_PIXELS: usize = 12;

/// Pixels of which each half of a vector has as many as there are bytes in it.
pub(super) const BLOCK: usize = 3 * VECTOR;

/// A shuffle's place of nothing.
pub(super) const NOTHING: u8 = 0x80;

/// Which bytes of four pixels, that begin with byte `begin` of a half, go into its four numbers: `low` and `high` into the lower and upper 16 bit.
const fn numbers_of(begin: usize, low: usize, high: Option<usize>) -> [u8; HALF] {
    let mut places = [NOTHING; HALF];
    let mut pixel = 0;
    while pixel < 4 {
        places[4 * pixel] = (begin + 3 * pixel + low) as u8;
        if let Some(high) = high {
            places[4 * pixel + 2] = (begin + 3 * pixel + high) as u8;
        }
        pixel += 1;
    }
    places
}

/// The places of red, green and blue, and of red beside green, of four pixels that begin with byte `begin`.
const fn channels_of(begin: usize) -> [[u8; HALF]; 4] {
    [numbers_of(begin, 0, None), numbers_of(begin, 1, None), numbers_of(begin, 2, None), numbers_of(begin, 0, Some(1))]
}

/// Where the channels of four pixels are: the last four of 16 are read with the four bytes before them, so that nothing behind them is.
static CHANNELS: [[[u8; HALF]; 4]; 2] = [channels_of(0), channels_of(HALF - FOUR_PIXELS)];

/// Where the bytes of four pixels are, if four values of each channel are after another.
static CLOSE: [u8; HALF] = {
    let mut places = [NOTHING; HALF];
    let mut byte = 0;
    while byte < FOUR_PIXELS {
        places[byte] = (byte % 3 * 4 + byte / 3) as u8;
        byte += 1;
    }
    places
};

/// A shuffle that takes the second byte of each number for the second and fourth, and nothing for the others.
static TWICE: [u8; HALF] = {
    let mut places = [NOTHING; HALF];
    let mut byte = 1;
    while byte < HALF {
        places[byte] = (byte / 4 * 4 + 1) as u8;
        byte += 2;
    }
    places
};

/// Where the bytes of four pixels are, if red and green in turns come before blue and nothing in turns.
static PAIRS_CLOSE: [u8; HALF] = {
    let mut places = [NOTHING; HALF];
    let mut byte = 0;
    while byte < FOUR_PIXELS {
        let (pixel, channel) = (byte / 3, byte % 3);
        places[byte] = (if channel < 2 { 2 * pixel + channel } else { 8 + 2 * pixel }) as u8;
        byte += 1;
    }
    places
};

/// Where the bytes of three halves are that are one value each, three times.
static THRICE: [[u8; HALF]; 3] = {
    let mut places = [[0; HALF]; 3];
    let mut byte = 0;
    while byte < 3 * HALF {
        places[byte / HALF][byte % HALF] = (byte / 3) as u8;
        byte += 1;
    }
    places
};

/// The same bytes in both halves.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn both(bytes: &[u8; HALF]) -> __m256i {
    // SAFETY: an array of half a vector's length.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// Two times 16 bytes, 48 apart: of the first 16 pixels and of the second.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(from: &[u8; BLOCK], begin: usize) -> __m256i {
    two_halves(&from[begin..], &from[3 * HALF + begin..])
}

/// The first 16 bytes of both.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn two_halves(first: &[u8], second: &[u8]) -> __m256i {
    let (first, second) = (&first[..HALF], &second[..HALF]);
    // SAFETY: half a vector each, as just asserted.
    let (first, second) = unsafe { (_mm_loadu_si128(first.as_ptr().cast()), _mm_loadu_si128(second.as_ptr().cast())) };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(first), second)
}

/// Writes them.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_halves(to: &mut [u8; BLOCK], begin: usize, values: __m256i) {
    let (first, second) = (_mm256_castsi256_si128(values), _mm256_extracti128_si256::<1>(values));
    let at = &mut to[begin..][..HALF];
    // SAFETY: half a vector, as just asserted.
    unsafe { _mm_storeu_si128(at.as_mut_ptr().cast(), first) };
    let at = &mut to[3 * HALF + begin..][..HALF];
    // SAFETY: the same.
    unsafe { _mm_storeu_si128(at.as_mut_ptr().cast(), second) };
}

/// Eight pixels of a block, from pixel `4 · quarter` of each half on.
#[inline]
#[target_feature(enable = "avx2")]
fn eight(from: &[u8; BLOCK], quarter: usize) -> (__m256i, &'static [[u8; HALF]; 4]) {
    let is_last = quarter == 3;
    let begin = if is_last { 2 * HALF } else { FOUR_PIXELS * quarter };
    (halves(from, begin), &CHANNELS[usize::from(is_last)])
}

/// The gray levels of eight pixels, numbers of 32 bit.
#[inline]
#[target_feature(enable = "avx2")]
fn gray_of(pixels: __m256i, places: &[[u8; HALF]; 4]) -> __m256i {
    let pairs = _mm256_shuffle_epi8(pixels, both(&places[3]));
    let sums = gray_of_pairs(pairs, _mm256_shuffle_epi8(pixels, both(&places[2])));
    _mm256_srli_epi32::<{ GRAY_BITS as i32 }>(sums)
}

/// The same of red beside green, and of blue, before the fraction is cut off.
#[inline]
#[target_feature(enable = "avx2")]
fn gray_of_pairs(pairs: __m256i, blues: __m256i) -> __m256i {
    let [red, green, blue] = GRAY_WEIGHTS;
    let red_green = _mm256_set1_epi32(i32::from(green) << 16 | i32::from(red));
    let pairs = _mm256_madd_epi16(pairs, red_green);
    _mm256_add_epi32(pairs, _mm256_madd_epi16(blues, _mm256_set1_epi32(i32::from(blue))))
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn gray_sum(from: &[u8], sum: &mut u64) {
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    // So many at once that a block's sums stay far below 2³¹.
    for blocks in blocks.chunks(1 << 16) {
        let mut sums = _mm256_setzero_si256();
        for from in blocks {
            for quarter in 0..4 {
                let (pixels, places) = eight(from, quarter);
                sums = _mm256_add_epi32(sums, gray_of(pixels, places));
            }
        }
        let mut numbers = [0_u32; 8];
        // SAFETY: eight numbers are a vector.
        unsafe { std::arch::x86_64::_mm256_storeu_si256(numbers.as_mut_ptr().cast(), sums) };
        *sum += numbers.iter().map(|&number| u64::from(number)).sum::<u64>();
    }
    gray_sum_body(rest, sum);
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn gray(from: &[u8], to: &mut [u8]) {
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let mut levels = [_mm256_setzero_si256(); 4];
        for (quarter, levels) in levels.iter_mut().enumerate() {
            let (pixels, places) = eight(from, quarter);
            *levels = gray_of(pixels, places);
        }
        let [a, b, c, d] = levels;
        let levels = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        for (part, places) in THRICE.iter().enumerate() {
            store_halves(to, part * HALF, _mm256_shuffle_epi8(levels, both(places)));
        }
    }
    gray_body(rest, to_rest);
}

/// Red, green and blue of eight pixels.
#[inline]
#[target_feature(enable = "avx2")]
fn floats(pixels: __m256i, places: &[[u8; HALF]; 4]) -> [__m256; 3] {
    [
        _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, both(&places[0]))),
        _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, both(&places[1]))),
        _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, both(&places[2]))),
    ]
}

/// Red, green and blue, clamped and cut off, as four pixels in the first bytes of each half.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes([r, g, b]: [__m256; 3]) -> __m256i {
    let [r, g, b] = [_mm256_cvttps_epi32(r), _mm256_cvttps_epi32(g), _mm256_cvttps_epi32(b)];
    // Packing clamps, and leaves four values of each channel after another in each half.
    let packed = _mm256_packus_epi16(_mm256_packs_epi32(r, g), _mm256_packs_epi32(b, b));
    _mm256_shuffle_epi8(packed, both(&CLOSE))
}

/// Writes four times eight pixels, as [`eight`] reads them.
#[inline]
#[target_feature(enable = "avx2")]
fn store_pixels(to: &mut [u8; BLOCK], [a, b, c, d]: [__m256i; 4]) {
    use std::arch::x86_64::{_mm256_bslli_epi128, _mm256_bsrli_epi128, _mm256_or_si256};
    // 12 bytes each, without gaps.
    store_halves(to, 0, _mm256_or_si256(a, _mm256_bslli_epi128::<12>(b)));
    store_halves(to, HALF, _mm256_or_si256(_mm256_bsrli_epi128::<4>(b), _mm256_bslli_epi128::<8>(c)));
    store_halves(to, 2 * HALF, _mm256_or_si256(_mm256_bsrli_epi128::<8>(c), _mm256_bslli_epi128::<4>(d)));
}

#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn saturate(from: &[u8], to: &mut [u8], factor: f32) {
    let Some(share) = saturation_share(factor) else { return saturate_far(from, to, factor) };
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    let share = _mm256_set1_epi16(share);
    let (twice, close) = (both(&TWICE), both(&PAIRS_CLOSE));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let mut made = [_mm256_setzero_si256(); 4];
        for (quarter, made) in made.iter_mut().enumerate() {
            let (pixels, places) = eight(from, quarter);
            let pairs = _mm256_shuffle_epi8(pixels, both(&places[3]));
            let blues = _mm256_shuffle_epi8(pixels, both(&places[2]));
            // The gray in the upper byte of both halves, so that one shift makes of it what the others become.
            let gray = _mm256_srli_epi32::<{ GRAY_BITS as i32 - 8 }>(gray_of_pairs(pairs, blues));
            let gray = _mm256_srli_epi16::<{ 8 - SATURATION_BITS as i32 }>(_mm256_shuffle_epi8(gray, twice));
            let (pairs, blues) = (saturated(pairs, gray, share), saturated(blues, gray, share));
            // Packing clamps; of the blues every second one is nothing.
            *made = _mm256_shuffle_epi8(_mm256_packus_epi16(pairs, blues), close);
        }
        store_pixels(to, made);
    }
    saturate_body(rest, to_rest, factor);
}

/// Values of 16 bit away from, or towards, their gray.
#[inline]
#[target_feature(enable = "avx2")]
fn saturated(values: __m256i, gray: __m256i, share: __m256i) -> __m256i {
    let values = _mm256_slli_epi16::<{ SATURATION_BITS as i32 }>(values);
    let more = _mm256_mulhrs_epi16(_mm256_sub_epi16(values, gray), share);
    _mm256_srai_epi16::<{ SATURATION_BITS as i32 }>(_mm256_adds_epi16(values, more))
}

/// The same for factors that 16 bit are too few for.
#[target_feature(enable = "avx2")]
fn saturate_far(from: &[u8], to: &mut [u8], factor: f32) {
    // What comes of it must be a whole number of 32 bit.
    if !(-1e6..=1e6).contains(&factor) {
        return saturate_body(from, to, factor);
    }
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    let (own, others) = (_mm256_set1_ps(factor), _mm256_set1_ps(1.0 - factor));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let mut made = [_mm256_setzero_si256(); 4];
        for (quarter, made) in made.iter_mut().enumerate() {
            let (pixels, places) = eight(from, quarter);
            let gray = _mm256_mul_ps(_mm256_cvtepi32_ps(gray_of(pixels, places)), others);
            let [r, g, b] = floats(pixels, places);
            let r = _mm256_add_ps(_mm256_mul_ps(r, own), gray);
            let g = _mm256_add_ps(_mm256_mul_ps(g, own), gray);
            let b = _mm256_add_ps(_mm256_mul_ps(b, own), gray);
            *made = bytes([r, g, b]);
        }
        store_pixels(to, made);
    }
    saturate_body(rest, to_rest, factor);
}

/// In two passes over four times eight pixels: each computes so long on what it has computed just before that a processor, which sees
/// no more than a part of it ahead, would wait.
#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn turn_hue(from: &[u8], to: &mut [u8], turn: f32) {
    let (blocks, rest) = from.as_chunks::<BLOCK>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<BLOCK>();
    let turned = turn * 6.0;
    let (of_red, of_green, of_blue) =
        (_mm256_set1_ps(turned), _mm256_set1_ps(turned + 2.0), _mm256_set1_ps(turned + 4.0));
    let (one, two, three) = (_mm256_set1_ps(1.0), _mm256_set1_ps(2.0), _mm256_set1_ps(3.0));
    let (four, six, to_byte) = (_mm256_set1_ps(4.0), _mm256_set1_ps(6.0), _mm256_set1_ps(TO_BYTE));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let nothing = [_mm256_setzero_ps(); 4];
        let (mut hues, mut lows, mut ranges) = (nothing, nothing, nothing);
        for quarter in 0..4 {
            let (pixels, places) = eight(from, quarter);
            let [r, g, b] = floats(pixels, places);
            let (high, low) = (_mm256_max_ps(_mm256_max_ps(r, g), b), _mm256_min_ps(_mm256_min_ps(r, g), b));
            let range = _mm256_sub_ps(high, low);
            let scale = _mm256_div_ps(one, _mm256_max_ps(range, one));
            let (is_green, is_red) = (_mm256_cmp_ps::<_CMP_LE_OQ>(high, g), _mm256_cmp_ps::<_CMP_LE_OQ>(high, r));
            let away = _mm256_blendv_ps(_mm256_sub_ps(r, g), _mm256_sub_ps(b, r), is_green);
            let away = _mm256_blendv_ps(away, _mm256_sub_ps(g, b), is_red);
            let begin = _mm256_blendv_ps(_mm256_blendv_ps(of_blue, of_green, is_green), of_red, is_red);
            hues[quarter] = _mm256_add_ps(_mm256_mul_ps(away, scale), begin);
            (lows[quarter], ranges[quarter]) = (_mm256_mul_ps(low, to_byte), _mm256_mul_ps(range, to_byte));
        }
        let mut made = [_mm256_setzero_si256(); 4];
        for quarter in 0..4 {
            let hue = hues[quarter];
            let turns = _mm256_floor_ps(_mm256_mul_ps(hue, _mm256_set1_ps(1.0 / 6.0)));
            let hue = _mm256_sub_ps(hue, _mm256_mul_ps(turns, six));
            let (low, range) = (lows[quarter], ranges[quarter]);
            made[quarter] = bytes([
                colored(_mm256_sub_ps(distance(hue, three), one), low, range),
                colored(_mm256_sub_ps(two, distance(hue, two)), low, range),
                colored(_mm256_sub_ps(two, distance(hue, four)), low, range),
            ]);
        }
        store_pixels(to, made);
    }
    turn_hue_body(rest, to_rest, turn);
}

#[inline]
#[target_feature(enable = "avx2")]
fn distance(a: __m256, b: __m256) -> __m256 {
    _mm256_and_ps(_mm256_sub_ps(a, b), _mm256_castsi256_ps(_mm256_set1_epi32(i32::MAX)))
}

/// A channel that is so far from the lowest, in shares of the range; what is below 0 or above 1 counts as that.
#[inline]
#[target_feature(enable = "avx2")]
fn colored(share: __m256, low: __m256, range: __m256) -> __m256 {
    let share = _mm256_min_ps(_mm256_max_ps(share, _mm256_setzero_ps()), _mm256_set1_ps(1.0));
    _mm256_add_ps(low, _mm256_mul_ps(range, share))
}
