//! One corpus through every level: the same bytes, the same pixels.

use forebay_l3::{DecodeOptions, Decoder, Depth, EncodeOptions, Level, Mode, Pixels, Predictor, Shape, encode};

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

/// Every way in which a row can end within a vector, with both predictors.
#[test]
fn all_levels_agree_on_every_width() {
    let available: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    for width in (1..=36).chain([63, 64, 65, 95, 97, 127, 128, 129, 131, 191, 255, 256, 257, 258, 383, 385, 511, 513]) {
        for (channels, depth) in (1..=4).flat_map(|channels| [(channels, Depth::Eight), (channels, Depth::Sixteen)]) {
            let shape = shape(width, 3, channels, depth);
            let kind = KINDS[width as usize % KINDS.len()];
            let data = make(kind, shape, u64::from(width));
            let pixels = Pixels::new(shape, &data).unwrap();
            for (mode, predictor) in
                [(Mode::Fast, Predictor::Smooth), (Mode::Fast, Predictor::Sharp), (Mode::Dense, Predictor::Sharp)]
            {
                let options = EncodeOptions { predictor: Some(predictor), ..EncodeOptions::new(mode) };
                let reference = encode(&pixels, &EncodeOptions { level: Level::Scalar, ..options }).unwrap();
                for &level in &available {
                    assert!(encode(&pixels, &EncodeOptions { level, ..options }).unwrap() == reference, "{level:?}");
                    for streaming in [false, true] {
                        let mut decoder = Decoder::new(DecodeOptions { level, streaming, ..DecodeOptions::default() });
                        let image = decoder.decode(&reference).unwrap();
                        assert!(image.data == data, "{shape:?} {mode:?} {kind:?} {level:?} {streaming}");
                    }
                }
            }
        }
    }
}

/// Rows that consist of whole lines are written past the cache without a stop on the way, and what lies between them stays.
#[test]
fn rows_of_whole_lines_are_streamed() {
    let shape = shape(256, 9, 3, Depth::Eight);
    for (kind, stride_bytes) in KINDS.into_iter().zip([768, 832, 800].into_iter().cycle()) {
        let data = make(kind, shape, 5);
        for mode in Mode::ALL {
            let file = encode(&Pixels::new(shape, &data).unwrap(), &EncodeOptions::new(mode)).unwrap();
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let mut out = vec![255; 9 * stride_bytes + 64];
                let start = out.as_ptr().align_offset(64);
                let options = DecodeOptions { level, streaming: true, ..DecodeOptions::default() };
                Decoder::new(options).decode_into(&file, &mut out[start..], stride_bytes).unwrap();
                for (found, expected) in out[start..].chunks(stride_bytes).zip(data.chunks(768)) {
                    assert!(found[..768] == *expected, "{mode:?} {kind:?} {level:?} {stride_bytes}");
                    assert!(found[768..].iter().all(|&byte| byte == 255), "{mode:?} {kind:?} {level:?} {stride_bytes}");
                }
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
