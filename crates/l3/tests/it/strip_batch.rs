//! Strips of many files side by side. What a GPU makes of them is tested in Python.

use forebay_l3::{DecodeOptions, Depth, EncodeOptions, Error, ErrorClass, Mode, Pixels, Region, StripBatch, encode};

use crate::images::{Kind, make, shape};

const MODES: [Mode; 2] = [Mode::Fast, Mode::Dense];

fn file(mode: Mode, depth: Depth, channels: u8) -> Vec<u8> {
    let shape = shape(70, 50, channels, depth);
    let data = make(Kind::Photo, shape, 5);
    let options = EncodeOptions { strip_rows: Some(16), ..EncodeOptions::new(mode) };
    encode(&Pixels::new(shape, &data).unwrap(), &options).unwrap()
}

fn rows(batch: &StripBatch) -> Vec<&[i64]> {
    batch.strips.chunks_exact(StripBatch::STRIP_NUMBERS).collect()
}

#[test]
fn every_stream_is_there_and_aligned() {
    for mode in MODES {
        for (depth, channels) in [(Depth::Eight, 1), (Depth::Eight, 3), (Depth::Sixteen, 4)] {
            let file = file(mode, depth, channels);
            let mut batch = StripBatch::default();
            for _ in 0..2 {
                batch.push(&file, None, DecodeOptions::default()).unwrap();
            }
            let byte_planes = usize::from(channels) * depth.bytes();
            let strips = rows(&batch);
            assert_eq!(strips.len(), 8);
            assert_eq!([strips[3], strips[4]].map(|strip| (strip[0], strip[3], strip[4])), [(0, 48, 2), (1, 0, 16)]);
            if mode == Mode::Fast {
                for strip in strips {
                    // Two blocks a row.
                    let headers = strip[4] * byte_planes as i64 * 2 * 3;
                    assert!(strip[9] % 16 == 0 && strip[10] % 16 == 0 && strip[9] + headers <= strip[10]);
                    assert!(strip[10] + strip[11] <= batch.data.len() as i64);
                }
                continue;
            }
            assert_eq!(batch.planes.len(), 8 * byte_planes * StripBatch::PLANE_NUMBERS);
            assert_eq!(batch.states.len(), 8 * byte_planes * 64);
            assert!(batch.states.iter().all(|&state| state >= 1 << 15));
            assert_eq!(batch.contexts.len(), 2 * byte_planes * 24);
            let tables = batch.tables.len() as i32 >> 10;
            assert!(batch.contexts.iter().all(|&table| table < tables) && batch.contexts.contains(&(tables - 1)));
            for plane in batch.planes.chunks_exact(StripBatch::PLANE_NUMBERS) {
                assert!(plane[0] % 16 == 0 && plane[0] + 2 * plane[1] <= plane[2]);
                assert!(plane[2] + plane[3] <= batch.data.len() as i64);
            }
        }
    }
}

#[test]
fn a_region_brings_the_strips_that_it_touches() {
    for mode in MODES {
        let mut file = file(mode, Depth::Eight, 3);
        // The first strip is damaged, and not looked at.
        let first = 32 + 4 * 8 + u32::from_le_bytes([0, 1, 2, 3].map(|index| file[24 + index])) as usize;
        file[first + 50] ^= 1;
        let mut batch = StripBatch::default();
        let region = Region { x: 3, y: 20, width: 5, height: 13 };
        batch.push(&file, Some(region), DecodeOptions::default()).unwrap();
        assert_eq!(rows(&batch).iter().map(|strip| strip[3]).collect::<Vec<_>>(), [16, 32]);
        let before = batch.clone();
        let error = batch.push(&file, None, DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Checksum { strip: Some(0), .. }), "{error}");
        assert_eq!((batch.data, batch.strips, batch.tables), (before.data, before.strips, before.tables));
    }
}

#[test]
fn whatever_a_file_says_is_found_or_harmless() {
    for mode in MODES {
        let file = file(mode, Depth::Eight, 3);
        let options = DecodeOptions { verify: false, ..DecodeOptions::default() };
        for place in 0..file.len().min(1200) {
            for bit in [0, 7] {
                let mut file = file.clone();
                file[place] ^= 1 << bit;
                let mut batch = StripBatch::default();
                if batch.push(&file, None, options).is_err() {
                    assert!(batch.strips.is_empty() && batch.data.is_empty());
                }
            }
        }
        for length in 0..file.len() {
            StripBatch::default().push(&file[..length], None, options).unwrap_err();
        }
    }
}

#[test]
fn classic_is_refused() {
    let shape = shape(20, 20, 3, Depth::Eight);
    let data = make(Kind::Photo, shape, 5);
    let file = encode(&Pixels::new(shape, &data).unwrap(), &EncodeOptions::new(Mode::Classic)).unwrap();
    let error = StripBatch::default().push(&file, None, DecodeOptions::default()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unsupported);
}
