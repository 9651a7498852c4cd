//! Profiles to test with.

use forebay_pipeline::{PipelineSpec, Split};
use forebay_plan::{
    Caching, Data, Machine, Method, Profile, Run, Runs, StepCost, StorageRates, StrategyProfile, Weights,
};

/// How many images the training set of `ImageNet` has.
pub(crate) const IMAGENET_SAMPLES: u64 = 1_281_167;

/// One strategy whose runs all take `samples` samples.
pub(crate) fn strategy(name: &str, position: usize, samples: u64, t4: f64, storage_bytes: u64) -> StrategyProfile {
    let run = Run {
        samples,
        skipped: 0,
        seconds: samples as f64 / t4,
        bytes_read: storage_bytes,
        first_batch: None,
        passes: 1,
        stats: None,
        others: None,
    };
    StrategyProfile {
        name: name.to_owned(),
        split: Split { position, name: name.to_owned() },
        lossy: false,
        storage_bytes,
        bytes_per_sample: storage_bytes as f64 / samples as f64,
        prep_seconds: 0.0,
        deserialize_cpu_seconds: 0.0,
        online_cpu_seconds: 0.0,
        reading: None,
        working: None,
        runs: vec![run.clone(), run],
        system: vec![],
    }
}

/// A profile of these strategies over a pipeline of decode, resize, center and random crop.
pub(crate) fn profile(samples: u64, strategies: Vec<StrategyProfile>) -> Profile {
    let pipeline: PipelineSpec = serde_json::from_str(
        r#"{"name": "cv", "step": [{"op": "decode"}, {"op": "resize", "shorter-side": 256}, {"op": "center_pixels"},
            {"op": "random_crop", "size": 224}]}"#,
    )
    .unwrap();
    let step = |name: &str, cpu_seconds: f64, bytes_out: f64| StepCost {
        name: name.to_owned(),
        cpu_seconds,
        bytes_out,
        random: name == "random_crop",
    };
    Profile {
        version: Profile::VERSION,
        forebay: "0.1.0".to_owned(),
        machine: Machine {
            cpu: "8 virtual cores of a Xeon E5-2630v3".to_owned(),
            cores: 8,
            memory_bytes: 80_000_000_000,
            memory_bytes_per_second: 5e9,
        },
        pipeline,
        data: Data { root: "photos".to_owned(), samples, bytes: samples * 114_661 },
        method: Method {
            sample_count: samples,
            runs: Runs::Each(2.try_into().unwrap()),
            threads: 8,
            shards: 8,
            caching: Caching::None,
            shuffle_window_bytes: None,
            seed: 7,
            seconds: 1.0,
        },
        storage: StorageRates {
            name: "ceph-hdd".to_owned(),
            // fio with 8 threads, sequential; files as PRESTO's unprocessed strategy read them.
            sequential_bytes_per_second: 910e6,
            stream_bytes_per_second: 0.0,
            cpu_seconds_per_byte: 0.0,
            files_per_second: 107.0,
            file_bytes: 114_661.0,
        },
        // Assumed: the paper gives no processor times per step.
        steps: vec![
            step("read", 0.000_05, 114_661.0),
            step("decode", 0.006, 657_590.0),
            step("resize", 0.002, 271_079.0),
            step("center_pixels", 0.000_2, 1_084_122.0),
            step("random_crop", 0.000_1, 602_112.0),
        ],
        strategies,
        compressions: Vec::new(),
        skipped_samples: Vec::new(),
    }
}

/// PRESTO's CV pipeline on Ceph: throughput and storage as published, preparation times assumed.
pub(crate) fn presto_cv() -> Profile {
    let published = [
        // name, position, throughput, MB, preparation seconds
        ("unprocessed", 0, 107.0, 146_900, 0.0),
        ("concatenated", 1, 962.0, 146_952, 10_000.0),
        ("decoded", 2, 746.0, 842_482, 14_000.0),
        ("resized", 3, 1789.0, 347_297, 13_000.0),
        ("pixel-centered", 4, 576.0, 1_388_941, 18_000.0),
    ];
    let mut profile = profile(IMAGENET_SAMPLES, vec![]);
    for (name, position, t4, megabytes, prep_seconds) in published {
        let mut strategy = strategy(name, position, IMAGENET_SAMPLES, t4, megabytes * 1_000_000);
        strategy.prep_seconds = prep_seconds;
        strategy.deserialize_cpu_seconds = if position == 0 { 0.0 } else { 0.000_1 };
        strategy.online_cpu_seconds = profile.steps[position..].iter().map(|step| step.cpu_seconds).sum();
        profile.strategies.push(strategy);
    }
    profile
}

pub(crate) fn weights(prep: f64, storage: f64, throughput: f64) -> Weights {
    Weights { prep, storage, throughput, money: 0.0 }
}

/// Whether two numbers agree to nine digits.
pub(crate) fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}
