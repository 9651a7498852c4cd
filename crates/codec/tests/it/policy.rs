//! The policy of `docs/formats/images.md`, case by case.

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Depth, EncodedImage, Encoding, Format, Limits, PngEffort, Region, Subsampling,
    decode_labels, encode, headers_read,
};
use forebay_codec::{DType, Error, Result, Tensor, TensorMut, TensorSpec};

use crate::data;
use crate::pictures::{encodings, jpeg, picture, spec_of};

fn decode(file: &[u8], channels: Channels, depth: Depth) -> Tensor {
    Decoder::new().decode(file, &DecodeOptions { channels, depth, ..DecodeOptions::default() }).unwrap()
}

fn png(picture: &Tensor) -> Vec<u8> {
    encode(picture.view(), &Encoding::Png { effort: PngEffort::Fast }).unwrap()
}

#[test]
fn alpha_is_dropped_not_blended() {
    let rgba = Tensor::from_elements(&[1, 2, 4], &[10_u8, 20, 30, 0, 40, 50, 60, 128]).unwrap();
    assert_eq!(&decode(&png(&rgba), Channels::Rgb, Depth::Eight).data()[..], [10, 20, 30, 40, 50, 60]);
    let gray_alpha = Tensor::from_elements(&[1, 2, 2], &[7_u8, 0, 9, 255]).unwrap();
    assert_eq!(&decode(&png(&gray_alpha), Channels::Rgb, Depth::Eight).data()[..], [7, 7, 7, 9, 9, 9]);
    assert_eq!(&decode(&png(&gray_alpha), Channels::Gray, Depth::Eight).data()[..], [7, 9]);
    assert_eq!(decode(&png(&gray_alpha), Channels::AsStored, Depth::Eight).data(), gray_alpha.data());
}

#[test]
fn gray_is_luma_and_white_stays_white() {
    let colors = Tensor::from_elements(&[1, 4, 3], &[255_u8, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255]).unwrap();
    assert_eq!(&decode(&png(&colors), Channels::Gray, Depth::Eight).data()[..], [76, 150, 29, 255]);
    let deep = Tensor::from_elements(&[1, 1, 3], &[65535_u16; 3]).unwrap();
    assert_eq!(&decode(&png(&deep), Channels::Gray, Depth::AsStored).data()[..], 65535_u16.to_ne_bytes());
}

#[test]
fn of_sixteen_bits_the_high_byte_is_kept() {
    let deep = Tensor::from_elements(&[1, 3, 1], &[0x00FF_u16, 0x1280, 0xFFFF]).unwrap();
    for name in ["png", "pnm", "l3-fast", "l3-dense", "l3-classic"] {
        let file = encode(deep.view(), &name.parse().unwrap()).unwrap();
        let shallow = decode(&file, Channels::AsStored, Depth::Eight);
        assert_eq!((shallow.spec().dtype, &shallow.data()[..]), (DType::U8, &[0x00, 0x12, 0xFF][..]));
        assert_eq!(decode(&file, Channels::AsStored, Depth::AsStored), deep);
    }
}

#[test]
fn limits_hold_before_anything_is_allocated() {
    let file = png(&picture(30, 20, 3, false, 1));
    let limits =
        |max_pixels, max_bytes| DecodeOptions { limits: Limits { max_pixels, max_bytes }, ..DecodeOptions::default() };
    let mut decoder = Decoder::new();
    assert!(decoder.decode(&file, &limits(600, 1800)).is_ok());
    for options in [limits(599, 1800), limits(600, 1799)] {
        assert!(matches!(spec_of(&file, &options), Err(Error::Limit { .. })));
        assert!(matches!(decoder.decode(&file, &options), Err(Error::Limit { .. })));
    }
    // A progressive JPEG keeps all coefficients: 2 bytes each, three full planes here, beside the output.
    let progressive = encode(picture(32, 32, 3, false, 1).view(), &jpeg(90, Subsampling::None, true)).unwrap();
    assert!(decoder.decode(&progressive, &limits(1024, 1024 * 9)).is_ok());
    assert!(matches!(decoder.decode(&progressive, &limits(1024, 1024 * 9 - 1)), Err(Error::Limit { .. })));
}

