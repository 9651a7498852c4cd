//! Links and files of others in an output folder: nothing outside the folder changes, and nothing in it that is not ours.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use forebay_codec::image::{Depth, Encoding, Format};
use forebay_engine::build::{BuildOptions, BuildReport};
use forebay_engine::convert::{Conversion, ConvertOptions};
use forebay_engine::data::Dataset;
use forebay_engine::export::export_tar;
use forebay_engine::load::OnError;

use crate::support::{FailsAfter, SMALL, build, built, local, options, photos, pipeline};

/// A folder of somebody's files, and what is in it.
struct Elsewhere {
    folder: tempfile::TempDir,
    content: BTreeMap<PathBuf, Vec<u8>>,
}

impl Elsewhere {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["build.json", "shard-00000.json", "precious.txt", "lock", "shard-00001.tfrecord"] {
            fs::write(folder.path().join(name), format!("{name} of somebody")).unwrap();
        }
        Self { content: content(folder.path()), folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    fn assert_unchanged(&self) {
        assert_eq!(content(self.folder.path()), self.content);
    }
}

fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// As if killed in the middle of a build of four shards: one is done, one is half done.
fn unfinished(output: &Path) {
    let photos = photos(20);
    let failing = Arc::new(FailsAfter { inner: local(), reads_left: AtomicU64::new(8) });
    let options = BuildOptions { threads: 1, ..options(4) };
    build(&pipeline(SMALL), "resized", photos.path(), failing).run(output, &options, &()).unwrap_err();
}

fn run(output: &Path, shards: usize, overwrite: bool) -> Result<BuildReport, String> {
    let photos = photos(20);
    let options = BuildOptions { overwrite, ..options(shards) };
    let build = build(&pipeline(SMALL), "resized", photos.path(), local());
    build.run(output, &options, &()).map_err(|error| error.to_string())
}

#[test]
fn a_journal_that_leads_elsewhere_is_refused() {
    let elsewhere = Elsewhere::new();
    for overwrite in [false, true] {
        let output = tempfile::tempdir().unwrap();
        symlink(elsewhere.folder.path(), output.path().join(".forebay-build")).unwrap();
        let error = run(output.path(), 4, overwrite).unwrap_err();
        assert!(error.contains(".forebay-build") && error.contains("symbolic link"), "{error}");
        elsewhere.assert_unchanged();
    }
}

#[test]
fn links_in_place_of_what_a_build_writes_are_replaced_or_refused() {
    let names = [
        "shard-00000.tfrecord.partial",
        "shard-00001.tfrecord",
        "shard-00002.tfrecord.idx",
        "shard-00003.tfrecord.idx.partial",
        "dataset.json.partial",
        ".forebay-build/build.json.partial",
        ".forebay-build/shard-00000.json.partial",
    ];
    for name in names {
        let elsewhere = Elsewhere::new();
        let output = tempfile::tempdir().unwrap();
        unfinished(output.path());
        fs::remove_file(output.path().join(name)).unwrap_or_default();
        symlink(elsewhere.at("precious.txt"), output.path().join(name)).unwrap();
        let done = run(output.path(), 4, true);
        elsewhere.assert_unchanged();
        match done {
            Ok(_) => {
                Dataset::open(output.path()).unwrap();
                assert!(!output.path().join(name).is_symlink(), "{name}");
            }
            Err(error) => {
                assert!(
                    error.contains("not part of a build") || error.contains("no build of Forebay"),
                    "{name}: {error}"
                );
            }
        }
    }
    let elsewhere = Elsewhere::new();
    let output = tempfile::tempdir().unwrap();
    fs::create_dir(output.path().join(".forebay-build")).unwrap();
    symlink(elsewhere.at("lock"), output.path().join(".forebay-build/lock")).unwrap();
    assert!(run(output.path(), 4, true).is_err());
    elsewhere.assert_unchanged();
}

#[test]
fn overwriting_replaces_what_is_provably_ours_and_nothing_else() {
    // A manifest of something else.
    let output = tempfile::tempdir().unwrap();
    fs::write(output.path().join("dataset.json"), r#"{"name": "my thesis", "files": 3}"#).unwrap();
    fs::write(output.path().join("shard-00000.tfrecord"), "mine").unwrap();
    let before = content(output.path());
    for overwrite in [false, true] {
        let error = run(output.path(), 4, overwrite).unwrap_err();
        assert!(error.contains("no build of Forebay wrote"), "{error}");
        assert_eq!(content(output.path()), before);
    }
    // Shards that nobody claims.
    fs::remove_file(output.path().join("dataset.json")).unwrap();
    for overwrite in [false, true] {
        assert!(run(output.path(), 4, overwrite).unwrap_err().contains("other files"));
    }
    assert_eq!(fs::read(output.path().join("shard-00000.tfrecord")).unwrap(), b"mine");
    // A data set of ours, with somebody's files among it.
    let output = tempfile::tempdir().unwrap();
    run(output.path(), 4, false).unwrap();
    for name in ["shard-00009.tfrecord", "shard-00001.tfrecord.bak", "notes.txt"] {
        fs::write(output.path().join(name), "mine").unwrap();
    }
    let before = content(output.path());
    let error = run(output.path(), 10, true).unwrap_err();
    assert!(error.contains("shard-00009.tfrecord` is in the way"), "{error}");
    assert_eq!(content(output.path()), before);
    run(output.path(), 2, true).unwrap();
    let left: Vec<String> =
        content(output.path()).keys().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for name in ["shard-00009.tfrecord", "shard-00001.tfrecord.bak", "notes.txt"] {
        assert_eq!(fs::read(output.path().join(name)).unwrap(), b"mine", "{name}");
    }
    assert!(!left.iter().any(|name| name.starts_with("shard-00002") || name.starts_with("shard-00003")), "{left:?}");
    // One that is damaged is still ours; a strange file in the journal is not.
    let text = fs::read_to_string(output.path().join("dataset.json")).unwrap();
    fs::write(output.path().join("dataset.json"), text.replace("\"version\": 2", "\"version\": !")).unwrap();
    run(output.path(), 2, true).unwrap();
    // Where it no longer names its shards, nobody knows whose they are.
    fs::write(output.path().join("dataset.json"), &text[..80]).unwrap();
    assert!(run(output.path(), 2, true).unwrap_err().contains("is in the way"));
    fs::write(output.path().join("dataset.json"), &text).unwrap();
    fs::create_dir(output.path().join(".forebay-build")).unwrap();
    fs::write(output.path().join(".forebay-build/thesis.txt"), "mine").unwrap();
    assert!(run(output.path(), 4, true).unwrap_err().contains("thesis.txt"));
    assert_eq!(fs::read(output.path().join(".forebay-build/thesis.txt")).unwrap(), b"mine");
    // Nor is one that is only called like a note.
    fs::rename(output.path().join(".forebay-build/thesis.txt"), output.path().join(".forebay-build/thesis.json"))
        .unwrap();
    assert!(run(output.path(), 4, true).unwrap_err().contains("thesis.json"));
    assert_eq!(fs::read(output.path().join(".forebay-build/thesis.json")).unwrap(), b"mine");
}

#[test]
fn a_kill_while_clearing_away_leaves_nothing_behind() {
    let output = tempfile::tempdir().unwrap();
    run(output.path(), 4, false).unwrap();
    let whole = content(output.path());
    // As if killed between the manifest and the shards of what is replaced.
    run(output.path(), 2, true).unwrap();
    let journal = output.path().join(".forebay-build");
    fs::create_dir(&journal).unwrap();
    for (path, bytes) in &whole {
        fs::write(path, bytes).unwrap();
    }
    fs::remove_file(output.path().join("dataset.json")).unwrap();
    let named: Vec<String> = (0..4).map(|shard| format!("shard-{shard:05}.tfrecord")).collect();
    let named: Vec<String> = named.iter().flat_map(|name| [name.clone(), format!("{name}.idx")]).collect();
    fs::write(journal.join("replaced.json"), format!("{named:?}")).unwrap();
    run(output.path(), 2, true).unwrap();
    let files = content(output.path());
    assert!(!files.keys().any(|path| path.to_string_lossy().contains("shard-00003")), "{:?}", files.keys());
}

#[test]
fn conversion_and_export_follow_no_links_below_the_folder() {
    let photos = photos(6);
    let elsewhere = Elsewhere::new();
    let convert = |output: &Path| {
        let conversion = Conversion::of_folder(photos.path(), output, Format::Qoi).unwrap();
        let options = ConvertOptions {
            memory_bytes: 1 << 30,
            encoding: Encoding::Qoi,
            depth: Depth::AsStored,
            verify: false,
            overwrite: true,
            threads: 1,
            on_error: OnError::Fail,
        };
        conversion.run(&options, &())
    };
    let output = tempfile::tempdir().unwrap();
    symlink(elsewhere.folder.path(), output.path().join("ant")).unwrap();
    let error = convert(output.path()).unwrap_err().to_string();
    assert!(error.contains("symbolic link") && error.contains("ant"), "{error}");
    elsewhere.assert_unchanged();
    let output = tempfile::tempdir().unwrap();
    fs::create_dir(output.path().join("ant")).unwrap();
    symlink(elsewhere.at("precious.txt"), output.path().join("ant/0000.qoi.partial")).unwrap();
    symlink(elsewhere.at("lock"), output.path().join("ant/0003.qoi")).unwrap();
    assert_eq!(convert(output.path()).unwrap().converted, 6);
    elsewhere.assert_unchanged();

    let (_folder, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let output = tempfile::tempdir().unwrap();
    symlink(elsewhere.at("precious.txt"), output.path().join("shard-000000.tar.partial")).unwrap();
    let exported = export_tar(&Arc::clone(&dataset), &local(), output.path(), 2, 1 << 30, &()).unwrap();
    assert_eq!(exported.files.len(), 2);
    elsewhere.assert_unchanged();
}

#[test]
fn a_part_of_an_export_is_never_taken_for_all_of_it() {
    let photos = photos(20);
    let (folder, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 4);
    // The last shard cannot be read.
    let shard = folder.path().join("shard-00003.tfrecord");
    let mut bytes = fs::read(&shard).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let output = tempfile::tempdir().unwrap();
    assert!(export_tar(&dataset, &local(), output.path(), 1, 1 << 30, &()).is_err());
    assert!(fs::read_dir(output.path()).unwrap().next().is_none());
}
