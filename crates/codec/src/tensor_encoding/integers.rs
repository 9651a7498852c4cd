//! Bit packing: integers in as many bits as their range takes, block by block.
//!
//! ```text
//! block = bits (1 byte, 0 to 8 times the element's bytes)   base (one element)   each element minus the base, in that many bits
//! ```
//!
//! A block has 1024 elements, the last one the rest. Elements are packed from the lowest bit up, and a block ends with a full
//! byte. What does not fit the element's type wraps around.

use super::bits::{Bits, Cursor, FORMAT};
use crate::error::{Error, Result};
use crate::memory;

const BLOCK_ELEMENTS: usize = 1024;

/// Elements are read eight bytes at a time, or sixteen, from wherever they begin.
const PADDING_BYTES: usize = 16;

pub(super) fn pack<T: Bits>(data: &[u8], signed: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    memory::reserve(&mut out, data.len() / 2)?;
    let ordered = |element: T| if signed { element.flipped() } else { element };
    for block in data.chunks(BLOCK_ELEMENTS * T::BYTES) {
        let elements = || block.chunks_exact(T::BYTES).map(T::read);
        let least = elements().map(ordered).min().unwrap_or(T::ZERO);
        let most = elements().map(ordered).max().unwrap_or(T::ZERO);
        let base = ordered(least);
        let bits = u64::BITS - most.minus(least).wide().leading_zeros();
        memory::reserve(&mut out, 1 + T::BYTES + block.len())?;
        out.push(bits as u8);
        out.extend_from_slice(&base.wide().to_le_bytes()[..T::BYTES]);
        let (mut held, mut held_bits) = (0_u128, 0);
        for element in elements() {
            held |= u128::from(element.minus(base).wide()) << held_bits;
            held_bits += bits;
            while held_bits >= 8 {
                out.push(held as u8);
                held >>= 8;
                held_bits -= 8;
            }
        }
        if held_bits > 0 {
            out.push(held as u8);
        }
    }
    Ok(out)
}

pub(super) fn unpack<T: Bits>(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let mut cursor = Cursor::new(payload);
    let mut padded = [0; BLOCK_ELEMENTS * 8 + PADDING_BYTES];
    for block in out.chunks_mut(BLOCK_ELEMENTS * T::BYTES) {
        let bits = usize::from(cursor.byte("a block's head")?);
        if bits > 8 * T::BYTES {
            let problem = format!("a block of {bits} bits, in elements of {}", 8 * T::BYTES);
            return Err(Error::format_at(FORMAT, problem, cursor.offset()));
        }
        let base = T::read(cursor.take(T::BYTES, "a block's base")?);
        let packed = cursor.take((block.len() / T::BYTES * bits).div_ceil(8), "a block")?;
        let (content, rest) = padded.split_at_mut(packed.len());
        content.copy_from_slice(packed);
        rest[..PADDING_BYTES].fill(0);
        unpack_block(&padded, bits, base, block);
    }
    if cursor.rest.is_empty() {
        return Ok(());
    }
    Err(Error::format_at(FORMAT, "there are bytes after the last block", cursor.offset()))
}

fn unpack_block<T: Bits>(padded: &[u8], bits: usize, base: T, block: &mut [u8]) {
    let mask = (1_u128 << bits).wrapping_sub(1);
    // Up to 57 bits and the 7 before them are in eight bytes.
    if bits <= 57 {
        let mask = mask as u64;
        for (index, to) in block.chunks_exact_mut(T::BYTES).enumerate() {
            let at = index * bits;
            let word = u64::read(&padded[at / 8..]) >> (at % 8);
            base.plus(T::narrow(word & mask)).write(to);
        }
        return;
    }
    for (index, to) in block.chunks_exact_mut(T::BYTES).enumerate() {
        let at = index * bits;
        let (low, high) = (u64::read(&padded[at / 8..]), u64::read(&padded[at / 8 + 8..]));
        let word = (u128::from(high) << 64 | u128::from(low)) >> (at % 8);
        base.plus(T::narrow((word & mask) as u64)).write(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ranges_take_few_bits() {
        let numbers: Vec<u8> = (0..3000_u32).flat_map(|number| (number % 5 + 1_000_000).to_le_bytes()).collect();
        let packed = pack::<u32>(&numbers, true).expect("memory");
        assert_eq!(packed.len(), 3 * 5 + (3000 * 3_usize).div_ceil(8));
        let mut back = vec![0; numbers.len()];
        unpack::<u32>(&packed, &mut back).expect("as it was packed");
        assert_eq!(back, numbers);
    }

    #[test]
    fn every_number_of_bits_comes_back() {
        for bits in 0..=64_u32 {
            let most = 1_u64.checked_shl(bits).map_or(u64::MAX, |bound| bound - 1);
            let numbers: Vec<u8> = (0..1100_u64)
                .flat_map(|number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & most).to_le_bytes())
                .chain(most.to_le_bytes())
                .collect();
            for signed in [false, true] {
                let packed = pack::<u64>(&numbers, signed).expect("memory");
                let mut back = vec![0; numbers.len()];
                unpack::<u64>(&packed, &mut back).expect("as it was packed");
                assert_eq!(back, numbers, "{bits}");
            }
        }
    }
}
