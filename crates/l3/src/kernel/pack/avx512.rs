//! Block packing with VBMI: a byte permutation brings the bytes of eight values to each quadword, a multishift cuts the
//! values out, and the exceptions are expanded under the mask. No branch depends on the data.

use std::arch::x86_64::{
    __m512i, _mm_cvtsi32_si128, _mm512_and_si512, _mm512_cmpgt_epu8_mask, _mm512_loadu_si512,
    _mm512_maskz_compress_epi8, _mm512_maskz_expand_epi8, _mm512_maskz_loadu_epi8, _mm512_multishift_epi64_epi8,
    _mm512_or_si512, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_srl_epi16,
    _mm512_storeu_si512, _mm512_sub_epi8, _pext_u64,
};

use super::{BLOCK, Cursors, Streams};

/// For each width, the byte that each byte of a vector takes: quadword `q` takes the eight bytes from `q * width`.
// Widths above 8 are invalid, but a nibble can hold them.
static BYTES: [[u8; 64]; 16] = {
    let mut table = [[0; 64]; 16];
    let mut width = 0;
    while width < 9 {
        let mut index = 0;
        while index < 64 {
            table[width][index] = (index / 8 * width + index % 8) as u8;
            index += 1;
        }
        width += 1;
    }
    table
};

/// For each header, where its low bits and its excess bits are in a byte, and its low width, in all bytes of a word.
static FIELDS: [(i32, i32, i32); 256] = {
    let mut table = [(0, 0, 0); 256];
    let mut header = 0;
    while header < 256 {
        let (low, excess) = (header & 15, header >> 4);
        if low + excess <= 8 {
            let (low_field, wide_field) = ((1u32 << low) - 1, ((1u32 << excess) - 1) << low);
            table[header] = (
                (low_field * 0x0101_0101).cast_signed(),
                (wide_field * 0x0101_0101).cast_signed(),
                low as i32 * 0x0101_0101,
            );
        }
        header += 1;
    }
    table
};

/// For each width, the bit at which each byte of a quadword begins.
static SHIFTS: [[u8; 64]; 16] = {
    let mut table = [[0; 64]; 16];
    let mut width = 0;
    while width < 9 {
        let mut index = 0;
        while index < 64 {
            table[width][index] = (index % 8 * width) as u8;
            index += 1;
        }
        width += 1;
    }
    table
};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    let blocks = planes.len() * count.div_ceil(BLOCK);
    // No block takes more than 120 bytes of a stream (a nibble of eight-byte groups), and 64 more are loaded.
    let needed = at.low.max(at.exceptions).max(at.masks).max(at.headers) + blocks * 120 + 64;
    if needed <= data.len() {
        // SAFETY: every stream has space for all blocks.
        unsafe { unpack_planes::<false>(data, at, count, planes) }
    } else {
        // SAFETY: each block is checked before it is loaded.
        unsafe { unpack_planes::<true>(data, at, count, planes) }
    }
}

/// # Safety
/// Unless `CHECKED`, 120 bytes for each block and 64 more must be there in each stream.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn unpack_planes<const CHECKED: bool>(
    data: &[u8],
    at: &mut Cursors,
    count: usize,
    planes: &mut [Vec<u8>],
) -> bool {
    let mut here = *at;
    let mut invalid = false;
    for plane in planes {
        let (whole, rest) = plane.as_chunks_mut::<BLOCK>().0.split_at_mut(count / BLOCK);
        for block in whole {
            if CHECKED && !here.have_block(data) {
                return false;
            }
            // SAFETY: the caller's promise, or the check just made.
            invalid |= unsafe { unpack_block(data, &mut here, BLOCK, block) };
        }
        if let (Some(block), 1..) = (rest.first_mut(), count % BLOCK) {
            if CHECKED && !here.have_block(data) {
                return false;
            }
            // SAFETY: the caller's promise, or the check just made.
            invalid |= unsafe { unpack_block(data, &mut here, count % BLOCK, block) };
        }
    }
    *at = here;
    !invalid
}

impl Cursors {
    /// Whether one block can be loaded from here.
    fn have_block(&self, data: &[u8]) -> bool {
        self.low.max(self.exceptions) + 64 <= data.len() && self.masks + 8 <= data.len() && self.headers < data.len()
    }
}

