//! Data sets whose records are compressed: the same samples, in any order, and damage stays where it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_engine::data::Dataset;
use forebay_engine::load::{Column, LoadOptions, OnError, Shuffle};

use crate::support::{SMALL, built, photos, pipeline, shards, start};

/// What came, by key; an error ends it.
fn load(
    dataset: &Arc<Dataset>,
    shuffle: Shuffle,
    threads: usize,
    on_error: OnError,
) -> (BTreeMap<String, Vec<u8>>, u64) {
    let options = LoadOptions { batch_size: 7, threads, on_error, shuffle, seed: 5, ..LoadOptions::default() };
    let mut loader = start(shards(dataset), options, 0).unwrap();
    let mut found = BTreeMap::new();
    for batch in loader.by_ref() {
        let batch = batch.unwrap();
        let Some(Column::Dense { data, .. }) = batch.column("image") else { panic!("pixels") };
        // A batch of which every sample was skipped is empty.
        let each = data.len() / batch.len().max(1);
        for (key, picture) in batch.keys.iter().zip(data.chunks(each.max(1))) {
            assert!(found.insert(key.to_string(), picture.to_vec()).is_none(), "{key} came twice");
        }
    }
    (found, loader.skipped())
}

#[test]
fn packed_samples_are_the_same_in_any_order() {
    let photos = photos(500);
    let pipeline = pipeline(SMALL);
    let (_plain, plain) = built(&pipeline, "decoded", photos.path(), 1);
    let (expected, _) = load(&plain, Shuffle::No, 1, OnError::Fail);
    assert_eq!(expected.len(), 500);
    for form in ["gzip", "zlib-1", "qoi+gzip"] {
        let (_output, packed) = built(&pipeline, &format!("decoded+{form}"), photos.path(), 1);
        assert!(packed.manifest().bytes < plain.manifest().bytes, "{form}");
        if form != "qoi+gzip" {
            assert!(packed.blocks(0).unwrap().unwrap().entries().len() > 1, "{form} has several blocks");
        }
        for (shuffle, threads) in
            [(Shuffle::No, 2), (Shuffle::Window { bytes: 100_000 }, 1), (Shuffle::Window { bytes: 9 << 20 }, 3)]
        {
            let (found, skipped) = load(&packed, shuffle, threads, OnError::Fail);
            assert_eq!(skipped, 0);
            assert!(found == expected, "{form} {shuffle:?} {threads}");
        }
    }
}

#[test]
fn damage_to_a_block_costs_its_own_records() {
    let photos = photos(500);
    let (output, dataset) = built(&pipeline(SMALL), "decoded+gzip", photos.path(), 1);
    let [first, rest @ ..] = dataset.blocks(0).unwrap().unwrap().entries() else { panic!("blocks") };
    assert!(!rest.is_empty());
    let lost = dataset.index(0).unwrap().iter().filter(|entry| entry.end() <= first.inflated_end()).count();
    let shard = dataset.shard_path(0);
    let mut bytes = std::fs::read(&shard).unwrap();
    // The first bytes of a block are its code lengths: nothing can be made of the rest without them.
    bytes[first.offset as usize..][..40].fill(0xff);
    std::fs::write(&shard, bytes).unwrap();
    let dataset = Arc::new(Dataset::open(output.path()).unwrap());
    let (found, skipped) = load(&dataset, Shuffle::No, 2, OnError::Skip);
    assert_eq!((found.len(), skipped as usize), (500 - lost, lost));
    std::fs::remove_file(shard.with_file_name("shard-00000.tfrecord.blocks")).unwrap();
    let dataset = Dataset::open(output.path()).unwrap();
    assert!(dataset.index(0).unwrap_err().to_string().contains(".blocks"));
}
