//! The scalar definition, compiled for AVX2.

use super::scalar;
use crate::{header::ColorTransform, phases::Phases, sample::Sample};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn start<S: Sample>(transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<S>]) {
    scalar::start(transform, row, width, planes);
}
