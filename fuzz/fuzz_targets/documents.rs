//! Text that a folder may hold: pipeline files, manifests of data sets, profiles, plans. What a text is, its parsers say.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use forebay_engine::data::{Dataset, MANIFEST_FILE, MIX_FILE, Manifest, MixManifest};
use forebay_engine::load::OnError;
use forebay_engine::source::open_dataset;
use forebay_pipeline::{Pipeline, Strategy};
use forebay_plan::{Objective, Plan, Profile, analyze, mix, mix_formats, mix_limits, plan};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::xxh3_64;

/// A folder of this process, with a shard of 100 bytes, for manifests to be opened in.
static FOLDER: LazyLock<String> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("forebay-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder can be made");
    std::fs::write(folder.join("shard-0.tfrecord"), [0; 100]).expect("the temporary folder can be written to");
    folder.to_str().expect("it has a plain name").to_owned()
});

fuzz_target!(|text: &str| {
    if let Ok(pipeline) = Pipeline::from_toml("fuzz", text) {
        let spec = pipeline.to_spec().expect("it came from one");
        Pipeline::from_spec(&spec).expect("a valid pipeline stays valid");
        assert!(!pipeline.splits().is_empty());
    }
    if let Ok(profile) = Profile::parse(text) {
        Profile::parse(&profile.to_json().expect("it came from JSON")).expect("a valid profile stays valid");
        let objective = Objective::default();
        if let Ok(plan) = plan(&profile, &objective) {
            Plan::parse(&plan.to_json().expect("it has plain values")).expect("what was written is read");
            let analysis = analyze(&profile, &objective).expect("what can be planned can be analyzed");
            assert_eq!(analysis.strategies.len(), profile.strategies.len());
        }
    }
    if let Ok(profile) = Profile::parse(text)
        && let Ok(found) = mix(&mix_formats(&profile, 1.0), &mix_limits(&profile, profile.data.bytes / 3))
    {
        assert!((found.shares.iter().map(|share| share.share).sum::<f64>() - 1.0).abs() < 1e-3);
    }
    let _ = Plan::parse(text);
    if serde_json::from_str::<MixManifest>(text).is_ok() {
        let folder = Path::new(&*FOLDER);
        std::fs::write(folder.join(MIX_FILE), sealed(text)).expect("the temporary folder can be written to");
        let storage = forebay_engine::StorageChoice::Local.open(0).expect("local files");
        let _ = open_dataset(folder, storage, OnError::Skip);
    }
    if let Ok(manifest) = serde_json::from_str::<Manifest>(text) {
        if let Ok(pipeline) = Pipeline::from_spec(&manifest.pipeline) {
            let _ = Strategy::parse(&pipeline, &manifest.strategy.to_string());
        }
        let folder = Path::new(&*FOLDER);
        std::fs::write(folder.join(MANIFEST_FILE), sealed(text)).expect("the temporary folder can be written to");
        let _ = Dataset::open(folder);
    }
});

/// The manifest with its checksum put right, or added: docs/formats/dataset.md.
fn sealed(text: &str) -> String {
    const START: &str = "{\n  \"checksum\": \"";
    let rest = match text.strip_prefix(START).and_then(|rest| rest.get(16..)) {
        Some(rest) => rest.to_owned(),
        None => format!("\",\n{}", text.trim_start().strip_prefix('{').unwrap_or(text)),
    };
    let checksum = xxh3_64(format!("{START}{:016x}{rest}", 0).as_bytes());
    format!("{START}{checksum:016x}{rest}")
}
