//! Finishing a row with NEON: the transform is undone while samples are in phases, these are put in turn by pairs, and channels interleaved
//! by the structure stores. Both depths are the same code on vectors of 16 or 8 samples.

pub(super) use narrow::{finish1, finish3, finish4};
pub(super) use wide::{finish1_wide, finish3_wide, finish4_wide};

/// Calls `put` with each piece of a row, its number first. The last one may be cut off.
#[inline(always)]
fn for_each_piece<const BYTES: usize>(out: &mut [u8], put: impl Fn(usize, &mut [u8; BYTES])) {
    let (pieces, rest) = out.as_chunks_mut::<BYTES>();
    let whole = pieces.len();
    for (index, piece) in pieces.iter_mut().enumerate() {
        put(index, piece);
    }
    if !rest.is_empty() {
        let mut piece = [0; BYTES];
        put(whole, &mut piece);
        rest.copy_from_slice(&piece[..rest.len()]);
    }
}

/// Defines the functions that write a row, for the vectors and operations that the module around it names.
macro_rules! finish {
    ($finish1:ident, $finish3:ident, $finish4:ident) => {
        use super::for_each_piece;
        use crate::{
            header::ColorTransform,
            phases::{Phases, counts},
        };

        /// Samples in a vector.
        const LANES: usize = 16 / size_of::<Sample>();

        /// Where the samples of a plane are: phase 0, and how far it is from each phase to the next in coding order.
        type Plane = (*const Sample, usize);

        /// The planes of a row, which have space for whole vectors.
        #[inline(always)]
        fn starts<const N: usize>(planes: [&Phases<Sample>; N], out: &[u8]) -> [Plane; N] {
            let counts = counts(out.len() / (N * size_of::<Sample>()));
            assert!(planes.iter().all(|plane| plane.has_space(&counts)), "rows have space for the width");
            planes.map(Phases::start)
        }

        /// Vector `index` of each phase of a plane, in the order of columns.
        ///
        /// # Safety
        /// The plane must have space for it.
        #[target_feature(enable = "neon")]
        #[inline]
        unsafe fn phases((start, pitch): Plane, index: usize) -> [Vector; 4] {
            // SAFETY: the caller's promise; they lie in the order in which they are coded.
            unsafe {
                let start = start.add(LANES * index);
                [load(start), load(start.add(2 * pitch)), load(start.add(pitch)), load(start.add(3 * pitch))]
            }
        }

        /// Four phases as the samples of four vectors.
        #[target_feature(enable = "neon")]
        #[inline]
        fn in_turn([first, second, third, fourth]: [Vector; 4]) -> [Vector; 4] {
            let (even_low, even_high) = (zip_low(first, third), zip_high(first, third));
            let (odd_low, odd_high) = (zip_low(second, fourth), zip_high(second, fourth));
            [
                zip_low(even_low, odd_low),
                zip_high(even_low, odd_low),
                zip_low(even_high, odd_high),
                zip_high(even_high, odd_high),
            ]
        }

        /// How a color transform is undone, without branches: what is not done shifts all bits out.
        #[derive(Clone, Copy)]
        struct Inverse {
            /// By which `u` is shifted before it is added to `v`, and what is then too much.
            shift: Shifts,
            bias: Vector,
            /// The same for `u + v`, which is taken from the first.
            luma_shift: Shifts,
            luma_bias: Vector,
        }

        impl Inverse {
            #[target_feature(enable = "neon")]
            #[inline]
            fn of(transform: ColorTransform) -> Self {
                let (luma, shift) = transform.parameters();
                let (shift, bias) = if shift == 0 { (Sample::BITS, 0) } else { (shift, HALF >> shift) };
                let (luma_shift, luma_bias) = if luma { (2, HALF >> 2) } else { (Sample::BITS, 0) };
                Self {
                    shift: shifts(-(shift as Shift)),
                    bias: all(bias),
                    luma_shift: shifts(-(luma_shift as Shift)),
                    luma_bias: all(luma_bias),
                }
            }

            /// A vector of pixels.
            #[target_feature(enable = "neon")]
            #[inline]
            fn pixels(self, [first, u, third]: [Vector; 3]) -> [Vector; 3] {
                let half = all(HALF);
                let v = add(sub(third, self.bias), shifted(u, self.shift));
                let sum = xor(add(u, v), half);
                let green = sub(add(first, self.luma_bias), shifted(sum, self.luma_shift));
                [xor(add(u, green), half), green, xor(add(v, green), half)]
            }
        }

        /// Red, green and blue of four vectors of pixels. The transform is undone while they are in phases; then these are put in turn.
        ///
        /// # Safety
        /// The planes must have space for vector `index`.
        #[target_feature(enable = "neon")]
        #[inline]
        unsafe fn colors(
            inverse: &impl Fn([Vector; 3]) -> [Vector; 3],
            [first, second, third]: [Plane; 3],
            index: usize,
        ) -> [[Vector; 4]; 3] {
            // SAFETY: the caller's promise.
            let (a, b, c) = unsafe { (phases(first, index), phases(second, index), phases(third, index)) };
            let (phase0, phase1) = (inverse([a[0], b[0], c[0]]), inverse([a[1], b[1], c[1]]));
            let (phase2, phase3) = (inverse([a[2], b[2], c[2]]), inverse([a[3], b[3], c[3]]));
            [
                in_turn([phase0[0], phase1[0], phase2[0], phase3[0]]),
                in_turn([phase0[1], phase1[1], phase2[1], phase3[1]]),
                in_turn([phase0[2], phase1[2], phase2[2], phase3[2]]),
            ]
        }

        #[target_feature(enable = "neon")]
        pub(in crate::kernel) fn $finish1(plane: &Phases<Sample>, out: &mut [u8]) {
            let [plane] = starts([plane], out);
            for_each_piece::<64>(out, |index, piece| {
                // SAFETY: the plane has space for the width, rounded up to whole vectors.
                let samples = in_turn(unsafe { phases(plane, index) });
                for (part, samples) in piece.as_chunks_mut().0.iter_mut().zip(samples) {
                    store1(part, samples);
                }
            });
        }

        #[target_feature(enable = "neon")]
        pub(in crate::kernel) fn $finish3(transform: ColorTransform, planes: [&Phases<Sample>; 3], out: &mut [u8]) {
            if transform == ColorTransform::None {
                finish3_with(|planes| planes, planes, out);
            } else {
                let inverse = Inverse::of(transform);
                finish3_with(|planes| inverse.pixels(planes), planes, out);
            }
        }

        #[target_feature(enable = "neon")]
        #[inline]
        fn finish3_with(inverse: impl Fn([Vector; 3]) -> [Vector; 3], planes: [&Phases<Sample>; 3], out: &mut [u8]) {
            let planes = starts(planes, out);
            for_each_piece::<192>(out, |index, piece| {
                // SAFETY: the planes have space for the width, rounded up to whole vectors.
                let [red, green, blue] = unsafe { colors(&inverse, planes, index) };
                for (k, part) in piece.as_chunks_mut().0.iter_mut().enumerate() {
                    store3(part, Three(red[k], green[k], blue[k]));
                }
            });
        }

        #[target_feature(enable = "neon")]
        pub(in crate::kernel) fn $finish4(transform: ColorTransform, planes: [&Phases<Sample>; 4], out: &mut [u8]) {
            if transform == ColorTransform::None {
                finish4_with(|planes| planes, planes, out);
            } else {
                let inverse = Inverse::of(transform);
                finish4_with(|planes| inverse.pixels(planes), planes, out);
            }
        }

        #[target_feature(enable = "neon")]
        #[inline]
        fn finish4_with(inverse: impl Fn([Vector; 3]) -> [Vector; 3], planes: [&Phases<Sample>; 4], out: &mut [u8]) {
            let [first, second, third, fourth] = starts(planes, out);
            for_each_piece::<256>(out, |index, piece| {
                // SAFETY: the planes have space for the width, rounded up to whole vectors.
                let [red, green, blue] = unsafe { colors(&inverse, [first, second, third], index) };
                // SAFETY: as above.
                let alpha = in_turn(unsafe { phases(fourth, index) });
                for (k, part) in piece.as_chunks_mut().0.iter_mut().enumerate() {
                    store4(part, Four(red[k], green[k], blue[k], alpha[k]));
                }
            });
        }
    };
}

