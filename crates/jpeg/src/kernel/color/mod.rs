//! Rows of components to rows of RGB.
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

use super::dispatch;
use crate::level::Supported;

// JFIF's conversion with 16 bits behind the point, as libjpeg rounds it: 1.40200, 1.77200, 0.34414 and 0.71414 are 91881,
// 116130, 22554 and 46802. The remainder of each modulo 65536 fits into a signed 16-bit number.
const RED_CR: i16 = (91_881 - 65_536) as i16;
const BLUE_CB: i16 = (116_130 - 2 * 65_536) as i16;
const GREEN_CB: i16 = -22_554;
const GREEN_CR: i16 = (65_536 - 46_802) as i16;

/// Converts brightness and two color differences to pixels, as many as `output` holds.
pub(crate) fn convert(level: Supported, y: &[u8], cb: &[u8], cr: &[u8], output: &mut [u8]) {
    let count = output.len() / 3;
    let (y, cb, cr) = (&y[..count], &cb[..count], &cr[..count]);
    dispatch!(level, convert(y, cb, cr, output));
}

/// Puts three components side by side.
pub(crate) fn interleave(components: [&[u8]; 3], output: &mut [u8]) {
    let [first, second, third] = components;
    for (index, pixel) in output.as_chunks_mut::<3>().0.iter_mut().enumerate() {
        *pixel = [first[index], second[index], third[index]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    /// What libjpeg's tables hold.
    fn expected(y: u8, cb: u8, cr: u8) -> [u8; 3] {
        let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
        let red = y + ((91_881 * cr + 32_768) >> 16);
        let green = y + ((-22_554 * cb - 46_802 * cr + 32_768) >> 16);
        let blue = y + ((116_130 * cb + 32_768) >> 16);
        [red, green, blue].map(|value| value.clamp(0, 255) as u8)
    }

    #[test]
    fn levels_agree_with_the_tables_for_all_colors() {
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let level = Supported::new(level).unwrap();
            for y in [0u8, 1, 77, 128, 200, 254, 255] {
                for cb in 0..=255u8 {
                    let cr: Vec<u8> = (0..=255).collect();
                    let mut output = [0; 768];
                    convert(level, &[y; 256], &[cb; 256], &cr, &mut output);
                    for (cr, pixel) in output.as_chunks::<3>().0.iter().enumerate() {
                        assert_eq!(*pixel, expected(y, cb, cr as u8), "{level:?} {y} {cb} {cr}");
                    }
                }
            }
        }
    }

    #[test]
    fn levels_agree_for_all_widths() {
        let row = |seed: u32| -> Vec<u8> { (0..200u32).map(|i| (i * i * seed + i * 37) as u8).collect() };
        let (y, cb, cr) = (row(3), row(5), row(7));
        for width in 0..200 {
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let mut output = vec![0; width * 3];
                convert(Supported::new(level).unwrap(), &y, &cb, &cr, &mut output);
                for (x, pixel) in output.as_chunks::<3>().0.iter().enumerate() {
                    assert_eq!(*pixel, expected(y[x], cb[x], cr[x]), "{level:?} {width} {x}");
                }
            }
        }
    }
}
