//! The scalar definition, compiled for NEON.

use super::scalar;
use crate::{header::ColorTransform, phases::Phases, sample::Sample};

#[target_feature(enable = "neon")]
pub(super) fn start<S: Sample>(transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<S>]) {
    scalar::start(transform, row, width, planes);
}
