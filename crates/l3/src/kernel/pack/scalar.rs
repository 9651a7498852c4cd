//! The definition of packing.

use super::{BLOCK, BLOCK_HEADER_BYTES, Cursors, GROUP, Streams, has_excess, width};

pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    planes.iter_mut().all(|plane| {
        let mut blocks = plane.as_chunks_mut::<BLOCK>().0.iter_mut().take(count.div_ceil(BLOCK)).enumerate();
        blocks.all(|(index, block)| unpack_block(data, at, (count - index * BLOCK).min(BLOCK), block).is_some())
    })
}

fn unpack_block(data: &[u8], at: &mut Cursors, count: usize, out: &mut [u8; BLOCK]) -> Option<()> {
    if !at.have_block(data) {
        return None;
    }
    let header = u32::from_le_bytes(*data.get(at.headers..)?.first_chunk()?);
    if has_excess(header, count) {
        return None;
    }
    for (group, values) in out.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let width = width(header, group);
        let bits = u64::from_le_bytes(*data.get(at.values..)?.first_chunk()?);
        *values = spread(bits, width).to_le_bytes();
        let present = count.saturating_sub(group * GROUP).min(GROUP);
        at.values += (present * width).div_ceil(8);
    }
    at.headers += BLOCK_HEADER_BYTES;
    Some(())
}

/// The lowest eight fields of a width, each in a byte: halves, quarters and eighths are moved apart in turn.
#[inline(always)]
fn spread(bits: u64, width: usize) -> u64 {
    let low = |fields: usize| (1u64 << (fields * width)) - 1;
    // Eight fields of eight bits are all bits, for which there is no shift; they lie where they should.
    if width == 8 {
        return bits;
    }
    let halves = (bits & low(4)) | ((bits >> (4 * width)) & low(4)) << 32;
    let mask = low(2) * 0x1_0000_0001;
    let quarters = (halves & mask) | ((halves >> (2 * width)) & mask) << 16;
    let mask = low(1) * 0x0001_0001_0001_0001;
    (quarters & mask) | ((quarters >> width) & mask) << 8
}

pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    pack_with(values, streams, |word, width| {
        let mut bits = 0;
        for (index, byte) in word.to_le_bytes().into_iter().enumerate() {
            bits |= u64::from(byte) << (index * width);
        }
        bits
    });
}

/// Packs with a function that brings the low bits of eight bytes together, of which no byte has more.
#[inline(always)]
pub(super) fn pack_with(values: &[u8], streams: &mut Streams, gather: impl Fn(u64, usize) -> u64) {
    streams.values.reserve(values.len() + GROUP);
    for block in values.chunks(BLOCK) {
        let mut header = 0;
        for (group, values) in block.chunks(GROUP).enumerate() {
            let mut bytes = [0; GROUP];
            bytes[..values.len()].copy_from_slice(values);
            let word = u64::from_le_bytes(bytes);
            let (code, width) = widest(word);
            header |= code << (3 * group);
            let bits = gather(word, width).to_le_bytes();
            streams.values.extend_from_slice(&bits[..(values.len() * width).div_ceil(8)]);
        }
        streams.headers.extend_from_slice(&header.to_le_bytes()[..BLOCK_HEADER_BYTES]);
    }
}

/// The code and the width of eight bytes.
#[inline(always)]
pub(super) fn widest(word: u64) -> (u32, usize) {
    // The bits that any of the bytes has.
    let word = word | word >> 32;
    let word = word | word >> 16;
    let byte = (word | word >> 8) as u8;
    let bits = 8 - byte.leading_zeros();
    (bits.min(7), if bits >= 7 { 8 } else { bits as usize })
}

#[cfg(test)]
mod tests {
    use super::{super::ONES, spread};

    #[test]
    fn fields_are_spread() {
        for width in 0..=8usize {
            let field = if width == 8 { 0xFF } else { (1u64 << width) - 1 };
            for bits in [0, u64::MAX, 0x0123_4567_89AB_CDEF, 0xFEDC_BA98_7654_3210] {
                let expected: u64 =
                    (0..8).map(|index| (bits >> (index * width) & field) << (8 * index)).fold(0, |all, one| all | one);
                assert_eq!(spread(bits, width), expected, "{width}");
            }
        }
        assert_eq!(spread(0xFF, 1), ONES);
    }
}
