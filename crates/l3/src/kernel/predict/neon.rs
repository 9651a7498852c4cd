//! The scalar definition, compiled for NEON.

use super::{Activity, Part, scalar};
use crate::{sample::Sample, scratch::Rows};

#[target_feature(enable = "neon")]
pub(super) fn decode<S: Sample>(part: Part<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    scalar::decode(part, residuals, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn encode<S: Sample>(part: Part<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    scalar::encode(part, residuals, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn tables<S: Sample>(part: Part<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    scalar::tables(part, activities, out, rows);
}

#[target_feature(enable = "neon")]
pub(super) fn low_tables(numbers: [u8; 8], high: &[u8], out: &mut [u8]) {
    scalar::low_tables(numbers, high, out);
}
