//! Pixels that come from elsewhere.

use std::arch::x86_64::{
    __m256, __m256i, _mm_loadu_si128, _mm_setr_epi8, _mm_storeu_si128, _mm256_add_epi32, _mm256_add_ps,
    _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_cmpeq_epi32,
    _mm256_cvtepi32_ps, _mm256_cvtps_epi32, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_max_epu32, _mm256_movemask_epi8, _mm256_mul_ps, _mm256_mullo_epi32, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_epi32, _mm256_shuffle_epi8,
    _mm256_shuffle_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_sub_ps,
};
use std::ops::Range;

use crate::kernels::warp::{
    BLOCK, BLOCK_RGB_BYTES, READ_BYTES, RowCoordinates, Surrounding, WEIGHT_BITS, between_rgb_body, nearest_rgb_body,
};

/// Pixels of a vector, if each is a number.
const PIXELS: usize = 8;

/// Eight pixels at a time, of which four bytes each are read and written: the fourth is the next pixel's.
#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn nearest_rgb(
    coordinates: &RowCoordinates,
    from: &[u8],
    size: [usize; 2],
    fill: [u8; 3],
    to: &mut [u8],
) {
    let width = to.len() / 3;
    let inside = coordinates.inside(width, size);
    if inside.as_ref().is_some_and(Range::is_empty) {
        return to.as_chunks_mut::<3>().0.fill(fill);
    }
    let inside = inside.filter(|inside| inside.len() >= PIXELS);
    // Offsets in bytes must be numbers of 32 bit with a sign.
    let last = from.len().checked_sub(4).filter(|_| i32::try_from(from.len()).is_ok());
    let (Some(Range { start, end }), Some(last)) = (inside, last) else {
        return nearest_rgb_body(coordinates, from, size, fill, to);
    };
    let last = _mm256_set1_epi32(last as i32);
    let (to, _) = to.as_chunks_mut::<3>();
    to[..start].fill(fill);
    to[end..].fill(fill);
    let mut begin = start;
    loop {
        let offsets = offsets(coordinates, begin, size[1]);
        let mut numbers = [0_u32; PIXELS];
        // SAFETY: eight numbers are a vector.
        unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), offsets) };
        let to = to[begin..begin + PIXELS].as_flattened_mut();
        if _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(offsets, last), last)) == -1 {
            // SAFETY: from each offset to the end are at least four bytes, as just seen, and eight pixels are 24.
            unsafe { move_eight(from.as_ptr(), numbers, to.as_mut_ptr()) };
        } else {
            // The picture's last pixel is among them.
            for (to, offset) in to.as_chunks_mut::<3>().0.iter_mut().zip(numbers) {
                to.copy_from_slice(&from[offset as usize..][..3]);
            }
        }
        if begin + PIXELS == end {
            return;
        }
        // The last ones again, as far as they are not there yet.
        begin = (begin + PIXELS).min(end - PIXELS);
    }
}

/// Copies pixels that begin at these offsets.
///
/// # Safety
/// Four bytes may be read at each of the offsets from `from` on, and 24 written to `to`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn move_eight(from: *const u8, offsets: [u32; PIXELS], to: *mut u8) {
    for (index, offset) in offsets.into_iter().enumerate() {
        // SAFETY: the caller's promise; the last pixel is written without the byte after it.
        unsafe {
            let pixel = from.add(offset as usize).cast::<u32>().read_unaligned();
            let to = to.add(3 * index);
            if index + 1 < PIXELS {
                to.cast::<u32>().write_unaligned(pixel);
            } else {
                to.cast::<u16>().write_unaligned(pixel as u16);
                to.add(2).write((pixel >> 16) as u8);
            }
        }
    }
}

/// The bytes that the pixels nearest to eight coordinates begin with; all of them are in the picture, and their rows are affine.
#[inline]
#[target_feature(enable = "avx2")]
fn offsets(coordinates: &RowCoordinates, x: usize, width: usize) -> __m256i {
    let step = steps(coordinates, x);
    // Rounded to even between two, as numbers always are here.
    let column = _mm256_cvtps_epi32(along(coordinates, 0, step));
    let row = _mm256_cvtps_epi32(along(coordinates, 1, step));
    let offset = _mm256_add_epi32(_mm256_mullo_epi32(row, _mm256_set1_epi32(width as i32)), column);
    _mm256_add_epi32(offset, _mm256_add_epi32(offset, offset))
}

