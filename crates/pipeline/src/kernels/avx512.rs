//! What AVX-512 with VBMI does better by hand: a table of 256 bytes is four vectors, and a permutation takes channels apart.
//!
//! Vectors never go through closures: a function of the standard library that calls one is compiled without their instructions, and
//! every vector would go through memory.

pub(super) mod blur;
pub(super) mod rows;

use std::arch::x86_64::{
    __m512, __m512i, __mmask64, _CMP_LE_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEG_INF, _mm512_abs_ps, _mm512_add_epi32,
    _mm512_add_ps, _mm512_adds_epi16, _mm512_cmp_ps_mask, _mm512_cvtepi32_ps, _mm512_cvttps_epi32, _mm512_div_ps,
    _mm512_loadu_si512, _mm512_madd_epi16, _mm512_mask_blend_epi8, _mm512_mask_blend_ps, _mm512_mask_storeu_epi8,
    _mm512_mask_sub_ps, _mm512_maskz_loadu_epi8, _mm512_maskz_permutexvar_epi8, _mm512_max_ps, _mm512_min_ps,
    _mm512_movepi8_mask, _mm512_mul_ps, _mm512_mulhrs_epi16, _mm512_or_si512, _mm512_packs_epi32, _mm512_packus_epi16,
    _mm512_permutex2var_epi8, _mm512_permutexvar_epi8, _mm512_permutexvar_epi64, _mm512_reduce_add_epi32,
    _mm512_roundscale_ps, _mm512_set_epi64, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_slli_epi16, _mm512_slli_epi32, _mm512_srai_epi16,
    _mm512_srli_epi16, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi16, _mm512_sub_ps, _mm512_unpackhi_epi8,
    _mm512_unpacklo_epi8,
};

use super::pixels::{
    GRAY_BITS, GRAY_WEIGHTS, SATURATION_BITS, TO_BYTE, gray_body, gray_sum_body, look_up_body, look_up_channels_body,
    look_up_pairs_body, permute_body, saturate_body, saturation_share, turn_hue_body,
};

/// Bytes of a vector.
const VECTOR: usize = 64;

/// Rounding down, and no exception for what is not exact.
const FLOOR: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

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

/// Where in those bytes red and green are, one in two bytes.
static PAIRS: [u8; VECTOR] = {
    let mut places = [0; VECTOR];
    let mut byte = 0;
    while byte < VECTOR {
        places[byte] = (byte / 4 * 3 + byte % 4 / 2) as u8;
        byte += 1;
    }
    places
};

/// A shuffle that takes the second byte of each number for the second and fourth, and nothing for the others.
static TWICE: [u8; VECTOR] = {
    let mut places = [0x80; VECTOR];
    let mut byte = 0;
    while byte < VECTOR {
        if byte % 2 == 1 {
            places[byte] = (byte % 16 / 4 * 4 + 1) as u8;
        }
        byte += 1;
    }
    places
};

/// Where the bytes of pixels are, if eight values of red and green in turns come before eight of blue and nothing in turns.
static PAIRS_CLOSE: [u8; VECTOR] = {
    let mut places = [0; VECTOR];
    let mut byte = 0;
    while byte < PIXELS {
        let (pixel, channel) = (byte / 3, byte % 3);
        let begin = pixel / 4 * 16 + pixel % 4 * 2;
        places[byte] = (if channel < 2 { begin + channel } else { begin + 8 }) as u8;
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

/// The lower and the upper byte of what the table has for each value; the eight bytes that the halves of a vector take in turns are put
/// where they come out in order.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn look_up_pairs(from: &[u8], to: &mut [u8], table: &[[u8; 2]; 256]) {
    let (lower, upper) = (table.map(|[lower, _]| lower), table.map(|[_, upper]| upper));
    let (lower, upper) = (parts(&lower), parts(&upper));
    let (vectors, rest) = from.as_chunks::<VECTOR>();
    let (to_vectors, to_rest) = to.as_chunks_mut::<{ 2 * VECTOR }>();
    let in_turns = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    for (from, to) in vectors.iter().zip(to_vectors) {
        let values = _mm512_permutexvar_epi64(in_turns, load_vector(from));
        let (lower, upper) = (found(lower, values), found(upper, values));
        let (to, _) = to.as_chunks_mut::<VECTOR>();
        store_vector(&mut to[0], _mm512_unpacklo_epi8(lower, upper));
        store_vector(&mut to[1], _mm512_unpackhi_epi8(lower, upper));
    }
    look_up_pairs_body(rest, to_rest, table);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn permute(from: &[u8], to: &mut [u8], order: [u8; 3]) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let places: [u8; VECTOR] = std::array::from_fn(|byte| (byte / 3 * 3) as u8 + order[byte % 3]);
    let places = load_vector(&places);
    for (from, to) in blocks.iter().zip(to_blocks) {
        store_pixels(to, _mm512_permutexvar_epi8(places, load_bytes(from)));
    }
    permute_body(rest, to_rest, order);
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
    let Some(share) = saturation_share(factor) else { return saturate_far(from, to, factor) };
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let share = _mm512_set1_epi16(share);
    let (pairs_at, blues_at) = (load_vector(&PAIRS), load_vector(&CHANNELS[2]));
    let (both_at, close) = (load_vector(&TWICE), load_vector(&PAIRS_CLOSE));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let bytes = load_bytes(from);
        let pairs = _mm512_maskz_permutexvar_epi8(HALVES, pairs_at, bytes);
        let blues = _mm512_maskz_permutexvar_epi8(LOWEST, blues_at, bytes);
        // The gray in the upper byte of both halves, so that one shift makes of it what the others become.
        let gray = _mm512_srli_epi32::<{ GRAY_BITS - 8 }>(gray_of_pairs(pairs, blues));
        let gray = _mm512_shuffle_epi8(gray, both_at);
        let gray = _mm512_srli_epi16::<{ 8 - SATURATION_BITS }>(gray);
        let (pairs, blues) = (saturated(pairs, gray, share), saturated(blues, gray, share));
        // Packing clamps; of the blues every second one is nothing.
        store_pixels(to, _mm512_permutexvar_epi8(close, _mm512_packus_epi16(pairs, blues)));
    }
    saturate_body(rest, to_rest, factor);
}

