//! CRC-32C by folding: 256 bytes are multiplied by x^2048 modulo the polynomial and added to the next 256 (Gopal et al., "Fast
//! CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009). What remains has the same CRC as everything before it.

use std::arch::x86_64::{
    __m512i, _mm512_clmulepi64_epi128, _mm512_loadu_si512, _mm512_set_epi64, _mm512_storeu_si512,
    _mm512_ternarylogic_epi64,
};

/// Bytes folded at a time.
const STRIDE: usize = 256;

/// The upper and lower halves of 128 bits are multiplied by different powers.
const HIGH: i64 = power(8 * STRIDE as u32 - 32);
const LOW: i64 = power(8 * STRIDE as u32 + 32);

/// x^`power` modulo the polynomial, its bits reversed and shifted up by one, as multiplication of reversed bits needs it.
const fn power(power: u32) -> i64 {
    let mut value = 1u64;
    let mut step = 0;
    while step < power {
        value <<= 1;
        if value >> 32 == 1 {
            value ^= 0x1_1EDC_6F41;
        }
        step += 1;
    }
    ((value as u32).reverse_bits() as i64) << 1
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<STRIDE>();
    let Some((first, blocks)) = blocks.split_first() else { return crc32c::crc32c(bytes) };
    let powers = _mm512_set_epi64(HIGH, LOW, HIGH, LOW, HIGH, LOW, HIGH, LOW);
    // A CRC starts from all ones, which is the same as inverting the first four bytes and starting from zero.
    let mut first = *first;
    for byte in &mut first[..4] {
        *byte = !*byte;
    }
    let mut sums = load(&first);
    for block in blocks {
        let next = load(block);
        for (sum, next) in sums.iter_mut().zip(next) {
            let low = _mm512_clmulepi64_epi128::<0x00>(*sum, powers);
            let high = _mm512_clmulepi64_epi128::<0x11>(*sum, powers);
            // The exclusive or of all three.
            *sum = _mm512_ternarylogic_epi64::<0x96>(low, high, next);
        }
    }
    let mut left = [0u8; STRIDE];
    for (left, sum) in left.as_chunks_mut::<64>().0.iter_mut().zip(sums) {
        // SAFETY: the reference is to 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(left.as_mut_ptr().cast(), sum) };
    }
    // The crate inverts what it is given, so all ones is a start from zero.
    let folded = crc32c::crc32c_append(u32::MAX, &left);
    crc32c::crc32c_append(folded, rest)
}

/// 256 bytes.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,gfni,vpclmulqdq,bmi1,bmi2,lzcnt,popcnt"
)]
#[inline]
fn load(block: &[u8; STRIDE]) -> [__m512i; 4] {
    let (parts, _) = block.as_chunks::<64>();
    // SAFETY: each reference is to 64 readable bytes, and the loads need no alignment.
    unsafe {
        [
            _mm512_loadu_si512(parts[0].as_ptr().cast()),
            _mm512_loadu_si512(parts[1].as_ptr().cast()),
            _mm512_loadu_si512(parts[2].as_ptr().cast()),
            _mm512_loadu_si512(parts[3].as_ptr().cast()),
        ]
    }
}
