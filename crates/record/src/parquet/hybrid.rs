//! Small whole numbers, packed by bits or counted by runs: levels, and indexes into dictionaries.

use super::thrift::varint;
use super::{Fault, Parsed, damaged, reserved};

/// How many bits numbers up to `largest` take.
pub(super) fn width_of(largest: u32) -> u32 {
    u32::BITS - largest.leading_zeros()
}

/// The first `count` numbers of `bytes`, of `width` bits each.
pub(super) fn decode(mut bytes: &[u8], width: u32, count: usize) -> Parsed<Vec<u32>> {
    if width > 32 {
        return damaged(format!("numbers have {width} bits"));
    }
    let mut numbers = reserved(count)?;
    while numbers.len() < count {
        let (head, rest) = varint(bytes)?;
        let left = count - numbers.len();
        if head & 1 == 0 {
            let run = usize::try_from(head >> 1).unwrap_or(usize::MAX).min(left);
            let (value, rest) = rest.split_at_checked(width.div_ceil(8) as usize).ok_or(Fault::Cut)?;
            let value = value.iter().rev().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
            if width < 32 && value >> width != 0 {
                return damaged(format!("a run is of {value}, which has more than {width} bits"));
            }
            numbers.resize(numbers.len() + run, value);
            bytes = rest;
        } else {
            // Groups of eight; of the last one a writer may leave out what nobody reads.
            let packed = usize::try_from(head >> 1).unwrap_or(usize::MAX).saturating_mul(width as usize);
            let (packed, rest) = rest.split_at(packed.min(rest.len()));
            let there = if width == 0 {
                usize::try_from(head >> 1).unwrap_or(usize::MAX).saturating_mul(8)
            } else {
                packed.len() * 8 / width as usize
            };
            let wanted = usize::try_from(head >> 1).unwrap_or(usize::MAX).saturating_mul(8).min(left);
            if there < wanted {
                return Err(Fault::Cut);
            }
            numbers.extend((0..wanted).map(|index| bits_at(packed, index * width as usize, width) as u32));
            bytes = rest;
        }
    }
    Ok(numbers)
}

/// The `width` bits at bit `start` of `bytes`, the low ones first. What lies behind the end is 0.
pub(super) fn bits_at(bytes: &[u8], start: usize, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let first = start / 8;
    let mut window = 0_u128;
    for (index, byte) in bytes[first.min(bytes.len())..].iter().take(9).enumerate() {
        window |= u128::from(*byte) << (8 * index);
    }
    let bits = (window >> (start % 8)) as u64;
    if width == 64 { bits } else { bits & ((1 << width) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_groups_of_eight() {
        // The example of the format's specification: 0 to 7, three bits each.
        assert_eq!(decode(&[3, 0x88, 0xC6, 0xFA], 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
        // A run of five sevens, and then the group, of which three are wanted.
        assert_eq!(decode(&[10, 7, 3, 0x88, 0xC6, 0xFA], 3, 8).unwrap(), [7, 7, 7, 7, 7, 0, 1, 2]);
        assert_eq!(decode(&[10, 7, 3, 0x88, 0xC6], 3, 8).unwrap(), [7, 7, 7, 7, 7, 0, 1, 2], "a group that is cut");
        assert_eq!(decode(&[8], 0, 4).unwrap(), [0; 4]);
        for wrong in [&[][..], &[10], &[10, 9], &[3, 0x88], &[0, 0]] {
            assert!(decode(wrong, 3, 8).is_err(), "{wrong:?}");
        }
        assert!(decode(&[0xFF; 20], 3, 8).is_err());
        assert_eq!([0, 1, 2, 255, 256].map(width_of), [0, 1, 2, 8, 9]);
    }

    #[test]
    fn bits_of_any_width() {
        let bytes: Vec<u8> = (1..=20_u8).map(|number| number.wrapping_mul(37)).collect();
        for width in 1..=64 {
            for start in 0..40 {
                let expected = (0..width as usize).fold(0_u64, |all, index| {
                    let bit = start + index;
                    all | u64::from(bytes[bit / 8] >> (bit % 8) & 1) << index
                });
                assert_eq!(bits_at(&bytes, start, width), expected, "{width} {start}");
            }
        }
    }
}
