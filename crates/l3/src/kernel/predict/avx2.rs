//! The scalar definition, compiled for AVX2.

use super::{Activity, Place, scalar};
use crate::{sample::Sample, scratch::Rows};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn decode<S: Sample>(place: Place<'_>, residuals: &[Vec<S>], rows: &mut Rows<S>) {
    scalar::decode(place, residuals, rows);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode<S: Sample>(place: Place<'_>, residuals: &mut [Vec<S>], rows: &Rows<S>) {
    scalar::encode(place, residuals, rows);
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn tables<S: Sample>(place: Place<'_>, activities: &[Activity; 4], out: &mut [Vec<u8>], rows: &Rows<S>) {
    scalar::tables(place, activities, out, rows);
}
