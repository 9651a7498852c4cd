//! Whatever the pixels: what a lossless format keeps comes back, a lossy one gives an image of the size, and a mask its classes.
#![no_main]

use forebay_codec::image::{
    Channels, DecodeOptions, Decoder, Depth, Encoding, L3Mode, Limits, EncodedImage, PngEffort, Subsampling, decode_labels,
    encode,
};
use forebay_codec::{DType, Tensor, TensorSpec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[kind, channels, depth, width], data)) = bytes.split_first_chunk::<4>() else { return };
    let encoding = encoding(kind);
    let channels = usize::from(channels % 4) + 1;
    let dtype = if depth % 2 == 1 && encoding.holds_sixteen_bits() { DType::U16 } else { DType::U8 };
    let width = usize::from(width) + 1;
    let row_bytes = width * channels * if dtype == DType::U16 { 2 } else { 1 };
    let height = data.len() / row_bytes;
    let spec = TensorSpec::new(dtype, &[height, width, channels]);
    let Some(picture) = Tensor::new(spec, data[..height * row_bytes].to_vec()) else { return };
    // No rows, or alpha where the format has none.
    let Ok(file) = encode(picture.view(), &encoding) else {
        assert!(height == 0 || matches!(encoding, Encoding::Jpeg { .. } | Encoding::Pnm) && matches!(channels, 2 | 4));
        return;
    };
    let limits = Limits { max_pixels: 1 << 18, max_bytes: 1 << 24 };
    let stored = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, limits, ..DecodeOptions::default() };
    let again = Decoder::new().decode(&file, &stored).expect("what was encoded can be decoded");
    if again.spec() == picture.spec() {
        assert!(!encoding.is_lossless() || again.data() == picture.data(), "{encoding:?}: other pixels");
    } else if channels == 4 {
        // WebP leaves out an alpha that says nothing.
        let opaque = picture.data().chunks(4).all(|pixel| pixel[3] == 255);
        assert!(opaque && again.spec().shape.dims() == [height, width, 3], "{encoding:?}: {:?}", again.spec());
        let colors = picture.data().chunks(4).flat_map(|pixel| &pixel[..3]);
        assert!(!encoding.is_lossless() || colors.eq(again.data()), "{encoding:?}: other pixels");
    } else {
        // Gray that became RGB: repeated, its alpha at the end.
        assert!(again.spec().shape.dims()[..2] == [height, width] && channels < 3, "{encoding:?}: {:?}", again.spec());
        if encoding.is_lossless() {
            let wide = again.spec().shape.dims()[2];
            let narrow = again.data().chunks(wide).flat_map(|pixel| [pixel[0], pixel[wide - 1]].into_iter().take(channels));
            assert!(narrow.eq(picture.data().iter().copied()), "{encoding:?}: other pixels");
        }
    }
    if matches!(encoding, Encoding::Png { .. }) && channels == 1 {
        let mask = EncodedImage::open(&file).and_then(|picture| decode_labels(&picture, &limits));
        assert_eq!(mask.expect("one gray channel is a mask").data(), picture.data());
    }
});

fn encoding(kind: u8) -> Encoding {
    let effort = [PngEffort::Fastest, PngEffort::Fast, PngEffort::Balanced, PngEffort::High][usize::from(kind >> 4) % 4];
    let subsampling =
        [Subsampling::None, Subsampling::Horizontal, Subsampling::Both, Subsampling::Vertical][usize::from(kind >> 4) % 4];
    let quality = (kind >> 4) * 6 + 1;
    match kind % 12 {
        0 => Encoding::Jpeg { quality, subsampling, progressive: false },
        1 => Encoding::Jpeg { quality, subsampling, progressive: true },
        2 | 3 => Encoding::Png { effort },
        4 => Encoding::WebP { quality: f32::from(quality) },
        5 => Encoding::WebPLossless { effort: (kind >> 4) % 10 },
        6 => Encoding::Bmp,
        7 => Encoding::Pnm,
        8 => Encoding::Qoi,
        9 => Encoding::L3 { mode: L3Mode::Fast, strip_rows: None },
        10 => Encoding::L3 { mode: L3Mode::Dense, strip_rows: None },
        _ => Encoding::L3 { mode: L3Mode::Classic, strip_rows: None },
    }
}
