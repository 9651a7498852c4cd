//! Finishing a row with AVX2: 32 samples of each phase at a time (16 where they have 16 bits).
//!
//! Nothing is merged before it is interleaved: the transform is undone phase by phase, and then the samples of all phases and
//! channels are interleaved at once, in pairs of pairs. The two halves of a vector stay apart all the way: each writes its own
//! part of the row.

use std::arch::x86_64::{
    __m256i, _mm_storeu_si128, _mm256_add_epi8, _mm256_add_epi16, _mm256_and_si256, _mm256_blend_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi16,
    _mm256_shuffle_epi32, _mm256_srli_epi16, _mm256_sub_epi8, _mm256_sub_epi16, _mm256_unpackhi_epi8,
    _mm256_unpackhi_epi16, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi8, _mm256_unpacklo_epi16,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use crate::{
    header::ColorTransform,
    phases::{Phases, counts},
    sample::Sample,
};

/// Where the samples of a plane are: phase 0, and how far it is from each phase to the next in coding order.
type Plane = (*const u8, usize);

/// The phases of a plane, with space for the width rounded up to whole vectors.
#[inline(always)]
fn plane<S: Sample>(phases: &Phases<S>, width: usize) -> Plane {
    assert!(phases.has_space(&counts(width)), "rows have space for the width");
    let (start, pitch) = phases.start();
    (start.cast(), pitch * size_of::<S>())
}

/// 32 bytes of each phase, from byte `at`, in the order of columns.
///
/// # Safety
/// They must be there.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn phases((start, pitch): Plane, at: usize) -> [__m256i; 4] {
    // SAFETY: the caller's promise; the loads need no alignment.
    unsafe {
        let start = start.add(at);
        [
            _mm256_loadu_si256(start.cast()),
            _mm256_loadu_si256(start.add(2 * pitch).cast()),
            _mm256_loadu_si256(start.add(pitch).cast()),
            _mm256_loadu_si256(start.add(3 * pitch).cast()),
        ]
    }
}

/// Writes vectors: their lower halves one after the other, and their upper halves likewise, `apart` bytes further on.
///
/// # Safety
/// There must be space.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn write<const N: usize>(out: *mut u8, apart: usize, vectors: [__m256i; N]) {
    for (index, vector) in vectors.into_iter().enumerate() {
        // SAFETY: the caller's promise; the stores need no alignment.
        unsafe {
            _mm_storeu_si128(out.add(16 * index).cast(), _mm256_castsi256_si128(vector));
            _mm_storeu_si128(out.add(apart + 16 * index).cast(), _mm256_extracti128_si256::<1>(vector));
        }
    }
}

/// Undoes the transform on samples of one phase, for each depth.
macro_rules! inverse {
    ($name:ident, $add:ident, $sub:ident, $set1:ident, $half:expr, $quarter:expr, $eighth:expr, $shifted1:expr, $shifted2:expr) => {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        fn $name<const TRANSFORM: u8>([first, u, third]: [__m256i; 3]) -> [__m256i; 3] {
            if TRANSFORM == 0 {
                return [first, u, third];
            }
            let (luma, shift) = ColorTransform::ALL[TRANSFORM as usize].parameters();
            let half = $set1($half);
            let v = match shift {
                1 => {
                    let shifted = _mm256_and_si256(_mm256_srli_epi16::<1>(u), $set1($shifted1));
                    $add(third, $sub(shifted, $set1($quarter)))
                }
                2 => {
                    let shifted = _mm256_and_si256(_mm256_srli_epi16::<2>(u), $set1($shifted2));
                    $add(third, $sub(shifted, $set1($eighth)))
                }
                _ => third,
            };
            let green = if luma {
                let sum = _mm256_xor_si256($add(u, v), half);
                let shifted = _mm256_and_si256(_mm256_srli_epi16::<2>(sum), $set1($shifted2));
                $sub(first, $sub(shifted, $set1($eighth)))
            } else {
                first
            };
            [_mm256_xor_si256($add(u, green), half), green, _mm256_xor_si256($add(v, green), half)]
        }
    };
}

inverse!(inverse, _mm256_add_epi8, _mm256_sub_epi8, _mm256_set1_epi8, -128, 64, 32, 0x7F, 0x3F);
inverse!(inverse_wide, _mm256_add_epi16, _mm256_sub_epi16, _mm256_set1_epi16, i16::MIN, 0x4000, 0x2000, 0x7FFF, 0x3FFF);

/// Interleaves samples of one byte.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn bytes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

/// Interleaves two bytes each.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn words(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

/// Interleaves four bytes each.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn dwords(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)]
}

/// Interleaves eight bytes each.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn qwords(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

