//! Building: whole or not at all, and the same to the byte after an interruption.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use forebay_engine::build::{Build, BuildOptions, default_shards};
use forebay_engine::data::{Dataset, Listing};
use forebay_engine::load::OnError;
use forebay_pipeline::{Pipeline, Strategy};

use crate::support::{FailsAfter, SMALL, TILES, build, local, options, photo, photos, pipeline, resealed};

/// Every file of a folder and its content.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect()
}

#[test]
fn an_interrupted_build_goes_on_and_gives_the_same_bytes() {
    let photos = photos(50);
    for (toml, split) in [(SMALL, "resized"), (TILES, "tiled"), (SMALL, "concatenated"), (SMALL, "decoded+png")] {
        let pipeline = pipeline(toml);
        let whole = tempfile::tempdir().unwrap();
        build(&pipeline, split, photos.path(), local()).run(whole.path(), &options(8), &()).unwrap();
        let expected = content(whole.path());
        assert_eq!(expected.len(), 8 * 3 + 1, "shards, indexes, checksums, manifest: {:?}", expected.keys());
        for reads in [0, 1, 13, 30, 49] {
            let output = tempfile::tempdir().unwrap();
            let failing = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(reads) });
            let error = build(&pipeline, split, photos.path(), failing).run(output.path(), &options(8), &());
            assert!(error.is_err());
            assert!(Dataset::open(output.path()).is_err(), "there is no manifest before the end");
            let left = content_of_shards(output.path());
            assert!(!left.keys().any(|name| name.contains("partial")), "{:?}", left.keys());
            let report = build(&pipeline, split, photos.path(), local()).run(output.path(), &options(8), &()).unwrap();
            assert_eq!(report.shards_reused, left.len() / 3);
            assert!(content(output.path()) == expected, "{split} after {reads} reads");
        }
    }
}

fn content_of_shards(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), Vec::new())).collect()
}

#[test]
fn a_finished_build_is_not_done_again() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let first = build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap();
    assert_eq!(first.shards_reused, 0);
    let again = build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap();
    assert_eq!((again.shards_reused, again.manifest), (4, first.manifest));

    // Killed right after the manifest was written: the journal is still there.
    let whole = content(output.path());
    let journal = output.path().join(".forebay-build");
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(journal.join("build.json"), "{}").unwrap();
    build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap();
    assert!(!journal.exists() && content(output.path()) == whole);
}

#[test]
fn a_folder_with_something_else_is_left_alone() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let run = |split: &str, overwrite| {
        let options = BuildOptions { overwrite, ..options(4) };
        build(&pipeline, split, photos.path(), local()).run(output.path(), &options, &())
    };
    run("resized", false).unwrap();
    let error = run("decoded", false).unwrap_err().to_string();
    assert!(error.contains("another data set") && error.contains("--overwrite"), "{error}");
    let report = run("decoded", true).unwrap();
    assert_eq!(report.manifest.strategy.to_string(), "decoded");

    let other = tempfile::tempdir().unwrap();
    std::fs::write(other.path().join("thesis.txt"), "mine").unwrap();
    let error = build(&pipeline, "resized", photos.path(), local()).run(other.path(), &options(4), &()).unwrap_err();
    assert!(error.to_string().contains("other files"), "{error}");
}

