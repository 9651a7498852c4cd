//! What is refused, and how.

use forebay_jpeg::{Color, Decoder, Error, Options, Region, header};
use turbojpeg_sys as sys;

use crate::pictures::{Random, paint};
use crate::turbo::{self, Settings};

fn picture(settings: Settings) -> Vec<u8> {
    turbo::encode(&paint(40, 30, 9, &mut Random(21)), (40, 30), settings)
}

#[test]
fn progressive_and_rare_samplings_are_refused() {
    let progressive = picture(Settings { progressive: true, ..Settings::default() });
    assert!(matches!(header(&progressive), Err(Error::Unsupported { found: 0xC2, .. })));
    for sampling in [sys::TJSAMP_TJSAMP_411, sys::TJSAMP_TJSAMP_441] {
        let rare = picture(Settings { sampling, ..Settings::default() });
        assert!(matches!(header(&rare), Err(Error::Unsupported { .. })));
    }
}

#[test]
fn what_the_caller_asks_wrongly_is_told() {
    let bytes = picture(Settings::default());
    let mut decoder = Decoder::new();
    let mut output = vec![0; 40 * 30 * 3];
    let options = Options::new(Color::Rgb);
    let short = decoder.decode_into(&bytes, &options, &mut output[1..]).unwrap_err();
    assert_eq!(short.to_string(), "the output has not the size of the pixels: expected `3600`, found `3599`");
    assert!(!short.is_refusal());
    for region in
        [(0, 0, 41, 1), (0, 0, 0, 1), (40, 0, 1, 1), (0, 29, 1, 2), (usize::MAX, 0, 2, 1), (0, 0, usize::MAX, 1)]
    {
        let (x, y, width, height) = region;
        let options = Options { region: Some(Region { x, y, width, height }), ..options };
        let error = decoder.decode_into(&bytes, &options, &mut output).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }), "{region:?}: {error}");
    }
    let limited = Options { max_pixels: 1199, ..options };
    let error = decoder.decode_into(&bytes, &limited, &mut output).unwrap_err();
    assert_eq!(error, Error::Limit { what: "the number of pixels", found: 1200, limit: 1199 });
    decoder.decode_into(&bytes, &Options { max_pixels: 1200, ..options }, &mut output).unwrap();
}

#[test]
fn a_decoder_is_unharmed_by_refusals() {
    let bytes = picture(Settings::default());
    let mut decoder = Decoder::new();
    let options = Options::new(Color::Rgb);
    let (mut first, mut again) = (vec![0; 3600], vec![0; 3600]);
    decoder.decode_into(&bytes, &options, &mut first).unwrap();
    for length in 0..bytes.len() - 1 {
        assert!(decoder.decode_into(&bytes[..length], &options, &mut again).is_err());
    }
    decoder.decode_into(&bytes, &options, &mut again).unwrap();
    assert_eq!(first, again);
}
