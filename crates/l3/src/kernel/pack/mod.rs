//! Blocks of 64 bit-packed residuals with exceptions: what `fast` is made of.
//!
//! A block's header byte has a width `w` (low nibble) and an excess `h` (high nibble). Every value gives its low `w` bits to
//! the low stream. If `h` is not 0, a 64-bit mask says which values are wider, and their next `h` bits are in the exception
//! stream. All fields are packed from the least significant bit; each block's share of each stream begins on a byte.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::kernel::{Proven, dispatch};

/// Values in a block.
pub(crate) const BLOCK: usize = 64;

/// Where reading stands in each stream: offsets into the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursors {
    pub(crate) headers: usize,
    pub(crate) masks: usize,
    pub(crate) low: usize,
    pub(crate) exceptions: usize,
}

/// The streams of a strip while it is encoded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) headers: Vec<u8>,
    pub(crate) masks: Vec<u8>,
    pub(crate) low: Vec<u8>,
    pub(crate) exceptions: Vec<u8>,
}

/// Reads `count` values into each plane, which must reach to a whole block; what lies beyond `count` is unspecified.
/// False if a header is invalid or a stream leaves the file.
#[must_use]
pub(crate) fn unpack(level: Proven, data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    dispatch!(level, unpack(data, at, count, planes))
}

/// Writes the first `count` of `values`.
pub(crate) fn pack(level: Proven, values: &[u8], count: usize, streams: &mut Streams) {
    dispatch!(level, pack(&values[..count], streams));
}

/// The two widths of a header byte, if it is valid.
#[inline(always)]
fn widths(header: u8) -> Option<(usize, usize)> {
    let (low, excess) = (usize::from(header & 15), usize::from(header >> 4));
    (low + excess <= 8).then_some((low, excess))
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Cursors, Streams, pack, unpack};
    use crate::kernel::{Level, Proven};

    /// Every pair of widths, full and partial blocks, through every level: one stream, the same values.
    #[test]
    fn all_levels_agree_on_all_widths() {
        let mut seed = 1u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 16
        };
        for count in [1, 5, 8, 63, 64, 65, 200] {
            for low in 0..=8u32 {
                for top in low..=8 {
                    let mut values = vec![0u8; 256];
                    for value in &mut values[..count] {
                        let bits = if next() % 5 == 0 { top } else { low };
                        *value = (next() & ((1 << bits) - 1)) as u8;
                    }
                    let mut reference: Option<Vec<u8>> = None;
                    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                        let proven = Proven::new(level).unwrap();
                        let mut streams = Streams::default();
                        pack(proven, &values, count, &mut streams);
                        let mut at = Cursors { headers: 0, masks: 0, low: 0, exceptions: 0 };
                        let mut data = streams.headers.clone();
                        for (stream, start) in [
                            (&streams.masks, &mut at.masks),
                            (&streams.low, &mut at.low),
                            (&streams.exceptions, &mut at.exceptions),
                        ] {
                            *start = data.len();
                            data.extend_from_slice(stream);
                        }
                        let end = data.len();
                        data.extend_from_slice(&[0; 64]);
                        assert_eq!(reference.get_or_insert_with(|| data.clone()), &data, "{level:?}");
                        let mut out = [vec![0u8; count.next_multiple_of(BLOCK)]];
                        assert!(unpack(proven, &data, &mut at, count, &mut out));
                        let [out] = out;
                        assert_eq!(at.exceptions, end);
                        assert_eq!(&out[..count], &values[..count], "{level:?} {count} {low} {top}");
                    }
                }
            }
        }
    }
}
