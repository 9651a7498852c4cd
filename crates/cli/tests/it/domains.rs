//! The demo's data of every domain, and its preset on it.

use std::path::Path;

use crate::data::data_folder;
use crate::support::{assert_keys, command, files, forebay, ran};

/// Domain, files to make, how many samples they give, and what a batch of these is.
const DOMAINS: [(&str, u64, u64, &str); 7] = [
    ("cv2-jpg", 1, 1, "image float32[1, 224, 224, 3]"),
    ("cv2-png", 1, 1, "image float32[1, 224, 224, 3]"),
    ("nlp", 4, 4, "text float32[4, ?, ?]"),
    ("flac", 3, 3, "audio float32[3, ?, ?]"),
    ("mp3", 4, 4, "audio float32[4, ?, ?]"),
    ("nilm", 1, 6, "signal float64[6, 3, 500]"),
    ("synthetic", 5, 5, "tensor float32[5, 80]"),
];

#[test]
fn every_domain_goes_from_its_own_files_to_batches() {
    for (domain, count, samples, batch) in DOMAINS {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let made = forebay(here, &format!("demo --domain {domain} --samples {count} --data-only --json")).json();
        assert_keys(&made, "data");
        let data = made["data"]["folder"].as_str().unwrap();
        let written = files(&here.join(data));
        assert_eq!(written.len() as u64, count, "{domain}");
        let bytes: usize = written.values().map(Vec::len).sum();
        assert_eq!(made["data"]["bytes"], bytes, "{domain}");
        let pipeline = made["data"]["pipeline"].as_str().unwrap();
        let load = forebay(here, &format!("load {pipeline} --data {data} --json")).json();
        assert_eq!(load["samples"], samples, "{domain}: {load:#}");
        let text = forebay(here, &format!("load {pipeline} --data {data}"));
        assert!(text.text().contains(batch), "{domain}: {text:#?}");
    }
}

/// Pipeline, a folder of the shared data, further arguments, and how many samples come of it and are left out.
const REAL: [(&str, &str, &[&str], u64, u64); 7] = [
    ("cv", "images-jpeg", &["--samples", "64"], 64, 0),
    ("cv2-jpg", "images-jpeg-large", &[], 4, 0),
    ("cv2-png", "kodak", &[], 12, 0),
    ("nlp", "text-html/readability", &[], 52, 0),
    // One file changes its channels halfway.
    ("flac", "audio-flac", &["--on-error", "skip"], 63, 1),
    ("mp3", "audio-mp3", &[], 81, 0),
    // Two phases of a motor's current for voltage and current: ten periods of it.
    ("nilm", "electrical/itsc-motor-current", &NILM_CSV, 39, 0),
];

const NILM_CSV: [&str; 10] = [
    "--set",
    "source.files=**/*.csv",
    "--set",
    "signal_windows.channels=[0, 1]",
    "--set",
    "signal_windows.window=1000",
    "--set",
    "signal_windows.period=100",
    "--set",
    "aggregate_signal.period=100",
];

#[test]
fn every_domain_goes_from_real_files_to_batches() {
    let folder = tempfile::tempdir().unwrap();
    for (pipeline, data, arguments, samples, skipped) in REAL {
        let Some(data) = data_folder(data) else { return };
        let mut command = command(folder.path(), &format!("load {pipeline} --json --data"));
        let load = ran(command.arg(data).args(arguments)).json();
        assert_eq!((&load["samples"], &load["skipped"]), (&samples.into(), &skipped.into()), "{pipeline}: {load:#}");
    }
}

#[test]
fn the_same_seed_gives_the_same_files() {
    for domain in ["nlp", "flac", "mp3", "nilm", "synthetic"] {
        let folder = tempfile::tempdir().unwrap();
        let make = |seed: u64, to: &str| {
            forebay(
                folder.path(),
                &format!("demo --domain {domain} --samples 2 --data-only --seed {seed} --folder {to}"),
            )
            .text();
            let mut made = files(&folder.path().join(to));
            // They name the folder.
            made.retain(|path, _| path.extension().is_none_or(|extension| extension != "toml"));
            made
        };
        let (one, again, other) = (make(1, "one"), make(1, "again"), make(2, "other"));
        assert!(one == again, "{domain}");
        assert!(one != other, "{domain}");
    }
}

#[test]
fn the_demo_walks_the_path_of_other_domains() {
    for (domain, strategies) in
        [("nlp", 5), ("flac", 4), ("mp3", 4), ("nilm", 4), ("synthetic --sample-bytes 20KB --dtype u8", 4)]
    {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let walked =
            forebay(here, &format!("demo --domain {domain} --samples 3 --seconds 0 --storage ssd --json")).json();
        assert_keys(&walked, "data profile plan build load report");
        // Besides these, compressed ones are measured where they may pay.
        let measured = walked["profile"]["strategies"].as_array().unwrap();
        let plain = measured.iter().filter(|strategy| !strategy["name"].as_str().unwrap().contains('+'));
        assert_eq!(plain.count(), strategies, "{domain}");
        // Into a folder where another domain was, and as text.
        let again =
            forebay(here, "demo --domain synthetic --samples 4 --seconds 0 --sample-bytes 10KB --storage local");
        let text = again.text();
        assert!(text.contains("Generated 4 tensors of random numbers in demo/tensors: "), "{text}");
        assert!(text.contains("\nResults\ndata         demo/tensors\npipeline     demo/synthetic.toml\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for gone in ["pages", "clips", "recordings", "nlp.toml", "tokenizer.tiktoken"] {
            assert!(!here.join("demo").join(gone).exists(), "{gone}");
        }
    }
}

#[test]
fn what_the_demo_cannot_make_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (arguments, message) in [
        ("demo --domain video", "error: invalid value 'video' for '--domain <DOMAIN>'"),
        ("demo --dtype u8", "error: the files of `cv` have a fixed size and type\nhint: omit "),
        (
            "demo --domain synthetic --sample-bytes 1KB",
            "error: invalid value '1KB' for '--sample-bytes <SIZE>': expected a size",
        ),
        ("demo --domain synthetic --dtype f16", "error: invalid value 'f16' for '--dtype <TYPE>'"),
    ] {
        let refused = forebay(here, arguments);
        assert!(refused.error(2).starts_with(message), "{arguments}: {refused:#?}");
    }
    assert!(!Path::new(&here.join("demo")).exists());
}
