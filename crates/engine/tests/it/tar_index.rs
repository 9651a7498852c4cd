//! Tars with the index of DALI beside them: found by it as without it, and never a wrong sample where it is another's.

use std::path::Path;
use std::sync::Arc;

use forebay_engine::data::{Dataset, Listing, SourceReader};
use forebay_engine::export::export_tar;
use forebay_engine::load::{LoadOptions, OnError};
use forebay_engine::source::Files;
use forebay_pipeline::Pipeline;
use forebay_record::{TarIndex, TarWriter};
use tempfile::TempDir;

use crate::support::{SMALL, build, list, local, options, photos, pipeline, start};

const TARS: &str = r#"
name = "tars"
[source]
format = "tar"
order = "sorted"
[[source.fields]]
field = "image"
from = "bin"
[[source.fields]]
field = "label"
from = "cls"
type = "int"
"#;

/// A tar of samples by their keys, each with so many bytes, and its index.
fn tar_of(keys: &[&str], bytes: impl Fn(usize) -> usize) -> (Vec<u8>, String) {
    let (mut tar, mut index) = (TarWriter::new(Vec::new()), TarIndex::new());
    for (number, key) in keys.iter().enumerate() {
        let content = vec![number as u8; bytes(number)];
        let label = number.to_string();
        for (member, content) in [("bin", &content[..]), ("cls", label.as_bytes())] {
            let offset = tar.write(key, member, content).unwrap();
            index.add(key, member, offset, content.len() as u64);
        }
    }
    (tar.finish().unwrap(), index.into_text().unwrap())
}

const KEYS: [&str; 5] = ["a/1", "a/2", "b/1", "b/2", "c"];

/// A folder with `0.tar`, and beside it an index or none.
fn folder_with(tar: &[u8], index: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("0.tar"), tar).unwrap();
    if let Some(index) = index {
        std::fs::write(folder.path().join("0.idx"), index).unwrap();
    }
    folder
}

/// Everything about the samples of a listing but which version of their tar it was.
fn samples_of(pipeline: &Pipeline, folder: &Path) -> Vec<String> {
    let listing = list(pipeline, folder);
    let reader = SourceReader::new(Arc::clone(&listing), local());
    let runs = format!("{:?}", listing.runs(3000));
    let sample = |(number, entry): (usize, &forebay_engine::data::Entry)| {
        format!("{} {} {:?}", entry.key, entry.bytes, reader.sample(number).unwrap().fields)
    };
    std::iter::once(runs).chain(listing.entries().iter().enumerate().map(sample)).collect()
}

#[test]
fn the_same_samples_are_found_with_an_index_and_without() {
    let pipeline = pipeline(TARS);
    let long = "folder/".repeat(30) + "name";
    let (tar, index) = tar_of(&["a/1", &long, "b", "c"], |number| number * 700);
    let plain = folder_with(&tar, None);
    let indexed = folder_with(&tar, Some(&index));
    let expected = samples_of(&pipeline, plain.path());
    assert_eq!(expected.len(), 5);
    assert_eq!(samples_of(&pipeline, indexed.path()), expected);
    // The index was used: what is damaged in the middle is not seen without going there.
    let mut damaged = tar;
    let middle = index.split_whitespace().nth(11).unwrap().parse::<usize>().unwrap();
    damaged[middle - 512..middle].fill(1);
    assert!(Listing::scan(pipeline.source(), folder_with(&damaged, None).path()).is_err());
    let folder = folder_with(&damaged, Some(&index));
    let listing = list(&pipeline, folder.path());
    let reader = SourceReader::new(Arc::clone(&listing), local());
    let failed: Vec<usize> = (0..listing.len()).filter(|&number| reader.sample(number).is_err()).collect();
    assert_eq!((listing.len(), failed), (4, vec![1]), "only what is damaged");
}

