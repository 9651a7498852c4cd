//! What AVX-512 with VBMI does better by hand: a table of 256 bytes is four vectors, and a permutation takes channels apart.
//!
//! Vectors never go through closures: a function of the standard library that calls one is compiled without their instructions, and
//! every vector would go through memory.

pub(super) mod blur;

use std::arch::x86_64::{
    __m512, __m512i, __mmask64, _CMP_GT_OQ, _CMP_LE_OQ, _mm512_abs_ps, _mm512_add_epi32, _mm512_add_ps,
    _mm512_cmp_ps_mask, _mm512_cvtepi32_ps, _mm512_cvttps_epi32, _mm512_div_ps, _mm512_loadu_si512, _mm512_madd_epi16,
    _mm512_mask_blend_epi8, _mm512_mask_blend_ps, _mm512_mask_storeu_epi8, _mm512_mask_sub_ps, _mm512_maskz_loadu_epi8,
    _mm512_maskz_permutexvar_epi8, _mm512_max_ps, _mm512_min_ps, _mm512_movepi8_mask, _mm512_mul_ps, _mm512_or_si512,
    _mm512_packs_epi32, _mm512_packus_epi16, _mm512_permutex2var_epi8, _mm512_permutexvar_epi8,
    _mm512_reduce_add_epi32, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512,
    _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_ps,
};

use super::pixels::{
    GRAY_BITS, GRAY_WEIGHTS, TO_BYTE, WHOLE, gray_body, gray_sum_body, look_up_body, look_up_channels_body,
    saturate_body, turn_hue_body,
};

/// Bytes of a vector.
const VECTOR: usize = 64;

/// Bytes of the pixels whose channels are a vector of floats each.
const PIXELS: usize = 48;

/// Those bytes of a vector.
const PIXELS_MASK: __mmask64 = (1 << PIXELS) - 1;

/// Where in those bytes the channels of the pixels are, one in four bytes.
static CHANNELS: [[u8; VECTOR]; 3] = {
    let mut places = [[0; VECTOR]; 3];
    let mut byte = 0;
    while byte < 3 * VECTOR {
        places[byte / VECTOR][byte % VECTOR] = (byte % VECTOR / 4 * 3 + byte / VECTOR) as u8;
        byte += 1;
    }
    places
};

/// Where the bytes of pixels are, if four values of each channel are after another, and if there is one value of each in four bytes.
static CLOSE: [u8; VECTOR] = places(true);
static SPREAD: [u8; VECTOR] = places(false);

