//! Pipeline files.
#![no_main]

use forebay_pipeline::Pipeline;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(pipeline) = Pipeline::from_toml("fuzz", text) {
        let spec = pipeline.to_spec().expect("it came from one");
        Pipeline::from_spec(&spec).expect("what was sound stays so");
        assert!(pipeline.splits().len() >= 2);
    }
});
