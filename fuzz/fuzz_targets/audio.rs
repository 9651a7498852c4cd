//! Audio: FLAC and MP3, complete and partial, and at another rate.
#![no_main]

use forebay_codec::audio::{AudioOptions, Mix, Resampler, decode, inspect};
use forebay_fuzz::structure;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const SAMPLES_MAX: usize = 1 << 20;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::Flac>(data, size, max_size, seed)
});

fuzz_target!(
    init: {
        // The FLAC decoder's own panics are caught, and become errors: only those that come out here are finds.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    },
    |file: &[u8]| {
        let mut whole = Vec::new();
        let mut part = Vec::new();
        let options = AudioOptions { max_samples: SAMPLES_MAX, ..AudioOptions::default() };
        let decoded = decode(file, &options, &mut whole);
        let header = inspect(file);
        assert!(decoded.is_err() || header.is_ok(), "what can be decoded has a header");
        assert!(whole.len() <= SAMPLES_MAX);
        let options = AudioOptions { mix: Mix::AsStored, allow_truncated: true, ..options };
        let partly = decode(file, &options, &mut part);
        if let Ok(info) = decoded {
            let partly = partly.expect("what is whole is so in part, too");
            assert!(!partly.partial && part.len() == whole.len() * info.stored_channels);
            // Not of a rate that has nothing in common with this one: the weights alone would take the time.
            if info.rate_hz.is_multiple_of(50)
                && let Ok(resampler) = Resampler::new(info.rate_hz, 16_000)
            {
                let _ = resampler.run(&mut part, info.stored_channels, SAMPLES_MAX, &mut Vec::new());
                assert!(part.len() <= 8 * SAMPLES_MAX);
            }
        }
    }
);
