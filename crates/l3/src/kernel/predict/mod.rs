//! Prediction within a row: residuals to samples, samples to residuals, and the activity that chooses an entropy table.
//!
//! The AVX2, AVX-512 and NEON files compile the scalar definition for their instructions: it is written so that the compiler
//! turns each loop into whole vectors, and what it makes was read (see `notes.md`). What 8-bit images spend their time in is
//! written by hand.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
mod scalar;

use crate::{
    header::Predictor,
    kernel::{Supported, dispatch},
    sample::Sample,
    scratch::Rows,
};

/// Which samples of a row are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    /// The phases, in coding order.
    pub(crate) phases: &'a [usize],
    /// Where the first of them begins in a row of residuals.
    pub(crate) start: usize,
    /// The samples of each phase.
    pub(crate) counts: &'a [usize; 4],
    /// Channels of the image.
    pub(crate) channels: usize,
    /// How to predict.
    pub(crate) predictor: Predictor,
    /// Whether this is the first row of a strip, which has no row above.
    pub(crate) first: bool,
}

/// How activity becomes a table: the table of each of the eight levels, and the shift of 16-bit activity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    pub(crate) tables: [u8; 8],
    pub(crate) shift: u32,
}

/// The lowest activity of levels 1 to 7.
// From 16 on they are multiples of four, so that a level can be looked up in two tables of 16.
pub(crate) const THRESHOLDS: [u8; 7] = [1, 3, 6, 10, 16, 28, 52];

/// The activity assumed for phase 0 of a strip's first row, where nothing is known.
pub(crate) const ACTIVITY_UNKNOWN: u8 = 20;

/// Turns zigzag residuals into samples of the current row. Rows of residuals must reach a whole vector beyond the width.
pub(crate) fn decode<S: Sample>(level: Supported, part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    dispatch!(level, decode::<S>(part, residuals, rows));
}

/// The same for 8 bits, where more is done by hand.
pub(crate) fn decode_narrow(level: Supported, part: Part<'_>, residuals: &[Vec<u8>], rows: &mut Rows<u8>) {
    match level.level() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx512 => unsafe { avx512::decode_narrow(part, residuals, rows) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Avx2 => unsafe { avx2::decode_narrow(part, residuals, rows) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Neon => unsafe { neon::decode_narrow(part, residuals, rows) },
        _ => decode(level, part, residuals, rows),
    }
}

/// The same for 16 bits.
pub(crate) fn decode_wide(level: Supported, part: Part<'_>, residuals: &[Vec<u16>], rows: &mut Rows<u16>) {
    match level.level() {
        #[cfg(target_arch = "aarch64")]
        // SAFETY: a `Supported` is made only for instructions that this machine was seen to have.
        crate::kernel::Level::Neon => unsafe { neon::decode_wide(part, residuals, rows) },
        _ => decode(level, part, residuals, rows),
    }
}

/// Turns samples of the current row into zigzag residuals. Rows of residuals must reach a whole vector beyond the width.
pub(crate) fn encode<S: Sample>(level: Supported, part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    dispatch!(level, encode::<S>(part, residuals, rows));
}

/// The table for each sample of phases that do not depend on each other, from samples that a decoder knows by then, written
/// from `part.start`.
pub(crate) fn tables<S: Sample>(
    level: Supported,
    part: Part<'_>,
    activities: &[Activity; 4],
    out: &mut [Vec<u8>],
    rows: &Rows<S>,
) {
    dispatch!(level, tables::<S>(part, activities, out, rows));
}

/// The table of each low byte of a 16-bit residual: that of its high byte, of which those from 7 on share one.
pub(crate) fn low_tables(level: Supported, numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    dispatch!(level, low_tables(numbers, high, out));
}
