//! Unpacking with NEON: two groups at a time, whose bytes are at most 16. Each value is cut out of the two bytes that it may lie in,
//! which table lookups bring to its place, by shifts that differ from byte to byte.

use std::arch::aarch64::{
    vaddq_s8, vaddq_u8, vandq_u8, vdupq_n_s8, vdupq_n_u8, vld1q_s8, vld1q_u8, vorrq_u8, vqtbl1q_u8, vshlq_u8, vst1q_u8,
};

use super::{BLOCK, BLOCK_HEADER_BYTES, Cursors, GROUP, Streams, has_excess, scalar};

/// Two groups: for each value the byte that it begins in, by how many bits it lies above that byte's lowest (negative, since it is
/// shifted down by them), and the bits of its width; and the bytes of both groups.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Pair {
    begins: [u8; 2 * GROUP],
    shifts: [i8; 2 * GROUP],
    fields: [u8; 2 * GROUP],
    bytes: usize,
}

/// For each pair of codes.
static PAIRS: [Pair; 64] = {
    let empty = Pair { begins: [0; 2 * GROUP], shifts: [0; 2 * GROUP], fields: [0; 2 * GROUP], bytes: 0 };
    let mut pairs = [empty; 64];
    let mut codes = 0;
    while codes < 64 {
        let widths = [width(codes & 7), width(codes >> 3)];
        let mut value = 0;
        while value < 2 * GROUP {
            let width = widths[value / GROUP];
            let bit = value / GROUP * 8 * widths[0] + value % GROUP * width;
            pairs[codes].begins[value] = (bit / 8) as u8;
            pairs[codes].shifts[value] = -((bit % 8) as i8);
            pairs[codes].fields[value] = ((1 << width) - 1) as u8;
            value += 1;
        }
        pairs[codes].bytes = widths[0] + widths[1];
        codes += 1;
    }
    pairs
};

const fn width(code: usize) -> usize {
    if code == 7 { 8 } else { code }
}

#[target_feature(enable = "neon")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    planes.iter_mut().all(|plane| unpack_row(data, at, count, plane))
}

#[target_feature(enable = "neon")]
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
#[target_feature(enable = "neon")]
#[inline]
unsafe fn unpack_block(data: &[u8], at: &mut Cursors, out: &mut [u8; BLOCK]) -> u32 {
    // SAFETY: the caller's promise: a pair begins at most 16 bytes after the one before it, so the last begins at most 48 bytes after
    // the first and 16 bytes follow. The table's arrays and the output's pieces have 16 bytes.
    unsafe {
        let header = data.as_ptr().add(at.headers).cast::<u32>().read_unaligned();
        let start = data.as_ptr().add(at.values);
        let mut from = start;
        for (pair, out) in out.as_chunks_mut::<{ 2 * GROUP }>().0.iter_mut().enumerate() {
            let Pair { begins, shifts, fields, bytes } = &PAIRS[(header >> (6 * pair)) as usize & 63];
            let (packed, begins, shifts) = (vld1q_u8(from), vld1q_u8(begins.as_ptr()), vld1q_s8(shifts.as_ptr()));
            // A byte beyond the sixteenth is looked up as zero. What the second byte adds to a value that does not reach into it lies
            // above the value's bits.
            let low = vshlq_u8(vqtbl1q_u8(packed, begins), shifts);
            let next = vqtbl1q_u8(packed, vaddq_u8(begins, vdupq_n_u8(1)));
            let high = vshlq_u8(next, vaddq_s8(shifts, vdupq_n_s8(8)));
            vst1q_u8(out.as_mut_ptr(), vandq_u8(vorrq_u8(low, high), vld1q_u8(fields.as_ptr())));
            from = from.add(*bytes);
        }
        at.values += from.offset_from_unsigned(start);
        at.headers += BLOCK_HEADER_BYTES;
        header
    }
}

#[target_feature(enable = "neon")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    scalar::pack(values, streams);
}
