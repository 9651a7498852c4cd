//! Loops over pixels that are worth wider vectors than the compiler may assume.
//!
//! Each kernel is one plain loop, which is its definition. It is compiled for every machine, for AVX2 and for AVX-512, and the level is
//! chosen at run time. Where the compiler makes too little of a loop, a level has one of its own, written with its instructions
//! (`avx2.rs`, `avx512.rs`). All do the same arithmetic in the same order (no fused multiply-add), so all give the same bits.

#![expect(unsafe_code, reason = "calling a function compiled for AVX2 needs the proof that AVX2 is there")]
#![expect(clippy::inline_always, reason = "a body must be compiled anew inside each wrapper to use its vectors")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blur;
mod pixels;
mod rows;
#[cfg(test)]
mod tests;
mod warp;

use blur::{weigh_body, weigh_levels_body};
use forebay_codec::level::Level;
pub(crate) use forebay_codec::level::Supported;
use pixels::{
    Pairs, add_pairs_body, cut_off_body, floats_body, gray_body, gray_sum_body, look_up_body, look_up_channels_body,
    look_up_pairs_body, mix_body, permute_body, saturate_body, scale_body, sharpen_row_body, solarize_body,
    turn_hue_body,
};
pub(crate) use pixels::{scaled, solarized};
use rows::{bits_body, copy_body, flip_rows_body, mirror_rgb_body, pad_rows_body};
pub(crate) use warp::{BLOCK, BLOCK_RGB_BYTES, OUTSIDE, RowCoordinates, Surrounding, between};
use warp::{between_rgb_body, nearest_offsets_body, nearest_rgb_body, surrounding_body};

/// Whether looking values up in a table takes no longer than copying them.
pub(crate) fn has_tables(level: Supported) -> bool {
    level.level() == Level::Avx512
}

/// The name of the instructions that steps over pixels use on this machine, as [`Level::name`] has it.
pub fn kernel_level() -> &'static str {
    Supported::detect().level().name()
}

/// How a byte becomes a single-precision number: of one channel each, the last repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Conversion {
    /// byte · factor + offset, for each of three channels.
    Affine { factors: [f32; 3], offsets: [f32; 3] },
    /// byte / 127.5 − 1, as PRESTO writes it: dividing rounds differently from multiplying with the inverse.
    Center,
}

/// A kernel of a body, and of what a level has instead of it.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident => $body:ident($($argument:ident: $kind:ty),*) $(, avx2: $avx2:path)? $(, avx512: $avx512:path)?) => {
        $(#[$doc])*
        pub(crate) fn $name(level: Supported, $($argument: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $kind),*) {
                    kernel!(@call $body $(=> $avx2)?, $($argument),*);
                }
                #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
                fn wider($($argument: $kind),*) {
                    kernel!(@call $body $(=> $avx2)? $(=> $avx512)?, $($argument),*);
                }
                match level.level() {
                    // SAFETY: a `Supported` is made only of a level that this machine has.
                    Level::Avx512 => return unsafe { wider($($argument),*) },
                    // SAFETY: the same.
                    Level::Avx2 => return unsafe { wide($($argument),*) },
                    Level::Scalar => {}
                }
            }
            let _ = level;
            $body($($argument),*);
        }
    };
    (@call $body:path, $($argument:ident),*) => { $body($($argument),*) };
    (@call $body:path => $better:path, $($argument:ident),*) => { $better($($argument),*) };
    (@call $body:path => $better:path => $best:path, $($argument:ident),*) => { $best($($argument),*) };
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
    /// Copies bytes.
    copy => copy_body(from: &[u8], to: &mut [u8]), avx2: avx2::rows::copy, avx512: avx512::rows::copy
}

kernel! {
    /// Copies rows of so many bytes, the last one first.
    flip_rows => flip_rows_body(from: &[u8], to: &mut [u8], row_bytes: usize), avx2: avx2::rows::flip_rows, avx512: avx512::rows::flip_rows
}

kernel! {
    /// Copies rows of so many bytes of RGB pixels, the last pixel of each first.
    mirror_rgb => mirror_rgb_body(from: &[u8], to: &mut [u8], row_bytes: usize), avx2: avx2::rows::mirror_rgb
}

kernel! {
    /// Copies rows of so many bytes, with so many times a value behind each.
    pad_rows => pad_rows_body(from: &[u8], row_bytes: usize, to: &mut [u8], margin_bytes: usize, value: u8), avx2: avx2::rows::pad_rows
}

kernel! {
    /// (value & and) ^ xor.
    bits => bits_body(from: &[u8], to: &mut [u8], and: u8, xor: u8), avx512: avx512::rows::bits
}