#[test]
fn an_index_that_does_not_fit_is_passed_over() {
    let pipeline = pipeline(TARS);
    let (tar, index) = tar_of(&KEYS, |number| number * 600);
    let expected = samples_of(&pipeline, folder_with(&tar, None).path());
    let unfit = [
        index.replace("v1.2", "v1.1"),
        index.replace("v1.2 5", "v1.2 6"),
        index[..index.len() / 2].to_owned(),
        "0 100\n100 100\n".to_owned(),
        String::new(),
        // Of tars with other samples: fewer, more, in another order, larger ones.
        tar_of(&KEYS[..4], |number| number * 600).1,
        tar_of(&["a/1", "a/2", "b/1", "b/2", "c", "d"], |number| number * 600).1,
        tar_of(&["c", "a/2", "b/1", "b/2", "a/1"], |number| number * 600).1,
        tar_of(&KEYS, |number| number * 900).1,
    ];
    for index in unfit {
        let folder = folder_with(&tar, Some(&index));
        assert_eq!(samples_of(&pipeline, folder.path()), expected, "{index}");
    }
    // The tar has grown, was compressed, or is none.
    let more = tar_of(&["a/1", "a/2", "b/1", "b/2", "c", "d"], |number| number * 600).0;
    let grown = folder_with(&more, Some(&index));
    assert_eq!(samples_of(&pipeline, grown.path()), samples_of(&pipeline, folder_with(&more, None).path()));
    let none = folder_with(b"no tar", Some(&index));
    assert!(Listing::scan(pipeline.source(), none.path()).is_err());
}

/// What only shows where it is read is an error that says what to do, and with `on_error` skip costs that sample.
#[test]
fn no_sample_is_wrong_by_the_index_of_another_tar() {
    let pipeline = pipeline(TARS);
    let (tar, _) = tar_of(&KEYS, |_| 600);
    let others = [
        (tar_of(&["a/1", "a/3", "b/1", "b/2", "c"], |_| 600).1, 1),
        // As long as a whole, but for two in the middle.
        (tar_of(&KEYS, |number| [600, 600, 100, 1100, 600][number]).1, 2),
    ];
    for (index, wrong) in others {
        let folder = folder_with(&tar, Some(&index));
        let load = |on_error| {
            let files = Files::new(pipeline.clone(), list(&pipeline, folder.path()), local()).unwrap();
            let options = LoadOptions { batch_size: 2, threads: 1, on_error, ..LoadOptions::default() };
            let mut epoch = start(Arc::new(files), options, 0).unwrap();
            let keys: Result<Vec<_>, _> = epoch.by_ref().map(|batch| batch.map(|batch| batch.keys.clone())).collect();
            (keys.map(|keys| keys.concat().len()), epoch.skipped_samples())
        };
        let error = load(OnError::Fail).0.unwrap_err().to_string();
        assert!(error.contains("`0.tar`") && error.contains("`0.idx`") && error.contains("hint: "), "{error}");
        let (left, skipped) = load(OnError::Skip);
        assert_eq!((left.unwrap(), skipped.len()), (5 - wrong, wrong), "{skipped:?}");
    }
}

#[test]
fn an_export_has_indexes_that_fit() {
    let (photos, folder) = (photos(30), tempfile::tempdir().unwrap());
    build(&pipeline(SMALL), "resized", photos.path(), local()).run(folder.path(), &options(3), &()).unwrap();
    let dataset = Arc::new(Dataset::open(folder.path()).unwrap());
    let output = tempfile::tempdir().unwrap();
    let exported = export_tar(&dataset, &local(), output.path(), 2, 1 << 30, &()).unwrap();
    assert_eq!((exported.files.len(), exported.indexes.len()), (3, 3));
    let source = "name = \"tars\"\n[source]\nformat = \"tar\"\norder = \"sorted\"\n[[source.fields]]\nfield = \"image\"\nfrom = \"npy\"\n";
    let pipeline = pipeline(source);
    let with = samples_of(&pipeline, output.path());
    for (tar, index) in exported.files.iter().zip(&exported.indexes) {
        assert_eq!(*index, tar.with_extension("idx"));
        // Of samples of equal length, a line each, behind the version and their number.
        let text = std::fs::read_to_string(index).unwrap();
        assert!(text.starts_with("v1.2 10\n") && text.lines().count() == 11, "{text}");
        std::fs::remove_file(index).unwrap();
    }
    assert_eq!(with.len(), 31);
    assert_eq!(samples_of(&pipeline, output.path()), with);
    // No tar of others may get an index that is not its own.
    std::fs::rename(&exported.files[0], output.path().join("other.bin")).unwrap();
    exported.files[1..].iter().for_each(|tar| std::fs::remove_file(tar).unwrap());
    std::fs::write(output.path().join("shard-000000.idx"), "mine").unwrap();
    let error = export_tar(&dataset, &local(), output.path(), 2, 1 << 30, &()).unwrap_err().to_string();
    assert!(error.contains("shard-000000.idx"), "{error}");
    assert_eq!(std::fs::read(output.path().join("shard-000000.idx")).unwrap(), b"mine");
}
