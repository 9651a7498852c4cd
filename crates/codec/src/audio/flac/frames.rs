//! Where the frames of a FLAC begin and end, and what their headers say (RFC 9639, section 9).
//!
//! A frame does not say how long it is. It ends where its checksum is right and another frame's header follows, or nothing.
//! Frames are cut here rather than by Symphonia, which takes the stream information's word for what a frame may be: it
//! loses frames of streams that number them by samples without saying so, and hides frames that differ from the first.

use symphonia_core::checksum::{Crc8Ccitt, Crc16Ansi};
use symphonia_core::io::Monitor;

/// What the header of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    /// Samples of each channel.
    pub(super) samples: u64,
    /// Samples per second, unless the stream information has it.
    pub(super) rate_hz: Option<u32>,
    pub(super) channels: usize,
    /// Whether one of two channels is the difference of both.
    pub(super) difference: bool,
    /// Bits per sample, unless the stream information has it.
    pub(super) bits: Option<u32>,
    /// The number of the frame, or of its first sample.
    pub(super) number: u64,
    pub(super) numbered_by_samples: bool,
    /// The header's own length.
    bytes: usize,
}

/// Takes numbers from the front of a header.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.bytes.get(self.at..self.at + bytes)?;
        self.at += bytes;
        Some(taken.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// A number of up to 36 bits in the manner of UTF-8.
    fn coded_number(&mut self) -> Option<u64> {
        let first = self.take(1)? as u8;
        let ones = first.leading_ones();
        if ones == 0 {
            return Some(u64::from(first));
        }
        if !(2..=7).contains(&ones) {
            return None;
        }
        let top = u64::from(first & (0x7f >> ones));
        (1..ones).try_fold(top, |number, _| {
            let byte = self.take(1)?;
            (byte >> 6 == 0b10).then_some(number << 6 | byte & 0x3f)
        })
    }
}

/// The header of the frame that `bytes` begin with, if they do.
pub(super) fn read_header(bytes: &[u8]) -> Option<FrameHeader> {
    let &[0xff, sync @ (0xf8 | 0xf9), sizes, layout, ..] = bytes else { return None };
    let mut fields = Fields { bytes, at: 4 };
    let number = fields.coded_number()?;
    let samples = match sizes >> 4 {
        0 => return None,
        1 => 192,
        code @ 2..=5 => 576 << (code - 2),
        6 => fields.take(1)? + 1,
        7 => fields.take(2)? + 1,
        code => 256 << (code - 8),
    };
    let rate_hz = match sizes & 15 {
        0 => None,
        12 => Some(fields.take(1)? as u32 * 1000),
        13 => Some(fields.take(2)? as u32),
        14 => Some(fields.take(2)? as u32 * 10),
        15 => return None,
        code => Some(RATES_HZ[usize::from(code) - 1]),
    };
    let (channels, difference) = match layout >> 4 {
        code @ 0..=7 => (usize::from(code) + 1, false),
        8..=10 => (2, true),
        _ => return None,
    };
    let bits = match layout >> 1 & 7 {
        0 => None,
        3 => return None,
        code => Some([8, 12, 0, 16, 20, 24, 32][usize::from(code) - 1]),
    };
    let covered = fields.at;
    let mut checksum = Crc8Ccitt::new(0);
    checksum.process_buf_bytes(&bytes[..covered]);
    let valid = layout & 1 == 0 && fields.take(1)? == u64::from(checksum.crc());
    let numbered_by_samples = sync == 0xf9;
    let bytes = fields.at;
    valid.then_some(FrameHeader { samples, rate_hz, channels, difference, bits, number, numbered_by_samples, bytes })
}

const RATES_HZ: [u32; 11] = [88_200, 176_400, 192_000, 8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000];

/// How long the frame is that `bytes` begin with, whose header is `header`; `None` if it has no end, because it is damaged or
/// cut off.
pub(super) fn length(bytes: &[u8], header: &FrameHeader) -> Option<usize> {
    let mut checksum = Crc16Ansi::new(0);
    let mut offset = 0;
    let mut end = header.bytes + CHECKSUM_BYTES;
    loop {
        end += next_header(bytes.get(end..)?);
        // Over a frame with its own checksum, the checksum is zero.
        checksum.process_buf_bytes(&bytes[offset..end]);
        if checksum.crc() == 0 {
            return Some(end);
        }
        if end == bytes.len() {
            return None;
        }
        offset = end;
        end += 1;
    }
}

const CHECKSUM_BYTES: usize = 2;

/// Where in `bytes` the next header of a frame is, or the end.
pub(super) fn next_header(bytes: &[u8]) -> usize {
    let mut offset = 0;
    while let Some(step) = bytes[offset..].iter().position(|&byte| byte == 0xff) {
        offset += step;
        if read_header(&bytes[offset..]).is_some() {
            return offset;
        }
        offset += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with its checksum.
    fn sealed(bytes: &[u8]) -> Vec<u8> {
        let mut checksum = Crc8Ccitt::new(0);
        checksum.process_buf_bytes(bytes);
        [bytes, &[checksum.crc()]].concat()
    }

    #[test]
    fn block_sizes_and_numbers_of_every_length_are_read() {
        let header = |bytes: &[u8]| read_header(&sealed(bytes));
        let plain = header(&[0xff, 0xf8, 0x70, 0x18, 5, 0x01, 0x02]).unwrap();
        assert_eq!((plain.samples, plain.channels, plain.bits, plain.number), (0x103, 2, Some(16), 5));
        assert_eq!((plain.rate_hz, plain.numbered_by_samples, plain.difference), (None, false, false));
        let odd = header(&[0xff, 0xf9, 0x6c, 0xa0, 0xe0, 0xa4, 0xb9, 0x1e, 44]).unwrap();
        assert_eq!((odd.samples, odd.number, odd.rate_hz), (31, 2361, Some(44_000)));
        assert_eq!((odd.numbered_by_samples, odd.difference, odd.channels), (true, true, 2));
        // 65,536 samples, which is one more than the stream information can say.
        assert_eq!(header(&[0xff, 0xf8, 0x70, 0x08, 0, 0xff, 0xff]).unwrap().samples, 65_536);
        let widest = header(&[0xff, 0xf9, 0x19, 0x08, 0xfe, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf, 0xbf]).unwrap();
        assert_eq!((widest.number, widest.samples, widest.rate_hz), ((1 << 36) - 1, 192, Some(44_100)));
    }

    #[test]
    fn what_is_no_header_is_none() {
        for bytes in [
            &[0xff, 0xf8, 0x09, 0x08, 0][..],   // a reserved block size
            &[0xff, 0xf8, 0x1f, 0x08, 0],       // a forbidden rate
            &[0xff, 0xf8, 0x19, 0xb8, 0],       // a reserved assignment of channels
            &[0xff, 0xf8, 0x19, 0x06, 0],       // a reserved depth
            &[0xff, 0xf8, 0x19, 0x09, 0],       // a reserved bit
            &[0xff, 0xf8, 0x19, 0x08, 0x80],    // a number that begins with its middle
            &[0xff, 0xf8, 0x19, 0x08, 0xff],    // a number of 8 bytes
            &[0xff, 0xf8, 0x19, 0x08, 0xc2, 2], // a number that is cut off
            &[0xff, 0xfa, 0x19, 0x08, 0],       // another sync code
        ] {
            assert_eq!(read_header(&sealed(bytes)), None, "{bytes:?}");
        }
        assert_eq!(read_header(&[0xff, 0xf8, 0x19, 0x08, 0, 0]), None, "a wrong checksum");
    }
}
