//! The definition.

use super::{BLUE_CB, GREEN_CB, GREEN_CR, RED_CR};

pub(super) fn convert(y: &[u8], cb: &[u8], cr: &[u8], output: &mut [u8]) {
    let part =
        |cb: i32, by_cb: i16, cr: i32, by_cr: i16| (cb * i32::from(by_cb) + cr * i32::from(by_cr) + 32_768) >> 16;
    for (((pixel, &y), &cb), &cr) in output.as_chunks_mut::<3>().0.iter_mut().zip(y).zip(cb).zip(cr) {
        let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
        let red = y + cr + part(0, 0, cr, RED_CR);
        let green = y - cr + part(cb, GREEN_CB, cr, GREEN_CR);
        let blue = y + 2 * cb + part(cb, BLUE_CB, 0, 0);
        *pixel = [red, green, blue].map(|value| value.clamp(0, 255) as u8);
    }
}
