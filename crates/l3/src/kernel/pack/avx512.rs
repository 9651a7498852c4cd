//! Packing with VBMI: a byte permutation brings the bytes of each group to its quadword, a multishift cuts the values out. No
//! branch depends on the data.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi8, _mm512_and_si512, _mm512_loadu_si512, _mm512_multishift_epi64_epi8,
    _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_shuffle_epi8,
    _mm512_storeu_si512, _mm512_ternarylogic_epi32, _pdep_u64,
};

use super::{BLOCK, BLOCK_HEADER_BYTES, Cursors, GROUP, ONES, Streams, avx2, has_excess};

/// 0 to 7 in each quadword.
static INDEX: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < 64 {
        table[at] = (at % 8) as u8;
        at += 1;
    }
    table
};

/// In each quadword its number.
static QUADWORD: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < 64 {
        table[at] = (at / 8) as u8;
        at += 1;
    }
    table
};

/// In each quadword, three bits before where its code begins in a header that repeats.
static CODE: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < 64 {
        table[at] = ((at / 8 * 3 + 61) % 64) as u8;
        at += 1;
    }
    table
};

/// For each code and index in a group: the bit at which the value begins.
static SHIFTS: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 0;
    while at < 64 {
        table[at] = (at % 8 * width(at / 8)) as u8;
        at += 1;
    }
    table
};

/// For each code and index in a group: the bits of a value.
static FIELDS: [u8; 64] = {
    let mut table = [0; 64];
    let mut at = 8;
    while at < 64 {
        table[at] = 0xFF >> (8 - width(at / 8));
        at += 1;
    }
    table
};

const fn width(code: usize) -> usize {
    if code == 7 { 8 } else { code }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is to 64 readable bytes, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn unpack(data: &[u8], at: &mut Cursors, count: usize, planes: &mut [Vec<u8>]) -> bool {
    let mut good = true;
    for plane in planes {
        good &= unpack_row(data, at, count, plane);
    }
    good
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
#[inline]
unsafe fn unpack_block(data: &[u8], at: &mut Cursors, out: &mut [u8; BLOCK]) -> u32 {
    // SAFETY: the caller's promise.
    let (header, packed) = unsafe {
        (
            data.as_ptr().add(at.headers).cast::<u32>().read_unaligned(),
            _mm512_loadu_si512(data.as_ptr().add(at.values).cast()),
        )
    };
    // The widths, a byte each, and where their groups begin: sums of bytes that stay below 256.
    let codes = _pdep_u64(u64::from(header), 7 * ONES);
    let widths = codes + (((codes + ONES) >> 3) & ONES);
    let ends = widths.wrapping_mul(ONES);
    let starts = _mm512_set1_epi64((ends - widths).cast_signed());
    let starts = _mm512_shuffle_epi8(starts, load(&QUADWORD));
    let bytes = _mm512_permutexvar_epi8(_mm512_add_epi8(starts, load(&INDEX)), packed);
    // Eight times the code, plus the index: `(code bits & 0x38) | index`.
    let codes = _mm512_multishift_epi64_epi8(load(&CODE), _mm512_set1_epi32(header.cast_signed()));
    let which = _mm512_ternarylogic_epi32::<0xF8>(load(&INDEX), codes, _mm512_set1_epi8(0x38));
    let shifts = _mm512_permutexvar_epi8(which, load(&SHIFTS));
    let fields = _mm512_permutexvar_epi8(which, load(&FIELDS));
    let values = _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, bytes), fields);
    // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) };
    at.headers += BLOCK_HEADER_BYTES;
    at.values += (ends >> 56) as usize;
    header
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn pack(values: &[u8], streams: &mut Streams) {
    // What is slow here is finding the widths, eight bytes at a time; wider vectors would not help.
    avx2::pack(values, streams);
}
