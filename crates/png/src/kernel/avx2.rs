//! Eight rows at once by AVX2: two groups of four, each as `sse41.rs` has them, in the halves of a vector.
//!
//! The second group is so far behind the first that the row above it is already written.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi8, _mm256_alignr_epi8, _mm256_and_si256,
    _mm256_avg_epu8, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_extracti128_si256,
    _mm256_min_epu8, _mm256_or_si256, _mm256_set_m128i, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_slli_si256, _mm256_sub_epi8, _mm256_subs_epu8, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::edge::{gathering, put, sixteen, sixteen_at_edge, spreading};
use super::{Filtered, Masks, rows_of};

/// Pixels of a row in a half of a vector.
const PIXELS: usize = 4;
/// By how many pixels the second group is behind the first.
const BEHIND: usize = 16;

/// Unfilters eight rows of pixels of up to 4 bytes. `above` and the rows of `output` are as long as the filtered ones.
#[target_feature(enable = "avx2")]
pub(super) fn unfilter(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    match (filtered.pixel_bytes, filtered.are_paeth(8)) {
        (1, _) => eight_rows::<1, true>(filtered, above, output),
        (2, _) => eight_rows::<2, true>(filtered, above, output),
        (3, false) => eight_rows::<3, true>(filtered, above, output),
        (3, true) => eight_rows::<3, false>(filtered, above, output),
        (_, false) => eight_rows::<4, true>(filtered, above, output),
        (_, true) => eight_rows::<4, false>(filtered, above, output),
    }
}

#[target_feature(enable = "avx2")]
fn eight_rows<const BYTES: usize, const MIXED: bool>(filtered: Filtered<'_>, above: &[u8], output: &mut [u8]) {
    let filters = Filters::new(&filtered.masks::<4>(), &filtered.skip(4).masks::<4>());
    let from: [&[u8]; 8] = filtered.rows();
    let mut to: [&mut [u8]; 8] = rows_of(output, filtered.row_bytes);
    let mut diagonal = Diagonal::new();
    let step = BYTES as isize;
    for start in (0..filtered.row_bytes / BYTES + 3 + BEHIND).step_by(PIXELS) {
        let at = (start * BYTES) as isize;
        let behind = at - (BEHIND * BYTES) as isize;
        let top = spread::<BYTES>(load(above, at), load(to[3], behind));
        let [first, second, third, fourth] = transpose([
            spread::<BYTES>(load(from[0], at), load(from[4], behind)),
            spread::<BYTES>(load(from[1], at - step), load(from[5], behind - step)),
            spread::<BYTES>(load(from[2], at - 2 * step), load(from[6], behind - 2 * step)),
            spread::<BYTES>(load(from[3], at - 3 * step), load(from[7], behind - 3 * step)),
        ]);
        // The last diagonal is shifted by a row; the pixel above the first row comes from the end of the other operand.
        let above = _mm256_alignr_epi8::<12>(diagonal.last, _mm256_slli_si256::<12>(top));
        let first = diagonal.step::<MIXED>(&filters, first, above);
        let above = _mm256_alignr_epi8::<12>(diagonal.last, _mm256_slli_si256::<8>(top));
        let second = diagonal.step::<MIXED>(&filters, second, above);
        let above = _mm256_alignr_epi8::<12>(diagonal.last, _mm256_slli_si256::<4>(top));
        let third = diagonal.step::<MIXED>(&filters, third, above);
        let above = _mm256_alignr_epi8::<12>(diagonal.last, top);
        let fourth = diagonal.step::<MIXED>(&filters, fourth, above);
        let [first, second, third, fourth] = transpose([first, second, third, fourth]);
        let (upper, lower) = to.split_at_mut(4);
        store::<BYTES>(upper[0], lower[0], at, behind, first);
        store::<BYTES>(upper[1], lower[1], at - step, behind - step, second);
        store::<BYTES>(upper[2], lower[2], at - 2 * step, behind - 2 * step, third);
        store::<BYTES>(upper[3], lower[3], at - 3 * step, behind - 3 * step, fourth);
    }
}

/// How the rows of a diagonal were filtered, as masks.
struct Filters {
    left: __m256i,
    above: __m256i,
    left_above: __m256i,
    average: __m256i,
}

