//! Data sets whose records are compressed with a dictionary: the same bytes however they were built, and nothing without it.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_engine::build::BuildOptions;
use forebay_engine::data::{DICTIONARY_FILE, Dataset};
use forebay_engine::load::OnError;

use crate::integrity::load;
use crate::support::{SMALL, build, built, local, options, photos, pipeline};

const SPLIT: &str = "resized+zstd-3-dictionary-record";

/// Every file of a data set.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(entry).collect()
}

#[test]
fn a_dictionary_is_trained_once_and_makes_records_smaller() {
    let photos = photos(300);
    let pipeline = pipeline(SMALL);
    let (plain_folder, _) = built(&pipeline, "resized", photos.path(), 3);
    let (_, without) = built(&pipeline, "resized+zstd-3-record", photos.path(), 3);
    let (folder, with) = built(&pipeline, SPLIT, photos.path(), 3);
    assert!(with.manifest().bytes < without.manifest().bytes, "{} {}", with.manifest().bytes, without.manifest().bytes);
    assert!(with.manifest().dictionary_xxh3.is_some() && without.manifest().dictionary_xxh3.is_none());
    let expected = load(plain_folder.path(), OnError::Fail).unwrap().samples;
    assert!(load(folder.path(), OnError::Fail).unwrap().samples == expected);
    for shard in 0..3 {
        assert_eq!(with.verify_shard(shard).unwrap(), [""; 0]);
    }
    let first = content(folder.path());
    for threads in [1, 3] {
        let again = tempfile::tempdir().unwrap();
        let build = build(&pipeline, SPLIT, photos.path(), local());
        build.run(again.path(), &BuildOptions { threads, ..options(3) }, &()).unwrap();
        assert!(content(again.path()) == first, "{threads} threads");
    }
    // How many shards there are does not matter to it.
    let (other, _) = built(&pipeline, SPLIT, photos.path(), 5);
    assert_eq!(content(other.path())[DICTIONARY_FILE], first[DICTIONARY_FILE]);
    // Whoever replaces the data set replaces it, too.
    let overwrite = BuildOptions { overwrite: true, ..options(3) };
    build(&pipeline, "resized", photos.path(), local()).run(other.path(), &overwrite, &()).unwrap();
    assert!(content(other.path()) == content(plain_folder.path()));
}

#[test]
fn a_damaged_dictionary_is_named() {
    let photos = photos(60);
    let (folder, _) = built(&pipeline(SMALL), SPLIT, photos.path(), 2);
    let path = folder.path().join(DICTIONARY_FILE);
    let bytes = std::fs::read(&path).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    for damaged in [Some(&flipped[..]), Some(&bytes[..bytes.len() - 1]), None] {
        match damaged {
            Some(damaged) => std::fs::write(&path, damaged).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let error = Dataset::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(DICTIONARY_FILE), "{error}");
        let error = load(folder.path(), OnError::Skip).err().unwrap().to_string();
        assert!(error.contains(DICTIONARY_FILE) && error.contains("is needed to read any record"), "{error}");
    }
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(load(folder.path(), OnError::Skip).unwrap().samples.len(), 60);
}

#[test]
fn too_few_records_train_no_dictionary() {
    let photos = photos(2);
    let output = tempfile::tempdir().unwrap();
    let build = build(&pipeline(SMALL), SPLIT, photos.path(), local());
    let error = build.run(output.path(), &options(1), &()).unwrap_err().to_string();
    assert!(error.contains("cannot train a dictionary on 2 records"), "{error}");
    assert!(error.contains("hint: "), "{error}");
}
