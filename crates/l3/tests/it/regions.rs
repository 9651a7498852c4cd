//! Crops and strips.

use forebay_l3::{
    DecodeOptions, Decoder, Depth, EncodeOptions, ErrorClass, Mode, Pixels, Region, Scratch, Strips, encode,
};
use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};

use crate::images::{Kind, make, shape};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_crop_is_the_same_part_of_the_whole(
        mode in proptest::sample::select(Mode::ALL.to_vec()),
        depth in proptest::sample::select(vec![Depth::Eight, Depth::Sixteen]),
        channels in 1u8..=4,
        (width, height) in (1u32..150, 1u32..90),
        corner in (any::<u32>(), any::<u32>()),
        size in (any::<u32>(), any::<u32>()),
    ) {
        let shape = shape(width, height, channels, depth);
        let data = make(Kind::Photo, shape, 3);
        let mut options = EncodeOptions::new(mode);
        if mode == Mode::Classic {
            options.patch = 32;
        } else {
            options.strip_rows = Some(20);
        }
        let bytes = encode(&Pixels::new(shape, &data).unwrap(), &options).unwrap();
        let (x, y) = (corner.0 % width, corner.1 % height);
        let region = Region { x, y, width: size.0 % (width - x) + 1, height: size.1 % (height - y) + 1 };
        let row_bytes = region.width as usize * shape.pixel_bytes();
        let stride = row_bytes + 5;
        let mut out = vec![0; stride * region.height as usize];
        Decoder::new(DecodeOptions::default()).decode_region_into(&bytes, region, &mut out, stride).unwrap();
        for (row, out) in out.chunks_exact(stride).enumerate() {
            let start = (y as usize + row) * shape.row_bytes() + x as usize * shape.pixel_bytes();
            prop_assert_eq!(&out[..row_bytes], &data[start..start + row_bytes]);
        }
    }
}

/// Damage in a strip that a crop does not touch goes unnoticed: the strip is not read.
#[test]
fn other_strips_are_not_read() {
    for mode in Mode::ALL {
        let shape = shape(200, 256, 3, Depth::Eight);
        let data = make(Kind::Photo, shape, 8);
        let strip_rows = (mode != Mode::Classic).then_some(64);
        let options = EncodeOptions { strip_rows, ..EncodeOptions::new(mode) };
        let mut bytes = encode(&Pixels::new(shape, &data).unwrap(), &options).unwrap();
        let strips = Strips::open(&bytes, DecodeOptions::default()).unwrap();
        assert_eq!((strips.count(), strips.rows(1), strips.rows(3)), (4, 64..128, 192..256));
        let payload: u64 = (0..4).map(|strip| strips.payload_bytes(strip).unwrap()).sum();
        let last = bytes.len() - 64 - 100;
        assert!(payload > last as u64 / 2 && payload < bytes.len() as u64);
        bytes[last] ^= 1;
        let mut decoder = Decoder::new(DecodeOptions::default());
        let mut out = vec![0; shape.bytes()];
        let mut crop = |y| decoder.decode_region_into(&bytes, Region { x: 3, y, width: 9, height: 30 }, &mut out, 600);
        assert!(crop(100).is_ok(), "{mode:?}");
        assert_eq!(crop(180).unwrap_err().class(), ErrorClass::Format, "{mode:?}");
    }
}

#[test]
fn threads_share_the_strips_of_an_image() {
    let shape = shape(333, 200, 3, Depth::Eight);
    let data = make(Kind::Photo, shape, 8);
    for mode in Mode::ALL {
        let bytes = encode(&Pixels::new(shape, &data).unwrap(), &EncodeOptions::new(mode)).unwrap();
        let strips = Strips::open(&bytes, DecodeOptions::default()).unwrap();
        let mut out = vec![0; shape.bytes()];
        let rows = strips.header().strip_rows as usize;
        std::thread::scope(|scope| {
            for (strip, part) in out.chunks_mut(rows * shape.row_bytes()).enumerate() {
                let strips = &strips;
                scope.spawn(move || {
                    let mut scratch = Scratch::default();
                    strips.decode_strip_into(strip as u32, &mut scratch, part, shape.row_bytes()).unwrap();
                });
            }
        });
        assert!(out == data, "{mode:?}");
        assert!(
            strips.decode_strip_into(strips.count(), &mut Scratch::default(), &mut out, shape.row_bytes()).is_err()
        );
    }
}

#[test]
fn regions_outside_the_image_are_refused() {
    let shape = shape(10, 10, 1, Depth::Eight);
    let bytes = encode(&Pixels::new(shape, &[0; 100]).unwrap(), &EncodeOptions::new(Mode::Fast)).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    for (x, y, width, height) in [(0, 0, 0, 1), (0, 0, 11, 1), (5, 5, 5, 6), (u32::MAX, 0, 2, 1), (0, 9, 1, u32::MAX)] {
        let region = Region { x, y, width, height };
        let error = decoder.decode_region_into(&bytes, region, &mut [0; 200], 20).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Usage, "{region:?}");
    }
}
