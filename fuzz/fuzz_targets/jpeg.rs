//! JPEG compared with libjpeg-turbo. Our decoder, at every SIMD level, gives exactly the library's pixels or refuses; and
//! whatever the codec accepts as undamaged, the bare library decodes without a warning.
#![no_main]

use forebay_codec::image::{Channels, DecodeOptions, Decoder, Limits};
use forebay_fuzz::{libjpeg, structure};
use forebay_jpeg::{Color, Level, Options};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const PIXELS_MAX: usize = 1 << 14;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::Jpeg>(data, size, max_size, seed)
});

fuzz_target!(|file: &[u8]| {
    for (color, channels) in [(Color::Rgb, Channels::Rgb), (Color::Gray, Channels::Gray)] {
        let library = libjpeg::decode(file, color.channels(), PIXELS_MAX);
        if library.unjudged {
            return;
        }
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            own(file, color, level, &library);
        }
        codec(file, channels, &library);
    }
});

fn own(file: &[u8], color: Color, level: Level, library: &libjpeg::Verdict) {
    let Ok(header) = forebay_jpeg::header(file) else { return };
    if header.width * header.height > PIXELS_MAX {
        return;
    }
    let mut pixels = vec![0xA5; header.width * header.height * color.channels()];
    let mut decoder = forebay_jpeg::Decoder::with_level(level).expect("it is available");
    if decoder.decode_into(file, &Options::new(color), &mut pixels).is_err() {
        return;
    }
    assert!(library.is_sound(), "{level:?} takes what the library says this of: {library:?}");
    assert_eq!((header.width, header.height), library.size);
    assert!(library.pixels.as_ref() == Some(&pixels), "{level:?} {color:?}: other pixels than the library's");
}

fn codec(file: &[u8], channels: Channels, library: &libjpeg::Verdict) {
    let limits = Limits { max_pixels: PIXELS_MAX, max_bytes: 1 << 22 };
    let options = DecodeOptions { channels, apply_orientation: false, limits, ..DecodeOptions::default() };
    let Ok(picture) = Decoder::new().decode(file, &options) else { return };
    let words = &library.message;
    assert!(library.pixels.is_some(), "accepted, but the library refuses it: {words}");
    assert!(library.harmful == 0, "accepted, but the library warned {} times: {words}", library.harmful);
    let size = (picture.spec().shape.dims()[1], picture.spec().shape.dims()[0]);
    assert_eq!(size, library.size);
    assert!(library.pixels.as_deref() == Some(picture.data()), "other pixels than the library's");
}