const fn places(by_channel: bool) -> [u8; VECTOR] {
    let mut places = [0; VECTOR];
    let mut byte = 0;
    while byte < PIXELS {
        let (pixel, channel) = (byte / 3, byte % 3);
        places[byte] = (if by_channel { pixel / 4 * 16 + channel * 4 + pixel % 4 } else { pixel * 4 }) as u8;
        byte += 1;
    }
    places
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up(from: &[u8], to: &mut [u8], table: &[u8; 256]) {
    let table_parts = parts(table);
    let (vectors, rest) = from.as_chunks::<VECTOR>();
    let (to_vectors, to_rest) = to.as_chunks_mut::<VECTOR>();
    for (from, to) in vectors.iter().zip(to_vectors) {
        store_vector(to, found(table_parts, load_vector(from)));
    }
    look_up_body(rest, to_rest, table);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up_channels(from: &[u8], to: &mut [u8], tables: &[[u8; 256]; 3]) {
    /// Every third byte.
    const THIRD: __mmask64 = 0x9249_2492_4924_9249;
    let [red, green, blue] = [parts(&tables[0]), parts(&tables[1]), parts(&tables[2])];
    let (blocks, rest) = from.as_chunks::<{ 3 * VECTOR }>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<{ 3 * VECTOR }>();
    for (from, to) in blocks.iter().zip(to_blocks) {
        let vectors = from.as_chunks::<VECTOR>().0.iter().zip(to.as_chunks_mut::<VECTOR>().0);
        // Three vectors are whole pixels; the second begins with a green value, the third with a blue one.
        let greens_and_blues = [(THIRD << 1, THIRD << 2), (THIRD, THIRD << 1), (THIRD << 2, THIRD)];
        for ((from, to), (is_green, is_blue)) in vectors.zip(greens_and_blues) {
            let values = load_vector(from);
            let made = _mm512_mask_blend_epi8(is_green, found(red, values), found(green, values));
            store_vector(to, _mm512_mask_blend_epi8(is_blue, made, found(blue, values)));
        }
    }
    look_up_channels_body(rest, to_rest, tables);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn gray_sum(from: &[u8], sum: &mut u64) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    // So many at once that a block's sums stay far below 2³¹.
    for blocks in blocks.chunks(1 << 16) {
        let mut sums = _mm512_setzero_si512();
        for from in blocks {
            sums = _mm512_add_epi32(sums, gray_of(load(from)));
        }
        *sum += u64::from(_mm512_reduce_add_epi32(sums).cast_unsigned());
    }
    gray_sum_body(rest, sum);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn gray(from: &[u8], to: &mut [u8]) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let spread = load_vector(&SPREAD);
    for (from, to) in blocks.iter().zip(to_blocks) {
        store_pixels(to, _mm512_permutexvar_epi8(spread, gray_of(load(from))));
    }
    gray_body(rest, to_rest);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn saturate(from: &[u8], to: &mut [u8], factor: f32) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let (own, others) = (_mm512_set1_ps(factor), _mm512_set1_ps(1.0 - factor));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let pixels = load(from);
        let gray = _mm512_mul_ps(_mm512_cvtepi32_ps(gray_of(pixels)), others);
        let [r, g, b] = floats(pixels);
        let r = _mm512_add_ps(_mm512_mul_ps(r, own), gray);
        let g = _mm512_add_ps(_mm512_mul_ps(g, own), gray);
        let b = _mm512_add_ps(_mm512_mul_ps(b, own), gray);
        store(to, [r, g, b]);
    }
    saturate_body(rest, to_rest, factor);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn turn_hue(from: &[u8], to: &mut [u8], turn: f32) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let (one, two, three) = (_mm512_set1_ps(1.0), _mm512_set1_ps(2.0), _mm512_set1_ps(3.0));
    let (four, six) = (_mm512_set1_ps(4.0), _mm512_set1_ps(6.0));
    let (turned, sixth, whole) = (_mm512_set1_ps(turn * 6.0), _mm512_set1_ps(1.0 / 6.0), _mm512_set1_ps(WHOLE));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let [r, g, b] = floats(load(from));
        let (high, low) = (_mm512_max_ps(_mm512_max_ps(r, g), b), _mm512_min_ps(_mm512_min_ps(r, g), b));
        let range = _mm512_sub_ps(high, low);
        let scale = _mm512_div_ps(one, _mm512_max_ps(range, one));
        let of_blue = _mm512_add_ps(_mm512_mul_ps(_mm512_sub_ps(r, g), scale), four);
        let of_green = _mm512_add_ps(_mm512_mul_ps(_mm512_sub_ps(b, r), scale), two);
        let of_red = _mm512_mul_ps(_mm512_sub_ps(g, b), scale);
        let hue = _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(high, g), of_blue, of_green);
        let hue = _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(high, r), hue, of_red);
        let hue = _mm512_add_ps(hue, turned);
        let turns = _mm512_mul_ps(hue, sixth);
        let near = _mm512_sub_ps(_mm512_add_ps(turns, whole), whole);
        let near = _mm512_mask_sub_ps(near, _mm512_cmp_ps_mask::<_CMP_GT_OQ>(near, turns), near, one);
        let hue = _mm512_sub_ps(hue, _mm512_mul_ps(near, six));
        let r = colored(_mm512_sub_ps(_mm512_abs_ps(_mm512_sub_ps(hue, three)), one), low, range);
        let g = colored(_mm512_sub_ps(two, _mm512_abs_ps(_mm512_sub_ps(hue, two))), low, range);
        let b = colored(_mm512_sub_ps(two, _mm512_abs_ps(_mm512_sub_ps(hue, four))), low, range);
        store(to, [r, g, b]);
    }
    turn_hue_body(rest, to_rest, turn);
}

