//! What holds for every picture.

use proptest::prelude::*;

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Depth, EncodedImage, Encoding, Orientation, PngEffort, Region, Scale,
    Subsampling, encode,
};
use forebay_codec::{DType, Tensor};

use crate::pictures::{
    decode_reporting, encodings, has_orientation, jpeg, picture, small_files, spec_of, with_orientation,
};

fn as_stored() -> DecodeOptions {
    DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..DecodeOptions::default() }
}

/// The pixels of `region` of a picture.
fn crop(whole: &Tensor, region: Region) -> Vec<u8> {
    let (_, width, channels) = whole.spec().as_picture().unwrap();
    let pixel = channels * whole.spec().dtype.bytes();
    (region.y..region.y + region.height)
        .flat_map(|y| &whole.data()[(y * width + region.x) * pixel..][..region.width * pixel])
        .copied()
        .collect()
}

/// The image turned, pixel by pixel.
fn turn(whole: &Tensor, orientation: Orientation) -> Vec<u8> {
    let (height, width, channels) = whole.spec().as_picture().unwrap();
    let (new_width, _) = orientation.size(width, height);
    let mut out = vec![0; whole.data().len()];
    for y in 0..height {
        for x in 0..width {
            let (to_x, to_y) = orientation.map(x, y, width, height);
            out[(to_y * new_width + to_x) * channels..][..channels]
                .copy_from_slice(&whole.data()[(y * width + x) * channels..][..channels]);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn lossless_formats_give_back_every_sample(
        width in 1_usize..40, height in 1_usize..24, channels in 1_usize..=4, deep: bool, seed: u32,
    ) {
        let original = picture(width, height, channels, deep, seed);
        let mut decoder = Decoder::new();
        for encoding in encodings().into_iter().filter(Encoding::is_lossless) {
            let holds_alpha = !matches!(encoding, Encoding::Pnm);
            let encoded = encode(original.view(), &encoding);
            if (deep && !encoding.holds_sixteen_bits()) || (channels % 2 == 0 && !holds_alpha) {
                prop_assert!(encoded.is_err());
                continue;
            }
            let file = encoded.unwrap();
            let opened = EncodedImage::open(&file).unwrap();
            let header = opened.header();
            prop_assert_eq!((header.width, header.height, header.format), (width, height, encoding.format()));
            let decoded = decoder.decode(&file, &as_stored()).unwrap();
            prop_assert_eq!(decoded.spec(), &opened.plan(&as_stored()).unwrap().spec());
            if decoded.spec() == original.spec() {
                prop_assert_eq!(decoded.data(), original.data(), "{:?}", encoding);
            } else {
                // Gray that was repeated to color: every color sample is the gray one, and alpha is kept. A WebP with
                // no transparent pixel comes back without alpha.
                let (_, _, got) = decoded.spec().as_picture().unwrap();
                let pixels = decoded.data().chunks(got).zip(original.data().chunks(channels));
                for (pixel, stored) in pixels {
                    let expected = if channels <= 2 { [stored[0]; 3] } else { [stored[0], stored[1], stored[2]] };
                    prop_assert_eq!(&pixel[..3], &expected[..], "{:?}", encoding);
                    let alpha = if channels % 2 == 0 { stored[channels - 1] } else { 255 };
                    prop_assert_eq!(pixel.get(3).copied().unwrap_or(255), alpha);
                }
            }
        }
    }

    #[test]
    fn a_region_is_that_part_of_the_whole(
        width in 1_usize..150, height in 1_usize..120, gray: bool, seed: u32,
        left in 0.0_f64..1.0, top in 0.0_f64..1.0, across in 0.0_f64..1.0, down in 0.0_f64..1.0,
        scale in prop_oneof![Just(Scale::Full), Just(Scale::Half), Just(Scale::Quarter), Just(Scale::Eighth)],
        orientation in 1_u16..=8, channels in prop_oneof![Just(Channels::Rgb), Just(Channels::Gray)],
    ) {
        let original = picture(width, height, if gray { 1 } else { 3 }, false, seed);
        let mut decoder = Decoder::new();
        for encoding in encodings() {
            let mut file = encode(original.view(), &encoding).unwrap();
            if has_orientation(&encoding) {
                file = with_orientation(&file, width, height, Orientation::from_exif(orientation).unwrap());
            }
            let options = DecodeOptions { channels, scale, ..DecodeOptions::default() };
            let whole = decoder.decode(&file, &options).unwrap();
            let (whole_height, whole_width, _) = whole.spec().as_picture().unwrap();
            let part = |share: f64, of: usize| ((share * of as f64) as usize).min(of - 1);
            let (x, y) = (part(left, whole_width), part(top, whole_height));
            let region = Region {
                x, y,
                width: 1 + part(across, whole_width - x),
                height: 1 + part(down, whole_height - y),
            };
            let cut = decoder.decode(&file, &DecodeOptions { region: Some(region), ..options.clone() }).unwrap();
            prop_assert_eq!(&cut.data()[..], &crop(&whole, region)[..], "{:?} {:?} {:?}", encoding, region, scale);
        }
    }

    #[test]
    fn orientation_is_applied_alike_in_all_formats(width in 1_usize..40, height in 1_usize..30, seed: u32) {
        let original = picture(width, height, 3, false, seed);
        let mut decoder = Decoder::new();
        for encoding in encodings().into_iter().filter(has_orientation) {
            let plain = encode(original.view(), &encoding).unwrap();
            let upright = decoder.decode(&plain, &DecodeOptions::default()).unwrap();
            for orientation in Orientation::ALL {
                let file = with_orientation(&plain, width, height, orientation);
                prop_assert_eq!(EncodedImage::open(&file).unwrap().header().orientation, orientation);
                let turned = decoder.decode(&file, &DecodeOptions::default()).unwrap();
                prop_assert_eq!(&turned.data()[..], &turn(&upright, orientation)[..], "{:?} {:?}", encoding, orientation);
                let ignored = DecodeOptions { apply_orientation: false, ..DecodeOptions::default() };
                prop_assert_eq!(decoder.decode(&file, &ignored).unwrap(), upright.clone());
                // Turning what was turned by the inverse leads back.
                prop_assert_eq!(&turn(&turned, orientation.inverse())[..], &upright.data()[..]);
            }
        }
    }

    #[test]
    fn bytes_changed_at_random_never_panic(index in 0_usize..17, seed: u32, changes in 1_usize..6) {
        let (_, mut file) = small_files().swap_remove(index);
        let mut state = seed;
        for _ in 0..changes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = state as usize % file.len();
            file[at] = (state >> 24) as u8;
        }
        let mut decoder = Decoder::new();
        for allow_truncated in [false, true] {
            let mut options = DecodeOptions { allow_truncated, ..as_stored() };
            options.limits.max_pixels = 1 << 20;
            if let Ok(spec) = spec_of(&file, &options)
                && let Ok(tensor) = decoder.decode(&file, &options)
            {
                prop_assert_eq!(*tensor.spec(), spec);
            }
        }
    }
}

#[test]
fn every_prefix_of_a_file_is_an_error_and_never_a_panic() {
    let mut decoder = Decoder::new();
    for (encoding, file) in small_files() {
        let whole = decoder.decode(&file, &DecodeOptions::default()).unwrap();
        let mut partial_count = 0;
        for length in 0..file.len() {
            let cut = &file[..length];
            let error = decoder.decode(cut, &DecodeOptions::default()).expect_err("a cut-off file decodes");
            assert!(!error.to_string().is_empty());
            let options = DecodeOptions { allow_truncated: true, ..DecodeOptions::default() };
            if let Ok((tensor, decoded)) = decode_reporting(&mut decoder, cut, &options) {
                assert!(decoded.partial, "{encoding:?} cut at {length} of {} passes for whole", file.len());
                assert_eq!(tensor.spec(), whole.spec());
                partial_count += 1;
            }
        }
        // An L3 is whole or an error.
        let whole_only = matches!(encoding, Encoding::L3 { .. });
        assert_eq!(partial_count == 0, whole_only, "{partial_count} parts of {encoding:?} were accepted");
    }
}

#[test]
fn what_a_partial_picture_has_is_what_the_whole_one_has() {
    let original = picture(64, 48, 3, false, 9);
    let mut decoder = Decoder::new();
    let options = DecodeOptions { allow_truncated: true, ..DecodeOptions::default() };
    for encoding in [Encoding::Png { effort: PngEffort::Fast }, Encoding::Pnm, Encoding::Qoi] {
        let file = encode(original.view(), &encoding).unwrap();
        let (half, outcome) = decode_reporting(&mut decoder, &file[..file.len() / 2], &options).unwrap();
        assert!(outcome.partial);
        let same = half.data().iter().zip(original.data()).take_while(|(a, b)| a == b).count();
        assert!(same > 64 * 3 * 10, "{encoding:?}: {same}");
        assert!(half.data()[same + 3 * 64..].iter().all(|&sample| sample == 0), "{encoding:?}");
    }
    let file = encode(original.view(), &jpeg(90, Subsampling::None, false)).unwrap();
    let whole = decoder.decode(&file, &options).unwrap();
    let half = decoder.decode(&file[..file.len() * 3 / 4], &options).unwrap();
    assert_eq!(half.data()[..64 * 3 * 8], whole.data()[..64 * 3 * 8]);
    assert!(half.data().ends_with(&[128; 8 * 3]));
}

#[test]
fn other_formats_average_boxes() {
    let original = picture(5, 3, 1, true, 3);
    let options = DecodeOptions { scale: Scale::Half, ..as_stored() };
    let [half, others @ ..] = ["png", "pnm", "l3-fast", "l3-dense", "l3-classic"].map(|name| {
        let file = encode(original.view(), &name.parse().unwrap()).unwrap();
        Decoder::new().decode(&file, &options).unwrap()
    });
    assert!(others.iter().all(|other| *other == half));
    assert_eq!((half.spec().dtype, half.spec().shape.dims()), (DType::U16, &[2, 3, 1][..]));
    let samples: Vec<u32> =
        original.data().as_chunks::<2>().0.iter().map(|&pair| u32::from(u16::from_ne_bytes(pair))).collect();
    let at = |x: usize, y: usize| samples[y * 5 + x];
    let expected = [
        (at(0, 0) + at(1, 0) + at(0, 1) + at(1, 1) + 2) / 4,
        (at(2, 0) + at(3, 0) + at(2, 1) + at(3, 1) + 2) / 4,
        (at(4, 0) + at(4, 1)).div_ceil(2),
        (at(0, 2) + at(1, 2)).div_ceil(2),
        (at(2, 2) + at(3, 2)).div_ceil(2),
        at(4, 2),
    ];
    let found: Vec<u32> =
        half.data().as_chunks::<2>().0.iter().map(|&pair| u32::from(u16::from_ne_bytes(pair))).collect();
    assert_eq!(found, expected);
}
