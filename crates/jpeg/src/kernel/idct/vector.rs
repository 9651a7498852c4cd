//! What the vector levels have in common: each 128-bit lane holds one block, and nothing crosses lanes before the end.

/// Defines the transform for one width of vectors. The names of the instructions are those of the file that uses it.
macro_rules! define_transform {
    ($features:literal) => {
        /// `a * by_a + b * by_b`, of the lower and of the upper half of each lane.
        #[inline]
        #[target_feature(enable = $features)]
        fn times(a: Vector, b: Vector, by_a: i16, by_b: i16) -> [Vector; 2] {
            let by = set32(i32::from(by_b) << 16 | i32::from(by_a) & 0xFFFF);
            [multiply_add(unpack_low16(a, b), by), multiply_add(unpack_high16(a, b), by)]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn add_pair(a: [Vector; 2], b: [Vector; 2]) -> [Vector; 2] {
            [add32(a[0], b[0]), add32(a[1], b[1])]
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn subtract_pair(a: [Vector; 2], b: [Vector; 2]) -> [Vector; 2] {
            [subtract32(a[0], b[0]), subtract32(a[1], b[1])]
        }

        /// A 16-bit number times 2 to the power of the constants' bits.
        #[inline]
        #[target_feature(enable = $features)]
        fn scale_up(value: Vector) -> [Vector; 2] {
            const DOWN: i32 = 16 - CONSTANT_BITS as i32;
            [
                shift_right32::<{ DOWN as ShiftCount }>(unpack_low16(zero(), value)),
                shift_right32::<{ DOWN as ShiftCount }>(unpack_high16(zero(), value)),
            ]
        }

        /// One dimension of the transform; `SMALL` if the second half of the input is zero.
        #[inline]
        #[target_feature(enable = $features)]
        fn pass<const SHIFT: ShiftCount, const SMALL: bool>(input: [Vector; 8]) -> [Vector; 8] {
            // The rounding of the result is added here once, rather than to each of the eight.
            let round = set32(1 << (SHIFT - 1));
            let round = [round, round];
            let [even, odd];
            if SMALL {
                let base = add_pair(scale_up(input[0]), round);
                let even_2 = times(input[2], zero(), F_0_541, 0);
                let even_3 = times(input[2], zero(), F_0_541 + F_0_765, 0);
                even = [
                    add_pair(base, even_3),
                    add_pair(base, even_2),
                    subtract_pair(base, even_2),
                    subtract_pair(base, even_3),
                ];
                // z3 is the third input and z4 the first, so that the two products of each are one.
                odd = [
                    times(input[1], input[3], F_1_501 - F_0_899 + (F_1_175 - F_0_390), F_1_175),
                    times(input[1], input[3], F_1_175, F_3_072 - F_2_562 + (F_1_175 - F_1_961)),
                    times(input[1], input[3], F_1_175 - F_0_390, F_1_175 - F_2_562),
                    times(input[1], input[3], F_1_175 - F_0_899, F_1_175 - F_1_961),
                ];
            } else {
                let even_sum = add_pair(scale_up(add16(input[0], input[4])), round);
                let even_difference = add_pair(scale_up(subtract16(input[0], input[4])), round);
                let even_2 = times(input[2], input[6], F_0_541, F_0_541 - F_1_847);
                let even_3 = times(input[2], input[6], F_0_541 + F_0_765, F_0_541);
                even = [
                    add_pair(even_sum, even_3),
                    add_pair(even_difference, even_2),
                    subtract_pair(even_difference, even_2),
                    subtract_pair(even_sum, even_3),
                ];
                let (z3, z4) = (add16(input[7], input[3]), add16(input[5], input[1]));
                let sum_3 = times(z3, z4, F_1_175 - F_1_961, F_1_175);
                let sum_4 = times(z3, z4, F_1_175, F_1_175 - F_0_390);
                odd = [
                    add_pair(times(input[7], input[1], -F_0_899, F_1_501 - F_0_899), sum_4),
                    add_pair(times(input[5], input[3], -F_2_562, F_3_072 - F_2_562), sum_3),
                    add_pair(times(input[5], input[3], F_2_053 - F_2_562, -F_2_562), sum_4),
                    add_pair(times(input[7], input[1], F_0_298 - F_0_899, -F_0_899), sum_3),
                ];
            }
            let mut output = input;
            for index in 0..4 {
                let [low, high] = add_pair(even[index], odd[index]);
                output[index] = pack32(shift_right32::<SHIFT>(low), shift_right32::<SHIFT>(high));
                let [low, high] = subtract_pair(even[index], odd[index]);
                output[7 - index] = pack32(shift_right32::<SHIFT>(low), shift_right32::<SHIFT>(high));
            }
            output
        }

        /// Swaps rows and columns of the block in each lane.
        #[inline]
        #[target_feature(enable = $features)]
        fn transpose(rows: [Vector; 8]) -> [Vector; 8] {
            let [a, b, c, d, e, f, g, h] = rows;
            let (ae_low, ae_high) = (unpack_low16(a, e), unpack_high16(a, e));
            let (bf_low, bf_high) = (unpack_low16(b, f), unpack_high16(b, f));
            let (cg_low, cg_high) = (unpack_low16(c, g), unpack_high16(c, g));
            let (dh_low, dh_high) = (unpack_low16(d, h), unpack_high16(d, h));
            let (aceg_01, aceg_23) = (unpack_low16(ae_low, cg_low), unpack_high16(ae_low, cg_low));
            let (aceg_45, aceg_67) = (unpack_low16(ae_high, cg_high), unpack_high16(ae_high, cg_high));
            let (bdfh_01, bdfh_23) = (unpack_low16(bf_low, dh_low), unpack_high16(bf_low, dh_low));
            let (bdfh_45, bdfh_67) = (unpack_low16(bf_high, dh_high), unpack_high16(bf_high, dh_high));
            [
                unpack_low16(aceg_01, bdfh_01),
                unpack_high16(aceg_01, bdfh_01),
                unpack_low16(aceg_23, bdfh_23),
                unpack_high16(aceg_23, bdfh_23),
                unpack_low16(aceg_45, bdfh_45),
                unpack_high16(aceg_45, bdfh_45),
                unpack_low16(aceg_67, bdfh_67),
                unpack_high16(aceg_67, bdfh_67),
            ]
        }

        /// Columns of 16-bit numbers to rows of samples: each lane of the result holds two rows of its block.
        #[inline]
        #[target_feature(enable = $features)]
        fn samples(columns: [Vector; 8]) -> [Vector; 4] {
            let [a, b, c, d, e, f, g, h] = columns;
            let (ae, bf, cg, dh) = (pack16(a, e), pack16(b, f), pack16(c, g), pack16(d, h));
            let (ac, eg) = (unpack_low8(ae, cg), unpack_high8(ae, cg));
            let (bd, fh) = (unpack_low8(bf, dh), unpack_high8(bf, dh));
            let (left_low, left_high) = (unpack_low8(ac, bd), unpack_high8(ac, bd));
            let (right_low, right_high) = (unpack_low8(eg, fh), unpack_high8(eg, fh));
            let center = set8(-128);
            [
                add8(unpack_low32(left_low, right_low), center),
                add8(unpack_high32(left_low, right_low), center),
                add8(unpack_low32(left_high, right_high), center),
                add8(unpack_high32(left_high, right_high), center),
            ]
        }

        /// Both dimensions, from dequantized rows.
        #[inline]
        #[target_feature(enable = $features)]
        fn transform<const SMALL: bool>(rows: [Vector; 8]) -> [Vector; 4] {
            let columns = transpose(pass::<{ FIRST_SHIFT as ShiftCount }, SMALL>(rows));
            samples(pass::<{ SECOND_SHIFT as ShiftCount }, SMALL>(columns))
        }
    };
}
pub(super) use define_transform;
