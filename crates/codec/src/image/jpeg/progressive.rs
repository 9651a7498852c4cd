//! A JPEG as separate progressive scans: the first few are the full image at a lower quality.
//!
//! libjpeg-turbo writes the same coefficients in another order (its standard script: ten scans of a color image, six of a gray one), so that
//! all scans together give exactly the pixels of the source. Only the parts of the header that affect pixels remain: size, tables, color space and
//! the orientation. Thumbnails, profiles and comments would be read with every image, however few scans are wanted.

use crate::error::{Error, Result};
use crate::image::orientation::Orientation;

use super::header::{self, Walk};
use super::{NAME, SCANS_MAX, quiet, turbo};

/// How many groups of scans an image has: one for each scan of libjpeg's script for color.
pub const SCAN_GROUPS: usize = 10;

/// The end of an image, which no group has: it is added when groups are joined.
pub const END_OF_IMAGE: [u8; 2] = [0xFF, 0xD9];

/// Transcodes a JPEG to progressive scans without loss, one group each; the header is in the first. Where there are fewer scans than groups, the last
/// are empty; where there are more, the last has them.
///
/// The first `n` groups, one after another and then [`END_OF_IMAGE`], are an image for every `n` from 1 on, and all of them have the pixels of `bytes`.
pub fn progressive_scans(bytes: &[u8]) -> Result<[Vec<u8>; SCAN_GROUPS]> {
    let frame = header::read(bytes)?;
    let clean = quiet::prepare(&frame, bytes);
    if clean.absent.is_some() {
        return Err(Error::truncated(NAME, "a component has no scan", bytes.len()));
    }
    let failed = |error: turbo::TurboError| Error::format(NAME, error.to_string());
    let transcoded = turbo::to_progressive(&clean.bytes, SCANS_MAX).map_err(failed)?;
    let ends = scan_ends(&transcoded)?;
    let mut groups: [Vec<u8>; SCAN_GROUPS] = Default::default();
    groups[0].extend_from_slice(&transcoded[..2]);
    groups[0].extend_from_slice(&orientation_segment(frame.header.orientation));
    let mut start = 2;
    for (scan, end) in ends.into_iter().enumerate() {
        groups[scan.min(SCAN_GROUPS - 1)].extend_from_slice(&transcoded[start..end]);
        start = end;
    }
    Ok(groups)
}

/// Where each scan ends.
fn scan_ends(bytes: &[u8]) -> Result<Vec<usize>> {
    let mut walk = Walk::new(bytes, 2);
    let mut ends = Vec::new();
    loop {
        let (marker, _) = walk.marker()?;
        if marker == 0xD9 {
            return Ok(ends);
        }
        walk.payload()?;
        if marker == 0xDA {
            walk.at = data_end(bytes, walk.at);
            ends.push(walk.at);
        }
    }
}

/// Where the data of a scan that begin at `start` end: at the first marker but those for restarts. 0xFF before zero is a byte of them.
fn data_end(bytes: &[u8], start: usize) -> usize {
    let data = &bytes[start..];
    let is_end = |pair: &[u8]| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7 | 0xFF);
    start + data.windows(2).position(is_end).unwrap_or(data.len())
}

/// An EXIF segment with nothing but the orientation; empty if the image is upright.
fn orientation_segment(orientation: Orientation) -> Vec<u8> {
    if orientation == Orientation::Normal {
        return Vec::new();
    }
    let mut segment = vec![0xFF, 0xE1, 0, 34];
    segment.extend_from_slice(b"Exif\0\0MM\0\x2A\0\0\0\x08\0\x01");
    // The tag, its type (a short), one of it, the value, and that no other directory follows.
    segment.extend_from_slice(&[0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation as u8, 0, 0, 0, 0, 0, 0]);
    segment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Channels, DecodeOptions, Decoder, Encoding, encode};
    use crate::tensor::Tensor;

    /// An image of soft shapes and some noise.
    fn file(channels: usize, encoding: &str) -> Vec<u8> {
        let (width, height) = (93, 61);
        let mut pixels = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let noise = (x * 7919 + y * 104_729) % 23;
                pixels.extend((0..channels).map(|channel| ((x * (channel + 1) + y * 2 + noise) % 256) as u8));
            }
        }
        let picture = Tensor::from_elements(&[height, width, channels], &pixels).expect("it fits");
        encode(picture.view(), &encoding.parse::<Encoding>().expect("a name")).expect("a file")
    }

    fn joined(groups: &[Vec<u8>]) -> Vec<u8> {
        let mut file = groups.concat();
        file.extend_from_slice(&END_OF_IMAGE);
        file
    }

    #[test]
    fn every_prefix_is_a_picture_and_the_whole_is_the_source() {
        let as_stored = DecodeOptions { channels: Channels::AsStored, ..DecodeOptions::default() };
        for (channels, scans) in [(1, 6), (3, 10)] {
            let source = file(channels, "jpeg-88");
            let groups = progressive_scans(&source).expect("it can be transcoded");
            assert_eq!(groups.iter().filter(|group| !group.is_empty()).count(), scans);
            let mut decoder = Decoder::new();
            let expected = decoder.decode(&source, &as_stored).expect("the source");
            let distance = |picture: &Tensor| -> u64 {
                let pairs = picture.data().iter().zip(expected.data());
                pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum()
            };
            let mut last = u64::MAX;
            for count in 1..=SCAN_GROUPS {
                // A decode that warns would be an error here.
                let picture = decoder.decode(&joined(&groups[..count]), &as_stored).expect("a prefix");
                assert_eq!(picture.spec(), expected.spec());
                assert!(distance(&picture) <= last.saturating_add(last / 10), "{count} scans of {channels} channels");
                last = distance(&picture);
            }
            assert_eq!(last, 0, "the whole is the source");
        }
    }

    #[test]
    fn an_orientation_stays_and_other_metadata_go() {
        for orientation in Orientation::ALL {
            let mut source = file(3, "jpeg-70");
            let mut segments = vec![0xFF, 0xFE, 0, 6, b'h', b'e', b'r', b'e'];
            segments.extend(orientation_segment(orientation));
            source.splice(2..2, segments);
            let groups = progressive_scans(&source).expect("it can be transcoded");
            let whole = joined(&groups);
            assert_eq!(header::read(&whole).expect("a header").header.orientation, orientation);
            assert!(!whole.windows(4).any(|word| word == b"here"));
            let mut decoder = Decoder::new();
            let options = DecodeOptions::default();
            assert_eq!(
                decoder.decode(&whole, &options).expect("whole"),
                decoder.decode(&source, &options).expect("it")
            );
        }
    }

    #[test]
    fn damage_is_an_error_and_not_repaired() {
        let source = file(3, "jpeg-70");
        for end in [0, 1, 2, 100, 400, source.len() / 2, source.len() - 10] {
            assert!(progressive_scans(&source[..end]).is_err(), "{end} bytes of it");
        }
    }
}
