//! Documents that a build packs into windows.

use std::path::Path;
use std::sync::atomic::AtomicU64;

use forebay_engine::StorageChoice;
use forebay_engine::build::BuildOptions;
use forebay_engine::data::Listing;
use forebay_engine::load::{Column, LoadOptions, Shuffle};
use forebay_engine::profile::{ProfileOptions, profile};
use forebay_pipeline::{Pipeline, Strategy};
use forebay_plan::{Caching, Runs};
use tempfile::TempDir;

use crate::support::{FailsAfter, build, built, files, local, options, shards, start};

const PACKED: &str = r#"
name = "packed"
[source]
files = "*.txt"
field = "text"
label = "none"
order = "sorted"
[[step]]
op = "tokenize"
[[step]]
op = "pack"
max_length = 16
"#;

fn pipeline(lines: &str) -> Pipeline {
    Pipeline::from_toml("packed", &format!("{PACKED}{lines}")).unwrap()
}

/// Texts of different lengths, of letters that tell them apart.
fn texts(count: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..count {
        let letter = char::from(b'a' + (number % 26) as u8);
        let text: String = std::iter::repeat_n(letter, number * 7 % 23).collect();
        std::fs::write(folder.path().join(format!("{number:03}.txt")), text).unwrap();
    }
    folder
}

fn bytes_of(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "tfrecord"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn windows_do_not_depend_on_threads_or_interruptions() {
    let folder = texts(40);
    for lines in ["", "packing_strategy = \"bfd\""] {
        let pipeline = pipeline(lines);
        let (output, _) = built(&pipeline, "packed", folder.path(), 3);
        let expected = bytes_of(output.path());
        assert_eq!(expected.len(), 3);
        let other = tempfile::tempdir().unwrap();
        let failing = FailsAfter { inner: local(), reads_left: AtomicU64::new(30) };
        let one_thread = BuildOptions { threads: 1, ..options(3) };
        let interrupted = build(&pipeline, "packed", folder.path(), std::sync::Arc::new(failing));
        interrupted.run(other.path(), &one_thread, &()).unwrap_err();
        let report = build(&pipeline, "packed", folder.path(), local()).run(other.path(), &one_thread, &()).unwrap();
        assert!(report.shards_reused > 0, "{report:?}");
        assert_eq!(bytes_of(other.path()), expected, "{lines}");
    }
}

#[test]
fn windows_have_every_token_and_come_in_batches() {
    let folder = texts(40);
    let (_output, dataset) = built(&pipeline(""), "packed", folder.path(), 3);
    let load = |shuffle| {
        let options = LoadOptions { batch_size: 4, threads: 2, shuffle, ..LoadOptions::default() };
        let mut tokens = Vec::new();
        for batch in start(shards(&dataset), options, 0).unwrap() {
            let batch = batch.unwrap();
            let Some(Column::Dense { spec, data }) = batch.column("text") else { panic!("no windows") };
            assert_eq!(spec.shape.dims(), [16]);
            tokens.extend(data.as_chunks::<4>().0.iter().map(|token| i32::from_le_bytes(*token)));
        }
        tokens
    };
    let mut expected: Vec<i32> =
        (0..40).flat_map(|number| vec![97 + number % 26; (number as usize * 7) % 23]).collect();
    let mut found: Vec<i32> = load(Shuffle::No).into_iter().filter(|token| *token != 0).collect();
    assert_eq!(found, expected, "in the order of the documents");
    let shuffled = load(Shuffle::Window { bytes: 1 << 20 });
    found = shuffled.into_iter().filter(|token| *token != 0).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn what_crosses_samples_is_not_done_while_loading() {
    let folder = texts(5);
    let started = start(files(&pipeline(""), folder.path()), LoadOptions::default(), 0);
    let error = started.err().unwrap().to_string();
    assert!(error.contains("step `pack` works on the samples of a whole shard"), "{error}");
    assert!(error.contains("--strategy packed"), "{error}");
    assert!(Strategy::parse(&pipeline(""), "bpe-encoded").is_err());
}

#[test]
fn a_profile_measures_what_is_packed() {
    let folder = texts(40);
    let pipeline = pipeline("[[step]]\nop = \"to_dtype\"\ndtype = \"int64\"");
    let work = tempfile::tempdir().unwrap();
    let options = ProfileOptions {
        sample_count: 40,
        run_seconds: 0.0,
        runs: Runs::None,
        threads: 1,
        shards: 2,
        batch_size: 4,
        caching: Caching::None,
        shuffle: Shuffle::No,
        seed: 1,
        on_error: forebay_engine::load::OnError::Fail,
        work_folder: work.path().to_owned(),
        strategies: Strategy::all(&pipeline, &[]),
        compressions: Vec::new(),
        memory_bytes: 1 << 30,
    };
    let listing = Listing::scan(pipeline.source(), folder.path()).unwrap();
    let found = profile(&pipeline, listing, &StorageChoice::Local, &options, &()).unwrap();
    let names: Vec<&str> = found.strategies.iter().map(|strategy| strategy.name.as_str()).collect();
    assert_eq!(names, ["packed", "converted"]);
}
