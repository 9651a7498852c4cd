//! The definition.

use super::{
    CONSTANT_BITS, F_0_298, F_0_390, F_0_541, F_0_765, F_0_899, F_1_175, F_1_501, F_1_847, F_1_961, F_2_053, F_2_562,
    F_3_072, FIRST_SHIFT, Quantizers, SECOND_SHIFT,
};
use crate::entropy::Quad;

pub(super) fn inverse(quad: &Quad, quantizers: &Quantizers, _extent: u8, target: &mut [u8], stride: usize) -> bool {
    let mut high = 0;
    for block in 0..4 {
        let mut rows = [[0i16; 8]; 8];
        for (y, row) in rows.iter_mut().enumerate() {
            for (x, value) in row.iter_mut().enumerate() {
                let at = y * 32 + block * 8 + x;
                *value = quad.0[at].wrapping_mul(quantizers.0[at]);
            }
        }
        high |= rows[0].iter().fold(0, |high, value| high | value.wrapping_add(8192));
        let mut columns = [[0; 8]; 8];
        for (x, column) in columns.iter_mut().enumerate() {
            *column = pass::<FIRST_SHIFT>(rows.map(|row| row[x]));
        }
        for y in 0..8 {
            let samples = pass::<SECOND_SHIFT>(columns.map(|column| column[y]));
            let at = y * stride + block * 8;
            for (sample, value) in target[at..at + 8].iter_mut().zip(samples) {
                *sample = (value.clamp(-128, 127) + 128) as u8;
            }
        }
    }
    high as u16 & 0xC000 == 0
}

/// One dimension of the transform, in the order of libjpeg-turbo's vector code.
fn pass<const SHIFT: u32>(input: [i16; 8]) -> [i16; 8] {
    let times = |a: i16, by_a: i16, b: i16, by_b: i16| {
        (i32::from(a) * i32::from(by_a)).wrapping_add(i32::from(b) * i32::from(by_b))
    };
    let even_sum = i32::from(input[0].wrapping_add(input[4])) << CONSTANT_BITS;
    let even_difference = i32::from(input[0].wrapping_sub(input[4])) << CONSTANT_BITS;
    let even_2 = times(input[2], F_0_541, input[6], F_0_541 - F_1_847);
    let even_3 = times(input[2], F_0_541 + F_0_765, input[6], F_0_541);
    let even = [
        even_sum.wrapping_add(even_3),
        even_difference.wrapping_add(even_2),
        even_difference.wrapping_sub(even_2),
        even_sum.wrapping_sub(even_3),
    ];
    let (z3, z4) = (input[7].wrapping_add(input[3]), input[5].wrapping_add(input[1]));
    let sum_3 = times(z3, F_1_175 - F_1_961, z4, F_1_175);
    let sum_4 = times(z3, F_1_175, z4, F_1_175 - F_0_390);
    let odd = [
        times(input[7], -F_0_899, input[1], F_1_501 - F_0_899).wrapping_add(sum_4),
        times(input[5], -F_2_562, input[3], F_3_072 - F_2_562).wrapping_add(sum_3),
        times(input[5], F_2_053 - F_2_562, input[3], -F_2_562).wrapping_add(sum_4),
        times(input[7], F_0_298 - F_0_899, input[1], -F_0_899).wrapping_add(sum_3),
    ];
    let descale = |value: i32| {
        let value = value.wrapping_add(1 << (SHIFT - 1)) >> SHIFT;
        value.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
    };
    let mut output = [0; 8];
    for index in 0..4 {
        output[index] = descale(even[index].wrapping_add(odd[index]));
        output[7 - index] = descale(even[index].wrapping_sub(odd[index]));
    }
    output
}
