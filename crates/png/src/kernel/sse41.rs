//! Four rows at once, or two of wide pixels, by SSE4.1 and SSSE3.

use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_alignr_epi8, _mm_and_si128, _mm_avg_epu8, _mm_blendv_epi8, _mm_cmpeq_epi8,
    _mm_loadu_si128, _mm_min_epu8, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi8, _mm_slli_si128,
    _mm_storeu_si128, _mm_sub_epi8, _mm_subs_epu8, _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32,
    _mm_unpacklo_epi64, _mm_xor_si128,
};

use super::edge::{gathering, put, sixteen, sixteen_at_edge, spreading};
use super::{Filtered, Masks, rows_of};

/// Pixels of a row in a vector.
const PIXELS: usize = 4;

/// Unfilters four rows of pixels of up to 4 bytes. `above` and the rows of `output` are as long as the filtered ones.
#[target_feature(enable = "sse4.1,ssse3")]
pub(super) fn unfilter(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    let paeth = filtered.are_paeth(4);
    match (filtered.pixel_bytes, paeth) {
        (1, _) => four_rows::<1, true>(filtered, above, output),
        (2, _) => four_rows::<2, true>(filtered, above, output),
        (3, false) => four_rows::<3, true>(filtered, above, output),
        (3, true) => four_rows::<3, false>(filtered, above, output),
        (_, false) => four_rows::<4, true>(filtered, above, output),
        (_, true) => four_rows::<4, false>(filtered, above, output),
    }
}

/// Unfilters two rows of pixels of 6 or 8 bytes.
#[target_feature(enable = "sse4.1,ssse3")]
pub(super) fn unfilter_wide(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    if filtered.pixel_bytes == 6 {
        two_rows::<6>(filtered, above, output);
    } else {
        two_rows::<8>(filtered, above, output);
    }
}

#[target_feature(enable = "sse4.1,ssse3")]
fn four_rows<const BYTES: usize, const MIXED: bool>(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    let filters = Filters::new(&filtered.masks::<4>());
    let from: [&[u8]; 4] = filtered.rows();
    let to: [&mut [u8]; 4] = rows_of(output, filtered.row_bytes);
    let mut diagonal = Diagonal::new();
    let step = BYTES as isize;
    for start in (0..filtered.row_bytes / BYTES + 3).step_by(PIXELS) {
        let at = (start * BYTES) as isize;
        let top = spread::<BYTES>(load(above, at));
        let [first, second, third, fourth] = transpose([
            spread::<BYTES>(load(from[0], at)),
            spread::<BYTES>(load(from[1], at - step)),
            spread::<BYTES>(load(from[2], at - 2 * step)),
            spread::<BYTES>(load(from[3], at - 3 * step)),
        ]);
        // The last diagonal is shifted by a row; the pixel above the first row comes from the end of the other operand.
        let above = _mm_alignr_epi8::<12>(diagonal.last, _mm_slli_si128::<12>(top));
        let first = diagonal.step::<MIXED>(&filters, first, above);
        let above = _mm_alignr_epi8::<12>(diagonal.last, _mm_slli_si128::<8>(top));
        let second = diagonal.step::<MIXED>(&filters, second, above);
        let above = _mm_alignr_epi8::<12>(diagonal.last, _mm_slli_si128::<4>(top));
        let third = diagonal.step::<MIXED>(&filters, third, above);
        let above = _mm_alignr_epi8::<12>(diagonal.last, top);
        let fourth = diagonal.step::<MIXED>(&filters, fourth, above);
        let done = transpose([first, second, third, fourth]);
        store::<BYTES>(to[0], at, gather::<BYTES>(done[0]));
        store::<BYTES>(to[1], at - step, gather::<BYTES>(done[1]));
        store::<BYTES>(to[2], at - 2 * step, gather::<BYTES>(done[2]));
        store::<BYTES>(to[3], at - 3 * step, gather::<BYTES>(done[3]));
    }
}

#[target_feature(enable = "sse4.1,ssse3")]
fn two_rows<const BYTES: usize>(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    let filters = Filters::new(&filtered.masks::<2>());
    let from: [&[u8]; 2] = filtered.rows();
    let to: [&mut [u8]; 2] = rows_of(output, filtered.row_bytes);
    let mut diagonal = Diagonal::new();
    for start in (0..=filtered.row_bytes / BYTES).step_by(2) {
        let at = (start * BYTES) as isize;
        let before = at - BYTES as isize;
        let top = spread::<BYTES>(load(above, at));
        let (upper, lower) = (spread::<BYTES>(load(from[0], at)), spread::<BYTES>(load(from[1], before)));
        let above = _mm_alignr_epi8::<8>(diagonal.last, _mm_slli_si128::<8>(top));
        let first = diagonal.step::<true>(&filters, _mm_unpacklo_epi64(upper, lower), above);
        let above = _mm_alignr_epi8::<8>(diagonal.last, top);
        let second = diagonal.step::<true>(&filters, _mm_unpackhi_epi64(upper, lower), above);
        store::<BYTES>(to[0], at, gather::<BYTES>(_mm_unpacklo_epi64(first, second)));
        store::<BYTES>(to[1], before, gather::<BYTES>(_mm_unpackhi_epi64(first, second)));
    }
}

