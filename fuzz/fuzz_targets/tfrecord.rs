//! Shards: every reader, with and without skipping damage.
#![no_main]

use forebay_record::{OnDamage, Options, Origin, Reader, parse_frame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|shard: &[u8]| {
    for on_damage in [OnDamage::Fail, OnDamage::Skip] {
        let options = Options { on_damage, record_bytes_max: 1 << 20, ..Options::default() };
        if let Ok(mut reader) = Reader::new(shard, "shard", options) {
            while let Ok(Some(record)) = reader.next_record() {
                assert!(record.data.len() <= 1 << 20);
            }
        }
    }
    let block = bytes::Bytes::copy_from_slice(shard);
    let mut position = 0;
    while let Ok(Some((_, next))) = parse_frame(&block, position, Origin { shard: "shard", record: 0, offset: 0 }) {
        assert!(next > position);
        position = next;
    }
});
