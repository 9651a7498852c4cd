//! Choosing color transform and predictor by trying them on a sample of the image's rows.

use crate::{
    encode::{EncodeOptions, RowEncoder},
    header::{ColorTransform, Mode, Predictor},
    image::Pixels,
    scratch::Deep,
};

/// About how many rows are tried, each with the row above it.
const ROWS: usize = 12;

/// What was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) color: ColorTransform,
    pub(crate) predictor: Predictor,
    /// The shift of each channel's activity, for 16 bits.
    pub(crate) shifts: [u8; 4],
}

pub(crate) fn choose<S: Deep>(pixels: &Pixels<'_>, options: &EncodeOptions, rows: &mut RowEncoder<S>) -> Choice {
    let channels = usize::from(pixels.shape().channels());
    let mut choice = Choice {
        color: options.color.unwrap_or(ColorTransform::None),
        predictor: options.predictor.unwrap_or(Predictor::Smooth),
        shifts: [0; 4],
    };
    if options.color.is_none() && channels >= 3 {
        let costs = ColorTransform::ALL.map(|color| (cost(pixels, rows, color, choice.predictor), color));
        if let Some(&(_, color)) = costs.iter().min_by_key(|(cost, _)| *cost) {
            choice.color = color;
        }
    }
    if options.predictor.is_none() {
        let costs = Predictor::ALL.map(|predictor| (cost(pixels, rows, choice.color, predictor), predictor));
        if let Some(&(_, predictor)) = costs.iter().min_by_key(|(cost, _)| *cost) {
            choice.predictor = predictor;
        }
    }
    if options.mode == Mode::Dense && S::BYTES == 2 {
        cost(pixels, rows, choice.color, choice.predictor);
        let width = pixels.shape().width() as usize;
        for (channel, shift) in choice.shifts[..channels].iter_mut().enumerate() {
            let residuals = &rows.scratch.residuals;
            let (high, low) = (&residuals[channel][..width], &residuals[channels + channel][..width]);
            let sum: u64 = high.iter().zip(low).map(|(&high, &low)| u64::from(u16::from_be_bytes([high, low]))).sum();
            // Eight levels of activity separate well when a usual residual is about ten.
            *shift = ((sum / width as u64) >> 4).checked_ilog2().map_or(0, |log| log as u8 + 1);
        }
    }
    choice
}

/// The bits that the residuals of the sampled rows have, about.
fn cost<S: Deep>(pixels: &Pixels<'_>, rows: &mut RowEncoder<S>, color: ColorTransform, predictor: Predictor) -> u64 {
    let (width, height) = (pixels.shape().width() as usize, pixels.shape().height() as usize);
    let channels = usize::from(pixels.shape().channels());
    rows.color = color;
    rows.predictor = predictor;
    let mut bits = 0;
    for y in (0..height).step_by(height.div_ceil(ROWS)) {
        let first = y + 1 == height;
        if !first {
            rows.encode(pixels.row(y), true, None);
        }
        rows.encode(pixels.row(if first { y } else { y + 1 }), first, None);
        for (index, plane) in rows.scratch.residuals[..channels * S::BYTES].iter().enumerate() {
            // For 16 bits a high byte that is not 0 stands for eight bits below it.
            let weight = if S::BYTES == 2 && index < channels { 2 } else { 1 };
            let sum: u64 = plane[..width].iter().map(|&value| u64::from(8 - value.leading_zeros())).sum();
            bits += weight * sum;
        }
    }
    bits
}
