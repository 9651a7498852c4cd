//! Several data sets in one epoch, each by its weight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forebay_engine::load::{Batch, Column, LoadOptions, Loader, Sampling, Shares, Shuffle, State};
use forebay_engine::source::{Interleaved, Source};
use tempfile::TempDir;

use crate::support::{RAGGED, SMALL, built, files, photos, pipeline, shards};

const WEIGHTS: [f64; 2] = [3.0, 1.0];

/// A data set of 40 photos at one split, and of 30 others at another.
fn sources() -> (Vec<TempDir>, Vec<Arc<dyn Source>>) {
    let (one, other) = (photos(40), photos(30));
    for entry in std::fs::read_dir(other.path()).unwrap() {
        for file in std::fs::read_dir(entry.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = format!("other-{}", path.file_name().unwrap().to_str().unwrap());
            std::fs::rename(&path, path.with_file_name(name)).unwrap();
        }
    }
    let (first, decoded) = built(&pipeline(SMALL), "decoded", one.path(), 3);
    let (second, resized) = built(&pipeline(SMALL), "resized+gzip", other.path(), 2);
    let all = vec![shards(&decoded), shards(&resized)];
    (vec![one, other, first, second], all)
}

fn options(source: &Interleaved, samples: u64) -> LoadOptions {
    let shares = Some(Shares::new(&source.counts(), &WEIGHTS).unwrap());
    LoadOptions {
        batch_size: 8,
        threads: 2,
        shuffle: Shuffle::Window { bytes: 1 << 20 },
        seed: 3,
        sampling: Sampling { shares, samples: Some(samples), ..Sampling::default() },
        ..LoadOptions::default()
    }
}

fn epoch(loader: &Loader, state: &State) -> Vec<Batch> {
    loader.start(state).unwrap().map(|batch| batch.unwrap()).collect()
}

fn keys(batches: &[Batch]) -> Vec<String> {
    batches.iter().flat_map(|batch| batch.keys.iter().map(ToString::to_string)).collect()
}

#[test]
fn every_batch_has_its_share_of_each_data_set() {
    let (_folders, sources) = sources();
    let source = Interleaved::new(sources).unwrap();
    let options = options(&source, 80);
    let loader = Loader::new(Arc::new(source), options.clone()).unwrap();
    let batches = epoch(&loader, &loader.beginning_of(0));
    assert_eq!((batches.len(), loader.samples()), (10, 80));
    let mut often: BTreeMap<String, usize> = BTreeMap::new();
    for batch in &batches {
        let others = batch.keys.iter().filter(|key| key.contains("other-")).count();
        assert!((1..=3).contains(&others), "{others} of {}", batch.len());
        for key in &batch.keys {
            *often.entry(key.to_string()).or_default() += 1;
        }
    }
    let of = |other: bool| often.iter().filter(move |(key, _)| key.contains("other-") == other);
    assert_eq!((of(false).count(), of(true).count()), (40, 20), "all of the first, and some of the second");
    assert_eq!(of(false).map(|(_, times)| times).sum::<usize>(), 60);
    assert!(of(false).all(|(_, times)| (1..=2).contains(times)));
    // The same again, other samples in the next epoch, and the same whatever the threads are.
    assert_eq!(keys(&batches), keys(&epoch(&loader, &loader.beginning_of(0))));
    assert_ne!(keys(&batches), keys(&epoch(&loader, &loader.beginning_of(1))));
    let (_folders, again) = self::sources();
    let one = LoadOptions { threads: 1, ..options };
    let one = Loader::new(Arc::new(Interleaved::new(again).unwrap()), one).unwrap();
    assert_eq!(keys(&batches), keys(&epoch(&one, &one.beginning_of(0))));
}

