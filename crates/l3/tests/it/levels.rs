//! One corpus through every level: the same bytes, the same pixels.

use forebay_l3::{DecodeOptions, Decoder, Depth, EncodeOptions, Level, Mode, Pixels, Shape, encode};

use crate::images::{KINDS, make, real, shape};

fn corpus() -> Vec<(Shape, Vec<u8>)> {
    let mut corpus: Vec<_> = real("images-png-512").into_iter().take(3).map(|(_, shape, data)| (shape, data)).collect();
    for (width, height, channels, depth) in [
        (1, 1, 3, Depth::Eight),
        (257, 40, 3, Depth::Eight),
        (320, 33, 4, Depth::Eight),
        (255, 17, 1, Depth::Eight),
        (130, 21, 2, Depth::Eight),
        (100, 30, 3, Depth::Sixteen),
        (61, 30, 4, Depth::Sixteen),
    ] {
        for kind in KINDS {
            let shape = shape(width, height, channels, depth);
            corpus.push((shape, make(kind, shape, 77)));
        }
    }
    corpus
}

#[test]
fn all_levels_give_the_same_bytes_and_pixels() {
    let available: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    eprintln!("levels of this machine: {available:?}");
    for (shape, data) in corpus() {
        for mode in Mode::ALL {
            let pixels = Pixels::new(shape, &data).unwrap();
            let scalar = EncodeOptions { level: Level::Scalar, ..EncodeOptions::new(mode) };
            let reference = encode(&pixels, &scalar).unwrap();
            for &level in &available {
                let bytes = encode(&pixels, &EncodeOptions { level, ..scalar }).unwrap();
                assert!(bytes == reference, "encoding {shape:?} {mode:?} {level:?}");
                let mut decoder = Decoder::new(DecodeOptions { level, ..DecodeOptions::default() });
                assert!(decoder.decode(&bytes).unwrap().data == data, "decoding {shape:?} {mode:?} {level:?}");
            }
        }
    }
}

#[test]
fn a_missing_level_is_refused() {
    let missing = Level::ALL.into_iter().find(|level| !level.is_available()).expect("no machine has both x86 and NEON");
    let shape = shape(2, 2, 1, Depth::Eight);
    let pixels = Pixels::new(shape, &[1, 2, 3, 4]).unwrap();
    let error = encode(&pixels, &EncodeOptions { level: missing, ..EncodeOptions::new(Mode::Fast) }).unwrap_err();
    assert!(error.to_string().contains("instruction set"), "{error}");
}