#[test]
fn a_jpeg_of_too_many_scans_is_refused() {
    // The last scan of a progressive JPEG, repeated: each pass refines nothing, but costs a walk over the picture.
    let file = encode(picture(64, 64, 3, false, 2).view(), &jpeg(50, Subsampling::None, true)).unwrap();
    let scans: Vec<usize> =
        file.windows(2).enumerate().filter(|(_, pair)| *pair == [0xFF, 0xDA]).map(|(at, _)| at).collect();
    let last = &file[scans[scans.len() - 1]..file.len() - 2];
    let mut hostile = file[..file.len() - 2].to_vec();
    for _ in 0..2000 {
        hostile.extend_from_slice(last);
    }
    hostile.extend([0xFF, 0xD9]);
    let mut decoder = Decoder::new();
    for allow_truncated in [false, true] {
        let options = DecodeOptions { allow_truncated, ..DecodeOptions::default() };
        let error = decoder.decode(&hostile, &options).unwrap_err();
        // Where damage is not accepted, the first repeated scan is already one.
        assert_eq!(matches!(error, Error::Limit { .. }), allow_truncated, "{error}");
    }
    assert!(decoder.decode(&file, &DecodeOptions::default()).is_ok());
}

#[test]
fn wrong_requests_are_usage_errors() {
    let file = png(&picture(8, 4, 3, false, 1));
    let opened = EncodedImage::open(&file).unwrap();
    for region in [(0, 0, 9, 4), (8, 0, 1, 1), (0, 0, 0, 1), (usize::MAX, 0, 2, 1)] {
        let region = Some(Region { x: region.0, y: region.1, width: region.2, height: region.3 });
        let options = DecodeOptions { region, ..DecodeOptions::default() };
        assert!(matches!(opened.plan(&options), Err(Error::Usage { .. })));
    }
    let spec = TensorSpec::new(DType::U8, &[8, 4, 3]);
    let output = TensorMut { spec, data: &mut [0; 96] };
    let error = Decoder::new().decode_into(&opened.plan(&DecodeOptions::default()).unwrap(), output).unwrap_err();
    assert!(error.to_string().contains("expected `uint8[4, 8, 3]`"), "{error}");
    let rgba = picture(4, 4, 4, false, 1);
    assert!(matches!(encode(rgba.view(), &jpeg(90, Subsampling::Both, false)), Err(Error::Usage { .. })));
    let deep = picture(4, 4, 3, true, 1);
    assert!(matches!(encode(deep.view(), &Encoding::Qoi), Err(Error::Usage { .. })));
}

#[test]
fn a_decoder_survives_a_bad_file() {
    let good = encode(picture(40, 30, 3, false, 1).view(), &jpeg(90, Subsampling::Both, false)).unwrap();
    let mut decoder = Decoder::new();
    let expected = decoder.decode(&good, &DecodeOptions::default()).unwrap();
    for length in [3, 20, 200, good.len() - 3] {
        assert!(decoder.decode(&good[..length], &DecodeOptions::default()).is_err());
        assert_eq!(decoder.decode(&good, &DecodeOptions::default()).unwrap(), expected);
    }
}

#[test]
fn bytes_between_the_segments_of_a_jpeg_are_skipped() {
    let good = encode(picture(40, 30, 3, false, 1).view(), &jpeg(90, Subsampling::Both, false)).unwrap();
    let mut decoder = Decoder::new();
    let expected = decoder.decode(&good, &DecodeOptions::default()).unwrap();
    let mut stray = good[..2].to_vec();
    let first = 2 + 2 + usize::from(u16::from_be_bytes([good[4], good[5]]));
    stray.extend_from_slice(&good[2..first]);
    stray.extend_from_slice(b"stray\0bytes");
    stray.extend_from_slice(&good[first..]);
    assert_eq!(decoder.decode(&stray, &DecodeOptions::default()).unwrap(), expected);
    // And they do not hide that the image is cut off.
    let error = decoder.decode(&stray[..stray.len() - 40], &DecodeOptions::default()).unwrap_err();
    assert!(error.is_truncated(), "{error}");
}

