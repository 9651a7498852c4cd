//! What goes in comes out.

use forebay_l3::{
    ColorTransform, DecodeOptions, Decoder, Depth, EncodeOptions, Header, Level, Mode, Pixels, Predictor, Shape,
    decode, decode_into, encode,
};
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};

use crate::images::{KINDS, Kind, make, real, shape};

fn check(shape: Shape, data: &[u8], options: &EncodeOptions) -> usize {
    let bytes = encode(&Pixels::new(shape, data).unwrap(), options).unwrap();
    let header = Header::parse(&bytes).unwrap();
    assert_eq!((header.shape, header.mode), (shape, options.mode));
    let image = decode(&bytes).unwrap();
    assert_eq!(image.shape, shape);
    assert!(image.data == data, "{shape:?} {options:?}: pixels differ");
    bytes.len()
}

#[test]
fn every_mode_depth_channel_count_and_kind() {
    for mode in Mode::ALL {
        for depth in [Depth::Eight, Depth::Sixteen] {
            for channels in 1..=4 {
                for kind in KINDS {
                    let shape = shape(131, 67, channels, depth);
                    check(shape, &make(kind, shape, 5), &EncodeOptions::new(mode));
                }
            }
        }
    }
}

#[test]
fn every_small_width_and_height() {
    for mode in Mode::ALL {
        for width in (1..=20).chain([31, 33, 63, 64, 65, 127, 129, 255, 257, 259]) {
            for height in [1, 2, 3, 7] {
                for channels in [1, 3] {
                    let shape = shape(width, height, channels, Depth::Eight);
                    check(shape, &make(Kind::Photo, shape, u64::from(width)), &EncodeOptions::new(mode));
                }
            }
        }
    }
}

#[test]
fn long_sides() {
    for (width, height) in [(5000, 3), (3, 5000), (1, 5000), (4999, 33)] {
        for mode in Mode::ALL {
            let shape = shape(width, height, 3, Depth::Eight);
            check(shape, &make(Kind::Photo, shape, 3), &EncodeOptions::new(mode));
        }
    }
}

#[test]
fn every_transform_and_predictor() {
    for color in ColorTransform::ALL {
        for predictor in Predictor::ALL {
            for (channels, depth) in [(3, Depth::Eight), (4, Depth::Eight), (3, Depth::Sixteen)] {
                for mode in [Mode::Fast, Mode::Dense] {
                    let options =
                        EncodeOptions { color: Some(color), predictor: Some(predictor), ..EncodeOptions::new(mode) };
                    let shape = shape(97, 21, channels, depth);
                    check(shape, &make(Kind::Photo, shape, 9), &options);
                    check(shape, &make(Kind::Random, shape, 9), &options);
                }
            }
        }
    }
}

#[test]
fn every_patch_side() {
    for patch in [1, 2, 7, 8, 32, 63, 64, 65, 128, 255] {
        let options = EncodeOptions { patch, ..EncodeOptions::new(Mode::Classic) };
        let shape = shape(150, 80, 3, Depth::Eight);
        for kind in KINDS {
            check(shape, &make(kind, shape, 9), &options);
        }
    }
}

#[test]
fn real_images() {
    let mut total = [0usize; 3];
    let mut raw = 0;
    for (name, shape, data) in real("images-png-512").into_iter().chain(real("kodak")).take(14) {
        raw += data.len();
        for (sum, mode) in total.iter_mut().zip(Mode::ALL) {
            let bytes = check(shape, &data, &EncodeOptions::new(mode));
            assert!(bytes < data.len(), "{name} {mode:?}");
            *sum += bytes;
        }
    }
    assert!(raw == 0 || (total[2] < total[1] && total[1] < total[0]), "dense < fast < classic: {total:?} of {raw}");
}

#[test]
fn strided_buffers_on_both_sides() {
    let shape = shape(50, 40, 3, Depth::Eight);
    let tight = make(Kind::Photo, shape, 1);
    let stride = 50 * 3 + 13;
    let mut loose = vec![0xAA; stride * 40];
    for (row, tight) in loose.chunks_exact_mut(stride).zip(tight.chunks_exact(150)) {
        row[..150].copy_from_slice(tight);
    }
    for mode in Mode::ALL {
        let options = EncodeOptions::new(mode);
        let bytes = encode(&Pixels::with_stride(shape, &loose, stride).unwrap(), &options).unwrap();
        assert_eq!(bytes, encode(&Pixels::new(shape, &tight).unwrap(), &options).unwrap());
        let mut out = vec![0x55; stride * 40];
        decode_into(&bytes, &mut out, stride).unwrap();
        for (row, tight) in out.chunks_exact(stride).zip(tight.chunks_exact(150)) {
            assert_eq!(&row[..150], tight);
            assert!(row[150..].iter().all(|&byte| byte == 0x55), "bytes between rows are the caller's");
        }
        assert!(decode_into(&bytes, &mut out, 149).is_err());
        assert!(decode_into(&bytes, &mut out[..stride * 39], stride).is_err());
    }
}

/// A decoder that has seen other images decodes as a fresh one does.
#[test]
fn a_reused_decoder_remembers_nothing() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    for round in 0..3u64 {
        for (width, height, channels, depth) in [
            (300, 20, 3, Depth::Eight),
            (7, 50, 1, Depth::Sixteen),
            (64, 64, 4, Depth::Eight),
            (65, 9, 2, Depth::Eight),
        ] {
            for mode in Mode::ALL {
                let shape = shape(width, height, channels, depth);
                let data = make(Kind::Photo, shape, round);
                let bytes = encode(&Pixels::new(shape, &data).unwrap(), &EncodeOptions::new(mode)).unwrap();
                assert!(decoder.decode(&bytes).unwrap().data == data);
            }
        }
    }
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let side = prop_oneof![1u32..40, 60u32..70, 1u32..300];
    (side, 1u32..60, 1u8..=4, prop_oneof![Just(Depth::Eight), Just(Depth::Sixteen)])
        .prop_map(|(width, height, channels, depth)| shape(width, height, channels, depth))
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_image_survives(
        shape in any_shape(),
        kind in proptest::sample::select(KINDS.to_vec()),
        mode in proptest::sample::select(Mode::ALL.to_vec()),
        strip_rows in 1u32..70,
        seed in any::<u64>(),
    ) {
        let data = make(kind, shape, seed);
        let strip_rows = (mode != Mode::Classic).then_some(strip_rows);
        let options = EncodeOptions { strip_rows, ..EncodeOptions::new(mode) };
        let bytes = encode(&Pixels::new(shape, &data).unwrap(), &options).unwrap();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let again = encode(&Pixels::new(shape, &data).unwrap(), &EncodeOptions { level, ..options }).unwrap();
            prop_assert_eq!(&again, &bytes);
            let mut decoder = Decoder::new(DecodeOptions { level, ..DecodeOptions::default() });
            prop_assert_eq!(&decoder.decode(&bytes).unwrap().data, &data);
        }
    }
}