#[test]
fn overwriting_keeps_what_is_not_ours_and_survives_a_kill() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let run = |split: &str, overwrite| {
        let options = BuildOptions { overwrite, ..options(4) };
        build(&pipeline, split, photos.path(), local()).run(output.path(), &options, &())
    };
    run("resized", false).unwrap();
    std::fs::write(output.path().join("NOTES.txt"), "mine").unwrap();
    run("decoded", true).unwrap();
    assert_eq!(std::fs::read_to_string(output.path().join("NOTES.txt")).unwrap(), "mine");
    assert_eq!(Dataset::open(output.path()).unwrap().manifest().strategy.to_string(), "decoded");

    // Killed while it cleared away: the manifest is gone, shards are left, and the journal says so.
    let journal = output.path().join(".forebay-build");
    std::fs::create_dir(&journal).unwrap();
    std::fs::remove_file(output.path().join("dataset.json")).unwrap();
    let shards: Vec<String> = content_of_shards(output.path()).into_keys().filter(|name| name != "NOTES.txt").collect();
    std::fs::write(journal.join("replaced.json"), format!("{shards:?}")).unwrap();
    let report = run("resized", true).unwrap();
    assert_eq!((report.shards_reused, report.manifest.samples), (0, 20));
}

#[test]
fn two_builds_never_share_a_folder() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let folder = output.path().join(".forebay-build");
    std::fs::create_dir(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.try_lock().unwrap();
    let run = || build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &());
    let error = run().unwrap_err().to_string();
    assert!(error.contains("another build is running"), "{error}");
    drop(lock);
    run().unwrap();
}

#[test]
fn a_build_that_failed_goes_on_when_told_to_skip() {
    let photos = photos(20);
    std::fs::write(photos.path().join("bee/empty.jpg"), "").unwrap();
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let run = |on_error| {
        let options = BuildOptions { on_error, ..options(4) };
        build(&pipeline, "decoded", photos.path(), local()).run(output.path(), &options, &())
    };
    run(OnError::Fail).unwrap_err();
    let report = run(OnError::Skip).unwrap();
    assert_eq!((report.manifest.samples, report.manifest.skipped_samples.len()), (20, 1));
    let error = run(OnError::Fail).unwrap_err().to_string();
    assert!(error.contains("1 samples skipped"), "{error}");
}

#[test]
fn a_changed_picture_of_the_same_size_is_seen() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap();
    let path = photos.path().join("ant/0000.jpg");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
    let error = build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap_err();
    assert!(error.to_string().contains("another data set"), "{error}");
}

#[test]
fn a_changed_source_is_another_build() {
    let photos = photos(20);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let failing = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(10) });
    build(&pipeline, "resized", photos.path(), failing).run(output.path(), &options(4), &()).unwrap_err();
    std::fs::write(photos.path().join("ant/new.jpg"), photo(77)).unwrap();
    let error = build(&pipeline, "resized", photos.path(), local()).run(output.path(), &options(4), &()).unwrap_err();
    let expected = "an unfinished build of something else: source files that were added, removed or changed";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn damaged_samples_are_named_or_skipped_and_listed() {
    let photos = photos(20);
    std::fs::write(photos.path().join("bee/empty.jpg"), "").unwrap();
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let error = build(&pipeline, "decoded", photos.path(), local()).run(output.path(), &options(4), &()).unwrap_err();
    assert!(error.to_string().contains("sample `bee/empty.jpg`: step `decode`"), "{error}");
    let output = tempfile::tempdir().unwrap();
    let skip = BuildOptions { on_error: OnError::Skip, ..options(4) };
    let report = build(&pipeline, "decoded", photos.path(), local()).run(output.path(), &skip, &()).unwrap();
    assert_eq!((report.manifest.samples, report.manifest.skipped_samples.len()), (20, 1));
    assert_eq!(report.manifest.skipped_samples[0].key, "bee/empty.jpg");
}

#[test]
fn what_cannot_be_built_is_refused() {
    let photos = photos(5);
    let pipeline = pipeline(SMALL);
    let output = tempfile::tempdir().unwrap();
    let run = |split: &str, shards| {
        build(&pipeline, split, photos.path(), local())
            .run(output.path(), &options(shards), &())
            .unwrap_err()
            .to_string()
    };
    assert!(run("unprocessed", 1).contains("nothing to build"));
    assert!(run("resized", 6).contains("no shard can be empty"));
    assert!(run("resized", 0).contains("at least 1"));
}

