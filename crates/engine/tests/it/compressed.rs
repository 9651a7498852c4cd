//! Data sets whose records are compressed: the same samples, in any order, and damage stays where it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_engine::data::Dataset;
use forebay_engine::load::{Column, LoadOptions, OnError, Shuffle};
use forebay_record::Scope;

use crate::data::data_folder;
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
    let formats = [
        "gzip",
        "zlib-1",
        "zlib-6-rle",
        "qoi+gzip",
        "zstd-3",
        "lz4",
        "lz4-hc-9",
        "snappy",
        "gzip-6-record",
        "qoi+zlib-6-huffman-only-record",
        "zstd-3-long-checksum-record",
        "lz4-fast-4-record",
        "snappy-record",
        "zlib-1-stream",
        "zstd-fast-3-stream",
    ];
    for format in formats {
        let (_output, compressed) = built(&pipeline, &format!("decoded+{format}"), photos.path(), 1);
        // Of pixels like these the fastest make nothing smaller.
        let saves = !format.starts_with("snappy") && !format.starts_with("lz4-fast");
        assert!(!saves || compressed.manifest().bytes < plain.manifest().bytes, "{format}");
        if !format.starts_with("qoi") && compressed.compression().unwrap().scope == Scope::Block {
            assert!(compressed.blocks(0).unwrap().unwrap().entries().len() > 1, "{format} has several blocks");
        }
        for (shuffle, threads) in
            [(Shuffle::No, 2), (Shuffle::Window { bytes: 100_000 }, 1), (Shuffle::Window { bytes: 9 << 20 }, 3)]
        {
            let (found, skipped) = load(&compressed, shuffle, threads, OnError::Fail);
            assert_eq!(skipped, 0);
            assert!(found == expected, "{format} {shuffle:?} {threads}");
        }
        assert_eq!(compressed.verify_shard(0).unwrap(), [""; 0], "{format}");
    }
}

#[test]
fn damage_to_a_block_costs_its_own_records() {
    let photos = photos(500);
    for format in ["gzip", "zstd-3", "lz4", "snappy"] {
        let (output, dataset) = built(&pipeline(SMALL), &format!("decoded+{format}"), photos.path(), 1);
        let [first, rest @ ..] = dataset.blocks(0).unwrap().unwrap().entries() else { panic!("blocks") };
        assert!(!rest.is_empty());
        let lost = dataset.index(0).unwrap().iter().filter(|entry| entry.end() <= first.inflated_end()).count();
        let shard = dataset.shard_path(0);
        let mut bytes = std::fs::read(&shard).unwrap();
        // A block begins with code lengths, or with a header: nothing can be made of the rest without them.
        bytes[first.offset as usize..][..40].fill(0xff);
        std::fs::write(&shard, bytes).unwrap();
        let dataset = Arc::new(Dataset::open(output.path()).unwrap());
        let (found, skipped) = load(&dataset, Shuffle::No, 2, OnError::Skip);
        assert_eq!((found.len(), skipped as usize), (500 - lost, lost), "{format}");
        assert!(!dataset.verify_shard(0).unwrap().is_empty(), "{format}");
        std::fs::remove_file(shard.with_file_name("shard-00000.tfrecord.blocks")).unwrap();
        let dataset = Dataset::open(output.path()).unwrap();
        assert!(dataset.index(0).unwrap_err().to_string().contains(".blocks"));
    }
}

#[test]
fn damage_to_a_stream_costs_what_comes_after_it() {
    let photos = photos(500);
    for format in ["gzip-1-stream", "zstd-1-stream", "lz4-stream"] {
        let (output, dataset) = built(&pipeline(SMALL), &format!("decoded+{format}"), photos.path(), 1);
        let (whole, _) = load(&dataset, Shuffle::No, 2, OnError::Fail);
        let shard = dataset.shard_path(0);
        let mut bytes = std::fs::read(&shard).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..].fill(0xff);
        std::fs::write(&shard, bytes).unwrap();
        let dataset = Arc::new(Dataset::open(output.path()).unwrap());
        let (found, skipped) = load(&dataset, Shuffle::No, 2, OnError::Skip);
        assert_eq!(found.len() + skipped as usize, 500, "{format}");
        assert!((50..450).contains(&found.len()), "{format}: {}", found.len());
        assert!(found.iter().all(|(key, picture)| whole[key] == *picture));
    }
}

