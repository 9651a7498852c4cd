//! The quality that a JPEG was encoded with, derived from its quantization tables.
//!
//! libjpeg scales two tables of the standard (ITU-T T.81, annex K.1) by a quality of 1 to 100, and no two qualities give the same pair. So of
//! a file that libjpeg (or whoever took over its scale: Pillow, OpenCV, TensorFlow) wrote the quality is known exactly. Cameras and Photoshop have tables
//! of their own; of those the nearest quality is given, and that it is only the nearest.

use crate::error::{Error, Result};

use super::NAME;
use super::header::Walk;

/// The quality of a JPEG on libjpeg's scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JpegQuality {
    /// 1 to 100.
    pub quality: u8,
    /// Whether the tables are those that libjpeg makes for this quality. Where they are not, it is the quality whose tables are nearest.
    pub exact: bool,
}

/// The standard's table for brightness (K.1), in the order of the file: zigzag.
const LUMINANCE: [u16; 64] = [
    16, 11, 12, 14, 12, 10, 16, 14, 13, 14, 18, 17, 16, 19, 24, 40, 26, 24, 22, 22, 24, 49, 35, 37, 29, 40, 58, 51, 61,
    60, 57, 51, 56, 55, 64, 72, 92, 78, 64, 68, 87, 69, 55, 56, 80, 109, 81, 87, 95, 98, 103, 104, 103, 62, 77, 113,
    121, 112, 100, 120, 92, 101, 103, 99,
];

/// The standard's table for color (K.2), in the order of the file.
const CHROMINANCE: [u16; 64] = [
    17, 18, 18, 24, 21, 24, 47, 26, 26, 47, 99, 66, 56, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99,
];

/// The quality of the JPEG in `bytes`.
///
/// ```
/// use forebay_codec::image::{Encoding, encode, jpeg_quality};
/// use forebay_codec::Tensor;
///
/// let gray = Tensor::from_elements(&[8, 8, 1], &[77_u8; 64]).expect("64 samples fit the shape");
/// let file = encode(gray.view(), &"jpeg-83".parse::<Encoding>()?)?;
/// let found = jpeg_quality(&file)?;
/// assert_eq!((found.quality, found.exact), (83, true));
/// # Ok::<(), forebay_codec::Error>(())
/// ```
pub fn jpeg_quality(bytes: &[u8]) -> Result<JpegQuality> {
    let tables = tables_of(bytes)?;
    let distance = |quality: u8| -> u64 {
        let pairs = [&LUMINANCE, &CHROMINANCE].into_iter().zip(&tables);
        pairs.flat_map(|(base, table)| base.iter().zip(table)).map(|(&base, &found)| off_by(base, found, quality)).sum()
    };
    // The higher of two equally near ones: an overestimated image is encoded again, not copied by mistake.
    let best = (1..=100).rev().map(|quality| (distance(quality), quality)).min_by_key(|&(distance, _)| distance);
    let (distance, quality) = best.ok_or_else(|| Error::format(NAME, "there is no quality"))?;
    Ok(JpegQuality { quality, exact: distance == 0 })
}

/// How far an entry is from the one that libjpeg makes of `base`: held to 8 bits, as most do, or not.
fn off_by(base: u16, found: u16, quality: u8) -> u64 {
    let scale = if quality < 50 { 5000 / u32::from(quality) } else { 200 - 2 * u32::from(quality) };
    let wide = ((u32::from(base) * scale + 50) / 100).clamp(1, 32767);
    let found = u32::from(found);
    u64::from(wide.abs_diff(found).min(wide.min(255).abs_diff(found)))
}

/// The tables of the first component and, where there are several, of the second.
fn tables_of(bytes: &[u8]) -> Result<Vec<[u16; 64]>> {
    let mut tables: [Option<[u16; 64]>; 4] = [None; 4];
    let mut selectors: Option<Vec<usize>> = None;
    let mut walk = Walk::new(bytes, 2);
    loop {
        let (marker, start) = walk.marker()?;
        match marker {
            0x01 | 0xD0..=0xD8 => {}
            0xD9 => return Err(Error::truncated(NAME, "it ends before the first scan", start)),
            0xDB => read_tables(walk.payload()?, &mut tables, start)?,
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let payload = walk.payload()?;
                let components = payload.get(6..).unwrap_or_default().as_chunks::<3>().0;
                selectors = Some(components.iter().take(2).map(|component| usize::from(component[2])).collect());
            }
            0xDA => {
                let selectors = selectors.unwrap_or_default();
                let found = selectors.iter().map(|&selector| tables.get(selector).copied().flatten());
                let found: Option<Vec<[u16; 64]>> = found.collect();
                return found
                    .filter(|found| !found.is_empty())
                    .ok_or_else(|| Error::format_at(NAME, "a component has no quantization table", start));
            }
            _ => {
                walk.payload()?;
            }
        }
    }
}

/// Reads a segment of tables, each of 8 or 16 bits an entry.
fn read_tables(mut payload: &[u8], tables: &mut [Option<[u16; 64]>; 4], at: usize) -> Result<()> {
    let damaged = || Error::format_at(NAME, "a segment of quantization tables is damaged", at);
    while let [head, rest @ ..] = payload {
        let (wide, number) = (usize::from(head >> 4), usize::from(head & 15));
        let entry_bytes = if wide == 0 { 1 } else { 2 };
        let entries = rest.get(..64 * entry_bytes).ok_or_else(damaged)?;
        let table = tables.get_mut(number).filter(|_| wide <= 1).ok_or_else(damaged)?;
        let mut found = [0; 64];
        for (to, entry) in found.iter_mut().zip(entries.chunks_exact(entry_bytes)) {
            *to = entry.iter().fold(0, |sum, &byte| sum << 8 | u16::from(byte));
        }
        *table = Some(found);
        payload = &rest[64 * entry_bytes..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Encoding, encode};
    use crate::tensor::Tensor;

    fn file(quality: u8, channels: usize) -> Vec<u8> {
        let pixels: Vec<u8> = (0..24 * 16 * channels).map(|index| (index * 31 % 255) as u8).collect();
        let picture = Tensor::from_elements(&[24, 16, channels], &pixels).expect("it fits");
        encode(picture.view(), &format!("jpeg-{quality}").parse::<Encoding>().expect("a name")).expect("a file")
    }

    #[test]
    fn every_quality_of_libjpeg_is_told() {
        for channels in [1, 3] {
            for quality in 1..=100 {
                let found = jpeg_quality(&file(quality, channels)).expect("it has tables");
                assert!(found.exact, "{quality} of {channels} channels");
                // Gray has one table, and some of the lowest qualities hold all of it to 255.
                assert!(found.quality.abs_diff(quality) <= 1, "{quality} was taken for {}", found.quality);
            }
        }
    }

    #[test]
    fn other_tables_are_said_to_be_others() {
        let mut file = file(80, 3);
        let table = file.windows(2).position(|marker| marker == [0xFF, 0xDB]).expect("a table");
        file[table + 5 + 3] += 2;
        let found = jpeg_quality(&file).expect("it has tables");
        assert!(!found.exact);
        assert!(found.quality.abs_diff(80) <= 1);
    }

    #[test]
    fn damaged_tables_are_an_error() {
        let whole = file(80, 3);
        for end in 0..whole.len().min(300) {
            let _ = jpeg_quality(&whole[..end]);
        }
        assert!(jpeg_quality(&whole[..60]).is_err());
    }
}