/// A PNG of one row of two colors of a palette, of which there are so many bytes; the pixels as they are given.
fn indexed_png(palette_bytes: usize, pixels: &[u8]) -> Vec<u8> {
    let chunk = |kind: &[u8], content: &[u8]| {
        let mut checksum = flate2::Crc::new();
        for part in [kind, content] {
            checksum.update(part);
        }
        [&(content.len() as u32).to_be_bytes(), kind, content, &checksum.sum().to_be_bytes()].concat()
    };
    let header = chunk(b"IHDR", &[0, 0, 0, 2, 0, 0, 0, 1, 4, 3, 0, 0, 0]);
    let palette = chunk(b"PLTE", &vec![9; palette_bytes]);
    [b"\x89PNG\r\n\x1a\n", &*header, &palette, &chunk(b"IDAT", pixels), &chunk(b"IEND", b"")].concat()
}

fn deflated(rows: &[u8]) -> Vec<u8> {
    let mut stream = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut stream, rows).unwrap();
    stream.finish().unwrap()
}

fn labels(file: &[u8]) -> Result<Tensor> {
    decode_labels(&EncodedImage::open(file)?, &Limits::default())
}

/// Found by fuzzing: the library panicked.
#[test]
fn a_palette_that_ends_within_a_color_is_refused() {
    for (bytes, valid) in [(6, true), (768, true), (0, false), (1, false), (5, false), (7, false), (771, false)] {
        let file = indexed_png(bytes, &deflated(&[0, 0x10]));
        for allow_truncated in [false, true] {
            let options = DecodeOptions { allow_truncated, ..DecodeOptions::default() };
            let decoded = Decoder::new().decode(&file, &options);
            assert_eq!(decoded.is_ok(), valid, "{bytes} bytes: {decoded:?}");
        }
        assert_eq!(labels(&file).is_ok(), valid, "{bytes} bytes, as a mask");
    }
}

/// Found beside libpng: the chunks' checksums are right, that of the pixels is wrong.
#[test]
fn pixels_of_a_png_with_a_wrong_checksum_are_refused() {
    let mut pixels = deflated(&[0, 0x10]);
    let file = indexed_png(6, &pixels);
    assert!(Decoder::new().decode(&file, &DecodeOptions::default()).is_ok());
    *pixels.last_mut().unwrap() ^= 1;
    let file = indexed_png(6, &pixels);
    for channels in [Channels::Rgb, Channels::AsStored] {
        let options = DecodeOptions { channels, ..DecodeOptions::default() };
        let error = Decoder::new().decode(&file, &options).unwrap_err();
        assert!(matches!(error, Error::Format { .. }), "{error}");
    }
    assert!(labels(&file).is_err());
}

#[test]
fn a_header_is_read_once_whatever_is_asked_of_it() {
    for encoding in encodings() {
        let file = encode(picture(20, 12, 3, false, 1).view(), &encoding).unwrap();
        let before = headers_read();
        let opened = EncodedImage::open(&file).unwrap();
        let whole = opened.plan(&DecodeOptions::default()).unwrap();
        let region = Some(Region { x: 3, y: 2, width: 7, height: 8 });
        let part = opened.plan(&DecodeOptions { region, ..DecodeOptions::default() }).unwrap();
        assert!(whole.working_bytes() < 1 << 20 && part.working_bytes() < 1 << 20);
        assert_eq!((opened.header().width, part.spec().shape.dims()), (20, &[8, 7, 3][..]));
        let mut decoder = Decoder::new();
        let (tensor, _) = decoder.decode_reporting(&whole).unwrap();
        let mut data = vec![1; part.spec().bytes()];
        decoder.decode_into(&part, TensorMut { spec: part.spec(), data: &mut data }).unwrap();
        assert_eq!(data[..7 * 3], tensor.data()[(2 * 20 + 3) * 3..][..7 * 3], "{encoding}");
        assert_eq!(headers_read() - before, 1, "{encoding}");
    }
}

#[test]
fn content_decides_the_format() {
    let Some(folder) = data::folder("malformed/wild-wrong-extension") else { return };
    let mut decoder = Decoder::new();
    let mut counts = [0; 2];
    for path in data::files(&folder) {
        // All are called `.jpg`.
        let bytes = std::fs::read(&path).unwrap();
        match decoder.decode(&bytes, &DecodeOptions::default()) {
            Ok(_) => {
                assert_eq!(Format::detect(&bytes), Some(Format::Png), "{}", path.display());
                counts[0] += 1;
            }
            Err(error) => {
                assert!(error.to_string().starts_with("gif: GIF is not supported\nhint: "), "{error}");
                counts[1] += 1;
            }
        }
    }
    assert_eq!(counts, [3, 5]);
}
