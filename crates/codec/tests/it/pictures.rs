//! Generated images, and files made of them.

use forebay_codec::image::{
    DecodeOptions, Decoded, Decoder, EncodedImage, Encoding, Format, L3Mode, Orientation, PngEffort, Subsampling,
    encode,
};
use forebay_codec::{DType, Result, Tensor, TensorSpec};

/// What a decode of `file` would give.
pub(crate) fn spec_of(file: &[u8], options: &DecodeOptions) -> Result<TensorSpec> {
    Ok(EncodedImage::open(file)?.plan(options)?.spec())
}

/// Decodes `file` and says what became of it.
pub(crate) fn decode_reporting(
    decoder: &mut Decoder,
    file: &[u8],
    options: &DecodeOptions,
) -> Result<(Tensor, Decoded)> {
    decoder.decode_reporting(&EncodedImage::open(file)?.plan(options)?)
}

/// An image of smooth color with some noise, the same for the same seed.
pub(crate) fn picture(width: usize, height: usize, channels: usize, deep: bool, seed: u32) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut data = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..channels {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let smooth = (x * (channel + 2) * 5 + y * (7 - channel) * 3) as u32 * 97;
                let value = (smooth + (state >> 24) * 31).wrapping_add(seed) as u16;
                if deep {
                    data.extend(value.to_ne_bytes());
                } else {
                    data.push((value >> 5) as u8);
                }
            }
        }
    }
    let dtype = if deep { DType::U16 } else { DType::U8 };
    Tensor::new(TensorSpec::new(dtype, &[height, width, channels]), data).unwrap()
}

pub(crate) fn jpeg(quality: u8, subsampling: Subsampling, progressive: bool) -> Encoding {
    Encoding::Jpeg { quality, subsampling, progressive }
}

/// Every encoding, the lossless ones first.
pub(crate) fn encodings() -> Vec<Encoding> {
    let mut all = vec![
        Encoding::Png { effort: PngEffort::Fast },
        Encoding::WebPLossless { effort: 1 },
        Encoding::Bmp,
        Encoding::Pnm,
        Encoding::Qoi,
        Encoding::L3 { mode: L3Mode::Fast, strip_rows: None },
        Encoding::L3 { mode: L3Mode::Dense, strip_rows: None },
        Encoding::L3 { mode: L3Mode::Classic, strip_rows: None },
        Encoding::WebP { quality: 80.0 },
    ];
    for subsampling in [Subsampling::None, Subsampling::Horizontal, Subsampling::Both, Subsampling::Vertical] {
        all.extend([false, true].map(|progressive| jpeg(90, subsampling, progressive)));
    }
    all
}

/// Whether files of this encoding can say how they must be turned.
pub(crate) fn has_orientation(encoding: &Encoding) -> bool {
    matches!(encoding.format(), Format::Jpeg | Format::Png | Format::WebP)
}

/// The file with an EXIF orientation put in; JPEG, PNG and WebP.
pub(crate) fn with_orientation(file: &[u8], width: usize, height: usize, orientation: Orientation) -> Vec<u8> {
    let mut tiff = b"MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    tiff.extend([orientation as u8, 0, 0, 0, 0, 0, 0]);
    match file {
        [0xFF, 0xD8, ..] => {
            let mut out = file[..2].to_vec();
            out.extend([0xFF, 0xE1]);
            out.extend((tiff.len() as u16 + 8).to_be_bytes());
            out.extend(b"Exif\0\0");
            out.extend(&tiff);
            out.extend(&file[2..]);
            out
        }
        [0x89, ..] => {
            let mut out = file[..33].to_vec();
            out.extend((tiff.len() as u32).to_be_bytes());
            let mut chunk = b"eXIf".to_vec();
            chunk.extend(&tiff);
            out.extend(&chunk);
            out.extend(crc32(&chunk).to_be_bytes());
            out.extend(&file[33..]);
            out
        }
        _ => {
            let mut body = b"WEBPVP8X\x0A\0\0\0\x08\0\0\0".to_vec();
            body.extend(&(width as u32 - 1).to_le_bytes()[..3]);
            body.extend(&(height as u32 - 1).to_le_bytes()[..3]);
            body.extend(&file[12..]);
            body.extend(b"EXIF");
            body.extend((tiff.len() as u32).to_le_bytes());
            body.extend(&tiff);
            let mut out = b"RIFF".to_vec();
            out.extend((body.len() as u32).to_le_bytes());
            out.extend(body);
            out
        }
    }
}

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |mut crc, &byte| {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
        crc
    })
}

/// A small file of each format, with its encoding.
pub(crate) fn small_files() -> Vec<(Encoding, Vec<u8>)> {
    let still = picture(20, 13, 3, false, 5);
    encodings().into_iter().map(|encoding| (encoding, encode(still.view(), &encoding).unwrap())).collect()
}
