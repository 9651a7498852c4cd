//! Pictures of every format: header, whole, partial and reduced.
#![no_main]

use forebay_codec::image::{DecodeOptions, Decoder, Limits, Scale};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let mut decoder = Decoder::new();
    let limits = Limits { pixels_max: 1 << 18, bytes_max: 1 << 24 };
    for (accept_partial, scale) in [(false, Scale::Full), (true, Scale::Full), (true, Scale::Half)] {
        let options = DecodeOptions { accept_partial, scale, limits: limits.clone(), ..DecodeOptions::default() };
        let spec = decoder.output_spec(file, &options);
        if let Ok(picture) = decoder.decode(file, &options) {
            assert_eq!(*picture.spec(), spec.expect("what decodes has a header"));
        }
    }
});
