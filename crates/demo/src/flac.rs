//! A small encoder of FLAC (RFC 9639): one channel of 16 bit, blocks of 4096, fixed predictors, Rice codes in 16 partitions. Real
//! encoders predict with more coefficients and save some 5 % more; decoding costs about the same.

use super::bits::Bits;

/// Samples in a block; the last has what is left.
const BLOCK: usize = 4096;

/// Full blocks have 2⁴ partitions, each with its own Rice parameter.
const PARTITION_ORDER: u32 = 4;

/// One channel as a FLAC file.
pub(super) fn encode(samples: &[i16], rate_hz: u32) -> Vec<u8> {
    let mut file = stream_info(samples.len(), rate_hz);
    for (number, block) in samples.chunks(BLOCK).enumerate() {
        file.extend(frame(number as u64, block));
    }
    file
}

fn stream_info(samples: usize, rate_hz: u32) -> Vec<u8> {
    let mut bits = Bits::default();
    for byte in *b"fLaC" {
        bits.put(byte.into(), 8);
    }
    // The last block of metadata, of kind 0, of 34 bytes.
    bits.put(0x80, 8);
    bits.put(34, 24);
    bits.put(BLOCK as u64, 16);
    bits.put(BLOCK as u64, 16);
    // The sizes of frames, unknown.
    bits.zeros(48);
    bits.put(rate_hz.into(), 20);
    bits.put(0, 3);
    bits.put(15, 5);
    bits.put(samples as u64 >> 32, 4);
    bits.put(samples as u64 & 0xffff_ffff, 32);
    // The checksum of the samples, unknown.
    bits.zeros(128);
    bits.into_bytes()
}

fn frame(number: u64, block: &[i16]) -> Vec<u8> {
    let is_full = block.len() == BLOCK;
    let mut header = Bits::default();
    // Synchronization; blocks of one size; the size (4096, or 16 bits below); the rate of the stream; one channel; 16 bit.
    header.put(0b1111_1111_1111_1000, 16);
    header.put(if is_full { 12 } else { 7 }, 4);
    header.put(0, 4);
    header.put(0, 4);
    header.put(0b1000, 4);
    frame_number(number, &mut header);
    if !is_full {
        header.put(block.len() as u64 - 1, 16);
    }
    let mut bits = Bits::default();
    let header = header.into_bytes();
    for &byte in &header {
        bits.put(byte.into(), 8);
    }
    bits.put(checksum(&header, 0x07, 8), 8);
    subframe(block, &mut bits);
    let mut frame = bits.into_bytes();
    frame.extend((checksum(&frame, 0x8005, 16) as u16).to_be_bytes());
    frame
}

/// In the manner of UTF-8; files of the demo have less than 2¹⁶ frames.
fn frame_number(number: u64, header: &mut Bits) {
    match number {
        0..0x80 => header.put(number, 8),
        0x80..0x800 => {
            header.put(0xc0 | number >> 6, 8);
            header.put(0x80 | number & 0x3f, 8);
        }
        _ => {
            header.put(0xe0 | (number >> 12) & 0x0f, 8);
            header.put(0x80 | (number >> 6) & 0x3f, 8);
            header.put(0x80 | number & 0x3f, 8);
        }
    }
}

fn subframe(block: &[i16], bits: &mut Bits) {
    let mut residual: Vec<i64> = block.iter().copied().map(i64::from).collect();
    let size = |residual: &[i64]| residual.iter().map(|value| value.unsigned_abs()).sum::<u64>();
    let mut best = (0, residual.clone());
    // Each order predicts what the one before left over: by the value before it.
    for order in 1..=4.min(block.len() - 1) {
        residual = residual.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if size(&residual) < size(&best.1) {
            best = (order, residual.clone());
        }
    }
    let (order, residual) = best;
    bits.put(0b00_1000 | order as u64, 7);
    bits.put(0, 1);
    for &first in &block[..order] {
        bits.put(first as u16 as u64, 16);
    }
    let partition_order = if block.len() == BLOCK { PARTITION_ORDER } else { 0 };
    bits.put(0, 2);
    bits.put(partition_order.into(), 4);
    let mut rest = &residual[..];
    let length = block.len() >> partition_order;
    for partition in 0..1 << partition_order {
        // The first is shorter by the samples that came before the residual.
        let (now, later) = rest.split_at(if partition == 0 { length - order } else { length });
        rice(now, bits);
        rest = later;
    }
}

/// A partition with the parameter that makes it smallest.
fn rice(residual: &[i64], bits: &mut Bits) {
    let folded = |value: i64| ((value << 1) ^ (value >> 63)) as u64;
    let cost = |parameter: u32| {
        residual.iter().map(|&value| (folded(value) >> parameter) + 1 + u64::from(parameter)).sum::<u64>()
    };
    let parameter = (0..15).min_by_key(|&parameter| cost(parameter)).unwrap_or(0);
    bits.put(parameter.into(), 4);
    for &value in residual {
        bits.zeros(folded(value) >> parameter);
        bits.put(1, 1);
        bits.put(folded(value), parameter);
    }
}

/// The remainder of a division by this polynomial, of 8 or 16 bits.
fn checksum(bytes: &[u8], polynomial: u64, bits: u32) -> u64 {
    let top = 1 << (bits - 1);
    bytes.iter().fold(0, |mut sum: u64, &byte| {
        sum ^= u64::from(byte) << (bits - 8);
        for _ in 0..8 {
            sum = if sum & top == 0 { sum << 1 } else { sum << 1 ^ polynomial };
        }
        sum & ((top << 1) - 1)
    })
}

#[cfg(test)]
mod tests {
    use forebay_codec::audio::{AudioOptions, decode};
    use forebay_pipeline::Random;

    use super::*;

    #[test]
    fn every_sample_comes_back() {
        let mut random = Random::from_parts(&[1]);
        for (length, level) in [(BLOCK, 3), (BLOCK + 1, 40_000), (3 * BLOCK + 777, 500), (20 * BLOCK, 65_535), (5, 9)] {
            let samples: Vec<i16> =
                (0..length).map(|index| (random.below(level) as i32 + index as i32 % 300 - 32_768) as i16).collect();
            let mut back = Vec::new();
            let info = decode(&encode(&samples, 16_000), &AudioOptions::default(), &mut back).unwrap();
            assert_eq!((info.rate_hz, info.channels), (16_000, 1));
            assert_eq!(back, samples, "{length}");
        }
        let silence = encode(&vec![0; 40_000], 16_000);
        assert!(silence.len() < 10_000, "{}", silence.len());
    }
}
