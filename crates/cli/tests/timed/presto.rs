//! PRESTO's shape (paper §4.1, CV): on a slow network storage, concatenated records beat single files by a large factor, and the
//! resized state beats both its neighbors, which are larger. The order is asserted, not the times.

use crate::in_one_of_some_tries;
use crate::support::{PHOTOS, all_photos, forebay};

#[test]
fn a_slow_network_storage_gives_the_papers_order() {
    in_one_of_some_tries(|| {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let photos = all_photos();
        let arguments = format!(
            "profile cv --data {} --seconds 0 --storage ceph-hdd --samples {PHOTOS} --runs 2 --threads 2 --json",
            photos.display()
        );
        let profile = forebay(here, &arguments).json();
        let strategies = profile["strategies"].as_array().unwrap();
        let rate = |name: &str| {
            let strategy = strategies.iter().find(|strategy| strategy["name"] == name).unwrap();
            strategy["samples_per_second"].as_f64().unwrap()
        };
        let [single, concatenated, decoded, resized, centered] =
            ["unprocessed", "concatenated", "decoded", "resized", "pixel-centered"].map(rate);
        assert!(concatenated >= 3.0 * single, "concatenated {concatenated}, unprocessed {single}");
        assert!(resized > decoded, "resized {resized}, decoded {decoded}");
        assert!(resized > centered, "resized {resized}, pixel-centered {centered}");

        let plan = forebay(here, "plan profile.json --json").json();
        let sentence = |name: &str| {
            let ranked = plan["ranking"].as_array().unwrap().iter().find(|ranked| ranked["name"] == name).unwrap();
            ranked["sentence"].as_str().unwrap().to_owned()
        };
        assert!(sentence("unprocessed").starts_with("bound by opening files: "), "{}", sentence("unprocessed"));
        assert!(sentence("concatenated").starts_with("CPU-bound: "), "{}", sentence("concatenated"));
        assert!(sentence("concatenated").contains("decode"), "{}", sentence("concatenated"));
        for name in ["decoded", "pixel-centered"] {
            assert!(sentence(name).starts_with("disk-bound: "), "{}", sentence(name));
        }
    });
}

/// Samples per second of each of `strategies` of a domain's demo data, on a slow storage.
fn rates<const N: usize>(domain: &str, samples: u64, storage: &str, strategies: [&str; N]) -> [f64; N] {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let made = forebay(here, &format!("demo --domain {domain} --data-only --samples {samples} --json")).json();
    let [pipeline, data] = ["pipeline", "folder"].map(|key| made["data"][key].as_str().unwrap().to_owned());
    let only = strategies.map(|name| format!(" --strategy {name}")).concat();
    let arguments = format!(
        "profile {pipeline} --data {data} --seconds 0 --storage {storage} --samples {samples} --runs 2 --threads 2{only} --json"
    );
    let profile = forebay(here, &arguments).json();
    let found: Vec<f64> = profile["strategies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|strategy| strategy["samples_per_second"].as_f64().unwrap())
        .collect();
    found.try_into().unwrap()
}

#[test]
fn tokens_are_better_kept_than_their_embeddings() {
    in_one_of_some_tries(|| {
        // A share of a disk, so that a few samples take longer than the start of a run.
        let storage = "custom:read=60MB/s,stream=60MB/s,seek=8ms,iops=120";
        let [tokens, embedded] = rates("nlp", 60, storage, ["bpe-encoded", "embedded"]);
        assert!(tokens >= 10.0 * embedded, "bpe-encoded {tokens}, embedded {embedded}");
    });
}

/// Of a domain's samples, those that the last step made are loaded faster than files and than what was only decoded.
fn assert_best_done_once(domain: &str, samples: u64, last: &str) {
    let [single, decoded, last] = rates(domain, samples, "ceph-hdd", ["unprocessed", "decoded", last]);
    assert!(last > decoded && last > single, "{domain}: {single}, {decoded}, {last}");
}

#[test]
fn spectrograms_of_flac_are_best_kept() {
    in_one_of_some_tries(|| assert_best_done_once("flac", 40, "spectrogram-encoded"));
}

#[test]
fn spectrograms_of_mp3_are_best_kept() {
    in_one_of_some_tries(|| assert_best_done_once("mp3", 60, "spectrogram-encoded"));
}

#[test]
fn aggregates_of_signals_are_best_kept() {
    in_one_of_some_tries(|| assert_best_done_once("nilm", 40, "aggregated"));
}

#[test]
fn small_samples_cost_more_by_the_byte() {
    in_one_of_some_tries(|| {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let sizes = "experiment sample-size --sizes 40KB,1MB --seconds 0 --total 3MB --runs 1 --storage ceph-hdd --threads 2 --json";
        let found = forebay(here, sizes).json();
        let bytes_per_second = |run: &str, strategy: &str| {
            let findings = found["findings"].as_array().unwrap();
            let finding =
                findings.iter().find(|finding| finding["run"] == run && finding["strategy"] == strategy).unwrap();
            let number = |key: &str| finding[key].as_f64().unwrap();
            number("samples_per_second") * number("bytes_per_sample")
        };
        let [small, large] = ["size-40kB", "size-1MB"].map(|run| bytes_per_second(run, "unprocessed"));
        assert!(small < large / 5.0, "files of 40 KB give {small} bytes/s, of 1 MB {large}");
    });
}

#[test]
fn caches_help() {
    in_one_of_some_tries(|| {
        let folder = tempfile::tempdir().unwrap();
        let photos = all_photos();
        let caching = format!(
            "experiment caching cv --data {} --seconds 0 --samples {PHOTOS} --runs 2 --storage ceph-hdd --threads 2 \
             --strategy pixel-centered --json",
            photos.display()
        );
        let found = forebay(folder.path(), &caching).json();
        let rates: Vec<f64> = found["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["samples_per_second"].as_f64().unwrap())
            .collect();
        let [none, system, application] = rates[..] else { panic!("{found}") };
        // What is as fast as the other may come out a little slower.
        assert!(system > none && application > 0.9 * system, "none {none}, system {system}, application {application}");
    });
}
