//! Loops over pixels that are worth wider vectors than the compiler may assume.
//!
//! Each kernel is one plain loop. It is compiled twice, for the baseline and for AVX2, and the level is chosen at run time:
//! both do the same arithmetic in the same order (no fused multiply-add), so both give the same bits.

#![expect(unsafe_code, reason = "calling a function compiled for AVX2 needs the proof that AVX2 is there")]
#![expect(clippy::inline_always, reason = "a body must be compiled anew inside each wrapper to use its vectors")]

mod pixels;

pub(crate) use pixels::{gray_level, scaled, solarized};
use pixels::{
    gray_sum_body, saturate_body, scale_body, sharpen_row_body, solarize_body, turn_hue_body, weigh_row_body,
    weigh_rows_body,
};

/// How wide the vectors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every machine of this kind has.
    Baseline,
    /// 256 bit. Only made by [`Level::all`], which has looked.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

/// The proof that this machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Level {
    /// Every level that this machine has, the best last.
    pub(crate) fn all() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut, reason = "there is only one level"))]
        let mut levels = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            levels.push(Self::Avx2(Avx2(())));
        }
        levels
    }

    /// The best level of this machine.
    pub(crate) fn best() -> Self {
        Self::all().pop().unwrap_or(Self::Baseline)
    }
}

/// How a byte becomes a single-precision number: of one channel each, the last repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Conversion {
    /// byte · factor + offset, for each of three channels.
    Affine { factors: [f32; 3], offsets: [f32; 3] },
    /// byte / 127.5 − 1, as PRESTO writes it: dividing rounds differently from multiplying with the inverse.
    Center,
}

macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident => $body:ident($($argument:ident: $kind:ty),*)) => {
        $(#[$doc])*
        pub(crate) fn $name(level: Level, $($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $kind),*) {
                    $body($($argument),*);
                }
                if let Level::Avx2(_) = level {
                    // SAFETY: an `Avx2` is only made where the processor has said that it has AVX2.
                    return unsafe { wide($($argument),*) };
                }
            }
            let _ = level;
            $body($($argument),*);
        }
    };
}

kernel! {
    /// Converts interleaved bytes of three channels to interleaved floats.
    interleaved => interleaved_body(from: &[u8], to: &mut [f32], conversion: Conversion)
}

kernel! {
    /// Converts a row of interleaved RGB bytes to three rows of floats, one per channel.
    to_planes => to_planes_body(from: &[u8], to: [&mut [f32]; 3], conversion: Conversion)
}

kernel! {
    /// The same, mirrored: the last pixel comes first.
    to_planes_mirrored => to_planes_mirrored_body(from: &[u8], to: [&mut [f32]; 3], conversion: Conversion)
}

kernel! {
    /// Values become value · factor + offset, see [`scaled`].
    scale => scale_body(from: &[u8], to: &mut [u8], factor: f32, offset: f32)
}

kernel! {
    /// Values of at least `threshold` are inverted.
    solarize => solarize_body(from: &[u8], to: &mut [u8], threshold: f32)
}

kernel! {
    /// Adds up the gray levels of RGB pixels.
    gray_sum => gray_sum_body(from: &[u8], sum: &mut u64)
}

kernel! {
    /// RGB pixels move away from their gray, or towards it; with a factor of 0 they are gray.
    saturate => saturate_body(from: &[u8], to: &mut [u8], factor: f32)
}

kernel! {
    /// Turns the hue of RGB pixels by a share of a full turn.
    turn_hue => turn_hue_body(from: &[u8], to: &mut [u8], turn: f32)
}

kernel! {
    /// A row away from, or towards, itself slightly blurred; `rows` are the one above, itself and the one below.
    sharpen_row => sharpen_row_body(rows: [&[u8]; 3], to: &mut [u8], channels: usize, factor: f32)
}

kernel! {
    /// Weighted sums along a row that has half of the weights' length more pixels on each side.
    weigh_row => weigh_row_body(from: &[f32], channels: usize, weights: &[f32], to: &mut [f32])
}

kernel! {
    /// Weighted sums of rows, rounded; `row` says where each begins.
    weigh_rows => weigh_rows_body(from: &[f32], row: &dyn Fn(usize) -> usize, weights: &[f32], to: &mut [u8])
}

