//! Packing with BMI2: `pdep` spreads eight values at a time, `pext` gathers them. Two codes at a time are looked up.

use std::arch::x86_64::{_pdep_u64, _pext_u64};

use super::{BLOCK, BLOCK_HEADER_BYTES, Cursors, GROUP, ONES, Streams, has_excess, scalar};

/// Two groups: where their bits go, and the bytes of the first and of both.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Pair {
    fields: [u64; 2],
    first: usize,
    both: usize,
}

/// For each pair of codes.
static PAIRS: [Pair; 64] = {
    let mut pairs = [Pair { fields: [0; 2], first: 0, both: 0 }; 64];
    let mut codes = 0;
    while codes < 64 {
        let (first, second) = (width(codes & 7), width(codes >> 3));
        pairs[codes] = Pair { fields: [field(codes & 7), field(codes >> 3)], first, both: first + second };
        codes += 1;
    }
    pairs
};

/// For each code, the bits of its width in each byte.
static FIELDS: [u64; 8] = {
    let mut fields = [0; 8];
    let mut code = 0;
    while code < 8 {
        fields[code] = field(code);
        code += 1;
    }
    fields
};

const fn field(code: usize) -> u64 {
    if code == 0 { 0 } else { (0xFF >> (8 - width(code))) * ONES }
}

const fn width(code: usize) -> usize {
    if code == 7 { 8 } else { code }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    planes.iter_mut().all(|plane| unpack_row(data, at, count, plane))
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn unpack_row(data: &[u8], at: &mut Cursors, count: usize, plane: &mut [u8]) -> bool {
    let blocks = &mut plane.as_chunks_mut::<BLOCK>().0[..count.div_ceil(BLOCK)];
    let mut here = *at;
    let mut header = 0;
    if here.have_blocks(data, blocks.len()) {
        for block in blocks {
            // SAFETY: there is space for all blocks.
            header = unsafe { unpack_block(data, &mut here, block) };
        }
    } else {
        for block in blocks {
            if !here.have_block(data) {
                return false;
            }
            // SAFETY: there is space for the block.
            header = unsafe { unpack_block(data, &mut here, block) };
        }
    }
    if !count.is_multiple_of(GROUP) {
        here.shorten(header, count);
    }
    *at = here;
    count.is_multiple_of(BLOCK) || !has_excess(header, count % BLOCK)
}

/// Reads one block and returns its header.
///
/// # Safety
/// From the cursors, 4 bytes of the headers and 64 of the values must lie within `data`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn unpack_block(data: &[u8], at: &mut Cursors, out: &mut [u8; BLOCK]) -> u32 {
    // SAFETY: the caller's promise: a group begins at most eight bytes after the one before it, so the last begins at most 56
    // bytes after the first and eight bytes follow.
    unsafe {
        let header = data.as_ptr().add(at.headers).cast::<u32>().read_unaligned();
        let start = data.as_ptr().add(at.values);
        let mut from = start;
        for (pair, out) in out.as_chunks_mut::<{ 2 * GROUP }>().0.iter_mut().enumerate() {
            let Pair { fields, first, both } = &PAIRS[(header >> (6 * pair)) as usize & 63];
            let low = _pdep_u64(from.cast::<u64>().read_unaligned(), fields[0]);
            let high = _pdep_u64(from.add(*first).cast::<u64>().read_unaligned(), fields[1]);
            out[..GROUP].copy_from_slice(&low.to_le_bytes());
            out[GROUP..].copy_from_slice(&high.to_le_bytes());
            from = from.add(*both);
        }
        at.values += from.offset_from_unsigned(start);
        at.headers += BLOCK_HEADER_BYTES;
        header
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    let (blocks, last) = values.as_chunks::<BLOCK>();
    streams.values.reserve(values.len() + GROUP);
    streams.headers.reserve(BLOCK_HEADER_BYTES * blocks.len() + 4);
    for block in blocks {
        let mut header = 0;
        // SAFETY: there is space for the values and eight bytes more: each group is written with eight bytes, of which the
        // next overwrites those beyond its width, so all bytes up to the new lengths are written.
        unsafe {
            let start = streams.values.as_mut_ptr().add(streams.values.len());
            let mut to = start;
            for (group, values) in block.as_chunks::<GROUP>().0.iter().enumerate() {
                let word = u64::from_le_bytes(*values);
                let (code, width) = scalar::widest(word);
                header |= code << (3 * group);
                to.cast::<u64>().write_unaligned(_pext_u64(word, FIELDS[code as usize]));
                to = to.add(width);
            }
            streams.values.set_len(streams.values.len() + to.offset_from_unsigned(start));
            let headers = &mut streams.headers;
            headers.as_mut_ptr().add(headers.len()).cast::<u32>().write_unaligned(header);
            headers.set_len(headers.len() + BLOCK_HEADER_BYTES);
        }
    }
    scalar::pack_with(last, streams, |word, width| _pext_u64(word, FIELDS[width.min(7)]));
}
