//! Masks: images whose values are classes, not colors.

use png::{BitDepth, ColorType, Transformations};

use crate::error::{Error, Result};
use crate::memory;
use crate::tensor::{DType, Tensor, TensorSpec};

use super::format::Format;
use super::header::Parsed;
use super::options::{DecodeOptions, Limits};
use super::picture::EncodedImage;
use super::png::{explain, open, require_end};

const NAME: &str = Format::Png.name();
const HINT: &str = "keep a mask as a PNG with a palette or one gray channel";

/// Decodes a mask to a tensor `[height, width]` of the classes as they were stored: the indices in the palette of a PNG
/// that has one, or its gray values, unscaled whatever their depth. They are `uint16` where the file has 16 bits for each, else `uint8`.
/// Colors mean no class, so other images are refused.
pub fn decode_labels(picture: &EncodedImage<'_>, limits: &Limits) -> Result<Tensor> {
    let EncodedImage { bytes, parsed: Parsed::Png(header) } = picture else {
        return Err(Error::unsupported(picture.header().format.name(), "as a mask", HINT));
    };
    picture.plan(&DecodeOptions { limits: *limits, ..DecodeOptions::default() })?;
    require_end(bytes)?;
    let mut reader = open(bytes, header, Transformations::IDENTITY)?;
    let (width, height) = (header.width, header.height);
    let (color, depth) = reader.output_color_type();
    let bits = match (color, depth) {
        (ColorType::Grayscale | ColorType::Indexed, BitDepth::One) => 1,
        (ColorType::Grayscale | ColorType::Indexed, BitDepth::Two) => 2,
        (ColorType::Grayscale | ColorType::Indexed, BitDepth::Four) => 4,
        (ColorType::Grayscale | ColorType::Indexed, BitDepth::Eight) => 8,
        (ColorType::Grayscale, BitDepth::Sixteen) => 16,
        _ => {
            let what = format!("{color:?} of {} bits as a mask", depth as u8);
            return Err(Error::unsupported(NAME, what, HINT));
        }
    };
    let row_bytes = (width * bits).div_ceil(8);
    let mut packed = memory::zeroed(row_bytes * height)?;
    reader.next_frame(&mut packed).map_err(|error| explain(error, bytes))?;
    let classes = match bits {
        8 => packed,
        16 => {
            // A PNG has the high byte first.
            packed.as_chunks_mut::<2>().0.iter_mut().for_each(|value| value.reverse());
            packed
        }
        _ => unpack(&packed, row_bytes, width, bits)?,
    };
    let found = classes.len();
    let spec = TensorSpec::new(if bits == 16 { DType::U16 } else { DType::U8 }, &[height, width]);
    Tensor::new(spec, classes).ok_or_else(|| Error::usage("the buffer does not fit", spec.bytes(), found))
}

/// One value per byte, from rows of values of `bits` bits, the first in the highest bits.
fn unpack(packed: &[u8], row_bytes: usize, width: usize, bits: usize) -> Result<Vec<u8>> {
    let per_byte = 8 / bits;
    let mask = (1_u8 << bits) - 1;
    let value = |row: &[u8], x: usize| (row[x / per_byte] >> (8 - bits - x % per_byte * bits)) & mask;
    let mut values = Vec::new();
    memory::reserve(&mut values, packed.len() / row_bytes.max(1) * width)?;
    values.extend(packed.chunks_exact(row_bytes).flat_map(|row| (0..width).map(move |x| value(row, x))));
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PNG of these packed rows.
    fn png(width: u32, height: u32, color: ColorType, depth: BitDepth, rows: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette([[9, 9, 9]; 4].concat());
        }
        encoder.write_header().unwrap().write_image_data(rows).unwrap();
        bytes
    }

    fn decoded(file: &[u8]) -> Result<Tensor> {
        decode_labels(&EncodedImage::open(file)?, &Limits::default())
    }

    #[test]
    fn classes_come_as_they_were_stored() {
        let indexed = png(5, 2, ColorType::Indexed, BitDepth::Two, &[0b0001_1011, 0b1100_0000, 0, 0b0100_0000]);
        let mask = decoded(&indexed).unwrap();
        assert_eq!(*mask.spec(), TensorSpec::new(DType::U8, &[2, 5]));
        assert_eq!(mask.data()[..], [0, 1, 2, 3, 3, 0, 0, 0, 0, 1]);
        let gray = png(3, 1, ColorType::Grayscale, BitDepth::One, &[0b1010_0000]);
        assert_eq!(decoded(&gray).unwrap().data()[..], [1, 0, 1]);
        let eight = png(2, 1, ColorType::Grayscale, BitDepth::Eight, &[7, 255]);
        assert_eq!(decoded(&eight).unwrap().data()[..], [7, 255]);
        let sixteen = png(2, 2, ColorType::Grayscale, BitDepth::Sixteen, &[0, 7, 0x5D, 0xC1, 0xFF, 0xFF, 1, 0]);
        let mask = decoded(&sixteen).unwrap();
        assert_eq!(*mask.spec(), TensorSpec::new(DType::U16, &[2, 2]));
        assert_eq!(mask.view().elements::<u16>().unwrap()[..], [7, 24_001, 65_535, 256]);
    }

    #[test]
    fn colors_are_no_classes() {
        let color = png(1, 1, ColorType::Rgb, BitDepth::Eight, &[1, 2, 3]);
        let error = decoded(&color).unwrap_err().to_string();
        assert!(error.contains("as a mask") && error.contains("palette"), "{error}");
        assert!(decoded(&color[..40]).is_err());
        let with_alpha = png(1, 1, ColorType::GrayscaleAlpha, BitDepth::Sixteen, &[0, 1, 2, 3]);
        assert!(decoded(&with_alpha).unwrap_err().to_string().contains("GrayscaleAlpha of 16 bits as a mask"));
    }
}
