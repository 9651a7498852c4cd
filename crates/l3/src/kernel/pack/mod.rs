//! Groups of eight bit-packed residuals: what `fast` is made of.
//!
//! Every eight values of a row have one width. Their code is three bits: the width, except that 7 stands for 8. Eight codes, of
//! a block of 64 values, are three bytes of the header stream. In the value stream a group has the low bits of its values,
//! packed from the least significant bit: eight values of `w` bits are exactly `w` bytes. A group with fewer values, at the end
//! of a row, is padded to a byte; codes of groups that are not there are 0.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::kernel::{Supported, dispatch};

/// Values in a group.
pub(crate) const GROUP: usize = 8;
/// Values in a block.
pub(crate) const BLOCK: usize = 64;
/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER_BYTES: usize = 3;

/// One in each byte.
#[cfg(any(test, target_arch = "x86_64"))]
const ONES: u64 = 0x0101_0101_0101_0101;

/// Where reading stands in each stream: offsets into the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursors {
    pub(crate) headers: usize,
    pub(crate) values: usize,
}

impl Cursors {
    /// Whether the largest block could be loaded from here.
    #[inline(always)]
    fn have_block(&self, data: &[u8]) -> bool {
        self.values + BLOCK <= data.len() && self.headers + 4 <= data.len()
    }

    /// Whether as many of the largest blocks could be loaded from here, one after the other.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    fn have_blocks(&self, data: &[u8], blocks: usize) -> bool {
        self.values + BLOCK * blocks <= data.len() && self.headers + BLOCK_HEADER_BYTES * blocks < data.len()
    }

    /// Goes back over the bytes that the last group of a row does not have, because it has fewer than eight values.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    fn shorten(&mut self, header: u32, count: usize) {
        let width = width(header, count % BLOCK / GROUP);
        self.values -= width - (count % GROUP * width).div_ceil(8);
    }
}

/// The streams of a strip while it is encoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) headers: Vec<u8>,
    pub(crate) values: Vec<u8>,
}

/// Reads `count` values into each plane, which must reach to a whole block; what lies beyond `count` is unspecified.
/// False if a header is invalid or a stream leaves the file.
#[must_use]
pub(crate) fn unpack(level: Supported, data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    dispatch!(level, unpack(data, at, count, planes))
}

/// Writes the first `count` of `values`.
pub(crate) fn pack(level: Supported, values: &[u8], count: usize, streams: &mut Streams) {
    dispatch!(level, pack(&values[..count], streams));
}

/// The width of a group of a block.
#[inline(always)]
fn width(header: u32, group: usize) -> usize {
    let code = header >> (3 * group) & 7;
    (code + u32::from(code == 7)) as usize
}

/// Whether a block with fewer than 64 values has codes for groups that are not there.
#[inline(always)]
fn has_excess(header: u32, count: usize) -> bool {
    (header & 0xFF_FFFF) >> (3 * count.div_ceil(GROUP)) != 0
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Cursors, Streams, pack, unpack};
    use crate::kernel::{Level, Supported};

    /// Every width, full and partial blocks, through every level: one stream, the same values.
    #[test]
    fn all_levels_agree_on_all_widths() {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        for count in [1, 5, 8, 9, 63, 64, 65, 127, 200] {
            for widest in 0..=9u32 {
                let mut values = vec![0u8; 256];
                for group in values[..count].chunks_mut(8) {
                    // The last round mixes all widths.
                    let bits = if widest == 9 { next() % 9 } else { widest };
                    group.fill_with(|| (next() & ((1 << bits) - 1)) as u8);
                }
                let mut reference: Option<Vec<u8>> = None;
                for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                    let supported = Supported::new(level).unwrap();
                    let mut streams = Streams::default();
                    pack(supported, &values, count, &mut streams);
                    let mut data = streams.headers.clone();
                    let mut at = Cursors { headers: 0, values: data.len() };
                    data.extend_from_slice(&streams.values);
                    let end = data.len();
                    data.extend_from_slice(&[0; 64]);
                    assert_eq!(reference.get_or_insert_with(|| data.clone()), &data, "{level:?}");
                    let mut out = [vec![0u8; count.next_multiple_of(BLOCK)]];
                    assert!(unpack(supported, &data, &mut at, count, &mut out));
                    let [out] = out;
                    assert_eq!((at.headers, at.values), (streams.headers.len(), end), "{level:?} {count} {widest}");
                    assert_eq!(&out[..count], &values[..count], "{level:?} {count} {widest}");
                }
            }
        }
    }

    /// What has no group must have no code, and what leaves the file is noticed, by every level.
    #[test]
    fn all_levels_refuse_the_same_blocks() {
        for (header, count, spare, good) in [
            (0x1F_FFFF, 56, 64, true),
            (0x20_0000, 56, 64, false),
            (0o7, 8, 64, true),
            (0o7, 8, 63, false),
            (0o10, 8, 64, false),
        ] {
            let mut data = u32::to_le_bytes(header)[..3].to_vec();
            data.resize(3 + spare, 0);
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let mut at = Cursors { headers: 0, values: 3 };
                let mut out = [vec![0u8; BLOCK]];
                let found = unpack(Supported::new(level).unwrap(), &data, &mut at, count, &mut out);
                assert_eq!(found, good, "{level:?} {header:#o} {count} {spare}");
            }
        }
    }
}
