//! Shards: every reader, with and without skipping damage; and a naive one, which must find the same records.
#![no_main]

use forebay_fuzz::{naive, structure};
use forebay_record::{Index, OnDamage, Options, Origin, Reader, parse_frame, parse_indexed};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

const RECORD_BYTES_MAX: u64 = 1 << 20;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::TfRecord>(data, size, max_size, seed)
});

fuzz_target!(|shard: &[u8]| {
    let naive = naive::tfrecords(shard, RECORD_BYTES_MAX);
    let (ours, whole, compressed) = read(shard, OnDamage::Fail);
    if !compressed {
        assert!(ours.iter().map(|(data, _)| &**data).eq(naive.0.iter().copied()) && whole == naive.1);
    }
    let (kept, _, _) = read(shard, OnDamage::Skip);
    assert!(kept.starts_with(&ours), "skipping damage loses nothing that comes before it");

    let block = bytes::Bytes::copy_from_slice(shard);
    let origin = Origin { shard: "shard", record: 0, offset: 0 };
    let mut position = 0;
    let mut frames = Vec::new();
    while let Ok(Some((record, next))) = parse_frame(&block, position, origin) {
        assert!(next > position);
        position = next;
        frames.push(record);
    }
    assert!(frames.starts_with(&naive.0.iter().map(|record| bytes::Bytes::copy_from_slice(record)).collect::<Vec<_>>()));
    let salvaged = Index::salvage(shard, "shard").map(|(index, _)| index);
    if let Ok(index) = Index::scan_headers(std::io::Cursor::new(shard), "shard") {
        assert_eq!(salvaged.expect("what is whole can be salvaged"), index);
        let indexed: Vec<_> =
            index.iter().map(|location| parse_indexed(&block, location, origin, true).ok()).collect();
        assert_eq!(indexed.iter().all(Option::is_some), position == shard.len());
    }
});

/// The records with their places, whether the end was reached without an error, and whether the shard is compressed.
fn read(shard: &[u8], on_damage: OnDamage) -> (Vec<(bytes::Bytes, u64)>, bool, bool) {
    let options = Options { on_damage, max_record_bytes: RECORD_BYTES_MAX, ..Options::default() };
    let Ok(mut reader) = Reader::new(shard, "shard", options) else { return (Vec::new(), false, true) };
    let compressed = reader.compression().is_some();
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!(record.data.len() as u64 <= RECORD_BYTES_MAX);
                records.push((record.data, record.location.offset));
            }
            Ok(None) => return (records, reader.report().is_empty(), compressed),
            Err(_) => return (records, false, compressed),
        }
    }
}
