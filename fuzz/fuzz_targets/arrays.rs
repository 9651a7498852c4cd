//! Arrays and masks: NumPy's files, tables of embeddings, PNGs of classes. What a file is, its first bytes say.
#![no_main]

use bytes::Bytes;
use forebay_codec::image::{Limits, EncodedImage, decode_labels};
use forebay_codec::npy;
use forebay_codec::text::EmbeddingTable;
use forebay_fuzz::structure::{self, Random};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match Random::new(!seed).below(2) {
        0 => structure::mutate::<structure::Png>(data, size, max_size, seed),
        _ => structure::mutate::<structure::PngRows>(data, size, max_size, seed),
    }
});

fuzz_target!(|file: &[u8]| {
    let shared = Bytes::copy_from_slice(file);
    if let Ok(array) = npy::decode(shared.clone()) {
        let again = npy::decode(npy::encode(array.view())).expect("what was sound stays so");
        assert_eq!(again, array);
    }
    for table in [EmbeddingTable::from_npy(shared.clone()), EmbeddingTable::from_safetensors(shared, None)] {
        let Ok(table) = table else { continue };
        assert!(table.rows() * table.columns() * 4 <= file.len());
        assert_eq!(table.row(0).map(<[f32]>::len), Some(table.columns()));
    }
    let limits = Limits { max_pixels: 1 << 18, max_bytes: 1 << 24 };
    if let Ok(mask) = EncodedImage::open(file).and_then(|picture| decode_labels(&picture, &limits)) {
        assert!(mask.data().len() <= limits.max_pixels * 2);
    }
});
