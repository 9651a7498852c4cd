//! The scan's data without the bytes that JPEG stuffs into it.
//!
//! A byte 0xFF in the data is followed by a zero, to distinguish it from markers. Removing the zeros first, which runs
//! at the speed of a copy, leaves the entropy decoder bytes that it can load eight at a time without looking.

use crate::error::{Error, Result, grow};

/// The most bytes that a block can take: 64 symbols of at most 31 bits each.
pub(crate) const BLOCK_BYTES_MAX: usize = 64 * 31 / 8;
/// Bytes after the end that the entropy decoder may read before it notices the end.
pub(crate) const PADDING: usize = 512;

/// The data; its buffer is reused from image to image.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    bytes: Vec<u8>,
    /// Where each interval between restart markers ends.
    ends: Vec<usize>,
}

impl Scan {
    /// Takes the data of the scan that begins at `data_at` of the file. `intervals` is how many there must be.
    pub(crate) fn load(&mut self, file: &[u8], data_at: usize, intervals: usize) -> Result<()> {
        self.ends.clear();
        let data = &file[data_at..];
        grow(&mut self.bytes, data.len() + PADDING)?;
        let (mut from, mut to) = (0, 0);
        loop {
            let length = copy_until_ff(&data[from..], &mut self.bytes[to..]);
            from += length;
            to += length;
            match data.get(from..) {
                Some([0xFF, 0, ..]) => {
                    self.bytes[to] = 0xFF;
                    from += 2;
                    to += 1;
                }
                Some([0xFF, marker @ 0xD0..=0xD7, ..]) => {
                    self.ends.push(to);
                    if self.ends.len() >= intervals || usize::from(marker - 0xD0) != (self.ends.len() - 1) % 8 {
                        return Err(Error::format("a restart marker out of turn", data_at + from));
                    }
                    from += 2;
                }
                Some([0xFF, 0xD9, ..]) => {
                    self.ends.push(to);
                    break;
                }
                Some([0xFF, _, ..]) => return Err(Error::format("a marker within the data", data_at + from)),
                _ => return Err(Error::format("the end of image is missing", file.len())),
            }
        }
        if self.ends.len() != intervals {
            return Err(Error::format("restart markers are missing", data_at + from));
        }
        self.bytes[to..to + PADDING].fill(0);
        Ok(())
    }

    /// The data with [`PADDING`] zeros after the end.
    pub(crate) fn bytes(&self) -> &[u8] {
        let end = self.ends.last().map_or(0, |&end| end + PADDING);
        &self.bytes[..end]
    }

    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }
}

/// Copies up to the first 0xFF, and returns how many bytes that were. `to` may be overwritten beyond, for as many bytes as
/// `from` has.
fn copy_until_ff(from: &[u8], to: &mut [u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let mut copied = 0;
    for (source, target) in from.as_chunks::<32>().0.iter().zip(to.as_chunks_mut::<32>().0) {
        *target = *source;
        let words: [u64; 4] = std::array::from_fn(|index| {
            let bytes = source[index * 8..].first_chunk().copied().unwrap_or_default();
            // The top bit of each byte that is 0xFF, and maybe of bytes above it, where the subtraction borrows.
            let word = u64::from_le_bytes(bytes);
            (!word).wrapping_sub(ONES) & word & TOPS
        });
        if words[0] | words[1] | words[2] | words[3] != 0 {
            let word = words.iter().position(|&word| word != 0).unwrap_or(0);
            return copied + word * 8 + words[word].trailing_zeros() as usize / 8;
        }
        copied += 32;
    }
    for (source, target) in from[copied..].iter().zip(&mut to[copied..]) {
        if *source == 0xFF {
            break;
        }
        *target = *source;
        copied += 1;
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stop_at_the_first_ff_wherever_it_is() {
        for length in 0..100 {
            for at in 0..=length {
                let mut from: Vec<u8> = (0..length as u8).map(|byte| byte.wrapping_mul(29) & 0x7F | 0x80).collect();
                from.iter_mut().filter(|byte| **byte == 0xFF).for_each(|byte| *byte = 0xFE);
                if at < length {
                    from[at..].fill(0xFF);
                }
                let mut to = vec![0; length];
                assert_eq!(copy_until_ff(&from, &mut to), at);
                assert_eq!(to[..at], from[..at]);
            }
        }
    }

    #[test]
    fn stuffing_goes_and_intervals_are_told_apart() {
        let mut scan = Scan::default();
        scan.load(&[9, 1, 0xFF, 0, 2, 0xFF, 0xD0, 3, 0xFF, 0xD1, 0xFF, 0xD9, 7], 1, 3).unwrap();
        assert_eq!(scan.ends(), [3, 4, 4]);
        assert_eq!(scan.bytes()[..5], [1, 0xFF, 2, 3, 0]);
        assert_eq!(scan.bytes().len(), 4 + PADDING);
        for (bytes, intervals) in [
            (&[1, 0xFF, 0xD1, 2, 0xFF, 0xD9][..], 2),
            (&[1, 0xFF, 0xD0, 2, 0xFF, 0xD9], 1),
            (&[1, 0xFF, 0xD9], 2),
            (&[1, 0xFF, 0xFF, 0xD9], 1),
            (&[1, 0xFF, 0xDA, 0xFF, 0xD9], 1),
            (&[1, 2, 0xFF], 1),
            (&[], 1),
        ] {
            assert!(scan.load(bytes, 0, intervals).is_err(), "{bytes:?}");
        }
    }
}
