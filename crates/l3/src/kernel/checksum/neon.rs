//! CRC-32C by the processor's instruction, inlined: the `crc32c` crate calls a function for every eight bytes on this architecture. Three
//! parts of a block at a time, since each step waits for the one before it.

use std::arch::aarch64::{__crc32cb, __crc32cd};

/// Bytes of each of the three parts of a block.
const PART: usize = 2048;

/// What a CRC is multiplied by when as many bytes as a part has follow it, its bits reversed.
const SHIFT: u32 = {
    let (mut value, mut step) = (1u32, 0);
    while step < 8 * PART {
        value = value << 1 ^ ((value >> 31) * 0x1EDC_6F41);
        step += 1;
    }
    value.reverse_bits()
};

#[target_feature(enable = "crc")]
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    let (blocks, rest) = bytes.as_chunks::<{ 3 * PART }>();
    let crc = blocks.iter().fold(u32::MAX, |crc, block| {
        let (parts, _) = block.as_chunks::<PART>();
        let [first, second, third] = [&parts[0], &parts[1], &parts[2]].map(|part| part.as_chunks::<8>().0);
        let mut crcs = [crc, 0, 0];
        for ((first, second), third) in first.iter().zip(second).zip(third) {
            crcs[0] = __crc32cd(crcs[0], u64::from_le_bytes(*first));
            crcs[1] = __crc32cd(crcs[1], u64::from_le_bytes(*second));
            crcs[2] = __crc32cd(crcs[2], u64::from_le_bytes(*third));
        }
        multiply(multiply(crcs[0], SHIFT) ^ crcs[1], SHIFT) ^ crcs[2]
    });
    let (words, rest) = rest.as_chunks::<8>();
    let crc = words.iter().fold(crc, |crc, word| __crc32cd(crc, u64::from_le_bytes(*word)));
    !rest.iter().fold(crc, |crc, &byte| __crc32cb(crc, byte))
}

/// The product modulo the polynomial, of reversed bits: the highest bit is the constant term.
#[inline]
fn multiply(mut by: u32, factor: u32) -> u32 {
    let (mut product, mut factor) = (0, factor);
    for _ in 0..32 {
        // Adds the factor where this power of x is in `by`, and goes on to the next power.
        product ^= factor & (by >> 31).wrapping_neg();
        by <<= 1;
        factor = factor >> 1 ^ ((factor & 1).wrapping_neg() & 0x82F6_3B78);
    }
    product
}