#[inline(always)]
fn center(byte: u8) -> f32 {
    f32::from(byte) / 127.5 - 1.0
}

#[inline(always)]
fn interleaved_body(from: &[u8], to: &mut [f32], conversion: Conversion) {
    match conversion {
        Conversion::Center => to.iter_mut().zip(from).for_each(|(to, &byte)| *to = center(byte)),
        Conversion::Affine { factors, offsets } => {
            for (to, from) in to.as_chunks_mut::<3>().0.iter_mut().zip(from.as_chunks::<3>().0) {
                for channel in 0..3 {
                    to[channel] = f32::from(from[channel]) * factors[channel] + offsets[channel];
                }
            }
        }
    }
}

#[inline(always)]
fn to_planes_body(from: &[u8], to: [&mut [f32]; 3], conversion: Conversion) {
    let (pixels, _) = from.as_chunks::<3>();
    let count = pixels.len();
    for (channel, plane) in to.into_iter().enumerate() {
        let plane = &mut plane[..count];
        match conversion {
            Conversion::Center => {
                plane.iter_mut().zip(pixels).for_each(|(to, pixel)| *to = center(pixel[channel]));
            }
            Conversion::Affine { factors, offsets } => {
                let (factor, offset) = (factors[channel], offsets[channel]);
                plane.iter_mut().zip(pixels).for_each(|(to, pixel)| *to = f32::from(pixel[channel]) * factor + offset);
            }
        }
    }
}

#[inline(always)]
fn to_planes_mirrored_body(from: &[u8], to: [&mut [f32]; 3], conversion: Conversion) {
    let (pixels, _) = from.as_chunks::<3>();
    let count = pixels.len();
    for (channel, plane) in to.into_iter().enumerate() {
        let plane = plane[..count].iter_mut().rev();
        match conversion {
            Conversion::Center => plane.zip(pixels).for_each(|(to, pixel)| *to = center(pixel[channel])),
            Conversion::Affine { factors, offsets } => {
                let (factor, offset) = (factors[channel], offsets[channel]);
                plane.zip(pixels).for_each(|(to, pixel)| *to = f32::from(pixel[channel]) * factor + offset);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_gives_the_same_bits() {
        let affine = Conversion::Affine { factors: [0.017, 0.0175, 0.0174], offsets: [-2.1, -2.0, -1.8] };
        for pixels in [0, 1, 2, 15, 16, 31, 32, 33, 100, 224] {
            let from: Vec<u8> = (0..pixels * 3).map(|index| (index * 37 + index / 7) as u8).collect();
            for conversion in [Conversion::Center, affine] {
                let run = |level| {
                    let mut out = [vec![0_f32; pixels * 3], vec![0_f32; pixels * 3], vec![0_f32; pixels * 3]];
                    interleaved(level, &from, &mut out[0], conversion);
                    let [_, plain, mirrored] = &mut out;
                    let split = |planes: &mut [f32]| {
                        let (red, rest) = planes.split_at_mut(pixels);
                        let (green, blue) = rest.split_at_mut(pixels);
                        // Three disjoint borrows of one buffer, for the kernel.
                        (red.to_vec(), green.to_vec(), blue.to_vec())
                    };
                    let (mut red, mut green, mut blue) = split(plain);
                    to_planes(level, &from, [&mut red, &mut green, &mut blue], conversion);
                    let plain = [red, green, blue];
                    let (mut red, mut green, mut blue) = split(mirrored);
                    to_planes_mirrored(level, &from, [&mut red, &mut green, &mut blue], conversion);
                    (out[0].clone(), plain, [red, green, blue])
                };
                let (flat, plain, mirrored) = run(Level::Baseline);
                for level in Level::all() {
                    assert_eq!(run(level), (flat.clone(), plain.clone(), mirrored.clone()), "{level:?}");
                }
                for (channel, plane) in plain.iter().enumerate() {
                    let strided: Vec<f32> = flat.iter().copied().skip(channel).step_by(3).collect();
                    assert_eq!(*plane, strided);
                    assert!(mirrored[channel].iter().rev().eq(&strided));
                }
            }
        }
    }
}
