//! NEON has no bit gather or scatter: the scalar definition, which spreads words of eight values by shifts, serves.

use super::{Cursors, Streams, scalar};

#[target_feature(enable = "neon")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    scalar::unpack(data, at, count, planes)
}

#[target_feature(enable = "neon")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    scalar::pack(values, streams);
}
