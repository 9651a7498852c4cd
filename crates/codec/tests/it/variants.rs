//! Files of kinds that the encoder does not write: bitmaps of every depth, ASCII PNM, arithmetic-coded and CMYK JPEG,
//! palettes, animations.

use turbojpeg_sys as sys;

use forebay_codec::Error;
use forebay_codec::image::{DecodeOptions, Decoder, EncodedImage, Encoding, Format, Subsampling, encode};

use crate::pictures::{jpeg, picture};

/// A bitmap of `width` × `height` with pixels that fill `bits` each, from a counter.
fn bitmap(width: i32, height: i32, bits: u16, masks: &[u32], os2: bool) -> Vec<u8> {
    let palette: usize = if bits <= 8 { 1 << bits } else { 0 };
    let header: u32 = if os2 { 12 } else { 40 };
    let entry = if os2 { 3 } else { 4 };
    let pixels_at = 14 + header + masks.len() as u32 * 4 + (palette * entry) as u32;
    let mut out = b"BM\0\0\0\0\0\0\0\0".to_vec();
    out.extend(pixels_at.to_le_bytes());
    out.extend(header.to_le_bytes());
    if os2 {
        out.extend((width as u16).to_le_bytes());
        out.extend((height as u16).to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(bits.to_le_bytes());
    } else {
        out.extend(width.to_le_bytes());
        out.extend(height.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(bits.to_le_bytes());
        out.extend(if masks.is_empty() { 0_u32 } else { 3 }.to_le_bytes());
        out.extend([0; 20]);
    }
    out.extend(masks.iter().flat_map(|mask| mask.to_le_bytes()));
    for index in 0..palette {
        out.extend(&[(index * 7 + 1) as u8, (index * 31) as u8, (255 - index) as u8, 0][..entry]);
    }
    let row_bytes = (width as usize * usize::from(bits)).div_ceil(32) * 4;
    let mut state = 1_u32;
    for _ in 0..row_bytes * height.unsigned_abs() as usize {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        out.push((state >> 24) as u8);
    }
    out
}

/// Named files that Pillow decodes too.
pub(crate) fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("1.bmp", bitmap(37, 5, 1, &[], false)),
        ("4.bmp", bitmap(37, 5, 4, &[], false)),
        ("8.bmp", bitmap(37, 5, 8, &[], false)),
        ("8-os2.bmp", bitmap(37, 5, 8, &[], true)),
        ("16.bmp", bitmap(37, 5, 16, &[], false)),
        ("16-565.bmp", bitmap(37, 5, 16, &[0xF800, 0x07E0, 0x001F], false)),
        ("24.bmp", bitmap(37, 5, 24, &[], false)),
        ("24-os2.bmp", bitmap(37, 5, 24, &[], true)),
        ("24-top-down.bmp", bitmap(37, -5, 24, &[], false)),
        ("32.bmp", bitmap(37, 5, 32, &[], false)),
        ("32-masks.bmp", bitmap(37, 5, 32, &[0xFF00_0000, 0x00FF_0000, 0x0000_FF00], false)),
        ("1.pbm", b"P1 # a comment\n5 2\n10110\n0 1 0 1 1\n".to_vec()),
        ("2.pgm", b"P2\n# a comment\n3 1 15\n0 7 15\n".to_vec()),
        ("3.ppm", b"P3 2 1 255 1 2 3 250 251 252".to_vec()),
        ("4.pbm", b"P4 10 2 \xA5\x40\xFF\x00".to_vec()),
        ("5.pgm", b"P5 3 1 100 \x00\x32\x64".to_vec()),
        ("5-deep.pgm", b"P5 3 1 1000 \x00\x00\x01\xF4\x03\xE8".to_vec()),
        ("6.ppm", b"P6 1 2\n255\nabcdef".to_vec()),
        ("arithmetic.jpg", special(sys::TJPARAM_TJPARAM_ARITHMETIC, 1, 3)),
        ("cmyk.jpg", special(sys::TJPARAM_TJPARAM_COLORSPACE, sys::TJCS_TJCS_CMYK, 4)),
        ("ycck.jpg", special(sys::TJPARAM_TJPARAM_COLORSPACE, sys::TJCS_TJCS_YCCK, 4)),
    ]
}