impl Filters {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(low: &Masks, high: &Masks) -> Self {
        Self {
            left: _mm256_set_m128i(load(&high.left, 0), load(&low.left, 0)),
            above: _mm256_set_m128i(load(&high.above, 0), load(&low.above, 0)),
            left_above: _mm256_set_m128i(load(&high.left_above, 0), load(&low.left_above, 0)),
            average: _mm256_set_m128i(load(&high.average, 0), load(&low.average, 0)),
        }
    }
}

/// The last diagonal, and what was above it.
struct Diagonal {
    last: __m256i,
    above: __m256i,
}

impl Diagonal {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new() -> Self {
        Self { last: _mm256_setzero_si256(), above: _mm256_setzero_si256() }
    }

    /// The next diagonal; unless they are `MIXED`, all rows are Paeth's.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn step<const MIXED: bool>(&mut self, filters: &Filters, filtered: __m256i, above: __m256i) -> __m256i {
        let (left, left_above) = (self.last, self.above);
        let predicted = if MIXED {
            let some = paeth(
                _mm256_and_si256(left, filters.left),
                _mm256_and_si256(above, filters.above),
                _mm256_and_si256(left_above, filters.left_above),
            );
            let odd = _mm256_and_si256(_mm256_xor_si256(left, above), _mm256_set1_epi8(1));
            let average = _mm256_sub_epi8(_mm256_avg_epu8(left, above), odd);
            _mm256_blendv_epi8(some, average, filters.average)
        } else {
            paeth(left, above, left_above)
        };
        self.last = _mm256_add_epi8(filtered, predicted);
        self.above = above;
        self.last
    }
}

/// Paeth's predictor of each byte; see `sse41.rs`.
#[inline]
#[target_feature(enable = "avx2")]
fn paeth(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    let (b_over, b_under) = (_mm256_subs_epu8(b, c), _mm256_subs_epu8(c, b));
    let (a_over, a_under) = (_mm256_subs_epu8(a, c), _mm256_subs_epu8(c, a));
    let to_a = _mm256_or_si256(b_over, b_under);
    let to_b = _mm256_or_si256(a_over, a_under);
    let one = _mm256_or_si256(_mm256_subs_epu8(b_over, a_under), _mm256_subs_epu8(a_under, b_over));
    let other = _mm256_or_si256(_mm256_subs_epu8(b_under, a_over), _mm256_subs_epu8(a_over, b_under));
    let to_c = _mm256_or_si256(one, other);
    let least = _mm256_min_epu8(to_b, to_c);
    let above_or_corner = _mm256_blendv_epi8(c, b, _mm256_cmpeq_epi8(least, to_b));
    _mm256_blendv_epi8(above_or_corner, a, _mm256_cmpeq_epi8(_mm256_min_epu8(to_a, least), to_a))
}

/// 16 bytes of a row from `at` on; zero where it does not reach.
#[inline]
#[target_feature(enable = "avx2")]
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

/// Writes the halves of a vector of pixels to two rows, as far as they are within them.
#[inline]
#[target_feature(enable = "avx2")]
fn store<const BYTES: usize>(low: &mut [u8], high: &mut [u8], at: isize, behind: isize, pixels: __m256i) {
    let pixels = match BYTES {
        4 => pixels,
        _ => _mm256_shuffle_epi8(pixels, twice(load(&const { gathering(BYTES) }, 0))),
    };
    let (mut first, mut second) = ([0u8; 16], [0u8; 16]);
    // SAFETY: 16 bytes are there to be written, and the instruction takes any alignment.
    unsafe { _mm_storeu_si128(first.as_mut_ptr().cast(), _mm256_castsi256_si128(pixels)) };
    // SAFETY: as above.
    unsafe { _mm_storeu_si128(second.as_mut_ptr().cast(), _mm256_extracti128_si256::<1>(pixels)) };
    put::<BYTES>(low, at, &first);
    put::<BYTES>(high, behind, &second);
}

#[inline]
#[target_feature(enable = "avx2")]
fn twice(half: __m128i) -> __m256i {
    _mm256_set_m128i(half, half)
}

#[inline]
#[target_feature(enable = "avx2")]
fn spread<const BYTES: usize>(low: __m128i, high: __m128i) -> __m256i {
    let packed = _mm256_set_m128i(high, low);
    match BYTES {
        4 => packed,
        _ => _mm256_shuffle_epi8(packed, twice(load(&const { spreading(BYTES) }, 0))),
    }
}

/// From four pixels of each row to four diagonals, and back; in each half.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab_low, cd_low),
        _mm256_unpackhi_epi64(ab_low, cd_low),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}
