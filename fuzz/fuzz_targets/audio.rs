//! Sound: FLAC and MP3, whole and in part.
#![no_main]

use forebay_codec::audio::{AudioOptions, Mix, decode};
use libfuzzer_sys::fuzz_target;

const SAMPLES_MAX: usize = 1 << 20;

fuzz_target!(
    init: {
        // The FLAC decoder's own panics are caught, and become errors: only those that come out here are finds.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    },
    |file: &[u8]| {
        let mut whole = Vec::new();
        let mut part = Vec::new();
        let options = AudioOptions { samples_max: SAMPLES_MAX, ..AudioOptions::default() };
        let decoded = decode(file, &options, &mut whole);
        assert!(whole.len() <= SAMPLES_MAX);
        let options = AudioOptions { mix: Mix::AsStored, accept_partial: true, ..options };
        let partly = decode(file, &options, &mut part);
        if let Ok(info) = decoded {
            let partly = partly.expect("what is whole is so in part, too");
            assert!(!partly.partial && part.len() == whole.len() * info.stored_channels);
        }
    }
);