/// Four dwords of each of three vectors in turn, in each half. Each is rotated such that everything is where it should be, and
/// then only to be chosen.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn triples_of_dwords(a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 3] {
    let a = _mm256_shuffle_epi32::<0b01_10_11_00>(a);
    let b = _mm256_shuffle_epi32::<0b10_11_00_01>(b);
    let c = _mm256_shuffle_epi32::<0b11_00_01_10>(c);
    [
        _mm256_blend_epi32::<0x44>(_mm256_blend_epi32::<0x22>(a, b), c),
        _mm256_blend_epi32::<0x44>(_mm256_blend_epi32::<0x22>(b, c), a),
        _mm256_blend_epi32::<0x44>(_mm256_blend_epi32::<0x22>(c, a), b),
    ]
}

/// Two qwords of each of three vectors in turn, in each half.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn triples_of_qwords(a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 3] {
    [_mm256_unpacklo_epi64(a, b), _mm256_blend_epi32::<0xCC>(c, a), _mm256_unpackhi_epi64(b, c)]
}

/// Defines functions that write a whole row, and those that write one block of it, for one depth. `$pair` interleaves two
/// samples, `$quad` two pairs, `$eight` two quadruples.
macro_rules! finish {
    (
        $sample:ty, $inverse:ident, $pair:ident, $quad:ident, $eight:ident, $triples:ident,
        $finish1:ident, $block1:ident, $finish3:ident, $finish3_as:ident, $block3:ident, $finish4:ident, $finish4_as:ident,
        $block4:ident
    ) => {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub(in crate::kernel) fn $finish1(phases: &Phases<$sample>, out: &mut [u8]) {
            let plane = plane(phases, out.len() / size_of::<$sample>());
            let (blocks, last) = out.as_chunks_mut::<128>();
            for (index, block) in blocks.iter_mut().enumerate() {
                // SAFETY: the plane has space for the width, and the block is whole.
                unsafe { $block1(plane, 32 * index, block) };
            }
            if !last.is_empty() {
                let mut block = [0; 128];
                // SAFETY: the plane has space for the width, rounded up to whole vectors.
                unsafe { $block1(plane, 32 * blocks.len(), &mut block) };
                last.copy_from_slice(&block[..last.len()]);
            }
        }

        /// # Safety
        /// From byte `at`, 32 bytes of each phase must be there.
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        unsafe fn $block1(plane: Plane, at: usize, out: &mut [u8; 128]) {
            // SAFETY: the caller's promise, and the size of `out`.
            unsafe {
                let [a, b, c, d] = phases(plane, at);
                let (front, back) = ($pair(a, b), $pair(c, d));
                let ([first, second], [third, fourth]) = ($quad(front[0], back[0]), $quad(front[1], back[1]));
                write(out.as_mut_ptr(), 64, [first, second, third, fourth]);
            }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub(in crate::kernel) fn $finish3(transform: ColorTransform, planes: [&Phases<$sample>; 3], out: &mut [u8]) {
            match transform {
                ColorTransform::None => $finish3_as::<0>(planes, out),
                ColorTransform::SubtractGreen => $finish3_as::<1>(planes, out),
                ColorTransform::GreenHalf => $finish3_as::<2>(planes, out),
                ColorTransform::LumaQuarter => $finish3_as::<3>(planes, out),
                ColorTransform::Luma => $finish3_as::<4>(planes, out),
            }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        fn $finish3_as<const TRANSFORM: u8>([first, second, third]: [&Phases<$sample>; 3], out: &mut [u8]) {
            let width = out.len() / (3 * size_of::<$sample>());
            let planes = [plane(first, width), plane(second, width), plane(third, width)];
            let (blocks, last) = out.as_chunks_mut::<384>();
            for (index, block) in blocks.iter_mut().enumerate() {
                // SAFETY: the planes have space for the width, and the block is whole.
                unsafe { $block3::<TRANSFORM>(planes, 32 * index, block) };
            }
            if !last.is_empty() {
                let mut block = [0; 384];
                // SAFETY: the planes have space for the width, rounded up to whole vectors.
                unsafe { $block3::<TRANSFORM>(planes, 32 * blocks.len(), &mut block) };
                last.copy_from_slice(&block[..last.len()]);
            }
        }

        /// # Safety
        /// From byte `at`, 32 bytes of each phase of each plane must be there.
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        unsafe fn $block3<const TRANSFORM: u8>(planes: [Plane; 3], at: usize, out: &mut [u8; 384]) {
            // SAFETY: the caller's promise, and the size of `out`.
            unsafe {
                let [a, b, c] = [phases(planes[0], at), phases(planes[1], at), phases(planes[2], at)];
                let [red0, green0, blue0] = $inverse::<TRANSFORM>([a[0], b[0], c[0]]);
                let [red1, green1, blue1] = $inverse::<TRANSFORM>([a[1], b[1], c[1]]);
                let (start, middle) = ($pair(red0, green0), $pair(blue0, red1));
                let first = [$quad(start[0], middle[0]), $quad(start[1], middle[1])];
                let [red2, green2, blue2] = $inverse::<TRANSFORM>([a[2], b[2], c[2]]);
                let (start, middle) = ($pair(green1, blue1), $pair(red2, green2));
                let second = [$quad(start[0], middle[0]), $quad(start[1], middle[1])];
                let [red3, green3, blue3] = $inverse::<TRANSFORM>([a[3], b[3], c[3]]);
                let (start, middle) = ($pair(blue2, red3), $pair(green3, blue3));
                let third = [$quad(start[0], middle[0]), $quad(start[1], middle[1])];
                for quarter in 0..4 {
                    let (half, part) = (quarter / 2, quarter % 2);
                    let vectors = $triples(first[half][part], second[half][part], third[half][part]);
                    write(out.as_mut_ptr().add(48 * quarter), 192, vectors);
                }
            }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        pub(in crate::kernel) fn $finish4(transform: ColorTransform, planes: [&Phases<$sample>; 4], out: &mut [u8]) {
            match transform {
                ColorTransform::None => $finish4_as::<0>(planes, out),
                ColorTransform::SubtractGreen => $finish4_as::<1>(planes, out),
                ColorTransform::GreenHalf => $finish4_as::<2>(planes, out),
                ColorTransform::LumaQuarter => $finish4_as::<3>(planes, out),
                ColorTransform::Luma => $finish4_as::<4>(planes, out),
            }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        fn $finish4_as<const TRANSFORM: u8>(planes: [&Phases<$sample>; 4], out: &mut [u8]) {
            let width = out.len() / (4 * size_of::<$sample>());
            let [first, second, third, fourth] = planes;
            let planes = [plane(first, width), plane(second, width), plane(third, width), plane(fourth, width)];
            let (blocks, last) = out.as_chunks_mut::<512>();
            for (index, block) in blocks.iter_mut().enumerate() {
                // SAFETY: the planes have space for the width, and the block is whole.
                unsafe { $block4::<TRANSFORM>(planes, 32 * index, block) };
            }
            if !last.is_empty() {
                let mut block = [0; 512];
                // SAFETY: the planes have space for the width, rounded up to whole vectors.
                unsafe { $block4::<TRANSFORM>(planes, 32 * blocks.len(), &mut block) };
                last.copy_from_slice(&block[..last.len()]);
            }
        }

        /// # Safety
        /// From byte `at`, 32 bytes of each phase of each plane must be there.
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline]
        unsafe fn $block4<const TRANSFORM: u8>(planes: [Plane; 4], at: usize, out: &mut [u8; 512]) {
            // SAFETY: the caller's promise, and the size of `out`.
            unsafe {
                let [a, b, c] = [phases(planes[0], at), phases(planes[1], at), phases(planes[2], at)];
                let alpha = phases(planes[3], at);
                // The pixels of each phase, in four parts.
                let mut pixels = [[[alpha[0]; 2]; 2]; 4];
                for (phase, pixels) in pixels.iter_mut().enumerate() {
                    let [red, green, blue] = $inverse::<TRANSFORM>([a[phase], b[phase], c[phase]]);
                    let (front, back) = ($pair(red, green), $pair(blue, alpha[phase]));
                    *pixels = [$quad(front[0], back[0]), $quad(front[1], back[1])];
                }
                for quarter in 0..4 {
                    let (half, part) = (quarter / 2, quarter % 2);
                    let [p0, p1, p2, p3] =
                        [pixels[0][half][part], pixels[1][half][part], pixels[2][half][part], pixels[3][half][part]];
                    write(out.as_mut_ptr().add(64 * quarter), 256, $eight(p0, p1, p2, p3));
                }
            }
        }
    };
}

/// Pixels of four bytes of four phases, in order.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn four_dwords(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> [__m256i; 4] {
    let (front, back) = (dwords(a, b), dwords(c, d));
    let ([first, second], [third, fourth]) = (qwords(front[0], back[0]), qwords(front[1], back[1]));
    [first, second, third, fourth]
}

/// Pixels of eight bytes of four phases, in order.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn four_qwords(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> [__m256i; 4] {
    let (front, back) = (qwords(a, b), qwords(c, d));
    [front[0], back[0], front[1], back[1]]
}

finish!(
    u8,
    inverse,
    bytes,
    words,
    four_dwords,
    triples_of_dwords,
    finish1,
    block1,
    finish3,
    finish3_as,
    block3,
    finish4,
    finish4_as,
    block4
);
finish!(
    u16,
    inverse_wide,
    words,
    dwords,
    four_qwords,
    triples_of_qwords,
    finish1_wide,
    block1_wide,
    finish3_wide,
    finish3_wide_as,
    block3_wide,
    finish4_wide,
    finish4_wide_as,
    block4_wide
);