/// How the rows of a diagonal were filtered, as masks.
struct Filters {
    left: __m128i,
    above: __m128i,
    left_above: __m128i,
    average: __m128i,
}

impl Filters {
    #[inline]
    #[target_feature(enable = "sse4.1,ssse3")]
    fn new(masks: &Masks) -> Self {
        Self {
            left: load(&masks.left, 0),
            above: load(&masks.above, 0),
            left_above: load(&masks.left_above, 0),
            average: load(&masks.average, 0),
        }
    }
}

/// The last diagonal, and what was above it.
struct Diagonal {
    last: __m128i,
    above: __m128i,
}

impl Diagonal {
    #[inline]
    #[target_feature(enable = "sse4.1,ssse3")]
    fn new() -> Self {
        Self { last: _mm_setzero_si128(), above: _mm_setzero_si128() }
    }

    /// The next diagonal; unless they are `MIXED`, all rows are Paeth's.
    #[inline]
    #[target_feature(enable = "sse4.1,ssse3")]
    fn step<const MIXED: bool>(&mut self, filters: &Filters, filtered: __m128i, above: __m128i) -> __m128i {
        let (left, left_above) = (self.last, self.above);
        let predicted = if MIXED {
            let some = paeth(
                _mm_and_si128(left, filters.left),
                _mm_and_si128(above, filters.above),
                _mm_and_si128(left_above, filters.left_above),
            );
            let odd = _mm_and_si128(_mm_xor_si128(left, above), _mm_set1_epi8(1));
            let average = _mm_sub_epi8(_mm_avg_epu8(left, above), odd);
            _mm_blendv_epi8(some, average, filters.average)
        } else {
            paeth(left, above, left_above)
        };
        self.last = _mm_add_epi8(filtered, predicted);
        self.above = above;
        self.last
    }
}

/// Paeth's predictor of each byte.
///
/// With `b` and `a` on the same side of `c`, the distance to `c` is the sum of the other two; anything at least as large as
/// both of them does as well here, so that 8 bits are enough.
#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn paeth(a: __m128i, b: __m128i, c: __m128i) -> __m128i {
    let (b_over, b_under) = (_mm_subs_epu8(b, c), _mm_subs_epu8(c, b));
    let (a_over, a_under) = (_mm_subs_epu8(a, c), _mm_subs_epu8(c, a));
    let to_a = _mm_or_si128(b_over, b_under);
    let to_b = _mm_or_si128(a_over, a_under);
    let one = _mm_or_si128(_mm_subs_epu8(b_over, a_under), _mm_subs_epu8(a_under, b_over));
    let other = _mm_or_si128(_mm_subs_epu8(b_under, a_over), _mm_subs_epu8(a_over, b_under));
    let to_c = _mm_or_si128(one, other);
    let least = _mm_min_epu8(to_b, to_c);
    let above_or_corner = _mm_blendv_epi8(c, b, _mm_cmpeq_epi8(least, to_b));
    _mm_blendv_epi8(above_or_corner, a, _mm_cmpeq_epi8(_mm_min_epu8(to_a, least), to_a))
}

/// 16 bytes of a row from `at` on; zero where it does not reach.
#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn load(row: &[u8], at: isize) -> __m128i {
    let edge;
    let bytes = if let Some(bytes) = sixteen(row, at) {
        bytes
    } else {
        edge = sixteen_at_edge(row, at);
        &edge
    };
    // SAFETY: the source has 16 bytes, and the instruction accepts any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Writes a vector of pixels to a row from `at` on, as far as they are within it.
#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn store<const BYTES: usize>(row: &mut [u8], at: isize, pixels: __m128i) {
    let mut bytes = [0u8; 16];
    // SAFETY: the target has 16 bytes, and the instruction accepts any alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), pixels) };
    put::<BYTES>(row, at, &bytes);
}

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn spread<const BYTES: usize>(packed: __m128i) -> __m128i {
    if BYTES == 4 || BYTES == 8 { packed } else { _mm_shuffle_epi8(packed, load(&const { spreading(BYTES) }, 0)) }
}

#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn gather<const BYTES: usize>(pixels: __m128i) -> __m128i {
    if BYTES == 4 || BYTES == 8 { pixels } else { _mm_shuffle_epi8(pixels, load(&const { gathering(BYTES) }, 0)) }
}

/// From four pixels of each row to four diagonals, and back.
#[inline]
#[target_feature(enable = "sse4.1,ssse3")]
fn transpose([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
    let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab_low, cd_low),
        _mm_unpackhi_epi64(ab_low, cd_low),
        _mm_unpacklo_epi64(ab_high, cd_high),
        _mm_unpackhi_epi64(ab_high, cd_high),
    ]
}
