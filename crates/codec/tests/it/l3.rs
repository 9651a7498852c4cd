//! What is particular to L3: strips, checksums, the layout that the paper's authors released.

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Depth, EncodedImage, Encoding, Format, L3Mode, Limits, Region, encode, inspect_l3,
};
use forebay_codec::{Error, Tensor};

use crate::allocation::peak_bytes;
use crate::pictures::picture;

fn as_stored() -> DecodeOptions {
    DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..DecodeOptions::default() }
}

fn l3(picture: &Tensor, mode: L3Mode) -> Vec<u8> {
    encode(picture.view(), &Encoding::L3 { mode, strip_rows: None }).unwrap()
}

/// Large enough for several strips in every mode.
fn tall() -> Tensor {
    picture(700, 500, 3, false, 4)
}

/// The file with one bit changed in the payload of its last strip.
fn damaged(mut file: Vec<u8>) -> Vec<u8> {
    // 64 zero bytes are the end of every file.
    let offset = file.len() - 64 - 10;
    file[offset] ^= 4;
    file
}

#[test]
fn the_header_is_read_for_every_mode_depth_and_channel_count() {
    for mode in L3Mode::ALL {
        for (channels, deep) in [(1, false), (2, true), (3, false), (4, true)] {
            let file = l3(&picture(33, 7, channels, deep, 1), mode);
            let opened = EncodedImage::open(&file).unwrap();
            let header = opened.header();
            assert_eq!((header.format, header.width, header.height), (Format::L3, 33, 7));
            assert_eq!((header.channels, header.bits), (channels, if deep { 16 } else { 8 }));
        }
    }
}

#[test]
fn a_region_decodes_only_the_strips_that_it_touches() {
    let original = tall();
    for mode in L3Mode::ALL {
        let whole = l3(&original, mode);
        let strips = inspect_l3(&whole, true, &Limits::default()).unwrap().strips.len();
        assert!(strips >= 3, "{mode:?}");
        let file = damaged(whole);
        let mut decoder = Decoder::new();
        let top = Region { x: 5, y: 3, width: 600, height: 300 };
        for channels in [Channels::AsStored, Channels::Gray] {
            let cut = |region| DecodeOptions { channels, region: Some(region), ..as_stored() };
            assert!(decoder.decode(&file, &cut(top)).is_ok(), "{mode:?}");
            let error = decoder.decode(&file, &cut(Region { height: 497, ..top })).unwrap_err();
            assert!(error.to_string().contains(&format!("checksum of strip `{}` is `", strips - 1)), "{error}");
            assert!(!error.is_truncated());
        }
    }
}

#[test]
fn every_prefix_says_that_it_is_truncated() {
    let original = picture(20, 13, 3, false, 5);
    let mut decoder = Decoder::new();
    for mode in L3Mode::ALL {
        let file = l3(&original, mode);
        for length in 4..file.len() {
            for allow_truncated in [false, true] {
                let options = DecodeOptions { allow_truncated, ..as_stored() };
                let error = decoder.decode(&file[..length], &options).unwrap_err();
                assert!(error.is_truncated(), "{mode:?} cut at {length}: {error}");
                assert!(
                    error
                        .to_string()
                        .ends_with("hint: copy or create the file again: an L3 cannot be decoded partially")
                );
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    let original = picture(20, 13, 3, false, 5);
    let mut decoder = Decoder::new();
    for mode in L3Mode::ALL {
        let file = l3(&original, mode);
        for bit in 0..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decoder.decode(&flipped, &as_stored()).is_err(), "{mode:?}, bit {bit}");
        }
        assert_eq!(decoder.decode(&file, &as_stored()).unwrap(), original, "the decoder survives them");
    }
}

#[test]
fn limits_hold_before_anything_is_allocated() {
    let mut decoder = Decoder::new();
    for mode in L3Mode::ALL {
        let file = l3(&picture(30, 20, 3, false, 1), mode);
        let limits = |max_pixels, max_bytes| DecodeOptions { limits: Limits { max_pixels, max_bytes }, ..as_stored() };
        // Classic holds a row of patches beside the output.
        let patches = if mode == L3Mode::Classic { 30 * 3 * 64 } else { 0 };
        assert!(decoder.decode(&file, &limits(600, 1800 + patches)).is_ok(), "{mode:?}");
        for options in [limits(599, 1800 + patches), limits(600, 1799 + patches)] {
            assert!(matches!(decoder.decode(&file, &options), Err(Error::Limit { .. })), "{mode:?}");
        }
        assert!(matches!(inspect_l3(&file, true, &limits(599, 1800).limits), Err(Error::Limit { .. })));
        // A header that promises much has no table to go with it.
        let mut hostile = file;
        hostile[12..20].copy_from_slice(&[0, 0, 1, 0, 0, 0, 1, 0]);
        let (result, peak) =
            peak_bytes(|| inspect_l3(&hostile, true, &Limits { max_pixels: 1 << 40, ..Limits::default() }));
        assert!(result.is_err() && peak < 1 << 20, "{peak}");
    }
}

#[test]
fn the_released_layout_is_read() {
    let shape = forebay_l3::Shape::new(128, 64, 3, forebay_l3::Depth::Eight).unwrap();
    // Noise needs eight bits in some rows, which that layout loses: a ramp needs fewer, but some.
    let ramp: Vec<u8> = (0..shape.bytes()).map(|index| (index / 3 % 128 / 8 * 3 + index / 384 * 2 + 1) as u8).collect();
    let file = forebay_l3::encode_released(&forebay_l3::Pixels::new(shape, &ramp).unwrap(), 64).unwrap();
    assert_eq!(Format::detect(&file), Some(Format::L3));
    let mut decoder = Decoder::new();
    assert_eq!(&decoder.decode(&file, &as_stored()).unwrap().data()[..], ramp);
    for length in 4..file.len() {
        assert!(decoder.decode(&file[..length], &as_stored()).unwrap_err().is_truncated(), "cut at {length}");
    }
    let details = inspect_l3(&file, true, &Limits::default()).unwrap();
    assert!(details.released && details.strips.iter().all(|strip| strip.bytes.is_none() && strip.damage.is_none()));
}

#[test]
fn inspecting_names_every_damaged_strip() {
    let original = tall();
    for mode in L3Mode::ALL {
        let file = l3(&original, mode);
        let details = inspect_l3(&file, true, &Limits::default()).unwrap();
        assert_eq!((details.mode, details.released), (mode, false));
        assert_eq!(details.strips.len(), 500_usize.div_ceil(details.strip_rows));
        let payload: u64 = details.strips.iter().map(|strip| strip.bytes.unwrap()).sum();
        assert!(payload < file.len() as u64);
        let damaged = damaged(file);
        let unread = inspect_l3(&damaged, false, &Limits::default()).unwrap();
        assert!(unread.strips.iter().all(|strip| strip.damage.is_none()), "not looked for");
        let read = inspect_l3(&damaged, true, &Limits::default()).unwrap();
        let (last, others) = read.strips.split_last().unwrap();
        assert!(others.iter().all(|strip| strip.damage.is_none()));
        assert!(last.damage.as_ref().unwrap().contains("checksum of strip"), "{last:?}");
    }
}
