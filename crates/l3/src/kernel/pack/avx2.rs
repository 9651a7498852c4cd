//! Block packing with BMI2: `pdep` spreads eight values at a time, `pext` gathers them.

use std::arch::x86_64::{_pdep_u64, _pext_u64};

use super::{BLOCK, Cursors, Streams, scalar, widths};

const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight bytes, from at most 56.
#[inline(always)]
fn word(bytes: &[u8; 64], offset: usize) -> u64 {
    debug_assert!(offset <= 56, "within the block");
    // SAFETY: `offset` is made to be at most 56, so eight bytes follow it; the read needs no alignment.
    unsafe { bytes.as_ptr().add(offset.min(56)).cast::<u64>().read_unaligned() }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    for plane in planes {
        let blocks = plane.as_chunks_mut::<BLOCK>().0.iter_mut().take(count.div_ceil(BLOCK));
        for (index, block) in blocks.enumerate() {
            if unpack_block(data, at, (count - index * BLOCK).min(BLOCK), block).is_none() {
                return false;
            }
        }
    }
    true
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn unpack_block(data: &[u8], at: &mut Cursors, count: usize, out: &mut [u8; BLOCK]) -> Option<()> {
    let (low, excess) = widths(*data.get(at.headers)?)?;
    at.headers += 1;
    let bytes = data.get(at.low..)?.first_chunk::<64>()?;
    let spread = (0xFF >> (8 - low)) * ONES;
    if excess == 0 {
        for (group, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *values = _pdep_u64(word(bytes, group * low), spread).to_le_bytes();
        }
        at.low += (count * low).div_ceil(8);
        return Some(());
    }
    let mask = u64::from_le_bytes(*data.get(at.masks..)?.first_chunk()?);
    at.masks += 8;
    let wide = data.get(at.exceptions..)?.first_chunk::<64>()?;
    let field = ((1u64 << excess) - 1) << low;
    let mut bit = 0;
    for (group, values) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let members = _pdep_u64(mask >> (group * 8), ONES);
        // At most 57 bits are left after the shift unless `excess` is 8, and then the shift is 0.
        let fields = word(wide, bit / 8) >> (bit % 8);
        let value = _pdep_u64(word(bytes, group * low), spread) | _pdep_u64(fields, members * field);
        *values = value.to_le_bytes();
        bit += members.count_ones() as usize * excess;
    }
    at.low += (count * low).div_ceil(8);
    at.exceptions += bit.div_ceil(8);
    Some(())
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    scalar::pack_with(values, streams, |word, mask| _pext_u64(word, mask));
}