/// A channel that is so far from the lowest, in shares of the range; what is below 0 or above 1 counts as that.
#[inline]
#[target_feature(enable = "avx512f")]
fn colored(share: __m512, low: __m512, range: __m512) -> __m512 {
    let share = _mm512_min_ps(_mm512_max_ps(share, _mm512_setzero_ps()), _mm512_set1_ps(1.0));
    _mm512_mul_ps(_mm512_add_ps(low, _mm512_mul_ps(range, share)), _mm512_set1_ps(TO_BYTE))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_vector(from: &[u8; VECTOR]) -> __m512i {
    // SAFETY: an array of a vector's length.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_vector(to: &mut [u8; VECTOR], values: __m512i) {
    // SAFETY: an array of a vector's length.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), values) }
}

/// The first bytes of a vector are pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_pixels(to: &mut [u8; PIXELS], pixels: __m512i) {
    // SAFETY: the mask leaves an array's bytes.
    unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), PIXELS_MASK, pixels) }
}

/// A table of bytes as vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn parts(table: &[u8; 256]) -> [__m512i; 4] {
    let (parts, _) = table.as_chunks::<VECTOR>();
    [load_vector(&parts[0]), load_vector(&parts[1]), load_vector(&parts[2]), load_vector(&parts[3])]
}

/// What a table has for each value: the lower seven bits find it in either half, the uppermost says in which.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn found([a, b, c, d]: [__m512i; 4], values: __m512i) -> __m512i {
    let (lower, upper) = (_mm512_permutex2var_epi8(a, values, b), _mm512_permutex2var_epi8(c, values, d));
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(values), lower, upper)
}

/// Red, green and blue of 16 pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn load(from: &[u8; PIXELS]) -> [__m512i; 3] {
    /// The lowest byte of each number.
    const LOWEST: __mmask64 = 0x1111_1111_1111_1111;
    // SAFETY: the mask leaves an array's bytes.
    let bytes = unsafe { _mm512_maskz_loadu_epi8(PIXELS_MASK, from.as_ptr().cast()) };
    [
        _mm512_maskz_permutexvar_epi8(LOWEST, load_vector(&CHANNELS[0]), bytes),
        _mm512_maskz_permutexvar_epi8(LOWEST, load_vector(&CHANNELS[1]), bytes),
        _mm512_maskz_permutexvar_epi8(LOWEST, load_vector(&CHANNELS[2]), bytes),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn floats([r, g, b]: [__m512i; 3]) -> [__m512; 3] {
    [_mm512_cvtepi32_ps(r), _mm512_cvtepi32_ps(g), _mm512_cvtepi32_ps(b)]
}

/// Writes red, green and blue, clamped and cut off.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn store(to: &mut [u8; PIXELS], pixels: [__m512; 3]) {
    let [r, g, b] = [truncated(pixels[0]), truncated(pixels[1]), truncated(pixels[2])];
    // Packing clamps, and leaves four values of each channel after another in every quarter.
    let packed = _mm512_packus_epi16(_mm512_packs_epi32(r, g), _mm512_packs_epi32(b, b));
    store_pixels(to, _mm512_permutexvar_epi8(load_vector(&CLOSE), packed));
}

/// Cut off. What is too large for a whole number is limited, so that it does not become a negative one.
#[inline]
#[target_feature(enable = "avx512f")]
fn truncated(values: __m512) -> __m512i {
    _mm512_cvttps_epi32(_mm512_min_ps(_mm512_set1_ps(255.0), values))
}

/// The gray levels of pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn gray_of([r, g, b]: [__m512i; 3]) -> __m512i {
    let [red, green, blue] = GRAY_WEIGHTS;
    let red_green = _mm512_set1_epi32(i32::from(green) << 16 | i32::from(red));
    let pairs = _mm512_madd_epi16(_mm512_or_si512(r, _mm512_slli_epi32::<16>(g)), red_green);
    let blues = _mm512_madd_epi16(b, _mm512_set1_epi32(i32::from(blue)));
    _mm512_srli_epi32::<GRAY_BITS>(_mm512_add_epi32(pairs, blues))
}