/// Reads one block; true if its header is invalid.
///
/// # Safety
/// A header byte, 8 mask bytes and 64 bytes of the other streams must lie within `data`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn unpack_block(data: &[u8], at: &mut Cursors, count: usize, out: &mut [u8; BLOCK]) -> bool {
    // SAFETY: the caller's promise.
    let (header, low_bytes, wide_bytes, mask) = unsafe {
        (
            *data.get_unchecked(at.headers),
            _mm512_loadu_si512(data.as_ptr().add(at.low).cast()),
            _mm512_loadu_si512(data.as_ptr().add(at.exceptions).cast()),
            data.as_ptr().add(at.masks).cast::<u64>().read_unaligned(),
        )
    };
    let (low, excess) = (usize::from(header & 15), usize::from(header >> 4));
    let mask = if excess == 0 { 0 } else { mask };
    let low_values =
        _mm512_multishift_epi64_epi8(load(&SHIFTS[low]), _mm512_permutexvar_epi8(load(&BYTES[low]), low_bytes));
    let low_field = _mm512_set1_epi32(FIELDS[usize::from(header)].0);
    // The excess bits are cut out so that they already lie above the low bits; what else the cut takes is masked away.
    let wide_values = _mm512_multishift_epi64_epi8(
        _mm512_sub_epi8(load(&SHIFTS[excess]), _mm512_set1_epi32(FIELDS[usize::from(header)].2)),
        _mm512_permutexvar_epi8(load(&BYTES[excess]), wide_bytes),
    );
    let wide_field = _mm512_set1_epi32(FIELDS[usize::from(header)].1);
    let wide_values = _mm512_maskz_expand_epi8(mask, _mm512_and_si512(wide_values, wide_field));
    let values = _mm512_or_si512(_mm512_and_si512(low_values, low_field), wide_values);
    // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) };

    at.headers += 1;
    at.low += (count * low).div_ceil(8);
    at.masks += if excess == 0 { 0 } else { 8 };
    at.exceptions += (mask.count_ones() as usize * excess).div_ceil(8);
    low + excess > 8
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    for block in values.chunks(BLOCK) {
        // SAFETY: only the bytes of the block are loaded.
        let values = unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (BLOCK - block.len()), block.as_ptr().cast()) };
        pack_block(values, block.len(), streams);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn pack_block(values: __m512i, count: usize, streams: &mut Streams) {
    // Which values need more than 0, 1, … 7 bits; none needs more than 8.
    let mut wider = [0u64; 9];
    for (width, wider) in wider[..8].iter_mut().enumerate() {
        *wider = _mm512_cmpgt_epu8_mask(values, _mm512_set1_epi8(((1u32 << width) - 1) as i8));
    }
    let top = wider.iter().position(|&wider| wider == 0).unwrap_or(8);
    let (mut low, mut cheapest) = (top, top * count);
    for width in (0..top).rev() {
        let cost = width * count + BLOCK + wider[width].count_ones() as usize * (top - width);
        if cost < cheapest {
            (low, cheapest) = (width, cost);
        }
    }
    let excess = top - low;
    streams.headers.push((low | excess << 4) as u8);
    pack_bits(values, count, low, &mut streams.low);
    if excess > 0 {
        streams.masks.extend_from_slice(&wider[low].to_le_bytes());
        let wide = _mm512_maskz_compress_epi8(wider[low], values);
        // What comes in from the neighboring byte lies above the excess bits.
        let wide = _mm512_srl_epi16(wide, _mm_cvtsi32_si128(low as i32));
        pack_bits(wide, wider[low].count_ones() as usize, excess, &mut streams.exceptions);
    }
}

/// Appends the low `width` bits of the first `count` values.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn pack_bits(values: __m512i, count: usize, width: usize, out: &mut Vec<u8>) {
    let mask = (0xFF >> (8 - width)) * 0x0101_0101_0101_0101;
    let mut groups = [0u64; 8];
    // SAFETY: the array has 64 bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(groups.as_mut_ptr().cast(), values) };
    out.reserve(BLOCK + 8);
    // SAFETY: there is space for 72 bytes; group `g` is written at `g * width`, at most 56, and its 8 bytes cover what the next
    // overwrites, so all bytes up to the new length are written.
    unsafe {
        let start = out.as_mut_ptr().add(out.len());
        for (index, &group) in groups.iter().take(count.div_ceil(8)).enumerate() {
            start.add(index * width).cast::<u64>().write_unaligned(_pext_u64(group, mask));
        }
        out.set_len(out.len() + (count * width).div_ceil(8));
    }
}
