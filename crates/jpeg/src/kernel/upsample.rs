//! Color at the size of brightness: libjpeg's "fancy" upsampling, a triangle filter of 3/4 and 1/4 whose rounding alternates.
//!
//! There is one definition, which is compiled once for any machine and once for AVX2.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls of functions for instructions that were detected")
)]

#[cfg(target_arch = "x86_64")]
use crate::level::Level;
use crate::level::Supported;

/// How a row of color becomes a row of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// 4:4:4: as it is.
    None,
    /// 4:2:2.
    Across,
    /// 4:4:0.
    Down,
    /// 4:2:0.
    Both,
    /// 4:2:2 and 4:2:0 of color at most two samples wide: each sample twice.
    Repeat,
}

/// Two rows of color: the one that covers the pixels and the next one in the direction of the pixels' row. Both begin one
/// sample to the left of the first that is wanted and end one to the right of the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) near: &'a [u8],
    pub(crate) far: &'a [u8],
    /// Whether the far row is the one below.
    pub(crate) below: bool,
}

/// Fills `output`, for the methods other than [`Method::None`]: a pixel for each sample of [`Method::Down`], two for each of
/// the others.
pub(crate) fn upsample(level: Supported, method: Method, rows: Rows<'_>, output: &mut [u8]) {
    match level.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` level is one that this machine was seen to have.
        Level::Avx2 | Level::Avx512 => unsafe { upsample_avx2(method, rows, output) },
        _ => upsample_any(method, rows, output),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn upsample_avx2(method: Method, rows: Rows<'_>, output: &mut [u8]) {
    upsample_any(method, rows, output);
}

#[inline(always)]
fn upsample_any(method: Method, rows: Rows<'_>, output: &mut [u8]) {
    match method {
        Method::None => {}
        Method::Across => across(rows.near, output),
        Method::Down => down(rows, output),
        Method::Both => both(rows, output),
        Method::Repeat => {
            for (pair, &sample) in output.as_chunks_mut::<2>().0.iter_mut().zip(&rows.near[1..]) {
                *pair = [sample; 2];
            }
        }
    }
}

#[inline(always)]
fn across(row: &[u8], output: &mut [u8]) {
    let pairs = output.as_chunks_mut::<2>().0;
    let (left, middle, right) = (&row[..pairs.len()], &row[1..=pairs.len()], &row[2..pairs.len() + 2]);
    for (index, pair) in pairs.iter_mut().enumerate() {
        let three = 3 * u16::from(middle[index]);
        let first = (three + u16::from(left[index]) + 1) >> 2;
        let second = (three + u16::from(right[index]) + 2) >> 2;
        *pair = [first as u8, second as u8];
    }
}

#[inline(always)]
fn down(rows: Rows<'_>, output: &mut [u8]) {
    let bias = if rows.below { 2 } else { 1 };
    for ((pixel, &near), &far) in output.iter_mut().zip(&rows.near[1..]).zip(&rows.far[1..]) {
        *pixel = ((3 * u16::from(near) + u16::from(far) + bias) >> 2) as u8;
    }
}

#[inline(always)]
fn both(rows: Rows<'_>, output: &mut [u8]) {
    let pairs = output.as_chunks_mut::<2>().0;
    let count = pairs.len();
    let (near, far) = (&rows.near[..count + 2], &rows.far[..count + 2]);
    let sum = |index: usize| 3 * u16::from(near[index]) + u16::from(far[index]);
    for (index, pair) in pairs.iter_mut().enumerate() {
        let (left, middle, right) = (sum(index), 3 * sum(index + 1), sum(index + 2));
        *pair = [((middle + left + 8) >> 4) as u8, ((middle + right + 7) >> 4) as u8];
    }
}
