//! Whatever the bytes: no panic, no hang, no unbounded memory, and every kernel says the same.
#![no_main]

use forebay_l3::{DecodeOptions, Decoder, Header, Kernel, Region};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::parse(bytes) else { return };
    let mut first = None;
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        // Without checksums the fuzzer reaches the entropy decoders.
        let options = DecodeOptions { verify: false, pixels_max: 1 << 18, kernel };
        let mut decoder = Decoder::new(options);
        let image = decoder.decode(bytes).ok();
        if let Some(image) = &image {
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
            let start = region.y as usize * shape.row_bytes() + region.x as usize * shape.pixel_bytes();
            assert_eq!(crop[..row_bytes], image.data[start..start + row_bytes]);
        }
        let first = first.get_or_insert_with(|| image.clone());
        assert_eq!(*first, image, "{kernel:?} differs for {header:?}");
    }
});
