//! The definition of block packing.

use super::{BLOCK, Cursors, Streams, widths};

/// Eight bytes, or `None` beyond the end.
#[inline(always)]
fn word(data: &[u8], offset: usize) -> Option<u64> {
    let bytes = data.get(offset..offset.checked_add(8)?)?;
    bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    for plane in planes {
        let blocks = plane.chunks_exact_mut(BLOCK).take(count.div_ceil(BLOCK));
        for (index, block) in blocks.enumerate() {
            if unpack_block(data, at, (count - index * BLOCK).min(BLOCK), block).is_none() {
                return false;
            }
        }
    }
    true
}

fn unpack_block(data: &[u8], at: &mut Cursors, count: usize, out: &mut [u8]) -> Option<()> {
    let (low, excess) = widths(*data.get(at.headers)?)?;
    at.headers += 1;
    // Eight values of `low` bits are exactly `low` bytes.
    for (group, values) in out.chunks_exact_mut(8).enumerate() {
        let bits = word(data, at.low + group * low)?;
        for (index, value) in values.iter_mut().enumerate() {
            *value = if low == 0 { 0 } else { (bits >> (index * low)) as u8 & (0xFF >> (8 - low)) };
        }
    }
    at.low += (count * low).div_ceil(8);
    if excess == 0 {
        return Some(());
    }
    let mut mask = word(data, at.masks)?;
    at.masks += 8;
    let wide = mask.count_ones() as usize;
    for index in 0..wide {
        let bits = word(data, at.exceptions + index / 8 * excess)?;
        let value = (bits >> (index % 8 * excess)) as u8 & (0xFF >> (8 - excess));
        out[mask.trailing_zeros() as usize] |= value << low;
        mask &= mask - 1;
    }
    at.exceptions += (wide * excess).div_ceil(8);
    Some(())
}

pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    pack_with(values, streams, |word, mask| {
        let (mut bits, mut filled) = (0, 0);
        let width = (mask & 0xFF).count_ones();
        for byte in word.to_le_bytes() {
            bits |= (u64::from(byte) & (mask & 0xFF)) << filled;
            filled += width;
        }
        bits
    });
}

/// Packs with a function that gathers the bits under a mask, which repeats in every byte and begins at its lowest bit.
#[inline(always)]
pub(super) fn pack_with(values: &[u8], streams: &mut Streams, gather: impl Fn(u64, u64) -> u64) {
    for chunk in values.chunks(BLOCK) {
        let mut block = [0u8; BLOCK];
        block[..chunk.len()].copy_from_slice(chunk);
        pack_block(&block, chunk.len(), streams, &gather);
    }
}

#[inline(always)]
fn pack_block(block: &[u8; BLOCK], count: usize, streams: &mut Streams, gather: &impl Fn(u64, u64) -> u64) {
    let (low, top, mask) = choose(block, count);
    let excess = top - low;
    streams.headers.push((low | excess << 4) as u8);
    pack_bits(block, count, low, &mut streams.low, gather);
    if excess > 0 {
        streams.masks.extend_from_slice(&mask.to_le_bytes());
        let mut wide = [0u8; BLOCK];
        let (mut rest, mut found) = (mask, 0);
        while rest != 0 {
            wide[found] = (u32::from(block[rest.trailing_zeros() as usize]) >> low) as u8;
            found += 1;
            rest &= rest - 1;
        }
        pack_bits(&wide, found, excess, &mut streams.exceptions, gather);
    }
}

/// Appends the low `width` bits of the first `count` values.
#[inline(always)]
fn pack_bits(block: &[u8; BLOCK], count: usize, width: usize, out: &mut Vec<u8>, gather: &impl Fn(u64, u64) -> u64) {
    let mask = if width == 0 { 0 } else { (0xFF >> (8 - width)) * 0x0101_0101_0101_0101 };
    let mut packed = [0u8; BLOCK + 8];
    for (group, values) in block.as_chunks::<8>().0.iter().enumerate() {
        let bits = gather(u64::from_le_bytes(*values), mask);
        packed[group * width..group * width + 8].copy_from_slice(&bits.to_le_bytes());
    }
    out.extend_from_slice(&packed[..(count * width).div_ceil(8)]);
}

/// The cheapest low width, the width of the widest value, and the mask of values wider than the low width.
#[inline(always)]
fn choose(block: &[u8; BLOCK], count: usize) -> (usize, usize, u64) {
    // How many values need more than 0, 1, … 7 bits.
    let mut wider = [0usize; 9];
    for (width, wider) in wider[..8].iter_mut().enumerate() {
        *wider = usize::from(block.iter().map(|&value| u8::from(u32::from(value) >> width != 0)).sum::<u8>());
    }
    let top = wider.iter().position(|&wider| wider == 0).unwrap_or(8);
    let (mut low, mut cheapest) = (top, top * count);
    for width in (0..top).rev() {
        let cost = width * count + BLOCK + wider[width] * (top - width);
        if cost < cheapest {
            (low, cheapest) = (width, cost);
        }
    }
    let mut mask = 0;
    for (index, &value) in block.iter().enumerate() {
        mask |= u64::from(u32::from(value) >> low != 0) << index;
    }
    (low, top, mask)
}
