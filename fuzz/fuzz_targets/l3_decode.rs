//! Whatever the bytes: no panic, no hang, no unbounded memory, and every level says the same as the scalar one, whether
//! checksums are looked at or not.
#![no_main]

use forebay_fuzz::structure;
use forebay_l3::{DecodeOptions, Decoder, Header, Level, Mode, Region, StripBatch};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::L3>(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::parse(bytes) else { return };
    for verify in [true, false] {
        let mut first = None;
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut decoder = Decoder::new(DecodeOptions { verify, max_pixels: 1 << 18, level, ..DecodeOptions::default() });
            // Which damage of several is found first differs, and with it the message.
            let image = decoder.decode(bytes).map_err(|error| error.class());
            if let Ok(image) = &image {
                let shape = image.shape;
                let region = Region {
                    x: shape.width() / 3,
                    y: shape.height() / 3,
                    width: shape.width().div_ceil(3),
                    height: shape.height().div_ceil(3),
                };
                let row_bytes = region.width as usize * shape.pixel_bytes();
                let mut crop = vec![0; row_bytes * region.height as usize];
                decoder.decode_region_into(bytes, region, &mut crop, row_bytes).expect("a part of what was decoded");
                for (row, cut) in crop.chunks_exact(row_bytes).enumerate() {
                    let y = region.y as usize + row;
                    let start = y * shape.row_bytes() + region.x as usize * shape.pixel_bytes();
                    assert_eq!(*cut, image.data[start..start + row_bytes]);
                }
            }
            let first = first.get_or_insert_with(|| image.clone());
            assert_eq!(*first, image, "{level:?} differs for {header:?}");
        }
        let options = DecodeOptions { verify, max_pixels: 1 << 18, ..DecodeOptions::default() };
        let mut batch = StripBatch::default();
        let taken = batch.push(bytes, None, options).is_ok();
        let decoded = first.is_some_and(|image| image.is_ok());
        assert!(taken || !decoded || header.mode == Mode::Classic, "a sound file is taken apart: {header:?}");
        check(&batch);
    }
});

/// What a GPU relies on: streams lie within the data, tables and states in their ranges.
fn check(batch: &StripBatch) {
    let within = |start: i64, bytes: i64| start >= 0 && bytes >= 0 && start + bytes <= batch.data.len() as i64;
    for strip in batch.strips.chunks_exact(StripBatch::STRIP_NUMBERS) {
        let [_, mode, width, _, rows, channels, sample_bytes, _, _, first, second, third] = *strip else {
            unreachable!()
        };
        let byte_planes = channels * sample_bytes;
        if mode == Mode::Fast as i64 {
            assert!(within(first, 3 * rows * byte_planes * ((width + 63) / 64)) && within(second, third));
        } else {
            assert!((first + byte_planes) as usize * StripBatch::PLANE_NUMBERS <= batch.planes.len());
            assert!((second + 24 * byte_planes) as usize <= batch.contexts.len());
        }
    }
    for plane in batch.planes.chunks_exact(StripBatch::PLANE_NUMBERS) {
        assert!(plane[0] % 2 == 0 && within(plane[0], 2 * plane[1]) && within(plane[2], plane[3]));
    }
    assert!(batch.contexts.iter().all(|&table| table >= 0 && (table as usize + 1) * 1024 <= batch.tables.len()));
    assert!(batch.states.len() == batch.planes.len() / StripBatch::PLANE_NUMBERS * 64);
    assert!(batch.states.iter().all(|&state| state >= 1 << 15));
}