/// Samples of 8 bits.
mod narrow {
    use std::arch::aarch64::{
        int8x16_t as Shifts, uint8x16_t as Vector, uint8x16x3_t as Three, uint8x16x4_t as Four, vaddq_u8 as add,
        vdupq_n_s8 as shifts, vdupq_n_u8 as all, veorq_u8 as xor, vld1q_u8 as load, vshlq_u8 as shifted, vst1q_u8,
        vst3q_u8, vst4q_u8, vsubq_u8 as sub, vzip1q_u8 as zip_low, vzip2q_u8 as zip_high,
    };

    type Sample = u8;
    type Shift = i8;
    const HALF: Sample = 0x80;

    #[target_feature(enable = "neon")]
    #[inline]
    fn store1(bytes: &mut [u8; 16], samples: Vector) {
        // SAFETY: the reference is to 16 writable bytes.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), samples) };
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn store3(bytes: &mut [u8; 48], rows: Three) {
        // SAFETY: the reference is to 48 writable bytes.
        unsafe { vst3q_u8(bytes.as_mut_ptr(), rows) };
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn store4(bytes: &mut [u8; 64], rows: Four) {
        // SAFETY: the reference is to 64 writable bytes.
        unsafe { vst4q_u8(bytes.as_mut_ptr(), rows) };
    }

    finish!(finish1, finish3, finish4);
}

/// Samples of 16 bits.
mod wide {
    use std::arch::aarch64::{
        int16x8_t as Shifts, uint16x8_t as Vector, uint16x8x3_t as Three, uint16x8x4_t as Four, vaddq_u16 as add,
        vdupq_n_s16 as shifts, vdupq_n_u16 as all, veorq_u16 as xor, vld1q_u16 as load, vreinterpretq_u8_u16,
        vshlq_u16 as shifted, vst1q_u8, vst3q_u16, vst4q_u16, vsubq_u16 as sub, vzip1q_u16 as zip_low,
        vzip2q_u16 as zip_high,
    };

    type Sample = u16;
    type Shift = i16;
    const HALF: Sample = 0x8000;

    #[target_feature(enable = "neon")]
    #[inline]
    fn store1(bytes: &mut [u8; 16], samples: Vector) {
        // SAFETY: the reference is to 16 writable bytes.
        unsafe { vst1q_u8(bytes.as_mut_ptr(), vreinterpretq_u8_u16(samples)) };
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn store3(bytes: &mut [u8; 48], rows: Three) {
        // SAFETY: the reference is to 48 writable bytes, and the instruction needs no alignment.
        unsafe { vst3q_u16(bytes.as_mut_ptr().cast(), rows) };
    }

    #[target_feature(enable = "neon")]
    #[inline]
    fn store4(bytes: &mut [u8; 64], rows: Four) {
        // SAFETY: the reference is to 64 writable bytes, and the instruction needs no alignment.
        unsafe { vst4q_u16(bytes.as_mut_ptr().cast(), rows) };
    }

    finish!(finish1_wide, finish3_wide, finish4_wide);
}
