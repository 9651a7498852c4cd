//! Whatever the pixels and options: what goes in comes out, and every level writes the same bytes.
#![no_main]

use forebay_l3::{
    ColorTransform, DecodeOptions, Decoder, Depth, EncodeOptions, Level, Mode, Pixels, Predictor, Shape, encode,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[mode, channels, depth, width, color, predictor, strip], data)) = bytes.split_first_chunk::<7>() else {
        return;
    };
    let depth = if depth % 2 == 0 { Depth::Eight } else { Depth::Sixteen };
    let mode = Mode::ALL[usize::from(mode) % 3];
    let (width, channels) = (u32::from(width) + 1, channels % 4 + 1);
    let row_bytes = width as usize * usize::from(channels) * depth.bytes();
    let height = (data.len() / row_bytes) as u32;
    let Ok(shape) = Shape::new(width, height, channels, depth) else { return };
    let pixels = Pixels::new(shape, &data[..shape.bytes()]).expect("whole rows");
    let mut options = EncodeOptions::new(mode);
    if mode == Mode::Classic {
        options.patch = strip.max(1);
    } else {
        options.strip_rows = Some(u32::from(strip) + 1);
        options.predictor = Predictor::ALL.get(usize::from(predictor) % 3).copied();
        if channels >= 3 {
            options.color = ColorTransform::ALL.get(usize::from(color) % 6).copied();
        }
    }
    let reference = encode(&pixels, &options).expect("every image can be encoded");
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let file = encode(&pixels, &EncodeOptions { level, ..options }).expect("every image can be encoded");
        assert!(file == reference, "{level:?} writes something else");
        let mut decoder = Decoder::new(DecodeOptions { level, ..DecodeOptions::default() });
        let image = decoder.decode(&file).expect("what was encoded can be decoded");
        assert_eq!(image.data, data[..shape.bytes()], "{level:?} {options:?}");
    }
});
