//! Index files.
#![no_main]

use forebay_record::Index;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(index) = Index::parse(text, "shard.idx") {
        let again = Index::parse(index.to_text().as_bytes(), "shard.idx").expect("what was sound stays so");
        assert_eq!(again.entries(), index.entries());
        let _ = index.check_within(1 << 20, "shard");
    }
});