/// How far eight pixels are from the middle of their row.
#[inline]
#[target_feature(enable = "avx2")]
fn steps(coordinates: &RowCoordinates, x: usize) -> __m256 {
    let numbers = _mm256_add_epi32(_mm256_set1_epi32(x as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_sub_ps(_mm256_cvtepi32_ps(numbers), _mm256_set1_ps(coordinates.middle))
}

/// What u, v or w are there.
#[inline]
#[target_feature(enable = "avx2")]
fn along(coordinates: &RowCoordinates, number: usize, step: __m256) -> __m256 {
    let change = _mm256_mul_ps(_mm256_set1_ps(coordinates.along[number]), step);
    _mm256_add_ps(_mm256_set1_ps(coordinates.start[number]), change)
}

/// Eight pixels at a time, two in each vector: the channels of the left and the right pixel side by side, in 16 bit, so that one instruction
/// weighs and adds them. (Vectors go through no closures, see `avx512.rs`.)
#[target_feature(enable = "avx2")]
pub(in crate::kernels) fn between_rgb(from: &[u8], width: usize, block: &Surrounding, to: &mut [u8; BLOCK_RGB_BYTES]) {
    let below = 3 * width;
    // Offsets in bytes must be numbers of 32 bit with a sign.
    let Some(last) = from.len().checked_sub(below + READ_BYTES).filter(|_| i32::try_from(from.len()).is_ok()) else {
        return between_rgb_body(from, width, block, to);
    };
    let last = _mm256_set1_epi32(last as i32);
    for first in (0..BLOCK).step_by(PIXELS) {
        let (offsets, upper) = (numbers(&block.offsets, first), numbers(&block.upper, first));
        let lower = numbers(&block.lower, first);
        let offsets = _mm256_add_epi32(offsets, _mm256_add_epi32(offsets, offsets));
        let is_last = _mm256_cmpeq_epi32(_mm256_max_epu32(offsets, last), last);
        assert_eq!(_mm256_movemask_epi8(is_last), -1, "only what may be read is within");
        let mut starts = [0_u32; PIXELS];
        // SAFETY: eight numbers are a vector.
        unsafe { _mm256_storeu_si256(starts.as_mut_ptr().cast(), offsets) };
        // SAFETY: from each offset, and from the row below it, to the end are at least `READ_BYTES`, as just asserted.
        let [a, b, c, d] = unsafe {
            let from = from.as_ptr();
            [
                two(from, below, starts[0], starts[4], weights::<0>(upper), weights::<0>(lower)),
                two(from, below, starts[1], starts[5], weights::<1>(upper), weights::<1>(lower)),
                two(from, below, starts[2], starts[6], weights::<2>(upper), weights::<2>(lower)),
                two(from, below, starts[3], starts[7], weights::<3>(upper), weights::<3>(lower)),
            ]
        };
        let pixels = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        let close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
        let pixels = _mm256_shuffle_epi8(pixels, _mm256_broadcastsi128_si256(close));
        let to = &mut to[3 * first..][..28];
        // SAFETY: 16 bytes twice, the second ones from the twelfth on, are 28.
        unsafe {
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm256_castsi256_si128(pixels));
            _mm_storeu_si128(to.as_mut_ptr().add(12).cast(), _mm256_extracti128_si256::<1>(pixels));
        }
    }
}

/// Number `N` of eight weights in the lower half, and the fourth after it in the upper.
#[inline]
#[target_feature(enable = "avx2")]
fn weights<const N: i32>(weights: __m256i) -> __m256i {
    match N {
        0 => _mm256_shuffle_epi32::<0b00_00_00_00>(weights),
        1 => _mm256_shuffle_epi32::<0b01_01_01_01>(weights),
        2 => _mm256_shuffle_epi32::<0b10_10_10_10>(weights),
        _ => _mm256_shuffle_epi32::<0b11_11_11_11>(weights),
    }
}

/// The pixels between those around two coordinates, a number for each channel.
///
/// # Safety
/// From both offsets on, and from `below` after them, `READ_BYTES` may be read.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two(from: *const u8, below: usize, left: u32, right: u32, upper: __m256i, lower: __m256i) -> __m256i {
    let pairs = _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
    let pairs = _mm256_broadcastsi128_si256(pairs);
    // SAFETY: the caller's promise.
    let (above, under) = unsafe {
        let (left, right) = (from.add(left as usize), from.add(right as usize));
        (both(left, right), both(left.add(below), right.add(below)))
    };
    let above = _mm256_madd_epi16(_mm256_shuffle_epi8(above, pairs), upper);
    let under = _mm256_madd_epi16(_mm256_shuffle_epi8(under, pairs), lower);
    let half = _mm256_set1_epi32(1 << (WEIGHT_BITS - 1));
    _mm256_srli_epi32::<{ WEIGHT_BITS as i32 }>(_mm256_add_epi32(_mm256_add_epi32(above, under), half))
}

/// Half a vector from each.
///
/// # Safety
/// 16 bytes may be read from both on.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn both(left: *const u8, right: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    let (left, right) = unsafe { (_mm_loadu_si128(left.cast()), _mm_loadu_si128(right.cast())) };
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(left), right)
}

/// Eight of a block's numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers(from: &[u32; BLOCK], first: usize) -> __m256i {
    let from = &from[first..][..PIXELS];
    // SAFETY: eight numbers are a vector.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}