/// Values of 16 bit away from, or towards, their gray.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn saturated(values: __m512i, gray: __m512i, share: __m512i) -> __m512i {
    let values = _mm512_slli_epi16::<SATURATION_BITS>(values);
    let more = _mm512_mulhrs_epi16(_mm512_sub_epi16(values, gray), share);
    _mm512_srai_epi16::<SATURATION_BITS>(_mm512_adds_epi16(values, more))
}

/// The same for factors that 16 bit are too few for.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn saturate_far(from: &[u8], to: &mut [u8], factor: f32) {
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
        store(to, [truncated(r), truncated(g), truncated(b)]);
    }
    saturate_body(rest, to_rest, factor);
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) fn turn_hue(from: &[u8], to: &mut [u8], turn: f32) {
    let (blocks, rest) = from.as_chunks::<PIXELS>();
    let (to_blocks, to_rest) = to.as_chunks_mut::<PIXELS>();
    let turned = turn * 6.0;
    let (of_red, of_green, of_blue) =
        (_mm512_set1_ps(turned), _mm512_set1_ps(turned + 2.0), _mm512_set1_ps(turned + 4.0));
    let (one, two, three, four) = (_mm512_set1_ps(1.0), _mm512_set1_ps(2.0), _mm512_set1_ps(3.0), _mm512_set1_ps(4.0));
    let (six, sixth, to_byte) = (_mm512_set1_ps(6.0), _mm512_set1_ps(1.0 / 6.0), _mm512_set1_ps(TO_BYTE));
    for (from, to) in blocks.iter().zip(to_blocks) {
        let [r, g, b] = floats(load(from));
        let (high, low) = (_mm512_max_ps(_mm512_max_ps(r, g), b), _mm512_min_ps(_mm512_min_ps(r, g), b));
        let range = _mm512_sub_ps(high, low);
        let scale = _mm512_div_ps(one, _mm512_max_ps(range, one));
        let is_green = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(high, g);
        let is_red = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(high, r);
        let away = _mm512_mask_sub_ps(_mm512_sub_ps(r, g), is_green, b, r);
        let away = _mm512_mask_sub_ps(away, is_red, g, b);
        let begin = _mm512_mask_blend_ps(is_red, _mm512_mask_blend_ps(is_green, of_blue, of_green), of_red);
        let hue = _mm512_add_ps(_mm512_mul_ps(away, scale), begin);
        let turns = _mm512_roundscale_ps::<FLOOR>(_mm512_mul_ps(hue, sixth));
        let hue = _mm512_sub_ps(hue, _mm512_mul_ps(turns, six));
        let (low, range) = (_mm512_mul_ps(low, to_byte), _mm512_mul_ps(range, to_byte));
        let r = colored(_mm512_sub_ps(_mm512_abs_ps(_mm512_sub_ps(hue, three)), one), low, range);
        let g = colored(_mm512_sub_ps(two, _mm512_abs_ps(_mm512_sub_ps(hue, two))), low, range);
        let b = colored(_mm512_sub_ps(two, _mm512_abs_ps(_mm512_sub_ps(hue, four))), low, range);
        store(to, [r, g, b]);
    }
    turn_hue_body(rest, to_rest, turn);
}

/// A channel that is so far from the lowest, in shares of the range; what is below 0 or above 1 counts as that. Never more than a byte.
#[inline]
#[target_feature(enable = "avx512f")]
fn colored(share: __m512, low: __m512, range: __m512) -> __m512i {
    let share = _mm512_min_ps(_mm512_max_ps(share, _mm512_setzero_ps()), _mm512_set1_ps(1.0));
    _mm512_cvttps_epi32(_mm512_add_ps(low, _mm512_mul_ps(range, share)))
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

/// Which bytes a vector's numbers have of the channels: the lowest of each, and the lowest of each half.
const LOWEST: __mmask64 = 0x1111_1111_1111_1111;
const HALVES: __mmask64 = 0x5555_5555_5555_5555;

/// 16 pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_bytes(from: &[u8; PIXELS]) -> __m512i {
    // SAFETY: the mask leaves an array's bytes.
    unsafe { _mm512_maskz_loadu_epi8(PIXELS_MASK, from.as_ptr().cast()) }
}

/// Red, green and blue of 16 pixels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn load(from: &[u8; PIXELS]) -> [__m512i; 3] {
    let bytes = load_bytes(from);
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

/// Writes red, green and blue, which are bytes or less than 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn store(to: &mut [u8; PIXELS], [r, g, b]: [__m512i; 3]) {
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
    let sums = gray_of_pairs(_mm512_or_si512(r, _mm512_slli_epi32::<16>(g)), b);
    _mm512_srli_epi32::<GRAY_BITS>(sums)
}

/// The same of red beside green, before the fraction is cut off.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn gray_of_pairs(pairs: __m512i, blues: __m512i) -> __m512i {
    let [red, green, blue] = GRAY_WEIGHTS;
    let red_green = _mm512_set1_epi32(i32::from(green) << 16 | i32::from(red));
    let pairs = _mm512_madd_epi16(pairs, red_green);
    _mm512_add_epi32(pairs, _mm512_madd_epi16(blues, _mm512_set1_epi32(i32::from(blue))))
}
