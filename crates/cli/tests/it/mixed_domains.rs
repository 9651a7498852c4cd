//! Mixes of other data than pictures: sound, text and tokens, signals, arrays. From a profile over the mix to five epochs of it.

use std::path::Path;
use std::sync::Arc;

use forebay_engine::StorageChoice;
use forebay_engine::data::ListingOptions;
use forebay_engine::load::{Batch, CachePolicy, Column, LoadOptions, Loader, OnError, Shuffle};
use forebay_engine::source::{Files, Source, open_dataset};
use forebay_pipeline::{Pipeline, preset};

use crate::support::{forebay, keys};

/// A domain: how many files of it, a pipeline where it is not the preset, and the formats of a mix.
struct Mixed {
    domain: &'static str,
    files: u64,
    pipeline: Option<&'static str>,
    formats: &'static [(&'static str, f64)],
}

const MIXES: [Mixed; 5] = [
    // The FLAC files as they are, the sound, and its spectrogram in float32.
    Mixed {
        domain: "flac",
        files: 18,
        pipeline: None,
        formats: &[("concatenated", 0.4), ("decoded", 0.2), ("spectrogram-encoded", 0.4)],
    },
    // Pages, their text, and its tokens.
    Mixed {
        domain: "nlp",
        files: 20,
        pipeline: None,
        formats: &[("concatenated", 0.3), ("decoded", 0.3), ("bpe-encoded", 0.4)],
    },
    // Recordings as they are and as numbers, whole and aggregated.
    Mixed {
        domain: "nilm",
        files: 10,
        pipeline: Some(
            "name = \"recordings\"\n[source]\nfiles = \"**/*.hdf5\"\nfield = \"signal\"\nlabel = \"none\"\n\
             [[step]]\nop = \"decode_signal\"\n[[step]]\nop = \"aggregate_signal\"\n",
        ),
        formats: &[("concatenated", 0.3), ("decoded", 0.2), ("aggregated", 0.5)],
    },
    // Windows of recordings: many samples of each file, which is kept whole in two formats.
    Mixed { domain: "nilm", files: 8, pipeline: None, formats: &[("concatenated", 0.5), ("concatenated+zstd-3", 0.5)] },
    Mixed {
        domain: "synthetic --sample-bytes 20KB",
        files: 40,
        pipeline: None,
        formats: &[("decoded+pco-8", 0.5), ("decoded", 0.25), ("aggregated", 0.25)],
    },
];

#[test]
fn any_data_can_be_mixed() {
    for mixed in &MIXES {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let made = format!("demo --domain {} --samples {} --data-only --folder . --json", mixed.domain, mixed.files);
        let made = forebay(here, &made).json();
        let (data, pipeline) = (made["data"]["folder"].as_str().unwrap(), made["data"]["pipeline"].as_str().unwrap());
        let pipeline = match mixed.pipeline {
            Some(text) => {
                std::fs::write(here.join("own.toml"), text).unwrap();
                "own.toml"
            }
            None => pipeline,
        };
        choose(here, pipeline, data, mixed);
        let shares: Vec<String> = mixed.formats.iter().map(|(name, share)| format!("{name}={share}")).collect();
        let build = format!("build {pipeline} --data {data} --mix {} --seed 3 -o mix --shards 8", shares.join(","));
        forebay(here, &build).text();
        let loaded = "load mix --shuffle --batch-size 3 --epochs 2 --cache liquid:2MB --shuffle-window 2MB --json";
        let loaded = forebay(here, loaded).json();
        let expected = epoch(&from_files(here, pipeline, data), 0);
        assert_eq!(loaded["samples"], 2 * expected.len(), "{}", mixed.domain);
        five_epochs(&here.join("mix"), &expected, mixed.domain);
    }
}

/// `forebay mix` has an answer of these formats, and what it chose can be built and loaded.
fn choose(here: &Path, pipeline: &str, data: &str, mixed: &Mixed) {
    let strategies: Vec<String> = mixed.formats.iter().map(|(name, _)| format!("--strategy {name}")).collect();
    let profile = "--seconds 0 --runs 1 --samples 6 --threads 2";
    forebay(here, &format!("profile {pipeline} --data {data} {profile} {}", strategies.join(" "))).text();
    let found = "mix profile.json --buffer 1MB --samples 8 --batch-size 2 --seconds 0 --json";
    let found = forebay(here, found).json();
    assert_eq!(keys(&found["shares"][0]), ["format", "share"]);
    let known = |name: &str| mixed.formats.iter().any(|(format, _)| *format == name);
    let shares = found["shares"].as_array().unwrap();
    assert!(shares.iter().all(|share| known(share["format"].as_str().unwrap())), "{}: {found:#}", mixed.domain);
    assert!(found["measured_samples_per_second"].as_f64().unwrap() > 0.0, "{}: {found:#}", mixed.domain);
}

fn options(cache: CachePolicy) -> LoadOptions {
    LoadOptions {
        batch_size: 3,
        threads: 2,
        shuffle: Shuffle::Window { bytes: 500_000 },
        cache,
        ..LoadOptions::default()
    }
}

fn from_files(here: &Path, pipeline: &str, data: &str) -> Loader {
    let pipeline = match preset(pipeline) {
        Ok(pipeline) => pipeline,
        Err(_) => Pipeline::from_toml(pipeline, &std::fs::read_to_string(here.join(pipeline)).unwrap()).unwrap(),
    };
    let storage = StorageChoice::Local.open(0).unwrap();
    let files = Files::open(pipeline, &here.join(data), storage, &ListingOptions::default()).unwrap();
    Loader::new(Arc::new(files) as Arc<dyn Source>, options(CachePolicy::default())).unwrap()
}

/// A sample: its key, and each of its fields in bytes.
type Found = (String, Vec<Vec<u8>>);

/// The samples of an epoch, in the order of their keys and contents.
fn epoch(loader: &Loader, number: u64) -> Vec<Found> {
    let mut found = Vec::new();
    for batch in loader.start(&loader.beginning_of(number)).unwrap() {
        found.extend(samples(&batch.unwrap()));
    }
    found.sort();
    found
}

fn samples(batch: &Batch) -> Vec<Found> {
    let value = |column: &Column, at: usize| match column {
        Column::Dense { spec, data } => data[at * spec.bytes()..(at + 1) * spec.bytes()].to_vec(),
        Column::Ragged(tensors) => tensors[at].data().to_vec(),
        Column::Ints(numbers) => numbers[at].to_le_bytes().to_vec(),
        Column::Texts(texts) => texts[at].as_bytes().to_vec(),
        Column::Bytes(bytes) => bytes[at].to_vec(),
    };
    let sample = |(at, key): (usize, &Arc<str>)| {
        (key.to_string(), batch.columns.iter().map(|(_, column)| value(column, at)).collect())
    };
    batch.keys.iter().enumerate().map(sample).collect()
}

/// Each epoch of the mix has every sample once, and as the files give it.
fn five_epochs(folder: &Path, expected: &[Found], domain: &str) {
    for cache in ["liquid:1MB", "minio:1MB", "liquid:1GB"] {
        let cache: CachePolicy = cache.parse().unwrap();
        let storage = cache.open(&StorageChoice::Local).unwrap();
        let source = open_dataset(folder, storage, OnError::Fail).unwrap();
        let loader = Loader::new(source, options(cache)).unwrap();
        for number in 0..5 {
            assert!(epoch(&loader, number) == expected, "{domain} with {cache}, epoch {number}");
        }
    }
}