kernel! {
    /// Values become value · factor + offset, see [`scaled`].
    scale => scale_body(from: &[u8], to: &mut [u8], factor: f32, offset: f32), avx2: avx2::tables::scale
}

kernel! {
    /// Values of at least `threshold` are inverted.
    solarize => solarize_body(from: &[u8], to: &mut [u8], threshold: f32)
}

kernel! {
    /// Each value becomes what the table has for it.
    look_up => look_up_body(from: &[u8], to: &mut [u8], table: &[u8; 256]), avx2: avx2::tables::look_up, avx512: avx512::look_up
}

kernel! {
    /// The same for RGB pixels, with a table of each channel.
    look_up_channels => look_up_channels_body(from: &[u8], to: &mut [u8], tables: &[[u8; 256]; 3]), avx2: avx2::tables::look_up_channels, avx512: avx512::look_up_channels
}

kernel! {
    /// Each value becomes the two bytes that the table has for it.
    look_up_pairs => look_up_pairs_body(from: &[u8], to: &mut [u8], table: &Pairs), avx512: avx512::look_up_pairs
}

kernel! {
    /// Values times a factor, as numbers.
    floats => floats_body(from: &[u8], to: &mut [f32], factor: f32)
}

kernel! {
    /// The channels of RGB pixels in another order: each is the one of this number.
    permute => permute_body(from: &[u8], to: &mut [u8], order: [u8; 3]), avx512: avx512::permute
}

kernel! {
    /// Adds up the gray levels of RGB pixels.
    gray_sum => gray_sum_body(from: &[u8], sum: &mut u64), avx2: avx2::colors::gray_sum, avx512: avx512::gray_sum
}

kernel! {
    /// RGB pixels become gray.
    gray => gray_body(from: &[u8], to: &mut [u8]), avx2: avx2::colors::gray, avx512: avx512::gray
}

kernel! {
    /// RGB pixels move away from their gray, or towards it.
    saturate => saturate_body(from: &[u8], to: &mut [u8], factor: f32), avx2: avx2::colors::saturate, avx512: avx512::saturate
}

kernel! {
    /// Turns the hue of RGB pixels by a share of a full turn.
    turn_hue => turn_hue_body(from: &[u8], to: &mut [u8], turn: f32), avx2: avx2::colors::turn_hue, avx512: avx512::turn_hue
}

kernel! {
    /// A row away from, or towards, itself slightly blurred; `rows` are the one above, itself and the one below.
    sharpen_row => sharpen_row_body(rows: [&[u8]; 3], to: &mut [u8], channels: usize, factor: f32)
}

kernel! {
    /// Adds values times a weight to what is there.
    mix => mix_body(from: &[u8], weight: f32, to: &mut [f32])
}

kernel! {
    /// Adds sums of two values times a weight to what is there.
    add_pairs => add_pairs_body(before: &[f32], after: &[f32], weight: f32, to: &mut [f32])
}

kernel! {
    /// Numbers as bytes, clamped and cut off.
    cut_off => cut_off_body(from: &[f32], to: &mut [u8])
}

kernel! {
    /// Weighted sums of what is around each byte, see [`blur`].
    weigh => weigh_body(from: &[u8], sides: &[[usize; 2]], weights: &[u16], to: &mut [u16]), avx2: avx2::blur::weigh, avx512: avx512::blur::weigh
}

kernel! {
    /// Weighted sums of such sums, as bytes; `sums` are as many, to be written over.
    weigh_levels => weigh_levels_body(from: &[u16], sides: &[[usize; 2]], weights: &[u16], sums: &mut [u16], to: &mut [u8]), avx2: avx2::blur::weigh_levels, avx512: avx512::blur::weigh_levels
}

kernel! {
    /// Which pixels are nearest to a block's coordinates.
    nearest_offsets => nearest_offsets_body(coordinates: &RowCoordinates, x: usize, size: [usize; 2], offsets: &mut [u32; BLOCK])
}

kernel! {
    /// A row of RGB pixels, each the nearest to its coordinates in a picture of this height and width.
    nearest_rgb => nearest_rgb_body(coordinates: &RowCoordinates, from: &[u8], size: [usize; 2], fill: [u8; 3], to: &mut [u8]), avx2: avx2::warp::nearest_rgb
}

kernel! {
    /// Which pixels are around a block's coordinates.
    surrounding => surrounding_body(coordinates: &RowCoordinates, x: usize, size: [usize; 2], block: &mut Surrounding)
}

kernel! {
    /// RGB pixels between those that are around them; each has its position in `from`.
    between_rgb => between_rgb_body(from: &[u8], width: usize, block: &Surrounding, to: &mut [u8; BLOCK_RGB_BYTES]), avx2: avx2::warp::between_rgb
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
