//! NEON has no gather: the scalar definition serves.

use super::{Phase, Plane, scalar};

#[target_feature(enable = "neon")]
pub(super) fn decode(entries: &[u32], data: &[u8], planes: &mut [Plane], phase: Phase<'_>) -> bool {
    scalar::decode(entries, data, planes, phase)
}
