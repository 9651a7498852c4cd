//! Images of every format: header, whole, partial, reduced and in part. A decoder that was used before gives what a new one
//! gives, and what is refused leaves nothing of another image behind.
#![no_main]

use forebay_codec::TensorMut;
use forebay_codec::image::{Channels, DecodeOptions, DecodePlan, Decoder, Depth, Limits, EncodedImage, Region, Scale};
use forebay_fuzz::structure::{self, Random};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match data[..size] {
        [0xFF, 0xD8, ..] => structure::mutate::<structure::Jpeg>(data, size, max_size, seed),
        [b'R', b'I', b'F', b'F', ..] => structure::mutate::<structure::Riff>(data, size, max_size, seed),
        [0x8A, ..] => structure::mutate::<structure::L3>(data, size, max_size, seed),
        _ if Random::new(!seed).below(2) == 0 => structure::mutate::<structure::Png>(data, size, max_size, seed),
        _ => structure::mutate::<structure::PngRows>(data, size, max_size, seed),
    }
});

fuzz_target!(|file: &[u8]| {
    let mut decoder = Decoder::new();
    let limits = Limits { max_pixels: 1 << 18, max_bytes: 1 << 24 };
    let plain = DecodeOptions { limits, ..DecodeOptions::default() };
    let stored = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..plain.clone() };
    let partial = DecodeOptions { allow_truncated: true, ..plain.clone() };
    let half = DecodeOptions { scale: Scale::Half, ..partial.clone() };
    let mut whole = None;
    let Ok(opened) = EncodedImage::open(file) else { return };
    for options in [&plain, &stored, &partial, &half] {
        let Ok(plan) = opened.plan(options) else { continue };
        let Ok((picture, decoded)) = decoder.decode_reporting(&plan) else { continue };
        assert_eq!(*picture.spec(), plan.spec());
        written_whole(&mut decoder, &plan, picture.data());
        if options == &plain {
            assert!(!decoded.partial);
            let again = Decoder::new().decode(file, options).expect("it did a moment ago");
            assert_eq!(again.data(), picture.data(), "a new decoder gives something else");
            whole = Some(picture);
        } else if options == &partial && let Some(whole) = &whole {
            assert!(!decoded.partial && whole.data() == picture.data(), "what is whole is so in part, too");
        }
    }
    let Some(whole) = whole else { return };
    let [height, width, channels] = *whole.spec().shape.dims() else { panic!("no picture: {:?}", whole.spec()) };
    let region = Region { x: width / 3, y: height / 3, width: width.div_ceil(3), height: height.div_ceil(3) };
    let options = DecodeOptions { region: Some(region), ..plain };
    let part = decoder.decode(file, &options).expect("a part of what was decoded");
    for (row, part) in part.data().chunks_exact(region.width * channels).enumerate() {
        let start = ((region.y + row) * width + region.x) * channels;
        assert_eq!(*part, whole.data()[start..start + part.len()], "row {row} of {region:?} of {width} × {height}");
    }
});

/// Whatever was in the buffer before, a sample of someone else's perhaps, nothing of it is left.
fn written_whole(decoder: &mut Decoder, plan: &DecodePlan<'_>, picture: &[u8]) {
    let mut data = vec![0xA5; picture.len()];
    decoder.decode_into(plan, TensorMut { spec: plan.spec(), data: &mut data }).expect("it did a moment ago");
    assert!(data == picture, "a part of the output was not written");
}