#[test]
fn an_interleaved_epoch_goes_on_with_other_ranks() {
    let (_folders, sources) = sources();
    let source = Arc::new(Interleaved::new(sources).unwrap());
    let usual = options(&source, 64);
    let whole = Loader::new(source.clone(), usual.clone()).unwrap();
    let mut expected = keys(&epoch(&whole, &whole.beginning_of(2)))[24..].to_vec();
    let state = State { samples_seen: 24, ..whole.beginning_of(2) };
    let mut found = Vec::new();
    for rank in 0..2 {
        let options = LoadOptions { batch_size: 4, rank, world_size: 2, ..usual.clone() };
        let loader = Loader::new(source.clone(), options).unwrap();
        found.extend(keys(&epoch(&loader, &state)));
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

const MIXED: &str = r#"
name = "mixed"
[[step]]
op = "decode"
[[step]]
op = "center_crop"
size = 8
[[step]]
op = "one_hot"
num_classes = 3
fields = ["label"]
[[step]]
op = "mixup"
fields = ["image", "label"]
"#;

/// Of each batch whose first and last samples are of different classes the weight of the first one, as its label tells, with its key.
fn mix_weights(loader: &Loader) -> Vec<(String, u32)> {
    let weight = |batch: &Batch| {
        let class =
            |at: usize| ["ant", "bee", "cat"].iter().position(|class| batch.keys[at].starts_with(class)).unwrap();
        let Some(Column::Dense { data, .. }) = batch.column("label") else { panic!("vectors") };
        let of_first = f32::from_le_bytes(data[class(0) * 4..][..4].try_into().unwrap());
        (class(0) != class(batch.len() - 1)).then(|| (batch.keys[0].to_string(), of_first.to_bits()))
    };
    epoch(loader, &loader.beginning_of(0)).iter().filter_map(weight).collect()
}

/// Batches that begin with the same sample, or with samples of the same key, are mixed in different ways.
#[test]
fn batches_are_mixed_by_which_time_a_sample_comes_and_of_which_data_set() {
    let photos = photos(6);
    let plain = files(&pipeline(MIXED), photos.path());
    let repeated = LoadOptions {
        batch_size: 2,
        shuffle: Shuffle::Window { bytes: 1 << 20 },
        seed: 3,
        sampling: Sampling { repeats: 8, samples: Some(48), ..Sampling::default() },
        ..LoadOptions::default()
    };
    let twice: Arc<dyn Source> = Arc::new(Interleaved::new(vec![Arc::clone(&plain), Arc::clone(&plain)]).unwrap());
    let in_order = LoadOptions { batch_size: 3, seed: 3, ..LoadOptions::default() };
    for (source, options) in [(plain, repeated), (twice, in_order)] {
        let weights = |threads| {
            let options = LoadOptions { threads, ..options.clone() };
            mix_weights(&Loader::new(Arc::clone(&source), options).unwrap())
        };
        let found = weights(1);
        let firsts: BTreeSet<&String> = found.iter().map(|(key, _)| key).collect();
        assert!(firsts.len() < found.len(), "some begin alike: {found:?}");
        let drawn: BTreeSet<u32> = found.iter().map(|(_, weight)| *weight).collect();
        assert_eq!(drawn.len(), found.len(), "{found:?}");
        assert_eq!(found, weights(3));
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let (_folders, mut sources) = sources();
    let photos = photos(4);
    sources.push(files(&pipeline(RAGGED), photos.path()));
    let error = Interleaved::new(sources).err().unwrap().to_string();
    assert!(error.contains("data set 2 has other fields than data set 0"), "{error}");
    assert!(Interleaved::new(Vec::new()).is_err());
    let (_folders, sources) = self::sources();
    let source = Interleaved::new(sources).unwrap();
    let mut options = options(&source, 80);
    options.sampling.repeats = 2;
    assert!(Loader::new(Arc::new(source), options).is_err());
}

#[test]
fn keys_and_labels_are_those_of_a_plain_epoch() {
    let (_folders, sources) = sources();
    let source = Arc::new(Interleaved::new(sources).unwrap());
    let known = source.keys_and_labels().unwrap();
    let options = LoadOptions { batch_size: 7, threads: 2, ..LoadOptions::default() };
    let loader = Loader::new(source, options).unwrap();
    let batches = epoch(&loader, &loader.beginning_of(0));
    assert_eq!(known.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), keys(&batches));
    let labels = known.iter().map(|(_, label)| format!("{label:?}")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(labels.len(), 3, "{labels:?}");
    let photos = photos(6);
    let listed = files(&pipeline(SMALL), photos.path()).keys_and_labels().unwrap();
    assert!(listed.iter().all(|(key, label)| !key.is_empty() && label.is_some()));
}
