//! The changes themselves, one after another.

use forebay_codec::memory;

use super::neighbors::{Blur, sharpen};
use super::tables::{Tables, Tone};
use crate::error::StepError;
use crate::kernels::{self, Supported};
use crate::scope::Scratch;
use crate::steps::Warp;

/// One change of an 8-bit picture, with what it takes. Each does what torchvision's function of that name does to a tensor, but for those that
/// say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum PixelOp {
    /// Values times a factor.
    Brightness(f32),
    /// Away from, or towards, the mean of the picture's gray.
    Contrast(f32),
    /// Away from, or towards, each pixel's gray. A picture of one channel stays.
    Saturation(f32),
    /// The hue turned, by −0.5 to 0.5 of a full turn. A picture of one channel stays.
    Hue(f32),
    /// Each pixel's gray in all channels.
    Grayscale,
    /// 255 − value.
    Invert,
    /// Values of at least so much are inverted.
    Solarize(f32),
    /// Values below 128 become so much larger, as timm's `solarize_add`.
    SolarizeAdd(u8),
    /// So many bits of a value are kept.
    Posterize(u8),
    /// Each channel's values spread evenly.
    Equalize,
    /// Each channel's smallest value becomes 0, its largest 255.
    Autocontrast,
    /// Away from, or towards, the picture slightly blurred.
    Sharpness(f32),
    /// A Gaussian kernel of so many pixels and this standard deviation, each along x and y.
    GaussianBlur {
        /// Odd numbers of pixels.
        kernel_size: [usize; 2],
        /// In pixels.
        sigma: [f32; 2],
    },
    /// Each channel becomes the one of this number; a permutation. A picture of one channel stays.
    Permute([u8; 3]),
    /// Pixels come from other places.
    Warp(Warp),
}

/// What a chain works in.
#[derive(Default)]
pub(super) struct ChainScratch {
    /// What is to be done.
    pub(super) ops: Vec<PixelOp>,
    front: Vec<u8>,
    back: Vec<u8>,
    blur: Blur,
}

impl Scratch for ChainScratch {
    fn capacity_bytes(&self) -> usize {
        self.front.capacity() + self.back.capacity() + self.blur.capacity_bytes()
    }

    fn trim(&mut self) {
        *self = Self::default();
    }
}

/// What a chain takes beside its input and output, for a picture of so many bytes: two pictures, and one of floats.
pub(super) fn working_bytes(picture_bytes: usize) -> usize {
    picture_bytes.saturating_mul(2 + size_of::<f32>())
}

/// Does all of `scratch.ops` to a picture of height, width and channels. Changes of single values wait in tables for the next
/// pass over the pixels; each pass reads the last one's output and the last of them writes `slot`.
pub(super) fn run(
    scratch: &mut ChainScratch,
    input: &[u8],
    dims: [usize; 3],
    slot: &mut [u8],
) -> Result<(), StepError> {
    let ChainScratch { ops, front, back, blur } = scratch;
    let channels = dims[2];
    let mut tables = Tables::identity();
    let mut is_input = true;
    for (index, &op) in ops.iter().enumerate() {
        let from: &[u8] = if is_input { input } else { &front[..input.len()] };
        if let PixelOp::Equalize | PixelOp::Autocontrast = op {
            let equalize = op == PixelOp::Equalize;
            let of_channels =
                if equalize { tables.equalized(from, channels) } else { tables.stretched(from, channels) };
            tables.then_channels(&of_channels);
            continue;
        }
        if let Some(tone) = tone(op, from, channels, &tables) {
            tables.then(tone);
            continue;
        }
        let is_of_colors =
            matches!(op, PixelOp::Saturation(_) | PixelOp::Hue(_) | PixelOp::Grayscale | PixelOp::Permute(_));
        if channels == 1 && is_of_colors {
            continue;
        }
        // What the op reads must have gone through the tables.
        if !tables.is_identity() {
            memory::grow(back, input.len())?;
            tables.apply(from, &mut back[..input.len()], channels);
            tables = Tables::identity();
            std::mem::swap(front, back);
            is_input = false;
        }
        let is_last = index + 1 == ops.len();
        let from: &[u8] = if is_input { input } else { &front[..input.len()] };
        if !is_last {
            memory::grow(back, input.len())?;
        }
        let to = if is_last { &mut *slot } else { &mut back[..input.len()] };
        over_pixels(op, from, dims, to, blur)?;
        if is_last {
            return Ok(());
        }
        std::mem::swap(front, back);
        is_input = false;
    }
    tables.apply(if is_input { input } else { &front[..input.len()] }, slot, channels);
    Ok(())
}

/// The op as one change of single values for all channels, if it is.
fn tone(op: PixelOp, from: &[u8], channels: usize, tables: &Tables) -> Option<Tone> {
    Some(match op {
        PixelOp::Brightness(factor) => Tone::Affine { factor, offset: 0.0 },
        PixelOp::Contrast(factor) => Tone::Affine { factor, offset: tables.gray_mean(from, channels) * (1.0 - factor) },
        PixelOp::Invert => Tone::Bits { and: 0xFF, xor: 0xFF },
        PixelOp::Posterize(bits) => Tone::Bits { and: !(0xFF_u8.checked_shr(u32::from(bits)).unwrap_or(0)), xor: 0 },
        PixelOp::Solarize(threshold) => Tone::Solarize(threshold),
        PixelOp::SolarizeAdd(more) => Tone::SolarizeAdd(more),
        PixelOp::Equalize
        | PixelOp::Autocontrast
        | PixelOp::Saturation(_)
        | PixelOp::Hue(_)
        | PixelOp::Grayscale
        | PixelOp::Sharpness(_)
        | PixelOp::GaussianBlur { .. }
        | PixelOp::Permute(_)
        | PixelOp::Warp(_) => return None,
    })
}

/// Does an op that is more than a change of single values, in one pass over the pixels.
fn over_pixels(op: PixelOp, from: &[u8], dims: [usize; 3], to: &mut [u8], blur: &mut Blur) -> Result<(), StepError> {
    let level = Supported::detect();
    match op {
        PixelOp::Saturation(factor) => kernels::saturate(level, from, to, factor),
        PixelOp::Grayscale => kernels::gray(level, from, to),
        PixelOp::Hue(turn) => kernels::turn_hue(level, from, to, turn),
        PixelOp::Sharpness(factor) => sharpen(level, from, to, dims, factor),
        PixelOp::GaussianBlur { kernel_size, sigma } => blur.run(level, from, to, dims, kernel_size, sigma)?,
        PixelOp::Warp(warp) => warp.bytes(from, to, dims, dims[1]),
        PixelOp::Permute(order) => kernels::permute(level, from, to, order),
        _ => unreachable!("a change of single values is not a pass of its own"),
    }
    Ok(())
}