#[test]
fn damage_to_a_record_costs_that_record() {
    let photos = photos(40);
    for format in ["gzip-6-record", "zlib-6-rle-record", "zstd-3-record", "lz4-record", "snappy-record"] {
        let (output, dataset) = built(&pipeline(SMALL), &format!("decoded+{format}"), photos.path(), 1);
        assert!(dataset.blocks(0).unwrap().is_none());
        let (whole, _) = load(&dataset, Shuffle::No, 2, OnError::Fail);
        let third = dataset.index(0).unwrap().get(3).unwrap();
        let shard = dataset.shard_path(0);
        let mut bytes = std::fs::read(&shard).unwrap();
        bytes[third.offset as usize + 12 + 5] ^= 0x10;
        std::fs::write(&shard, &bytes).unwrap();
        let damaged = Arc::new(Dataset::open(output.path()).unwrap());
        let (found, skipped) = load(&damaged, Shuffle::Window { bytes: 1 << 20 }, 2, OnError::Skip);
        assert_eq!((found.len(), skipped), (39, 1), "{format}");
        assert!(found.iter().all(|(key, picture)| whole[key] == *picture));
        // A frame that is sound, and whose record is not what it should inflate to: that is found, too.
        let (start, end) = (third.offset as usize + 12, third.end() as usize - 4);
        bytes[start..end].fill(0);
        let checksum = forebay_record::masked_crc32c(&bytes[start..end]).to_le_bytes();
        bytes[end..end + 4].copy_from_slice(&checksum);
        std::fs::write(&shard, &bytes).unwrap();
        let problems = damaged.verify_shard(0).unwrap().join("\n");
        assert!(problems.contains("record 3 of `shard-00000.tfrecord`"), "{format}: {problems}");
        assert!(problems.contains("the compressed record is damaged"), "{format}: {problems}");
    }
}

/// Photos of a dozen, real ones among them where there are any.
fn some_photos() -> tempfile::TempDir {
    let folder = photos(8);
    if let Some(real) = data_folder("images-jpeg") {
        let mut paths: Vec<_> = std::fs::read_dir(real).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jpg"));
        paths.sort();
        for path in paths.iter().step_by(80) {
            std::fs::copy(path, folder.path().join("ant").join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

/// Encodings of pictures and tensors, within every compression in every scope.
#[test]
fn every_encoding_goes_with_every_compression_and_scope() {
    let photos = some_photos();
    let pipeline = pipeline(SMALL);
    let pixels = ["", "l3-fast", "qoi", "delta-zstd-1", "bitpack", "rle", "sparse"];
    let floats = ["", "delta-shuffle-lz4", "pco-4", "sparse"];
    let compressions = ["gzip-1", "zlib-6-huffman-only", "zstd-fast-3-checksum", "lz4", "snappy"];
    for (split, encodings) in [("decoded", &pixels[..]), ("pixel-centered", &floats[..])] {
        let (_plain, plain) = built(&pipeline, split, photos.path(), 2);
        let (expected, _) = load(&plain, Shuffle::No, 1, OnError::Fail);
        for encoding in encodings {
            for compression in compressions {
                for scope in ["", "-record", "-stream"] {
                    let parts = [split, encoding, &format!("{compression}{scope}")];
                    let name = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("+");
                    let (_output, dataset) = built(&pipeline, &name, photos.path(), 2);
                    let (found, skipped) = load(&dataset, Shuffle::Window { bytes: 100_000 }, 2, OnError::Fail);
                    assert!(skipped == 0 && found == expected, "{name}");
                }
            }
        }
    }
}
