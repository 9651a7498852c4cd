//! Whatever the bytes: no panic, no hang, no unbounded memory, and every level says the same as the scalar one, whether
//! checksums are looked at or not.
#![no_main]

use forebay_fuzz::structure;
use forebay_l3::{DecodeOptions, Decoder, Header, Level, Region};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::L3>(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::parse(bytes) else { return };
    for verify in [true, false] {
        let mut first = None;
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut decoder = Decoder::new(DecodeOptions { verify, pixels_max: 1 << 18, level });
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
    }
});
