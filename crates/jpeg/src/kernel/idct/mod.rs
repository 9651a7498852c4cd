//! Dequantization and the inverse DCT: libjpeg's "islow" (Loeffler, Ligtenberg and Moschytz 1989, with constants of 13 bits
//! and two extra bits between the passes), on four interleaved blocks.
//!
//! The arithmetic is that of libjpeg-turbo's vector code for x86, with its 16-bit sums and its saturation, so that even
//! coefficients that no encoder writes give the same pixels. There is one exception, which callers learn of: where all rows
//! but the first are zero, that code shifts where this saturates. The two differ only for values of the first row beyond
//! 8192, eight times what an image has.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "vector loads and stores, and calls of functions for instructions that were detected"
    )
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod vector;

use super::dispatch;
use crate::entropy::Quad;
use crate::level::Supported;

/// Quantizers of a component, laid out like a [`Quad`].
pub(crate) type Quantizers = Quad;

/// Bits between the fixed point and the integers of the constants below.
const CONSTANT_BITS: u32 = 13;
const FIRST_SHIFT: u32 = CONSTANT_BITS - 2;
const SECOND_SHIFT: u32 = CONSTANT_BITS + 2 + 3;

const F_0_298: i16 = 2446;
const F_0_390: i16 = 3196;
const F_0_541: i16 = 4433;
const F_0_765: i16 = 6270;
const F_0_899: i16 = 7373;
const F_1_175: i16 = 9633;
const F_1_501: i16 = 12299;
const F_1_847: i16 = 15137;
const F_1_961: i16 = 16069;
const F_2_053: i16 = 16819;
const F_2_562: i16 = 20995;
const F_3_072: i16 = 25172;

/// The number of leading positions in file order that are within the first four rows and columns.
#[cfg(any(test, target_arch = "x86_64"))]
const CORNER_EXTENT: u8 = 10;

/// Quantizers in natural order, for four blocks.
pub(crate) fn quantizers(natural: &[u16; 64]) -> Quantizers {
    let mut quad = Quad([0; 256]);
    for (index, value) in quad.0.iter_mut().enumerate() {
        *value = natural[index / 32 * 8 + index % 8] as i16;
    }
    quad
}

/// Turns the coefficients of `quad` into samples: 32 across and 8 rows of `target`, `stride` bytes from row to row.
///
/// `extent` is at least the position behind the last coefficient, in the order of the file, that is not zero. Returns
/// `false` if the coefficients are outside the range where results equal libjpeg-turbo's.
pub(crate) fn inverse(
    level: Supported,
    quad: &Quad,
    quantizers: &Quantizers,
    extent: u8,
    target: &mut [u8],
    stride: usize,
) -> bool {
    assert!(target.len() >= 7 * stride + 32, "the target must hold four blocks");
    dispatch!(level, inverse(quad, quantizers, extent, target, stride))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn levels_agree_on_all_kinds_of_blocks() {
        let mut state = 1;
        for round in 0..2000u32 {
            let natural: [u16; 64] = std::array::from_fn(|_| (random(&mut state) % (1 << (1 + round % 16))) as u16 + 1);
            let table = quantizers(&natural);
            let extent = [1, 5, CORNER_EXTENT, 11, 64][round as usize % 5];
            let range = 1i64 << (2 + round % 14);
            let mut quad = Quad([0; 256]);
            for block in 0..4 {
                for &position in &crate::header::NATURAL[..usize::from(extent)] {
                    let at = usize::from(position) / 8 * 32 + block * 8 + usize::from(position) % 8;
                    quad.0[at] = (random(&mut state) as i64 % range - range / 2) as i16;
                }
            }
            let run = |level| {
                let mut pixels = vec![0; 8 * 40];
                let ok = inverse(Supported::new(level).unwrap(), &quad, &table, extent, &mut pixels, 40);
                (ok, ok.then_some(pixels))
            };
            let expected = run(Level::Scalar);
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                assert_eq!(run(level), expected, "{} {round}", level.name());
            }
        }
    }
}