#[test]
fn a_damaged_data_set_says_what_is_wrong() {
    let photos = photos(20);
    let output = tempfile::tempdir().unwrap();
    build(&pipeline(SMALL), "resized", photos.path(), local()).run(output.path(), &options(2), &()).unwrap();
    let manifest = output.path().join("dataset.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let error = |text: &str| {
        std::fs::write(&manifest, text).unwrap();
        Dataset::open(output.path()).unwrap_err().to_string()
    };
    assert!(error("{").contains("does not begin with its checksum"));
    let edited = error(&text.replace("\"samples\": 20", "\"samples\": 21"));
    assert!(edited.contains("it was damaged or edited") && edited.contains("hint: restore it"), "{edited}");
    let other = error(&text.replace("\"version\": 2", "\"version\": 1"));
    assert!(other.contains("version 1, but this Forebay reads `forebay-dataset` version 2"), "{other}");
    // Not edited, but written so.
    let sealed = |from: &str, to: &str| error(&resealed(&text.replace(from, to)));
    assert!(sealed("\"samples\": 20", "\"samples\": 21").contains("says 21 samples"));
    assert!(sealed("shard-00001.tfrecord", "shard-00000.tfrecord").contains("a shard twice"));
    assert!(sealed("shard-00001.tfrecord", "../shard-00001.tfrecord").contains("outside its folder"));
    assert!(sealed("shard-00001.tfrecord", "shard-00009.tfrecord").contains("shard-00009"));
    std::fs::write(&manifest, &text).unwrap();
    let dataset = Dataset::open(output.path()).unwrap();
    std::fs::write(output.path().join("shard-00001.tfrecord.idx"), "0 20\n").unwrap();
    assert!(dataset.index(1).unwrap_err().to_string().contains("but the manifest says"));
    std::fs::write(output.path().join("shard-00000.tfrecord"), "short").unwrap();
    let error = Dataset::open(output.path()).unwrap_err().to_string();
    assert!(error.contains("has 5 bytes, but the manifest says"), "{error}");
    let empty = tempfile::tempdir().unwrap();
    assert!(Dataset::open(empty.path()).unwrap_err().to_string().contains("is not a data set"));
}

#[test]
fn shards_suit_samples_and_threads() {
    assert_eq!(default_shards(1, 8, None), 1);
    assert_eq!(default_shards(100, 2, None), 7);
    assert_eq!(default_shards(1_000_000, 2, None), 8);
    assert_eq!(default_shards(1_000_000, 2, Some(1_000.0)), 8);
    assert_eq!(default_shards(1_000, 4, Some(1_000.0)), 4);
    assert_eq!(default_shards(3, 4, Some(1_000.0)), 3);
    let photos = photos(3);
    let listing = Listing::scan(pipeline(SMALL).source(), photos.path()).unwrap();
    assert_eq!(listing.len(), 3);
}

#[test]
fn a_missing_vocabulary_is_reported_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("page.html"), "<p>words</p>").unwrap();
    let text = "name = \"t\"\n[source]\nfiles = \"*.html\"\nfield = \"page\"\nlabel = \"none\"\n[[step]]\nop = \"extract_text\"\n\
                [[step]]\nop = \"tokenize\"\ntokenizer = \"nowhere.tiktoken\"\n";
    let pipeline = Pipeline::from_toml("t", text).unwrap();
    let listing = Arc::new(Listing::scan(pipeline.source(), folder.path()).unwrap());
    let strategy = Strategy::parse(&pipeline, "concatenated").unwrap();
    let storage = local();
    let options = BuildOptions { threads: 1, shards: 1, ..options(1) };
    let output = folder.path().join("set");
    let error = Build { pipeline, strategy, listing, storage }.run(&output, &options, &()).unwrap_err().to_string();
    assert!(error.contains("nowhere.tiktoken") && error.contains("tokenize"), "{error}");
    assert!(!output.exists());
}
