//! Recordings: HDF5 by its first bytes, otherwise delimited text; and the same bytes as raw numbers.
#![no_main]

use forebay_codec::signal::{Channel, RawElement, SignalFormat, SignalOptions, inspect_hdf5, read};
use libfuzzer_sys::fuzz_target;

const SAMPLES_MAX: usize = 1 << 16;

fuzz_target!(|file: &[u8]| {
    if let Ok((found, _)) = inspect_hdf5(file.to_vec(), 100) {
        assert!(found.len() <= 100);
    }
    let named = SignalOptions { max_samples: SAMPLES_MAX, ..SignalOptions::default() };
    let numbered = SignalOptions { channels: vec![Channel::Number(0), Channel::Number(1)], ..named.clone() };
    let raw = |raw_element| SignalOptions { format: SignalFormat::Raw, raw_element, ..numbered.clone() };
    for options in [raw(RawElement::I16), raw(RawElement::F32), raw(RawElement::F64), named, numbered] {
        if let Ok(recording) = read(file, &options) {
            let samples: usize = recording.channels.iter().map(Vec::len).sum();
            assert!(samples <= SAMPLES_MAX && samples == recording.samples() * options.channels.len());
        }
    }
});