/// A JPEG made with one parameter of the library set, which this crate's encoder does not offer.
fn special(parameter: sys::TJPARAM, value: u32, channels: usize) -> Vec<u8> {
    let original = picture(37, 23, channels, false, 8);
    let format = if channels == 4 { sys::TJPF_TJPF_CMYK } else { sys::TJPF_TJPF_RGB };
    let (mut buffer, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the handle is checked; the pixels are 23 rows of 37 pixels of `channels` bytes, as the format says; the
    // library allocates the output, which is copied and then freed.
    unsafe {
        let handle = sys::tj3Init(sys::TJINIT_TJINIT_COMPRESS as i32);
        assert!(!handle.is_null());
        sys::tj3Set(handle, sys::TJPARAM_TJPARAM_QUALITY as i32, 90);
        sys::tj3Set(handle, sys::TJPARAM_TJPARAM_SUBSAMP as i32, sys::TJSAMP_TJSAMP_420);
        assert_eq!(sys::tj3Set(handle, parameter as i32, value as i32), 0);
        let status =
            sys::tj3Compress8(handle, original.data().as_ptr(), 37, 0, 23, format, &raw mut buffer, &raw mut size);
        assert_eq!(status, 0);
        let file = std::slice::from_raw_parts(buffer, size as usize).to_vec();
        sys::tj3Free(buffer.cast());
        sys::tj3Destroy(handle);
        file
    }
}

#[test]
fn arithmetic_coding_gives_the_same_pixels_as_huffman_coding() {
    let mut decoder = Decoder::new();
    let huffman = encode(picture(37, 23, 3, false, 8).view(), &jpeg(90, Subsampling::Both, false)).unwrap();
    let arithmetic = special(sys::TJPARAM_TJPARAM_ARITHMETIC, 1, 3);
    assert!(arithmetic.windows(2).any(|pair| pair == [0xFF, 0xC9]));
    let options = DecodeOptions::default();
    assert_eq!(decoder.decode(&arithmetic, &options).unwrap(), decoder.decode(&huffman, &options).unwrap());
}

#[test]
fn kinds_of_jpeg_that_are_not_decoded_say_so() {
    let good = encode(picture(8, 8, 3, false, 8).view(), &jpeg(90, Subsampling::None, false)).unwrap();
    let frame = good.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    for (offset, value, feature) in
        [(1, 0xC3, "lossless coding"), (1, 0xC5, "hierarchical coding"), (4, 12, "a sample depth of `12` bit")]
    {
        let mut file = good.clone();
        file[frame + offset] = value;
        let error = EncodedImage::open(&file).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }));
        assert!(error.to_string().contains(feature), "{error}");
    }
}

#[test]
fn of_an_animated_webp_the_first_frame_is_decoded() {
    // Two frames of 8 × 6, at (2, 4) on a canvas of 12 × 10, each a lossless WebP's own chunk.
    let frames = [1, 2].map(|seed| picture(8, 6, 3, false, seed));
    let mut body = b"WEBPVP8X\x0A\0\0\0\x12\0\0\0\x0B\0\0\x09\0\0".to_vec();
    body.extend(b"ANIM\x06\0\0\0\0\0\0\0\0\0");
    for frame in &frames {
        let still = encode(frame.view(), &Encoding::WebPLossless { effort: 0 }).unwrap();
        let chunk = &still[12..];
        body.extend(b"ANMF");
        body.extend((chunk.len() as u32 + 16).to_le_bytes());
        body.extend([1, 0, 0, 2, 0, 0, 7, 0, 0, 5, 0, 0, 100, 0, 0, 2]);
        body.extend(chunk);
    }
    let mut file = b"RIFF".to_vec();
    file.extend((body.len() as u32).to_le_bytes());
    file.extend(body);
    let opened = EncodedImage::open(&file).unwrap();
    let header = opened.header();
    assert_eq!((header.format, header.animated, header.width, header.height), (Format::WebP, true, 12, 10));
    let canvas = Decoder::new().decode(&file, &DecodeOptions::default()).unwrap();
    for y in 0..6 {
        let found = &canvas.data()[((y + 4) * 12 + 2) * 3..][..24];
        assert_eq!(found, &frames[0].data()[y * 24..][..24]);
    }
    assert!(canvas.data()[..4 * 12 * 3].iter().all(|&sample| sample == 0));
}

#[test]
fn bitmaps_with_run_lengths_or_odd_masks_are_refused() {
    let mut coded = bitmap(4, 4, 8, &[], false);
    coded[30] = 1;
    assert!(matches!(EncodedImage::open(&coded), Err(Error::Unsupported { .. })));
    let gaps = bitmap(4, 4, 16, &[0xF00F, 0x00F0, 0x0F00], false);
    assert!(matches!(EncodedImage::open(&gaps), Err(Error::Format { .. })));
}
